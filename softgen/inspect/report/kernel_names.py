"""Kernel names: executed machine code is matched with the kernels of OpenCL binaries.

Drivers submit machine code without names. Binaries have them: files from the user, and those that Intel's OpenCL runtime writes
into its cache while it compiles (`softgen run` gives it a folder). A kernel matches if the code begins with the binary's, apart from bytes
that the runtime relocates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from softgen.errors import SoftgenError
from softgen.eu import binary
from softgen.eu.interpreter import KernelProgram

TITLE = re.compile("kernel 0x[0-9a-f]+")
LONGEST = 1 << 20  # bytes of a kernel that are compared
LARGEST = 1 << 28  # bytes of a binary
INDEXED = 16  # first bytes, which no relocation changes: one native instruction


class KernelNames:
    """Names of the kernels in some files and folders, read when a name is first asked for. What is no binary is skipped."""

    def __init__(self, places: Iterable[str | Path] = ()) -> None:
        self.places = [Path(place) for place in places]

    @cached_property
    def _kernels(self) -> dict[tuple[float, bytes], list[binary.BinaryKernel]]:
        found: dict[tuple[float, bytes], list[binary.BinaryKernel]] = {}
        for file in self._files():
            for kernel in _read(file):
                if kernel.gen is not None and kernel.code:
                    found.setdefault((kernel.gen, kernel.code[:INDEXED]), []).append(kernel)
        return found

    def _files(self) -> Iterator[Path]:
        for place in self.places:
            found = sorted(place.rglob("*")) if place.is_dir() else [place]
            yield from (file for file in found if file.is_file())  # to open a pipe would wait for its other end

    def renamed(self, text: str, programs: Iterable[KernelProgram]) -> str:
        """A message with names of kernels where it has their addresses."""
        if not self.places or not TITLE.search(text):
            return text
        known = {program.title: program for program in programs}

        def name(title: re.Match[str]) -> str:
            program = known.get(title[0])
            found = self.find(program.beginning(LONGEST), program.gen) if program is not None else None
            return f"kernel {found} ({title[0].split()[1]})" if found else title[0]

        return TITLE.sub(name, text)

    def find(self, code: bytes, gen: float) -> str | None:
        """The name of the kernel that code begins with, the longest that matches."""
        matches = [kernel for kernel in self._kernels.get((gen, code[:INDEXED]), ()) if _matches(kernel, code)]
        return max(matches, key=lambda kernel: len(kernel.code)).name if matches else None


def _read(file: Path) -> list[binary.BinaryKernel]:
    try:
        with file.open("rb") as stream:
            if not binary.is_binary(stream.read(8)) or file.stat().st_size > LARGEST:
                return []
        return binary.kernels(file.read_bytes(), str(file))
    except (SoftgenError, OSError):
        return []  # half-written, or an ELF file of another kind


def _matches(kernel: binary.BinaryKernel, code: bytes) -> bool:
    size = len(kernel.code)
    if code[:size] == kernel.code:
        return True
    try:
        relocations = kernel.launch().relocations
    except SoftgenError:
        return False
    ours, theirs = bytearray(kernel.code), bytearray(code[:size])
    for relocation in relocations:
        for copy in (ours, theirs):
            copy[relocation.offset : relocation.offset + relocation.size] = bytes(relocation.size)
    return bool(relocations) and ours == theirs
