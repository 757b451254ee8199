"""The message gateway: barriers of a thread group.

In:  barrier messages of threads. Out: when the last thread of the group has come, a function handed in tells all of them (compiled code
has its own way to, in its environment).
Everything else a gateway does raises Unsupported by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from softgen.shared_functions import message
from softgen.shared_functions.exchange import Exchange, answers, plan

NAME = "gateway"


class Sent(Protocol):
    sfid: int
    descriptor: int


class Gateway:
    """The gateway as one thread group sees it: `members` threads, and `notify`, which wakes them."""

    def __init__(self, gen: float, members: int, notify: Callable[[], None]) -> None:
        self.gen, self.members, self.notify = gen, members, notify
        self.arrived = 0

    def handlers(self) -> dict[int, Callable[[object, Sent], None]]:
        return {sfid: self.handle for sfid, name in message.shared_functions(self.gen).items() if name == NAME}

    def handle(self, thread: object, sent: Sent) -> None:
        plan(sent.sfid, sent.descriptor, self.gen)  # complains about what is not simulated
        self.barrier()

    def barrier(self) -> None:
        self.arrived += 1
        if self.arrived == self.members:
            self.arrived = 0
            self.notify()


@answers("barrier")
def barrier(x: Exchange) -> None:
    x.environment.barrier()
