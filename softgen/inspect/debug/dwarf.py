"""Line tables of OpenCL binaries: DWARF that the compiler writes with -g, by kernel.

A zebin holds the debug sections of its kernels beside their code; addresses in them are relocated against sections, which is done here
(types 1 and 2: symbol and addend).
"""

from __future__ import annotations

import io
import struct
from typing import Any

ADDRESS = {1: "<Q", 2: "<I"}  # relocation types of zebin: 64 and 32 bits
TEXT = ".text."
NAMELESS = ".cl"  # the end of names of sources that have none


def line_tables(data: bytes) -> dict[str, dict[int, tuple[str, int]]]:
    """For each kernel of an ELF file, the file and line of the instruction at each offset; nothing where there is no debug information."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        file = ELFFile(io.BytesIO(data))
        if file.get_section_by_name(".debug_line") is None:
            return {}
        texts = [(section.name[len(TEXT) :], section["sh_addr"], section["sh_size"]) for section in file.iter_sections()
                 if section.name.startswith(TEXT)]  # fmt: skip
        found: dict[str, dict[int, tuple[str, int]]] = {}
        for unit in ELFFile(io.BytesIO(relocated(file, data))).get_dwarf_info(relocate_dwarf_sections=False).iter_CUs():
            _unit(unit, texts, found)
        return found
    except (ELFError, ValueError, KeyError, IndexError, AttributeError, struct.error, AssertionError):
        return {}  # no line table that can be read: the disassembly remains


def _unit(unit: Any, texts: list[tuple[str, int, int]], found: dict[str, dict[int, tuple[str, int]]]) -> None:
    program = unit.dwarfinfo.line_program_for_CU(unit)
    if program is None:
        return
    found_text = kernel_of(unit, texts)
    if found_text is None:
        return
    kernel, start, size = found_text
    files = program.header["file_entry"]
    first = 0 if program.header["version"] >= 5 else 1
    before: tuple[int, str, int] | None = None
    table = found.setdefault(kernel, {})
    rows: list[tuple[int, str, int]] = []
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        here = (state.address - start, _source_name(files[state.file - first].name.decode("utf-8", "replace"), kernel), state.line)
        if before is not None and before[2]:
            rows.append((before[0], before[1], before[2]))
            _fill(table, before, here[0], size)
        before = None if state.end_sequence else here


def kernel_of(unit: Any, texts: list[tuple[str, int, int]]) -> tuple[str, int, int] | None:
    """The kernel of a unit: name, address and size of its code."""
    functions = {die.attributes["DW_AT_name"].value.decode() for die in unit.iter_DIEs()
                 if die.tag == "DW_TAG_subprogram" and "DW_AT_name" in die.attributes}  # fmt: skip
    named = sorted(text for text in texts if text[0] in functions)
    return named[0] if named else texts[0] if len(texts) == 1 else None


def _source_name(name: str, kernel: str) -> str:
    """The name of a source file. A runtime compiles text that has none, and says `1`; the kernel's name stands for it."""
    return f"{kernel}{NAMELESS}" if name.isdigit() or name == "<stdin>" else name


def _fill(table: dict[int, tuple[str, int]], row: tuple[int, str, int], end: int, size: int) -> None:
    """All offsets of a row that an instruction may have."""
    for offset in range(max(row[0], 0), min(end, size), 8):
        table[offset] = row[1], row[2]


def relocated(file: Any, data: bytes) -> bytes:
    """The file with relocations of its debug sections applied."""
    patched = bytearray(data)
    for section in file.iter_sections():
        if not section.name.startswith(".rela.debug"):
            continue
        target, symbols = file.get_section(section["sh_info"]), file.get_section(section["sh_link"])
        for relocation in section.iter_relocations():
            form = ADDRESS.get(relocation["r_info_type"])
            at = relocation["r_offset"]
            if form is None or at + struct.calcsize(form) > target["sh_size"]:
                continue
            value = symbols.get_symbol(relocation["r_info_sym"])["st_value"] + relocation["r_addend"]
            struct.pack_into(form, patched, target["sh_offset"] + at, value & (1 << 8 * struct.calcsize(form)) - 1)
    return bytes(patched)
