"""Commands of the media pipeline: loads of constants and descriptors, and those that start root threads.

Reads   MEDIA_STATE_POINTERS MEDIA_VFE_STATE MEDIA_CURBE_LOAD MEDIA_INTERFACE_DESCRIPTOR_LOAD MEDIA_STATE_FLUSH
        MEDIA_OBJECT MEDIA_OBJECT_EX MEDIA_OBJECT_PRT MEDIA_OBJECT_GRPID MEDIA_OBJECT_WALKER
Writes  the front end's state; thread dispatches
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from softgen.bits.generation import Generation, most_of
from softgen.bits.record import Record
from softgen.command import ActorRow, Actors, Commands, CommandStreamer, FieldPlace, PreparedCommand, Preparers, registers_in
from softgen.errors import SoftgenError
from softgen.media import checks, front_end, objects
from softgen.media.children import RootQueue
from softgen.media.front_end import FrontEnd, ThreadGroup, dispatch_context
from softgen.media.object_actor import ObjectRun, object_actor
from softgen.media.vfe import objects as vfe_objects
from softgen.media.vfe.spawner import ThreadSpawner
from softgen.media.vfe.state import VideoFrontEnd
from softgen.threads.dispatch import KIB, DispatchContext, ThreadDispatch

COMMANDS: Commands = {}
PREPARED: Preparers = {}
handles, prepares = registers_in(COMMANDS), registers_in(PREPARED)


def new_state() -> FrontEnd:
    """The front end of a new hardware context."""
    return FrontEnd()


def finish(cs: CommandStreamer) -> None:
    """Starts a thread group that lacks its end, whose threads run nevertheless, and the root threads that wait in the spawner's queue."""
    finished(cs)


def finished(cs: CommandStreamer) -> FrontEnd:
    """The front end, after `finish`."""
    front = finished_group(cs)
    cs.state(ObjectRun).run(cs, front)
    if cs.generation.unit_state:
        vfe_objects.finish(cs)
    else:
        cs.state(RootQueue).run(cs, front)
    return front


def finished_group(cs: CommandStreamer) -> FrontEnd:
    """The front end, after a thread group that lacks its end."""
    front = cs.state(FrontEnd)
    if front.group is not None:
        cs.warn(f"no MEDIA_OBJECT_GRPID of group {front.group.id:#x} has its end_of_thread_group set")
        _run_group(cs, front)
    return front


def warn_of(cs: CommandStreamer, broken: Iterable[str]) -> None:
    """Reports the rules that a command breaks."""
    for text in broken:
        cs.warn(text)


@handles("MEDIA_VFE_STATE")
def media_vfe_state(cs: CommandStreamer, cmd: Record) -> None:
    finish(cs)
    warn_of(cs, checks.front_end(cmd, most_of(cs.generation, "urb_kib") * KIB))
    cs.latch()
    cs.state(FrontEnd).state = cmd


@handles("MEDIA_CURBE_LOAD")
def media_curbe_load(cs: CommandStreamer, cmd: Record) -> None:
    front = finished(cs)
    warn_of(cs, checks.constants(front, cmd, cs.generation.curbe_alignment))
    front_end.load_constants(cs, front, cmd)


@handles("MEDIA_INTERFACE_DESCRIPTOR_LOAD")
def media_interface_descriptor_load(cs: CommandStreamer, cmd: Record) -> None:
    front = finished(cs)
    if broken := checks.descriptors(front, cmd, cs.generation.curbe_alignment):
        warn_of(cs, broken)
    front_end.load_descriptors(cs, front, cmd)


@prepares("MEDIA_INTERFACE_DESCRIPTOR_LOAD")
def prepare_interface_descriptor_load(cs: CommandStreamer, cmd: Record, place: Callable[[str], FieldPlace]) -> PreparedCommand | None:
    """Drivers write interface descriptors to another place each time."""
    length, alignment = cmd.interface_descriptor_total_length, cs.generation.curbe_alignment
    if checks.descriptor_load(FrontEnd(), length, 0, alignment):
        return None
    front, (shift, mask) = cs.state(FrontEnd), place("interface_descriptor_data_start_address")
    space, wrap = cs.space, (1 << cs.space.bits) - 1  # a streamer has one, and prepares batches for itself

    def run(cs: CommandStreamer, batch: int) -> None:
        offset = batch >> shift & mask
        if front.used or offset % alignment:
            warn_of(cs, checks.descriptor_load(front, length, offset, alignment))
        front.descriptors = space.read(cs.bases.get("dynamic", 0) + offset & wrap, length)

    return run


@handles("MEDIA_STATE_FLUSH")
def media_state_flush(cs: CommandStreamer, cmd: Record) -> None:
    """Threads have ended when their command is done: there is nothing to wait for (BDW 23688-23775) but a group without an end."""
    front = finished(cs)
    front.used, front.watermark = False, bool(getattr(cmd, "watermark_required", 0))
    cs.state(ObjectRun).learn_flush(cs, front.watermark)


