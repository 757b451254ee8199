"""Archives and ELF files: finds the compiled programs in a file.

The ELF structures are those of pyelftools. Its file reader is not used because it checks no bounds: a section with a wrong size
would give less data, and a compressed one more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from softgen.errors import DecodeError
from softgen.eu.binary import tokens
from softgen.eu.binary.launch import KernelBinary
from softgen.eu.binary.view import View

ARCHIVE, ELF = b"!<arch>\n", b"\x7fELF"
MEMBER = struct.Struct("16s12s6s6s8s10s2s")  # header of an archive member
ELF_HEADER_SIZE = 64


def is_binary(start: bytes) -> bool:
    """Whether a file that begins with these bytes is a compiled program."""
    return start.startswith((ARCHIVE, ELF, tokens.MAGIC))


def kernels(data: bytes, name: str = "binary") -> list[KernelBinary]:
    """Every kernel of a file, in its order."""
    found = list(_programs(View(data, name)))
    if not found:
        raise DecodeError(f"{name}: holds no kernel")
    if sum(len(kernel.code) for kernel in found) > len(data):
        raise DecodeError(f"{name}: its kernels overlap: they are longer than the file")
    return found


def _programs(view: View, member: str = "") -> Iterator[KernelBinary]:
    start = bytes(view.data[:8])
    if start == ARCHIVE and not member:
        for name, content in _members(view):
            yield from _programs(content, name or "-")
    elif start.startswith(tokens.MAGIC):
        yield from tokens.kernels(view, member)
    elif start.startswith(ELF):
        yield from _elf(view, member)
    elif not member:  # an archive also has padding and SPIR-V in it
        raise view.error(0, "is neither a compiled OpenCL program nor an archive of them")


def _members(view: View) -> Iterator[tuple[str, View]]:
    offset, long_names = len(ARCHIVE), b""
    while offset < len(view):
        head = view.part(offset, MEMBER.size, "an archive member's header")
        raw, *_, digits, end = MEMBER.unpack(head.data)
        if end != b"`\n" or not digits.strip().isdigit():
            raise head.error(0, "an archive member's header must end with its size and a mark")
        content = view.part(offset + MEMBER.size, int(digits), "an archive member")
        name = raw.rstrip()
        if name == b"//":
            long_names = bytes(content.data)
        elif name[:1] == b"/" and name[1:].isdigit():
            name = long_names[int(name[1:]) :].split(b"/", 1)[0]
        yield name.rstrip(b"/").decode("utf-8", "replace"), content
        offset += MEMBER.size + len(content) + len(content) % 2


def _elf(view: View, member: str) -> Iterator[KernelBinary]:
    from elftools.elf.structs import ELFStructs  # imported late: only files that are ELF need the library

    from softgen.eu.binary import zebin

    head = view.part(0, ELF_HEADER_SIZE, "the ELF header")
    if bytes(head.data[4:6]) != b"\x02\x01":
        raise view.error(4, "must be ELF of 64 bits, little end first")
    structs = ELFStructs(little_endian=True, elfclass=64)
    structs.create_basic_structs()
    header = structs.Elf_Ehdr.parse(bytes(head.data))
    structs.create_advanced_structs()
    sections = zebin.sections(structs, header, view)
    for section in sections:
        if section.type == zebin.DEVICE_BINARY:
            yield from tokens.kernels(section.content, member)
    yield from zebin.kernels(structs, sections, member)
