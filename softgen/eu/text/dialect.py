"""The dialects of assembly text behind one door: which cover a generation, programs to text, text to programs.

A text may end with `// rest: 0000…`: bytes behind the last whole instruction, in order. Kernels end so where they are padded.
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
from softgen.shared_functions import message

DIALECTS = ("iga", "mesa")
REST = re.compile(r"^[ \t]*//[ \t]*rest:[ \t]*((?:[0-9a-fA-F]{2})+)[ \t]*$", re.MULTILINE)
LOOKS = {"iga": re.compile(r"\(\s*\d+\s*\|\s*M\d+\s*\)"), "mesa": re.compile(r"\{\s*align(?:1|16)\b|^\s*//\s*unsaid:")}


def dialects_of(gen: float) -> tuple[str, ...]:
    """The dialects that have words for a generation, the usual one first."""
    return DIALECTS if iga_names.iga_words(gen).write["condition"] else DIALECTS[1:]


def select_dialect(syntax: str | None, gen: float) -> str:
    """The dialect asked for, or the usual one."""
    if syntax is None:
        return dialects_of(gen)[0]
    if syntax not in dialects_of(gen):
        raise DecodeError(f"{syntax} has no words for gen {gen:g}; {' or '.join(dialects_of(gen))} has")
    return syntax


# -- to text -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ListingLine:
    """A line of a listing."""

    offset: int  # in the program
    size: int
    instruction: Instruction
    labels: tuple[str, ...]  # that stand before it
    text: str
    comment: str  # what the reader may like to know


class ListingWriter:
    """Programs of one text: labels stay apart, and a reader of the whole text gets the programs one behind the other."""

    def __init__(self, syntax: str, gen: float, instructions: Iterable[Instruction] = ()) -> None:
        self.syntax, self.gen = syntax, gen
        self.habit = mesa_format.convention_of(instructions) if syntax == "mesa" else ""
        self.start = self.programs = 0

    def head(self) -> str:
        """What the text must begin with."""
        return mesa_format.pragma(self.habit) if self.syntax == "mesa" else ""

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
        """The label behind the last instruction, where a branch leads there. To be asked before `rows`."""
        moved = [(offset + self.start, size, inst) for offset, size, inst in items]
        return self._labels(moved).get(moved[-1][0] + moved[-1][1], "") if moved else ""

    def _labels(self, items: list[program.ProgramLine]) -> Mapping[int, str]:
        if self.syntax == "iga":
            return iga_format.labels(items)
        return labels.names(items, f"K{self.programs}_LABEL" if self.programs else "LABEL")

    def _text(self, named: Mapping[int, str]) -> Callable[[Instruction, int], str]:
        if self.syntax == "iga":
            return lambda inst, offset: iga_format.text(inst, named, offset)
        return lambda inst, offset: mesa_format.text(inst, named, offset, self.habit)

    def _comment(self, inst: Instruction) -> str:
        """Mesa's dialect names the message itself."""
        if self.syntax == "iga" and isinstance(inst.descriptor, int) and inst.form in ("send", "sends"):
            return message.describe(inst.sfid, inst.descriptor, self.gen)
        return ""


def text(data: bytes, gen: float, syntax: str | None = None) -> str:
    """A program as text that `read` turns into the same bytes."""
    items = list(program.instructions(data, gen))
    writer = ListingWriter(select_dialect(syntax, gen), gen, (inst for _, _, inst in items))
    last = writer.end(items)
    lines = [writer.head()]
    for row in writer.rows(items):
        lines += [f"{name}:\n" for name in row.labels]
        lines.append(f"{row.text}\n")
    return "".join([*lines, f"{last}:\n" if last else "", trailing_line(data[writer.start :])])


def trailing_line(data: bytes) -> str:
    """The line for bytes behind the last instruction."""
    return f"// rest: {data.hex()}\n" if data else ""


# -- from text -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ParsedProgram:
    instructions: list[Instruction]
    rest: bytes
    place: Callable[[int], str]  # of an instruction by number: file, line and column


def detect(text: str, gen: float) -> str:
    """Which dialect a text is in, by what only one of them writes; the usual one where nothing tells."""
    for syntax in dialects_of(gen):
        if LOOKS[syntax].search(text):
            return syntax
    return dialects_of(gen)[0]


def parse(text: str, gen: float, syntax: str | None = None, name: str = "text") -> ParsedProgram:
    """The program of a text, in the dialect asked for or the one it looks like."""
    syntax = select_dialect(syntax, gen) if syntax else detect(text, gen)
    found = REST.search(text)
    behind = bytes.fromhex(found[1]) if found else b""
    if syntax == "iga":
        iga = iga_parse.IgaParser(text, gen, name)
        return ParsedProgram(iga.read(), behind, lambda number: iga.reader.place(iga.starts[number]))
    mesa = mesa_parse.MesaParser(text, gen, name)
    return ParsedProgram(mesa.parse(), behind, lambda number: mesa.scan.place(mesa.instructions[number][1].at))


def read(text: str, gen: float, syntax: str | None = None, name: str = "text", compact: bool = False) -> bytes:
    """The bytes of a text. Errors say file, line and column."""
    found = parse(text, gen, syntax, name)
    for number, inst in enumerate(found.instructions):
        if inst.compacted and program.encoded(inst) is None:
            raise DecodeError(f"{found.place(number)}: this {inst.opcode} has no compact form")
    try:
        return program.assemble(found.instructions, compact) + found.rest
    except DecodeError as error:
        raise DecodeError(f"{name}: {error}") from None
