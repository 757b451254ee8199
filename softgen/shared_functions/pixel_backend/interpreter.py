"""The pixel backend of a dispatch on the interpreter: the environment of its messages."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from softgen.errors import SoftgenError, Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.types import bool_, u32
from softgen.lanes.value import Memory, Region, Value
from softgen.memory.space import Space
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import GraphicsMemory
from softgen.shared_functions.pixel_backend.messages import PixelRead, PixelWrite, part_bits
from softgen.shared_functions.pixel_backend.read import TargetRead
from softgen.shared_functions.pixel_backend.records import TargetRecord, fill_target
from softgen.shared_functions.pixel_backend.sample_write import target_write
from softgen.shared_functions.pixel_backend.state import BackendState
from softgen.shared_functions.pixel_backend.targets import RenderTarget, Targets
from softgen.shared_functions.pixel_backend.write import PLACE_AT, Told
from softgen.shared_functions.unit import DispatchBindings

NAME = "pixel backend"


class PixelTest(NamedTuple):
    """A test of a write to the target at `base`: whether the thread's channels from `first` on pass it, of one sample or of pixels."""

    test: str
    base: int
    sample: int | None
    first: int
    passed: tuple[bool, ...]


class PixelSender(Protocol):
    """A thread, as far as the pixel backend looks at it."""

    pixel: npt.NDArray[np.uint8]  # its PixelDispatch


def backend_state(dispatch: DispatchBindings) -> BackendState:
    state = dispatch.unit_states.get(NAME)
    if not isinstance(state, BackendState):
        raise Unsupported("a render target write of a thread whose dispatch has no state for the pixel backend")
    return state


class PixelBackend:
    """A PixelEnvironment over the targets of a dispatch."""

    def __init__(self, dispatch: DispatchBindings) -> None:
        self.dispatch = dispatch
        self.sender: PixelSender | None = None
        self.told: list[PixelTest] | None = None  # the tests of writes, for who asks

    def begin(self, sender: object) -> None:
        self.sender = sender  # type: ignore[assignment]

    def parts(self, m: Machine) -> Value:
        return m.constant(u32, part_bits(backend_state(self.dispatch).parts), 1)

    def require(self, condition: Value, error: SoftgenError) -> None:
        if not condition.payload[0]:
            raise error

    def _target(self, surface: int | None, index: int) -> RenderTarget:
        return Targets(self.dispatch.state(Surfaces.of), backend_state(self.dispatch), self.dispatch.blend_moved).target(surface, index)

    def _records(self, m: Machine, target: RenderTarget) -> tuple[Memory, Memory]:
        """The records of a target and of the sender's pixels, as compiled code has them."""
        record = TargetRecord()
        fill_target(record, backend_state(self.dispatch), target.placement, target.control)
        assert self.sender is not None
        return Memory(m, record_bytes(record), "target record"), Memory(m, self.sender.pixel, "pixel dispatch")

    def write(self, m: Machine, choices: list[tuple[Value, PixelWrite]]) -> None:
        given = next(write for holds, write in choices if holds.payload[0])
        space, target = self.dispatch.space, self._target(given.surface, int(given.target.payload[0]))
        form = target.form(given.variant)
        form.check()
        held, pixel = self._records(m, target)
        first, last = m.constant(u32, given.first, 1), m.constant(bool_, int(given.last), 1)
        write = target_write(m, form, held, pixel, lambda base: absolute(m, space, int(base.payload[0])), first, last)
        if self.told is not None:
            write.told = self._tell(given.first, target.placement.base, self.told)
        with _moved(m, pixel, given):
            write.write(given.sources, given.mask)

    @staticmethod
    def _tell(first: int, base: int, into: list[PixelTest]) -> Told:
        def told(test: str, passed: Value, sample: int | Value | None) -> None:
            number = int(sample.payload[0]) if isinstance(sample, Value) else sample
            into.append(PixelTest(test, base, number, first, tuple(map(bool, passed.payload))))

        return told

    def read(self, m: Machine, read: PixelRead) -> list[Value]:
        space, target = self.dispatch.space, self._target(read.surface, 0)
        form = target.read_form(read.lanes)
        form.check()
        held, pixel = self._records(m, target)
        first = m.constant(u32, read.first, 1)
        with _moved(m, pixel, read):
            return TargetRead(m, form, held, pixel, lambda base: absolute(m, space, int(base.payload[0])), first).read(read.mask)


@contextmanager
def _moved(m: Machine, pixel: Memory, message: PixelWrite | PixelRead) -> Iterator[None]:
    """For the time of a message, the thread's subspans are where its header says."""
    if message.places is None:
        yield
        return
    at = PLACE_AT + message.first
    own = m.load_block(u32, message.places.lanes, pixel, at)
    m.store_block(message.places, pixel, at)
    yield
    m.store_block(own, pixel, at)


def absolute(m: Machine, space: Space, base: int) -> Region:
    """Graphics memory from an address on."""
    target = GraphicsMemory(space, base)
    return Region(m, target, target.name)


def record_bytes(record: ctypes.Structure) -> npt.NDArray[np.uint8]:
    return np.frombuffer(memoryview(record).cast("B"), np.uint8)


__all__ = ["PixelBackend", "PixelTest", "absolute", "backend_state", "record_bytes"]
