"""Commands that the compute front end executes: loads of constants and descriptors, and the walker that starts threads.

Reads   MEDIA_VFE_STATE MEDIA_CURBE_LOAD MEDIA_INTERFACE_DESCRIPTOR_LOAD MEDIA_STATE_FLUSH GPGPU_WALKER
        GPGPU_DISPATCHDIMX GPGPU_DISPATCHDIMY GPGPU_DISPATCHDIMZ
Writes  the front end's state; dispatches, whose threads do the rest
"""

from __future__ import annotations

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.errors import Unsupported
from softgen.gpgpu import group, walker
from softgen.streamer.execute import Commands, Streamer, into

COMMANDS: Commands = {}
executes = into(COMMANDS)

DIMENSIONS = ("GPGPU_DISPATCHDIMX", "GPGPU_DISPATCHDIMY", "GPGPU_DISPATCHDIMZ")


def around(cs: Streamer) -> walker.Surroundings:
    return walker.Surroundings(cs.generation, cs.space, cs.context.bases, cs.held.front)


@executes("MEDIA_VFE_STATE")
def media_vfe_state(cs: Streamer, cmd: Record) -> None:
    cs.held.front.state = cmd


@executes("MEDIA_CURBE_LOAD")
def media_curbe_load(cs: Streamer, cmd: Record) -> None:
    walker.load_constants(around(cs), cmd)


@executes("MEDIA_INTERFACE_DESCRIPTOR_LOAD")
def media_interface_descriptor_load(cs: Streamer, cmd: Record) -> None:
    walker.load_descriptors(around(cs), cmd)


@executes("MEDIA_STATE_FLUSH")
def media_state_flush(cs: Streamer, cmd: Record) -> None:
    """Threads have ended when their walker is done: nothing is left to wait for (BDW 23688-23775)."""


@executes("GPGPU_WALKER")
def gpgpu_walker(cs: Streamer, cmd: Record) -> None:
    if cmd.predicate_enable:
        raise Unsupported("predicate_enable is not yet simulated")
    surroundings = around(cs)
    plan = walker.plan(surroundings, cmd, dimensions(cs) if cmd.indirect_parameter_enable else None)
    cs.counters.dispatches += 1
    cs.written = True
    for done in (cs.machine.groups or group.run)(surroundings, plan, cs.machine.spent):
        cs.counters.threads += done.threads
        cs.counters.instructions += done.instructions


def dimensions(cs: Streamer) -> tuple[int, int, int]:
    """The grid that registers say (BDW 21331-21341)."""
    offsets = (catalogue.layout(name, cs.generation.number).offset or 0 for name in DIMENSIONS)
    x, y, z = (cs.registers.read(cs.register(offset, relative=True)) for offset in offsets)
    return x, y, z
