"""Forms: how the operands of an instruction stand in its word, both ways. A form's `read` also says which bits its answer stands for,
so that the decoder knows what is left over.

Reads   EU_SEND EU_BRANCH
"""

from __future__ import annotations

from typing import Any, NamedTuple

from softgen.eu.encoding.controls import control_fields
from softgen.eu.encoding.fields import BoundedCache, instruction_page
from softgen.eu.encoding.operand import operand_fields
from softgen.eu.isa import opcodes, types
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.opcodes import Opcode

EXTENDED = 1 << 16  # extended descriptors: what the field of their upper half counts


class DecodedOperands(NamedTuple):
    """What a form says of an instruction, in the order of its fields, and the bits that say it."""

    bits: int
    eot: bool = False
    descriptor: int | Operand | None = None
    extended: int | Operand | None = None
    dst: Operand | None = None
    sources: tuple[Operand, ...] = ()
    jip: int | None = None
    uip: int | None = None
    pop: int | None = None
    absent: str = "ud"
    sfid: int | None = None  # where it is not a control


class BasicForm:
    """One- and two-source instructions."""

    def __init__(self, row: Opcode) -> None:
        self.row = row
        self.controls = control_fields(row)
        self.destination, self.source_0, self.source_1 = (
            operand_fields(name, row.gen) for name in ("EU_DESTINATION", "EU_SOURCE_0", "EU_SOURCE_1")
        )
        self.single = row.sources == 1
        self.macros = opcodes.math_macros(row.gen) if "function" in row.takes else frozenset()
        self.wide_always = "wide" in row.takes

    def read(self, word: int, align16: bool, function: int) -> DecodedOperands:
        shape = self.row.shape
        if "dst" not in shape:
            return DecodedOperands(0)
        macro = function in self.macros
        dst, bits = self.destination.read(word, align16, macro)
        wide = self._reads_wide(word)
        a, found = self.source_0.read(word, align16, macro, wide)
        bits |= found
        if self.single:
            absent, found = self._read_absent(word, a, wide)
            return DecodedOperands(bits | found, dst=dst, sources=(a,), absent=absent)
        b, found = self.source_1.read(word, align16, macro)
        return DecodedOperands(bits | found, dst=dst, sources=(a, b))

    def _reads_wide(self, word: int) -> bool:
        return self.single and self.source_0.is_immediate(word) and (self.wide_always or self.source_0.is_wide(word))

    def _read_absent(self, word: int, a: Operand, wide: bool) -> tuple[str, int]:
        """The type written for the source that is not there: compilers put that of the immediate, or none."""
        if wide and self.source_1.type_bits & self.source_0.wide_bits or not word & self.source_1.type_bits:
            return "ud", 0
        code = self.source_1.page.record(word & self.source_1.type_bits).type
        name = types.names(_position(a), self.row.gen).get(code, "ud")
        return name, self._absent_bits(name, a, wide)

    def _absent_bits(self, name: str, a: Operand, wide: bool) -> int:
        if wide and self.source_1.type_bits & self.source_0.wide_bits:
            return 0
        return self.source_1.page.word({"type": types.codes(_position(a), self.row.gen).get(name, 0)})

    def write(self, inst: Instruction) -> int:
        if "dst" not in self.row.shape:
            return 0
        bits = self.destination.write(_need(inst.dst), inst.align16)
        a = inst.sources[0]
        wide = self.single and a.file == "imm" and (self.wide_always or types.size(a.type) > 4)
        bits |= self.source_0.write(a, inst.align16, wide)
        if self.single:
            return bits | self._absent_bits(inst.absent, a, wide)
        return bits | self.source_1.write(inst.sources[1], inst.align16)


