"""The thread spawner (TS): the queue of root threads, and their dispatch (G45 9155-9320).

Reads   QueuedThread records
Writes  thread dispatches

Objects wait in the queue until the pipeline is flushed or the queue is full. Root threads that have no children run as ordinary
dispatches, `most_roots` at a time; others are the roots of trees (trees.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from softgen.command import CommandStreamer
from softgen.media.front_end import dispatch_context
from softgen.media.queued import CHANNELS, Interface, QueuedThread
from softgen.media.vfe.payload import slots
from softgen.media.vfe.state import VLD, FrontEndState, VideoFrontEnd
from softgen.media.vfe.trees import VideoFrontEndTree
from softgen.media.vfe.vld.decoder import DecodedSlice
from softgen.media.vfe.vld.threads import dispatches
from softgen.threads.dispatch import DispatchContext, Scratch, ThreadDispatch
from softgen.threads.payload import PayloadList, check_length

MOST_QUEUED = 4 << 20  # bytes of payloads that wait


@dataclass
class ThreadSpawner:
    """The queue of root threads; a part of the hardware context, empty between submissions."""

    roots: list[QueuedThread] = field(default_factory=list)
    slices: list[DecodedSlice] = field(default_factory=list)  # in VLD mode
    state: FrontEndState | None = None  # that they were made with
    context: DispatchContext | None = None
    bytes: int = 0

    def queue(self, cs: CommandStreamer, state: FrontEndState, thread: QueuedThread) -> None:
        """Puts a root thread into the queue; a full queue is run."""
        self.roots.append(thread)
        self._queued(cs, state, len(thread.payload))

    def queue_slice(self, cs: CommandStreamer, state: FrontEndState, decoded: DecodedSlice) -> None:
        """The threads of a slice."""
        self.slices.append(decoded)
        self._queued(cs, state, decoded.data.nbytes)

    def expect(self, cs: CommandStreamer, state: FrontEndState) -> None:
        """A root thread will come with the next object or the next flush."""
        self._queued(cs, state, 0)

    @property
    def empty(self) -> bool:
        return self.context is None

    def _queued(self, cs: CommandStreamer, state: FrontEndState, size: int) -> None:
        if self.context is None:
            self.state, self.context = state, spawner_context(cs)
        self.bytes += size
        if self.bytes >= MOST_QUEUED:
            self.run(cs)
        else:
            cs.collected()

    def take_entry(self, cs: CommandStreamer, front: VideoFrontEnd, state: FrontEndState) -> int:
        """The next entry of the ring (G45 8740-8748)."""
        entry = front.entry
        front.entry = (entry + 1) % max(int(state.vfe.number_of_urb_entries), 1)
        return entry

    def run(self, cs: CommandStreamer) -> None:
        """Runs all threads of the queue."""
        if self.context is None or self.state is None:
            return
        roots, slices, state, context = self.roots, self.slices, self.state, replace(self.context, elapsed=cs.elapsed)
        self.roots, self.slices, self.state, self.context, self.bytes = [], [], None, None, 0
        for made in dispatches(context, slices):
            run_dispatch(cs, context, made)
        if state.children and state.mode != VLD or any(root.synchronised or root.fence for root in roots):
            VideoFrontEndTree(cs, state, context, roots).run()
        else:
            run_independent(cs, state, context, roots)

    def __deepcopy__(self, memo: object) -> ThreadSpawner:
        """A copy of the hardware context has nothing queued."""
        return ThreadSpawner()


def spawner_context(cs: CommandStreamer) -> DispatchContext:
    """The environment of media threads: kernels and samplers count from the general state base (G45 9544, 9590)."""
    context = dispatch_context(cs)
    general = cs.bases.get("general", 0)
    urb = ("urb", cs.state(VideoFrontEnd).urb)
    return replace(context, bases={**context.bases, "instruction": general, "dynamic": general}, unit_states=(*context.unit_states, urb))


def run_independent(cs: CommandStreamer, state: FrontEndState, context: DispatchContext, roots: list[QueuedThread]) -> None:
    """Root threads without children, in order, as many at a time as may be live."""
    for number in range(0, len(roots), state.most_roots):
        for kind, threads in same_kind(roots[number : number + state.most_roots]):
            run_dispatch(cs, context, dispatch(context, state, kind, threads))


def same_kind(roots: Iterable[QueuedThread]) -> Iterator[tuple[Interface, list[QueuedThread]]]:
    """Runs of threads with the same interface."""
    found: list[QueuedThread] = []
    for root in roots:
        if found and found[0].interface != root.interface:
            yield found[0].interface, found
            found = []
        found.append(root)
    if found:
        yield found[0].interface, found


def dispatch(context: DispatchContext, state: FrontEndState, kind: Interface, threads: list[QueuedThread]) -> ThreadDispatch:
    scratch = Scratch(int(state.vfe.scratch_space_base_pointer), state.scratch_bytes, state.most_roots)
    payload = PayloadList(tuple(thread.payload for thread in threads), slots(context.generation.number, scratch.base, scratch.size))
    check_length(payload.registers, "media thread")
    return ThreadDispatch(kernel=kind.kernel, control=kind.control, simd=CHANNELS, threads=len(threads), groups=1, payload=payload,
                          binding_table=kind.binding_table, samplers=kind.samplers, scratch=scratch, barrier=False,
                          system_routine=context.system_routine, unit_states=context.unit_states)  # fmt: skip


def run_dispatch(cs: CommandStreamer, context: DispatchContext, dispatch: ThreadDispatch) -> None:
    if cs.traced:
        kernel = context.address("instruction", dispatch.kernel)
        cs.trace("dispatches", f"kernel {kernel:#x}, {dispatch.groups} groups of {dispatch.threads} root threads, SIMD{dispatch.simd}")
    cs.run_threads(context, dispatch)
