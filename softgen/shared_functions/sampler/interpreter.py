"""The sampler of one dispatch on the interpreter: the environment of its messages."""

from __future__ import annotations

from typing import Any

from softgen.bits.record import Record
from softgen.errors import Unsupported
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.value import Region, Value
from softgen.shared_functions.bindings import SAMPLING
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import GraphicsMemory
from softgen.shared_functions.message import Message
from softgen.shared_functions.sampler.operations import KILLING
from softgen.shared_functions.sampler.state import Samplers, Sampling
from softgen.shared_functions.texture.operations import execute, picture
from softgen.surface.image import SurfaceImage

_MACHINE = NumpyMachine()


class SamplerPort:
    """A SamplerState over the surfaces and samplers of a dispatch."""

    def __init__(self, surfaces: Surfaces, samplers: Samplers) -> None:
        self.surfaces, self.samplers, self.gen = surfaces, samplers, surfaces.gen
        self._table: int | None = None

    def begin(self, sender: object) -> None:
        self._table = None

    def picture(self, index: int, bindless: bool, samples: bool = False) -> SurfaceImage:
        return self.surfaces.picture(index, bindless, samples)

    def media_state(self, index: int) -> Record:
        return self.surfaces.media_state(index)

    def scaled(self, x: Message[Any]) -> None:
        from softgen.shared_functions.avs.messages import scale  # messages of the scaler are registered with those of the sampler

        scale(x)

    def check_block(self, x: Message[Any]) -> None:
        from softgen.shared_functions.sampler.unorm import check  # messages are registered once all environments are known

        check(x)

    def sampler(self, index: int | Value, table: Value | None) -> int:
        """The sampler of the message being executed."""
        assert isinstance(index, int)  # lanes are compiled code's
        self._table = None if table is None else int(table.payload[0])
        return index

    def moved(self, offsets: list[Value]) -> list[Value]:
        """Texel offsets of the message being executed."""
        return offsets

    def sampling(self, index: int, table: int | None = None, bordered: bool = False) -> Sampling:
        return self.samplers.sampling(index, table, bordered)

    def textured(self, x: Message[Any], what: str, sampler: int, given: list[Value], mask: Value, count: int) -> list[Value]:
        if what not in SAMPLING and what != KILLING:
            return execute(x, what, None, given, mask)
        sampling = self.sampling(sampler, self._table, picture(x).partial)
        try:
            return execute(x, what, sampling, given, mask)
        except Unsupported as error:
            raise Unsupported(f"sampler {sampler}: {error}") from None

    def absolute(self, base: int) -> Region:
        target = GraphicsMemory(self.surfaces.space, base)
        return Region(_MACHINE, target, target.name)
