"""Bit diagrams: the dwords of a layout as rows of cells, for terminals and for HTML.

    for row in rows(layout): row.dword, row.cells        one row per dword, cells from bit 31 down to bit 0 without a gap
    draw(layout)                                          lines of text

Second readings of the same bits (`or` on a page) are left to the table, unless nothing else stands there: each bit is shown once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from softgen.bits.layout import BitField, Group, Layout

COLUMNS = 3  # of text, for a bit
MOST_ROWS = 48  # of a diagram in a terminal
LINES = {"─": "-", "│": "|", "┌": "+", "┬": "+", "┐": "+", "├": "+", "┼": "+", "┤": "+", "└": "+", "┴": "+", "┘": "+", "┄": ".", "…": "."}
CORNERS = {  # (first or last column, an edge above, an edge below)
    ("left", False, True): "┌", ("left", True, True): "├", ("left", True, False): "└",
    ("right", False, True): "┐", ("right", True, True): "┤", ("right", True, False): "┘",
    ("inside", False, True): "┬", ("inside", True, True): "┼", ("inside", True, False): "┴", ("inside", False, False): "─",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """Bits high:low of a row. `kind` is one of field, header, length, reserved, group."""

    high: int
    low: int
    kind: str
    text: str = ""
    field: BitField | None = None

    @property
    def width(self) -> int:
        return self.high - self.low + 1


@dataclass(frozen=True)
class Row:
    """One dword, or a run of reserved dwords."""

    dword: int
    cells: tuple[Cell, ...]
    last: int | None = None  # of a run

    @property
    def blank(self) -> bool:
        return len(self.cells) == 1 and self.cells[0].kind in ("reserved", "group")


def rows(layout: Layout) -> list[Row]:
    """All dwords up to the last that has a field."""
    header = layout.header
    fixed = []
    if header:
        fixed = [Cell(high, low, "header", f"{header.value >> low & (1 << high - low + 1) - 1:#x}") for high, low in _runs(header.mask)]
        if header.length:
            fixed.append(Cell(*header.length, "length", "length"))
    end = max([layout.dwords - 1, *(field.high // 32 for field in layout.fields)])
    return _collapse(_rows(layout.fields, layout.groups, end + 1, fixed, layout.dwords * 32))


def element_rows(group: Group) -> list[Row]:
    """The rows of one element of a group."""
    return _collapse(_rows(group.fields, group.groups, -(-group.size // 32), [], group.size))


def _rows(fields: Iterable[BitField], groups: Iterable[Group], dwords: int, fixed: list[Cell], bits: int) -> Iterator[Row]:
    placed: dict[int, list[Cell]] = {}
    taken = 0
    for cell in fixed:
        placed.setdefault(0, []).append(cell)
        taken |= (1 << cell.high + 1) - (1 << cell.low)
    for field in sorted(fields, key=lambda field: field.alternate):
        if field.mask & taken:
            continue
        taken |= field.mask
        for high, low in field.pieces:
            for cell_dword, top, bottom in _split(high, low):
                placed.setdefault(cell_dword, []).append(Cell(top, bottom, "field", field.name, field))
    for group in groups:
        end = min(bits, group.start + group.size * group.times(bits)) or group.start + group.size
        for cell_dword, top, bottom in _split(max(end, group.start + 1) - 1, group.start):
            mask = (1 << top + 1) - (1 << bottom) << 32 * cell_dword
            if not taken & mask and cell_dword < dwords:
                taken |= mask
                placed.setdefault(cell_dword, []).append(Cell(top, bottom, "group", f"{group.name}[…]"))
    for dword in range(dwords):
        yield Row(dword, tuple(_filled(placed.get(dword, []), min(32, bits - 32 * dword) if bits < 32 else 32)))


def _split(high: int, low: int) -> Iterator[tuple[int, int, int]]:
    """(dword, high, low) of each dword that a run of bits covers."""
    for dword in range(low // 32, high // 32 + 1):
        yield dword, min(high - 32 * dword, 31), max(low - 32 * dword, 0)


def _filled(cells: list[Cell], width: int) -> Iterator[Cell]:
    """Cells from the top down, with reserved ones between."""
    at = width - 1
    for cell in sorted(cells, key=lambda cell: -cell.high):
        if cell.high < at:
            yield Cell(at, cell.high + 1, "reserved")
        yield cell
        at = cell.low - 1
    if at >= 0:
        yield Cell(at, 0, "reserved")


def _runs(mask: int) -> Iterator[tuple[int, int]]:
    """(high, low) of the runs of ones, from the top."""
    while mask:
        high = mask.bit_length() - 1
        low = high
        while low and mask >> low - 1 & 1:
            low -= 1
        yield high, low
        mask &= (1 << low) - 1


def _collapse(rows: Iterable[Row]) -> list[Row]:
    """Merge consecutive dwords that are reserved, or filled by one group, into one row."""
    out: list[Row] = []
    for row in rows:
        before = out[-1] if out else None
        if before and row.blank and before.blank and row.cells == before.cells:
            out[-1] = Row(before.dword, before.cells, row.dword)
        else:
            out.append(row)
    return out


# -- in a terminal -------------------------------------------------------------------------------------------------


def draw(layout: Layout, numbers: dict[tuple[str, str], int], unicode: bool = True) -> Iterator[str]:
    """The layout, then one element of each group. A name too long for its cell is replaced by its number in the table."""
    yield from _drawn(rows(layout), numbers, "", unicode)
    for group, path in _groups(layout.groups, ""):
        many = f"{group.count} times" if group.count is not None else "as often as there is room"
        yield f"{path}: {group.size} bits, {many}, from dword {group.start // 32}"
        yield from _drawn(element_rows(group), numbers, path, unicode)


def _groups(groups: Iterable[Group], prefix: str) -> Iterator[tuple[Group, str]]:
    for group in groups:
        path = f"{prefix}{group.name}"
        yield group, path
        yield from _groups(group.groups, f"{path}.")


def _drawn(rows: list[Row], numbers: dict[tuple[str, str], int], path: str, unicode: bool) -> Iterator[str]:
    if not rows:
        return
    margin = max(len(_label(row)) for row in rows) + 1
    width = max(cell.high for row in rows for cell in row.cells) + 1
    yield " " * margin + " " + " ".join(f"{bit:2}" for bit in reversed(range(width)))
    above: set[int] = set()
    for row in rows[:MOST_ROWS]:
        below = {width - 1 - cell.high for cell in row.cells}
        yield _spoken(" " * margin + _border(above, below, width), unicode)
        inside = "".join("│" + _inside(cell, numbers, path) for cell in row.cells)
        yield _spoken(f"{_label(row):>{margin - 1}} {inside}│", unicode)
        above = below
    yield _spoken(" " * margin + _border(above, set(), width), unicode)
    if len(rows) > MOST_ROWS:
        yield " " * margin + f"and {len(rows) - MOST_ROWS} rows more"


def _label(row: Row) -> str:
    return f"{row.dword}" if row.last is None else f"{row.dword}-{row.last}"


def _border(above: set[int], below: set[int], width: int) -> str:
    """A line between two rows, with a corner where a cell of either ends."""
    line = []
    for column in range(width + 1):
        if column in (0, width):
            side = "left" if column == 0 else "right"
            line.append(CORNERS[side, bool(above), bool(below)])
        else:
            line.append(CORNERS["inside", column in above, column in below])
        line.append("─" * (COLUMNS - 1) if column < width else "")
    return "".join(line)


def _inside(cell: Cell, numbers: dict[tuple[str, str], int], path: str) -> str:
    room = COLUMNS * cell.width - 1
    if cell.kind == "reserved":
        return "┄" * room
    text = cell.text
    if len(text) > room:
        number = numbers.get((path, text))
        text = str(number) if number is not None else text
    return (text if len(text) <= room else text[: room - 1] + "…").center(room)


def _spoken(line: str, unicode: bool) -> str:
    return line if unicode else "".join(LINES.get(char, char) for char in line)
