"""Context images against the Ice Lake volume: a saved register stands on the line it cites, a saved command has the length printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from softgen.bits import registers
from softgen.bits.catalogue import catalogue, find_command
from softgen.bits.layout import BitField, Layout
from tests.conftest import SHARED, needs_shared

GEN = 11.0
PREFIXES = ("CONTEXT_", "POSH_CONTEXT_", "POWER_CONTEXT_")
OFFSET = re.compile(r"\b(?:0x)?([0-9A-Fa-f]{3,5})h?(?:O\b)?(?=[^0-9A-Fa-f_]|$)")
LOAD = re.compile(r"1100_(10|00)([0-9A-F]{2})\b")
UNREADABLE = {  # line -> the offset that the scan spoilt; 2446: the position-only unit has its own at 0x16e00
    1923: 0x21C0, 1951: 0x20C0, 2088: 0x84C0, 2096: 0x84E0, 2177: 0x4DE0, 2178: 0x4DE4, 2179: 0x4DE8, 2180: 0x4DEC, 2181: 0x4DF0,
    2222: 0xB0A4, 2260: 0x6B1C, 2310: 0xE4B0, 2340: 0xE18C, 2376: 0x181C0, 2385: 0x180C0, 2446: 0x8300,
}  # fmt: skip

pytestmark = needs_shared("manuals")


@cache
def text() -> list[str]:
    (file,) = (SHARED / "manuals").glob("004_*.txt")
    return ["", *file.read_text("utf-8", "replace").split("\n")]


def images() -> Iterator[Layout]:
    for name in catalogue().sections:
        found = catalogue().get(name, GEN) if name.startswith(PREFIXES) and not name.startswith("CONTEXT_REGISTER") else None
        if found and found.source.startswith("ICL"):
            yield found


def line_of(source: str) -> int:
    return int(source.split()[1].partition("-")[0])


def saved(image: Layout) -> Iterator[tuple[str, int, int]]:
    """(name, line, registers of 32 bits) of each row that saves registers."""
    for field in image.fields:
        if field.type.target.startswith("CONTEXT_REGISTER"):
            yield field.name, line_of(field.source), field.width // 64
    for group in image.groups:
        if group.of.startswith("CONTEXT_REGISTER"):
            yield group.name, line_of(group.source), group.size * (group.count or 0) // 64


def label(name: str, engine: str, offset: int) -> str:
    """The register at an offset as pages of contexts call it."""
    there = registers.place(offset, GEN, engine)
    assert there, f"{name}: no page has a register at {offset:#x}"
    row = f"_{there.number}" if there.layout.count > 1 else ""
    return f"{there.layout.name}{row}{'_upper' if there.dword else ''}".lower()


@pytest.mark.parametrize("image", tuple(images()), ids=lambda item: item.name)
def test_saved_registers_are_those_of_the_cited_lines(image: Layout) -> None:
    engine = "position_only" if image.name.startswith("POSH") or image.name.endswith("POSITION_ONLY") else "render"
    for name, line, _ in saved(image):
        if name.startswith(("dummy", "unnamed")):
            continue
        found = [UNREADABLE[line]] if line in UNREADABLE else [int(digits, 16) for digits in OFFSET.findall(text()[line])]
        known = (offset for offset in found if registers.place(offset, GEN, engine))
        names = {spelling for offset in known for spelling in spellings(label(name, engine, offset))}
        assert name in names, f"{image.name}.{name}: ICL {line} is {text()[line]!r}, {sorted(names)}"


def spellings(name: str) -> set[str]:
    """A row of registers has the name without a number; a ring's control is saved twice in a power context."""
    return {name, name.removesuffix("_0"), f"{name}_original"}


@pytest.mark.parametrize("image", tuple(images()), ids=lambda item: item.name)
def test_saved_commands_have_their_length(image: Layout) -> None:
    for field, _ in image.walk():
        command = catalogue().get(field.type.target, GEN) if field.type.name == "struct" else None
        if command and command.kind == "command":
            assert field.width == 32 * command.dwords or command.variable, f"{image.name}.{field.name}"


def loads(image: Layout) -> list[BitField]:
    return [field for field in image.fields if field.name.startswith("load_")]


