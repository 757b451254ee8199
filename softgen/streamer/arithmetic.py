"""Arithmetic commands: the ALU, predicates, atomics.

Reads   MI_MATH MI_MATH_ALU_INSTRUCTION MI_PREDICATE MI_SET_PREDICATE MI_ATOMIC CS_GPR MI_PREDICATE_SRC0 MI_PREDICATE_SRC1
        MI_PREDICATE_DATA MI_PREDICATE_RESULT MI_PREDICATE_RESULT_2
Writes  CS_GPR, MI_PREDICATE_RESULT, memory
"""

from __future__ import annotations

from collections.abc import Callable

from softgen.bits import catalogue, describe
from softgen.bits.record import Record
from softgen.command import registers_in
from softgen.errors import DecodeError, Unsupported
from softgen.streamer.execute import Streamer
from softgen.streamer.interface import StreamerCommands

COMMANDS: StreamerCommands = {}
executes = registers_in(COMMANDS)

BITS = 64
ONES = (1 << BITS) - 1


# -- the ALU -------------------------------------------------------------------------------------------------------


class Alu:
    """Two sources, an accumulator and two flags; none of it outlives the command. A flag reads as all ones when set."""

    COMPUTES: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
    }

    def __init__(self, cs: Streamer) -> None:
        self.cs = cs
        self.values = dict.fromkeys(("srca", "srcb", "accu", "zf", "cf"), 0)

    def read(self, name: str) -> int:
        return self.cs.get("CS_GPR", _gpr(name)) if name.startswith("reg") else self.values[name]

    def write(self, name: str, value: int) -> None:
        if name.startswith("reg"):
            self.cs.set("CS_GPR", value & ONES, _gpr(name))
        else:
            self.values[name] = value & ONES

    def step(self, opcode: str, first: str, second: str) -> None:
        match opcode:
            case "noop":
                pass
            case "load" | "store":
                self.write(first, self.read(second))
            case "loadinv" | "storeinv":
                self.write(first, ~self.read(second))
            case "load0" | "load1":
                self.write(first, 0 if opcode == "load0" else ONES)
            case _:
                result = self.COMPUTES[opcode](self.values["srca"], self.values["srcb"])
                self.write("accu", result)
                self.write("zf", 0 if result & ONES else ONES)
                self.write("cf", ONES if result >> BITS else 0)  # a carry, or a borrow


def _gpr(name: str) -> int:
    return int(name.removeprefix("reg"))


# Operands that instructions may name.
SOURCES = ("srca", "srcb")
RESULTS = ("accu", "zf", "cf")


@executes("MI_MATH")
def math(cs: Streamer, cmd: Record) -> None:
    layout, alu = catalogue.layout("MI_MATH_ALU_INSTRUCTION", cs.generation.number), Alu(cs)
    for number, dword in enumerate(cs.command.dwords[1:]):
        values = layout.raw([dword])
        opcode, first, second = (describe.value_name(layout, values, name) for name in ("alu_opcode", "operand_1", "operand_2"))
        if not _legal(opcode, first, second):
            raise DecodeError(f"instruction {number}, {dword:#010x}, is none of the ALU's: {opcode} {first}, {second}")
        alu.step(opcode, first, second)


def _legal(opcode: str, first: str, second: str) -> bool:
    """Sources are loaded from registers, registers are stored from results."""
    match opcode:
        case "load" | "loadinv":
            return first in SOURCES and (second.startswith("reg") or second in RESULTS)
        case "load0" | "load1":
            return first in SOURCES
        case "store" | "storeinv":
            return first.startswith("reg") and second in RESULTS
        case _:
            return opcode == "noop" or opcode in Alu.COMPUTES


# -- predicates ----------------------------------------------------------------------------------------------------

COMBINES: dict[str, Callable[[bool, bool], bool]] = {
    "set": lambda compared, now: compared,
    "and": lambda compared, now: compared and now,
    "or": lambda compared, now: compared or now,
    "xor": lambda compared, now: compared != now,
}


@executes("MI_PREDICATE")
def predicate(cs: Streamer, cmd: Record) -> None:
    layout = catalogue.layout("MI_PREDICATE", cs.generation.number)
    load, combine, compare = (describe.value_name(layout, cmd, f"{name}_operation") for name in ("load", "combine", "compare"))
    if load not in ("keep", "load", "loadinv"):
        raise Unsupported(f"load_operation {load} is not known")
    first, second = cs.get("MI_PREDICATE_SRC0"), cs.get("MI_PREDICATE_SRC1")
    compared = {
        "true": True,
        "false": False,
        "srcs_equal": first == second,
        "deltas_equal": first - second & ONES == cs.get("MI_PREDICATE_DATA"),
    }[compare]
    result = COMBINES[combine](compared, cs.predicate())
    if load != "keep":
        cs.set("MI_PREDICATE_RESULT", int(result != (load == "loadinv")))


SLICES = {"execute on one slice": 1, "execute on two slices": 2, "execute on three slices": 3}


