"""The state of a draw: latched commands, and structures that pointers in them lead to.

    state = DrawState(cs)
    clip = state.command("3DSTATE_CLIP")
    viewport = state.structure("SF_CLIP_VIEWPORT", state.address("dynamic", offset))
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from softgen.bits import catalogue
from softgen.bits.generation import Generation
from softgen.bits.record import Record
from softgen.command import Actor, CommandStreamer, ConstantUrbEntry, Latched, MarkedLatched
from softgen.errors import DecodeError, GpuFault
from softgen.memory.space import Space
from softgen.three_d.state.constant_registers import ResourceStreamer


@lru_cache(4096)
def unpacked(name: str, gen: float, data: bytes) -> Record:
    """A structure from its bytes: the same bytes mean the same."""
    return catalogue.layout(name, gen).raw(array("I", data))


class DrawingPipeline(Protocol):
    """What executes draws."""

    @property
    def actor(self) -> Actor:
        """What draws in walks over batches."""
        ...

    def draw(self, cs: CommandStreamer, call: DrawCall) -> None: ...


@dataclass
class PipelineContext:
    """The 3D pipeline's part of a hardware context."""

    pipeline: DrawingPipeline | None = None  # None before the first draw
    streamer: ResourceStreamer = field(default_factory=ResourceStreamer)
    gathered: dict[str, bytes] = field(default_factory=dict)  # stages whose constants were gathered since the last draw: marks of then
    position_only: Any = None  # its pipe, PositionOnlyPipeline
    visibility_draws: int = 0  # draws with visibility since the render list was set
    stipple: ctypes.c_uint32 = field(default_factory=ctypes.c_uint32)  # the Line Stipple Counter, which SETUP advances


class DrawState:
    """The state that a draw sees. `register` gives an engine register's value by name; `warn` reports broken rules, at every draw, `remark`
    those that it suffices to report when plans are made; `curbe` is the constant URB entry, where CONSTANT_BUFFER loads one."""

    constant_start = 0  # KiB of the URB where push constants begin: those of the position-only pipe follow the render pipe's

    def __init__(self, generation: Generation, space: Space, latched: Latched, bases: Mapping[str, int],
                 register: Callable[[str], int], warn: Callable[[str], None] = lambda text: None,
                 curbe: bytes | None = None) -> None:  # fmt: skip
        self.generation, self.gen, self.space, self.latched, self.bases = generation, generation.number, space, latched, bases
        self.register, self.warn, self.remark, self.curbe = register, warn, warn, curbe
        self.marks = latched.marks() if isinstance(latched, MarkedLatched) else b""  # how often each command had been latched

    @property
    def unnoted(self) -> DrawState:
        """The state itself: what rules ask of it is no part of what plans depend on (plan_cache.py)."""
        return self

    @classmethod
    def of(cls, cs: CommandStreamer) -> DrawState:
        curbe = cs.state(ConstantUrbEntry).data if cs.generation.unit_state else None
        return cls(cs.generation, cs.space, cs.latched, cs.bases, cs.get, cs.warn, curbe)

    def get(self, name: str) -> Record | None:
        """A state command as it was latched; None if none was."""
        return self.latched.get(name)

    def changed(self, before: bytes) -> list[str]:
        """Commands that were latched since there were these marks."""
        assert isinstance(self.latched, MarkedLatched)
        return self.latched.changed(before, self.marks)

    def command(self, name: str) -> Record:
        """A state command that the draw cannot do without."""
        found = self.latched.get(name)
        if found is None:
            raise DecodeError(f"3DPRIMITIVE needs {name}, which no command has set")
        return found

    def address(self, base: str, offset: int) -> int:
        return self.bases.get(base, 0) + offset & (1 << self.space.bits) - 1

    def block_address(self, offset: int) -> int:
        """Where a block of state is, to which a command's pointer leads."""
        return self.bases.get("dynamic", 0) + offset & (1 << self.space.bits) - 1

    def table_space(self, stage: str) -> Space:
        """The address space, for a reader of the stage's binding table and of the surface states that it leads to."""
        return self.space

    def block_space(self, pointer: str) -> Space:
        """The address space, for a reader of the block of state that a command's pointer leads to."""
        return self.space

    def structure(self, name: str, address: int, pointer: str = "") -> Record:
        """A structure in memory, as it is now. `pointer`: the command whose pointer leads to it, where one does."""
        space = self.block_space(pointer) if pointer else self.space
        address &= (1 << space.bits) - 1
        try:
            data = space.read(address, 4 * catalogue.layout(name, self.gen).dwords)
        except GpuFault as fault:
            raise GpuFault(fault.address, fault.access, fault.space, fault.by, f"{fault.why}; {name} should be there") from None
        return unpacked(name, self.gen, data)


class DrawCall(NamedTuple):
    """A 3DPRIMITIVE, its parameters taken from registers where it says so."""

    topology: int  # 3DPRIM_* code
    indexed: bool
    vertices: int  # of an instance
    start_vertex: int  # or the first index
    instances: int
    start_instance: int
    base_vertex: int  # signed
    parameters: tuple[int, ...] = (0, 0, 0)  # XP0 to XP2, which 3DSTATE_VF_SGVS_2 inserts
