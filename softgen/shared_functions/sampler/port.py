"""The sampler of one dispatch, for the interpreter: hands messages to their lane programs and is their environment."""

from __future__ import annotations

from collections.abc import Callable

from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.value import Region, Value
from softgen.shared_functions import message
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import Memory
from softgen.shared_functions.exchange import Exchange, Sent, answer
from softgen.shared_functions.sampler.state import Samplers, Sampling
from softgen.shared_functions.texture import at_once
from softgen.surface.image import SurfaceImage

NAME = "sampler"
_MACHINE = NumpyMachine()


class SamplerPort:
    def __init__(self, surfaces: Surfaces, samplers: Samplers) -> None:
        self.surfaces, self.samplers, self.gen = surfaces, samplers, surfaces.gen
        self._table: int | None = None

    def handlers(self) -> dict[int, Callable[[object, Sent], None]]:
        """For the table of a thread: shared function number -> who answers."""
        return {sfid: self.handle for sfid, name in message.shared_functions(self.gen).items() if name == NAME}

    def handle(self, thread: object, sent: Sent) -> None:
        self._table = None
        answer(sent, self.gen, self)

    # -- the environment of messages -----------------------------------------------------------------------------------

    def picture(self, index: int, bindless: bool) -> SurfaceImage:
        return self.surfaces.picture(index, bindless)

    def table(self, given: Value) -> None:
        """The table of samplers that the message under way points at."""
        self._table = int(given.payload[0])

    def moved(self, offsets: list[Value]) -> list[Value]:
        """Offsets that the message under way adds to coordinates."""
        return offsets

    def sampling(self, index: int, table: int | None = None) -> Sampling:
        return self.samplers.sampling(index, table)

    def textured(self, x: Exchange, what: str, sampler: int, given: list[Value], mask: Value, count: int) -> list[Value]:
        return at_once(x, what, self.sampling(sampler, self._table) if what == "sample" else None, given, mask)

    def absolute(self, base: int) -> Region:
        target = Memory(self.surfaces.space, base)
        return Region(_MACHINE, target, target.name)
