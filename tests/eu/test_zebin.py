"""zebin programs made section by section: what counts as a kernel, where its code ends, and what may be absent."""

from __future__ import annotations

import struct
from typing import NamedTuple

import pytest

from softgen.errors import DecodeError
from softgen.eu import binary
from softgen.eu.binary import zebin

PROGBITS, SYMTAB, STRTAB, NOTE, NOBITS, PATCH_TOKENS = 1, 2, 3, 7, 8, 0xFF000005
FUNCTION, OBJECT, ABSOLUTE = 2, 1, 0xFFF1


class Part(NamedTuple):
    """A section."""

    name: str
    content: bytes = b""
    type: int = PROGBITS


def elf(*parts: Part) -> bytes:
    """A file with these sections, numbered from 1, and their names."""
    names = b"\0" + b"".join(part.name.encode() + b"\0" for part in parts) + b".names\0"
    body, rows, offset = b"", [bytes(64)], 1
    for part in (*parts, Part(".names", names, STRTAB)):
        rows.append(struct.pack("<2I4Q2I2Q", offset, part.type, 0, 0, 64 + len(body), len(part.content), 0, 0, 1, 0))
        body += part.content
        offset += len(part.name) + 1
    head = struct.pack("<4s5B7x2HI3QI6H", b"\x7fELF", 2, 1, 1, 0, 0, 1, 205, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(rows),
    len(rows) - 1)
    return head + body + b"".join(rows)


def symbols(*rows: tuple[int, int, int, int]) -> Part:
    """A symbol table: section, value, size and type of each."""
    return Part(".symtab", b"".join(struct.pack("<I2BH2Q", 0, kind, 0, section, value, size) for section, value, size, kind in rows),
    SYMTAB)


def info(text: str) -> Part:
    return Part(".ze_info", text.encode())


CODE = bytes(range(96))


def test_kernels_are_in_sections_with_a_name_and_contents_of_programs() -> None:
    found = binary.kernels(elf(Part(".text.first", CODE), Part(".data.const", b"data"), Part(".text.second", CODE[:32]),
                               Part(".text.note", CODE, NOTE), Part(".text", CODE), Part("x.text.third", CODE)))  # fmt: skip
    assert [(kernel.name, kernel.code) for kernel in found] == [("first", CODE), ("second", CODE[:32])]
    assert {(kernel.simd, kernel.gen, kernel.container, kernel.member) for kernel in found} == {(0, None, "zebin", "")}


@pytest.mark.parametrize("rows, end", [
    ([(1, 0, 64, FUNCTION)], 64), ([(1, 0, 32, FUNCTION), (1, 32, 48, FUNCTION)], 80), ([(1, 32, 48, FUNCTION), (1, 0, 32, FUNCTION)], 80),
    ([(1, 0, 64, OBJECT)], 96), ([(2, 0, 64, FUNCTION)], 96), ([(1, 16, 0, FUNCTION)], 96), ([(ABSOLUTE, 0, 64, FUNCTION)], 96),
    ([(ABSOLUTE, 0, 9999, FUNCTION)], 96), ([(1, 0, 96, FUNCTION)], 96), ([], 96),
])  # fmt: skip
def test_code_ends_with_the_last_function_of_its_section(rows: list[tuple[int, int, int, int]], end: int) -> None:
    (kernel,) = binary.kernels(elf(Part(".text.k", CODE), Part(".data.const", CODE), symbols(*rows)))
    assert kernel.code == CODE[:end]


def test_a_function_may_not_end_behind_its_section() -> None:
    with pytest.raises(DecodeError, match=r"x: at 0x40: \.text\.k has 96 bytes, but a function ends at 97"):
        binary.kernels(elf(Part(".text.k", CODE), symbols((1, 1, 96, FUNCTION))), "x")


def test_names_of_sections_are_read_up_to_a_limit() -> None:
    name = "k" * (zebin.LONGEST_NAME - len(".text."))
    assert [kernel.name for kernel in binary.kernels(elf(Part(f".text.{name}", CODE)))] == [name] == ["k" * 250]
    assert [kernel.name for kernel in binary.kernels(elf(Part(f".text.{name}more", CODE)))] == [name]


def test_sections_whose_contents_are_not_in_the_file_are_empty() -> None:
    """Of such a section the table gives the size that it takes in memory."""
    raw = bytearray(elf(Part(".text.k", CODE), Part(".data.global", b"", NOBITS),
    info("kernels: [{name: k, execution_env: {simd_size: 8}}]")))
    (table,) = struct.unpack_from("<Q", raw, 40)
    struct.pack_into("<Q", raw, table + 2 * 64 + 32, 1 << 20)
    (kernel,) = binary.kernels(bytes(raw))
    assert kernel.simd == 8 and kernel.launch().global_data == b""


def test_a_kernel_without_information_has_no_launch() -> None:
    (kernel,) = binary.kernels(elf(Part(".text.k", CODE)))
    with pytest.raises(DecodeError, match="k: the file does not describe its arguments"):
        kernel.launch()


def test_information_ends_with_a_nul() -> None:
    (kernel,) = binary.kernels(elf(Part(".text.k", CODE), info("kernels: [{name: k, execution_env: {simd_size: 16}}]\n\0 [ \0")))
    assert kernel.simd == 16


def test_information_is_not_read_where_patch_tokens_describe_the_kernels() -> None:
    tokens = struct.pack("<4s6I", b"CTNI", 1081, 12, 8, 1, 9, 0) + struct.pack("<IQ7I", 0, 0, 4, 0, 16, 0, 0, 0, 16) + b"one\0" + CODE[:16]
    found = binary.kernels(elf(Part("tokens", tokens, PATCH_TOKENS), info("kernels: [")))
    assert [(kernel.name, kernel.code, kernel.simd, kernel.container) for kernel in found] == [("one", CODE[:16], 0, "patch tokens")]


@pytest.mark.parametrize("said, alignment", [("", 1), (", slm_alignment: 0", 1), (", slm_alignment: 1", 1), (", slm_alignment: 64", 64)])
def test_local_memory_is_aligned_to_a_byte_at_least(said: str, alignment: int) -> None:
    argument = f"{{arg_type: arg_bypointer, offset: 0, size: 4, arg_index: 0, addrspace: local{said}}}"
    (kernel,) = binary.kernels(elf(Part(".text.k", CODE), info(f"kernels: [{{name: k, payload_arguments: [{argument}]}}]")))
    assert [(found.kind, found.alignment) for found in kernel.launch().arguments] == [("local", alignment)]
