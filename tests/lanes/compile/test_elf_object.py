"""Objects out of the cache: which relocations and sections are accepted."""

from __future__ import annotations

import struct

import pytest

from softgen.errors import SoftgenError
from softgen.lanes.compile import elf_object, jit
from softgen.lanes.compile.elf_object import ALLOCATED, EXECUTABLE, RELOCATION, RELOCATIONS, SECTION, ObjectSection

ADRP, ADD, BRANCH, CALL = 0x90000000, 0x91000000, 0x14000000, 0x94000000
LOAD_8, LOAD_16, LOAD_32, LOAD_64, LOAD_128 = 0x39400000, 0x79400000, 0xB9400000, 0xF9400000, 0x3DC00000
# Relocations of LLVM's AArch64 objects (ELF for the Arm 64-bit architecture, "Static AArch64 relocations") and their instructions.
RELOCATED = {275: [ADRP], 277: [ADD], 278: [LOAD_8], 282: [BRANCH, CALL], 283: [BRANCH, CALL], 284: [LOAD_16], 285: [LOAD_32],
             286: [LOAD_64], 299: [LOAD_128], 311: [ADRP], 312: [LOAD_64]}  # fmt: skip


def relocate(kind: int, instruction: int) -> None:
    """Checks an object's relocation of one instruction."""
    data = struct.pack("<I", instruction) + RELOCATION.pack(0, 1 << 32 | kind, 0)
    code = ObjectSection(0, 1, ALLOCATED, 0, 0, 4, 0, 0, 4, 0)
    table = ObjectSection(0, RELOCATIONS, 0, 0, 4, RELOCATION.size, 0, 0, 8, RELOCATION.size)
    elf_object._check_relocations(data, table, [code, table], [0, 0])


@pytest.mark.parametrize("kind", RELOCATED)
def test_a_relocation_is_of_an_instruction_that_can_have_it(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf_object, "MACHINE", "aarch64")
    for instruction in RELOCATED[kind]:
        relocate(kind, instruction)
    for other in {ADRP, ADD, BRANCH} - set(RELOCATED[kind]):
        with pytest.raises(ValueError, match="a relocation of another instruction"):
            relocate(kind, other)


# Bits that may be anything: registers, sizes of operands, and what the linker does not add to. Other immediates are zero before it.
FREE = {275: 0x1F, 277: 0x803FFFFF, 282: 1 << 31, 283: 1 << 31, 311: 0x1F, 312: 0x3FF,
        **dict.fromkeys((278, 284, 285, 286, 299), 0xC4FFFFFF)}  # fmt: skip


@pytest.mark.parametrize("kind", RELOCATED)
def test_every_other_bit_of_a_relocated_instruction_counts(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf_object, "MACHINE", "aarch64")
    for bit in range(32):
        changed = RELOCATED[kind][0] ^ 1 << bit
        if FREE[kind] >> bit & 1:
            relocate(kind, changed)
        else:
            with pytest.raises(ValueError, match="a relocation of another instruction"):
                relocate(kind, changed)


CODE, NO_MEMORY = ObjectSection(0, 1, ALLOCATED, 0, 0, 8, 0, 0, 4, 0), ObjectSection(0, 1, 0, 0, 0, 8, 0, 0, 4, 0)


@pytest.mark.parametrize("offset, symbol, indices, why", [
    (0, 1, [0, 0], ""), (4, 1, [0, 0], ""), (5, 1, [0, 0], "a relocation outside its section"),
    (0, 1, [0, elf_object.ABSOLUTE], "a relocation outside its section"), (0, 0, [0, elf_object.ABSOLUTE], ""),
    (0, 2, [0, elf_object.ABSOLUTE, 1], ""), (0, 2, [0, 1, 2], "a reference to no memory"), (0, 1, [0, 1, 2], ""),
])  # fmt: skip
def test_a_relocation_refers_to_memory(offset: int, symbol: int, indices: list[int], why: str) -> None:
    """Sections 0 and 1 have memory, section 2 has none. The relocation is of no kind that needs an instruction."""
    table = ObjectSection(0, RELOCATIONS, 0, 0, 8, RELOCATION.size, 0, 0, 8, RELOCATION.size)
    data = bytes(8) + RELOCATION.pack(offset, symbol << 32 | 1, 0)
    if not why:
        elf_object._check_relocations(data, table, [CODE, CODE, NO_MEMORY, table], indices)
        return
    with pytest.raises(ValueError, match=why):
        elf_object._check_relocations(data, table, [CODE, CODE, NO_MEMORY, table], indices)


