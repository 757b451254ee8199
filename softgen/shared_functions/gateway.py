"""The message gateway as a unit: barriers of a thread group, and messages between the threads of a tree.

In:  barrier messages of threads. Out: when the last thread of the group has arrived, all are notified: by `notify` on the interpreter, by
native code (eu/native.c) in compiled code.
In:  messages that open, close and write to registers of a thread. Out: calls of the thread tree (unit.py).
Other gateway messages raise Unsupported by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from softgen.lanes.types import u32
from softgen.shared_functions.message import Message, answers
from softgen.shared_functions.spawner import dwords, without_tree
from softgen.shared_functions.unit import GroupBindings, ThreadTree, Unit

if TYPE_CHECKING:
    from softgen.shared_functions.compiled import MessageCode

BARRIER = "native_barrier"  # an import of compiled code


class GatewayEnvironment(Protocol):
    def barrier(self) -> None:
        """The thread has arrived at the barrier of its group."""
        ...


@answers("barrier")
def barrier(x: Message[GatewayEnvironment]) -> None:
    x.environment.barrier()


@answers("open_gateway", "close_gateway", "forward_message", compiled=False)
def between_threads(x: Message[Gateway]) -> None:
    """A thread opens registers for others, closes them, or writes to those of another one; the acknowledgement is a zero."""
    tree, sender = x.environment.tree, x.environment.sender
    if tree is None:
        raise without_tree(x)
    if x.plan.name == "open_gateway":
        tree.open_gateway(sender, dwords(x))
    elif x.plan.name == "close_gateway":
        tree.close_gateway(sender)
    else:
        tree.forward(sender, dwords(x), bool(x.plan.fields.notify))
    if x.answered:
        x.give(x.m.constant(u32, 0, x.answered // u32.bytes), 0, x.any(x.answered // u32.bytes))


class Gateway:
    """The gateway on the interpreter: `notify` wakes the `members` threads of a group at a barrier."""

    def __init__(self, members: int, notify: Callable[[], None], tree: ThreadTree | None = None) -> None:
        self.members, self.notify, self.tree = members, notify, tree
        self.arrived = 0
        self.sender: Any = None

    def begin(self, sender: object) -> None:
        self.sender = sender

    def barrier(self) -> None:
        self.arrived += 1
        if self.arrived == self.members:
            self.arrived = 0
            self.notify()


class CompiledGateway:
    """The barrier in compiled code."""

    def __init__(self, code: MessageCode) -> None:
        self.code = code

    def barrier(self) -> None:
        self.code.m.call_native(BARRIER, self.code.context)


def gateway(group: GroupBindings) -> Gateway:
    return Gateway(group.threads, group.notify, group.tree)


UNIT = Unit(name="gateway", functions=("gateway",), interpreter=gateway, compiled=CompiledGateway)
