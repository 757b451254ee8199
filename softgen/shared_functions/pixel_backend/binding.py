"""The render targets of a dispatch for compiled code: records and functions, made when messages need them and kept between dispatches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.units import GRF_BYTES
from softgen.errors import SoftgenError
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.descriptors import Descriptor
from softgen.shared_functions.message import SentBytes
from softgen.shared_functions.pixel_backend.functions import read_function, write_function
from softgen.shared_functions.pixel_backend.messages import FORMS, HEADER_BYTES, Variant, part_bits, variants
from softgen.shared_functions.pixel_backend.read import NAME as READ_MESSAGE
from softgen.shared_functions.pixel_backend.records import (
    NULL_TARGET,
    TARGETS,
    VARIANTS,
    TargetRecord,
    TargetTable,
    fill_color,
    fill_target,
)
from softgen.shared_functions.pixel_backend.state import BackendState, SurfacePlacement
from softgen.shared_functions.pixel_backend.surface import renumbered
from softgen.shared_functions.pixel_backend.targets import RenderTarget, Targets
from softgen.shared_functions.unit import DispatchBindings
from softgen.surface.image import SurfaceImage

NAMED = 1 << 20  # among the indices that code names: a target; its binding table index, variant, and render target index
VARIANT_SHIFT, INDEX_SHIFT = 9, 16
ANY_INDEX = TARGETS


def named_target(surface: int, variant: Variant, index: int | None) -> int:
    """How code names the function that it needs of a target, among the binding table entries it names."""
    return NAMED | (ANY_INDEX if index is None else index) << INDEX_SHIFT | variant.number << VARIANT_SHIFT | surface


class BoundTargets:
    """The targets of a binding table, as far as kernels have used them: the UnitBinding of the pixel backend."""

    def __init__(self, dispatch: DispatchBindings) -> None:
        self.dispatch, self.space, self.gen = dispatch, dispatch.space, dispatch.generation.number
        self.surfaces = dispatch.state(Surfaces.of)
        state = dispatch.unit_states.get("pixel backend")
        self.state = state if isinstance(state, BackendState) else None
        self.table = TargetTable(parts=part_bits(self.state.parts) if self.state else 0)
        self.records: dict[int, ctypes.Array[TargetRecord]] = {}  # by binding table index
        self._targets: dict[tuple[int, int], RenderTarget] = {}  # by the same and render target index: those that functions were made for

    def fields(self) -> dict[str, int]:
        return {"targets": ctypes.addressof(self.table) if self.state else 0, "table": ctypes.addressof(self.space.table)}

    def renew(self) -> None:
        """The surface states that code uses are as they were; the interpreter reads state again, as others are not compared."""
        self.surfaces.forget()

    def replaced(self, index: int) -> Callable[[], None] | None:
        """Targets of the same kind."""
        if self.state is None:
            return None
        targets, found = Targets(self.surfaces, self.state, self.dispatch.blend_moved), list[tuple[TargetRecord, RenderTarget]]()
        for (surface, number), before in self._targets.items():
            if surface == index:
                try:
                    now = targets.target(surface, number)
                except SoftgenError:
                    return None
                if (now.surface, now.state, now.late) != (before.surface, before.state, before.late):
                    return None
                found.append((self.records[surface][number], now))

        def replace() -> None:
            for record, target in found:
                fill_color(record, target.placement, target.control)

        return replace

    def renumbered(self, index: int, image: SurfaceImage) -> Callable[[], None] | None:
        """Targets with other numbers."""
        found = list[tuple[TargetRecord, SurfacePlacement]]()
        for (surface, number), before in self._targets.items():
            if surface == index:
                placement = renumbered(before.surface, before.placement, image)
                if placement is None:
                    return None
                found.append((self.records[surface][number], placement))

        def take() -> None:
            for record, placement in found:
                fill_color(record, placement)

        return take

    def prepare(self, indices: frozenset[int], hurry: bool = False) -> None:
        for index in indices:
            if index & NAMED and self.state is not None:
                surface, number = index & (1 << VARIANT_SHIFT) - 1, index >> VARIANT_SHIFT & VARIANTS - 1
                target, variant = index - NAMED >> INDEX_SHIFT, Variant.of(number)
                likely = surface if surface < TARGETS else 0  # drivers number targets alike in the binding table and in headers
                self.fill(surface, variant, (target if target != ANY_INDEX else likely,))

    def resolve(self, descriptor: Descriptor, sent: SentBytes | None = None) -> bool:
        """For code whose targets were not prepared. Errors in state are left to the interpreter, which reports them."""
        registers = descriptor.mlen - (HEADER_BYTES // GRF_BYTES if descriptor.header else 0)
        name = value_name(descriptor.layout, descriptor.values, "message_subtype")
        if self.state is None or name not in FORMS:
            return False
        if descriptor.name == READ_MESSAGE:
            read = Variant(FORMS[name].lanes, dual=False, alpha=False, depth=False, stencil=False, read=True)
            return self.fill(int(descriptor.values.binding_table_index), read, (0,))
        named = descriptor.header or catalogue.catalogue().get("EXTENDED_RENDER_TARGET", self.gen) is not None
        found, indices = False, range(TARGETS if named else 1)  # else it is the first target
        half = "precision" in descriptor.values._fields and value_name(descriptor.layout, descriptor.values, "precision") == "half"
        for variant in variants(self.gen, FORMS[name]._replace(half=half), registers):
            found |= self.fill(int(descriptor.values.binding_table_index), variant, indices)
        return found

    def fill(self, surface: int, variant: Variant, indices: Iterable[int] = range(TARGETS)) -> bool:
        """Fill in the functions for the messages to a surface with render target indices; False where the interpreter must execute them."""
        state = self.state
        if state is None:
            return False
        held = self.records.get(surface)
        if held is None:
            held = self.records[surface] = (TargetRecord * TARGETS)()
            self._depend(surface)
        targets, found = Targets(self.surfaces, state, self.dispatch.blend_moved), False
        for index in indices:
            record = held[index]
            if record.functions[variant.number]:
                continue
            try:
                target = targets.target(None if surface == NULL_TARGET else surface, index)
                if variant.read:
                    function = read_function(target.read_form(variant.lanes), self.space.bits).address
                else:
                    function = write_function(target.form(variant), self.space.bits).address
            except SoftgenError:  # the interpreter reports what is wrong
                continue
            self._depend_on_blend(state, index)
            fill_target(record, state, target.placement, target.control)
            self._targets[surface, index] = target
            record.functions[variant.number] = function
            found = True
        self.table.surfaces[surface] = ctypes.addressof(held)  # last: other workers may be reading the table
        return found

    def _depend_on_blend(self, state: BackendState, index: int) -> None:
        if index >= len(state.targets) and state.more is not None:
            self.dispatch.depend_on_blend(*state.more.place(index))

    def _depend(self, surface: int) -> None:
        if surface != NULL_TARGET:
            self.dispatch.depend_on_surface(surface, 4 * catalogue.layout("RENDER_SURFACE_STATE", self.gen).dwords)


__all__ = ["BoundTargets", "named_target"]
