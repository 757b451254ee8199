"""QueuedThread: a root thread of the media pipeline that waits for its dispatch."""

from __future__ import annotations

from typing import NamedTuple

from softgen.media.walk import BlockPosition

CHANNELS = 32  # all are enabled: instructions of 32 words have no others


class Interface(NamedTuple):
    """What threads of an interface descriptor have in common."""

    kernel: int  # from the general state base on Gen4.5, later from the instruction base
    control: tuple[int, ...]  # cr0
    binding_table: int
    samplers: int


class QueuedThread(NamedTuple):
    """A root thread that waits in the queue of the thread spawner."""

    interface: Interface
    header: bytes  # r0, but for what tells live threads apart
    constants: bytes
    data: bytes
    handle: int = 0  # of its entry of the URB
    synchronised: bool = False  # it waits for a message that spawns a root thread
    fence: bool = False  # roots behind it wait for a message that spawns a thread
    children: bool = False  # it may spawn threads; its entry is taken until a message releases it
    position: BlockPosition | None = None
    before: tuple[BlockPosition, ...] = ()  # of live threads that it waits for (scoreboard)

    @property
    def payload(self) -> bytes:
        return self.header + self.constants + self.data
