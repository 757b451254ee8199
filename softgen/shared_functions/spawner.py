"""The thread spawner as a unit: threads that end release what they held, and threads spawn others (G45 11875-11950, KBL 26068-26155).

In:  the last message of a thread, and spawn messages. Out: calls of the thread tree (unit.py) that runs the threads; threads of other
dispatches share nothing with each other, and spawn none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softgen.bits.units import GRF_BYTES
from softgen.errors import Unsupported
from softgen.lanes.types import u32
from softgen.shared_functions.message import Message, answers
from softgen.shared_functions.unit import GroupBindings, ThreadTree, Unit

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode


class Spawner:
    """The environment of spawner messages, on both machines; only the interpreter has a tree."""

    def __init__(self, tree: ThreadTree | None = None) -> None:
        self.tree, self.sender = tree, None

    def begin(self, sender: Any) -> None:
        self.sender = sender


def dwords(x: Message[Any]) -> list[int]:
    """The first register of a message, on the interpreter."""
    return [int(value) for value in x.raw(u32, 0, GRF_BYTES // u32.bytes).payload]


def without_tree(x: Message[Any]) -> Unsupported:
    """A message between threads that no tree holds together."""
    lengths = f"mlen {x.sent // GRF_BYTES}, rlen {x.answered // GRF_BYTES}"
    return Unsupported(f"{x.plan.function}: {x.plan.name}, {lengths}: not yet simulated for threads that may have no children")


@answers("dereference_resource")
def dereference_resource(x: Message[Spawner]) -> None:
    tree = x.environment.tree
    if tree is not None:
        root, free = not x.plan.fields.requester_type, not x.plan.fields.resource_select
        tree.dereference(x.environment.sender, dwords(x), root, free)


@answers("spawn_child_thread", "spawn_root_thread", compiled=False)
def spawn(x: Message[Spawner]) -> None:
    tree = x.environment.tree
    if tree is None:
        raise without_tree(x)
    tree.spawn(x.environment.sender, dwords(x), x.plan.name == "spawn_root_thread")


def spawner(group: GroupBindings) -> Spawner:
    return Spawner(group.tree)


def compiled(code: MessageCode) -> Spawner:
    return Spawner()


UNIT = Unit(name="spawner", functions=("thread_spawner",), interpreter=spawner, compiled=compiled)
