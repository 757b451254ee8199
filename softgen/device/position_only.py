"""The position-only engine of a context: POCS, which the render engine loads and preempts (ICL 301-362).

Reads   CTX_SR_CTL POSH_LRCA, the context image that it leads to
Writes  that image, the registers of POCS

A context with POSH enabled has a second image, whose ring is the same; POCS starts at that image's head and samples the tail from the
render engine. What it has not finished when the render engine leaves the context goes on when that context is loaded again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softgen.bits import registers as placing
from softgen.bits.catalogue import catalogue
from softgen.device.image import ContextImage
from softgen.streamer.position_only import ENGINE, PositionOnlyStreamer
from softgen.streamer.sync import control_bit

SAME = ("start", "ring_bytes", "enable")  # of both images' rings (ICL 358-362)


@dataclass
class PositionOnlyContext:
    """A context on POCS: its image and the streamer that is at work on it."""

    image: ContextImage
    streamer: PositionOnlyStreamer

    @property
    def in_batch(self) -> bool:
        return self.streamer.in_batch

    def run(self) -> bool:
        """As far as it gets; whether it has come to the tail."""
        return self.streamer.run()

    def sample_tail(self, end: int) -> None:
        """Takes the tail of the render engine's ring."""
        place = self.streamer.ring_place()
        if place is not None:
            place.end = end

    def unload(self) -> None:
        """Leaves the context: the head, and the registers, go to the image."""
        place = self.streamer.ring_place()
        if place is not None and place.wrap is not None:
            self.streamer.set("RING_BUFFER_HEAD", place.address - place.wrap[0])
        self.image.save(self.streamer.device.registers)  # type: ignore[arg-type]


class PositionOnlyEngine:
    """The position-only engine (POCS), which the render engine starts."""

    def __init__(self, gpu: Any, memory: Any) -> None:
        self.gpu, self.memory = gpu, memory
        self.base = placing.bases(gpu.generation.number)[ENGINE][0]
        self._left: dict[int, PositionOnlyContext] = {}  # contexts that were preempted, by number

    def forget(self) -> None:
        """Before a context is restored: its image alone says whether it has POSH."""
        layout = catalogue().layout("CTX_SR_CTL", self.gpu.generation.number)
        bits = layout.pack(posh_enable_mask=1)[0]
        self.gpu.registers.write(placing.bases(self.gpu.generation.number)["render"][0] + (layout.offset or 0), bits)

    def load(self, image: ContextImage, ring: Any, streamer: Any) -> PositionOnlyContext | None:
        """The context on POCS; None where POSH is not enabled for it."""
        if not control_bit(streamer, "posh_enable"):
            return None
        address, number = streamer.get("POSH_LRCA") & ~0xFFF, int(image.descriptor.context_id)
        own = ContextImage(self.gpu.generation, self.memory.global_space, (0, 0), ENGINE, self.base)
        own.address = address
        theirs = own.ring()
        for name in SAME:
            if getattr(theirs, name) != getattr(ring, name):
                self.gpu.warn(f"the POSH context at {address:#x} has a ring with {name} {getattr(theirs, name):#x}, and the render context "
                              f"{getattr(ring, name):#x} (ICL 358-362)")  # fmt: skip
        own.restore(self.gpu.registers)
        left = self._left.pop(number, None)
        if left is not None and left.image.address == address and (place := left.streamer.ring_place()) is not None:
            assert place.wrap is not None
            left.streamer.render = streamer
            if place.wrap[0] == ring.start and place.address - ring.start == theirs.head:
                left.sample_tail(ring.start + ring.tail)
                return left
        if theirs.head != ring.head:
            self.gpu.warn(f"the POSH context at {address:#x} begins at head {theirs.head:#x} of the ring, the render context at "
                          f"{ring.head:#x} (ICL 358-362)")  # fmt: skip
        saved = self.gpu.saved_context(number, ENGINE)
        made: PositionOnlyStreamer = self.gpu.position_only_streamer(streamer.space, self.memory.global_space, saved, self.base, address,
                                                                     number)  # fmt: skip
        made.render = streamer
        made.walk_ring(ring.start, theirs.head, ring.tail, ring.ring_bytes)
        return PositionOnlyContext(own, made)

    def unload(self, number: int, context: PositionOnlyContext) -> None:
        """Preempts POCS; what it was doing goes on when the context comes again."""
        context.unload()
        self._left[number] = context


def engine_of(gpu: Any, memory: Any, name: str) -> PositionOnlyEngine | None:
    """The position-only engine that an engine manages: the render engine's, where a generation has one."""
    known = ENGINE in placing.bases(gpu.generation.number) and catalogue().get("POSH_LRCA", gpu.generation.number) is not None
    return PositionOnlyEngine(gpu, memory) if known and name == "render" else None
