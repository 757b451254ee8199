"""Objects out of the cache as whole files: header, section headers, names, symbols and relocations."""

from __future__ import annotations

import platform
import struct
from typing import Any

import pytest

from softgen.errors import SoftgenError
from softgen.lanes.compile import elf_object
from softgen.lanes.compile.elf_object import ElfSymbols

MACHINE = {"x86_64": 62, "aarch64": 183}[platform.machine()]
HEADER = {"ident": b"\x7fELF\2\1\1" + bytes(9), "kind": 1, "machine": MACHINE, "version": 1, "entry": 0, "segments": 0, "start": 0,
          "flags": 0, "header": 64, "segment": 0, "segment_count": 0, "size": 64, "count": 5, "names": 4}  # fmt: skip
NAMES = b"\0.text\0.rela.text\0.symtab\0.strtab\0f\0g\0"
CODE = bytes(12)
SYMBOLS = b"".join(struct.pack("<IBBHQQ", *row) for row in ((0, 0, 0, 0, 0, 0), (34, 0x12, 0, 1, 0, 12), (36, 0x10, 0, 0, 0, 0)))
END = 0x200  # of sections; their headers follow


def relocation(offset: int, symbol: int) -> bytes:
    return struct.pack("<QQq", offset, symbol << 32 | 1, -4)


# Name, kind, flags, address, offset, size, link, info, alignment, size of an entry.
SECTIONS = [[0] * 10, [1, 1, 6, 0, 64, 12, 0, 0, 16, 0], [7, 4, 0, 0, 80, 24, 3, 1, 8, 24], [18, 2, 0, 0, 104, 72, 4, 1, 8, 24],
            [26, 3, 0, 0, 176, len(NAMES), 0, 0, 1, 0]]  # fmt: skip
CONTENTS = {64: CODE, 80: relocation(4, 2), 104: SYMBOLS, 176: NAMES}
FIELDS = ("name", "kind", "flags", "address", "offset", "size", "link", "info", "alignment", "entry")


def made(header: dict[str, Any] | None = None, sections: dict[tuple[int, str], int] | None = None,
         contents: dict[int, bytes] | None = None, cut: int = 0) -> bytes:  # fmt: skip
    """A file with a function f that calls g, with some numbers changed."""
    fields = {**HEADER, "start": END, **(header or {})}
    rows = [list(row) for row in SECTIONS]
    for (number, name), value in (sections or {}).items():
        rows[number][FIELDS.index(name)] = value
    data = bytearray(END)
    data[:64] = struct.pack("<16sHHIQQQIHHHHHH", *fields.values())
    for at, part in {**CONTENTS, **(contents or {})}.items():
        data[at : at + len(part)] = part
    whole = bytes(data) + b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)
    return whole[: len(whole) - cut]


def test_a_file_as_the_linker_expects_it() -> None:
    assert elf_object.symbols(made()) == ElfSymbols({"g"}, {"f"})


