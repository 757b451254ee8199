"""The sampler of one dispatch, for the interpreter: hands messages to their lane programs and is their environment."""

from __future__ import annotations

from collections.abc import Callable

from softgen.lanes.numpy import NumpyMachine
from softgen.lanes.value import Region, Value
from softgen.shared_functions import message
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.dataport.target import Memory
from softgen.shared_functions.exchange import Sent, answer
from softgen.shared_functions.sampler.state import Samplers, Sampling
from softgen.surface.image import Image

NAME = "sampler"
_MACHINE = NumpyMachine()


class SamplerPort:
    def __init__(self, surfaces: Surfaces, samplers: Samplers) -> None:
        self.surfaces, self.samplers, self.gen = surfaces, samplers, surfaces.gen

    def handlers(self) -> dict[int, Callable[[object, Sent], None]]:
        """For the table of a thread: shared function number -> who answers."""
        return {sfid: self.handle for sfid, name in message.shared_functions(self.gen).items() if name == NAME}

    def handle(self, thread: object, sent: Sent) -> None:
        answer(sent, self.gen, self)

    # -- the environment of messages -----------------------------------------------------------------------------------

    def picture(self, index: int, bindless: bool) -> Image:
        return self.surfaces.picture(index, bindless)

    def sampling(self, index: int, table: Value | None) -> Sampling:
        return self.samplers.sampling(index, None if table is None else int(table.payload[0]))

    def absolute(self, base: int) -> Region:
        target = Memory(self.surfaces.space, base)
        return Region(_MACHINE, target, target.name)
