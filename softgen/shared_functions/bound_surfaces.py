"""Bound surfaces: the entries that compiled code reaches by binding table index, resolved on first use and kept between dispatches.

In:  binding table and sampler state in memory. Out: Surface and Picture entries of a Bindings structure (bindings.py).

Drivers rewrite state in place, so all bytes that entries were made of are compared before each dispatch (DispatchBindings.current), and the
host addresses of buffers are looked up again.

Reads   MH_SAMPLER DP_EXTDESC_BTI252
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from softgen.bits import catalogue
from softgen.bits.units import GRF_BYTES
from softgen.errors import SoftgenError
from softgen.lanes.types import u32
from softgen.memory import arena
from softgen.shared_functions import descriptors
from softgen.shared_functions.avs.bound import ScalerSurfaces
from softgen.shared_functions.avs.messages import is_scaled
from softgen.shared_functions.avs.state import state_places
from softgen.shared_functions.bindings import (
    BLOCK_SAMPLE,
    KNOWN,
    LOAD_CONTROL,
    SAMPLE_OPERATIONS,
    SAMPLERS,
    SURFACES,
    TOLD,
    USED,
    empty_bindings,
    media_named,
    name_samplers,
    scaled_named,
    texels_named,
)
from softgen.shared_functions.dataport.bound_media import MediaSurfaces
from softgen.shared_functions.dataport.media import is_media_block
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.descriptors import Descriptor
from softgen.shared_functions.message import SentBytes
from softgen.shared_functions.sampler.state import Samplers
from softgen.shared_functions.sampler.unorm import BLOCK_LANES, is_block, refused
from softgen.shared_functions.texture.functions import Pictures
from softgen.shared_functions.texture.operations import TexelRequest, requested
from softgen.shared_functions.unit import DispatchBindings, HostRange
from softgen.surface.image import SurfaceImage


@cache
def _special(gen: float) -> frozenset[int]:
    """Binding table indices that do not name an entry."""
    return frozenset(catalogue.enumeration(descriptors.SURFACES, gen))


def _nothing() -> None:
    """No function was made for the entry."""


class SurfaceName(NamedTuple):
    """A surface as messages name it: by binding table index, or by the offset of its state."""

    number: int
    bindless: bool = False


def _keyed(keys: ctypes.Array[ctypes.c_uint32], offset: int) -> int | None:
    """The number of a key in a table of Bindings, entered where it is new; None where the table is full."""
    key = offset + USED & u32.highest
    for number, held in enumerate(keys):
        if held in (key, 0):
            keys[number] = key
            return number
    return None


class BoundSurfaces:
    """The entries of one binding table and its samplers, as far as kernels have used them: the UnitBinding of data port and sampler."""

    def __init__(self, dispatch: DispatchBindings) -> None:
        self.dispatch, self.gen, self.space = dispatch, dispatch.generation.number, dispatch.space
        self.surfaces, self.samplers = dispatch.state(Surfaces.of), dispatch.state(Samplers.of)
        self.surfaces.tell = self._outside
        self.bindings = empty_bindings()
        self.sampler_size = 4 * catalogue.layout("SAMPLER_STATE", self.gen).dwords
        name_samplers(self.bindings, dispatch.samplers, self.sampler_size)
        self.pictures = Pictures(self.bindings, dispatch.generation.address_bits)
        self.media = MediaSurfaces(self.bindings, self.surfaces)
        self.scalers = ScalerSurfaces(self.bindings, self.surfaces, self.samplers)
        self.table = dispatch.space.table
        self.known: set[int] = set()  # indices that were looked at
        self.hurried: set[int] = set()  # operations on texels whose functions were compiled because code named them
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
        if self.bindings.sampler_keys[0] != self.dispatch.samplers + USED & 0xFFFFFFFF:  # a prepared draw has moved them (draw_state.c)
            name_samplers(self.bindings, self.dispatch.samplers, self.sampler_size)

    def replaced(self, index: int) -> Callable[[], None] | None:
        """Another image of the same kind; buffers are found by host address, and are resolved anew."""
        operations, image = self.pictures.operations(index), None
        if index in self.known or self.media.holds(index) or self.scalers.holds(index):
            return None
        try:
            for what in operations:
                image = self.surfaces.picture(index, False, what in SAMPLE_OPERATIONS)
                if not self.pictures.fits(index, what, image):
                    return None
        except SoftgenError:
            return None
        return partial(self.pictures.replace, index, image) if image is not None else _nothing

    def renumbered(self, index: int, image: SurfaceImage) -> Callable[[], None] | None:
        """The same image with other numbers."""
        if index in self.known or self.media.holds(index) or self.scalers.holds(index):
            return None
        operations = self.pictures.operations(index)
        if LOAD_CONTROL in operations or not self.pictures.fits_levels(index, image):
            return None
        return partial(self.pictures.replace, index, image) if operations else _nothing

    def move_samplers(self, offset: int) -> None:
        """The sampler table is elsewhere, at another offset from its base, or from another base; what was resolved of it is the same
        there."""
        self.dispatch.samplers = offset
        self.samplers.move(self.dispatch.bases, offset)
        self.dispatch.resolved.sampler_base = self.samplers.base
        name_samplers(self.bindings, offset, self.sampler_size)

    def sampler_keys(self) -> list[tuple[int, int]]:
        """Where compiled code finds the keys of the dispatch's samplers, and the keys."""
        keys = self.bindings.sampler_keys
        start, step = ctypes.addressof(keys), ctypes.sizeof(keys._type_)
        return [(start + step * number, keys[number]) for number in range(SAMPLERS)]

    def _depend_on_surface(self, name: SurfaceName) -> None:
        size = 4 * catalogue.layout("RENDER_SURFACE_STATE", self.gen).dwords
        if name.bindless:
            self.dispatch.depend(self.surfaces.bases.get("bindless", 0) + name.number, size)
            return
        self.dispatch.depend_on_surface(name.number, size)

    def _depend_on_sampler(self, index: int, table: int | None) -> None:
        samplers, layout, offset = self.samplers, catalogue.layout("SAMPLER_STATE", self.gen), index * self.sampler_size
        if table is None:
            data = self.dispatch.depend_on_sampler(samplers.base, offset, self.sampler_size)
        else:
            data = self.dispatch.depend_behind(samplers.base, table + offset, self.sampler_size)
        if data:
            pointer = layout.raw(memoryview(data).cast("I")).border_color_pointer
            border = catalogue.layout("SAMPLER_BORDER_COLOR_STATE", self.gen)
            if self.space.extent(samplers.base + pointer & (1 << self.space.bits) - 1, 4 * border.dwords) == 4 * border.dwords:
                self.dispatch.depend_behind(samplers.base, pointer, 4 * border.dwords)

    # -- resolving -------------------------------------------------------------------------------------------------------

    def prepare(self, indices: frozenset[int], hurry: bool = False) -> None:
        for index in indices - (self.hurried if hurry else self.known):
            if index < SURFACES:
                if index not in self.known:
                    self.resolve_buffer(SurfaceName(index))
            elif (media := media_named(index)) is not None:
                self.known.add(index)
                self.resolve_media(SurfaceName(media))
            elif (scaled := scaled_named(index)) is not None:
                self.known.add(index)
                self.resolve_scaled(SurfaceName(scaled[0]), scaled[1])
            elif named := texels_named(index):  # others are those of other units
                self.known.add(index)
                if hurry:
                    self.hurried.add(index)
                surface, what, lanes, sampler = named
                self.resolve_image(TexelRequest(what, lanes, sampler), SurfaceName(surface), hurry=hurry)

    def resolve(self, descriptor: Descriptor, sent: SentBytes | None = None) -> bool:
        index = getattr(descriptor.values, "binding_table_index", None)
        if index is None:
            return False
        name = self._name(int(index), sent)
        if name is None:
            return False
        if is_media_block(descriptor.name):
            return self.resolve_media(name)
        if is_scaled(descriptor.name):
            return self.resolve_scaled(name, int(descriptor.values.sampler_index))
        if is_block(descriptor.name):  # whose header names no table of samplers
            return self.resolve_image(TexelRequest(BLOCK_SAMPLE, BLOCK_LANES, int(descriptor.values.sampler_index)), name)
        if request := requested(descriptor, None if sent is None else len(sent.payload) + len(sent.second)):
            return self.resolve_image(request, name, self._table(descriptor, sent))
        entry = self._entry(name)
        return entry is not None and entry not in self.known and self.resolve_buffer(name)

    def _name(self, index: int, sent: SentBytes | None) -> SurfaceName | None:
        """The surface that a message names; None for what is none."""
        special = catalogue.enumeration(descriptors.SURFACES, self.gen).get(index)
        if special == "bindless" and sent is not None:
            extended = catalogue.layout("DP_EXTDESC_BTI252", self.gen).raw([getattr(sent, "extended", 0)])
            return SurfaceName(int(extended.surface_offset), True)
        return SurfaceName(index) if special is None else None

    def _table(self, descriptor: Descriptor, sent: SentBytes | None) -> int | None:
        """The offset of the sampler table that the header of a message names."""
        if sent is None or not descriptor.header or "sampler_index" not in descriptor.values._fields:
            return None
        layout = catalogue.layout("MH_SAMPLER", self.gen)
        return int(layout.raw(sent.payload[:GRF_BYTES].view("<u4").tolist()).sampler_state_pointer)

    def _entry(self, name: SurfaceName) -> int | None:
        """The number of a surface in Bindings; None where all for bindless ones are taken."""
        if not name.bindless:
            return name.number
        found = _keyed(self.bindings.surface_keys, name.number)
        return None if found is None else SURFACES + found

    def resolve_buffer(self, name: SurfaceName) -> bool:
        """Fills the entry of a buffer or a null surface. Errors in surface state are left to the reference engine, which reports them."""
        index = self._entry(name)
        if index is None or not name.bindless and index in _special(self.gen):
            return False
        self.known.add(index)
        self._depend_on_surface(name)
        try:
            found = self.surfaces.plain_bindless(name.number) if name.bindless else self.surfaces.plain(index)
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
        mapped = self.space.mapped(base, size)
        self.dispatch.resolved.hosts[index] = HostRange(base, size, host, mapped)
        entry.host = host
        entry.size, entry.mapped = size, mapped  # last: other workers may be reading the entry
        return True

    def resolve_image(self, request: TexelRequest, name: SurfaceName, table: int | None = None, hurry: bool = False) -> bool:
        """Fills in the function that executes a message on the texels of a surface. `table`: the sampler table that its header names;
        `hurry`: compiles it where it has not been."""
        index, sampler = self._entry(name), request.sampler
        if index is None or not name.bindless and index in _special(self.gen):
            return False
        self._depend_on_surface(name)
        try:
            image, sampling = self.surfaces.picture(name.number, name.bindless, request.what in SAMPLE_OPERATIONS), None
            if request.what == BLOCK_SAMPLE and (name.bindless or refused(image, self.surfaces.state(name.number))):
                return False
            if request.samples:
                offset = (self.samplers.table if table is None else table) + request.sampler * self.sampler_size
                self._depend_on_sampler(request.sampler, table)
                sampling = self.samplers.sampling(request.sampler, table, image.partial)
                if table is not None:
                    found = _keyed(self.bindings.sampler_keys, offset)
                    if found is None:
                        return False
                    sampler = found
            return self.pictures.fill(index, request.what, request.lanes, sampler, image, sampling, hurry)
        except SoftgenError:
            return False

    def resolve_media(self, name: SurfaceName) -> bool:
        """Fills the entry of a surface of media blocks."""
        if name.bindless or name.number in _special(self.gen):
            return False
        self._depend_on_surface(name)
        try:
            return self.media.fill(name.number)
        except SoftgenError:
            return False

    def resolve_scaled(self, name: SurfaceName, sampler: int) -> bool:
        """Fills the entry of a surface of the video scaler."""
        if name.bindless or name.number in _special(self.gen):
            return False
        self._depend_on_surface(name)
        try:
            for behind, offset, size in state_places(self.samplers, sampler):
                (self.dispatch.depend_behind if behind else self.dispatch.depend_on_sampler)(self.samplers.base, offset, size)
            return self.scalers.fill(name.number, sampler)
        except SoftgenError:
            return False

    def _outside(self, sender: object, index: int, what: str) -> None:
        """Report an access outside a buffer, once for each surface."""
        self.reported.add(index)
        self.bindings.surfaces[index].known = TOLD
        self.dispatch.warn(sender, what)