@pytest.mark.parametrize("host, machine", [("x86_64", 62), ("aarch64", 183)])
def test_a_file_is_for_the_machine_of_the_host(host: str, machine: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """EM_X86_64 or EM_AARCH64."""
    monkeypatch.setattr(elf_object, "MACHINE", host)
    assert elf_object.symbols(made({"machine": machine})) == ElfSymbols({"g"}, {"f"})
    for other in {0, 61, 62, 63, 182, 183, 184} - {machine}:
        with pytest.raises(SoftgenError, match=f"code for machine {other}$"):
            elf_object.symbols(made({"machine": other}))


@pytest.mark.parametrize("change", [
    {"header": {"ident": b"\x7fELF\2\1\1" + bytes([3] * 9)}}, {"header": {"entry": 0x1234}}, {"header": {"flags": 5}},
    {"header": {"segment": 56}}, {"sections": {(1, "size"): 64 * 5 + END - 64}}, {"sections": {(3, "info"): 3}},
    {"contents": {80: relocation(8, 1)}}, {"sections": {(2, "size"): 0}}, {"sections": {(4, "size"): len(NAMES) + 8}},
    {"sections": {(1, "name"): 3}},
])  # fmt: skip
def test_numbers_that_may_be_others(change: dict[str, Any]) -> None:
    """The system that a file is for, an entry point, flags; a relocation of the last four bytes."""
    assert elf_object.symbols(made(**change)) == ElfSymbols({"g"}, {"f"})


def ident(at: int, value: int) -> dict[str, Any]:
    held = bytearray(HEADER["ident"])  # type: ignore[call-overload]
    held[at] = value
    return {"header": {"ident": bytes(held)}}


@pytest.mark.parametrize("change, why", [
    *((ident(at, value), "another kind of file") for at, value in enumerate((0x7E, 0x46, 0x4D, 0x45, 1, 2, 0))),
    ({"header": {"kind": 2}}, "another kind of file"), ({"header": {"kind": 0}}, "another kind of file"),
    ({"header": {"version": 2}}, "another kind of file"), ({"header": {"segments": 64}}, "another kind of file"),
    ({"header": {"segment_count": 1}}, "another kind of file"), ({"header": {"machine": 3}}, "code for machine 3"),
    ({"header": {"header": 63}}, "no section headers"), ({"header": {"size": 65}}, "no section headers"),
    ({"header": {"start": END + 4}}, "no section headers"), ({"header": {"start": END + 8}}, "no section headers"),
    ({"header": {"count": 6}}, "no section headers"), ({"cut": 1}, "no section headers"),
    ({"header": {"names": 0}}, "no section names"), ({"header": {"names": 5}}, "no section names"),
    ({"header": {"names": 3}}, "no section names"), ({"header": {"count": 1, "names": 0}}, "no section names"),
    ({"header": {"count": 0}}, "no section names"), ({"sections": {(0, "info"): 1}}, "no section names"),
    ({"sections": {(1, "kind"): 6}}, "an unknown section"), ({"sections": {(4, "name"): len(NAMES)}}, "an unknown section"),
    ({"sections": {(1, "size"): 64 * 5 + END - 63}}, "a section outside the file"),
    ({"sections": {(4, "alignment"): 3}}, "a section's header"), ({"sections": {(1, "flags"): 4}}, "a section's flags"),
    ({"sections": {(2, "link"): 4}}, "a table's header"), ({"sections": {(3, "link"): 2}}, "a table's header"),
    ({"sections": {(4, "size"): len(NAMES) - 1}}, "text without an end"),
    ({"contents": {176 + len(NAMES) - 1: b"g"}}, "text without an end"),
    ({"sections": {(1, "name"): 0}}, "sections of the same name"), ({"sections": {(4, "name"): 1}}, "sections of the same name"),
    ({"sections": {(3, "kind"): 1}}, "a table's header"),
    ({"sections": {(1, "kind"): 2, (1, "entry"): 24, (1, "link"): 4, (1, "size"): 24}}, "too many values to unpack"),
    ({"sections": {(3, "info"): 4}}, "no symbols"), ({"sections": {(3, "size"): 0, (3, "info"): 0}}, "no symbols"),
    ({"contents": {104: b"\1"}}, "no symbols"), ({"contents": {80: relocation(9, 1)}}, "a relocation outside its section"),
    ({"contents": {80: relocation(0, 3)}}, "list index out of range"),
    ({"contents": {104 + 24 + 6: struct.pack("<H", 4)}}, "a function that is no code"),
])  # fmt: skip
def test_a_file_with_another_number_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(SoftgenError, match=f"^no ELF object: {why}"):
        elf_object.symbols(made(**change))


@pytest.mark.parametrize("size", [0, 3, 16, 63])
def test_a_file_without_a_whole_header_is_refused(size: int) -> None:
    with pytest.raises(SoftgenError, match="no ELF object: "):
        elf_object.symbols(made()[:size])


def test_every_relocation_is_checked() -> None:
    moved = {(2, "offset"): 0x100, (2, "size"): 48}
    assert elf_object.symbols(made(sections=moved, contents={0x100: relocation(0, 1) + relocation(8, 2)})) == ElfSymbols({"g"}, {"f"})
    with pytest.raises(SoftgenError, match="a relocation outside its section"):
        elf_object.symbols(made(sections=moved, contents={0x100: relocation(0, 1) + relocation(9, 2)}))
