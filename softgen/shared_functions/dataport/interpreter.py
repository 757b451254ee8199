"""The data port of one thread group on the interpreter: the environment of its messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.value import Region, Value
from softgen.shared_functions.dataport.media import read_block, write_block
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import AccessTarget, Addresses, GraphicsMemory, LocalMemory
from softgen.shared_functions.dataport.watched import AccessWatch, WatchedTarget
from softgen.shared_functions.message import Message
from softgen.shared_functions.texture.operations import execute
from softgen.surface.image import SurfaceImage

_MACHINE = NumpyMachine()


class DataPort:
    """A DataPortState over the surfaces of a dispatch and the local memory of a group."""

    def __init__(self, surfaces: Surfaces, local: LocalMemory, watch: AccessWatch | None = None) -> None:
        self.surfaces, self.held, self.watch = surfaces, local, watch
        self.gen, self.space = surfaces.gen, surfaces.space
        self.base = surfaces.bases.get("general", 0)
        self.sender: object = None  # of the message being executed

    def begin(self, sender: object) -> None:
        self.sender = sender

    # -- on both machines ----------------------------------------------------------------------------------------------

    def bound(self, index: int) -> Region:
        return self._region(self.surfaces.bound(index))

    def within(self, index: int, offsets: Value, mask: Value, what: str) -> None:
        """Report the first access outside a buffer, which does nothing or reads zero; null surfaces are meant to be used so."""
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
        return self._region(GraphicsMemory(self.space, self.base + (0 if base is None else int(base.payload[0]))))

    def addresses(self) -> Region:
        return self._region(Addresses(self.space))

    def local(self, plain: bool = False) -> Region:
        return self._region(self.held)

    def textured(self, x: Message[Any], what: str, sampler: int, given: list[Value], mask: Value, count: int) -> list[Value]:
        return execute(x, what, None, given, mask)

    def media_block(self, x: Message[Any], writes: bool) -> None:
        (write_block if writes else read_block)(x)

    # -- on the interpreter only ------------------------------------------------------------------

    def picture(self, index: int, bindless: bool, samples: bool = False) -> SurfaceImage:
        return self.surfaces.picture(index, bindless, samples)

    def absolute(self, base: int) -> Region:
        """Graphics memory from an address on."""
        return self._region(GraphicsMemory(self.space, base))

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

    def _region(self, target: AccessTarget) -> Region:
        if self.watch is not None:
            target = WatchedTarget(target, self.watch, self.sender)
        return Region(_MACHINE, target, target.name)
