"""Restrictions on regions, alignment and operand sizes. Each function tells whether an instruction violates the row of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from softgen.bits.units import DWORD, GRF_BYTES, GRF_COUNT, OWORD, WORD
from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Instruction, Operand

RAW = frozenset({"mov", "movi", "smov"})
PACKED_WORDS = frozenset({"v", "uv"})  # immediates whose elements execute as words
VECTORS = PACKED_WORDS | {"vf"}
HALVED = {("df", 7.0): 4}  # (type, generation) -> bytes: Ivy Bridge takes a double for two elements (IVB 452-458)


Rule = TypeVar("Rule", bound=Callable[[Instruction], bool])


def only(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: restrict a row's function to some opcodes or forms."""

    def mark(rule: Rule) -> Rule:
        vars(rule)["only"] = frozenset(names)
        return rule

    return mark


def size_of(inst: Instruction, operand: Operand) -> int:
    """Bytes of an element in regions."""
    return HALVED.get((operand.type, inst.gen)) or types.size(operand.type)


def align1(inst: Instruction) -> bool:
    return inst.form == "basic" and not inst.align16 and inst.dst is not None


def operands(inst: Instruction) -> Iterator[Operand]:
    """Direct register operands other than null."""
    for operand in (inst.dst, *inst.sources):
        if operand is not None and operand.file != "imm" and not operand.indirect and not is_null(operand):
            yield operand


def is_null(operand: Operand | None) -> bool:
    return operand is not None and operand.file == "arf" and not operand.number and not operand.indirect


def is_named(operand: Operand | None, name: str, gen: float) -> bool:
    """Whether an operand is an architecture register of a name."""
    if operand is None or operand.file != "arf" or operand.indirect:
        return False
    found = registers.find(operand.number, gen)
    return found is not None and found[0].name == name


def regions(inst: Instruction) -> Iterator[Operand]:
    """Register sources with an align1 region."""
    if align1(inst):
        yield from (source for source in inst.sources if source.file != "imm" and not is_null(source) and source.vertical != VXH)


def is_scalar(source: Operand) -> bool:
    return source.width == 1 and not source.vertical and not source.horizontal


def starts(inst: Instruction, source: Operand) -> list[int]:
    """Byte offsets of a direct region's elements from the beginning of its register."""
    size = size_of(inst, source)
    places = (divmod(channel, source.width) for channel in range(inst.exec_size))
    return [source.sub + (row * source.vertical + place * source.horizontal) * size for row, place in places]


def written(inst: Instruction) -> list[int]:
    """Byte offsets of the destination's elements from the beginning of its register."""
    assert inst.dst is not None
    size = size_of(inst, inst.dst)
    return [inst.dst.sub + channel * inst.dst.horizontal * size for channel in range(inst.exec_size)]


def spans(begins: list[int], size: int) -> int:
    """The number of registers that elements at these offsets touch."""
    return (max(begins) + size - 1) // GRF_BYTES - min(begins) // GRF_BYTES + 1


def execution(inst: Instruction) -> int:
    """Bytes of the execution type: that of the widest source, a word at least."""
    executed = (source for source in inst.sources if not is_null(source) and source.type not in PACKED_WORDS)
    return max([WORD, *(size_of(inst, source) for source in executed)])


def wide(inst: Instruction) -> Operand | None:
    """The direct destination in align1 that more than one channel is written to; None if there is no such destination."""
    dst = inst.dst
    return dst if align1(inst) and inst.exec_size > 1 and dst is not None and dst.type and not dst.indirect and not is_null(dst) else None


def moves_bytes(inst: Instruction) -> bool:
    """Whether an instruction moves bytes and changes none of them."""
    if inst.opcode not in RAW or inst.dst is None or inst.saturate or inst.condition:
        return False
    source = inst.sources[0]
    return {inst.dst.type, source.type} <= {"b", "ub"} and not source.negate and not source.absolute


# -- the rows ------------------------------------------------------------------------------------------------------


@only("basic")
def destination_stride(inst: Instruction) -> bool:
    return align1(inst) and inst.dst is not None and not is_null(inst.dst) and inst.dst.horizontal == 0


@only("basic")
def width_fits(inst: Instruction) -> bool:
    return any(source.width > inst.exec_size for source in regions(inst))


@only("basic")
def row_is_region(inst: Instruction) -> bool:
    rows = (source for source in regions(inst) if source.width == inst.exec_size and source.horizontal)
    return any(source.vertical != source.width * source.horizontal for source in rows)


@only("basic")
def column(inst: Instruction) -> bool:
    return any(source.width == 1 and source.horizontal for source in regions(inst))


@only("basic")
def single(inst: Instruction) -> bool:
    return any(source.width == inst.exec_size == 1 and (source.horizontal or source.vertical) for source in regions(inst))


@only("basic")
def scalar_width(inst: Instruction) -> bool:
    return any(not source.vertical and not source.horizontal and source.width != 1 for source in regions(inst))


@only("basic")
def row_in_register(inst: Instruction) -> bool:
    for source in regions(inst):
        size = size_of(inst, source)
        if source.indirect or source.file != "grf":
            continue
        begins = starts(inst, source)
        for row in range(0, inst.exec_size, source.width):
            if spans(begins[row : row + source.width], size) > 1:
                return True
    return False


