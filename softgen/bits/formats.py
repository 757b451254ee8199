"""Surface formats: `spec/formats.csv` as records. A complaint starts with file:line.

    surface_formats()[0xC0].name                 'B8G8R8A8_UNORM'
    surface_formats()[0xC0].supports("render", 8)
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from softgen.bits.generation import SPEC
from softgen.bits.layout import GENERATIONS
from softgen.errors import SpecError

FILE = "formats.csv"
SHAPE = ("value", "name", "bits", "block", "channels", "space", "coding")
USES = ("sampling", "filtering", "shadow", "chroma_key", "render", "blend", "vertex", "stream_out", "typed_write", "typed_read",
        "typed_atomic", "ccs")  # fmt: skip
CHANNEL = re.compile(r"([rgbalipexyuv]):(unorm|snorm|uint|sint|uscaled|sscaled|sfixed|float|ufloat|exponent|raw|void)(\d+)$")
BLOCK = re.compile(r"(\d+)x(\d+)$")


@dataclass(frozen=True)
class FormatChannel:
    name: str  # r g b a l i p e y u v, x: unused
    type: str
    bits: int


@dataclass(frozen=True)
class Format:
    value: int
    name: str
    bits: int  # of a block; 0: the format alone gives no size
    block: tuple[int, int]  # texels across and down
    channels: tuple[FormatChannel, ...]  # lowest bit first
    space: str  # linear, srgb, yuv or ''
    coding: str  # dxt1, etc2, astc …; '' for plain texels
    first: tuple[tuple[str, float], ...]  # use -> the first generation that has it

    def supports(self, use: str, gen: float) -> bool:
        """Whether a generation can use the format so; `use` is one of USES."""
        if use not in USES:
            raise SpecError(f"a format is used for {', '.join(USES)}, not {use!r}")
        return any(name == use and since <= gen for name, since in self.first)

    def __str__(self) -> str:
        return self.name


@cache
def surface_formats() -> dict[int, Format]:
    """Every format, by its number in surface states."""
    return read((SPEC / FILE).read_text("utf-8"))


def read(text: str) -> dict[int, Format]:
    """The rows of formats.csv. Numbers and names are given once."""
    found: dict[int, Format] = {}
    names: set[str] = set()
    for line, cells in _rows(text):
        entry = _format(line, cells)
        if entry.value in found or entry.name in names:
            raise SpecError(f"{FILE}:{line}: {entry.name}, {entry.value}, is listed twice")
        found[entry.value] = entry
        names.add(entry.name)
    return found


def _rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    columns: tuple[str, ...] = ()
    for (number, _), row in zip(lines, csv.reader(line for _, line in lines), strict=True):
        cells = tuple(cell.strip() for cell in row)
        if not columns:
            if cells != (*SHAPE, *USES):
                raise SpecError(f"{FILE}:{number}: the columns are {', '.join((*SHAPE, *USES))}, not {', '.join(cells)}")
            columns = cells
        elif len(cells) != len(columns):
            raise SpecError(f"{FILE}:{number}: a row has {len(columns)} cells, not {len(cells)}")
        else:
            yield number, dict(zip(columns, cells, strict=True))


def _format(line: int, cells: dict[str, str]) -> Format:
    block = BLOCK.match(cells["block"])
    if not cells["value"].isdigit() or not cells["bits"].isdigit() or not block or not cells["name"]:
        given = ", ".join(repr(cells[column]) for column in ("value", "bits", "block"))
        raise SpecError(f"{FILE}:{line}: value and bits are numbers and a block is 4x4, not {given}")
    channels = tuple(_channel(line, word) for word in _dash(cells["channels"]).split())
    first = tuple((use, _generation(line, use, cells[use])) for use in USES if _dash(cells[use]))
    return Format(int(cells["value"]), cells["name"], int(cells["bits"]), (int(block[1]), int(block[2])), channels, _dash(cells["space"]),
                  _dash(cells["coding"]), first)  # fmt: skip


def _dash(cell: str) -> str:
    return "" if cell == "-" else cell


def _channel(line: int, word: str) -> FormatChannel:
    m = CHANNEL.match(word)
    if not m:
        raise SpecError(f"{FILE}:{line}: a channel is a name, a type and a width such as r:unorm8, not {word!r}")
    return FormatChannel(m[1], m[2], int(m[3]))


def _generation(line: int, use: str, cell: str) -> float:
    known = {f"{gen:g}": gen for gen in GENERATIONS}
    if cell not in known:
        raise SpecError(f"{FILE}:{line}: {use} must be one of {', '.join(known)} or -, not {cell!r}")
    return known[cell]
