"""Functions of the pixel backend and for texels as bytecode, beside the reference: any state, format and sampler gives the same bits.

The benches send each message to the reference and to compiled code; here the functions that the code calls are bytecode.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgen.bits.formats import Format, surface_formats
from softgen.errors import SoftgenError
from softgen.lanes.compile import compile_policy, jit
from softgen.lanes.compile.tiers import TieredFunction
from softgen.shared_functions.pixel_backend import (
    BackendState,
    BlendEquation,
    DepthState,
    DepthTarget,
    StencilFace,
    StencilNumbers,
    TargetState,
    binding,
    functions,
)
from softgen.shared_functions.texture import functions as textured
from softgen.surface import texel
from tests.shared_functions.rendering import Target
from tests.shared_functions.test_pixel_backend_blend import FACTORS, FUNCTIONS
from tests.shared_functions.test_pixel_backend_depth import bench_of, target_of
from tests.shared_functions.test_sampler import filters, modes
from tests.shared_functions.texture import Texture

EXAMPLES = 40
COMPARES = ["always", "never", "less", "equal", "lequal", "greater", "notequal", "gequal"]
OPERATIONS = ["keep", "zero", "replace", "incrsat", "decrsat", "invert", "incr", "decr"]
ONE_SOURCE = [name for name in FACTORS if "src1" not in name]


def _is_target(format: Format) -> bool:
    try:
        texel.check(format)
    except SoftgenError:
        return False
    return format.supports("render", 9)


TARGETS = sorted({surface_format.name for surface_format in surface_formats().values() if _is_target(surface_format)})
TEXTURES = ["R8G8B8A8_UNORM", "R8G8B8A8_UNORM_SRGB", "B5G6R5_UNORM", "R16G16B16A16_FLOAT", "R32G32B32A32_FLOAT", "R8G8_SNORM",
            "R9G9B9E5_SHAREDEXP", "R11G11B10_FLOAT", "R10G10B10A2_UNORM", "R32_FLOAT", "L8_UNORM", "I16_UNORM", "R16_UNORM"]  # fmt: skip
FINITE = 0x55  # bits of bytes: a small float made of them is a number (NumPy and hosts differ in what becomes of signalling NaNs)
WRAPS = ["wrap", "mirror", "clamp", "clamp_border", "mirror_once", "half_border"]


@contextmanager
def as_bytecode() -> Iterator[list[TieredFunction]]:
    """Functions are written as bytecode and kept nowhere; the result collects them."""
    found: list[TieredFunction] = []

    def kept(self: TieredFunction, *parts: Any) -> None:
        before(self, *parts)
        found.append(self)

    before = TieredFunction.__init__
    with (mock.patch.object(compile_policy._Mode, "background", True), mock.patch.object(jit, "has_form", lambda form, names: False),
          mock.patch.object(textured, "_made", {}), mock.patch.object(TieredFunction, "__init__", kept),
          mock.patch.object(binding, "write_function", functions.write_function.__wrapped__)):  # type: ignore[attr-defined]  # fmt: skip
        yield found
    assert all(function.program is not None for function in found), "a function was compiled"


def equations(factors: list[str]) -> st.SearchStrategy[BlendEquation]:
    return st.builds(BlendEquation, st.sampled_from(FUNCTIONS), st.sampled_from(factors), st.sampled_from(factors))


TARGET_STATES = st.builds(
    TargetState, color=st.none() | equations(ONE_SOURCE), alpha=st.none() | equations(ONE_SOURCE), logic_op=st.none() | st.integers(0, 15),
    write_disable=st.sampled_from(["", "r", "gb", "a", "rgb", "rgba"]), clamp_range=st.sampled_from(["unorm", "snorm", "rtformat"]),
    pre_clamp=st.sampled_from(["", "sources", "all"]), post_clamp=st.booleans(), alpha_test=st.sampled_from(COMPARES),
    alpha_test_unorm8=st.booleans(), alpha_to_coverage=st.booleans(), alpha_to_one=st.booleans(),
    dither=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3)),
)  # fmt: skip


@settings(max_examples=EXAMPLES, deadline=None)
@given(TARGET_STATES, st.sampled_from(TARGETS), st.sampled_from(["linear", "x_major", "y_major"]), st.booleans(), st.integers(0, 1 << 32))
def test_writes(state: TargetState, format: str, tiling: str, block: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    backend = BackendState((state,), constant=(0.25, 0.5, 0.75, 0.375), alpha_reference=0.5)
    with as_bytecode() as found:
        bench = Target(format=format, tiling=tiling, state_of_backend=backend)
        bench.data.array[:] &= FINITE
        bench.at([(8, 4), (10, 4), (8, 6), (10, 6)] if block else [(2, 2), (20, 30), (38, 34), (0, 8)])
        bench.write(rng.uniform(-0.5, 1.5, (16, 4)).astype(np.float32), mask=int(rng.integers(1, 1 << 16)))
    assert bench.compiled == 1 and found


FACES = st.builds(StencilFace, st.sampled_from(COMPARES), *[st.sampled_from(OPERATIONS)] * 3)
DEPTH_STATES = st.builds(
    DepthState, st.sampled_from(["d32_float", "d24_unorm_x8_uint", "d16_unorm"]), st.just("y_major"), st.none() | st.sampled_from(COMPARES),
    st.booleans(), st.none() | st.tuples(FACES, FACES), st.booleans(),
)  # fmt: skip


@settings(max_examples=EXAMPLES, deadline=None)
@given(DEPTH_STATES, st.integers(0, 1), st.integers(0, 255), st.integers(0, 255), st.integers(0, 1 << 32))
def test_late_tests(state: DepthState, back: int, reference: int, mask: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target: DepthTarget = target_of(state, faces=(StencilNumbers(reference, mask, 0xFF), StencilNumbers(3, 0xFF, mask)))
    with as_bytecode() as found:
        bench = bench_of(target)
        bench.pixel.back_facing, bench.pixel.depth[:16] = back, rng.uniform(-0.2, 1.2, 16).tolist()
        bench.write(rng.uniform(0, 1, (16, 4)).astype(np.float32))
    assert bench.compiled == 1 and found


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(TEXTURES), st.sampled_from(["1d", "2d", "3d"]), st.sampled_from(WRAPS), st.sampled_from(["nearest", "linear"]),
       st.integers(0, 1 << 32))  # fmt: skip
def test_samples(format: str, kind: str, wrap: str, filter: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = {"1d": (13,), "2d": (13, 7), "3d": (9, 5, 4)}[kind]
    with as_bytecode() as found:
        texture = Texture(format=format, kind=kind, shape=shape, sampler=modes(wrap) | filters(filter), seed=seed)
        texture.data.array[:] &= FINITE if "R11" in format else 0xFF
        texture.ask("sample_lz", *(rng.uniform(-2, 3, 16).astype(np.float32) for _ in shape))
    assert texture.compiled == 1 and found


@pytest.mark.parametrize("lanes", [8, 16])
def test_levels_are_chosen_alike(lanes: int) -> None:
    """From differences of subspans, with a bias, between two levels, and with several samples of a pixel."""
    rng = np.random.default_rng(3)
    for mip in (1, 3):
        for more in (filters("linear"), filters("nearest"), {"mag_mode_filter": 1, "min_mode_filter": 2, "maximum_anisotropy": 3}):
            with as_bytecode() as found:
                texture = Texture(shape=(16, 16), format="R8G8B8A8_UNORM", surface={"mip_count_lod": 3},
                              sampler={"mip_mode_filter": mip, "max_lod": 3.0, **modes("wrap"), **more})  # fmt: skip
                texture.ask("sample", *(rng.uniform(0, 3, lanes).astype(np.float32) for _ in range(2)), lanes=lanes)
            assert texture.compiled == 1 and found
