"""Differences between two GPUs: names added and removed, and for each name its fields added, removed, moved, renamed, changed.

A field is the same when its name is, wherever it stands. One that lost its name while another with as many bits of the same kind, and a
word of the old name, came to the very same place was renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from softgen.bits.catalogue import catalogue
from softgen.bits.describe import values_of
from softgen.bits.layout import BitField, Group, Layout

COMMON = {"enable", "enabled", "disable", "state", "mode", "control", "select", "mask", "number", "and", "the", "type", "bit", "value"}
ORDER = ("added", "removed", "moved", "renamed", "changed")
Pieces = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Spot:
    """A field where it stands: bits from the start of the layout, of the first element for fields in groups."""

    name: str  # with its groups: element.valid
    pieces: Pieces
    meaning: str
    source: str

    def __str__(self) -> str:
        return " ".join(map(str, place(self.pieces)))


@dataclass(frozen=True)
class Change:
    kind: str  # one of ORDER
    before: Spot | None
    after: Spot | None

    @property
    def name(self) -> str:
        return (self.after or self.before or NOWHERE).name


@dataclass(frozen=True)
class Difference:
    """The changes of one name. Without a layout on one side, it was added or removed."""

    name: str
    before: Layout | None
    after: Layout | None
    frame: tuple[tuple[str, str, str], ...] = ()  # length, key, engines: what, before, after
    changes: tuple[Change, ...] = ()

    @property
    def kind(self) -> str:
        if self.before is None or self.after is None:
            return "added" if self.before is None else "removed"
        return "changed" if self.frame or self.changes else "same"


NOWHERE = Spot("", (), "", "")


def place(pieces: Pieces) -> tuple[int, str]:
    """The first dword of a field, and its bits counted from there: (3, '29:27'), or (1, '63:6'), pieces joined by commas."""
    base = min(low for _, low in pieces) // 32
    return base, ",".join(f"{high - 32 * base}:{low - 32 * base}" if high > low else f"{high - 32 * base}" for high, low in pieces)


def compare(name: str, before: Layout | None, after: Layout | None) -> Difference:
    if before is None or after is None:
        return Difference(name, before, after)
    frame = tuple((what, old, new) for what, old, new in zip(("length", "key", "engines"), _frame(before), _frame(after), strict=True)
                  if old != new)  # fmt: skip
    return Difference(name, before, after, frame, tuple(_changes(_spots(before), _spots(after))))


def compare_all(names: Iterable[str], old: float, new: float) -> Iterator[Difference]:
    """Those of the names that either side has and that differ."""
    for name in names:
        found = compare(name, catalogue().get(name, old), catalogue().get(name, new))
        if (found.before or found.after) and found.kind != "same":
            yield found


def _frame(layout: Layout) -> tuple[str, str, str]:
    most = "" if not layout.variable else " or more" if layout.maximum is None else f" to {layout.maximum}"
    return f"{layout.dwords}{most} dwords", layout.key, " ".join(layout.engines)


def _spots(layout: Layout) -> dict[str, Spot]:
    found: dict[str, Spot] = {}
    for field, groups in layout.walk():
        start = sum(group.start for group in groups)
        name = ".".join([*(group.name for group in groups), field.name])
        pieces = tuple((high + start, low + start) for high, low in field.pieces)
        found.setdefault(name, Spot(name, pieces, _meaning(field, groups, layout.gen), field.source))
    return found


def _meaning(field: BitField, groups: tuple[Group, ...], gen: float) -> str:
    """The type, as text that differs when what a value means differs."""
    values = values_of(field.type, gen)
    kind = " | ".join(f"{value} {name}" for value, name in sorted(values.items())) if values else str(field.type)
    counts = "".join(f" ×{group.count}" for group in groups if group.count is not None)
    return kind + counts


def _changes(before: dict[str, Spot], after: dict[str, Spot]) -> Iterator[Change]:
    gone = {name: spot for name, spot in before.items() if name not in after}
    come = {name: spot for name, spot in after.items() if name not in before}
    found = []
    for name, spot in list(gone.items()):
        other = next((candidate for candidate in come.values() if candidate.pieces == spot.pieces and _alike(candidate, spot)), None)
        if other:
            found.append(Change("renamed", gone.pop(name), come.pop(other.name)))
    found += [Change("added", None, spot) for spot in come.values()] + [Change("removed", spot, None) for spot in gone.values()]
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if old.pieces != new.pieces:
            found.append(Change("moved", old, new))
        elif old.meaning != new.meaning:
            found.append(Change("changed", old, new))
    yield from sorted(found, key=_order)


def _order(change: Change) -> tuple[int, int, str]:
    """The sort key of changes: by kind, then by place, then by name."""
    return ORDER.index(change.kind), (change.after or change.before or NOWHERE).pieces[-1][1], change.name


def _alike(spot: Spot, other: Spot) -> bool:
    """Two names for one thing: of one sort, and with a word in common that tells something. A bit is easily given to something else."""
    if _sort(spot) != _sort(other):
        return False
    return _sort(spot) not in ("bool", "uint", "enum") or bool(_words(spot) & _words(other)) or spot.meaning == other.meaning != _sort(spot)


def _sort(spot: Spot) -> str:
    return "enum" if " | " in spot.meaning else spot.meaning.split()[0]


def _words(spot: Spot) -> set[str]:
    return {word for word in spot.name.rpartition(".")[2].split("_") if len(word) > 2} - COMMON


# -- JSON ----------------------------------------------------------------------------------------------------------


def difference_json(difference: Difference) -> dict[str, Any]:
    if difference.before is None or difference.after is None:
        only = difference.after or difference.before
        return {"change": difference.kind, "kind": only.kind if only else ""}
    return {
        "change": difference.kind,
        "kind": difference.after.kind,
        **{what: [old, new] for what, old, new in difference.frame},
        "fields": [_change_json(change) for change in difference.changes],
    }


def _change_json(change: Change) -> dict[str, Any]:
    found: dict[str, Any] = {"change": change.kind, "name": change.name}
    if change.kind == "renamed" and change.before:
        found["was"] = change.before.name
    for side, spot in (("from", change.before), ("to", change.after)):
        if spot:
            found[side] = {"bits": [list(piece) for piece in spot.pieces], "meaning": spot.meaning, "source": spot.source}
    return found
