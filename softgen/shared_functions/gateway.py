"""The message gateway as a unit: barriers of a thread group.

In:  barrier messages of threads. Out: when the last thread of the group has arrived, all are notified: by `notify` on the interpreter, by
native code (eu/native.c) in compiled code. Other gateway messages raise Unsupported by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from softgen.shared_functions.message import Message, answers
from softgen.shared_functions.unit import GroupBindings, Unit

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


class Gateway:
    """The barrier of a thread group on the interpreter: `notify` wakes its `members` threads."""

    def __init__(self, members: int, notify: Callable[[], None]) -> None:
        self.members, self.notify = members, notify
        self.arrived = 0

    def begin(self, sender: object) -> None:
        """Nothing to prepare."""

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
    return Gateway(group.threads, group.notify)


UNIT = Unit(name="gateway", functions=("gateway",), interpreter=gateway, compiled=CompiledGateway)
