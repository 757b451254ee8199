"""Bound surfaces: the entries that compiled code reaches by binding table index, resolved on first use and kept between dispatches.

In:  binding table and sampler state in memory. Out: Surface and Picture entries of a Bindings structure (bindings.py).

Drivers rewrite state in place, so all bytes that entries were made of are compared before each dispatch (DispatchBindings.current), and the
host addresses of buffers are looked up again.
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits import catalogue
from softgen.errors import SoftgenError
from softgen.memory import arena
from softgen.shared_functions import descriptors
from softgen.shared_functions.bindings import KNOWN, SURFACES, TOLD, Bindings
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.descriptors import Descriptor
from softgen.shared_functions.sampler.state import Samplers
from softgen.shared_functions.texture.functions import Pictures
from softgen.shared_functions.texture.operations import TexelRequest, requested
from softgen.shared_functions.unit import DispatchBindings, HostRange


@cache
def _special(gen: float) -> frozenset[int]:
    """Binding table indices that do not name an entry."""
    return frozenset(catalogue.enumeration(descriptors.SURFACES, gen))


class BoundSurfaces:
    """The entries of one binding table and its samplers, as far as kernels have used them: the UnitBinding of data port and sampler."""

    def __init__(self, dispatch: DispatchBindings) -> None:
        self.dispatch, self.gen, self.space = dispatch, dispatch.generation.number, dispatch.space
        self.surfaces, self.samplers = dispatch.state(Surfaces.of), dispatch.state(Samplers.of)
        self.surfaces.tell = self._outside
        self.bindings = Bindings()
        self.bindings.samplers = dispatch.samplers
        self.pictures = Pictures(self.bindings, dispatch.generation.address_bits)
        self.table = dispatch.space.table
        self.known: set[int] = set()  # indices that were looked at
        self.reported: set[int] = set()  # indices with an access outside that was reported

    def fields(self) -> dict[str, int]:
        return {"table": ctypes.addressof(self.table), "surfaces": ctypes.addressof(self.bindings),
                "general": self.dispatch.bases.get("general", 0)}  # fmt: skip

    # -- keeping ---------------------------------------------------------------------------------------------------------

    def renew(self) -> None:
        """For another dispatch: accesses outside are reported again, and the interpreter reads state again: what only it has used is not
        among the states that are compared."""
        for index in self.reported:
            self.bindings.surfaces[index].known = KNOWN
        self.reported.clear()
        self.surfaces.forget()
        self.samplers.forget()

    def _depend_on_surface(self, index: int) -> None:
        self.dispatch.depend_on_entry(index)
        try:
            self.dispatch.depend(self.surfaces.address(index), 4 * catalogue.layout("RENDER_SURFACE_STATE", self.gen).dwords)
        except SoftgenError:
            self.dispatch.resolved.volatile = True

    def _depend_on_sampler(self, index: int) -> None:
        samplers, layout = self.samplers, catalogue.layout("SAMPLER_STATE", self.gen)
        data = self.dispatch.depend(samplers.base + samplers.table + index * 4 * layout.dwords, 4 * layout.dwords)
        if data:
            pointer = layout.raw(memoryview(data).cast("I")).border_color_pointer
            border = catalogue.layout("SAMPLER_BORDER_COLOR_STATE", self.gen)
            if self.space.extent(samplers.base + pointer & (1 << self.space.bits) - 1, 4 * border.dwords) == 4 * border.dwords:
                self.dispatch.depend(samplers.base + pointer, 4 * border.dwords)

    # -- resolving -------------------------------------------------------------------------------------------------------

    def prepare(self, indices: frozenset[int]) -> None:
        for index in indices - self.known:
            if index < SURFACES:  # those above are other units'
                self.resolve_buffer(index)

    def resolve(self, descriptor: Descriptor) -> bool:
        index = getattr(descriptor.values, "binding_table_index", None)
        if index is None:
            return False
        if request := requested(descriptor):
            return self.resolve_image(request, int(index))
        return index not in self.known and self.resolve_buffer(int(index))

    def resolve_buffer(self, index: int) -> bool:
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
        self.dispatch.resolved.hosts[index] = HostRange(base, size, host)
        entry.address, entry.host = base, host
        entry.size = size  # last: other workers may be reading the entry
        return True

    def resolve_image(self, request: TexelRequest, index: int) -> bool:
        """Fills in the function that executes a message on the texels of a surface."""
        if index in _special(self.gen):
            return False
        self._depend_on_surface(index)
        if request.samples:
            self._depend_on_sampler(request.sampler)
        try:
            sampling = self.samplers.sampling(request.sampler) if request.samples else None
            return self.pictures.fill(index, request.what, request.lanes, request.sampler, self.surfaces.picture(index, False), sampling)
        except SoftgenError:
            return False

    def _outside(self, sender: object, index: int, what: str) -> None:
        """Report an access outside a buffer, once for each surface."""
        self.reported.add(index)
        self.bindings.surfaces[index].known = TOLD
        self.dispatch.warn(sender, what)
