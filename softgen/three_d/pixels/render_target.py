"""Render targets of a draw as images, and the pixels that a draw may cover.

Reads   the pixel shader's binding table, RENDER_SURFACE_STATE
"""

from __future__ import annotations

from dataclasses import replace

from softgen.errors import SoftgenError
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.surface.image import SurfaceImage
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table

LARGEST = 16384  # pixels of a side, where no surface limits a draw


def render_target(state: DrawState, index: int = 0) -> SurfaceImage | None:
    """The level of a render target; the size of the first bounds the draw, but for a null surface, whose size means nothing (KBL 18925)."""
    try:
        image = _surfaces(state).picture(index, False, samples=True)
    except SoftgenError:
        return None  # the message that uses it says what is wrong
    return as_target(state, image)


def blends(state: DrawState, index: int = 0) -> bool:
    """Whether the surface state of a render target enables blending, as those of early generations have to (G45 8263)."""
    return bool(getattr(_surfaces(state).state(index), "color_blend_enable", True))


def _surfaces(state: DrawState) -> Surfaces:
    return Surfaces(state.generation, state.table_space("PS"), state.bases, binding_table(state, "PS"))


def as_target(state: DrawState, image: SurfaceImage) -> SurfaceImage:
    """The level of a surface that is drawn to."""
    control = image.control
    if control is not None:
        control = control._replace(base=state.address("", control.base), clear_at=state.address("", control.clear_at))
    return replace(image, base=state.address("", image.base), level=image.levels - 1, levels=1, control=control)


def extent(target: SurfaceImage | None) -> tuple[int, int]:
    """Pixels that a draw may cover."""
    if target is None or target.kind in ("null", "buffer"):
        return LARGEST, LARGEST
    _, _, width, height = target.level_box(target.level)
    return width, height
