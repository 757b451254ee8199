"""Restrictions on regions, alignment and the size of operands. Each function says whether an instruction breaks the row of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from softgen.eu.isa import registers, types
from softgen.eu.isa.instruction import VXH, Instruction, Operand

REGISTER, REGISTERS = 32, 128  # bytes of a register, and how many there are
OWORD = 16
RAW = frozenset({"mov", "movi", "smov"})
INTEGERS = {"b": 2, "ub": 2, "w": 2, "uw": 2, "v": 2, "uv": 2}  # types that execute wider than they are, or packed; bytes of execution
HALVED = {("df", 7.0): 4}  # (type, generation) -> bytes: Ivy Bridge takes a double for two elements (IVB 452-458)


Rule = TypeVar("Rule", bound=Callable[[Instruction], bool])


def only(*names: str) -> Callable[[Rule], Rule]:
    """Marks a row's function as one that is asked of some opcodes or forms only."""

    def mark(rule: Rule) -> Rule:
        vars(rule)["only"] = frozenset(names)
        return rule

    return mark


def size_of(one: Instruction, operand: Operand) -> int:
    """Bytes of an element as regions count them."""
    return HALVED.get((operand.type, one.gen)) or types.size(operand.type)


def align1(one: Instruction) -> bool:
    return one.form == "basic" and not one.align16 and one.dst is not None


def operands(one: Instruction) -> Iterator[Operand]:
    """Registers named directly, null apart."""
    for operand in (one.dst, *one.sources):
        if operand is not None and operand.file != "imm" and not operand.indirect and not is_null(operand):
            yield operand


def is_null(operand: Operand | None) -> bool:
    return operand is not None and operand.file == "arf" and not operand.number and not operand.indirect


def is_named(operand: Operand | None, name: str, gen: float) -> bool:
    """Whether an operand is one of the architecture registers of a name."""
    if operand is None or operand.file != "arf" or operand.indirect:
        return False
    found = registers.find(operand.number, gen)
    return found is not None and found[0].name == name


def regions(one: Instruction) -> Iterator[Operand]:
    """Sources that are regions of registers, read in align1."""
    if align1(one):
        yield from (source for source in one.sources if source.file != "imm" and not is_null(source) and source.vertical != VXH)


def is_scalar(source: Operand) -> bool:
    return source.width == 1 and not source.vertical and not source.horizontal


def starts(one: Instruction, source: Operand) -> list[int]:
    """Where the elements of a direct region begin, in bytes from its register's beginning."""
    size = size_of(one, source)
    places = (divmod(channel, source.width) for channel in range(one.exec_size))
    return [source.sub + (row * source.vertical + place * source.horizontal) * size for row, place in places]


def written(one: Instruction) -> list[int]:
    """The same for the destination."""
    assert one.dst is not None
    size = size_of(one, one.dst)
    return [one.dst.sub + channel * one.dst.horizontal * size for channel in range(one.exec_size)]


def spans(begins: list[int], size: int) -> int:
    """How many registers elements that begin there touch."""
    return (max(begins) + size - 1) // REGISTER - min(begins) // REGISTER + 1


def execution(one: Instruction) -> int:
    """Bytes of the type an instruction computes in."""
    sizes = [2]
    assert one.dst is not None
    for source in one.sources:
        if is_null(source):
            continue
        name = "f" if source.type == "vf" else source.type
        found = types.type_of(name)
        if found is None:
            continue
        sizes.append(INTEGERS.get(name) or size_of(one, source if name == source.type else Operand("imm", "f")))
    if one.dst.type == "f" and any(source.type == "hf" for source in one.sources):
        sizes.append(4)
    return max(sizes)


def wide(one: Instruction) -> bool:
    """Whether more than one channel is written through a destination whose region counts."""
    dst = one.dst
    return align1(one) and one.exec_size > 1 and dst is not None and bool(dst.type) and not dst.indirect and not is_null(dst)


def is_raw_move(one: Instruction) -> bool:
    if one.opcode not in RAW or one.dst is None or one.saturate or one.condition:
        return False
    source = one.sources[0]
    same = {one.dst.type, source.type} <= {"b", "ub"} or one.dst.type == source.type
    return same and not source.negate and not source.absolute


# -- the rows ------------------------------------------------------------------------------------------------------


@only("basic")
def destination_stride(one: Instruction) -> bool:
    return align1(one) and one.dst is not None and not is_null(one.dst) and one.dst.horizontal == 0


@only("basic")
def width_fits(one: Instruction) -> bool:
    return any(source.width > one.exec_size for source in regions(one))


@only("basic")
def row_is_region(one: Instruction) -> bool:
    rows = (source for source in regions(one) if source.width == one.exec_size and source.horizontal)
    return any(source.vertical != source.width * source.horizontal for source in rows)


@only("basic")
def column(one: Instruction) -> bool:
    return any(source.width == 1 and source.horizontal for source in regions(one))


@only("basic")
def single(one: Instruction) -> bool:
    return any(source.width == one.exec_size == 1 and (source.horizontal or source.vertical) for source in regions(one))


@only("basic")
def scalar_width(one: Instruction) -> bool:
    return any(not source.vertical and not source.horizontal and source.width != 1 for source in regions(one))