@prepares("MEDIA_STATE_FLUSH")
def prepare_state_flush(cs: CommandStreamer, cmd: Record, place: Callable[[str], FieldPlace]) -> PreparedCommand | None:
    front, watermark = cs.state(FrontEnd), bool(getattr(cmd, "watermark_required", 0))

    def run(cs: CommandStreamer, batch: int) -> None:
        front.used, front.watermark = False, watermark

    return run


@handles("MEDIA_STATE_POINTERS")
def media_state_pointers(cs: CommandStreamer, cmd: Record) -> None:
    """Latched; the state is read for the next object (G45 8736)."""
    if not cs.state(ThreadSpawner).empty:
        cs.warn("the media state changes after objects without a flush (G45 8736)")
    finish(cs)
    cs.latch()
    cs.state(VideoFrontEnd).change_state()


@handles("MEDIA_OBJECT_EX")
def media_object_ex(cs: CommandStreamer, cmd: Record) -> None:
    vfe_objects.start(cs, "MEDIA_OBJECT_EX", cmd)


@handles("MEDIA_OBJECT")
def media_object(cs: CommandStreamer, cmd: Record) -> None:
    _object(cs, "MEDIA_OBJECT", cmd)


@handles("MEDIA_OBJECT_PRT")
def media_object_prt(cs: CommandStreamer, cmd: Record) -> None:
    _object(cs, "MEDIA_OBJECT_PRT", cmd)


def _object(cs: CommandStreamer, name: str, cmd: Record) -> None:
    if cs.generation.unit_state:
        vfe_objects.start(cs, name, cmd)
        return
    queue, front = cs.state(RootQueue), finished_group(cs)
    if queue.takes(cmd):
        queue.queue(cs, front, name, cmd)
        return
    cs.counters.dispatches += 1
    context = dispatch_context(cs)
    if front.state is None and cs.generation.stage_rules:
        cs.warn("a media object before any MEDIA_VFE_STATE (ICL 1549-1562)")
    run_dispatch(cs, front, context, objects.single(context, front, cmd))
    if name == "MEDIA_OBJECT":
        cs.state(ObjectRun).learn(cs, front, cmd)


def _by_commands(generation: Generation) -> bool:
    """Whether commands load the front end's state."""
    return not generation.unit_state


ACTORS: Actors = {"MEDIA_OBJECT": ActorRow(media_object, lambda cs: object_actor("object_act"), _by_commands),
                  "MEDIA_STATE_FLUSH": ActorRow(media_state_flush, lambda cs: object_actor("object_flush_act"), _by_commands)}  # fmt: skip


@handles("MEDIA_OBJECT_WALKER")
def media_object_walker(cs: CommandStreamer, cmd: Record) -> None:
    finish(cs)

    def poll() -> None:
        if cs.timed_out():
            raise SoftgenError("time is up before the walk has ended")

    cs.counters.dispatches += 1
    front, context = cs.state(FrontEnd), dispatch_context(cs)
    for dispatch in objects.walked(context, front, cmd, poll):
        run_dispatch(cs, front, context, dispatch)


@handles("MEDIA_OBJECT_GRPID")
def media_object_grpid(cs: CommandStreamer, cmd: Record) -> None:
    """Threads of a group start together, when the last of them has arrived."""
    front = cs.state(FrontEnd)
    if front.group is not None and (front.group.id, front.group.descriptor) != (cmd.groupid, cmd.interface_descriptor_offset):
        finish(cs)
    if front.group is None:
        front.group = ThreadGroup(cmd.groupid, cmd.interface_descriptor_offset)
        cs.counters.dispatches += 1
    front.group.commands.append(cmd)
    cs.collected()
    if cmd.end_of_thread_group:
        _run_group(cs, front)


def _run_group(cs: CommandStreamer, front: FrontEnd) -> None:
    group, front.group = front.group, None
    assert group is not None
    context = dispatch_context(cs)
    run_dispatch(cs, front, context, objects.grouped(context, front, group))


def run_dispatch(cs: CommandStreamer, front: FrontEnd, context: DispatchContext, dispatch: ThreadDispatch) -> None:
    """Runs a dispatch of the front end."""
    front.used = True
    if cs.traced:
        cs.trace("dispatches", described(context, dispatch))
    cs.run_threads(context, dispatch)


def described(context: DispatchContext, dispatch: ThreadDispatch) -> str:
    """A dispatch in one line of trace."""
    kernel = context.address("instruction", dispatch.kernel)
    return (f"kernel {kernel:#x}, {dispatch.groups} groups of {dispatch.threads} threads, SIMD{dispatch.simd}, "
            f"{dispatch.local_bytes} bytes of local memory")  # fmt: skip
