"""The data port of one thread group, for the interpreter: hands messages to their lane programs and is their environment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.value import Region, Value
from softgen.shared_functions import message
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import Addresses, LocalMemory, Memory, Target
from softgen.shared_functions.exchange import Exchange, Sent, answer
from softgen.shared_functions.texture import at_once
from softgen.surface.image import SurfaceImage

PORTS = ("data_port_read", "data_port_write", "render_cache", "sampler_cache", "data_port_2", "constant_cache", "read_only", "data_cache_0",
         "data_cache_1")  # functions answered here  # fmt: skip
_MACHINE = NumpyMachine()


class DataPort:
    """Answers the messages of one thread group."""

    def __init__(self, surfaces: Surfaces, local: LocalMemory) -> None:
        self.surfaces, self.held = surfaces, local
        self.gen, self.space = surfaces.gen, surfaces.space
        self.base = surfaces.bases.get("general", 0)
        self.sender: object = None  # of the message under way

    def handlers(self) -> dict[int, Callable[[object, Sent], None]]:
        """For the table of a thread: shared function number -> who answers."""
        return {sfid: self.handle for sfid, name in message.shared_functions(self.gen).items() if name in PORTS}

    def handle(self, thread: object, sent: Sent) -> None:
        self.sender = thread
        answer(sent, self.gen, self)

    # -- the environment of messages -----------------------------------------------------------------------------------

    def bound(self, index: int) -> Region:
        return self._region(self.surfaces.bound(index))

    def within(self, index: int, offsets: Value, mask: Value, what: str) -> None:
        """Tells of the first access outside a buffer, which does nothing or reads zero; null surfaces are meant to be used so."""
        size = self.surfaces.bound(index).size
        if index in self.surfaces.told or not size:
            return
        outside = np.flatnonzero(mask.payload & (offsets.payload >= size))
        if len(outside):
            self.surfaces.told.add(index)
            where = f"offset {int(offsets.payload[outside[0]]):#x} of surface {index}, which has {size:#x} bytes (lane {outside[0]})"
            self.surfaces.tell(self.sender, index, f"out of bounds: {what} at {where}")

    def bindless(self, offset: int) -> Region:
        return self._region(self.surfaces.bindless(offset))

    def general(self, base: Value | None = None) -> Region:
        return self._region(Memory(self.space, self.base + (0 if base is None else int(base.payload[0]))))

    def addresses(self) -> Region:
        return self._region(Addresses(self.space))

    def local(self, plain: bool = False) -> Region:
        return self._region(self.held)

    def textured(self, x: Exchange, what: str, sampler: int, given: list[Value], mask: Value, count: int) -> list[Value]:
        return at_once(x, what, None, given, mask)

    # -- for messages that only the interpreter answers ------------------------------------------------------------------

    def picture(self, index: int, bindless: bool) -> SurfaceImage:
        return self.surfaces.picture(index, bindless)

    def absolute(self, base: int) -> Region:
        """Graphics memory from an address on."""
        return self._region(Memory(self.space, base))

    def counter(self, index: int) -> Region:
        return self._region(self.surfaces.counter(index))

    def lines(self, index: int) -> tuple[int, int]:
        """Whether a surface counts every other line, and from which on."""
        state = self.surfaces.state(index)
        return int(state.vertical_line_stride), int(state.vertical_line_stride_offset)

    def boundary(self, index: int) -> int:
        return int(self.surfaces.state(index).media_boundary_pixel_mode)

    def instructions(self) -> int:
        return self.surfaces.bases.get("instruction", 0)

    def _region(self, target: Target) -> Region:
        return Region(_MACHINE, target, target.name)
