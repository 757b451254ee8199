"""Root threads that may spawn others, from Gen7 on: their queue, the entries of the URB that they get, and what children start with.

Reads   MEDIA_OBJECT MEDIA_OBJECT_PRT MEDIA_VFE_STATE INTERFACE_DESCRIPTOR_DATA THREAD_SPAWN_PAYLOAD
Writes  trees of threads (trees.py)

Objects wait in the queue until the pipeline is flushed, from the first on that may have children, waits for a message that spawns a root
thread, or is a persistent thread with a fence. All others run at once (objects.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from softgen.bits.generation import most_of
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.command import CommandStreamer
from softgen.errors import DecodeError
from softgen.media import front_end, objects
from softgen.media.front_end import FrontEnd, dispatch_context, optional
from softgen.media.queued import Interface, QueuedThread
from softgen.media.trees import ThreadTreeRun
from softgen.shared_functions.urb.memory import ROW, UrbMemory
from softgen.threads.dispatch import KIB, DispatchContext, Scratch
from softgen.threads.payload import SlotField

STARTS_TREE = ("children_present", "thread_synchronization", "prt_fence_needed")
BYPASS = "bypass_gateway_control"
NO_URB = UrbMemory(np.zeros(0, np.uint8))


@dataclass
class RootQueue:
    """Root threads that wait for the next flush; a part of the hardware context, empty between submissions."""

    roots: list[QueuedThread] = field(default_factory=list)
    slots: tuple[SlotField, ...] = ()
    context: DispatchContext | None = None
    scratch: Scratch | None = None
    state: Record | None = None  # MEDIA_VFE_STATE that `urb` was made for
    urb: UrbMemory = NO_URB
    entry: int = 0  # taken next

    def takes(self, cmd: Record) -> bool:
        """Whether the thread of a command waits here."""
        return bool(self.roots) or any(optional(cmd, name) for name in STARTS_TREE)

    def change_state(self, cs: CommandStreamer, state: Record | None) -> None:
        """Entries of the URB as MEDIA_VFE_STATE says (BDW 23858, 23934)."""
        if state is None:
            raise DecodeError("a thread that may have children, or waits for another one, before any MEDIA_VFE_STATE")
        size, limit = int(state.number_of_urb_entries) * entry_rows(state) * ROW, most_of(cs.generation, "urb_kib") * KIB
        if size > limit:
            raise DecodeError(f"MEDIA_VFE_STATE: {state.number_of_urb_entries} entries of the URB take {size:#x} bytes, it has {limit:#x}")
        self.state, self.urb, self.entry = state, UrbMemory(np.zeros(size, np.uint8)), 0

    def queue(self, cs: CommandStreamer, front: FrontEnd, name: str, cmd: Record) -> None:
        """Put the thread of a command into the queue."""
        if self.state is not front.state or self.state is None:
            self.change_state(cs, front.state)
        assert self.state is not None
        entries = int(self.state.number_of_urb_entries)
        if not entries and optional(cmd, "children_present"):
            raise DecodeError("children_present 1: an entry of the URB is needed, MEDIA_VFE_STATE gives none")
        context, handle = dispatch_context(cs), self.entry * entry_rows(self.state)
        self.entry = (self.entry + 1) % max(entries, 1)
        if not self.roots:
            self.context = replace(context, unit_states=(*context.unit_states, ("urb", self.urb)))
        root, self.slots, self.scratch = objects.queued(context, front, cmd, handle)
        self.roots.append(root)
        front.used = True
        cs.counters.dispatches += 1
        cs.collected()

    def run(self, cs: CommandStreamer, front: FrontEnd) -> None:
        """Runs all threads of the queue, and their children."""
        if self.roots:
            assert self.context is not None and self.state is not None
            tree = FrontEndTree(cs, front, replace(self.context, elapsed=cs.elapsed), self)
            self.roots = []
            tree.run()

    def __deepcopy__(self, memo: object) -> RootQueue:
        """A copy of the hardware context has nothing queued; the URB is volatile."""
        return RootQueue()


def entry_rows(state: Record) -> int:
    """Rows of an entry, whose size counts registers."""
    return max(-(-int(state.urb_entry_allocation_size) * GRF_BYTES // ROW), 1)


class FrontEndTree(ThreadTreeRun):
    """Trees of the front end, whose interface descriptors and constants commands load."""

    def __init__(self, cs: CommandStreamer, front: FrontEnd, context: DispatchContext, queue: RootQueue) -> None:
        assert queue.state is not None
        roots: Sequence[QueuedThread] = queue.roots
        most_roots = int(queue.state.maximum_number_of_threads) + 1
        super().__init__(cs, context, roots, most_roots, queue.urb, queue.scratch, queue.slots)
        self.front, self.bypass = front, bool(optional(queue.state, BYPASS))

    def child(self, fields: Record, header: bytes) -> tuple[Interface, bytes]:
        held = front_end.descriptor(self.gen, self.front, int(fields.interface_descriptor_offset), "a message that spawns a thread")
        constants = objects.constants(self.context, self.front, fields)
        return objects.interface(front_end.dispatch_fields(self.context, self.front, held, False)), constants
