"""Commands of the GPGPU pipeline.

Reads   GPGPU_WALKER GPGPU_DISPATCHDIMX GPGPU_DISPATCHDIMY GPGPU_DISPATCHDIMZ MI_PREDICATE_RESULT
Writes  a thread dispatch
"""

from __future__ import annotations

from softgen.bits.record import Record
from softgen.command import Commands, CommandStreamer, registers_in
from softgen.gpgpu import walker
from softgen.media import commands as media
from softgen.media.front_end import FrontEnd, dispatch_context

COMMANDS: Commands = {}
handles = registers_in(COMMANDS)


def new_state() -> None:
    """No state of its own: the front end is part of the media pipeline's."""


def finish(cs: CommandStreamer) -> None:
    """Nothing to do: a walker's threads have ended when its command is done."""


@handles("GPGPU_WALKER")
def gpgpu_walker(cs: CommandStreamer, cmd: Record) -> None:
    media.finish(cs)
    if cmd.predicate_enable and not cs.predicate():
        return
    cs.counters.dispatches += 1
    front = cs.state(FrontEnd)
    media.warn_of(cs, walker.broken_rules(cmd, cs.generation.walker_data, front.watermark))
    front.watermark = False
    context = dispatch_context(cs)
    grid = dimensions(cs) if cmd.indirect_parameter_enable else None
    media.run_threads(cs, context, [walker.dispatch(context, front, cmd, grid)])


def dimensions(cs: CommandStreamer) -> tuple[int, int, int]:
    """The grid's dimensions in registers (BDW 21331-21341)."""
    return cs.get("GPGPU_DISPATCHDIMX"), cs.get("GPGPU_DISPATCHDIMY"), cs.get("GPGPU_DISPATCHDIMZ")
