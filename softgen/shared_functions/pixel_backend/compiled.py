"""The pixel backend in compiled code: calls of functions that were compiled for targets."""

from __future__ import annotations

import ctypes

from softgen.errors import SoftgenError
from softgen.lanes.code_machine import HostPointer, Scalar
from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import u32, u64
from softgen.lanes.value import Value
from softgen.shared_functions.compiled import MessageCode
from softgen.shared_functions.pixel_backend import functions
from softgen.shared_functions.pixel_backend.binding import named_target
from softgen.shared_functions.pixel_backend.messages import PixelRead, PixelWrite
from softgen.shared_functions.pixel_backend.records import NULL_TARGET, TARGETS, TargetRecord, TargetTable
from softgen.shared_functions.pixel_backend.write import PLACE_AT

TABLE = RecordLayout.of(TargetTable)


class CompiledBackend:
    """A PixelEnvironment in compiled code."""

    def __init__(self, code: MessageCode) -> None:
        self.code = code
        self._table: HostPointer | None = None

    def _targets(self) -> HostPointer:
        """The table of targets; a side exit for dispatches without one."""
        if self._table is None:
            held = self.code.field("targets")
            self.code.escape((held != 0).lane())
            self._table = held.as_pointer()
        return self._table

    def parts(self, m: Machine) -> Value:
        return m.convert(self._targets().field(TABLE, "parts").load(u64, invariant=True).lane(), u32)

    def require(self, condition: Value, error: SoftgenError) -> None:
        self.code.escape(condition)

    def write(self, machine: Machine, choices: list[tuple[Value, PixelWrite]]) -> None:
        code, m, (_, given) = self.code, self.code.m, choices[-1]
        surface, lanes = NULL_TARGET if given.surface is None else given.surface, given.variant.lanes
        for _, write in choices:
            code.indices.add(named_target(surface, write.variant, write.known))
        records = self._targets().at(8 * surface).load(u64, invariant=True)
        code.escape((records != 0).lane())
        record = records.as_pointer().at(m.scalar(m.convert(given.target & TARGETS - 1, u64) * ctypes.sizeof(TargetRecord)))
        function, mask, slots = self._function(record, given), given.mask, self._slots(given)
        for holds, write in choices[:-1]:
            function = m.choose(m.scalar(holds), self._function(record, write), function)
            every, other = m.broadcast(holds, lanes), self._slots(write)
            mask = m.select(every, write.mask, mask)
            slots = other | {slot: m.select(every, other[slot], value) if slot in other else value for slot, value in slots.items()}
        code.escape((function != 0).lane())
        room = m.stack(u32, lanes, functions.SLOTS, align=64)
        for slot, value in slots.items():
            room.at(4 * lanes * slot).store(value, align=4)
        code.announce()
        flags = m.number(u32, given.first | (functions.LAST if given.last else 0))
        own = self._move(given)
        m.call_native(function.as_pointer(), code.context, record, code.pixel(), room, m.scalar(m.bits_from_mask(mask)), flags)
        self._move_back(given, own)

    def read(self, machine: Machine, read: PixelRead) -> list[Value]:
        code, m, lanes = self.code, self.code.m, read.lanes
        code.indices.add(named_target(read.surface, read.variant, 0))
        records = self._targets().at(8 * read.surface).load(u64, invariant=True)
        code.escape((records != 0).lane())
        function = records.as_pointer().at(8 * read.variant.number).load(u64)
        code.escape((function != 0).lane())
        room = m.stack(u32, lanes, functions.CHANNELS, align=64)
        code.announce()
        own = self._move(read)
        m.call_native(function.as_pointer(), code.context, records.as_pointer(), code.pixel(), room, m.scalar(m.bits_from_mask(read.mask)),
                      m.number(u32, read.first))  # fmt: skip
        self._move_back(read, own)
        return [room.at(4 * lanes * channel).load_lanes(u32, lanes, align=4) for channel in range(functions.CHANNELS)]

    def _move(self, message: PixelWrite | PixelRead) -> Value | None:
        """Put the thread's subspans where the message's header says; the places of its own."""
        if message.places is None:
            return None
        place = self.code.pixel().at(PLACE_AT + message.first)
        own = place.load_lanes(u32, message.places.lanes, align=4)
        place.store(message.places, align=4)
        return own

    def _move_back(self, message: PixelWrite | PixelRead, own: Value | None) -> None:
        if own is not None:
            self.code.pixel().at(PLACE_AT + message.first).store(own, align=4)

    def _function(self, record: HostPointer, write: PixelWrite) -> Scalar:
        return record.at(8 * write.variant.number).load(u64)

    def _slots(self, write: PixelWrite) -> dict[int, Value]:
        """The arguments of a write, by their places."""
        sources = write.sources
        held = {functions.ALPHA: sources.alpha, functions.DEPTH_SLOT: sources.depth, functions.STENCIL: sources.stencil,
                functions.OMASK: sources.omask}  # fmt: skip
        held |= dict(enumerate(sources.color, functions.COLOR)) | dict(enumerate(sources.second or [], functions.SECOND))
        return {slot: value for slot, value in held.items() if value is not None}
