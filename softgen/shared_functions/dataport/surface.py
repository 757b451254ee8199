"""Binding table entries become targets, each looked up on first use and kept for a dispatch.

Reads   BINDING_TABLE_STATE RENDER_SURFACE_STATE MEDIA_SURFACE_STATE
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.generation import Generation
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.errors import GpuFault, Unsupported
from softgen.memory.space import Space
from softgen.shared_functions.dataport.target import AccessTarget, GraphicsMemory, Nothing
from softgen.shared_functions.texture_tables import NO_TABLES, TextureTables
from softgen.shared_functions.unit import TABLES_END, DispatchBindings
from softgen.surface.image import SurfaceImage
from softgen.surface.resized import surface_image
from softgen.surface.texel import is_paletted

RAW = "RAW"


@cache
def _layout(name: str, gen: float) -> Layout:
    return catalogue.layout(name, gen)


@lru_cache(1024)
def _unpacked(name: str, gen: float, data: bytes) -> Record:
    """The same bytes mean the same: every dispatch looks at them again."""
    return _layout(name, gen).raw(array("I", data))


@lru_cache(1024)
def _kind(gen: float, state: Record) -> tuple[str, str]:
    """The names of a surface's type and format."""
    layout = _layout("RENDER_SURFACE_STATE", gen)
    return value_name(layout, state, "surface_type"), value_name(layout, state, "surface_format")


class Surfaces:
    """The surfaces of one dispatch: a binding table, counted from the surface base."""

    def __init__(self, generation: Generation, space: Space, bases: Mapping[str, int], binding_table: int) -> None:
        self.gen, self.space, self.bases, self.table = generation.number, space, bases, binding_table
        self.tell: Callable[[object, int, str], None] = lambda sender, index, what: None  # of the first access outside each buffer
        self.told: set[int] = set()
        self._targets: dict[int, AccessTarget] = {}
        self.palettes = NO_TABLES.palettes
        self._states: dict[tuple[int, bool], tuple[Record, Layout, str]] = {}

    @classmethod
    def of(cls, dispatch: DispatchBindings) -> Surfaces:
        found = cls(dispatch.generation, dispatch.space, dispatch.bases, dispatch.binding_table)
        found.palettes = TextureTables.of(dispatch).palettes
        found.tell = lambda sender, index, what: dispatch.warn(sender, what)
        return found

    def forget(self) -> None:
        """Another dispatch begins: surface state is read again, and accesses outside are reported again."""
        self.told.clear()
        self._targets.clear()
        self._states.clear()

    def bound(self, index: int) -> AccessTarget:
        """The buffer of a binding table index."""
        if index not in self._targets:
            self._targets[index] = self._buffer(self.address(index), f"surface {index}")
        return self._targets[index]

    def bindless(self, offset: int) -> AccessTarget:
        """The buffer whose state is at an offset from the bindless base."""
        return self._buffer(self._base("bindless") + offset, f"bindless surface {offset:#x}")

    def address(self, index: int) -> int:
        """Where the state of a binding table index is."""
        base, end = self._base("surface"), self.bases.get(TABLES_END)
        if end is not None and base + self.table + 4 * index + 4 > end:  # past the end of the pool of tables (BDW 1413-1414)
            return base
        entry = self._unpacked("BINDING_TABLE_STATE", base + self.table + 4 * index, "binding table entry ", index)
        return base + int(entry.surface_state_pointer)

    def picture(self, index: int, bindless: bool, samples: bool = False) -> SurfaceImage:
        """The surface of a binding table index, or of an offset from the bindless base, as an image. `samples`: it may have several."""
        state, layout, what = self._state(index, bindless)
        image = surface_image(layout, state, what)
        if image.samples > 1 and not samples:
            raise Unsupported(f"{what} has number_of_multisamples {value_name(layout, state, 'number_of_multisamples')}: not yet simulated "
                              "for this message")  # fmt: skip
        if not is_paletted(image.format):
            return image
        return replace(image, entries=self.palettes[int(image.format.name[-1])])

    def state(self, index: int) -> Record:
        return self._state(index, False)[0]

    def media_state(self, index: int) -> Record:
        """The state of a binding table index, read as that of a media surface."""
        return self._unpacked("MEDIA_SURFACE_STATE", self.address(index), f"state of media surface {index}")

    def counter(self, index: int) -> AccessTarget:
        """The counter of a surface: its own address, or that of an auxiliary surface that is one."""
        state, layout, what = self._state(index, False)
        if value_name(layout, state, "surface_type") == "null":
            return Nothing()
        if getattr(state, "append_counter_enable", 0):
            return GraphicsMemory(self.space, int(state.append_counter_address), 4)
        if "auxiliary_surface_mode" in state._fields and value_name(layout, state, "auxiliary_surface_mode") == "append":
            return GraphicsMemory(self.space, int(state.auxiliary_surface_base_address), 4)
        raise Unsupported(f"{what} has no counter")

    def _state(self, index: int, bindless: bool) -> tuple[Record, Layout, str]:
        key = (index, bindless)
        if key not in self._states:
            address = self._base("bindless") + index if bindless else self.address(index)
            what = f"bindless surface {index:#x}" if bindless else f"surface {index}"
            self._states[key] = *self._read("RENDER_SURFACE_STATE", address, f"state of {what}"), f"{what} (state at {address:#x})"
        return self._states[key]

    def known(self) -> dict[int, AccessTarget]:
        """The surfaces that were looked up so far."""
        return self._targets

    def plain(self, index: int) -> tuple[int, int] | None:
        """Address and size of the buffer of a binding table index; None for a null surface."""
        return self._plain(self.address(index), "surface ", index)

    def plain_bindless(self, offset: int) -> tuple[int, int] | None:
        """The same for an offset from the bindless base."""
        return self._plain(self._base("bindless") + offset, "bindless surface ", f"{offset:#x}")

    def plain_at(self, address: int, what: str) -> tuple[int, int] | None:
        """The same for an address of a surface state."""
        return self._plain(address, what, "")

    def _plain(self, address: int, what: str, index: object) -> tuple[int, int] | None:
        state = self._unpacked("RENDER_SURFACE_STATE", address, f"state of {what}", index)
        kind, form = _kind(self.gen, state)
        if kind == "null":
            return None
        if kind != "buffer":
            said = f"{what}{index} (state at {address:#x}) is a {kind} surface of format {form}"
            raise Unsupported(f"{said}: not yet simulated for this message")
        # Messages by byte offset do not look at the format: Mesa's uniform buffers are R32G32B32A32_FLOAT, read by OWord block messages too
        # (public Mesa anv, anv_isl_format_for_descriptor_type). Their size is that of their elements.
        return state.surface_base_address, state.number_of_entries * (1 if form == RAW else state.surface_pitch + 1)

    def _buffer(self, address: int, what: str) -> AccessTarget:
        found = self._plain(address, what, "")
        return Nothing() if found is None else GraphicsMemory(self.space, *found)

    def _read(self, name: str, address: int, what: str) -> tuple[Record, Layout]:
        return self._unpacked(name, address, what), _layout(name, self.gen)

    def _unpacked(self, name: str, address: int, *what: object) -> Record:
        address &= (1 << self.space.bits) - 1
        try:
            data = self.space.read(address, 4 * _layout(name, self.gen).dwords)
        except GpuFault as fault:
            why = f"{fault.why}; {''.join(map(str, what))} should be there"
            raise GpuFault(fault.address, fault.access, fault.space, fault.by, why) from None
        return _unpacked(name, self.gen, data)

    def _base(self, name: str) -> int:
        return self.bases.get(name, 0)
