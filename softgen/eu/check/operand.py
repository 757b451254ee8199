"""Restrictions on types, modifiers, accumulators, flags and controls. Each function says whether an instruction breaks its row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from softgen.eu.check.region import is_named, is_null, is_scalar, only, size_of, spans, starts, written
from softgen.eu.isa import opcodes, registers, types
from softgen.eu.isa.instruction import VXH, Instruction, Operand

EXECUTED = {"v": "w", "uv": "uw", "vf": "f"}  # packed immediates and what their elements are
LOGIC = frozenset({"and", "or", "xor", "not"})
COMPARES = frozenset({"cmp", "cmpn"})
NO_ACCUMULATOR = frozenset({"bfrev", "bfe", "bfi1", "bfi2", "cbit", "fbh", "fbl"})
DOTS = frozenset({"dp2", "dp3", "dp4", "dph"})
DIVISIONS = frozenset({"intdiv", "intmod", "intdivmod"})
ALIGN1_PREDICATES, ALIGN16_PREDICATES = 13, 7  # the last that mean something
CONDITIONS = frozenset({*range(7), 8, 9})
ORDERED = frozenset({4, 5})  # .ge and .l


def computes(one: Instruction) -> bool:
    return one.form in ("basic", "three_source", "three_source_align1") and one.dst is not None


def takes(one: Instruction, what: str) -> bool:
    row = opcodes.opcode(one.opcode, one.gen)
    return row is None or what in row.takes


def accumulators(one: Instruction, among: Iterable[Operand | None]) -> list[Operand]:
    return [operand for operand in among if operand is not None and is_named(operand, "acc", one.gen)]


def function(one: Instruction) -> str:
    found = opcodes.function(one.function, one.gen)
    return found.name if found else ""


def is_dword(operand: Operand) -> bool:
    return operand.type in ("d", "ud")


# -- types and modifiers -------------------------------------------------------------------------------------------


def legal_types(one: Instruction) -> bool:
    """By kind of number: compilers mix the sizes and signs that the table lists apart."""
    row = opcodes.opcode(one.opcode, one.gen)
    if row is None or not row.legal or not computes(one) or one.dst is None or one.dst.special is not None:
        return False
    to = None if is_null(one.dst) else _kind(one.dst.type)
    given = {_kind(EXECUTED.get(source.type, source.type)) for source in one.sources if not is_null(source)}
    known = _kinds(row)
    return not all(any(pair[1] == kind and to in (None, pair[0]) for pair in known) for kind in given)


@cache
def _kinds(row: opcodes.Opcode) -> frozenset[tuple[str, str]]:
    """Which kind of number may become which: destination and source."""
    return frozenset((_kind(a), _kind(b)) for to, sources in row.legal for a in to for b in sources)


def _kind(name: str) -> str:
    found = types.type_of(name)
    return name if found is None or found.float else "long" if found.size == 8 else "integer"


def half_bytes(one: Instruction) -> bool:
    return _converts(one, "hf", ("b", "ub"))


def _converts(one: Instruction, a: str, others: tuple[str, ...]) -> bool:
    """Whether an instruction reads one type and writes another, either way."""
    if one.form != "basic" or one.dst is None or is_null(one.dst):
        return False
    read = {source.type for source in one.sources}
    return a in read and one.dst.type in others or one.dst.type == a and bool(read & set(others))


def half_pitch(one: Instruction) -> bool:
    integer = any(source.type in ("w", "uw", "d", "ud") and not is_null(source) for source in one.sources)
    if one.form != "basic" or one.align16 or one.dst is None or one.dst.type != "hf" or not integer or one.exec_size == 1:
        return False
    return one.dst.horizontal * 2 != 4 or one.dst.sub % 4 != 0


def reserved_bits(one: Instruction) -> bool:
    """Sends leave most of their second source unread, and assemblers differ in what they write there."""
    return bool(one.residue) and one.form not in ("send", "sends") and not type_exists(one)


def last_immediate(one: Instruction) -> bool:
    return one.form == "basic" and any(source.file == "imm" for source in one.sources[:-1])


def no_quadwords(one: Instruction) -> bool:
    return any(operand is not None and types.size(operand.type) == 8 for operand in (one.dst, *one.sources))


def type_exists(one: Instruction) -> bool:
    return computes(one) and any(not operand.type for operand in (one.dst, *one.sources) if operand is not None)


def predicate_taken(one: Instruction) -> bool:
    return bool(one.predicate) and not takes(one, "predicate")


def condition_taken(one: Instruction) -> bool:
    return bool(one.condition) and not takes(one, "condition")


def saturate_taken(one: Instruction) -> bool:
    return one.saturate and not takes(one, "saturate")


def modifiers_taken(one: Instruction) -> bool:
    return computes(one) and not takes(one, "modifiers") and any(source.negate or source.absolute for source in one.sources)


@only(*LOGIC)
def logic_absolute(one: Instruction) -> bool:
    return any(source.absolute for source in one.sources)


@only("sel")
def select_one(one: Instruction) -> bool:
    return bool(one.predicate) == bool(one.condition)


@only("sel")
def select_width(one: Instruction) -> bool:
    return one.exec_size == 32


@only(*COMPARES)
def compare_condition(one: Instruction) -> bool:
    return not one.condition


@only("cmpn")
def compare_n_condition(one: Instruction) -> bool:
    return bool(one.condition) and one.condition not in ORDERED


@only("mul")
def multiply_order(one: Instruction) -> bool:
    if len(one.sources) != 2:
        return False
    first, second = one.sources
    return is_dword(second) and types.size(first.type) < types.size(second.type)


@only("mul")
def multiply_saturate(one: Instruction) -> bool:
    return len(one.sources) == 2 and all(map(is_dword, one.sources)) and (one.saturate or bool(one.condition))


@only("math")
def math_function(one: Instruction) -> bool:
    return opcodes.function(one.function, one.gen) is None


@only("math")
def math_direct(one: Instruction) -> bool:
    return any(operand is not None and operand.indirect for operand in (one.dst, *one.sources))


@only("math")
def math_destination(one: Instruction) -> bool:
    return one.dst is not None and one.dst.file != "grf" and not is_null(one.dst)


@only("math")
def divide_modifiers(one: Instruction) -> bool:
    return function(one) in DIVISIONS and any(source.negate or source.absolute for source in one.sources)


@only("math")
def divide_width(one: Instruction) -> bool:
    return function(one) in DIVISIONS and one.exec_size > 8


@only("math")
def math_second(one: Instruction) -> bool:
    found = opcodes.function(one.function, one.gen)
    return found is not None and found.sources == 1 and len(one.sources) > 1 and not is_null(one.sources[1])


@only("math")
def math_stride(one: Instruction) -> bool:
    if one.align16 or one.dst is None or is_null(one.dst):
        return False
    regions = [source for source in one.sources if source.file == "grf" and not is_scalar(source)]
    return any(source.horizontal != one.dst.horizontal or source.vertical != source.width * source.horizontal for source in regions)


@only(*DOTS)
def dot_width(one: Instruction) -> bool:
    return one.exec_size < 4


@only("line", "pln")
def line_region(one: Instruction) -> bool:
    if one.align16 or not one.sources:
        return False
    return not is_scalar(one.sources[0]) or one.sources[0].sub % 16 != 0


@only("line", "pln")
def line_width(one: Instruction) -> bool:
    return one.exec_size not in (8, 16)


@only("three_source")
def three_source_width(one: Instruction) -> bool:
    return one.exec_size > 8


@only("three_source_align1")
def three_source_immediate(one: Instruction) -> bool:
    kinds = [source.file == "imm" for source in one.sources]
    return (sum(kinds) > 1 or any(kinds) and one.opcode in ("bfe", "bfi2", "csel"))


# -- accumulators --------------------------------------------------------------------------------------------------


def accumulator_bytes(one: Instruction) -> bool:
    return any(types.size(operand.type) == 1 for operand in accumulators(one, (one.dst, *one.sources)))


def accumulator_offset(one: Instruction) -> bool:
    return any(operand.sub for operand in accumulators(one, (one.dst, *one.sources)))


def accumulator_second(one: Instruction) -> bool:
    return bool(accumulators(one, one.sources[1:]))


def accumulator_same(one: Instruction) -> bool:
    read, write = accumulators(one, one.sources), accumulators(one, (one.dst,))
    return bool(read and write) and read[0].number != write[0].number


@only("mul")
def accumulator_multiply(one: Instruction) -> bool:
    return bool(accumulators(one, one.sources))


@only(*COMPARES)
def accumulator_compare(one: Instruction) -> bool:
    return bool(accumulators(one, (one.dst,)))


@only("addc", "subb")
def accumulator_carry(one: Instruction) -> bool:
    return (not one.acc_write or bool(accumulators(one, (one.dst,))))


@only(*NO_ACCUMULATOR)
def accumulator_none(one: Instruction) -> bool:
    return (one.acc_write or bool(accumulators(one, (one.dst, *one.sources))))


@only(*LOGIC)
def accumulator_logic(one: Instruction) -> bool:
    return any(source.negate or source.absolute for source in accumulators(one, one.sources))


def accumulator_width(one: Instruction) -> bool:
    named = accumulators(one, (one.dst, *one.sources)) if computes(one) else []
    return one.exec_size > 8 and any(is_dword(operand) for operand in named)


@only(*DOTS, "line", "pln")
def accumulator_dot(one: Instruction) -> bool:
    return bool(accumulators(one, one.sources))


# -- other registers, flags and controls ---------------------------------------------------------------------------


def architecture_second(one: Instruction) -> bool:
    later = one.sources[1:] if one.form == "basic" and one.opcode not in ("wait", "do") else ()
    return any(source.file == "arf" and not is_null(source) and not is_named(source, "acc", one.gen) for source in later)


def message_source(one: Instruction) -> bool:
    return one.form == "basic" and any(source.file == "mrf" for source in one.sources)


def control_switch(one: Instruction) -> bool:
    switch = one.thread_control & 2
    return not switch and any(is_named(operand, "cr", one.gen) for operand in (one.dst, *one.sources))


def control_switch_written(one: Instruction) -> bool:
    return not one.thread_control & 2 and is_named(one.dst, "cr", one.gen)


@only(*COMPARES)
def compare_null_switch(one: Instruction) -> bool:
    return is_null(one.dst) and not one.thread_control & 2


def architecture_span(one: Instruction) -> bool:
    if one.form != "basic" or one.align16:
        return False
    for source in one.sources:
        if source.file != "arf" or source.indirect or is_null(source) or source.vertical == VXH:
            continue
        apart = is_named(source, "acc", one.gen) or is_named(source, "fc", one.gen)  # pairs of registers; a file of its own
        if not apart and spans(starts(one, source), size_of(one, source)) > 1:
            return True
    return False


def address_range(one: Instruction) -> bool:
    """Direct accesses to a0 stay in it."""
    a = registers.register("a", one.gen)
    if a is None or one.form != "basic" or one.align16:
        return False
    for operand in (one.dst, *one.sources):
        if operand is not None and is_named(operand, "a", one.gen):
            begins = written(one) if operand is one.dst else starts(one, operand)
            if max(begins) + size_of(one, operand) > a.size:
                return True
    return False


def predicate_code(one: Instruction) -> bool:
    return one.predicate > (ALIGN16_PREDICATES if one.align16 and one.form == "basic" else ALIGN1_PREDICATES)


def condition_code(one: Instruction) -> bool:
    return one.form not in ("send", "sends") and one.opcode != "math" and one.condition not in CONDITIONS


def quarter_half(one: Instruction) -> bool:
    return one.exec_size == 16 and bool(one.quarter & 1)


def quarter_all(one: Instruction) -> bool:
    return one.exec_size == 32 and bool(one.quarter)


def nibble_width(one: Instruction) -> bool:
    return bool(one.nibble) and one.exec_size > 4


def compression_code(one: Instruction) -> bool:
    return one.quarter == 3


@only("jmpi")
def jump_width(one: Instruction) -> bool:
    return one.exec_size != 1


@only("jmpi")
def jump_mask(one: Instruction) -> bool:
    return not one.no_mask


@only("call")
def call_destination(one: Instruction) -> bool:
    return one.dst is not None and not is_null(one.dst) and (one.dst.sub % 8 != 0 or not is_dword(one.dst))


@only("csel")
def select_condition(one: Instruction) -> bool:
    return not one.condition


@only("brc", "brd")
def branch_switch(one: Instruction) -> bool:
    return bool(one.thread_control & 2)


@only("wait")
def wait_notification(one: Instruction) -> bool:
    return not is_named(one.dst, "n", one.gen)
