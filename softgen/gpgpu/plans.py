"""Walker plans: what dispatches of a kernel have in common, kept from one GPGPU_WALKER to the next.

Reads   GPGPU_WALKER INTERFACE_DESCRIPTOR_DATA
Writes  a ThreadDispatch

Programs dispatch a kernel over and over. From one walker to the next drivers change the place of the constants, what these hold, and the
place of the binding table; a plan has all the rest. It is made from the first dispatch and found by the fields of the commands that do not
change. State that other commands set is the same where none of them came in between.
"""

from __future__ import annotations

from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.command import CommandStreamer, FieldPlace, MarkedLatched
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
    latched: Any  # MarkedLatched
    latches: int  # of these, by then
    state: Record | None  # MEDIA_VFE_STATE

    def unchanged(self, cs: CommandStreamer, front: FrontEnd) -> bool:
        """Whether no command has set any of that state since."""
        held = self.latched
        return self.latches == held.latches and held is cs.latched and self.state is front.state and self.context.space is cs.space

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
        descriptor = front_end.descriptor(cs.generation.number, front, cmd.interface_descriptor_offset, walker.NAME)
        key = _key(cmd, descriptor)
        plan = self._plans.get(key)
        if plan is not None and plan.unchanged(cs, front):
            context = plan.context.again(cs.warn, cs.elapsed)
        else:
            context = front_end.dispatch_context(cs)
            if plan is None or not plan.same(context, front):
                return context, self._made(key, context, front, cmd, marked(cs))
            latched = marked(cs)
            self._plans[key] = plan._replace(context=context, latched=latched, latches=latched.latches, state=front.state)
        return context, _again(plan.dispatch, context, front, cmd, descriptor)

    def find(self, gen: float, front: FrontEnd, cmd: Record) -> WalkerPlan:
        """The plan of the walker that was dispatched last."""
        return self._plans[_key(cmd, front_end.descriptor(gen, front, cmd.interface_descriptor_offset, walker.NAME))]

    def _made(self, key: Any, context: DispatchContext, front: FrontEnd, cmd: Record, latched: MarkedLatched) -> ThreadDispatch:
        made = walker.dispatch(context, front, cmd, kind=object())
        if len(self._plans) >= MOST_PLANS:
            self._plans.clear()
        self._plans[key] = WalkerPlan(context, made, latched, latched.latches, front.state)
        return made


class KeptPlan(NamedTuple):
    """A plan with the interface descriptor that it was used with, of which only the binding table's place may differ."""

    plan: WalkerPlan
    context: DispatchContext  # of its dispatches, of which there is one at a time
    data: int  # the base address of constants, and the mask of addresses
    wrap: int
    size: int  # bytes of the descriptor
    fixed: int  # bits of it that are compared, and their values
    value: int
    shift: int  # of the binding table in it
    bits: int
    header: int  # of the payload, without the binding table,
    place: int  # and where that is
    mask: int


class PreparedWalker:
    """A walker of a batch that comes again (streamer/prepared.py), which fetches its constants from another place each time.

    Its plan is kept with the interface descriptor. Anything else that is not as it was leads through WalkerPlans."""

    def __init__(self, cmd: Record, data: FieldPlace) -> None:
        self.cmd, self.length = cmd, int(cmd.indirect_data_length)
        self.shift, self.mask = data
        self._kept: KeptPlan | None = None

    def dispatch(self, cs: CommandStreamer, front: FrontEnd, batch: int) -> tuple[DispatchContext, ThreadDispatch]:
        kept, offset = self._kept, batch >> self.shift & self.mask
        if kept is not None:
            plan, held = kept.plan, int.from_bytes(front.descriptors, "little")
            if held & kept.fixed == kept.value and len(front.descriptors) == kept.size and plan.unchanged(cs, front):
                kept.context.elapsed = cs.elapsed
                data, table = cs.space.read(kept.data + offset & kept.wrap, self.length), held >> kept.shift & kept.bits
                header = (kept.header | (table & kept.mask) << kept.place).to_bytes(GRF_BYTES, "little")
                return kept.context, plan.dispatch.again(header, data, table)
        at = self.cmd._fields.index("indirect_data_start_address")
        cmd, plans = type(self.cmd)((*self.cmd[:at], offset, *self.cmd[at + 1 :])), cs.state(WalkerPlans)
        context, dispatch = plans.dispatch(cs, front, cmd)
        self._kept = self._keep(context, front, plans.find(cs.generation.number, front, cmd))
        return context, dispatch

    def _keep(self, context: DispatchContext, front: FrontEnd, plan: WalkerPlan) -> KeptPlan | None:
        """The plan that was used, if the next dispatch may use it without a look at the descriptor's fields; None where it may not."""
        gen = context.generation.number
        layout, size, payload = catalogue.layout("INTERFACE_DESCRIPTOR_DATA", gen), len(front.descriptors), plan.dispatch.payload
        assert isinstance(payload, TemplatePayload)
        needed = payload.common + payload.own * plan.dispatch.threads
        if size != 4 * layout.dwords or front_end.POOL in plan.context.bases or needed > self.length:
            return None
        pointer, (place, mask) = layout.field("binding_table_pointer"), front_end.table_place(gen, walker.HEADER)
        fixed = ~pointer.mask
        held, header = (int.from_bytes(data, "little") for data in (front.descriptors, payload.header))
        return KeptPlan(plan, context, context.address("indirect", 0), (1 << context.space.bits) - 1, size, fixed, held & fixed,
                        *FieldPlace.of(pointer), header & ~(mask << place), place, mask)  # fmt: skip


def _again(dispatch: ThreadDispatch, context: DispatchContext, front: FrontEnd, cmd: Record, descriptor: Record) -> ThreadDispatch:
    """Another dispatch of a plan: with its own constants and binding table."""
    assert isinstance(dispatch.payload, TemplatePayload)
    table, header = front_end.binding_table(context, descriptor), dispatch.payload.header
    if table != dispatch.binding_table:
        header = front_end.with_table(context.generation.number, walker.HEADER, header, table)
    return dispatch.again(header, walker.constants(context, front, cmd, descriptor, dispatch.threads), table)


def marked(cs: CommandStreamer) -> MarkedLatched:
    """The latched commands of a streamer, which it counts."""
    assert isinstance(cs.latched, MarkedLatched)
    return cs.latched


def _key(cmd: Record, descriptor: Record) -> Any:
    return unchanging(type(cmd))(cmd), unchanging(type(descriptor))(descriptor)


@cache
def unchanging(kind: type[Record]) -> itemgetter[Any]:
    """The fields of a command or structure by which plans are found."""
    return itemgetter(*(number for number, name in enumerate(kind._fields) if name not in CHANGING))
