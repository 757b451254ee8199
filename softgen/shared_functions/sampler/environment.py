"""What the lane programs of sampler messages need of their environment."""

from __future__ import annotations

from typing import Protocol

from softgen.lanes.value import Value
from softgen.shared_functions.message import Message
from softgen.shared_functions.texture.operations import ImageEnvironment, TexelEnvironment


class SamplerEnvironment(TexelEnvironment, Protocol):
    """On both machines."""

    def table(self, given: Value) -> None:
        """The offset of the sampler table that the message's header names."""
        ...

    def moved(self, offsets: list[Value]) -> list[Value]:
        """The texel offsets that the message's header adds to coordinates: none where they are known to be zero."""
        ...


class SamplerState(SamplerEnvironment, ImageEnvironment, Protocol):
    """With surface state, for messages that only the interpreter executes."""


SamplerMessage = Message[SamplerEnvironment]
StateMessage = Message[SamplerState]
