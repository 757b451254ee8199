"""Engines: contexts and rings given to them, run one after another, with what they report.

Reads   CONTEXT_DESCRIPTOR CTXT_ST_BUF CTXT_ST_PTR HWS_PGA CCID CTX_TIMESTAMP CTX_SR_CTL RING_BUFFER_HEAD PP_DIR_BASE PP_DIR_DCLV GFX_MODE
Writes  context images and status pages, registers, interrupts

An execlist's elements are executed serially (ICL 30-31). Everything is done when the write that started it returns, except a context that
waits at a semaphore: one whose switching is inhibited stays and tries again when the GPU is polled, any other is switched out and has to
be submitted again (KBL 1976-1979, 5381-5484).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from softgen.bits import registers as placing
from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Device
from softgen.device.image import ContextImage
from softgen.device.image_state import ImageState
from softgen.device.memory import TableMemory
from softgen.device.position_only import PositionOnlyContext, engine_of
from softgen.device.status import ContextStatus, StatusDevice
from softgen.device.submission import SubmissionTable
from softgen.errors import SoftgenError
from softgen.memory.space import Space
from softgen.streamer.context import SavedContext
from softgen.streamer.execute import Streamer
from softgen.streamer.sync import control_bit

DIRECTORY = ("PP_DIR_BASE", "PP_DIR_DCLV")
VALID = 1


class EngineDevice(StatusDevice, Protocol):
    """The parts of a device that its engines use."""

    @property
    def device(self) -> Device: ...
    def warn(self, text: str) -> None: ...
    def saved_context(self, context: int, engine: str) -> SavedContext: ...
    def streamer(self, engine: str, space: Space, global_space: Space | None, saved: SavedContext, base: int,
                 process_page: int | None = None, context_id: int = 0) -> Streamer: ...  # fmt: skip


@dataclass
class LoadedContext:
    """A context in an engine."""

    image: ContextImage
    streamer: Streamer
    first: bool  # was it its execlist's first element?
    position_only: PositionOnlyContext | None = None

    @property
    def id(self) -> int:
        return int(self.image.descriptor.context_id)

    def run(self) -> bool:
        """To the end of the ring, or to a wait that neither streamer ends: the position-only one runs ahead."""
        if self.position_only is None:
            return self.streamer.run()
        while True:
            before = self.streamer.counters.commands
            self.position_only.run()
            if self.streamer.run():
                self.position_only.run()
                return True
            if self.streamer.counters.commands == before:
                return False


class HardwareEngine:
    """One engine, by where its registers start."""

    def __init__(self, gpu: EngineDevice, memory: TableMemory, table: SubmissionTable, name: str, base: int) -> None:
        self.gpu, self.memory, self.name, self.base = gpu, memory, name, base
        self.status = ContextStatus(gpu, memory, table, name, base)
        self.current: LoadedContext | None = None
        self.pending: list[tuple[int, int]] = []
        self.last: tuple[int, int, int, int] | None = None  # LRCA, context, ring and head that registers still hold
        self.first = True
        self.ring: Streamer | None = None  # a ring's streamer that waits
        self.position_only = engine_of(gpu, memory, name)
        self.state = ImageState(gpu.device, gpu.warn) if name == "render" else None

    def busy(self) -> bool:
        return self.current is not None or self.ring is not None

    def waits_for(self) -> str:
        """What a context or ring that stays in the engine waits for."""
        streamer = self.current.streamer if self.current else self.ring
        second = self.current.position_only.streamer if self.current and self.current.position_only else None
        waits = {"": streamer, "position_only: ": second}
        return "; ".join(name + cs.waiting.text for name, cs in waits.items() if cs and cs.waiting)

    # -- contexts --------------------------------------------------------------------------------------------------

    def submit(self, elements: Sequence[tuple[int, int]]) -> None:
        """An execlist: descriptors (low, high), of which some may not be valid."""
        valid = [element for element in elements if element[0] & VALID]
        if not valid:
            return
        if self.current is None:
            self.status.event(0, idle_to_active=1)
        elif self._lite(valid[0]):
            valid = valid[1:]
        else:
            self._unload(preempted=1)
        self.pending, self.first = valid, True
        self.go()

    def _lite(self, descriptor: tuple[int, int]) -> bool:
        """The context that runs, submitted again: only its tail is taken (KBL 5214-5226)."""
        assert self.current is not None
        image = ContextImage(self.gpu.generation, self.memory.global_space, descriptor, self.name, self.base)
        if image.descriptor.context_id != self.current.id or image.descriptor.force_restore:
            return False
        ring, place = image.ring(), self.current.streamer.ring_place()
        if place is not None:
            place.end = ring.start + ring.tail
        if self.current.position_only is not None:
            self.current.position_only.sample_tail(ring.start + ring.tail)
        self.status.event(self.current.id, preempted=1, lite_restore=1)
        return True

    def go(self, signalled: bool = False) -> None:
        """What is in the engine, then what is pending, until nothing is left or something stays and waits."""
        while self.current is not None or self.pending:
            if self.current is None:
                self._load(self.pending.pop(0))
            assert self.current is not None
            streamer = self.current.streamer
            if streamer.waiting is not None and streamer.waiting.on_signal and not signalled:
                return
            try:
                done = self.current.run()
            except SoftgenError:
                self._unload(context_complete=1)
                raise
            if done:
                self._unload(context_complete=1)
            elif control_bit(streamer, "inhibit_synchronous_context_switch"):
                self.status.state(active=True)
                return
            else:
                self._unload(wait_on_semaphore=1, semaphore_wait_mode=int(not (streamer.waiting and streamer.waiting.on_signal)))

    def _load(self, descriptor: tuple[int, int]) -> None:
        image = ContextImage(self.gpu.generation, self.memory.global_space, descriptor, self.name, self.base)
        ring = image.ring()
        saved = self.gpu.saved_context(image.descriptor.context_id, self.name)
        if image.descriptor.force_restore or self.last != (image.address, image.descriptor.context_id, ring.start, ring.head):
            if self.position_only is not None:
                self.position_only.forget()
            if not image.restore(self.gpu.registers) and self.state is not None:
                self.state.restore(image, saved, self.memory.context(image.tables(ring)))
        space = self.memory.context(image.tables(ring))
        streamer = self.gpu.streamer(self.name, space, self.memory.global_space, saved, self.base, image.address,
                                     image.descriptor.context_id)  # fmt: skip
        streamer.set("CCID", image.address | VALID)
        streamer.start_ring(ring.start, ring.head, ring.tail, ring.ring_bytes)
        self.current, self.first = LoadedContext(image, streamer, self.first), False
        if self.position_only is not None:
            self.current.position_only = streamer.position_only = self.position_only.load(image, ring, streamer)
        self.status.loaded(image.address, self.current.first)

    def _unload(self, **why: int) -> None:
        """Switch the context out: save it, report the reason in the status. A failed context counts as complete: it cannot be restarted."""
        running = self.current
        assert running is not None
        place, head = running.streamer.ring_place(), running.streamer.get("RING_BUFFER_HEAD")
        if place is not None and place.wrap is not None and place.end is not None:
            head = (place.end if why.get("context_complete") else place.address) - place.wrap[0]
        running.streamer.set("RING_BUFFER_HEAD", head)
        self.status.unloaded()
        running.image.save(self.gpu.registers)
        running.streamer.saved.drop_invalid()
        if self.state is not None:
            self.state.save(running.image, running.streamer.saved)
        if running.position_only is not None and self.position_only is not None:
            self.position_only.unload(running.id, running.position_only)
        ring = running.image.ring()
        self.last = (running.image.address, running.id, ring.start, ring.head)
        self.current = None
        waiting = running.streamer.waiting
        self.status.saved(running.image.address, waiting.command if waiting else None)
        if self.pending and "preempted" not in why:
            why["element_switch"] = 1
        elif "preempted" not in why:
            why["active_to_idle"] = 1
        self.status.event(running.id, **why)
        self.status.state(active=False)

    # -- rings -----------------------------------------------------------------------------------------------------

    def start_ring(self, ring: Any) -> None:
        """A ring that its registers describe, for the next poll; its batches are in the global space, or in the tables that Gen7's
        registers name."""
        if ring.head >= ring.ring_bytes or ring.tail >= ring.ring_bytes:
            raise SoftgenError(f"the {self.name} ring of {ring.ring_bytes:#x} bytes has head {ring.head:#x} and tail {ring.tail:#x}")
        if self.ring is not None:
            place = self.ring.ring_place()
            if place is not None:
                place.end = ring.start + ring.tail
        else:
            self.ring = self.gpu.streamer(self.name, self._ring_space(), self.memory.global_space,
                                          self.gpu.saved_context(0, self.name), self.base)  # fmt: skip
            self.ring.start_ring(ring.start, ring.head, ring.tail, ring.ring_bytes)

    def _ring_space(self) -> Space:
        registers, gen = self.gpu.registers, self.gpu.generation.number
        layout = catalogue().get("PP_DIR_BASE", gen)
        if layout is None:
            return self.memory.global_space
        render = placing.bases(gen)["render"][0]  # the pages give the render engine's
        base, valid = (registers.read((catalogue().layout(name, gen).offset or 0) - render + self.base) for name in DIRECTORY)
        mode = catalogue().layout("GFX_MODE", gen)
        enabled = mode.raw([registers.read((mode.offset or 0) + self.base)]).ppgtt_enable
        return self.memory.two_level(base, valid or 0xFFFFFFFF) if enabled else self.memory.global_space

    def go_ring(self) -> None:
        if self.ring is None:
            return
        try:
            done = self.ring.run()
        except SoftgenError:
            self.ring = None
            raise
        if done:
            self.ring = None

    def poll(self, signalled: bool = False) -> None:
        """Memory may have changed: what waits looks again."""
        if self.current is not None:
            self.go(signalled)
        self.go_ring()
