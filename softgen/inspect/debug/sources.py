"""KernelSources: the lines of kernels. Every kernel has its disassembly; assembly files and OpenCL binaries with line tables give more."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from softgen.errors import SoftgenError, UsageError
from softgen.eu import binary
from softgen.eu.encoding import program
from softgen.eu.interpreter import KernelProgram
from softgen.eu.text import dialect
from softgen.inspect.debug.dwarf import NAMELESS, line_tables
from softgen.inspect.debug.named_variables import NamedVariable, variable_tables
from softgen.threads.statistics import own_code

PLACE = re.compile(r"(.*):(\d+):\d+$", re.DOTALL)
LONGEST_TEXT = 1 << 20  # bytes of a source that is shown
SOURCES = (".asm", ".g4a", ".iga")


@dataclass
class KernelSource:
    """The lines of one kernel: of each offset a line of the disassembly, and where there is one, of a source."""

    name: str  # of the kernel, or its address
    digest: str
    text: str  # disassembly
    listing: dict[int, int]  # offset -> line of the disassembly, from 1
    lines: dict[int, tuple[str, int]] = field(default_factory=dict)  # offset -> file and line of the source
    variables: dict[str, list[NamedVariable]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The name of the disassembly as a source."""
        return f"{self.digest}.asm"

    def line(self, offset: int) -> tuple[str, int]:
        """The line of an instruction, of its source if there is one."""
        if offset in self.lines:
            return self.lines[offset]
        return self.path, self.listing.get(offset, 1)

    def offsets(self, file: str, line: int) -> frozenset[int]:
        """The instructions that begin a line; of a source, the first of each run of them."""
        if Path(file).name == self.path:
            return frozenset(offset for offset, number in self.listing.items() if number == line)
        found, before = set(), None
        for offset in sorted(self.listing):
            here = self.lines.get(offset)
            if here is not None and here[1] == line and _same(here[0], file) and here != before:
                found.add(offset)
            before = here
        return frozenset(found)


def _same(known: str, typed: str) -> bool:
    """Whether a file that a user names is one of a line table."""
    return known == typed or Path(known).name == Path(typed).name and (Path(typed).name == typed or Path(known).name == known
                                                                         or Path(known).resolve() == Path(typed).resolve())  # fmt: skip


@dataclass(frozen=True)
class SourceFile:
    """Code with the lines that it was made from."""

    name: str
    code: bytes
    lines: dict[int, tuple[str, int]]
    variables: dict[str, list[NamedVariable]] = field(default_factory=dict)


class SourceTexts:
    """The texts of source files, as far as they are here."""

    def __init__(self) -> None:
        self._read: dict[str, list[str]] = {}

    def lines(self, file: str) -> list[str]:
        if file not in self._read:
            path = Path(file)
            try:
                whole = path.read_text("utf-8", "replace") if path.is_file() and path.stat().st_size <= LONGEST_TEXT else ""
            except OSError:
                whole = ""
            self._read[file] = whole.splitlines()
        return self._read[file]

    def line(self, file: str, number: int) -> str:
        """A line, without blanks around it; '' where the file is not here."""
        lines = self.lines(file)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""


