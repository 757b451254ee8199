"""PlanCache: plans kept from draw to draw, while the state that they were made from is what it was.

    cache = PlanCache(make)           # make(state, *key) -> plans
    plans = cache.get(state, extent)

What `make` asked the state for is noted: commands, base addresses, structures in memory. Plans are used again when all of it still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.errors import GpuFault
from softgen.three_d.state import DrawState

T = TypeVar("T")
KEPT = 4  # plans of each key, and keys


class WatchedState(DrawState):
    """A state that notes what it was asked for."""

    def __init__(self, state: DrawState) -> None:
        super().__init__(state.generation, state.space, state.latched, state.bases, state.register, state.warn)
        self.commands: dict[str, Record | None] = {}
        self.addresses: dict[str, int] = {}
        self.ranges: set[tuple[int, int]] = set()  # start and end in memory

    def get(self, name: str) -> Record | None:
        found = self.commands[name] = super().get(name)
        return found

    def command(self, name: str) -> Record:
        found = self.commands[name] = super().command(name)
        return found

    def address(self, base: str, offset: int) -> int:
        self.addresses[base] = self.bases.get(base, 0)
        return super().address(base, offset)

    def structure(self, name: str, address: int) -> Record:
        address &= (1 << self.space.bits) - 1
        self.ranges.add((address, address + 4 * catalogue.layout(name, self.gen).dwords))
        return super().structure(name, address)


class KeptPlans(Generic[T]):
    """Plans, and the state that they were made from."""

    def __init__(self, plans: T, state: WatchedState) -> None:
        self.plans, self.space = plans, state.space
        self.commands, self.bases = tuple(state.commands.items()), tuple(state.addresses.items())
        self.memory = tuple((start, end - start, state.space.read(start, end - start)) for start, end in _joined(state))

    def hold(self, state: DrawState) -> bool:
        """Whether the state is still the same."""
        latched, space = state.latched, state.space
        if space is not self.space or any(state.bases.get(base, 0) != address for base, address in self.bases):
            return False
        for name, record in self.commands:
            found = latched.get(name)
            if found is not record and found != record:
                return False
        try:
            return all(space.read(start, size) == data for start, size, data in self.memory)
        except GpuFault:
            return False


def _joined(state: WatchedState) -> list[tuple[int, int]]:
    """The ranges of memory that were read, adjacent ones as one; without any that is not there, which the reader took as such."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(state.ranges):
        try:
            state.space.read(start, end - start)
        except GpuFault:
            continue
        if found and found[-1][1] >= start:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


class PlanCache(Generic[T]):
    """Plans by key, those used last first."""

    def __init__(self, make: Callable[..., T]) -> None:
        self.make = make
        self._kept: dict[Hashable, list[KeptPlans[T]]] = {}

    def get(self, state: DrawState, *key: Hashable) -> T:
        """The plans for a state."""
        kept = self._kept.setdefault((state.gen, *key), [])
        for i, held in enumerate(kept):
            if held.hold(state):
                if i:
                    kept.insert(0, kept.pop(i))
                return held.plans
        watched = WatchedState(state)
        plans = self.make(watched, *key)
        kept.insert(0, KeptPlans(plans, watched))
        del kept[KEPT:]
        if len(self._kept) > KEPT:
            self._kept = {(state.gen, *key): kept}
        return plans
