"""Restrictions on types, modifiers, accumulators, flags and controls. Each function tells whether an instruction violates its row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from softgen.eu.check.region import is_named, is_null, is_scalar, only, size_of, spans, starts, wide, written
from softgen.eu.isa import opcodes, registers, types
from softgen.eu.isa.instruction import VXH, Instruction, Operand

LOGIC = frozenset({"and", "or", "xor", "not"})
COMPARES = frozenset({"cmp", "cmpn"})
NO_ACCUMULATOR = frozenset({"bfrev", "bfe", "bfi1", "bfi2", "cbit", "fbh", "fbl"})
DOTS = frozenset({"dp2", "dp3", "dp4", "dph"})
ALIGN1_PREDICATES, ALIGN16_PREDICATES = 13, 7  # the last that are not reserved
CONDITIONS = frozenset({*range(7), 8, 9})
UNSWIZZLED = 0b11100100  # xyzw
ORDERED = frozenset({4, 5})  # .ge and .l


def computes(inst: Instruction) -> bool:
    return inst.form in ("basic", "three_source", "three_source_align1") and inst.dst is not None


def takes(inst: Instruction, what: str) -> bool:
    row = opcodes.opcode(inst.opcode, inst.gen)
    return row is None or what in row.takes


def accumulators(inst: Instruction, among: Iterable[Operand | None]) -> list[Operand]:
    return [operand for operand in among if operand is not None and is_named(operand, "acc", inst.gen)]


def is_division(inst: Instruction) -> bool:
    """Whether a math instruction is an integer division."""
    function = opcodes.math_function(inst.function, inst.gen)
    return function is not None and function.integer


def is_dword(operand: Operand) -> bool:
    return operand.type in ("d", "ud")


# -- types and modifiers -------------------------------------------------------------------------------------------


def legal_types(inst: Instruction) -> bool:
    """Types are compared by kind: compilers mix the sizes and signs that the table lists."""
    row = opcodes.opcode(inst.opcode, inst.gen)
    if row is None or not computes(inst) or inst.dst is None or inst.dst.special is not None:
        return False
    to = None if is_null(inst.dst) else _kind(inst.dst.type)
    given = {_kind(source.type) for source in inst.sources if not is_null(source)}
    known = _kinds(row)
    return not all(any(pair[1] == kind and to in (None, pair[0]) for pair in known) for kind in given)


@cache
def _kinds(row: opcodes.Opcode) -> frozenset[tuple[str, str]]:
    """The legal pairs of destination kind and source kind."""
    return frozenset((_kind(a), _kind(b)) for to, sources in row.legal for a in to for b in sources)


def _kind(name: str) -> str:
    found = types.type_of(name)
    if found is None or found.float:
        return "f" if name == "vf" else name
    return "long" if found.size == 8 else "integer"


def half_bytes(inst: Instruction) -> bool:
    return _converts(inst, "hf", ("b", "ub"))


def _converts(inst: Instruction, a: str, others: tuple[str, ...]) -> bool:
    """Whether an instruction converts between a type and others, in either direction."""
    if inst.form != "basic" or inst.dst is None or is_null(inst.dst):
        return False
    read = {source.type for source in inst.sources}
    return a in read and inst.dst.type in others or inst.dst.type == a and bool(read & set(others))


def half_pitch(inst: Instruction) -> bool:
    integer = any(source.type in ("w", "uw", "d", "ud") and not is_null(source) for source in inst.sources)
    if inst.form != "basic" or inst.align16 or inst.dst is None or inst.dst.type != "hf" or not integer or inst.exec_size == 1:
        return False
    return inst.dst.horizontal * 2 != 4 or inst.dst.sub % 4 != 0


def reserved_bits(inst: Instruction) -> bool:
    """Sends are exempt: they ignore most of their second source, and assemblers differ in what they encode there."""
    return bool(inst.residue) and inst.form not in ("send", "sends") and not type_exists(inst)


def last_immediate(inst: Instruction) -> bool:
    return inst.form == "basic" and any(source.file == "imm" for source in inst.sources[:-1])


def no_quadwords(inst: Instruction) -> bool:
    return any(operand is not None and types.size(operand.type) == 8 for operand in (inst.dst, *inst.sources))


def type_exists(inst: Instruction) -> bool:
    return computes(inst) and any(not operand.type for operand in (inst.dst, *inst.sources) if operand is not None)


def predicate_taken(inst: Instruction) -> bool:
    return bool(inst.predicate) and not takes(inst, "predicate")


def condition_taken(inst: Instruction) -> bool:
    return bool(inst.condition) and not takes(inst, "condition")


def saturate_taken(inst: Instruction) -> bool:
    return inst.saturate and not takes(inst, "saturate")


def modifiers_taken(inst: Instruction) -> bool:
    return computes(inst) and not takes(inst, "modifiers") and any(source.negate or source.absolute for source in inst.sources)


@only(*LOGIC)
def logic_absolute(inst: Instruction) -> bool:
    return any(source.absolute for source in inst.sources)


@only("sel")
def select_one(inst: Instruction) -> bool:
    return bool(inst.predicate) == bool(inst.condition)


@only("sel")
def select_width(inst: Instruction) -> bool:
    return inst.exec_size == 32


@only(*COMPARES)
def compare_condition(inst: Instruction) -> bool:
    return not inst.condition


@only("cmpn")
def compare_n_condition(inst: Instruction) -> bool:
    return bool(inst.condition) and inst.condition not in ORDERED


@only("mul")
def multiply_order(inst: Instruction) -> bool:
    first, second = inst.sources
    return is_dword(second) and types.size(first.type) < types.size(second.type)


@only("mul")
def multiply_saturate(inst: Instruction) -> bool:
    return all(map(is_dword, inst.sources)) and (inst.saturate or bool(inst.condition))


@only("math")
def math_function(inst: Instruction) -> bool:
    return opcodes.math_function(inst.function, inst.gen) is None


@only("math")
def math_direct(inst: Instruction) -> bool:
    return any(operand is not None and operand.indirect for operand in (inst.dst, *inst.sources))


@only("math")
def math_destination(inst: Instruction) -> bool:
    return inst.dst is not None and inst.dst.file != "grf" and not is_null(inst.dst)


@only("math")
def divide_modifiers(inst: Instruction) -> bool:
    return is_division(inst) and any(source.negate or source.absolute for source in inst.sources)


@only("math")
def divide_width(inst: Instruction) -> bool:
    return is_division(inst) and inst.exec_size > 8


@only("math")
def math_second(inst: Instruction) -> bool:
    found = opcodes.math_function(inst.function, inst.gen)
    return found is not None and found.sources == 1 and not is_null(inst.sources[1])


@only("math")
def math_stride(inst: Instruction) -> bool:
    if inst.align16 or inst.dst is None or is_null(inst.dst):
        return False
    regions = [source for source in inst.sources if source.file == "grf" and not is_scalar(source)]
    return any(source.horizontal != inst.dst.horizontal or source.vertical != source.width * source.horizontal for source in regions)


@only(*DOTS)
def dot_width(inst: Instruction) -> bool:
    return inst.exec_size < 4


@only("line", "pln")
def line_region(inst: Instruction) -> bool:
    first = inst.sources[0]
    return not inst.align16 and (not is_scalar(first) or first.sub % 16 != 0)


@only("line", "pln")
def line_width(inst: Instruction) -> bool:
    return inst.exec_size not in (8, 16)


@only("three_source")
def three_source_width(inst: Instruction) -> bool:
    return inst.exec_size > 8


@only("three_source_align1")
def three_source_immediate(inst: Instruction) -> bool:
    kinds = [source.file == "imm" for source in inst.sources]
    return sum(kinds) > (0 if inst.opcode in ("bfe", "bfi2", "csel") else 1)


# -- accumulators --------------------------------------------------------------------------------------------------


def accumulator_bytes(inst: Instruction) -> bool:
    return any(types.size(operand.type) == 1 for operand in accumulators(inst, (inst.dst, *inst.sources)))


def accumulator_offset(inst: Instruction) -> bool:
    return any(operand.sub for operand in accumulators(inst, (inst.dst, *inst.sources)))


def accumulator_second(inst: Instruction) -> bool:
    return bool(accumulators(inst, inst.sources[1:]))


def accumulator_same(inst: Instruction) -> bool:
    read, write = accumulators(inst, inst.sources), accumulators(inst, (inst.dst,))
    return bool(read and write) and read[0].number != write[0].number


@only("mul")
def accumulator_multiply(inst: Instruction) -> bool:
    return bool(accumulators(inst, inst.sources))


@only(*COMPARES)
def accumulator_compare(inst: Instruction) -> bool:
    return bool(accumulators(inst, (inst.dst,)))


@only("addc", "subb")
def accumulator_carry(inst: Instruction) -> bool:
    return (not inst.acc_write or bool(accumulators(inst, (inst.dst,))))


@only(*NO_ACCUMULATOR)
def accumulator_none(inst: Instruction) -> bool:
    return (inst.acc_write or bool(accumulators(inst, (inst.dst, *inst.sources))))


@only(*LOGIC)
def accumulator_logic(inst: Instruction) -> bool:
    return any(source.negate or source.absolute for source in accumulators(inst, inst.sources))


def accumulator_width(inst: Instruction) -> bool:
    named = accumulators(inst, (inst.dst, *inst.sources)) if computes(inst) else []
    return inst.exec_size > 8 and any(is_dword(operand) for operand in named)


def accumulator_swizzle(inst: Instruction) -> bool:
    return inst.align16 and any(source.swizzle not in (None, UNSWIZZLED) for source in accumulators(inst, inst.sources))


def accumulator_region(inst: Instruction) -> bool:
    dst = wide(inst)
    if dst is None:
        return False
    steps = [begin - dst.sub for begin in written(inst)]
    return any([begin - source.sub for begin in starts(inst, source)] != steps for source in accumulators(inst, inst.sources))


@only(*DOTS, "line", "pln")
def accumulator_dot(inst: Instruction) -> bool:
    return bool(accumulators(inst, inst.sources))


# -- other registers, flags and controls ---------------------------------------------------------------------------


def architecture_second(inst: Instruction) -> bool:
    later = inst.sources[1:] if inst.form == "basic" and inst.opcode not in ("wait", "do") else ()
    return any(source.file == "arf" and not is_null(source) and not is_named(source, "acc", inst.gen) for source in later)


def message_source(inst: Instruction) -> bool:
    return inst.form == "basic" and any(source.file == "mrf" for source in inst.sources)


def control_switch(inst: Instruction) -> bool:
    switch = inst.thread_control & 2
    return not switch and any(is_named(operand, "cr", inst.gen) for operand in (inst.dst, *inst.sources))


def control_switch_written(inst: Instruction) -> bool:
    return not inst.thread_control & 2 and is_named(inst.dst, "cr", inst.gen)


@only(*COMPARES)
def compare_null_switch(inst: Instruction) -> bool:
    return is_null(inst.dst) and not inst.thread_control & 2


def architecture_span(inst: Instruction) -> bool:
    if inst.form != "basic" or inst.align16:
        return False
    for source in inst.sources:
        if source.file != "arf" or source.indirect or is_null(source) or source.vertical == VXH:
            continue
        apart = any(is_named(source, name, inst.gen) for name in ("acc", "fc"))  # accumulators span registers; fc is a file of its own
        if not apart and spans(starts(inst, source), size_of(inst, source)) > 1:
            return True
    return False


def address_range(inst: Instruction) -> bool:
    """Direct accesses to a0 must not exceed it."""
    a = registers.register("a", inst.gen)
    if a is None or inst.form != "basic" or inst.align16:
        return False
    for operand in (inst.dst, *inst.sources):
        if operand is not None and is_named(operand, "a", inst.gen):
            begins = written(inst) if operand is inst.dst else starts(inst, operand)
            if max(begins) + size_of(inst, operand) > a.size:
                return True
    return False


def predicate_code(inst: Instruction) -> bool:
    return inst.predicate > (ALIGN16_PREDICATES if inst.align16 and inst.form == "basic" else ALIGN1_PREDICATES)


def condition_code(inst: Instruction) -> bool:
    return inst.form not in ("send", "sends") and inst.opcode != "math" and inst.condition not in CONDITIONS


def quarter_half(inst: Instruction) -> bool:
    return inst.exec_size == 16 and bool(inst.quarter & 1)


def quarter_all(inst: Instruction) -> bool:
    return inst.exec_size == 32 and bool(inst.quarter)


def nibble_width(inst: Instruction) -> bool:
    return bool(inst.nibble) and inst.exec_size > 4


def compression_code(inst: Instruction) -> bool:
    return inst.quarter == 3


@only("jmpi")
def jump_width(inst: Instruction) -> bool:
    return inst.exec_size != 1


@only("jmpi")
def jump_mask(inst: Instruction) -> bool:
    return not inst.no_mask


@only("call")
def call_destination(inst: Instruction) -> bool:
    return inst.dst is not None and not is_null(inst.dst) and (inst.dst.sub % 8 != 0 or not is_dword(inst.dst))


@only("csel")
def select_condition(inst: Instruction) -> bool:
    return not inst.condition


@only("brc", "brd")
def branch_switch(inst: Instruction) -> bool:
    return bool(inst.thread_control & 2)


@only("wait")
def wait_notification(inst: Instruction) -> bool:
    return not is_named(inst.dst, "n", inst.gen)