def test_bindings_of_symbols() -> None:
    """Functions that are global or weak have names for others; no other binding is known."""
    for how, functions in (("", {"f", "g"}), ("weak ", {"f", "g"}), ("internal ", {"g"})):
        ir = f"define {how}i32 @f() {{ ret i32 1 }}\ndefine i32 @g() {{\n %a = call i32 @f()\n ret i32 %a\n}}\n"
        data = jit.compile_object(ir, jit.host())
        assert elf_object.symbols(data) == (set(), functions)
    table = next(section for section in elf_object._sections(data) if section.kind == elf_object.SYMBOLS)
    info = table.offset + table.size - elf_object.SYMBOL.size + 4  # of the last symbol, which is g
    assert data[info] == 0x12
    for binding in (3, 8, 10):
        with pytest.raises(SoftgenError, match="a symbol without a name"):
            elf_object.symbols(data[:info] + bytes([binding << 4 | 2]) + data[info + 1 :])


def test_zeros_that_an_object_may_ask_for() -> None:
    """More would be memory that a damaged length asks for."""
    for size, fine in ((16 << 20, True), ((16 << 20) + 1, False)):
        ir = f"@zeros = global [{size} x i8] zeroinitializer, align 1\ndefine ptr @f() {{ ret ptr @zeros }}\n"
        data = jit.compile_object(ir, jit.host())
        if fine:
            assert elf_object.symbols(data).functions == {"f"}
        else:
            with pytest.raises(SoftgenError, match="a section outside the file"):
                elf_object.symbols(data)


IR = """@note = constant [4 x i8] c"abc\\00", section ".note.softgen"
@table = constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]
define ptr @f() { ret ptr @table }
"""


def changed(data: bytes, name: bytes, field: int, kind: str, value: int) -> bytes:
    """An object with another number in the header of a section."""
    sections = elf_object._sections(data)
    names = sections[struct.unpack_from("<H", data, 0x3E)[0]]
    (index,) = (number for number, section in enumerate(sections) if data[names.offset + section.name :].startswith(name + b"\0"))
    start = struct.unpack_from("<Q", data, 0x28)[0] + index * SECTION.size + field
    return data[:start] + struct.pack(kind, value) + data[start + struct.calcsize(kind) :]


def test_headers_of_sections() -> None:
    """Notes are accepted. The linker joins sections of one name, and expects alignments that are powers of two."""
    data = jit.compile_object(IR, jit.host())
    assert elf_object.symbols(data).functions == {"f"}
    assert elf_object.symbols(changed(data, b".text", 48, "<Q", 64)).functions == {"f"}
    code = next(section for section in elf_object._sections(data) if section.flags & EXECUTABLE)
    wrong = {changed(data, b".text", 48, "<Q", 3): "a section's header", changed(data, b".text", 48, "<Q", 1 << 13): "a section's header",
             changed(data, b".note.softgen", 0, "<I", code.name): "sections of the same name",
             changed(data, b".strtab", 0, "<I", code.name): "sections of the same name"}  # fmt: skip
    for damaged, why in wrong.items():
        with pytest.raises(SoftgenError, match=why):
            elf_object.symbols(damaged)


WRITABLE, NO_BITS, STRINGS, SYMBOLS = 1, 8, 3, 2
SYMBOL_TABLE = {"kind": SYMBOLS, "flags": 0, "size": 48, "offset": 32, "link": 2, "entry": 24}
RELOCATION_TABLE = {**SYMBOL_TABLE, "kind": RELOCATIONS, "link": 1}


