"""Commands of the GPGPU pipeline.

Reads   GPGPU_WALKER GPGPU_DISPATCHDIMX GPGPU_DISPATCHDIMY GPGPU_DISPATCHDIMZ MI_PREDICATE_RESULT
Writes  a thread dispatch
"""

from __future__ import annotations

from collections.abc import Callable

from softgen.bits.record import Record
from softgen.command import Commands, CommandStreamer, FieldPlace, PreparedCommand, Preparers, nothing_collected, registers_in
from softgen.gpgpu import walker
from softgen.gpgpu.plans import PreparedWalker, WalkerPlans
from softgen.media import commands as media
from softgen.media.front_end import FrontEnd, dispatch_context, optional

COMMANDS: Commands = {}
PREPARED: Preparers = {}
handles, prepares = registers_in(COMMANDS), registers_in(PREPARED)


def new_state() -> WalkerPlans:
    """Plans of dispatches; the front end's state is part of the media pipeline's."""
    return WalkerPlans()


finish = nothing_collected  # a walker's threads have ended when its command is done


@handles("GPGPU_WALKER")
def gpgpu_walker(cs: CommandStreamer, cmd: Record) -> None:
    front = media.finished(cs)
    if cmd.predicate_enable and not cs.predicate():
        return
    cs.counters.dispatches += 1
    media.warn_of(cs, walker.broken_rules(cmd, cs.generation.walker_data, front.watermark))
    front.watermark = False
    grid = dimensions(cs) if cmd.indirect_parameter_enable else None
    if not walker.starts_groups(cmd, grid):
        return
    if grid is not None:
        context = dispatch_context(cs)
        dispatch = walker.dispatch(context, front, cmd, grid)
    else:
        context, dispatch = cs.state(WalkerPlans).dispatch(cs, front, cmd)
    media.run_dispatch(cs, front, context, dispatch)


@prepares("GPGPU_WALKER")
def prepare_walker(cs: CommandStreamer, cmd: Record, place: Callable[[str], FieldPlace]) -> PreparedCommand | None:
    """A walker that fetches its data itself, from another place each time."""
    fetches = optional(cmd, "indirect_data_length")
    if cmd.predicate_enable or cmd.indirect_parameter_enable or not fetches or not walker.starts_groups(cmd):
        return None
    if any(walker.broken_rules(cmd, cs.generation.walker_data)):
        return None
    front, prepared = cs.state(FrontEnd), PreparedWalker(cmd, place("indirect_data_start_address"))

    def run(cs: CommandStreamer, batch: int) -> None:
        cs.counters.dispatches += 1
        if front.watermark:
            media.warn_of(cs, walker.broken_rules(cmd, cs.generation.walker_data, True))
            front.watermark = False
        context, dispatch = prepared.dispatch(cs, front, batch)
        front.used = True
        cs.run_threads(context, dispatch)  # a batch that is traced was not prepared

    return run


def dimensions(cs: CommandStreamer) -> tuple[int, int, int]:
    """The grid's dimensions in registers (BDW 21331-21341)."""
    return cs.get("GPGPU_DISPATCHDIMX"), cs.get("GPGPU_DISPATCHDIMY"), cs.get("GPGPU_DISPATCHDIMZ")
