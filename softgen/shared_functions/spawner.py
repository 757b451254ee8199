"""The thread spawner as a unit: threads that end release what they held (KBL 26068-26155).

In:  the last message of a thread. Out: nothing; the thread itself knows that it has ended. Spawning threads raises Unsupported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softgen.shared_functions.message import Message, answers
from softgen.shared_functions.unit import GroupBindings, Unit

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode


@answers("dereference_resource")
def dereference_resource(x: Message[Any]) -> None:
    """Resources of a thread are not shared here: there is nothing to release."""


class Spawner:
    """The environment of spawner messages, on both machines."""

    def begin(self, sender: object) -> None:
        """Nothing to prepare."""


def spawner(of: GroupBindings | MessageCode) -> Spawner:
    return Spawner()


UNIT = Unit(name="spawner", functions=("thread_spawner",), interpreter=spawner, compiled=spawner)
