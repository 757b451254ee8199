"""The bindings of dispatches: what units resolve for compiled code, kept from one dispatch to the next.

Bindings are kept by address space, bases and pointers. The state they were resolved from is compared before each dispatch
(DispatchBindings.current), so that no command has to invalidate them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from softgen.memory.space import Space
from softgen.shared_functions import units
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.descriptors import Descriptor
from softgen.shared_functions.message import SentBytes
from softgen.shared_functions.unit import DispatchBindings, UnitBinding, UnitStates
from softgen.surface.image import SurfaceImage
from softgen.threads.dispatch import DispatchContext, ThreadDispatch

BASES = ("surface", "dynamic", "bindless", "general", "instruction")
MAX_TABLES = 16


def dispatch_bindings(context: DispatchContext, dispatch: ThreadDispatch) -> DispatchBindings:
    return DispatchBindings(context.generation, context.space, context.bases, dispatch.binding_table, dispatch.samplers,
                            dispatch.unit_states)  # fmt: skip


class MovedSurface(NamedTuple):
    """A binding table entry that leads to another surface state now: its bytes, the state's address and bytes, and the image."""

    entry: bytes
    address: int
    data: bytes
    image: SurfaceImage


@cache
def has_samplers(kind: type[object]) -> bool:
    """Whether bindings of a class are SamplerBindings."""
    return all(callable(getattr(kind, name, None)) for name in ("move_samplers", "sampler_keys"))


class BoundUnits:
    """The units of a dispatch, bound for compiled code."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch) -> None:
        self.dispatch = dispatch_bindings(context, dispatch)
        self.units = [units.named(name) for name in dispatch.units]
        makers = dict.fromkeys(unit.bind for unit in self.units if unit.bind is not None)  # units may share a binding
        self.bindings: list[UnitBinding] = [self.dispatch.state(make) for make in makers]
        self._surfaces = self.dispatch.state(Surfaces.of)
        self._samplers: list[Any] = [binding for binding in self.bindings if has_samplers(type(binding))]

    def fields(self) -> dict[str, int]:
        """The values of dispatch-scoped context fields."""
        found: dict[str, int] = {}
        for binding in self.bindings:
            found |= binding.fields()
        return found

    def prepare(self, indices: frozenset[int], hurry: bool) -> None:
        """Resolve the binding table entries that code names, before it runs."""
        for binding in self.bindings:
            binding.prepare(indices, hurry)

    def resolve(self, descriptor: Descriptor, sent: SentBytes | None = None) -> bool:
        """Resolve what a message lacked; True if compiled code can now execute it."""
        unit = units.answering(descriptor.function, descriptor.name)
        if unit is None or unit not in self.units or unit.bind is None:
            return False
        return self.dispatch.state(unit.bind).resolve(descriptor, sent)

    def current(self) -> bool:
        return self.dispatch.current()

    def move_table(self, offset: int) -> None:
        """The binding table is elsewhere, at another offset from the surface state base; what was resolved of it is the same there."""
        self.dispatch.binding_table = self._surfaces.table = offset
        self._surfaces.forget()

    def move(self, bases: Mapping[str, int], table: int, samplers: int) -> None:
        """Move all that pointers lead to: base addresses, binding table and samplers are others now."""
        self.dispatch.bases = self._surfaces.bases = bases
        self.move_samplers(samplers)
        self.move_table(table)

    def forget_surfaces(self) -> None:
        """Surface states are read again."""
        self._surfaces.forget()

    def surface(self, index: int) -> SurfaceImage:
        """The image of a binding table entry."""
        return self._surfaces.picture(index, False, samples=True)

    def replaced(self, indices: Iterable[int]) -> bool:
        """Entries of the binding table lead to other surface states now: whether all that was made for those before is right for them, and
        has their numbers from now on."""
        takes = [binding.replaced(index) for binding in self.bindings for index in indices]
        if None in takes:
            return False
        for take in takes:
            assert take is not None
            take()
        for index in indices:
            self.dispatch.depend_on_surface(index, len(self.dispatch.resolved.surfaces[index][1]))
        return True

    def renumbered(self, surfaces: Mapping[int, MovedSurface]) -> bool:
        """Variant of `replaced` for surfaces that differ from those before in numbers only; nothing is read."""
        takes = [binding.renumbered(index, moved.image) for binding in self.bindings for index, moved in surfaces.items()]
        if None in takes:
            return False
        for take in takes:
            assert take is not None
            take()
        resolved = self.dispatch.resolved
        resolved.reads.clear()
        for index, moved in surfaces.items():
            resolved.entries[index], resolved.surfaces[index] = moved.entry, (moved.address, moved.data)
        self._surfaces.forget()
        return True

    def follow_table(self, offset: int) -> bool:
        """The next dispatch has its binding table at an offset: whether that means the same surfaces, and all other state is the same."""
        if not self.dispatch.follow_table(offset):
            return False
        self._surfaces.table = offset  # what it has read is forgotten in `renew`
        return True

    def follow_surfaces(self, offset: int) -> bool:
        """Variant of follow_table for a table that is known to mean the same surfaces: the rest is compared."""
        dispatch = self.dispatch
        if not dispatch.rest_current():
            return False
        dispatch.binding_table = self._surfaces.table = offset
        return True

    def move_samplers(self, offset: int) -> None:
        """Move the sampler table to another offset from the dynamic state base."""
        self.dispatch.samplers = offset
        for binding in self._samplers:
            binding.move_samplers(offset)

    def sampler_keys(self) -> list[tuple[int, int]]:
        """Addresses of what compiled code compares with sampler tables of messages, and the values."""
        return [key for binding in self._samplers for key in binding.sampler_keys()]

    def in_place(self, bases: Mapping[str, int], dispatch: ThreadDispatch) -> bool:
        """Whether nothing was moved since the record was made."""
        held = self.dispatch
        if held.binding_table != dispatch.binding_table or held.samplers != dispatch.samplers or held.blend_moved:
            return False
        return held.bases is bases or all(held.bases.get(name) == bases.get(name) for name in BASES)

    def renew(self) -> None:
        for binding in self.bindings:
            binding.renew()


Key = tuple[float, int, int, tuple[int | None, ...], tuple[str, ...], UnitStates]


class BindingCache:
    """Tables of the last dispatches. One dispatch at a time uses it."""

    def __init__(self) -> None:
        self._tables: dict[tuple[Key, int], tuple[weakref.ref[Space], BoundUnits]] = {}

    def find(self, context: DispatchContext, dispatch: ThreadDispatch) -> BoundUnits:
        """The table that a dispatch uses, with entries from earlier dispatches if they still hold."""
        bases = tuple(context.bases.get(name) for name in BASES)
        pointers = dispatch.binding_table, dispatch.samplers
        key = (context.generation.number, *pointers, bases, dispatch.units, dispatch.unit_states), id(context.space)
        held = self._tables.pop(key, None)
        if held is not None and held[0]() is context.space and held[1].in_place(context.bases, dispatch) and held[1].current():
            table = held[1]
            table.renew()
        else:
            table = BoundUnits(context, dispatch)
            if len(self._tables) >= MAX_TABLES:
                del self._tables[next(iter(self._tables))]
        self._tables[key] = weakref.ref(context.space), table  # the last one used comes last
        return table