class BranchForm(BasicForm):
    """Branches: offsets stand where the immediate of a source would; the source keeps file and type."""

    def __init__(self, row: Opcode) -> None:
        super().__init__(row)
        self.page = instruction_page("EU_BRANCH", row.gen)
        self.names = tuple(name for name in ("jip", "uip", "pop", "offset") if name in row.shape)
        beside = self.source_0.bits  # with a register in source 0 only what stands clear of it can be read
        self.names_beside = tuple(name for name in self.names if not self.page.mask(name) & beside)
        self.absent_fits = not self.page.mask(*self.names) & self.source_1.type_bits
        self.offsets: dict[tuple[str, ...], BoundedCache[int, tuple[dict[str, Any], int]]] = {
            self.names: BoundedCache(),
            self.names_beside: BoundedCache(),
        }

    def read(self, word: int, align16: bool, function: int) -> DecodedOperands:
        dst, bits = self.destination.read(word, align16)
        if self.names and self.source_0.is_immediate(word):
            a, found = self.source_0.read_head(word)
            absent, more = self._read_absent(word, a, False) if self.absent_fits else ("ud", 0)
            values, offsets = self._offsets(word, self.names)
            return DecodedOperands(bits | found | more | offsets, dst=dst, sources=(a,), absent=absent, **values)
        a, found = self.source_0.read(word, align16)
        if self.names and self.source_1.is_immediate(word):
            b, more = self.source_1.read_head(word)
            values, offsets = self._offsets(word, self.names_beside)
            return DecodedOperands(bits | found | more | offsets, dst=dst, sources=(a, b), **values)
        b, more = self.source_1.read(word, align16)
        return DecodedOperands(bits | found | more, dst=dst, sources=(a, b))

    def _offsets(self, word: int, names: tuple[str, ...]) -> tuple[dict[str, Any], int]:
        bits = word & self.page.mask(*names)
        memory = self.offsets[names]
        found = memory.get(bits)
        if found is None:
            record = self.page.record(bits)
            found = memory.keep(bits, ({"jip" if name == "offset" else name: getattr(record, name) for name in names}, bits))
        return found

    def write(self, inst: Instruction) -> int:
        bits = self.destination.write(_need(inst.dst), inst.align16)
        a = inst.sources[0]
        if self.names and a.file == "imm":
            more = self._absent_bits(inst.absent, a, False) if self.absent_fits else 0
            return bits | self.source_0.write_head(a) | more | self._write_offsets(inst, self.names)
        bits |= self.source_0.write(a, inst.align16)
        if self.names and inst.sources[1].file == "imm":
            return bits | self.source_1.write_head(inst.sources[1]) | self._write_offsets(inst, self.names_beside)
        return bits | self.source_1.write(inst.sources[1], inst.align16)

    def _write_offsets(self, inst: Instruction, names: tuple[str, ...]) -> int:
        return self.page.word({name: getattr(inst, "jip" if name == "offset" else name) or 0 for name in names})


class SendForm(BasicForm):
    """Messages: the second source is a descriptor, or the register that holds one."""

    def __init__(self, row: Opcode) -> None:
        super().__init__(row)
        self.page = instruction_page("EU_SEND", row.gen)
        self.extended_bits = self.page.mask("extended")
        self.bits = self.page.mask_without()
        self.tails: BoundedCache[tuple[int, bool], tuple[dict[str, Any], int]] = BoundedCache()

    def read(self, word: int, align16: bool, function: int) -> DecodedOperands:
        dst, bits = self.destination.read(word, align16)
        a, found = self.source_0.read(word, align16)
        immediate = self.source_1.is_immediate(word)
        if immediate:
            more = word & self.source_1.file_bits
            descriptor = None
        else:
            descriptor, more = self.source_1.read(word & ~self.extended_bits, align16)
        key = word & self.bits, immediate
        values, tail = self.tails.get(key) or self.tails.keep(key, self._tail(*key))
        return DecodedOperands(bits | found | more | tail, dst=dst, sources=(a,), **{"descriptor": descriptor, **values})

    def _tail(self, bits: int, immediate: bool) -> tuple[dict[str, Any], int]:
        record = self.page.record(bits)
        values: dict[str, Any] = {"eot": bool(record.eot)}
        if "extended" in self.page:
            values["extended"] = record.extended * EXTENDED
        if immediate:
            values |= {name: getattr(record, name) for name in ("descriptor", "sfid") if name in self.page}
        return values, self._tail_bits(values)

    def _tail_bits(self, values: dict[str, Any]) -> int:
        given = {name: value for name, value in values.items() if name in self.page}
        if "extended" in given:
            given["extended"] //= EXTENDED
        return self.page.word(given)

    def write(self, inst: Instruction) -> int:
        bits = self.destination.write(_need(inst.dst), inst.align16) | self.source_0.write(inst.sources[0], inst.align16)
        values: dict[str, Any] = {"eot": inst.eot}
        if isinstance(inst.extended, int):
            values["extended"] = inst.extended & ~(EXTENDED - 1)
        if isinstance(inst.descriptor, Operand):
            bits |= self.source_1.write(inst.descriptor, inst.align16)
        else:
            values |= {"descriptor": inst.descriptor or 0, "sfid": inst.sfid}
            bits |= self.source_1.immediate
        return bits | self._tail_bits(values)


def _position(a: Operand) -> str:
    return "immediate" if a.file == "imm" else "register"


def _need(dst: Operand | None) -> Operand:
    return dst if dst is not None else Operand("arf", "ud")