@pytest.mark.behaviour("ICL-CTX-12", shows="layout")
@pytest.mark.parametrize("image", tuple(images()), ids=lambda item: item.name)
def test_a_load_s_header_counts_the_registers_behind_it(image: Layout) -> None:
    """0x1100_10nn: as many registers follow as (nn + 1) / 2; rows the list leaves out make it more than the page has, never fewer."""
    load = catalogue().layout("MI_LOAD_REGISTER_IMM", GEN)
    for load_command in loads(image):
        header = LOAD.search(text()[line_of(load_command.source)])
        if header is None:
            continue  # the scan lost the header
        count = (int(header[2], 16) + 1) // 2
        start, end = load_command.high + 1, load_command.high + 1 + 64 * count
        inside = [other for other in image.fields if start <= other.low < end]
        assert all(other.type.target.startswith("CONTEXT_REGISTER") and other.high < end
                   for other in inside), f"{image.name}.{load_command.name}"
        packed = load.pack(force_posted=header[1] == "10", entry=[{"register_offset": 0x2000, "data_dword": 0}] * count)
        assert packed[0] == int("1100" + header[1] + header[2], 16)


def as_batch(image: Layout) -> tuple[list[int], set[int]]:
    """The unit with the headers of its loads and commands, all else zero, and where those headers stand."""
    dwords, starts = [0] * image.dwords, set()
    for field in image.fields:
        at = field.low // 32
        command = catalogue().get(field.type.target, GEN) if field.type.name == "struct" else None
        header = LOAD.search(text()[line_of(field.source)]) if field.name.startswith("load_") else None
        if header:
            dwords[at] = int("1100" + header[1] + header[2], 16)
        elif command and command.header:
            length = command.header.length
            dwords[at] = command.header.value | (field.width // 32 - command.header.bias << length[1] if length else 0)
        if dwords[at]:
            starts.add(at)
    return dwords, starts


@pytest.mark.behaviour("ICL-CTX-09", shows="layout")
@pytest.mark.parametrize("unit", ["CSEL", "CSFE", "CSBE", "SOL", "GAMWC", "GAMT", "LNCF", "SVG", "SVL_TAIL", "TDL", "WM", "DM", "CSEND"])
def test_an_image_is_a_batch(unit: str) -> None:
    """Read as commands, a unit is no-operations, loads and state commands that end where the next begins; the last one ends the batch."""
    dwords, starts = as_batch(catalogue().layout(f"CONTEXT_{unit}", GEN))
    at, met = 0, set()
    while at < len(dwords):
        command = find_command(dwords[at], GEN, "render")
        assert command, f"{dwords[at]:#x} at {at}"
        met |= {at} if dwords[at] else set()
        at += command.length(dwords[at])
    assert at == len(dwords) and met == starts and starts
    assert unit != "CSEND" or dwords == [0x05000000] + [0] * 127


def test_every_unit_is_here_and_no_line_is_called_unreadable_in_vain() -> None:
    assert len(list(images())) >= 20
    lines = {line for image in images() for _, line, _ in saved(image)}
    known = {line for line in lines if any(registers.place(int(digits, 16), GEN, "render") for digits in OFFSET.findall(text()[line]))}
    assert set(UNREADABLE) <= lines - known


NO_PAGE = {  # offsets the volume names that no page has, and why
    0x23B4: "only in a table of a later generation (ICL 2502)",
    0x23B8: "only in a table of a later generation (ICL 2503)",
    0x4DFC: "the row has lost its name (ICL 2182)",
    0xE000: "a dummy (ICL 2349)",
}


@needs_shared("behaviours/ICL.md")
def test_every_register_the_volume_names_has_a_page() -> None:
    table = (SHARED / "behaviours" / "ICL.md").read_text("utf-8").partition("### 3.1")[2].partition("### 3.2")[0]
    rows = re.findall(r"^\| ([^|]*0x[^|]*)\|", table, re.MULTILINE)
    named = {int(digits, 16) for row in rows for digits in re.findall(r"0x([0-9A-F]{4})\b", row)}
    places = {offset: (registers.place(offset, GEN, "render"), registers.place(offset + 0x16000, GEN, "position_only")) for offset in named}
    lost = {offset for offset, found in places.items() if not any(found)}
    assert len(named) > 100
    assert {hex(item) for item in lost} <= {hex(item) for item in NO_PAGE}
    assert not any(registers.place(offset, GEN, "render") for offset in NO_PAGE), "a page makes a reason idle"