@executes("MI_SET_PREDICATE")
def set_predicate(cs: Streamer, cmd: Record) -> None:
    """From here on commands are read as MI_NOOP, or executed again; batches are called and end as ever."""
    wanted = describe.value_name(catalogue.layout("MI_SET_PREDICATE", cs.generation.number), cmd, "predicate_enable")
    match wanted:
        case "noop never" | "noop always":
            cs.skipping = wanted == "noop always"
        case "noop on result2 clear" | "noop on result2 set":
            cs.skipping = bool(cs.get("MI_PREDICATE_RESULT_2") & 1) == wanted.endswith("set")
        case "noop on result clear" | "noop on result set":
            cs.skipping = cs.predicate() == wanted.endswith("set")
        case _ if wanted in SLICES:
            cs.skipping = powered_slices(cs) != SLICES[wanted]
        case _:
            raise Unsupported(f"predicate_enable {wanted} is not known")


def powered_slices(cs: Streamer) -> int:
    """Slices that have power: as many as the context asks for, of those that the device has (KBL 17936-17949)."""
    if catalogue.catalogue().get("R_PWR_CLK_STATE", cs.generation.number) is None:
        return cs.device.slices
    power = catalogue.layout("R_PWR_CLK_STATE", cs.generation.number).raw([cs.get("R_PWR_CLK_STATE")])
    asked = power.slice_count_request if power.enable_slice_count_request else 0
    return min(asked, cs.device.slices) or cs.device.slices


# -- atomics -------------------------------------------------------------------------------------------------------

SIZES = {"dword": 4, "qword": 8, "octword": 16}
# Of the number in memory and two operands; `signed` orders numbers with a sign: with its bit the other way round, they are as unsigned ones
OPERATIONS: dict[str, Callable[[int, int, int, Callable[[int], int]], int]] = {
    "and": lambda old, a, b, signed: old & a,
    "or": lambda old, a, b, signed: old | a,
    "xor": lambda old, a, b, signed: old ^ a,
    "move": lambda old, a, b, signed: a,
    "inc": lambda old, a, b, signed: old + 1,
    "dec": lambda old, a, b, signed: old - 1,
    "predec": lambda old, a, b, signed: old - 1,
    "add": lambda old, a, b, signed: old + a,
    "sub": lambda old, a, b, signed: old - a,
    "rsub": lambda old, a, b, signed: a - old,
    "imax": lambda old, a, b, signed: max(old, a, key=signed),
    "imin": lambda old, a, b, signed: min(old, a, key=signed),
    "umax": lambda old, a, b, signed: max(old, a),
    "umin": lambda old, a, b, signed: min(old, a),
    "cmp_wr": lambda old, a, b, signed: b if old == a else old,  # KBL 1346-1363: the second is stored where the first is found
}
KNOWN = {  # name of the enumeration -> (bytes, operation); of sixteen bytes there is only the comparison
    name + suffix: (size, operation)
    for suffix, size in (("", 4), ("8b", 8), ("16b", 16))
    for name, operation in OPERATIONS.items()
    if size < 16 or name == "cmp_wr"
}
RETURNS = 4  # the first of the registers that take what memory held


@executes("MI_ATOMIC")
def atomic(cs: Streamer, cmd: Record) -> None:
    """One operation on memory. Operands stand in the command or in CS_GPR 0-1 and 2-3; what memory held goes to CS_GPR 4-5."""
    layout = catalogue.layout("MI_ATOMIC", cs.generation.number)
    name, data_size = (describe.value_name(layout, cmd, field) for field in ("atomic_opcode", "data_size"))
    found = KNOWN.get(name)
    if found is None or found[0] != SIZES.get(data_size):
        raise Unsupported(f"atomic_opcode {name} with data_size {data_size} is not known")
    size, operation = found
    if cmd.inline_data and len(cs.command.dwords) < 3 + 2 * size // 4:
        raise DecodeError(f"has {len(cs.command.dwords)} dwords, too few for two operands of {size} bytes")
    first, second = _inline(cs, size) if cmd.inline_data else _indirect(cs, size)
    ones = (1 << 8 * size) - 1
    old = int.from_bytes(cs.read(cmd.memory_address, size, cmd.memory_type), "little")
    new = operation(old, first, second, lambda value: value ^ 1 << 8 * size - 1) & ones
    cs.write(cmd.memory_address, new.to_bytes(size, "little"), cmd.memory_type)
    if cmd.return_data_control:
        returned = new if name.startswith("predec") else old  # KBL 1374-1393
        offset = cs.own("CS_GPR", RETURNS)
        for dword in range(size // 4):
            cs.registers.write(offset + 4 * dword, returned >> 32 * dword & 0xFFFFFFFF)


def _inline(cs: Streamer, size: int) -> tuple[int, int]:
    """The two operands in the command, whose dwords alternate."""
    dwords = cs.command.dwords[3 : 3 + 2 * size // 4]
    first, second = (sum(dword << 32 * i for i, dword in enumerate(dwords[k::2])) for k in (0, 1))
    return first, second


def _indirect(cs: Streamer, size: int) -> tuple[int, int]:
    ones = (1 << 8 * size) - 1
    first, second = (cs.get("CS_GPR", k) | cs.get("CS_GPR", k + 1) << BITS for k in (0, 2))
    return first & ones, second & ones
