"""PlanCache: plans kept from draw to draw, while the state that they were made from is what it was.

    cache = PlanCache(make)           # make(state, *key) -> plans
    plans = cache.get(state, extent)

What `make` asks the state for is noted: commands, and bytes in memory. Plans are used again when all of it still holds, and base addresses
too. Memory is compared at every draw (draw_state.c), so that it does not matter who wrote there, or when.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from typing import Any, Generic, TypeVar

from softgen.bits.record import Record
from softgen.command import Latched
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.eu import native
from softgen.memory import guard
from softgen.memory.graphics_memory_h import MemoryRange
from softgen.memory.space import ArenaTable, MappedRegion, Space
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table
from softgen.three_d.structures import library

T = TypeVar("T")
KEPT = 4  # plans of each key, and keys
ENTRY = 4  # bytes of a binding table entry


class Notes:
    """What plans depend on."""

    def __init__(self) -> None:
        self.commands: dict[str, Record | None] = {}
        self.parts: dict[str, dict[int, Record]] = {}  # of commands that merge by an index
        self.memory: dict[tuple[int, int], bytes] = {}  # by address and size
        self.entries: dict[tuple[str, int], tuple[int, bytes]] = {}  # of binding tables: by stage and address, where the table was
        self.surfaces: dict[tuple[str, int, int], bytes] = {}  # surface states that entries lead to: by stage, address and size
        self.blocks: dict[tuple[str, int, int], bytes] = {}  # of state: by the command whose pointer leads there, address and size
        self.bases: set[str] = set()  # base addresses that others of its addresses count from
        self.warnings: list[str] = []
        self.volatile = False  # something cannot be compared: keep nothing


class NotedLatched:
    """Latched commands, those asked for noted."""

    def __init__(self, latched: Latched, notes: Notes) -> None:
        self._latched, self._notes = latched, notes

    def get(self, name: str, default: Any = None, /) -> Any:
        found = self._notes.commands[name] = self._latched.get(name)
        return default if found is None else found

    def __getitem__(self, name: str, /) -> Record:
        found: Record | None = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object, /) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def by_index(self, name: str) -> dict[int, Record]:
        found = self._notes.parts[name] = self._latched.by_index(name)
        return found


class NotedSpace(Space):
    """An address space, bytes that are read noted."""

    def __init__(self, space: Space, notes: Notes) -> None:
        self.name, self.bits, self.inner, self._notes = space.name, space.bits, space, notes

    def read(self, address: int, size: int) -> bytes:
        try:
            found = self._notes.memory[address, size] = self.inner.read(address, size)
        except SoftgenError:
            self._notes.volatile = True
            raise
        return found

    def write(self, address: int, data: bytes) -> None:
        self.inner.write(address, data)

    def extent(self, address: int, limit: int) -> int:
        self._notes.volatile = True
        return self.inner.extent(address, limit)

    def regions(self) -> Iterator[MappedRegion]:
        self._notes.volatile = True
        return self.inner.regions()

    @property
    def table(self) -> ArenaTable:
        return self.inner.table

    def contiguous(self, address: int, size: int) -> int | None:
        self._notes.volatile = True
        return self.inner.contiguous(address, size)

    def mapped(self, address: int, limit: int) -> int:
        self._notes.volatile = True
        return self.inner.mapped(address, limit)

    def outside(self, address: int) -> str:
        return self.inner.outside(address)


class NotedTableSpace(NotedSpace):
    """The same for a reader of a stage's binding table: its entries, and the surface states that they lead to, are noted
    apart, as drivers move them."""

    def __init__(self, space: Space, notes: Notes, stage: str, table: int) -> None:
        super().__init__(space, notes)
        self._stage, self._table = stage, table

    def read(self, address: int, size: int) -> bytes:
        try:
            found = self.inner.read(address, size)
        except SoftgenError:
            self._notes.volatile = True
            raise
        if size == ENTRY:
            self._notes.entries[self._stage, address] = self._table, found
        else:
            self._notes.surfaces[self._stage, address, size] = found
        return found


class NotedBlockSpace(NotedSpace):
    """The same for a reader of a block of state behind a pointer: noted apart, as drivers write the same blocks elsewhere."""

    def __init__(self, space: Space, notes: Notes, pointer: str) -> None:
        super().__init__(space, notes)
        self._pointer = pointer

    def read(self, address: int, size: int) -> bytes:
        try:
            found = self._notes.blocks[self._pointer, address, size] = self.inner.read(address, size)
        except SoftgenError:
            self._notes.volatile = True
            raise
        return found


class NotedState(DrawState):
    """A state that notes what it is asked for."""

    def __init__(self, state: DrawState, notes: Notes) -> None:
        def register(name: str) -> int:
            notes.volatile = True
            return state.register(name)

        def warn(text: str) -> None:
            notes.warnings.append(text)
            state.warn(text)

        super().__init__(state.generation, NotedSpace(state.space, notes), NotedLatched(state.latched, notes), state.bases, register, warn)
        self._state, self._notes, self.remark = state, notes, state.remark

    @property
    def unnoted(self) -> DrawState:
        return self._state.unnoted

    def address(self, base: str, offset: int) -> int:
        self._notes.bases.add(base)
        return super().address(base, offset)

    def table_space(self, stage: str) -> Space:
        wrap = (1 << self.space.bits) - 1
        table = self.bases.get("surface", 0) + binding_table(self, stage) & wrap
        return NotedTableSpace(self._state.table_space(stage), self._notes, stage, table)

    def block_space(self, pointer: str) -> Space:
        return NotedBlockSpace(self._state.block_space(pointer), self._notes, pointer)


def noted(state: DrawState, notes: Notes) -> DrawState:
    """A state that notes what it is asked for, warnings and registers too."""
    return NotedState(state, notes)


def _root(space: Space) -> Space:
    while type(space) is NotedSpace:  # isinstance asks the abstract base class, which takes longer
        space = space.inner
    return space


# -- memory ------------------------------------------------------------------------------------------------------------


class MemoryCheck(ctypes.Structure):
    """struct memory_check of draw_state.c."""

    _fields_ = [("table", ctypes.c_uint64), ("ranges", ctypes.c_uint64), ("count", ctypes.c_uint64)]


@cache
def _memory_same() -> int:
    return native.address(library().memory_same)


class MemoryComparison:
    """Compares memory with noted bytes, in one call."""

    def __init__(self, memory: dict[tuple[int, int], bytes]) -> None:
        self.memory, self.count = memory, len(memory)
        self.ranges = (MemoryRange * self.count)(*(MemoryRange(*place, data) for place, data in memory.items()))
        self.check = MemoryCheck(0, ctypes.addressof(self.ranges), self.count)
        self._call, self._record, self._address = guard.library().guard_call, guard.FaultRecord(), ctypes.addressof(self.check)

    def same(self, space: Space) -> bool:
        if not self.count:
            return True
        try:
            self.check.table = ctypes.addressof(space.table)
        except Unsupported:
            return self._same_read(space)
        return not self._call(_memory_same(), self._address, self._record) and bool(self._record.result)

    def _same_read(self, space: Space) -> bool:
        """Where there are no host addresses."""
        try:
            return all(space.read(*place) == data for place, data in self.memory.items())
        except GpuFault:
            return False


# -- keeping -----------------------------------------------------------------------------------------------------------


class KeptPlans(Generic[T]):
    """Plans, and the state that they were made from."""

    def __init__(self, plans: T, state: DrawState, notes: Notes) -> None:
        self.plans, self.notes, self.space, self.bases = plans, notes, _root(state.space), state.bases
        self._latched, self._marks = state.latched, b""  # how often commands had been latched when all of them were as noted
        self._comparison: MemoryComparison | None = None
        self._compared = (0, 0, 0, 0)  # how much was noted then

    def hold(self, state: DrawState) -> bool:
        """Whether the state is still the same."""
        notes, space = self.notes, state.space
        if notes.volatile or space is not self.space and _root(space) is not self.space:
            return False
        if state.bases is not self.bases and state.bases != self.bases:
            return False
        if type(space) is NotedSpace:  # the comparison is what other plans depend on
            return self._same_commands(state.latched) and self._same_noted(state)
        latched, marks = state.latched, state.marks
        if not marks or self._latched is not latched or not self._marks:
            if not self._same_commands(latched):
                return False
        elif marks != self._marks and not self._same_commands(latched, state.changed(self._marks)):
            return False
        self._latched, self._marks = latched, marks
        noted = len(notes.memory), len(notes.entries), len(notes.surfaces), len(notes.blocks)
        if self._comparison is None or self._compared != noted:
            self._compared = noted
            entries = {(address, ENTRY): data for (_, address), (_, data) in notes.entries.items()}
            blocks = {(address, size): data for (_, address, size), data in (*notes.surfaces.items(), *notes.blocks.items())}
            self._comparison = MemoryComparison({**notes.memory, **entries, **blocks})
        return self._comparison.same(space)

    def _same_commands(self, latched: Latched, names: list[str] | None = None) -> bool:
        """Of all commands, or those of some names."""
        commands, parts = self.notes.commands, self.notes.parts
        for name in commands if names is None else names:
            if name in commands:
                found, record = latched.get(name), commands[name]
                if found is not record and found != record:
                    return False
        return all(latched.by_index(name) == parts[name] for name in (parts if names is None else names) if name in parts)

    def _same_noted(self, state: DrawState) -> bool:
        space, notes = state.space, self.notes
        try:
            for (stage, address), (_, data) in notes.entries.items():
                if state.table_space(stage).read(address, ENTRY) != data:
                    return False
            for (stage, address, size), data in notes.surfaces.items():
                if state.table_space(stage).read(address, size) != data:
                    return False
            for (pointer, address, size), data in notes.blocks.items():
                if state.block_space(pointer).read(address, size) != data:
                    return False
            return all(space.read(*place) == data for place, data in notes.memory.items())
        except GpuFault:
            return False


class PlanCache(Generic[T]):
    """Plans by key, those used last first. `kept`: plans of each key, and keys."""

    def __init__(self, make: Callable[..., T], kept: int = KEPT) -> None:
        self.make, self.most = make, kept
        self._kept: dict[Hashable, list[KeptPlans[T]]] = {}

    def get(self, state: DrawState, *key: Hashable) -> T:
        """The plans for a state; what was wrong with it is reported again."""
        kept = self._kept.setdefault((state.gen, *key), [])
        for i, held in enumerate(kept):
            if held.hold(state):
                if i:
                    kept.insert(0, kept.pop(i))
                for text in held.notes.warnings:
                    state.warn(text)
                return held.plans
        notes = Notes()
        plans = self.make(noted(state, notes), *key)
        kept.insert(0, KeptPlans(plans, state, notes))
        del kept[self.most :]
        if len(self._kept) > self.most:
            self._kept = {(state.gen, *key): kept}
        return plans
