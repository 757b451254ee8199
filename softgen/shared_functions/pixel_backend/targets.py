"""Render targets of a dispatch: binding table entries with the blend state of a render target index."""

from __future__ import annotations

from dataclasses import dataclass

from softgen.errors import DecodeError
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.shared_functions.pixel_backend import blend
from softgen.shared_functions.pixel_backend.messages import Variant
from softgen.shared_functions.pixel_backend.read import ReadForm
from softgen.shared_functions.pixel_backend.state import BackendState, DepthState, SurfacePlacement, TargetState
from softgen.shared_functions.pixel_backend.surface import TargetSurface, own_state, target_surface
from softgen.shared_functions.pixel_backend.write import TargetForm
from softgen.surface.samples import SampleControl


@dataclass(frozen=True)
class RenderTarget:
    """A render target: what its code depends on, and where it is."""

    surface: TargetSurface
    state: TargetState
    late: DepthState | None
    placement: SurfacePlacement
    control: SampleControl | None = None

    def form(self, variant: Variant) -> TargetForm:
        """What code for a message is specialised for; parts that the target does not look at make no difference."""
        state, late = blend.reached(self.state, self.surface, variant.dual), self.late
        alpha = variant.alpha and (self.state.alpha_test != "always" or self.state.alpha_to_coverage)
        depth = variant.depth and late is not None and (late.test is not None or late.write)
        stencil = variant.stencil and late is not None and late.faces is not None
        return TargetForm(self.surface, state, late, variant.lanes, variant.dual, alpha, depth, stencil, variant.omask)

    def read_form(self, lanes: int) -> ReadForm:
        return ReadForm(self.surface, lanes)


class Targets:
    """The targets of a dispatch."""

    def __init__(self, surfaces: Surfaces, state: BackendState, moved: int = 0) -> None:
        self.surfaces, self.state, self.moved = surfaces, state, moved  # moved: bytes that the blend state has moved by since

    def _blend(self, index: int) -> TargetState:
        state = self.state
        if index < len(state.targets):
            return state.targets[index]
        if state.more is None:
            raise DecodeError(f"render target index {index}: the blend state has entries for {len(state.targets)}")
        address, size = state.more.place(index)
        return state.more.parse(self.surfaces.space.read(address + self.moved, size))

    def target(self, surface: int | None, index: int) -> RenderTarget:
        """The target of a binding table index (None: a null target) and a render target index."""
        blend = self._blend(index)
        late = self.state.late.state if self.state.late is not None else None
        if surface is None:
            return RenderTarget(TargetSurface(None), blend, late, SurfacePlacement())
        raw, image = self.surfaces.state(surface), self.surfaces.picture(surface, False, samples=True)
        form, placement = target_surface(image, raw, f"surface {surface} (state at {self.surfaces.address(surface):#x})")
        return RenderTarget(form, own_state(blend, raw), late, placement, image.control)