@pytest.mark.parametrize("change, why", [
    ({}, ""), ({"kind": 5}, "an unknown section"), ({"kind": 7}, ""), ({"kind": 0x70000001}, ""), ({"kind": 0x6FFF4C03}, ""),
    ({"name": 9}, ""), ({"name": 10}, "an unknown section"), ({"address": 1}, "an unknown section"),
    ({"size": 17}, "a section outside the file"), ({"offset": 65}, "a section outside the file"), ({"offset": 0, "size": 80}, ""),
    ({"kind": NO_BITS, "size": 1 << 24}, ""), ({"kind": NO_BITS, "size": (1 << 24) + 1}, "a section outside the file"),
    ({"alignment": 0}, "a section's header"), ({"alignment": 1}, ""), ({"alignment": 6}, "a section's header"), ({"alignment": 4096}, ""),
    ({"alignment": 8192}, "a section's header"), ({"link": 2}, ""), ({"link": 3}, "a section's header"),
    ({"flags": 0}, ""), ({"flags": 0x30}, ""), ({"flags": ALLOCATED | WRITABLE}, ""), ({"flags": ALLOCATED | EXECUTABLE}, ""),
    ({"flags": WRITABLE}, "a section's flags"), ({"flags": EXECUTABLE}, "a section's flags"), ({"flags": 0x34}, "a section's flags"),
    (SYMBOL_TABLE, ""), ({**SYMBOL_TABLE, "size": 47}, "a table's header"), ({**SYMBOL_TABLE, "entry": 12}, "a table's header"),
    ({**SYMBOL_TABLE, "link": 1}, "a table's header"), (RELOCATION_TABLE, ""), ({**RELOCATION_TABLE, "link": 2}, "a table's header"),
    ({**RELOCATION_TABLE, "entry": 12}, "a table's header"), ({**RELOCATION_TABLE, "size": 47}, "a table's header"),
])  # fmt: skip
def test_a_section_header_that_the_linker_expects(change: dict[str, int], why: str) -> None:
    """In a file of 80 bytes with 10 bytes of names; section 1 has symbols and section 2 their names."""
    section = ObjectSection(3, 1, ALLOCATED, 0, 64, 16, 0, 0, 8, 0)._replace(**change)
    sections = [ObjectSection(*[0] * 10), CODE._replace(kind=SYMBOLS), CODE._replace(kind=STRINGS)]
    if not why:
        elf_object._check_section(section, sections, 10, 80)
        return
    with pytest.raises(ValueError, match=why):
        elf_object._check_section(section, sections, 10, 80)


NONE, FILE, CODE_OF = (0, 0, 0, 0, 0, 0), (1, 4, 0, elf_object.ABSOLUTE, 0, 0), (3, 0x12, 0, 1, 0, 8)


@pytest.mark.parametrize("entries, info, found", [
    ([NONE, CODE_OF], 1, (set(), {"f"})), ([NONE, FILE, CODE_OF], 3, (set(), {"f"})), ([NONE], 1, (set(), set())),
    ([NONE, CODE_OF], 3, "no symbols"), ([CODE_OF], 1, "no symbols"), ([], 0, "no symbols"),
    ([NONE, (5, 0x12, 0, 1, 0, 8)], 1, "a symbol without a name"), ([NONE, (4, 0x12, 0, 1, 0, 8)], 1, (set(), {""})),
    ([NONE, (3, 0x32, 0, 1, 0, 8)], 1, "a symbol without a name"),
    ([NONE, (3, 0x12, 0, 1, 1, 7)], 1, (set(), {"f"})), ([NONE, (3, 0x12, 0, 1, 1, 8)], 1, "a symbol outside its section"),
    ([NONE, (1, 3, 0, elf_object.ABSOLUTE, 0, 0)], 1, "an absolute symbol"),
    ([NONE, (3, 0x10, 0, 0, 9, 9)], 1, ({"f"}, set())), ([NONE, (3, 0x11, 0, 1, 0, 8)], 1, (set(), set())),
    ([NONE, (0, 0x02, 0, 1, 0, 8)], 1, (set(), set())), ([NONE, (3, 0x12, 0, 2, 0, 5)], 1, "a function that is no code"),
])  # fmt: skip
def test_symbols_of_a_table(entries: list[tuple[int, ...]], info: int, found: tuple[set[str], set[str]] | str) -> None:
    """Section 1 has code, section 2 the names a and f, section 3 the table."""
    table, text = b"".join(elf_object.SYMBOL.pack(*entry) for entry in entries), b"\0a\0f\0"
    sections = [ObjectSection(*[0] * 10), CODE._replace(flags=ALLOCATED | EXECUTABLE), CODE._replace(kind=STRINGS, flags=0, size=len(text)),
                ObjectSection(0, SYMBOLS, 0, 0, len(text), len(table), 2, info, 8, 24)]  # fmt: skip
    if isinstance(found, tuple):
        assert elf_object._symbols(text + table, sections) == found
        return
    with pytest.raises(ValueError, match=found):
        elf_object._symbols(text + table, sections)
