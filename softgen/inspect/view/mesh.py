"""Vertices of a draw: as threads of the vertex shader get them, and as they write them to the URB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import catalogue
from softgen.bits.units import GRF_BYTES, OWORD
from softgen.errors import SoftgenError
from softgen.inspect.session.events import Event
from softgen.inspect.session.session import Session
from softgen.inspect.session.thread import ThreadCursor
from softgen.shared_functions.dataport.target import LocalMemory
from softgen.shared_functions.unit import MessageHandler
from softgen.shared_functions.urb.environment import Urb
from softgen.shared_functions.urb.memory import HANDLE, ROW
from softgen.threads.payload import LoopPayload
from softgen.three_d.shader_stage import place
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.vertices.vertex_shader import FIRST_HANDLE, SLOTS, ThreadShape, entry_bytes, thread_shape

MOST = 1 << 12  # vertices
COMPONENTS, MASK_BITS = 4, 8
# Slots of an entry that have clip coordinates: the second, or the third where device coordinates come first (public: Mesa brw_vue_map.c).
POSITION, POSITION_AFTER_DEVICE = 1, 2
Floats = npt.NDArray[np.float32]


def mesh(session: Session, event: Event) -> dict[str, Any]:
    """The vertices that the vertex shader of a draw is started for, in order."""
    if event.kind != "draw":
        return {"vertices": [], "why": f"{event.name} has no vertices"}
    session.seek(event.position)
    state = DrawState.of(session.run.streamer)
    try:
        unit = unit_state(state, "VS")
    except SoftgenError as error:  # state of it is missing
        return {"vertices": [], "why": str(error)}
    if not unit.enable:
        return {"vertices": [], "why": "no vertex shader is enabled"}
    registers = VertexRegisters(state.gen, thread_shape(unit), SLOTS * int(unit.vertex_urb_entry_read_length), entry_bytes(state, unit))
    control = session.offer(event.position, lambda offered: offered.position.stage == "vs")
    vertices: list[dict[str, Any]] = []
    offered = control.next()
    while offered is not None and len(vertices) < MOST:
        vertices += registers.vertices(ThreadCursor(control, offered, session._attach))
        offered = control.next(True)
    why = "" if vertices else "no thread of a vertex shader was started"
    return {"vertices": vertices, "why": why, "position": registers.position}


class VertexRegisters:
    """Where the threads of a draw have vertices, and where they leave them."""

    def __init__(self, gen: float, shape: ThreadShape, elements: int, entry: int) -> None:
        self.shape, self.elements, self.entry = shape, elements, entry
        self.handles = place(gen, shape.page, FIRST_HANDLE)
        self.position = POSITION if catalogue().get("VERTEX_HEADER", gen) is None else POSITION_AFTER_DEVICE

    def vertices(self, cursor: ThreadCursor) -> Iterator[dict[str, Any]]:
        """Run a thread."""
        thread = cursor.runner.thread
        grf = np.frombuffer(thread.grf.tobytes(), np.uint8)
        each = MASK_BITS // self.shape.vertices
        lanes = [lane for lane in range(self.shape.vertices) if thread.dispatch_mask >> each * lane & 1]
        urb = _urb(cursor)
        written = urb.target = UrbWrites(urb.bound.memory.bytes)
        cursor.run(lambda thread, writes: "")
        for lane in lanes:
            handle = int(grf[self.handles : self.handles + 4 * self.shape.vertices].view(np.uint32)[lane]) & HANDLE
            slots = enumerate(written.slots(handle * ROW, self.entry))
            left = {str(slot): row for slot, row in slots if any(value is not None for value in row)}
            yield {"thread": str(cursor.offered.position), "lane": lane * each, "in": self._given(cursor, grf, lane), "out": left}

    def _given(self, cursor: ThreadCursor, grf: npt.NDArray[np.uint8], lane: int) -> list[list[float | str]]:
        """A vertex's elements, which are the last of a payload."""
        shape, payload = self.shape, cursor.offered.dispatch.payload
        assert isinstance(payload, LoopPayload)
        start = payload.registers * GRF_BYTES - self.elements * shape.element_stride + lane * shape.vertex_stride
        return [[_number(grf[at : at + 4].view(np.float32)[0]) for at in range(first, first + COMPONENTS * shape.component_stride,
                                                                               shape.component_stride)]
                for first in range(start, start + self.elements * shape.element_stride, shape.element_stride)]  # fmt: skip


class UrbWrites(LocalMemory):
    """A URB that knows which of its bytes a thread has written."""

    def __init__(self, held: npt.NDArray[np.uint8]) -> None:
        super().__init__(held)
        self.name, self._held, self._places = "URB", held, set[int]()

    def scatter(self, offsets: npt.NDArray[np.uint64], data: npt.NDArray[np.uint8], lanes: npt.NDArray[np.intp]) -> None:
        super().scatter(offsets, data, lanes)
        for offset in offsets.tolist():
            self._places.update(range(offset, offset + data.shape[1], 4))

    def slots(self, start: int, size: int) -> Iterator[list[float | str | None]]:
        """The slots of an entry; None for what was not written."""
        for slot in range(start, start + size, OWORD):
            row: Floats = self._held[slot : slot + OWORD].view(np.float32)
            yield [_number(value) if slot + 4 * n in self._places else None for n, value in enumerate(row)]


def _urb(cursor: ThreadCursor) -> Urb:
    """The URB that a thread's messages reach."""
    handlers = (handler for handler in cursor.runner.thread.messages.values() if isinstance(handler, MessageHandler))
    return next(handler.environment for handler in handlers if isinstance(handler.environment, Urb))


def _number(value: Any) -> float | str:
    """A float for JSON, which has no infinities."""
    number = float(value)
    return round(number, 6) if np.isfinite(number) else str(number)
