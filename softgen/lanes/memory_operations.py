"""The memory operations of the lane language: loads, stores, atomics, records, appending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from softgen.lanes.operations import ATOMICS
from softgen.lanes.primitives import Primitives
from softgen.lanes.record import RecordLayout, RecordView
from softgen.lanes.types import LaneType, bool_, u64
from softgen.lanes.value import Memory, Region, Value


class MemoryOperations(Primitives):
    """Checks operands and hands payloads to the machine proper (primitives.py)."""

    def memory_at(self, address: Value, size: int, name: str = "memory") -> Memory:
        """Host memory at an address (one lane of u64). The program's author answers for it: accesses are not checked."""
        if address.type is not u64 or address.lanes != 1:
            raise TypeError(f"the address of a memory must be one lane of u64, not {address.lanes} x {address.type}")
        return self._memory_at(address, size, name)

    def record(self, layout: RecordLayout, memory: Memory, offset: Value | int = 0) -> RecordView:
        """Named fields in memory, at one offset or at an offset for each lane (record.py)."""
        return RecordView(self, layout, memory, offset)

    def append(self, value: Value, base: Memory, cursor: Value, mask: Value) -> Value:
        """Stores the active lanes contiguously from the cursor (one lane of u32 or u64, a byte offset) on, lowest first; returns the cursor
        after them."""
        cursor, active = self._block("append", value.type, value.lanes, cursor, mask)
        assert active is not None
        if not self._append(value, base, cursor, active):
            places = self.convert(self.rank(active), cursor.type) * value.type.bytes
            self.store(value, base, self.broadcast(cursor, value.lanes) + places, active)
        return cursor + self.convert(self.count(active), cursor.type) * value.type.bytes

    def load(self, type: LaneType, base: Memory, offsets: Value, mask: Value | None = None) -> Value:
        """Each lane from its own byte offset, aligned or not; lanes outside the mask are zero. Past the end is a fault."""
        mask = self._access("load", type, offsets, mask)
        return self._value(type, offsets.lanes, self._load(type, base, offsets, mask))

    def store(self, value: Value, base: Memory, offsets: Value, mask: Value | None = None) -> None:
        """Where lanes overlap, the highest lane wins."""
        mask = self._access("store", value.type, offsets, mask, value)
        self._store(value, base, offsets, mask)

    def load_adjacent(self, type: LaneType, count: int, base: Region, offsets: Value, mask: Value | None = None) -> list[Value]:
        """`count` elements of each lane, from its byte offset on: value i has element i of all lanes. As so many loads."""
        mask = self._access("load_adjacent", type, offsets, mask)
        return self._load_adjacent(type, count, base, offsets, mask)

    def store_adjacent(self, values: Sequence[Value], base: Region, offsets: Value, mask: Value | None = None) -> None:
        """As so many stores: where lanes overlap, the last value wins, and of one value the highest lane."""
        for value in values:
            mask = self._access("store_adjacent", values[0].type, offsets, mask, value)
        self._store_adjacent(list(values), base, offsets, mask)

    def _load_adjacent(self, type: LaneType, count: int, base: Region, offsets: Value, mask: Value | None) -> list[Value]:
        """A machine that can do better overrides this, and the next."""
        return [self.load(type, base.moved(type.bytes * number), offsets, mask) for number in range(count)]

    def _store_adjacent(self, values: list[Value], base: Region, offsets: Value, mask: Value | None) -> None:
        for number, value in enumerate(values):
            self.store(value, base.moved(value.type.bytes * number), offsets, mask)

    def load_block(self, type: LaneType, lanes: int, base: Memory, offset: Value | int, mask: Value | None = None, grain: int = 0) -> Value:
        """Contiguous lanes from the offset in a single lane (or a Python number) on. Of a region, `grain` bytes are all inside or all
        outside."""
        offset, mask = self._block("load_block", type, lanes, offset, mask)
        return self._value(type, lanes, self._load_block(type, lanes, base, offset, mask, grain or type.bytes))

    def store_block(self, value: Value, base: Memory, offset: Value | int, mask: Value | None = None, grain: int = 0) -> None:
        offset, mask = self._block("store_block", value.type, value.lanes, offset, mask)
        self._store_block(value, base, offset, mask, grain or value.type.bytes)

    def atomic(self, op: str, base: Memory, offsets: Value, operands: Sequence[Value], mask: Value | None = None) -> Value:
        """What was in memory before; lanes act one after the other, lowest first. Offsets must be multiples of the size.
        compare_exchange takes (expected, new). Anything else, floats too, is a While around compare_exchange."""
        if op not in ATOMICS:
            raise ValueError(f"atomic must be one of {' '.join(ATOMICS)}, not {op}")
        if len(operands) != 1 + (op == "compare_exchange"):
            raise ValueError(f"atomic {op} must have {1 + (op == 'compare_exchange')} operands, not {len(operands)}")
        self._agree(f"atomic {op}", *operands)
        type = operands[0].type
        if not type.is_integer or type.bits < 32:
            raise TypeError(f"atomic must be on integers of 32 or 64 bits, not {type}")
        mask = self._access("atomic", type, offsets, mask, operands[0])
        return self._value(type, offsets.lanes, self._atomic(op, type, base, offsets, [operand.payload for operand in operands], mask))

    def inside(self, base: Region, offsets: Value, size: int) -> Value:
        """Where all of `size` bytes from each offset on belong to a region."""
        self._access("inside", offsets.type, offsets, None)
        return self._value(bool_, offsets.lanes, self._inside_region(base, offsets, size))

    def update(self, type: LaneType, base: Region, offsets: Value, operands: Sequence[Value], mask: Value,
               function: Callable[..., Value]) -> tuple[Value, Value]:
        """An atomic of one's own: `function(m, old, *operands)` is a lane program over single lanes and gives what memory holds then.
        What was there before, and what was put there; lanes act one after the other, lowest first."""
        self._access("update", type, offsets, mask)
        if not type.is_integer or type.bits < 32:
            raise TypeError(f"update must be on integers of 32 or 64 bits, not {type}")
        old, new = self._update(type, base, offsets, list(operands), mask, function)
        return self._value(type, offsets.lanes, old), self._value(type, offsets.lanes, new)