class KernelSources:
    """The sources of a session's kernels. `files` are assembly files, OpenCL binaries with debug information, and an OpenCL source (.cl)
    for kernels that were compiled from a text without a name; `optional` are files that are passed over where they are none of these."""

    def __init__(self, gen: float, files: Iterable[str] = (), optional: Iterable[str] = ()) -> None:
        self.gen = gen
        self.source_texts = SourceTexts()
        files, optional = list(files), list(optional)
        self.texts = [file for file in files + optional if file.endswith(NAMELESS) and Path(file).is_file()]
        self.files = [known for file in files if file not in self.texts for known in self._read(file)]
        for file in optional:
            with suppress(SoftgenError):
                self.files += self._read(file) if file not in self.texts else []
        self._kernels: dict[str, KernelSource] = {}
        self._programs: dict[KernelProgram, KernelSource] = {}

    def kernel(self, code: KernelProgram) -> KernelSource:
        """The source of a kernel that a thread runs."""
        found = self._programs.get(code)
        if found is None:
            found = self._programs[code] = self.of_code(own_code(code), code.title)
        return found

    def of_code(self, code: bytes, title: str) -> KernelSource:
        digest = hashlib.sha256(code).hexdigest()[:12]
        if digest not in self._kernels:
            fitting = [file for file in self.files if file.code and code[: len(file.code)] == file.code]
            known = max(fitting, key=lambda file: len(file.code), default=None)  # a kernel may begin as a shorter one does
            text, listing = disassembled(code, self.gen)
            made = self._kernels[digest] = KernelSource(known.name if known else title, digest, text, listing)
            if known is not None:
                made.lines, made.variables = known.lines, known.variables
        return self._kernels[digest]

    def offsets(self, code: KernelProgram, file: str, line: int) -> frozenset[int]:
        return self.kernel(code).offsets(file, line)

    def text_of(self, file: str, line: int) -> str:
        """A line of a source, without blanks around it; '' where the file is not here."""
        return self.source_texts.line(file, line)

    def places(self, code: KernelProgram) -> dict[int, str]:
        """FILE:LINE of a kernel's instructions, by offset, as far as there is a source."""
        return {offset: f"{file}:{line}" for offset, (file, line) in self.kernel(code).lines.items()}

    def known(self) -> list[KernelSource]:
        """The kernels of which some thread was stopped."""
        return list(self._kernels.values())

    def _read(self, file: str) -> list[SourceFile]:
        path = Path(file)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"--source {file}: {error.strerror}") from None
        if binary.is_binary(data[:8]):
            tables = {name: self._of_text(name, table) for name, table in line_tables(data).items()}
            named = variable_tables(data)
            return [SourceFile(kernel.name, kernel.code, tables.get(kernel.name, {}), named.get(kernel.name, {}))
                    for kernel in binary.kernels(data, file)]  # fmt: skip
        try:
            return [self._assembly(data.decode(), str(path))]
        except UnicodeDecodeError:
            raise UsageError(f"--source {file}: is neither assembly nor an OpenCL binary") from None

    def _of_text(self, kernel: str, table: dict[int, tuple[str, int]]) -> dict[int, tuple[str, int]]:
        """A line table, with the file that the user names for a text that has no name: the only one, or the only one with the kernel."""
        texts = self.texts if len(self.texts) == 1 else [text for text in self.texts if self._defines(text, kernel)]
        if len(texts) != 1:
            return table
        return {offset: (texts[0] if name == f"{kernel}{NAMELESS}" else name, line) for offset, (name, line) in table.items()}

    def _defines(self, text: str, kernel: str) -> bool:
        """Whether a source has a kernel of a name."""
        return any(re.search(rf"\bvoid\s+{re.escape(kernel)}\s*\(", line) for line in self.source_texts.lines(text))

    def _assembly(self, text: str, name: str) -> SourceFile:
        parsed = dialect.parse(text, self.gen, name=name)
        code = dialect.read(text, self.gen, name=name)
        lines = {}
        for number, (offset, *_) in enumerate(program.instructions(code, self.gen)):
            place = PLACE.match(parsed.place(number)) if number < len(parsed.instructions) else None
            if place is not None:
                lines[offset] = place[1], int(place[2])
        return SourceFile(Path(name).stem, code, lines)


def disassembled(code: bytes, gen: float) -> tuple[str, dict[int, int]]:
    """A kernel as text, and the line of each instruction."""
    items = list(program.instructions(code, gen))
    writer = dialect.ListingWriter(dialect.select_dialect(None, gen), gen, (inst for *_, inst in items))
    lines: list[str] = []
    listing: dict[int, int] = {}
    try:
        for row in writer.rows(items):
            lines += [f"{label}:" for label in row.labels]
            lines.append(f"{row.text.rstrip()}" + (f" // {row.comment}" if row.comment else ""))
            listing[row.offset] = len(lines)
    except SoftgenError as error:
        lines.append(f"// {error}")
    return "\n".join(lines) + "\n", listing
