"""Commands that the compute front end executes: loads of constants and descriptors, and those that start threads.

Reads   MEDIA_VFE_STATE MEDIA_CURBE_LOAD MEDIA_INTERFACE_DESCRIPTOR_LOAD MEDIA_STATE_FLUSH GPGPU_WALKER
        MEDIA_OBJECT MEDIA_OBJECT_PRT MEDIA_OBJECT_GRPID MEDIA_OBJECT_WALKER
        GPGPU_DISPATCHDIMX GPGPU_DISPATCHDIMY GPGPU_DISPATCHDIMZ MI_PREDICATE_RESULT
Writes  the front end's state; dispatches, whose threads do the rest
"""

from __future__ import annotations

from collections.abc import Iterable

from softgen.bits.record import Record
from softgen.command import Commands, CommandStreamer, registers_in
from softgen.errors import SoftgenError
from softgen.gpgpu import checks, group, media, walker
from softgen.gpgpu.media import Pending
from softgen.gpgpu.walker import FrontEnd

COMMANDS: Commands = {}
executes = registers_in(COMMANDS)

DIMENSIONS = ("GPGPU_DISPATCHDIMX", "GPGPU_DISPATCHDIMY", "GPGPU_DISPATCHDIMZ")


def around(cs: CommandStreamer) -> walker.Surroundings:
    return walker.Surroundings(cs.generation, cs.space, cs.bases, cs.state(FrontEnd), cs.warn)


def check(cs: CommandStreamer, broken: Iterable[str]) -> None:
    """Rules that a command breaks are told."""
    for text in broken:
        cs.warn(text)


@executes("MEDIA_VFE_STATE")
def media_vfe_state(cs: CommandStreamer, cmd: Record) -> None:
    finish_group(cs)
    check(cs, checks.front_end(cmd))
    cs.state(FrontEnd).state = cmd


@executes("MEDIA_CURBE_LOAD")
def media_curbe_load(cs: CommandStreamer, cmd: Record) -> None:
    finish_group(cs)
    check(cs, checks.constants(cs.state(FrontEnd), cmd, cs.generation.curbe_alignment))
    walker.load_constants(around(cs), cmd)


@executes("MEDIA_INTERFACE_DESCRIPTOR_LOAD")
def media_interface_descriptor_load(cs: CommandStreamer, cmd: Record) -> None:
    finish_group(cs)
    check(cs, checks.descriptors(cs.state(FrontEnd), cmd, cs.generation.curbe_alignment))
    walker.load_descriptors(around(cs), cmd)


@executes("MEDIA_STATE_FLUSH")
def media_state_flush(cs: CommandStreamer, cmd: Record) -> None:
    """Threads have ended when their command is done: nothing is left to wait for (BDW 23688-23775), but a group without an end."""
    finish_group(cs)
    cs.state(FrontEnd).used = False


@executes("GPGPU_WALKER")
def gpgpu_walker(cs: CommandStreamer, cmd: Record) -> None:
    finish_group(cs)
    if cmd.predicate_enable and not cs.predicate():
        return
    cs.counters.dispatches += 1
    check(cs, checks.walker(cmd, cs.generation.walker_data))
    surroundings = around(cs)
    run(cs, [walker.plan(surroundings, cmd, dimensions(cs) if cmd.indirect_parameter_enable else None)], surroundings)


@executes("MEDIA_OBJECT", "MEDIA_OBJECT_PRT")
def media_object(cs: CommandStreamer, cmd: Record) -> None:
    finish_group(cs)
    cs.counters.dispatches += 1
    run(cs, [media.single(around(cs), cmd)])


@executes("MEDIA_OBJECT_WALKER")
def media_object_walker(cs: CommandStreamer, cmd: Record) -> None:
    finish_group(cs)

    def look() -> None:
        if cs.timed_out():
            raise SoftgenError("time is up before the walk has ended")

    cs.counters.dispatches += 1
    run(cs, media.walked(around(cs), cmd, look))


@executes("MEDIA_OBJECT_GRPID")
def media_object_grpid(cs: CommandStreamer, cmd: Record) -> None:
    """Threads of a group begin together, when the last of them has come."""
    front = cs.state(FrontEnd)
    if isinstance(front.group, Pending) and (front.group.id, front.group.descriptor) != (cmd.groupid, cmd.interface_descriptor_offset):
        finish_group(cs)
    if not isinstance(front.group, Pending):
        front.group = Pending(cmd.groupid, cmd.interface_descriptor_offset, [])
        cs.counters.dispatches += 1
    front.group.commands.append(cmd)
    if cmd.end_of_thread_group:
        _run_group(cs)


def new_state() -> FrontEnd:
    return FrontEnd()


def finish(cs: CommandStreamer) -> None:
    """Threads of a group whose last thread has not come run all the same."""
    finish_group(cs)


def finish_group(cs: CommandStreamer) -> None:
    """A group that is not at its end when something else comes: its threads run all the same."""
    held = cs.state(FrontEnd).group
    if isinstance(held, Pending):
        cs.warn(f"MEDIA_OBJECT_GRPID: no thread of group {held.id:#x} has its end_of_thread_group set")
        _run_group(cs)


def _run_group(cs: CommandStreamer) -> None:
    held, cs.state(FrontEnd).group = cs.state(FrontEnd).group, None
    assert isinstance(held, Pending)
    run(cs, [media.grouped(around(cs), held)])


def run(cs: CommandStreamer, plans: Iterable[walker.Plan], surroundings: walker.Surroundings | None = None) -> None:
    surroundings = surroundings or around(cs)
    cs.memory_changed()
    cs.state(FrontEnd).used = True
    for plan in plans:
        cs.trace("dispatches", described(surroundings, plan))
        for done in (cs.run_groups or group.run)(surroundings, plan, cs.timed_out):
            cs.counters.threads += done.threads
            cs.counters.instructions += done.instructions


def described(surroundings: walker.Surroundings, plan: walker.Plan) -> str:
    """A dispatch in a line."""
    kernel = surroundings.address("instruction", plan.kernel)
    return f"kernel {kernel:#x}, {plan.count} groups of {plan.threads} threads, SIMD{plan.simd}, {plan.local_bytes} bytes of local memory"


def dimensions(cs: CommandStreamer) -> tuple[int, int, int]:
    """The grid that registers say (BDW 21331-21341)."""
    x, y, z = (cs.get(name) for name in DIMENSIONS)
    return x, y, z
