"""The two command volumes as entries with rows: what `manuals/kbl_fields.json` and `manuals/bdw_fields.json` extracted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.conftest import SHARED

GENERATION = {"KBL": 9.0, "BDW": 8.0}
NUMBER = re.compile(r"(?:([01]+)b|([0-9A-F]+)h|(\d+))$")


class Row(NamedTuple):
    line: int
    name: str
    places: tuple[tuple[int, int], ...]  # (high, low) from bit 0 of the entry; several for an array
    format: str
    values: tuple[int, ...]  # what its enumeration numbers, reserved values left out
    default: int | None = None

    @property
    def reserved(self) -> bool:
        return self.name.lower().startswith(("reserved", "ignore")) or self.format in ("MBZ", "Ignore", "Ignored")


class Entry(NamedTuple):
    manual: str
    line: int
    names: tuple[str, ...]  # as a page may be called
    size: int | None  # bits
    rows: tuple[Row, ...]


def spelled(title: str) -> str:
    """A title as the name of a page."""
    return re.sub(r"[^A-Z0-9]+", "_", title.upper()).strip("_")


def number(text: str | int) -> int | None:
    m = NUMBER.match(str(text).strip())
    return None if not m else int(m[1], 2) if m[1] else int(m[2], 16) if m[2] else int(m[3])


def _values(listed: list[list[str | int]]) -> tuple[int, ...]:
    named = ((number(value), name) for value, name in listed if not re.match(r"\W*reserved", str(name), re.IGNORECASE))
    return tuple(value for value, _ in named if value is not None)


@cache
def entries(manual: str) -> tuple[Entry, ...]:
    text = (SHARED / "manuals" / f"{manual.lower()}_fields.json").read_text("utf-8")
    return tuple((_kaby_lake if manual == "KBL" else _broadwell)(load) for load in json.loads(text))


def _kaby_lake(entry: dict[str, object]) -> Entry:
    rows = []
    for row in entry["fields"]:  # type: ignore[attr-defined]
        places = tuple((high, low) for low, high in row["abs"])
        rows.append(Row(row["line"], row["name"] or "", places, (row["format"] or [""])[0], _values(row["enum"])))
    names = tuple(spelled(str(title)) for title in (entry["mn"], entry["name"]) if title)
    return Entry("KBL", entry["start"], names, entry["size"], tuple(rows))  # type: ignore[arg-type]


def _broadwell(entry: dict[str, object]) -> Entry:
    """The repaired rows; the first dword of a command holds its key too."""
    rows = []
    for row in entry["fixed"]:  # type: ignore[attr-defined]
        base = 32 * (row["dwn"] or 0)
        place, default = (base + row["hi"], base + row["lo"]), number((row["default"] or " ").split(" ")[0])
        rows.append(Row(row["line"], row["name"] or "", (place,), row["format"] or "", _values(row["enum"]), default))
    return Entry("BDW", entry["start"], tuple(spelled(t).replace("_", "") for t in entry["titles"]), None, tuple(rows))  # type: ignore


def parts(row: Row, known: dict[str, Entry]) -> Iterator[tuple[int, int]]:
    """The places of a row; where its format is another structure of the manual, the places that has."""
    other = None if row.format.startswith("GraphicsAddress") else known.get(spelled(row.format))
    for high, low in row.places:
        if other is None or not other.size or high - low + 1 < other.size:
            yield high, low
            continue
        for inner in other.rows:
            if not inner.reserved:
                yield from ((low + h, low + at) for h, at in parts(inner, known))
