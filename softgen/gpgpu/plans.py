"""Walker plans: what dispatches of a kernel have in common, kept from one GPGPU_WALKER to the next.

Reads   GPGPU_WALKER INTERFACE_DESCRIPTOR_DATA
Writes  a ThreadDispatch

Programs dispatch a kernel over and over. From one walker to the next drivers change the place of the constants, what these hold, and the
place of the binding table; a plan has all the rest. It is made from the first dispatch and found by the fields of the commands that do not
change. State that other commands set is compared by their marks: equal marks mean that none of them came in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from softgen.bits.record import Record
from softgen.command import CommandStreamer, MarkedLatched
from softgen.gpgpu import walker
from softgen.media import front_end
from softgen.media.front_end import FrontEnd
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.payload import TemplatePayload

MOST_PLANS = 64
CHANGING = {"indirect_data_start_address", "binding_table_pointer"}


class WalkerPlan(NamedTuple):
    """A dispatch, and the state that it was made from."""

    context: DispatchContext
    dispatch: ThreadDispatch
    marks: bytes  # of latched commands
    bases: Mapping[str, int]
    state: Record | None  # MEDIA_VFE_STATE

    def unchanged(self, cs: CommandStreamer, front: FrontEnd, marks: bytes) -> bool:
        """Whether no command has set any of that state since."""
        return self.marks == marks and self.bases is cs.bases and self.state is front.state and self.context.space is cs.space

    def same(self, context: DispatchContext, front: FrontEnd) -> bool:
        """Whether commands have set it to the same values."""
        held = self.context
        return (context.space is held.space and context.bases == held.bases and context.system_routine == held.system_routine
                and context.unit_states == held.unit_states and self.state == front.state)  # fmt: skip


class WalkerPlans:
    """The plans of a hardware context."""

    def __init__(self) -> None:
        self._plans: dict[Any, WalkerPlan] = {}

    def __deepcopy__(self, memo: object) -> WalkerPlans:
        """A copy of the hardware context makes its own."""
        return WalkerPlans()

    def dispatch(self, cs: CommandStreamer, front: FrontEnd, cmd: Record) -> tuple[DispatchContext, ThreadDispatch]:
        """The dispatch of a walker that has its dimensions in the command."""
        latched, descriptor = cs.latched, front_end.descriptor(cs.generation.number, front, cmd.interface_descriptor_offset, walker.NAME)
        marks = latched.marks() if isinstance(latched, MarkedLatched) else b""
        key = unchanging(type(cmd))(cmd), unchanging(type(descriptor))(descriptor)
        plan = self._plans.get(key)
        if plan is not None and marks and plan.unchanged(cs, front, marks):
            context = plan.context.again(cs.warn, cs.elapsed)
        else:
            context = front_end.dispatch_context(cs)
            if plan is None or not plan.same(context, front):
                return context, self._made(key, context, front, cmd, marks, cs.bases)
            self._plans[key] = plan._replace(context=context, marks=marks, bases=cs.bases, state=front.state)
        return context, _again(plan.dispatch, context, front, cmd, descriptor)

    def _made(self, key: Any, context: DispatchContext, front: FrontEnd, cmd: Record, marks: bytes,
              bases: Mapping[str, int]) -> ThreadDispatch:  # fmt: skip
        made = walker.dispatch(context, front, cmd, kind=object())
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        self._plans[key] = WalkerPlan(context, made, marks, bases, front.state)
        return made


def _again(dispatch: ThreadDispatch, context: DispatchContext, front: FrontEnd, cmd: Record, descriptor: Record) -> ThreadDispatch:
    """Another dispatch of a plan: with its own constants and binding table."""
    assert isinstance(dispatch.payload, TemplatePayload)
    table, header = front_end.binding_table(context, descriptor), dispatch.payload.header
    if table != dispatch.binding_table:
        header = front_end.with_table(context.generation.number, walker.HEADER, header, table)
    return dispatch.again(header, walker.constants(context, front, cmd, descriptor, dispatch.threads), table)


@cache
def unchanging(kind: type[Record]) -> itemgetter[Any]:
    """The fields of a command or structure by which plans are found."""
    return itemgetter(*(number for number, name in enumerate(kind._fields) if name not in CHANGING))
