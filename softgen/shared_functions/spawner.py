"""The thread spawner: threads that end give back what they held (KBL 26068-26155).

In:  the last message of a thread. Out: nothing; the thread itself knows that it has ended. Spawning threads raises Unsupported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from softgen.shared_functions import message
from softgen.shared_functions.exchange import Exchange, answers, plan

NAME = "thread_spawner"


class Sent(Protocol):
    sfid: int
    descriptor: int


class Spawner:
    def __init__(self, gen: float) -> None:
        self.gen = gen

    def handlers(self) -> dict[int, Callable[[object, Sent], None]]:
        return {sfid: self.handle for sfid, name in message.shared_functions(self.gen).items() if name == NAME}

    def handle(self, thread: object, sent: Sent) -> None:
        plan(sent.sfid, sent.descriptor, self.gen)  # complains about what is not simulated


@answers("dereference_resource")
def dereference_resource(x: Exchange) -> None:
    """The thread's resources are nobody else's here: nothing is given back."""
