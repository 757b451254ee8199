"""The lane programs of URB messages.

Register-wise messages (HWORD, OWORD; Gen4.5 has one of them) have one or two handles in their header. Their data is whole registers:

    none        all of a register goes to handle 0 (of an OWORD message, its low half)
    interleave  the low half goes to handle 0, the high half to handle 1; each handle's halves are contiguous in its entry
    transpose   three registers of eight coefficients Cx, Cy, C0 become eight groups (Cx, Cy, 0, C0) of 16 bytes (G45 5956-5999)

SIMD8 messages have a register of eight handles; register k of their data is dword k of each channel's run. A dword is accessed if its
channel is on and, where the message has channel masks, its bit is set (public: Mesa brw_eu_emit.c, Intel PRM "URB messages").
"""

from __future__ import annotations

from softgen.bits.units import DWORD, GRF_BYTES, OWORD
from softgen.errors import DecodeError
from softgen.lanes.record import RecordLayout, RecordView
from softgen.lanes.types import bool_, u32, u64
from softgen.lanes.value import Memory, Value
from softgen.shared_functions.message import Message, answers
from softgen.shared_functions.urb.environment import UrbEnvironment
from softgen.shared_functions.urb.memory import COMPLETE, END_OF_THREAD, HANDLE, REWRITTEN, ROW, USED, UrbEntry, UrbPool

UrbMessage = Message[UrbEnvironment]

FOUR, EIGHT = 4, 8  # dwords of a half and of a register
SLOTS = 2
TRANSPOSED = 3  # registers of a transposing write's data
MOST_DATA = 8  # registers of a SIMD8 message's data
ENTRY, POOL = RecordLayout.of(UrbEntry), RecordLayout.of(UrbPool)


# -- HWORD and OWORD messages ------------------------------------------------------------------------------------------


def header(x: UrbMessage) -> Value:
    return x.raw(u32, 0, EIGHT)


def unit(x: UrbMessage) -> int:
    """Bytes that the message's offsets count."""
    return OWORD if "oword" in x.plan.name else GRF_BYTES


def starts(x: UrbMessage, dwords: Value) -> Value:
    """The byte offsets of both slots in the URB."""
    m = x.m
    handles, offsets = m.slice(dwords, 0, SLOTS) & HANDLE, m.constant(u64, int(x.plan.fields.global_offset), SLOTS)
    if getattr(x.plan.fields, "per_slot_offset_present", 0):
        offsets = offsets + m.convert(m.slice(dwords, 3, SLOTS), u64)
    return m.convert(handles, u64) * ROW + offsets * unit(x)


def channels(x: UrbMessage, dwords: Value) -> Value:
    """The dwords of a register that take part: dw5 [15:8] is a channel mask."""
    return x.lanes(EIGHT) & x.m.mask_from_bits(x.m.slice(dwords, 5, 1) >> EIGHT, EIGHT)


def runs(x: UrbMessage, count: int) -> list[tuple[int, list[int]]]:
    """For each slot, its dwords among `count` registers of data, in the order that its entry has them."""
    halves = [[register * EIGHT + slot * FOUR + dword for register in range(count) for dword in range(FOUR)] for slot in range(SLOTS)]
    if x.plan.words["swizzle_control"] == "interleave":
        return list(enumerate(halves))
    return [(0, halves[0] if unit(x) == OWORD else list(range(count * EIGHT)))]


def slot_mask(x: UrbMessage, on: Value, run: list[int]) -> Value:
    return x.m.shuffle(on, [dword % EIGHT for dword in run])


def reach(x: UrbMessage, at: Value, on: Value, parts: list[tuple[int, list[int]]]) -> Memory:
    """The URB, for runs of dwords from the slots' starts on; a slot takes part for any of its channels."""
    m = x.m
    off = m.constant(bool_, 0, 1)
    used = {slot: m.any(slot_mask(x, on, run[:EIGHT])) for slot, run in parts if run}
    size = max((len(run) for _, run in parts), default=0) * DWORD
    return x.environment.reach(at, size, m.concat(*(used.get(slot, off) for slot in range(SLOTS))))


def write_runs(x: UrbMessage, memory: Memory, at: Value, on: Value, data: Value, parts: list[tuple[int, list[int]]]) -> None:
    for slot, run in parts:
        x.m.store_block(x.m.shuffle(data, run), memory, x.m.slice(at, slot, 1), slot_mask(x, on, run))


@answers("urb_write_hword", "urb_write_oword")
def write(x: UrbMessage) -> None:
    dwords, count = header(x), x.sent // GRF_BYTES - 1
    if x.ends:  # on Gen7, of a GS thread: how many vertices it has put out (public: Mesa brw_vec4_generator.cpp)
        EntryRecords(x, x.m.slice(dwords, 0, 1) & HANDLE).keep(x.m.slice(dwords, 2, 1))
    if count:
        at, on, parts = starts(x, dwords), channels(x, dwords), runs(x, count)
        write_runs(x, reach(x, at, on, parts), at, on, x.raw(u32, GRF_BYTES, count * EIGHT), parts)


