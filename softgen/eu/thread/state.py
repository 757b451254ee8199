"""A thread: all state one execution unit thread has, open to whoever looks at it.

Registers are plain bytes: `grf`, `mrf` (where there are any) and one array for each architecture register of `registers.table` in `arf`,
all of them parts of one block, which is what compiled code works on (block.py).
Integer accumulators are wider than their registers (IVB 2029-2050), so beside the bytes of `acc` stand the whole numbers: `acc_d` for
dwords, `acc_w` for words. Flow control is the ip and, per channel, either an ip of its own or the masks of the mask stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.errors import GpuFault, SpecError
from softgen.eu.isa import registers
from softgen.eu.isa.control_register import mask, roundings
from softgen.eu.isa.rules import Rules, rules
from softgen.eu.thread import block as block_of
from softgen.eu.thread.block import CHANNELS, Control, Status

if TYPE_CHECKING:
    from softgen.eu.semantics.send import Handler

Bytes = npt.NDArray[np.uint8]

REGISTER = 32  # bytes of a general register
REGISTERS = 128
ALL = (1 << CHANNELS) - 1
READ_ONLY = frozenset({"n", "tm", "ce", "null"})  # writes are dropped (IVB 1713-1714, 2547, 2845)

SINGLE_FLOW, VECTOR_MASK = mask("single_program_flow"), mask("vector_mask_enable")  # bits of cr0.0
ACCUMULATOR_OFF, ALT, ROUNDING = mask("accumulator_disable"), mask("alternate_float_mode"), mask("rounding_mode")
DENORMALS = {"f": "float_denormals", "df": "double_denormals", "hf": "half_denormals"}  # the bits that keep them


class Change(NamedTuple):
    """A register that an instruction changed."""

    name: str
    before: bytes
    after: bytes


@dataclass
class Masks:
    """Channel masks of generations whose branches push and pop them. Active is what all of them allow."""

    conditional: int = ALL  # IMask
    loop: int = ALL  # LMask
    carry_on: int = ALL  # CMask: channels that did not continue
    conditionals: list[int] = field(default_factory=list)
    loops: list[tuple[int, int]] = field(default_factory=list)

    @property
    def active(self) -> int:
        return self.conditional & self.loop & self.carry_on


@dataclass(frozen=True)
class Mode:
    """What cr0 says about floats; part of what a translation depends on."""

    rounding: str = "rne"
    alt: bool = False
    flushes: frozenset[str] = frozenset()  # float types whose denormals count as zero: hf f df


class Thread:
    """One thread of a generation. `messages` says who answers which shared function."""

    def __init__(self, gen: float, messages: Mapping[int, Handler] | None = None, kernel: int = 0, dispatch_mask: int = ALL,
                 clock: Callable[[], int] | None = None, block: Bytes | None = None) -> None:  # fmt: skip
        """A new thread, or with a `block` the one that is there."""
        self.gen, self.rules = gen, rules(gen)
        self.block: Bytes = np.zeros(block_of.SIZE, np.uint8) if block is None else block
        self.messages: dict[int, Handler] = dict(messages or {})
        self.kernel = kernel  # where the kernel starts, counted from the instruction base
        self.ip = kernel
        self.grf: Bytes = self._part("grf", REGISTERS * REGISTER)
        self.mrf: Bytes = self._part("mrf", self.rules.message_registers * REGISTER)
        self.arf = {name: self._part(name, size) for name, size in architecture(gen)}
        self.where = Control.from_buffer(self.block, block_of.PLACES["control"])  # type: ignore[arg-type]
        self.channel_ip = [kernel] * CHANNELS
        self.masks = Masks()
        self.system_ip: int | None = None  # where exceptions lead
        self.ended = False
        self.waiting: int | None = None  # notification register a wait stands on
        self.executed = 0  # instructions
        self.clock = clock or (lambda: self.executed)
        self.changed: tuple[Change, ...] = ()
        if block is None:
            self.dispatch(dispatch_mask)
        else:
            self.load()

    def _part(self, name: str, size: int) -> Bytes:
        start = block_of.PLACES[name]
        return self.block[start : start + size]

    # -- what registers say --------------------------------------------------------------------------------------------

    def dispatch(self, mask: int) -> None:
        """Sets the dispatch mask, and the vector mask that follows from it (IVB 2220-2230)."""
        vector = sum(0xF << 4 * group for group in range(CHANNELS // 4) if mask >> 4 * group & 0xF)
        self.dwords("sr")[2:4] = mask & ALL, vector

    def dwords(self, name: str) -> npt.NDArray[np.uint32]:
        """A register as dwords: an architecture register's name, or grf."""
        held = self.grf if name == "grf" else self.mrf if name == "mrf" else self.arf[name]
        return held.view(np.uint32)

    def dword_at(self, name: str, start: int) -> int:
        """The dword at a byte of a register or file, for those who read it outside the lanes."""
        held = self.dwords(name)
        if not 0 <= start // 4 < len(held):
            raise GpuFault(start, "read", name, why=f"outside its {held.nbytes:#x} bytes")
        return int(held[start // 4])

    def register(self, number: int) -> npt.NDArray[np.uint32]:
        """One general register, as dwords."""
        return self.dwords("grf")[number * 8 : number * 8 + 8]

    @property
    def control(self) -> int:
        return int(self.dwords("cr")[0])

    @property
    def flags(self) -> int:
        """All flag bits, those of f0.0 lowest."""
        return int.from_bytes(self.arf["f"].tobytes(), "little")

    @property
    def execution_mask(self) -> int:
        """Channels the dispatcher gave the thread."""
        return int(self.dwords("sr")[3 if self.control & VECTOR_MASK else 2])

    @property
    def single_flow(self) -> bool:
        return bool(self.control & SINGLE_FLOW)

    @property
    def active(self) -> int:
        """Channels that execute the instruction at ip."""
        if self.rules.flow == "stack":
            return self.execution_mask & self.masks.active
        if self.single_flow:
            return self.execution_mask
        if self.channel_ip.count(self.ip) == CHANNELS:
            return self.execution_mask
        here = sum(1 << channel for channel, ip in enumerate(self.channel_ip) if ip == self.ip)
        return self.execution_mask & here

    @property
    def mode(self) -> Mode:
        return mode_of(self.gen, self.control)

    # -- between here and compiled code --------------------------------------------------------------------------------

    def save(self) -> None:
        """Where the thread is, into its block."""
        where, masks = self.where, self.masks
        where.ip, where.active, where.executed = self.ip & ALL, self.active, self.executed
        where.waiting = 0 if self.waiting is None else self.waiting + 1
        where.status = Status.ENDED if self.ended else Status.RUNNING
        where.channel_ip[:] = [ip & ALL for ip in self.channel_ip]
        where.conditional, where.loop, where.carry_on = masks.conditional, masks.loop, masks.carry_on
        where.conditional_depth, where.loop_depth = len(masks.conditionals), len(masks.loops)
        where.conditionals[: len(masks.conditionals)] = masks.conditionals
        where.loops[: 2 * len(masks.loops)] = [mask for pair in masks.loops for mask in pair]

    def load(self) -> None:
        """Where the block says the thread is."""
        where = self.where
        self.ip, self.executed = where.ip, where.executed
        self.waiting = where.waiting - 1 if where.waiting else None
        self.ended = where.status == Status.ENDED
        away = self.execution_mask & ~where.active
        self.channel_ip = [where.channel_ip[channel] if away >> channel & 1 else self.ip for channel in range(CHANNELS)]
        loops = list(where.loops[: 2 * where.loop_depth])
        pairs = list(zip(loops[::2], loops[1::2], strict=True))
        self.masks = Masks(where.conditional, where.loop, where.carry_on, list(where.conditionals[: where.conditional_depth]), pairs)

    # -- for whoever looks on ------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes]:
        """Every register by name: r0, acc0, f0, …"""
        found = {}
        for letter, file in (("r", self.grf), ("m", self.mrf)):
            for start in range(0, len(file), REGISTER):
                found[f"{letter}{start // REGISTER}"] = file[start : start + REGISTER].tobytes()
        for name, held in self.arf.items():
            row = registers.register(name, self.gen)
            if row is None or name in ("null", "tm", "ip", "ce"):
                continue
            for index in range(max(row.count, 1)):
                found[f"{name}{index}" if row.count else name] = held[index * row.size : (index + 1) * row.size].tobytes()
        return found

    def compare(self, before: Mapping[str, bytes]) -> tuple[Change, ...]:
        """The registers that are no longer as a snapshot has them."""
        return tuple(Change(name, before[name], after) for name, after in self.snapshot().items() if after != before[name])


@lru_cache(1 << 8)
def mode_of(gen: float, control: int) -> Mode:
    flushes = frozenset(kind for kind, name in DENORMALS.items() if not control & mask(name, gen))  # without such a bit: always
    return Mode(roundings()[control & ROUNDING], bool(control & ALT), flushes)


@lru_cache(8)
def architecture(gen: float) -> tuple[tuple[str, int], ...]:
    """The architecture registers of a generation and their bytes."""
    rows = {name: row for (name, known), row in registers.table().named.items() if known == gen}
    found = {name: max(row.count, 1) * row.size for name, row in rows.items()}
    if not {"cr", "sr", "f", "a", "acc", "n", "ip"} <= set(found):
        raise SpecError(f"eu/registers.table: gen {gen:g} lacks registers every thread has")
    if large := [name for name, size in found.items() if size > block_of.ROOM.get(name, 0)]:
        raise SpecError(f"eu/registers.table: gen {gen:g}: a thread's block has no room for {' '.join(large)}")
    return *found.items(), ("acc_d", 2 * 8 * 8), ("acc_w", 2 * 16 * 8)


__all__ = ["ALL", "CHANNELS", "REGISTER", "Change", "Masks", "Mode", "Rules", "Thread"]
