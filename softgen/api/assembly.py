"""EU assembly: text to machine code and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from softgen.api.html import table
from softgen.bits.generation import device
from softgen.errors import UsageError
from softgen.eu.encoding import program
from softgen.eu.text import dialect

Syntax = Literal["iga", "mesa"]


@dataclass(frozen=True, repr=False)
class ListedInstruction:
    """A disassembled instruction; `decoded` has its operands and controls."""

    offset: int
    size: int  # 8 bytes if compacted, else 16
    text: str
    decoded: Any

    @property
    def opcode(self) -> str:
        return str(self.decoded.opcode)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Instruction({self.offset:#x}: {self.text})"


class Listing(list[ListedInstruction]):
    """Instructions of a piece of machine code; `str()` is text that `assemble` turns into the same bytes."""

    def __init__(self, instructions: list[ListedInstruction], text: str) -> None:
        super().__init__(instructions)
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Listing({len(self)} instructions)"

    def _repr_html_(self) -> str:
        rows = ((f"{line.offset:#06x}", line.size, line.text) for line in self)
        return table(f"{len(self)} instructions", ("offset", "bytes", "instruction"), rows)


def assemble(text: str, gpu: str, syntax: Syntax | None = None, compact: bool = False) -> bytes:
    """Machine code of EU assembly, in IGA's or Mesa's dialect (default: the one the text is in).

    >>> import softgen
    >>> softgen.assemble("mov (8|M0) r2.0<1>:f 1.5:f", "kbl").hex()
    '01006000e83e4020000000000000c03f'
    """
    if not isinstance(text, str):
        raise UsageError(f"assembly is text (str), not {type(text).__name__}")
    return dialect.read(text, device(gpu).generation.number, syntax, compact=compact)


def disassemble(code: bytes, gpu: str, syntax: Syntax | None = None) -> Listing:
    """The instructions of machine code.

    >>> import softgen
    >>> listing = softgen.disassemble(softgen.assemble("add (8|M0) r2.0<1>:d r3.0<8;8,1>:d 7:w", "kbl"), "kbl")
    >>> listing[0].opcode, listing[0].size
    ('add', 16)
    >>> softgen.assemble(str(listing), "kbl") == softgen.assemble("add (8|M0) r2.0<1>:d r3.0<8;8,1>:d 7:w", "kbl")
    True
    """
    if not isinstance(code, bytes | bytearray | memoryview):
        raise UsageError(f"machine code is bytes, not {type(code).__name__}")
    code = bytes(code)
    gen = device(gpu).generation.number
    items = list(program.instructions(code, gen))
    writer = dialect.ListingWriter(dialect.select_dialect(syntax, gen), gen, (inst for _, _, inst in items))
    rows = [ListedInstruction(row.offset, row.size, " ".join(row.text.split()), row.instruction) for row in writer.rows(items)]
    return Listing(rows, dialect.text(code, gen, syntax))
