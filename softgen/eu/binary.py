"""Compiled OpenCL programs (`ocloc … .bin`): the kernels in them, with name, machine code and SIMD width.

Three containers, told apart by content: a patch-token program ("CTNI"), alone or in a section of an ELF file; zebin, an ELF file with a
`.text.` section for each kernel; `!<arch>`, an archive of the above. Sections are few and read only here, so the ELF format is read by
hand, every offset checked: a file cut short or with bits turned over gives DecodeError with the place, never more code than it has bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from softgen.bits.generation import device
from softgen.errors import DecodeError

ARCHIVE, ELF, PROGRAM = b"!<arch>\n", b"\x7fELF", b"CTNI"
DEVICE_BINARY = 0xFF000005  # section type of a patch-token program
SYMBOLS, PROGBITS, NOTE = 2, 1, 7  # ELF section types
FUNCTION = 2  # ELF symbol type
EXECUTION_ENVIRONMENT = 23  # patch token
TEXT = ".text."
COMPATIBILITY = ".note.intelgt.compat"
INFORMATION = ".ze_info"
PRODUCT = 1  # note type: which GPU it was compiled for

CORES = {11: 8.0, 12: 9.0, 15: 11.0}  # core family of a patch-token program -> generation
PRODUCTS = {16: "bdw", 18: "skl", 19: "kbl", 26: "icl"}  # product family of a zebin -> GPU

HEADER = struct.Struct("<4s6I")  # magic version device pointer_size kernels stepping patch_list_size
KERNEL = struct.Struct("<IQ7I")  # checksum hash name patches kernel_heap general dynamic surface unpadded
TOKEN = struct.Struct("<2I")
ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<2I4Q2I2Q")
SYMBOL = struct.Struct("<IBBHQQ")
NOTE_HEADER = struct.Struct("<3I")
MEMBER = struct.Struct("16s12s6s6s8s10s2s")

NAMED = re.compile(r"-[ ]+name:[ ]*['\"]?([^\s'\"]+)")
WIDTH = re.compile(r"[ ]+simd_size:[ ]*([0-9]{1,3})[ ]*$")


@dataclass(frozen=True)
class BinaryKernel:
    name: str
    code: bytes  # without the padding behind it
    simd: int  # 0: the file does not say
    gen: float | None  # None: compiled for a GPU softgen does not know
    container: str  # "patch tokens" or "zebin"
    member: str = ""  # in an archive: whose


def is_binary(start: bytes) -> bool:
    """Whether a file that begins so is for this reader."""
    return start.startswith((ARCHIVE, ELF, PROGRAM))


def kernels(data: bytes, name: str = "binary") -> list[BinaryKernel]:
    """Every kernel of a file, in its order."""
    found = list(_any(FileView(data, name)))
    if not found:
        raise DecodeError(f"{name}: holds no kernel")
    if sum(len(kernel.code) for kernel in found) > len(data):
        raise DecodeError(f"{name}: its kernels overlap: they are longer than the file")
    return found


class FileView:
    """Bytes of a file with their place in it."""

    def __init__(self, data: bytes | memoryview, name: str, start: int = 0) -> None:
        self.data, self.name, self.start = memoryview(data), name, start

    def __len__(self) -> int:
        return len(self.data)

    def part(self, offset: int, size: int, what: str) -> FileView:
        if offset + size > len(self):
            raise self.wrong(offset, f"{what} of {size:,} bytes runs past the end, {len(self) - min(offset, len(self)):,} bytes on")
        return FileView(self.data[offset : offset + size], self.name, self.start + offset)

    def read(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        return layout.unpack(self.part(offset, layout.size, what).data)

    def text(self) -> str:
        return bytes(self.data).split(b"\0", 1)[0].decode("utf-8", "replace")

    def wrong(self, offset: int, message: str) -> DecodeError:
        return DecodeError(f"{self.name}: at {self.start + offset:#x}: {message}")


def _any(view: FileView, member: str = "") -> Iterator[BinaryKernel]:
    start = bytes(view.data[:8])
    if start == ARCHIVE and not member:
        for name, content in _members(view):
            yield from _any(content, name or "-")
    elif start.startswith(PROGRAM):
        yield from _program(view, member)
    elif start.startswith(ELF):
        yield from _elf(view, member)
    elif not member:  # an archive also has padding and SPIR-V in it
        raise view.wrong(0, "is neither a compiled OpenCL program nor an archive of them")


# -- archives ------------------------------------------------------------------------------------------------------


def _members(view: FileView) -> Iterator[tuple[str, FileView]]:
    offset, long_names = len(ARCHIVE), b""
    while offset < len(view):
        head = view.part(offset, MEMBER.size, "an archive member's header")
        raw, *_, digits, end = MEMBER.unpack(head.data)
        if end != b"`\n" or not digits.strip().isdigit():
            raise head.wrong(0, "an archive member's header must end with its size and a mark")
        content = view.part(offset + MEMBER.size, int(digits), "an archive member")
        name = raw.rstrip()
        if name == b"//":
            long_names = bytes(content.data)
        elif name[:1] == b"/" and name[1:].isdigit():
            name = long_names[int(name[1:]) :].split(b"/", 1)[0]
        yield name.rstrip(b"/").decode("utf-8", "replace"), content
        offset += MEMBER.size + len(content) + len(content) % 2


# -- patch tokens --------------------------------------------------------------------------------------------------


def _program(view: FileView, member: str) -> Iterator[BinaryKernel]:
    _, _, core, _, count, _, patches = view.read(HEADER, 0, "a program's header")
    offset = HEADER.size + len(view.part(HEADER.size, patches, "a program's patch list"))
    for _ in range(count):
        _, _, *sizes, unpadded = view.read(KERNEL, offset, "a kernel's header")
        name_size, patch_size, heap_size, general, dynamic, surface = sizes
        at = offset + KERNEL.size
        name = view.part(at, name_size, "a kernel's name")
        heap = view.part(at + name_size, heap_size, "a kernel's code")
        if unpadded > heap_size:
            raise view.wrong(offset, f"a kernel's code of {unpadded:,} bytes is longer than the {heap_size:,} bytes it stands in")
        skipped = at + name_size + heap_size + general + dynamic + surface
        tokens = view.part(skipped, patch_size, "a kernel's patch list")
        yield BinaryKernel(name.text(), bytes(heap.data[:unpadded]), _width(tokens), CORES.get(core), "patch tokens", member)
        offset = skipped + patch_size


def _width(tokens: FileView) -> int:
    """The largest SIMD width compiled, behind the token's header and three work-group sizes."""
    offset = 0
    while offset < len(tokens):
        token, size = tokens.read(TOKEN, offset, "a patch token")
        if size < TOKEN.size:
            raise tokens.wrong(offset, f"a patch token has {TOKEN.size} bytes at least, not {size}")
        if token == EXECUTION_ENVIRONMENT:
            return tokens.read(struct.Struct("<I"), offset + TOKEN.size + 12, "the execution environment")[0]
        offset += size
    return 0


