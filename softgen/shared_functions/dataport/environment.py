"""What the lane programs of data port messages need of their environment."""

from __future__ import annotations

from typing import Any, Protocol

from softgen.lanes.value import Region, Value
from softgen.memory.space import Space
from softgen.shared_functions.dataport.watched import AccessWatch
from softgen.shared_functions.message import Message
from softgen.shared_functions.texture.operations import ImageEnvironment, TexelEnvironment


class DataPortEnvironment(TexelEnvironment, Protocol):
    """Memory as messages name it, on both machines."""

    def bound(self, index: Any) -> Region:
        """The buffer of a binding table index: a number, or a lane in compiled code."""
        ...

    def within(self, index: Any, offsets: Value, mask: Value, what: str) -> None:
        """Called before `bound`, so that the first access outside a buffer can be reported. `what` is the message's name."""
        ...

    def bindless(self, offset: Any) -> Region:
        """The buffer whose state is at an offset from the bindless surface base."""
        ...

    def general(self, base: Value | None = None) -> Region:
        """Graphics memory from the general state base on, or from `base` (one lane of u64) relative to it. Addresses wrap."""
        ...

    def addresses(self) -> Region:
        """Graphics memory by 64-bit addresses in canonical form."""
        ...

    def local(self, plain: bool = False) -> Region:
        """Shared local memory of the thread's group. `plain`: for loads and stores, which cannot fault."""
        ...

    def media_block(self, x: Message[Any], writes: bool) -> None:
        """Execute a message that reads or writes a media block."""
        ...


class DataPortState(DataPortEnvironment, ImageEnvironment, Protocol):
    """Surface state, for messages that only the interpreter executes."""

    space: Space
    watch: AccessWatch | None  # who is told of accesses
    sender: object  # the thread

    def counter(self, index: int) -> Region:
        """The counter of a surface."""
        ...

    def lines(self, index: int) -> tuple[int, int]:
        """Whether a surface counts every other line, and from which on."""
        ...

    def boundary(self, index: int) -> int:
        """The surface's media boundary pixel mode."""
        ...

    def instructions(self) -> int:
        """The instruction base address."""
        ...


DataPortMessage = Message[DataPortEnvironment]
StateMessage = Message[DataPortState]
