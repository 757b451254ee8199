"""One interface to both dialects of assembly text: programs to text, text to programs.

A text may end with `// rest: 0000…`: the bytes after the last whole instruction, in order, as in padded kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from softgen.errors import DecodeError
from softgen.eu.encoding import program
from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.iga import format as iga_format
from softgen.eu.text.iga import names as iga_names
from softgen.eu.text.iga import parse as iga_parse
from softgen.eu.text.mesa import format as mesa_format
from softgen.eu.text.mesa import parse as mesa_parse
from softgen.shared_functions import descriptors

DIALECTS = ("iga", "mesa")
REST = re.compile(r"^[ \t]*//[ \t]*rest:[ \t]*((?:[0-9a-fA-F]{2})+)[ \t]*$", re.MULTILINE)
LOOKS = {"iga": re.compile(r"\(\s*\d+\s*\|\s*M\d+\s*\)"), "mesa": re.compile(r"\{\s*align(?:1|16)\b|^\s*//\s*implied operands:")}


def dialects_of(gen: float) -> tuple[str, ...]:
    """The dialects that cover a generation, the default first."""
    return DIALECTS if iga_names.iga_words(gen).write["condition"] else DIALECTS[1:]


def select_dialect(syntax: str | None, gen: float) -> str:
    """The given dialect, or the generation's default."""
    if syntax is None:
        return dialects_of(gen)[0]
    if syntax not in dialects_of(gen):
        raise DecodeError(f"{syntax} does not cover gen {gen:g}; {' or '.join(dialects_of(gen))} does")
    return syntax


# -- disassembly ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ListingLine:
    """A line of a listing."""

    offset: int  # in the program
    size: int
    instruction: Instruction
    labels: tuple[str, ...]  # before the instruction
    text: str
    comment: str  # a description of the message


class ListingWriter:
    """Writer of one text of several programs: labels are distinct, and parsing the whole text gives the concatenated programs."""

    def __init__(self, syntax: str, gen: float, instructions: Iterable[Instruction] = ()) -> None:
        self.syntax, self.gen = syntax, gen
        self.convention = mesa_format.convention_of(instructions) if syntax == "mesa" else ""
        self.start = self.programs = 0

    def head(self) -> str:
        """The first line of the text, if it needs a pragma."""
        return mesa_format.pragma(self.convention) if self.syntax == "mesa" else ""

    def rows(self, items: Sequence[program.ProgramLine]) -> Iterator[ListingLine]:
        moved = [(offset + self.start, size, inst) for offset, size, inst in items]
        named = self._labels(moved)
        text = self._text(named)
        for offset, size, inst in moved:
            here = (named[offset],) if offset in named else ()
            yield ListingLine(offset - self.start, size, inst, here, text(inst, offset), self._comment(inst))
        self.start += sum(size for _, size, _ in items)
        self.programs += 1

    def end(self, items: Sequence[program.ProgramLine]) -> str:
        """The label after the last instruction, if a branch targets it. To be called before `rows`."""
        moved = [(offset + self.start, size, inst) for offset, size, inst in items]
        return self._labels(moved).get(moved[-1][0] + moved[-1][1], "") if moved else ""

    def _labels(self, items: list[program.ProgramLine]) -> Mapping[int, str]:
        if self.syntax == "iga":
            return iga_format.labels(items)
        return labels.names(items, f"K{self.programs}_LABEL" if self.programs else "LABEL")

    def _text(self, named: Mapping[int, str]) -> Callable[[Instruction, int], str]:
        if self.syntax == "iga":
            return lambda inst, offset: iga_format.text(inst, named, offset)
        return lambda inst, offset: mesa_format.text(inst, named, offset, self.convention)

    def _comment(self, inst: Instruction) -> str:
        """The message's description; Mesa's dialect includes it in the text."""
        if self.syntax == "iga" and isinstance(inst.descriptor, int) and inst.form in ("send", "sends"):
            return descriptors.describe(inst.sfid, inst.descriptor, self.gen)
        return ""


def text(data: bytes, gen: float, syntax: str | None = None) -> str:
    """Disassemble a program; `read` assembles the text to the same bytes."""
    items = list(program.instructions(data, gen))
    writer = ListingWriter(select_dialect(syntax, gen), gen, (inst for _, _, inst in items))
    last = writer.end(items)
    lines = [writer.head()]
    for row in writer.rows(items):
        lines += [f"{name}:\n" for name in row.labels]
        lines.append(f"{row.text}\n")
    return "".join([*lines, f"{last}:\n" if last else "", trailing_line(data[writer.start :])])


def trailing_line(data: bytes) -> str:
    """The line for bytes after the last instruction."""
    return f"// rest: {data.hex()}\n" if data else ""


# -- assembly ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParsedProgram:
    """The result of parsing a text."""

    instructions: list[Instruction]
    rest: bytes
    place: Callable[[int], str]  # number of an instruction -> file, line and column


def detect(text: str, gen: float) -> str:
    """The dialect of a text, by syntax that only one of them has; the default where there is none."""
    known = dialects_of(gen)
    for syntax in (*known, *DIALECTS):
        if LOOKS[syntax].search(text):
            return select_dialect(syntax, gen)
    return known[0]


def parse(text: str, gen: float, syntax: str | None = None, name: str = "text") -> ParsedProgram:
    """Parse a text in the given dialect, or in the one detected."""
    try:
        syntax = select_dialect(syntax, gen) if syntax else detect(text, gen)
    except DecodeError as error:
        raise DecodeError(f"{name}: {error}") from None
    found = REST.search(text)
    behind = bytes.fromhex(found[1]) if found else b""
    if syntax == "iga":
        iga = iga_parse.IgaParser(text, gen, name)
        return ParsedProgram(iga.read(), behind, lambda number: iga.reader.place(iga.starts[number]))
    mesa = mesa_parse.MesaParser(text, gen, name)
    return ParsedProgram(mesa.parse(), behind, lambda number: mesa.scan.place(mesa.instructions[number][1].at))


def read(text: str, gen: float, syntax: str | None = None, name: str = "text", compact: bool = False) -> bytes:
    """Assemble a text. Errors name file, line and column."""
    found = parse(text, gen, syntax, name)
    for number, inst in enumerate(found.instructions):
        if inst.compacted and program.encoded(inst) is None:
            raise DecodeError(f"{found.place(number)}: this {inst.opcode} has no compact form")
    try:
        return program.assemble(found.instructions, compact) + found.rest
    except DecodeError as error:
        raise DecodeError(f"{name}: {error}") from None
