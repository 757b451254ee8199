"""Bindings: surface entries that compiled code reaches by binding table index, resolved on first use and kept between dispatches.

In:  binding table and sampler state in memory. Out: Surface and Picture entries of a Bindings structure (eu/thread/block.py).

A table is kept by address space, bases and pointers. Drivers rewrite state in place, so all bytes that its entries were made of are
compared before each dispatch, and the host addresses of buffers are looked up again; `clear` drops all tables.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from typing import NamedTuple

from softgen.bits import catalogue
from softgen.errors import SoftgenError
from softgen.eu.textured import Pictures
from softgen.eu.thread.block import KNOWN, TOLD, Bindings
from softgen.memory import arena
from softgen.memory.space import Space
from softgen.shared_functions import message
from softgen.shared_functions.texture import Asked
from softgen.threads import units
from softgen.threads.dispatch import DispatchContext, ThreadDispatch

BASES = ("surface", "dynamic", "bindless", "general")
MAX_TABLES = 16


@cache
def _special(gen: float) -> frozenset[int]:
    """Binding table indices that do not name an entry."""
    return frozenset(catalogue.enumeration(message.SURFACES, gen))


class StateBytes(NamedTuple):
    """Bytes of state that entries depend on."""

    address: int
    data: bytes


class HostRange(NamedTuple):
    """A buffer, and where compiled code finds it."""

    address: int
    size: int
    host: int


class BoundTable:
    """The entries of one binding table and its samplers, as far as kernels have used them."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch) -> None:
        self.gen, self.space = context.generation.number, context.space
        self.surfaces, self.samplers = units.surfaces(context, dispatch), units.samplers(context, dispatch)
        self.bindings = Bindings()
        self.bindings.samplers = dispatch.samplers
        self.pictures = Pictures(self.bindings, context.generation.address_bits)
        self.known: set[int] = set()  # indices that were looked at
        self.reported: set[int] = set()  # indices with an access outside that was reported
        self.states: dict[int, StateBytes] = {}  # by address
        self.hosts: dict[int, HostRange] = {}  # by index
        self.volatile = False  # state could not be read: keep nothing

    @property
    def address(self) -> int:
        return ctypes.addressof(self.bindings)

    # -- keeping ---------------------------------------------------------------------------------------------------------

    def current(self) -> bool:
        """Whether all that the entries depend on is as it was."""
        if self.volatile:
            return False
        space = self.space
        try:
            if any(space.read(state.address, len(state.data)) != state.data for state in self.states.values()):
                return False
            return all(space.contiguous(buffer.address, buffer.size) == buffer.host for buffer in self.hosts.values())
        except SoftgenError:
            return False

    def renew(self) -> None:
        """For another dispatch: accesses outside are reported again."""
        for index in self.reported:
            self.bindings.surfaces[index].known = KNOWN
        self.reported.clear()
        self.surfaces.told.clear()

    def _depend(self, address: int, size: int) -> None:
        address &= (1 << self.space.bits) - 1
        try:
            self.states[address] = StateBytes(address, self.space.read(address, size))
        except SoftgenError:
            self.volatile = True

    def _depend_on_surface(self, index: int) -> None:
        surfaces = self.surfaces
        self._depend(surfaces.bases.get("surface", 0) + surfaces.table + 4 * index, 4)
        try:
            self._depend(surfaces.address(index), 4 * catalogue.layout("RENDER_SURFACE_STATE", self.gen).dwords)
        except SoftgenError:
            self.volatile = True

    def _depend_on_sampler(self, index: int) -> None:
        samplers, layout = self.samplers, catalogue.layout("SAMPLER_STATE", self.gen)
        start, size = samplers.base + samplers.table + index * 4 * layout.dwords, 4 * layout.dwords
        self._depend(start, size)
        state = self.states.get(start & (1 << self.space.bits) - 1)
        if state is not None:
            pointer = layout.raw(memoryview(state.data).cast("I")).border_color_pointer
            border = catalogue.layout("SAMPLER_BORDER_COLOR_STATE", self.gen)
            if self.space.extent(samplers.base + pointer & (1 << self.space.bits) - 1, 4 * border.dwords) == 4 * border.dwords:
                self._depend(samplers.base + pointer, 4 * border.dwords)

    # -- resolving -------------------------------------------------------------------------------------------------------

    def resolve(self, index: int) -> bool:
        """Fills the entry of a buffer or a null surface. Errors in surface state are left to the reference engine, which reports them."""
        self.known.add(index)
        if index in _special(self.gen):
            return False
        self._depend_on_surface(index)
        try:
            found = self.surfaces.plain(index)
        except SoftgenError:
            return False
        entry = self.bindings.surfaces[index]
        entry.known = KNOWN
        if found is None:
            entry.known, entry.size, entry.host = TOLD, 0, arena.void()
            return True
        base, size = found
        base &= (1 << self.space.bits) - 1
        host = self.space.contiguous(base, size)
        if host is None:
            return False
        self.hosts[index] = HostRange(base, size, host)
        entry.address, entry.host = base, host
        entry.size = size  # last: other workers may be reading the entry
        return True

    def resolve_image(self, asked: Asked, index: int) -> bool:
        """Fills in the function that executes a message on the texels of a surface."""
        if index in _special(self.gen):
            return False
        self._depend_on_surface(index)
        if asked.samples:
            self._depend_on_sampler(asked.sampler)
        try:
            sampling = self.samplers.sampling(asked.sampler) if asked.samples else None
            return self.pictures.fill(index, asked.what, asked.lanes, asked.sampler, self.surfaces.picture(index, False), sampling)
        except SoftgenError:
            return False

    def report_outside(self, index: int) -> None:
        """An access outside a buffer has been reported."""
        self.reported.add(index)
        self.bindings.surfaces[index].known = TOLD


Key = tuple[float, int, int, tuple[int | None, ...]]


class BindingCache:
    """Tables of the last dispatches. One dispatch at a time uses it."""

    def __init__(self) -> None:
        self._tables: dict[tuple[Key, int], tuple[weakref.ref[Space], BoundTable]] = {}
        self.epoch = 0

    def find(self, context: DispatchContext, dispatch: ThreadDispatch) -> BoundTable:
        """The table that a dispatch uses, with entries from earlier dispatches if they still hold."""
        bases = tuple(context.bases.get(name) for name in BASES)
        key = (context.generation.number, dispatch.binding_table, dispatch.samplers, bases), id(context.space)
        held = self._tables.pop(key, None)
        if held is not None and held[0]() is context.space and held[1].current():
            table = held[1]
            table.renew()
        else:
            table = BoundTable(context, dispatch)
            if len(self._tables) >= MAX_TABLES:
                del self._tables[next(iter(self._tables))]
        self._tables[key] = weakref.ref(context.space), table  # the last one used comes last
        return table

    def clear(self) -> None:
        self._tables.clear()
