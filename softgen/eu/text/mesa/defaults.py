"""What Mesa's dialect leaves unsaid: operands of branches and others that a compiler's habit fills in (`spec/eu/mesa.table`).

Reads   EU_SEND EU_SOURCE_0
"""

from __future__ import annotations

from functools import cache, lru_cache

from softgen.eu.encoding.encode import form
from softgen.eu.encoding.fields import find_page
from softgen.eu.encoding.forms import EXTENDED, BranchForm
from softgen.eu.encoding.operand import operand_fields
from softgen.eu.isa import types
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.opcodes import Opcode
from softgen.eu.text.lexer import Scanner
from softgen.eu.text.mesa.names import DEFAULT_CONVENTION, mesa_words
from softgen.eu.text.mesa.reader import OperandBuilder, read

NOTHING: tuple[str, ...] = ()
NARROW = 4  # bytes: an immediate this long leaves room for the type of a second source


@cache
def implied_operands(gen: float, opcode: str, align16: bool, habit: str) -> tuple[Operand | str, ...] | None:
    """Destination and sources: what goes without saying, '-' for what the text says, '=' for the destination's register. None where the
    text says all."""
    rows = mesa_words(gen).unsaid
    texts = rows.get((habit, opcode, align16)) or rows.get((DEFAULT_CONVENTION, opcode, align16))
    return None if texts is None else tuple(_operand(text, index, gen, align16) for index, text in enumerate(texts))


def _operand(text: str, index: int, gen: float, align16: bool) -> Operand | str:
    if text in ("-", "="):
        return text
    scan = Scanner(text, "eu/mesa.table")
    placer, raw = OperandBuilder(scan, gen, align16), read(scan, gen, "an operand")
    return placer.source(raw) if index else placer.destination(raw)


def absent_type(a: Operand, uip: int | None, habit: str) -> str:
    """The type of the second source that is not there: Mesa's assembler repeats that of an immediate, where nothing else stands."""
    return a.type if habit == DEFAULT_CONVENTION and a.file == "imm" and a.type and uip is None and types.size(a.type) <= NARROW else "ud"


def offsets(row: Opcode, sources: tuple[Operand, ...]) -> tuple[str, ...]:
    """The offsets that an instruction of these sources has."""
    found = form(row)
    if not isinstance(found, BranchForm) or not any(source.file == "imm" for source in sources):
        return NOTHING
    names = found.names if sources[0].file == "imm" else found.names_beside
    return tuple("jip" if name == "offset" else name for name in names)


@lru_cache(maxsize=1 << 12)
def implied_extended(a: Operand, gen: float, align16: bool) -> int | None:
    """The extended descriptor that the region of a send's source means; None on generations without one."""
    page = find_page("EU_SEND", gen)
    if page is None or "extended" not in page:
        return None
    value = page.record(operand_fields("EU_SOURCE_0", gen).write(a, align16)).extended
    return int(value) * EXTENDED


def implies_absolute(gen: float, opcode: str, descriptor: object, habit: str) -> bool:
    """Whether the payload of a send goes by its absolute value without saying."""
    return isinstance(descriptor, Operand) and habit == DEFAULT_CONVENTION and opcode in mesa_words(gen).sets["marked"]


def implied_residue(inst: Instruction, habit: str) -> int:
    """Bits that no field says and that go without saying."""
    found = mesa_words(inst.gen).rest
    bits = found.get((habit, inst.opcode)) or found.get((DEFAULT_CONVENTION, inst.opcode), 0)
    return bits if bits and (inst.compacted if inst.form == "basic" else isinstance(inst.descriptor, int)) else 0
