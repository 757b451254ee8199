"""One GPU: work in, memory changed.

    gpu = Gpu(device("skl"))
    gpu.execute(work)          # raises GpuFault, Unsupported or DecodeError with the place

What a hardware context keeps (state, constants, descriptors) is kept by context and engine; registers are the GPU's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from softgen.bits.generation import Device
from softgen.device.registers import Registers, host_clock
from softgen.memory.space import Space
from softgen.streamer import dispatch, mi, sync
from softgen.streamer.execute import Commands, Counters, Held, Machine, Streamer

COMMANDS: Commands = {**mi.COMMANDS, **sync.COMMANDS, **dispatch.COMMANDS}


class Work(Protocol):
    """A submission: a batch in `space`, or a ring in the global space from head to tail."""

    @property
    def engine(self) -> str: ...
    @property
    def space(self) -> Space: ...
    @property
    def global_space(self) -> Space | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def batch(self) -> int: ...
    @property
    def head(self) -> int: ...
    @property
    def tail(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def context(self) -> int: ...


class Gpu:
    def __init__(self, device: Device, clock: Callable[[], int] | None = None, spent: Callable[[], bool] = lambda: False) -> None:
        """`clock` gives timestamps, the host's unless told; `spent` says when time is up."""
        self.device, self.generation = device, device.generation
        clock = clock or host_clock(device)
        self.registers, self.counters = Registers(self.generation, clock), Counters()
        self.machine = Machine(self.generation, COMMANDS, self.registers, clock, self.counters, spent)
        self.contexts: dict[tuple[int, str], Held] = {}

    def execute(self, work: Work) -> None:
        held = self.contexts.setdefault((work.context, work.engine), Held())
        streamer = Streamer(self.machine, work.engine, work.space, work.global_space, held)
        if work.kind == "ring":
            streamer.run_ring(work.batch, work.head, work.tail, work.size)
        else:
            streamer.run_batch(work.batch)
