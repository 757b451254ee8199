"""ThreadState: all architectural state of one EU thread.

Registers are plain bytes: `grf`, `mrf` (on generations with message registers) and in `arf` one array for each architecture register of
`registers.table`. All of them are parts of one block of memory, which compiled code works on (block.py).
Integer accumulators are wider than their registers (IVB 2029-2050), so two arrays hold the accumulators as 64-bit integers: `acc_d` for
dwords, `acc_w` for words. Control flow is the ip and, for each channel, an ip of its own or the masks of the mask stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits.units import DWORD, GRF_BYTES, GRF_COUNT
from softgen.errors import GpuFault, SpecError
from softgen.eu.isa import registers
from softgen.eu.isa.control_register import mask, roundings
from softgen.eu.isa.rules import rules
from softgen.eu.thread import block as block_of
from softgen.eu.thread.block import CHANNELS, ControlBlock, ThreadStatus
from softgen.eu.thread.message import SentMessage

Bytes = npt.NDArray[np.uint8]
MessageHandler = Callable[["ThreadState", SentMessage], None]

ALL_CHANNELS = (1 << CHANNELS) - 1
READ_ONLY = frozenset({"n", "tm", "ce", "null"})  # writes are dropped (IVB 1713-1714, 2547, 2845)

SINGLE_PROGRAM_FLOW, VECTOR_MASK = mask("single_program_flow"), mask("vector_mask_enable")  # bits of cr0.0
ACCUMULATOR_DISABLE, ALT_FLOAT_MODE, ROUNDING_MODE = mask("accumulator_disable"), mask("alternate_float_mode"), mask("rounding_mode")
DEPENDENCY = 1 << 15  # valid bit of a thread dependency register
DENORMALS = {"f": "float_denormals", "df": "double_denormals", "hf": "half_denormals"}  # type -> the cr0 bit that preserves its denormals


class RegisterChange(NamedTuple):
    """A register that an instruction changed."""

    name: str
    before: bytes
    after: bytes


@dataclass
class MaskStacks:
    """IMask, LMask and CMask with their stacks, on generations whose branches push and pop masks.

    A channel is active where all three masks have its bit (G45 661).
    """

    imask: int = ALL_CHANNELS  # of if, else and endif
    lmask: int = ALL_CHANNELS  # of loops: channels that did not break
    cmask: int = ALL_CHANNELS  # channels that did not continue
    imask_stack: list[int] = field(default_factory=list)
    loop_stack: list[tuple[int, int]] = field(default_factory=list)  # LMask and CMask

    @property
    def active(self) -> int:
        return self.imask & self.lmask & self.cmask


@dataclass(frozen=True)
class FloatMode:
    """The float modes of cr0; compiled code is specialised for them."""

    rounding: str = "rne"
    alt: bool = False
    flushes: frozenset[str] = frozenset()  # float types whose denormals are flushed to zero: hf f df


class ThreadState:
    """The state of one thread of a generation.

    `messages` maps shared function ids to the handlers of their messages. `system_routine` is the address of the system routine, counted
    from the instruction base, as STATE_SIP sets it for all threads (IVB 2276-2290); None where no STATE_SIP was executed.
    """

    def __init__(self, gen: float, messages: Mapping[int, MessageHandler] | None = None, kernel: int = 0,
                 dispatch_mask: int = ALL_CHANNELS, clock: Callable[[], int] | None = None, block: Bytes | None = None,
                 system_routine: int | None = None) -> None:  # fmt: skip
        """Create a thread at its kernel's first instruction; with a `block`, take the state that the block holds."""
        self.gen, self.rules = gen, rules(gen)
        self.block: Bytes = np.zeros(block_of.BLOCK_SIZE, np.uint8) if block is None else block
        self.messages: dict[int, MessageHandler] = dict(messages or {})
        self.kernel = kernel  # address of the kernel, counted from the instruction base
        self.ip = kernel
        self.grf: Bytes = self._part("grf", GRF_COUNT * GRF_BYTES)
        self.mrf: Bytes = self._part("mrf", self.rules.message_registers * GRF_BYTES)
        self.arf = {name: self._part(name, size) for name, size in register_sizes(gen)}
        self.control_block = ControlBlock.from_buffer(self.block, block_of.BLOCK_OFFSETS["control"])  # type: ignore[arg-type]
        self.pixel: Bytes = self._part("pixel", block_of.PIXEL_BYTES)  # PixelDispatch
        self.channel_ip = [kernel] * CHANNELS
        self.masks = MaskStacks()
        self.system_routine = system_routine
        self.ended = False
        self.waiting: int | None = None  # index of the notification register that a wait instruction waits for
        self.executed = 0  # instructions
        self.clock = clock or (lambda: self.executed)
        self.changed: tuple[RegisterChange, ...] = ()
        if block is None:
            self.set_dispatch_mask(dispatch_mask)
        else:
            self.load()

    def _part(self, name: str, size: int) -> Bytes:
        start = block_of.BLOCK_OFFSETS[name]
        return self.block[start : start + size]

    # -- registers -----------------------------------------------------------------------------------------------------

    def set_dispatch_mask(self, mask: int) -> None:
        """Set the dispatch mask, and the vector mask that follows from it (IVB 2220-2230)."""
        vector = sum(0xF << 4 * group for group in range(CHANNELS // 4) if mask >> 4 * group & 0xF)
        self.dwords("sr")[2:4] = mask & ALL_CHANNELS, vector

    def dwords(self, name: str) -> npt.NDArray[np.uint32]:
        """A register as dwords: an architecture register by name, "grf" or "mrf" for a whole file."""
        file = self.grf if name == "grf" else self.mrf if name == "mrf" else self.arf[name]
        return file.view(np.uint32)

    def dword_at(self, name: str, start: int) -> int:
        """The dword at a byte offset of a register or file, bounds checked."""
        dwords = self.dwords(name)
        if not 0 <= start // DWORD < len(dwords):
            raise GpuFault(start, "read", name, why=f"outside its {dwords.nbytes:#x} bytes")
        return int(dwords[start // DWORD])

    def register(self, number: int) -> npt.NDArray[np.uint32]:
        """One general register, as dwords."""
        return self.dwords("grf")[number * 8 : number * 8 + 8]

    @property
    def cr0(self) -> int:
        """cr0.0, the control register's first dword."""
        return int(self.dwords("cr")[0])

    @property
    def flags(self) -> int:
        """All flag bits, those of f0.0 lowest."""
        return int.from_bytes(self.arf["f"].tobytes(), "little")

    @property
    def depends(self) -> bool:
        """Whether a thread that this one depends on has not ended yet, for which sendc waits (IVB 2692-2704)."""
        return "tdr" in self.arf and bool((self.arf["tdr"].view(np.uint16) & DEPENDENCY).any())

    def depend_on(self, threads: Sequence[int]) -> None:
        """Set the thread dependency registers, as a dispatch does: the FFTIDs of up to eight threads (IVB 2692-2704)."""
        registers = self.arf["tdr"].view(np.uint16)
        registers[:] = 0
        registers[: len(threads)] = [DEPENDENCY | number for number in threads]

    def thread_ended(self, number: int) -> None:
        """Take the broadcast that the thread with an FFTID has ended: the thread no longer depends on it (IVB 2699-2702)."""
        registers = self.arf["tdr"].view(np.uint16)
        registers[registers == DEPENDENCY | number] &= ~DEPENDENCY & 0xFFFF

    def clear_dependencies(self, offsets: Iterable[int], size: int) -> None:
        """Take a write of so many bytes at each offset of the thread dependency registers: whatever is written, the valid bits there become
        0 (IVB 2702-2704)."""
        registers = self.arf["tdr"].view(np.uint16)
        for start in offsets:
            registers[int(start) // 2 : (int(start) + size + 1) // 2] &= ~DEPENDENCY & 0xFFFF

    @property
    def dispatch_mask(self) -> int:
        """The dispatch mask, or the vector mask where cr0 selects it."""
        return int(self.dwords("sr")[3 if self.cr0 & VECTOR_MASK else 2])

    @property
    def single_program_flow(self) -> bool:
        return bool(self.cr0 & SINGLE_PROGRAM_FLOW)

    @property
    def active(self) -> int:
        """The channels that execute the instruction at ip, before predication."""
        if self.rules.flow == "stack":
            return self.dispatch_mask & self.masks.active
        if self.single_program_flow:
            return self.dispatch_mask
        if self.channel_ip.count(self.ip) == CHANNELS:
            return self.dispatch_mask
        here = sum(1 << channel for channel, ip in enumerate(self.channel_ip) if ip == self.ip)
        return self.dispatch_mask & here

    @property
    def mode(self) -> FloatMode:
        return float_mode(self.gen, self.cr0)

    # -- exchange with compiled code -----------------------------------------------------------------------------------

    def save(self) -> None:
        """Store ip, masks and channel ips in the block, for compiled code."""
        control = self.control_block
        control.ip, control.active, control.executed = self.ip & ALL_CHANNELS, self.active, self.executed
        control.waiting = 0 if self.waiting is None else self.waiting + 1
        control.status = ThreadStatus.ENDED if self.ended else ThreadStatus.RUNNING
        control.channel_ip[:] = [ip & ALL_CHANNELS for ip in self.channel_ip]
        self.save_masks()

    def save_masks(self) -> None:
        """Store masks and their stacks in the block."""
        control, masks = self.control_block, self.masks
        control.imask, control.lmask, control.cmask = masks.imask, masks.lmask, masks.cmask
        control.imask_depth, control.loop_depth = len(masks.imask_stack), len(masks.loop_stack)
        control.imask_stack[: len(masks.imask_stack)] = masks.imask_stack
        control.loop_stack[: 2 * len(masks.loop_stack)] = [mask for pair in masks.loop_stack for mask in pair]

    def load(self) -> None:
        """Load ip, masks and channel ips from the block, after compiled code ran."""
        control = self.control_block
        self.ip, self.executed = control.ip, control.executed
        self.waiting = control.waiting - 1 if control.waiting else None
        self.ended = control.status == ThreadStatus.ENDED
        away = self.dispatch_mask & ~control.active
        self.channel_ip = [control.channel_ip[channel] if away >> channel & 1 else self.ip for channel in range(CHANNELS)]
        self.load_masks()

    def load_masks(self) -> None:
        """Load masks and their stacks from the block."""
        control = self.control_block
        loops = list(control.loop_stack[: 2 * control.loop_depth])
        pairs = list(zip(loops[::2], loops[1::2], strict=True))
        self.masks = MaskStacks(control.imask, control.lmask, control.cmask, list(control.imask_stack[: control.imask_depth]), pairs)

    # -- snapshots for debuggers and tests -----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes]:
        """Every register by name: r0, acc0, f0, …"""
        found = {}
        for letter, file in (("r", self.grf), ("m", self.mrf)):
            for start in range(0, len(file), GRF_BYTES):
                found[f"{letter}{start // GRF_BYTES}"] = file[start : start + GRF_BYTES].tobytes()
        for name, array in self.arf.items():
            row = registers.register(name, self.gen)
            if row is None or name in ("null", "tm", "ip", "ce"):
                continue
            for index in range(max(row.count, 1)):
                found[f"{name}{index}" if row.count else name] = array[index * row.size : (index + 1) * row.size].tobytes()
        return found

    def compare(self, before: Mapping[str, bytes]) -> tuple[RegisterChange, ...]:
        """The registers that differ from a snapshot."""
        return tuple(RegisterChange(name, before[name], after) for name, after in self.snapshot().items() if after != before[name])


@lru_cache(1 << 8)
def float_mode(gen: float, cr0: int) -> FloatMode:
    """The float modes that cr0.0 selects; a generation without a bit for a type's denormals always flushes them."""
    flushes = frozenset(kind for kind, name in DENORMALS.items() if not cr0 & mask(name, gen))
    return FloatMode(roundings()[cr0 & ROUNDING_MODE], bool(cr0 & ALT_FLOAT_MODE), flushes)


@lru_cache(8)
def register_sizes(gen: float) -> tuple[tuple[str, int], ...]:
    """The architecture registers of a generation and their sizes in bytes, the 64-bit integer accumulators last."""
    rows = {name: row for (name, known), row in registers.table().named.items() if known == gen}
    found = {name: max(row.count, 1) * row.size for name, row in rows.items()}
    if not {"cr", "sr", "f", "a", "acc", "n", "ip"} <= set(found):
        raise SpecError(f"eu/registers.table: gen {gen:g} lacks registers that every thread has")
    if large := [name for name, size in found.items() if size > block_of.REGISTER_SPACE.get(name, 0)]:
        raise SpecError(f"eu/registers.table: gen {gen:g}: a thread's block has no space for {' '.join(large)}")
    return *found.items(), ("acc_d", 2 * 8 * 8), ("acc_w", 2 * 16 * 8)
