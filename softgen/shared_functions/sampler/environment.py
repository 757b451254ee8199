"""What the lane programs of sampler messages need of their environment."""

from __future__ import annotations

from typing import Any, Protocol

from softgen.bits.record import Record
from softgen.lanes.value import Value
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.message import Message
from softgen.shared_functions.sampler.state import Samplers
from softgen.shared_functions.texture.operations import ImageEnvironment, TexelEnvironment


class SamplerEnvironment(TexelEnvironment, Protocol):
    """On both machines."""

    def sampler(self, index: int | Value, table: Value | None) -> Any:
        """The sampler of an index in the dispatch's table, or in the one at an offset that the message's header names; for `textured`."""
        ...

    def moved(self, offsets: list[Value]) -> list[Value]:
        """The texel offsets that the message's header adds to coordinates: none where they are known to be zero."""
        ...

    def scaled(self, x: Message[Any]) -> None:
        """Execute a message of the video scaler."""
        ...


    def check_block(self, x: Message[Any]) -> None:
        """Refuse what blocks of other kinds than unorm.py's need."""
        ...


class SamplerState(SamplerEnvironment, ImageEnvironment, Protocol):
    """With surface state, for messages that only the interpreter executes."""

    samplers: Samplers
    surfaces: Surfaces

    def media_state(self, index: int) -> Record:
        """The MEDIA_SURFACE_STATE of a binding table index."""
        ...


SamplerMessage = Message[SamplerEnvironment]
StateMessage = Message[SamplerState]
