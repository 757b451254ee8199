"""ELF objects out of the cache, checked before LLVM's linker sees them: it ends the process where some numbers are not as expected.

What LLVM writes for this host is accepted, and everything that refers to something outside the file is refused. That does not make an
object safe: it is code, and a folder that only its user can write to is what it is trusted for (softgen/cache.py).
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

from softgen.errors import SoftgenError

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
IDENT = b"\x7fELF\2\1\1"  # 64 bits, little-endian, version 1
MACHINES = {"x86_64": 62, "aarch64": 183}
MACHINE = os.uname().machine
RELOCATABLE = 1
SYMBOLS, STRINGS, RELOCATIONS, NO_BITS = 2, 3, 4, 8
KINDS = frozenset((1, SYMBOLS, STRINGS, RELOCATIONS, 7, NO_BITS, 0x70000001, 0x6FFF4C03))  # also notes, unwind tables, used addresses
WRITABLE, ALLOCATED, EXECUTABLE = 1, 2, 4
PLACE = WRITABLE | ALLOCATED | EXECUTABLE
LARGEST_ALIGNMENT = 1 << 12
LARGEST_EMPTY = 1 << 24  # bytes of zeros that a file may ask for
ABSOLUTE = 0xFFF1
FUNCTION, FILE_NAME = 2, 4
BINDINGS = (0, 1, 2)


# AArch64 instructions that a relocation may be of (ELF for the Arm 64-bit architecture, table "Static AArch64 relocations"): mask and bits.
ADRP, LOAD_STORE = (0xFFFFFFE0, 0x90000000), (0x3B000000, 0x39000000)
INSTRUCTIONS = {
    "aarch64": {275: ADRP, 311: ADRP, 277: (0x7FC00000, 0x11000000), 282: (0x7FFFFFFF, 0x14000000), 283: (0x7FFFFFFF, 0x14000000),
                312: (0xFFFFFC00, 0xF9400000), **dict.fromkeys((278, 284, 285, 286, 299), LOAD_STORE)},
    "x86_64": {},
}  # fmt: skip


class ObjectSection(NamedTuple):
    """A section's header."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class ElfSymbols(NamedTuple):
    """Names that an object needs, and functions that it defines."""

    undefined: set[str]
    functions: set[str]


def symbols(data: bytes) -> ElfSymbols:
    """The symbols of an object for this host; a SoftgenError where it is none."""
    try:
        return _symbols(data, _sections(data))
    except (struct.error, IndexError, ValueError) as error:
        raise SoftgenError(f"no ELF object: {error}") from None


def _require(fine: bool, what: str) -> None:
    if not fine:
        raise ValueError(what)


def _sections(data: bytes) -> list[ObjectSection]:
    """The section headers, each inside the file."""
    ident, kind, machine, version, _, segments, start, _, header, _, segment_count, size, count, names = HEADER.unpack_from(data)
    _require(ident[:7] == IDENT and (kind, version, segments, segment_count) == (RELOCATABLE, 1, 0, 0), "another kind of file")
    _require(machine == MACHINES.get(MACHINE), f"code for machine {machine}")
    _require((header, size) == (HEADER.size, SECTION.size) and start % 8 == 0 and start + count * size <= len(data), "no section headers")
    found = [ObjectSection(*SECTION.unpack_from(data, start + index * size)) for index in range(count)]
    _require(names < count and found[names].kind == STRINGS and not any(found[0]), "no section names")
    for section in found[1:]:
        _check_section(section, found, found[names].size, len(data))
    _require(all(data[section.offset + section.size - 1] == 0 for section in found if section.kind == STRINGS and section.size),
             "text without an end")  # fmt: skip
    named = dict[bytes, int]()  # the linker joins sections of the same name
    for section in found[1:]:
        start = found[names].offset + section.name
        name = data[start : data.index(b"\0", start)]
        _require(bool(name) and named.setdefault(name, section.flags & PLACE) == section.flags & PLACE, "sections of the same name")
    return found


def _check_section(section: ObjectSection, sections: list[ObjectSection], names: int, size: int) -> None:
    alignment, flags = section.alignment, section.flags
    _require(section.kind in KINDS and section.name < names and not section.address, "an unknown section")
    end, most = (section.size, LARGEST_EMPTY) if section.kind == NO_BITS else (section.offset + section.size, size)
    _require(end <= most, "a section outside the file")
    _require(0 < alignment <= LARGEST_ALIGNMENT and not alignment & alignment - 1 and section.link < len(sections), "a section's header")
    _require(bool(flags & ALLOCATED) or not flags & PLACE, "a section's flags")
    if section.kind in (SYMBOLS, RELOCATIONS):
        entry, linked = (SYMBOL, STRINGS) if section.kind == SYMBOLS else (RELOCATION, SYMBOLS)
        whole = section.entry == entry.size and section.size % entry.size == 0
        _require(whole and sections[section.link].kind == linked, "a table's header")


def _symbols(data: bytes, sections: list[ObjectSection]) -> ElfSymbols:
    (table,) = [section for section in sections if section.kind == SYMBOLS]
    entries = list(SYMBOL.iter_unpack(data[table.offset : table.offset + table.size]))
    _require(bool(entries) and not any(entries[0]) and table.info <= len(entries), "no symbols")
    text = sections[table.link]
    found = ElfSymbols(set(), set())
    for name, info, _, index, value, size in entries[1:]:
        _require(name < text.size and info >> 4 in BINDINGS, "a symbol without a name")
        if index == ABSOLUTE:
            _require(info & 0xF == FILE_NAME, "an absolute symbol")
            continue
        section = sections[index]
        _require(not index or value + size <= section.size, "a symbol outside its section")
        if name and (not index or info & 0xF == FUNCTION):
            _require(not index or bool(section.flags & EXECUTABLE), "a function that is no code")
            start = text.offset + name
            (found.functions if index else found.undefined).add(data[start : data.index(b"\0", start)].decode())
    for section in sections:
        if section.kind == RELOCATIONS:
            _check_relocations(data, section, sections, [entry[3] for entry in entries])
    return found


def _check_relocations(data: bytes, table: ObjectSection, sections: list[ObjectSection], indices: list[int]) -> None:
    """`indices` are the sections of symbols. A relocation refers to memory, and is of an instruction that can have it."""
    section, instructions = sections[table.info], INSTRUCTIONS[MACHINE]
    for offset, info, _ in RELOCATION.iter_unpack(data[table.offset : table.offset + table.size]):
        index = indices[info >> 32]
        _require(offset + 4 <= section.size and index != ABSOLUTE, "a relocation outside its section")
        _require(not index or bool(sections[index].flags & ALLOCATED) or not section.flags & ALLOCATED, "a reference to no memory")
        mask, bits = instructions.get(info & 0xFFFFFFFF, (0, 0))
        if section.kind != NO_BITS:
            _require(struct.unpack_from("<I", data, section.offset + offset)[0] & mask == bits, "a relocation of another instruction")
