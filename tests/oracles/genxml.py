"""Reads genxml files into plain positions, imports and exclusions followed. Only what the comparison needs."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FILES = {4.0: "gen40.xml", 4.5: "gen45.xml", 7.0: "gen70.xml", 7.5: "gen75.xml", 8.0: "gen80.xml", 9.0: "gen90.xml", 11.0: "gen110.xml"}
HEADER_BITS = {0: 23, 2: 22, 3: 16}  # command type -> lowest bit that names the command
LENGTH_NAMES = ("DWord Length", "Dword Length", "Length")


@dataclass
class Entry:
    """One instruction, struct or register: its length and the positions of its fields, groups expanded."""

    tag: str
    name: str
    dwords: int | None
    positions: dict[tuple[int, int], str] = field(default_factory=dict)
    open_groups: dict[tuple[int, int, int, int], str] = field(default_factory=dict)  # start, size, high, low
    structs: dict[tuple[int, int], str] = field(default_factory=dict)  # positions that hold another struct -> its name


@cache
def elements(folder: Path, file: str) -> dict[tuple[str, str], ElementTree.Element]:
    found: dict[tuple[str, str], ElementTree.Element] = {}
    root = ElementTree.parse(folder / file).getroot()
    for item in root.iter("import"):
        excluded = {e.attrib["name"] for e in item}
        found.update({k: v for k, v in elements(folder, item.attrib["name"]).items() if k[1] not in excluded})
    for element in root:
        if element.tag in ("instruction", "struct", "register"):
            found[element.tag, element.attrib["name"]] = element
    return found


def bits(element: ElementTree.Element) -> tuple[int, int]:
    high, _, low = element.attrib["bits"].partition(":")
    base = 32 * int(element.attrib.get("dword", 0))
    return base + int(high), base + int(low or high)


def is_header(element: ElementTree.Element, kind: int | None) -> bool:
    """The key and the length of a command are no fields of ours."""
    high, low = bits(element)
    if kind is None or high > 31:
        return False
    return element.attrib.get("name") in LENGTH_NAMES or low >= HEADER_BITS[kind] and "default" in element.attrib


def expand(parent: ElementTree.Element, entry: Entry, base: int, kind: int | None) -> None:
    for element in parent:
        if element.tag == "field" and not is_header(element, kind if base == 0 else None):
            high, low = bits(element)
            entry.positions[base + high, base + low] = element.attrib.get("name", "")
            entry.structs[base + high, base + low] = element.attrib.get("type", "")
        elif element.tag == "group":
            start = base + 32 * int(element.attrib["dword"]) + int(element.attrib.get("offset_bits", 0))
            size, count = int(element.attrib["size"]), int(element.attrib["count"])
            if count == 0:
                for inner in element.iter("field"):
                    entry.open_groups[start, size, *bits(inner)] = inner.attrib.get("type", "")
            for i in range(count):
                expand(element, entry, start + i * size, None)


def entries(folder: Path, gen: float) -> dict[str, Entry]:
    """Everything genxml says of one generation, by name."""
    found = {}
    for (tag, name), element in elements(folder, FILES[gen]).items():
        kind = None
        if tag == "instruction":
            kind = next(int(f.attrib["default"], 0) for f in element if f.tag == "field" and bits(f) == (31, 29))
        entry = Entry(tag, name, int(element.attrib["length"]) if "length" in element.attrib else None)
        expand(element, entry, 0, kind)
        found[name.replace(" ", "_")] = entry
    return found
