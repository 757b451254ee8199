"""BackendState: what a draw says about render targets, blending, depth and stencil, the same for all generations.

TargetState and DepthState decide which code is needed. Numbers (addresses, sizes, constant colour, references) stand apart from them:
code reads these from records.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Protocol

KEEP = "keep"


@dataclass(frozen=True)
class BlendEquation:
    """A blend function and its factors, by their names in 3D_Color_Buffer_Blend_Function and 3D_Color_Buffer_Blend_Factor."""

    function: str = "add"
    source: str = "one"
    destination: str = "zero"


@dataclass(frozen=True)
class TargetState:
    """The blend state of a render target."""

    color: BlendEquation | None = None  # None: blending is disabled
    alpha: BlendEquation | None = None  # None: the colour's
    logic_op: int | None = None  # 3D_Logic_Op_Function; None: disabled
    write_disable: str = ""  # letters of rgba
    clamp_range: str = "rtformat"  # unorm, snorm or rtformat
    pre_clamp: str = ""  # all: sources, destination and constant; sources; or nothing
    post_clamp: bool = False
    alpha_test: str = "always"  # 3D_Compare_Function
    alpha_test_unorm8: bool = False  # alpha is rounded to 8 bits before it is compared
    alpha_to_coverage: bool = False  # source 0 alpha decides whether the sample is covered
    alpha_to_one: bool = False
    dither: tuple[int, int] | None = None  # X and Y offsets
    antialiased: bool = False  # alpha is multiplied by PixelDispatch.antialias
    samples: int = 1  # of a pixel


@dataclass(frozen=True)
class SurfacePlacement:
    """Where a level of a surface is: address, size in pixels, and the steps from row to row and slice to slice (surface/levels.py)."""

    base: int = 0
    width: int = 0
    height: int = 0
    slices: int = 1
    pitch: int = 0  # bytes
    rows: int = 0  # from slice to slice
    first: int = 0  # minimum array element
    left: int = 0  # of the level in the surface, in pixels
    top: int = 0
    columns: int = 0  # 2^columns slices are beside each other, before `rows` counts
    across: int = 0  # pixels from one of them to the next


@dataclass(frozen=True)
class StencilFace:
    """The stencil test of front or back faces: 3D_Compare_Function and 3D_Stencil_Operation by name."""

    function: str = "always"
    fail: str = KEEP
    depth_fail: str = KEEP
    depth_pass: str = KEEP


@dataclass(frozen=True)
class StencilNumbers:
    """Stencil reference and masks of front or back faces."""

    reference: int = 0
    test_mask: int = 0xFF
    write_mask: int = 0xFF


@dataclass(frozen=True)
class DepthState:
    """Depth and stencil tests and the layout of their buffers."""

    format: str = ""  # Depth_Format; "" without a depth buffer
    tiling: str = "y_major"
    test: str | None = None  # 3D_Compare_Function; None: disabled
    write: bool = False
    faces: tuple[StencilFace, StencilFace] | None = None  # front and back; None: the stencil test is disabled
    stencil_write: bool = False
    separate_stencil: bool = True  # a buffer of its own, W-tiled
    samples: int = 1  # of a pixel, interleaved in the buffers

    @property
    def idle(self) -> bool:
        """Whether no buffer is read or written: all pixels pass."""
        return self.test is None and not self.write and self.faces is None


@dataclass(frozen=True)
class DepthTarget:
    """Depth and stencil buffers of a draw, and its tests."""

    state: DepthState = DepthState()
    depth: SurfacePlacement = SurfacePlacement()
    stencil: SurfacePlacement = SurfacePlacement()
    faces: tuple[StencilNumbers, StencilNumbers] = (StencilNumbers(), StencilNumbers())
    ranges: tuple[tuple[float, float], ...] = ((0.0, 1.0),)  # CC_VIEWPORT by viewport


class MoreTargets(Protocol):
    """Blend states in memory, which are read when a message names their target. Hashable, and equal where they mean the same memory."""

    def place(self, index: int) -> tuple[int, int]:
        """Address and size of a target's state."""
        ...

    def parse(self, data: bytes) -> TargetState: ...


@dataclass(frozen=True)
class BackendState:
    """The state of the unit "pixel backend" in ThreadDispatch.unit_states.

    `late` is None where tests ran before the pixel shader; otherwise they are part of the write, which then sets PixelDispatch.passed.
    """

    targets: tuple[TargetState, ...] = (TargetState(),)  # by render target index
    more: MoreTargets | None = None  # of render target indices that `targets` does not have
    constant: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    alpha_reference: float = 0.0  # UNORM8 references as multiples of 1/255
    late: DepthTarget | None = None
    parts: frozenset[str] = field(default_factory=frozenset)  # that messages without a header have besides colours: messages.PARTS

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in fields(self)))
