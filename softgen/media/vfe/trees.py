"""Trees of threads of Gen4.5: what a child starts with.

Reads   THREAD_SPAWN_PAYLOAD INTERFACE_DESCRIPTOR_DATA MEDIA_ROOT_THREAD_HEADER
Writes  interfaces and constants of children
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.media.queued import Interface, QueuedThread
from softgen.media.trees import ThreadTreeRun
from softgen.media.vfe.payload import constants, interface, slots
from softgen.media.vfe.state import DESCRIPTOR, FrontEndState, VideoFrontEnd, structure
from softgen.threads.dispatch import DispatchContext, Scratch

DESCRIPTORS = 128


class VideoFrontEndTree(ThreadTreeRun):
    """Trees of the video front end, whose state is in memory."""

    def __init__(self, cs: CommandStreamer, state: FrontEndState, context: DispatchContext, roots: Sequence[QueuedThread]) -> None:
        scratch = Scratch(int(state.vfe.scratch_space_base_pointer), state.scratch_bytes, state.most_roots)
        fields = slots(context.generation.number, scratch.base, scratch.size)
        super().__init__(cs, context, roots, state.most_roots, cs.state(VideoFrontEnd).urb, scratch, fields)
        self.first_descriptor = int(state.vfe.interface_descriptor_base_pointer)

    def child(self, fields: Record, header: bytes) -> tuple[Interface, bytes]:
        """The tables that messages use are those of r0 (G45 9593, 9603)."""
        pointer, first = int(fields.interface_descriptor_pointer), self.first_descriptor
        if not first <= pointer < first + DESCRIPTORS * DESCRIPTOR:
            self.cs.warn(f"a child's interface descriptor at {pointer:#x} is not in the array at {first:#x} (G45 9250)")
        held = structure(self.cs, "INTERFACE_DESCRIPTOR_DATA", pointer)
        own = catalogue.layout("MEDIA_ROOT_THREAD_HEADER", self.gen).raw(np.frombuffer(header, np.uint32).tolist())
        kind = interface(self.gen, held)._replace(binding_table=int(own.binding_table_pointer), samplers=int(own.sampler_state_pointer))
        return kind, constants(self.cs, held)