@only("basic")
def row_in_register(one: Instruction) -> bool:
    for source in regions(one):
        size = size_of(one, source)
        if source.indirect or source.file != "grf":
            continue
        begins = starts(one, source)
        for row in range(0, one.exec_size, source.width):
            if spans(begins[row : row + source.width], size) > 1:
                return True
    return False


@only("basic")
def source_span(one: Instruction) -> bool:
    direct = (source for source in regions(one) if not source.indirect and source.file == "grf")
    return any(spans(starts(one, source), size_of(one, source)) > 2 for source in direct)


@only("basic")
def destination_span(one: Instruction) -> bool:
    return wide(one) and one.dst is not None and spans(written(one), size_of(one, one.dst)) > 2


@only("basic")
def even_split(one: Instruction) -> bool:
    if not wide(one) or one.dst is None or one.dst.file == "arf" or spans(written(one), size_of(one, one.dst)) != 2:
        return False
    first = sum(begin // REGISTER == min(written(one)) // REGISTER for begin in written(one))
    return first * 2 != one.exec_size


@only("math")
def math_even_split(one: Instruction) -> bool:
    return even_split(one)


@only("basic")
def destination_ratio(one: Instruction) -> bool:
    if not wide(one) or one.dst is None or is_raw_move(one) or mixes_floats(one) or packed_bytes(one):
        return False
    size, own = execution(one), size_of(one, one.dst)
    pitch = one.dst.horizontal * own
    return own < size and bool(pitch % size if own == 1 else pitch != size)


@only("basic")
def destination_offset(one: Instruction) -> bool:
    if not wide(one) or one.dst is None or is_raw_move(one) or mixes_floats(one) or one.dst.file == "arf":
        return False
    size, own = execution(one), size_of(one, one.dst)
    return own < size and one.dst.sub % size not in ((0, 1) if own == 1 else (0,))


@only("basic")
def packed_bytes(one: Instruction) -> bool:
    packed = wide(one) and one.dst is not None and types.size(one.dst.type) == 1 and one.dst.horizontal == 1
    return packed and not is_raw_move(one)


def mixes_floats(one: Instruction) -> bool:
    names = {operand.type for operand in (one.dst, *one.sources) if operand is not None}
    return {"f", "hf"} <= names


@only("basic")
def two_registers(one: Instruction) -> bool:
    """A destination of two registers wants sources of two, but for scalars, immediates and packed words that become packed dwords."""
    if not wide(one) or one.dst is None or one.dst.file not in ("grf", "mrf") or spans(written(one), size_of(one, one.dst)) != 2:
        return False
    for source in regions(one):
        if source.file != "grf" or source.indirect or is_scalar(source) or spans(starts(one, source), size_of(one, source)) == 2:
            continue
        words = types.size(source.type) == 2 and source.horizontal == 1 and types.size(one.dst.type) == 4 and one.dst.horizontal == 1
        if not words:
            return True
    return False


@only("basic")
def vector_immediate(one: Instruction) -> bool:
    kinds = {source.type for source in one.sources if source.file == "imm"}
    if not wide(one) or one.dst is None or not kinds & {"v", "uv", "vf"}:
        return False
    return bool(one.dst.sub % OWORD)


def natural(one: Instruction) -> bool:
    if one.form not in ("basic", "three_source", "three_source_align1"):
        return False
    return any(operand.sub % types.size(operand.type) for operand in operands(one) if not is_named(operand, "fc", one.gen))


@only("basic")
def register_range(one: Instruction) -> bool:
    """Where the region of a direct register ends."""
    if not align1(one):
        return False
    for operand in operands(one):
        if operand.file != "grf":
            continue
        begins = written(one) if operand is one.dst else starts(one, operand) if operand.vertical != VXH else [operand.sub]
        if operand.number * REGISTER + max(begins) + size_of(one, operand) > REGISTERS * REGISTER:
            return True
    return False


# -- align16 -------------------------------------------------------------------------------------------------------


@only("basic")
def align16_destination(one: Instruction) -> bool:
    macro = one.dst is not None and one.dst.special is not None  # says an accumulator where the stride stands
    return one.form == "basic" and one.align16 and one.dst is not None and one.dst.horizontal != 1 and not macro


@only("basic")
def align16_stride(one: Instruction) -> bool:
    return _align16_stride(one, (0, 4))


@only("basic")
def align16_stride_two(one: Instruction) -> bool:
    return _align16_stride(one, (0, 2, 4))


def _align16_stride(one: Instruction, known: tuple[int, ...]) -> bool:
    sources = (source for source in one.sources if source.file != "imm" and not is_null(source))
    return one.form == "basic" and one.align16 and any(source.vertical not in known for source in sources)


@only("basic")
def vxh_indirect(one: Instruction) -> bool:
    return any(source.vertical == VXH and not source.indirect for source in one.sources)


@only("basic")
def per_channel_width(one: Instruction) -> bool:
    """Vx1: an address register for every channel."""
    return any(source.vertical == VXH and source.indirect and source.width == 1 and one.exec_size > 8 for source in one.sources)


@only("basic")
def vxh_group(one: Instruction) -> bool:
    for source in one.sources:
        if source.vertical == VXH and source.indirect and one.exec_size > source.width:
            if source.address_sub % (one.exec_size // source.width):
                return True
    return False
