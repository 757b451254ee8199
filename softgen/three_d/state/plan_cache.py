"""PlanCache: plans kept from draw to draw, while the state that they were made from is what it was.

    cache = PlanCache(make)           # make(state, *key) -> plans
    plans = cache.get(state, extent)

What `make` asks the state for is noted: commands, and bytes in memory. Plans are used again when all of it still holds, and base addresses
too. Memory is compared at every draw (read_set.py), so that it does not matter who wrote there, or when.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from softgen.bits.record import Record
from softgen.command import Latched
from softgen.errors import SoftgenError
from softgen.memory.read_set import ReadRange, ReadSet
from softgen.memory.space import ArenaTable, MappedRegion, Space
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table

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

    def include(self, others: Notes) -> None:
        """What plans depend on that these are made from."""
        for name in ("commands", "parts", "memory", "entries", "surfaces", "blocks", "bases"):
            getattr(self, name).update(getattr(others, name))

    def reads(self) -> ReadSet:
        """All memory that was read, where it was read."""
        entries = {(address, ENTRY): data for (_, address), (_, data) in self.entries.items()}
        behind = {(address, size): data for (_, address, size), data in (*self.surfaces.items(), *self.blocks.items())}
        return ReadSet(ReadRange(0, address, data) for (address, _), data in {**self.memory, **entries, **behind}.items())


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
    """An address space for a reader of a stage's binding table: its entries, and the surface states that they lead to, are noted apart,
    as drivers move them."""

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
    """An address space for a reader of a block of state behind a pointer: noted apart, as drivers write the same blocks elsewhere."""

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

    def include(self, notes: Notes) -> None:
        """What the state would have been asked for, to make plans that were kept."""
        self._notes.include(notes)
        if isinstance(self._state, NotedState):
            self._state.include(notes)

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


# -- keeping -----------------------------------------------------------------------------------------------------------


class KeptPlans(Generic[T]):
    """Plans, and the state that they were made from."""

    def __init__(self, plans: T, state: DrawState, notes: Notes) -> None:
        self.plans, self.notes, self.space, self.bases = plans, notes, state.space, state.bases
        self._latched, self._marks = state.latched, state.marks  # how often commands had been latched when all of them were as noted
        self._reads: ReadSet | None = None
        self._compared = (0, 0, 0, 0)  # how much was noted then
        self._differed = ""  # the command that was another one last: likely it still is

    def hold(self, state: DrawState) -> bool:
        """Whether the state is still the same."""
        notes = self.notes
        if notes.volatile or state.space is not self.space:
            return False
        if state.bases is not self.bases and state.bases != self.bases:
            return False
        latched, marks, differed = state.latched, state.marks, self._differed
        if differed and latched.get(differed) != notes.commands[differed]:
            return False
        if not marks or self._latched is not latched or not self._marks:
            if not self._same_commands(latched):
                return False
        elif marks != self._marks and not self._same_commands(latched, state.changed(self._marks)):
            return False
        self._latched, self._marks = latched, marks
        noted = len(notes.memory), len(notes.entries), len(notes.surfaces), len(notes.blocks)
        if self._reads is None or self._compared != noted:
            self._reads, self._compared = notes.reads(), noted
        return self._reads.same(state.space)

    def _same_commands(self, latched: Latched, names: list[str] | None = None) -> bool:
        """Of all commands, or those of some names."""
        commands, parts = self.notes.commands, self.notes.parts
        for name in commands if names is None else names:
            if name in commands:
                found, record = latched.get(name), commands[name]
                if found is not record and found != record:
                    self._differed = name
                    return False
        self._differed = ""
        return all(latched.by_index(name) == parts[name] for name in (parts if names is None else names) if name in parts)


class PlanCache(Generic[T]):
    """Plans by key, those used last first. `kept`: plans of each key, and keys."""

    def __init__(self, make: Callable[..., T], kept: int = KEPT) -> None:
        self.make, self.most = make, kept
        self._kept: dict[Hashable, list[KeptPlans[T]]] = {}

    def get(self, state: DrawState, *key: Hashable) -> T:
        """The plans for a state; what was wrong with it is reported again."""
        kept, plain = self._kept.setdefault((state.gen, *key), []), state.unnoted
        for i, held in enumerate(kept):
            if held.hold(plain):
                if i:
                    kept.insert(0, kept.pop(i))
                if isinstance(state, NotedState):
                    state.include(held.notes)
                for text in held.notes.warnings:
                    state.warn(text)
                return held.plans
        notes = Notes()
        plans = self.make(noted(state, notes), *key)
        kept.insert(0, KeptPlans(plans, plain, notes))
        del kept[self.most :]
        if len(self._kept) > self.most:
            self._kept = {(state.gen, *key): kept}
        return plans