# -- ELF -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ElfSection:
    index: int
    name: str
    type: int
    content: FileView


def _elf(view: FileView, member: str) -> Iterator[BinaryKernel]:
    ident, _, _, _, _, _, table, _, _, _, _, size, count, names = ELF_HEADER.unpack(view.part(0, ELF_HEADER.size, "the ELF header").data)
    if ident[4:6] != b"\x02\x01":
        raise view.wrong(4, "must be ELF of 64 bits, little end first")
    if count and size != SECTION.size:
        raise view.wrong(58, f"section headers must have {SECTION.size} bytes, not {size}")
    sections = list(_sections(view.part(table, size * count, "the section table"), view, names))
    for section in sections:
        if section.type == DEVICE_BINARY:
            yield from _program(section.content, member)
    yield from _zebin(sections, view, member)


def _sections(table: FileView, view: FileView, names: int) -> Iterator[ElfSection]:
    rows = [table.read(SECTION, offset, "a section header") for offset in range(0, len(table), SECTION.size)]
    if rows and names >= len(rows):
        raise view.wrong(62, f"section {names} is to hold the names, but there are {len(rows)}")
    texts = view.part(rows[names][4], rows[names][5], "the section names") if rows else view
    for index, (name, kind, _, _, start, size, *_) in enumerate(rows):
        wanted = kind in (PROGBITS, SYMBOLS, NOTE) or kind >= DEVICE_BINARY
        content = view.part(start, size, f"section {index}") if wanted else view.part(0, 0, "nothing")
        yield ElfSection(index, FileView(texts.data[name : name + 256], view.name).text(), kind, content)


def _zebin(sections: list[ElfSection], view: FileView, member: str) -> Iterator[BinaryKernel]:
    texts = [section for section in sections if section.name.startswith(TEXT) and section.type == PROGBITS]
    if not texts:
        return
    ends = _ends(sections)
    information = next((section.content for section in sections if section.name == INFORMATION), None)
    widths = _widths(bytes(information.data).decode("utf-8", "replace")) if information else {}
    gen = _generation(sections)
    for section in texts:
        end = ends.get(section.index, len(section.content))
        if end > len(section.content):
            raise section.content.wrong(0, f"{section.name} has {len(section.content):,} bytes, but a function ends at {end:,}")
        name = section.name.removeprefix(TEXT)
        yield BinaryKernel(name, bytes(section.content.data[:end]), widths.get(name, 0), gen, "zebin", member)


def _ends(sections: list[ElfSection]) -> dict[int, int]:
    """Where the last function of a section ends."""
    found: dict[int, int] = {}
    for section in sections:
        if section.type == SYMBOLS:
            for offset in range(0, len(section.content), SYMBOL.size):
                _, info, _, index, value, size = section.content.read(SYMBOL, offset, "a symbol")
                if info & 0xF == FUNCTION and size:
                    found[index] = max(found.get(index, 0), value + size)
    return found


def _widths(text: str) -> dict[str, int]:
    """SIMD widths by kernel, from lines of `.ze_info`; the first name of a list is the kernel's, lists inside have none."""
    found: dict[str, int] = {}
    name = ""
    for line in text.splitlines():
        if named := NAMED.search(line):
            name = named[1]
        elif width := WIDTH.match(line):
            found.setdefault(name, int(width[1]))
    return found


def _generation(sections: list[ElfSection]) -> float | None:
    for section in sections:
        if section.name != COMPATIBILITY:
            continue
        offset, view = 0, section.content
        while offset + NOTE_HEADER.size <= len(view):
            name, size, kind = view.read(NOTE_HEADER, offset, "a note")
            at = offset + NOTE_HEADER.size + (name + 3) // 4 * 4
            if kind == PRODUCT and size == 4:
                product = view.read(struct.Struct("<I"), at, "a note's value")[0]
                return device(PRODUCTS[product]).generation.number if product in PRODUCTS else None
            offset = at + (size + 3) // 4 * 4
    return None