@answers("urb_read_hword", "urb_read_oword")
def read(x: UrbMessage) -> None:
    """Registers that the response has; one without a response only releases entries."""
    m, dwords, count = x.m, header(x), x.answered // GRF_BYTES
    at, on, parts = starts(x, dwords), channels(x, dwords), runs(x, count)
    if not count:
        return
    memory = reach(x, at, on, parts)
    found: dict[int, Value] = {}  # by half register of the response
    for slot, run in parts:
        lanes = m.load_block(u32, len(run), memory, m.slice(at, slot, 1), slot_mask(x, on, run))
        found |= {run[first] // FOUR: m.slice(lanes, first, FOUR) for first in range(0, len(run), FOUR)}
    for half, lanes in found.items():
        x.give(lanes, half * FOUR * DWORD, m.slice(on, half % SLOTS * FOUR, FOUR))


# -- Gen4.5: completing and allocating entries -------------------------------------------------------------------------


@answers("urb_write")
def write_complete(x: UrbMessage) -> None:
    """A write that may complete its entry, give it back unwritten, and allocate another one (G45 1613-1652)."""
    m, fields, dwords, on, count = x.m, x.plan.fields, header(x), x.lanes(EIGHT), x.sent // GRF_BYTES - 1
    at, handle = starts(x, dwords), m.slice(dwords, 0, 1) & HANDLE
    data = x.raw(u32, GRF_BYTES, count * EIGHT) if count else None
    records = EntryRecords(x, handle)
    if fields.allocate:
        x.expect(GRF_BYTES)
        x.environment.require(~m.any(x.mask) | records.available())
    if data is not None and x.plan.words["swizzle_control"] == "transpose":
        write_transposed(x, at, on, data)
    elif data is not None:
        parts = runs(x, count)
        write_runs(x, reach(x, at, on, parts), at, on, data, parts)
    if fields.complete:
        flags = COMPLETE | USED * bool(fields.used) | END_OF_THREAD * x.ends
        records.complete(flags, m.slice(dwords, 2, 1), m.any(x.mask) | m.constant(bool_, int(x.ends), 1))
    else:
        records.mark_rewritten(m.any(x.mask))
    if fields.allocate:
        fresh = records.allocate(m.any(x.mask), int(not fields.complete))
        x.give(m.concat(fresh, m.slice(dwords, 1, EIGHT - 1)), 0, x.any(EIGHT))


def write_transposed(x: UrbMessage, at: Value, on: Value, data: Value) -> None:
    """Coefficient k is a group of four dwords (Cx, Cy, 0, C0); its channel decides about all of them."""
    m = x.m
    if data.lanes != TRANSPOSED * EIGHT:
        raise DecodeError(f"{x.plan.name} with transposition must have {TRANSPOSED} registers of data, not {data.lanes // EIGHT}")
    held = m.concat(data, m.constant(u32, 0, EIGHT))
    groups = m.shuffle(held, [part * EIGHT + k for k in range(EIGHT) for part in (0, 1, TRANSPOSED, 2)])
    memory = x.environment.reach(m.slice(at, 0, 1), groups.lanes * DWORD, m.any(on))
    m.store_block(groups, memory, m.slice(at, 0, 1), m.shuffle(on, [k for k in range(EIGHT) for _ in range(FOUR)]))


class EntryRecords:
    """The records of a thread's entries: those of the message's entry, and of one it allocates. Without records nothing happens."""

    def __init__(self, x: UrbMessage, handle: Value) -> None:
        self.x, self.m, self.handle, self.base = x, x.m, handle, x.environment.entries(x.m, handle)

    def _entry(self, handle: Value) -> RecordView:
        return self.m.record(ENTRY, self.m.memory_at(self.base + self.m.convert(handle, u64) * ENTRY.size, ENTRY.size))

    def _pool(self) -> RecordView:
        """The pool that the entry came from."""
        number = self.m.convert(self._entry(self.handle).load("pool"), u64)
        return self.m.record(POOL, self.m.memory_at(self.x.environment.pools(self.m) + number * POOL.size, POOL.size))

    def available(self) -> Value:
        """Whether the pool has another entry."""
        m = self.m
        found = m.variable(m.constant(u32, 0, 1))
        for _ in m.If(self.base != 0):
            pool = self._pool()
            fits = pool.load("next") + pool.load("step") <= pool.load("end")
            found.value = m.select(fits, m.constant(u32, 1, 1), m.constant(u32, 0, 1))
        return found.value != 0

    def complete(self, flags: int, dw2: Value, happens: Value) -> None:
        for _ in self.m.If(happens & (self.base != 0)):
            entry = self._entry(self.handle)
            before = entry.load("flags")
            entry.store("flags", before & REWRITTEN | (before & COMPLETE) * REWRITTEN | flags)
            entry.store("dw2", dw2)

    def keep(self, dw2: Value) -> None:
        for _ in self.m.If(self.base != 0):
            self._entry(self.handle).store("dw2", dw2)

    def mark_rewritten(self, happens: Value) -> None:
        """Note a write that does not complete the entry, if another one has (G45 1613)."""
        for _ in self.m.If(happens & (self.base != 0)):
            entry = self._entry(self.handle)
            before = entry.load("flags")
            entry.store("flags", before | (before & COMPLETE) * REWRITTEN)

    def allocate(self, happens: Value, held: int) -> Value:
        """Take an entry from the pool and link it to the last one that the thread has; its handle. `held`: 1 if the thread keeps that of
        the message, too. Entries are completed in the order of their allocation, so those after it are all retained (G45 1629-1638)."""
        m = self.m
        fresh, last, retained = m.variable(m.constant(u32, 0, 1)), m.variable(self.handle), m.variable(m.constant(u32, held + 1, 1))
        for _ in m.If(happens):
            for _ in m.While(lambda: self._entry(last.value).load("next") != 0):
                last.value = self._entry(last.value).load("next")
                retained.value = retained.value + 1
            pool, number = self._pool(), self._entry(self.handle).load("pool")
            step, end, first = pool.load("step"), pool.load("end"), pool.load("next")
            fresh.value = m.select(first + step <= end, first, end - step)  # whatever another worker does in the meantime
            pool.store("next", fresh.value + step)
            most = pool.load("retained")
            pool.store("retained", m.select(retained.value > most, retained.value, most))
            self._entry(last.value).store("next", fresh.value)
            made = self._entry(fresh.value)
            for name, value in (("flags", m.like(number, 0)), ("dw2", m.like(number, 0)), ("next", m.like(number, 0)), ("pool", number)):
                made.store(name, value)
        return fresh.value


# -- SIMD8 messages ----------------------------------------------------------------------------------------------------


def simd8(x: UrbMessage) -> tuple[Value, Value | None, int]:
    """The byte offset of each channel's run, channel masks if there are any, and where in the payload data begins."""
    m, fields, after = x.m, x.plan.fields, GRF_BYTES
    offsets = m.constant(u64, int(fields.global_offset), EIGHT)
    if fields.per_slot_offset_present:
        offsets = offsets + m.convert(x.raw(u32, after, EIGHT), u64)
        after += GRF_BYTES
    masks = None
    if fields.channel_mask_present:
        masks = x.raw(u32, after, EIGHT) >> 16
        after += GRF_BYTES
    return m.convert(x.raw(u32, 0, EIGHT) & HANDLE, u64) * ROW + offsets * OWORD, masks, after


def run_mask(x: UrbMessage, on: Value, masks: Value | None, channel: int, count: int) -> Value:
    """The dwords of a channel's run that are accessed."""
    found = x.m.broadcast(x.m.slice(on, channel, 1), count)
    return found if masks is None else found & x.m.mask_from_bits(x.m.slice(masks, channel, 1), count)


@answers("urb_simd8_write")
def simd8_write(x: UrbMessage) -> None:
    """Without data, a message only ends its thread (public: Mesa brw_fs_visitor.cpp, threads that put out no vertices)."""
    m, (at, masks, after) = x.m, simd8(x)
    count, on = x.sent // GRF_BYTES - after // GRF_BYTES, x.lanes(EIGHT)
    if not count and x.ends:
        return
    if not 1 <= count <= MOST_DATA:
        raise DecodeError(f"{x.plan.name} must have 1 to {MOST_DATA} registers of data, not {count}")
    held = m.concat(*(x.raw(u32, after + register * GRF_BYTES, EIGHT) for register in range(count)))
    memory = x.environment.reach(at, count * DWORD, on)
    for channel in range(EIGHT):
        run = m.shuffle(held, [dword * EIGHT + channel for dword in range(count)])
        m.store_block(run, memory, m.slice(at, channel, 1), run_mask(x, on, masks, channel, count))


@answers("urb_simd8_read")
def simd8_read(x: UrbMessage) -> None:
    m, (at, masks, _) = x.m, simd8(x)
    count, on = x.answered // GRF_BYTES, x.lanes(EIGHT)
    if not 1 <= count <= MOST_DATA:
        raise DecodeError(f"{x.plan.name} must have 1 to {MOST_DATA} registers of response, not {count}")
    memory = x.environment.reach(at, count * DWORD, on)
    runs = [m.load_block(u32, count, memory, m.slice(at, channel, 1), run_mask(x, on, masks, channel, count)) for channel in range(EIGHT)]
    held = m.concat(*runs)
    for dword in range(count):
        given = on if masks is None else on & (masks >> dword & 1 != 0)
        x.give(m.shuffle(held, [channel * count + dword for channel in range(EIGHT)]), dword * GRF_BYTES, given)