@only("basic")
def source_span(inst: Instruction) -> bool:
    direct = (source for source in regions(inst) if not source.indirect and source.file == "grf")
    return any(spans(starts(inst, source), size_of(inst, source)) > 2 for source in direct)


@only("basic")
def destination_span(inst: Instruction) -> bool:
    dst = wide(inst)
    return dst is not None and spans(written(inst), size_of(inst, dst)) > 2


@only("basic")
def even_split(inst: Instruction) -> bool:
    dst = wide(inst)
    if dst is None or dst.file == "arf" or spans(written(inst), size_of(inst, dst)) != 2:
        return False
    return sum(begin < GRF_BYTES for begin in written(inst)) * 2 != inst.exec_size


@only("math")
def math_even_split(inst: Instruction) -> bool:
    return even_split(inst)


@only("basic")
def destination_ratio(inst: Instruction) -> bool:
    dst = wide(inst)
    if dst is None or moves_bytes(inst) or mixes_floats(inst) or packed_bytes(inst):
        return False
    size, own = execution(inst), size_of(inst, dst)
    pitch = dst.horizontal * own
    return own < size and bool(pitch % size if own == 1 else pitch != size)


@only("basic")
def destination_offset(inst: Instruction) -> bool:
    dst = wide(inst)
    if dst is None or moves_bytes(inst) or mixes_floats(inst) or dst.file == "arf":
        return False
    size, own = execution(inst), size_of(inst, dst)
    return own < size and dst.sub % size not in ((0, 1) if own == 1 else (0,))


@only("basic")
def packed_bytes(inst: Instruction) -> bool:
    dst = wide(inst)
    return dst is not None and types.size(dst.type) == 1 and dst.horizontal == 1 and not moves_bytes(inst)


def mixes_floats(inst: Instruction) -> bool:
    names = {operand.type for operand in (inst.dst, *inst.sources) if operand is not None}
    return {"f", "hf"} <= names


@only("basic")
def two_registers(inst: Instruction) -> bool:
    """A destination of two registers requires sources of two, except scalars, immediates and packed words converted to packed dwords."""
    dst = wide(inst)
    if dst is None or dst.file not in ("grf", "mrf") or spans(written(inst), size_of(inst, dst)) != 2:
        return False
    for source in regions(inst):
        if source.file != "grf" or source.indirect or is_scalar(source) or spans(starts(inst, source), size_of(inst, source)) == 2:
            continue
        words = types.size(source.type) == 2 and source.horizontal == 1 and types.size(dst.type) == 4 and dst.horizontal == 1
        if not words:
            return True
    return False


@only("basic")
def vector_immediate(inst: Instruction) -> bool:
    dst, kinds = wide(inst), {source.type for source in inst.sources if source.file == "imm"}
    return dst is not None and bool(kinds & VECTORS) and dst.sub % OWORD != 0


def vector_stride(inst: Instruction) -> bool:
    dst = wide(inst)
    steps = {WORD if source.type in PACKED_WORDS else DWORD for source in inst.sources if source.file == "imm" and source.type in VECTORS}
    return dst is not None and bool(steps - {dst.horizontal * types.size(dst.type)})


def natural(inst: Instruction) -> bool:
    if inst.form not in ("basic", "three_source", "three_source_align1"):
        return False
    return any(operand.sub % types.size(operand.type) for operand in operands(inst) if not is_named(operand, "fc", inst.gen))


@only("basic")
def register_range(inst: Instruction) -> bool:
    """The region of a direct register must not exceed the register file."""
    if not align1(inst):
        return False
    for operand in operands(inst):
        if operand.file != "grf":
            continue
        begins = written(inst) if operand is inst.dst else starts(inst, operand)
        if operand.number * GRF_BYTES + max(begins) + size_of(inst, operand) > GRF_COUNT * GRF_BYTES:
            return True
    return False


# -- align16 -------------------------------------------------------------------------------------------------------


@only("basic")
def align16_destination(inst: Instruction) -> bool:
    dst = inst.dst
    if dst is None or not inst.align16 or dst.special is not None:  # a macro encodes an accumulator in place of the stride
        return False
    return dst.horizontal != 1


@only("basic")
def align16_stride(inst: Instruction) -> bool:
    return _align16_stride(inst, (0, 4))


@only("basic")
def align16_stride_two(inst: Instruction) -> bool:
    return _align16_stride(inst, (0, 2, 4))


def _align16_stride(inst: Instruction, known: tuple[int, ...]) -> bool:
    return inst.align16 and any(source.vertical not in known for source in inst.sources if not is_null(source))


@only("basic")
def vxh_indirect(inst: Instruction) -> bool:
    return any(source.vertical == VXH and not source.indirect for source in inst.sources)


@only("basic")
def per_channel_width(inst: Instruction) -> bool:
    """Vx1: one address sub-register for each channel."""
    return any(source.vertical == VXH and source.indirect and source.width == 1 and inst.exec_size > 8 for source in inst.sources)


@only("basic")
def vxh_group(inst: Instruction) -> bool:
    grouped = (source for source in inst.sources if source.vertical == VXH and source.indirect)
    return any(source.address_sub % max(inst.exec_size // source.width, 1) for source in grouped)
