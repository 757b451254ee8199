"""Render target reads: which pixels they return, in what form; what depth and stencil buffers hold. Which render target writes read their
target."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from softgen.errors import DecodeError
from softgen.eu.thread.block import Context
from softgen.shared_functions.pixel_backend.blend import needs_destination
from softgen.shared_functions.pixel_backend.blocks_h import DepthBlock
from softgen.shared_functions.pixel_backend.functions import HeldDepth
from softgen.shared_functions.pixel_backend.state import BlendEquation, DepthState, TargetState
from tests.shared_functions.rendering import BLOCK, Target
from tests.shared_functions.test_pixel_backend import TILINGS, pixels
from tests.shared_functions.test_pixel_backend_depth import bench_of, target_of
from tests.shared_functions.test_pixel_backend_depth import read as held_at

Array = np.ndarray[Any, Any]
GENERATIONS = [9, 11]
KEPT = 0xEEEEEEEE
APART = [(2, 2), (20, 30), (38, 34), (0, 8)]


def read(bench: Target, lanes: int = 16, enables: int = 0xFFFF, mask: int = 0xFFFF, first: int = 0, **fields: Any) -> Array:
    """What a read of subspans from `first` on returns: lanes by channels."""
    found = bench.send("render_target_read", bench.header(enables, first=first), answer=4 * lanes // 8, mask=mask, width=lanes,
                       header_present=1, message_subtype=f"simd{lanes}", **fields)  # fmt: skip
    return np.ascontiguousarray(found.view(np.uint32).reshape(4, lanes).T)


def unorms(bench: Target, place: tuple[int, int], base: int = 0) -> list[float]:
    """A B8G8R8A8_UNORM pixel, by hand."""
    blue, green, red, alpha = bench.texel(*place, base=base)
    return [float(np.float32(value) / np.float32(255)) for value in (red, green, blue, alpha)]


@pytest.mark.behaviour("KBL-RT-17", shows="action")
@pytest.mark.parametrize("places", [BLOCK, APART], ids=["block", "apart"])
@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("gen", GENERATIONS)
def test_pixels_of_a_thread_are_returned_by_channel(gen: float, tiling: str, places: list[tuple[int, int]]) -> None:
    bench = Target(gen=gen, tiling=tiling)
    bench.at(places)
    found = read(bench)
    assert found.view(np.float32).tolist() == [unorms(bench, place) for place in pixels(places)]
    assert bench.compiled == 1, "compiled code was not asked"


@pytest.mark.parametrize("gen", GENERATIONS)
def test_eight_lanes_and_another_target(gen: float) -> None:
    bench = Target(gen=gen)
    found = read(bench, 8, binding_table_index=1)
    assert found.view(np.float32).tolist() == [unorms(bench, place, 0x8000) for place in pixels(BLOCK, 8)]


def test_the_upper_slot_group_has_the_later_pixels() -> None:
    bench, places = Target(), [*BLOCK, *APART]
    bench.at(places)
    found = read(bench, slot_group=1, first=4)
    assert found.view(np.float32).tolist() == [unorms(bench, place) for place in pixels(places, first=16)]


def test_lanes_that_are_off_keep_their_registers() -> None:
    bench = Target()
    found = read(bench, enables=0x0FF7, mask=0x7FFE)
    on = [bool(0x0FF6 >> lane & 1) for lane in range(16)]
    assert (found != KEPT).all(axis=1).tolist() == on
    assert (found[np.logical_not(on)] == KEPT).all()


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_integers_are_returned_as_they_are(bits: int) -> None:
    bench = Target(format=f"R{bits}G{bits}B{bits}A{bits}_UINT")
    assert read(bench).tolist() == [np.frombuffer(bench.texel(*place), f"<u{bits // 8}").tolist() for place in pixels(BLOCK)]


def test_nothing_is_read_outside_a_target() -> None:
    bench = Target(width=2, height=36)
    found = read(bench)
    for lane, (x, y) in enumerate(pixels(BLOCK)):
        wanted = unorms(bench, (x, y)) if x < 2 else [0.0] * 4
        assert found[lane].view(np.float32).tolist() == wanted


@pytest.mark.behaviour("KBL-RT-12", shows="action")
def test_a_null_target_reads_as_zero() -> None:
    assert not read(Target(), binding_table_index=2).any()


def test_what_a_read_cannot_do() -> None:
    with pytest.raises(DecodeError, match="too few; 8 are needed"):
        bench = Target()
        bench.send("render_target_read", bench.header(), answer=4, header_present=1, message_subtype="simd16")


# -- depth and stencil, for payloads ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [(0, 0), (8, 4), (38, 34)])
@pytest.mark.parametrize("format", ["d32_float", "d16_unorm", "d24_unorm_s8_uint", "d32_float_s8x24_uint"])
def test_depths_and_stencils_of_a_block_as_they_are_stored(format: str, place: tuple[int, int]) -> None:
    """Zero outside, and of stencils where the buffer has none."""
    target = target_of(DepthState(format, separate_stencil=False))
    bench = bench_of(target, gen=4.5)
    made, context = HeldDepth(target, bench.space.bits), Context(table=ctypes.addressof(bench.space.table))
    size = ctypes.sizeof(DepthBlock)
    room = np.zeros(size + 2 * 16 * 4, np.uint8)
    room[:size] = np.frombuffer(bytes(DepthBlock(*place, 0xFFFF)), np.uint8)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(made.function)(ctypes.addressof(context), made.target, room.ctypes.data)
    depths, stencils = room[size:].view(np.uint32).reshape(2, 16).tolist()
    for lane, (x, y) in enumerate(pixels([(x + place[0], y + place[1]) for x, y in BLOCK])):
        held = held_at(target, bench.extra[0].array, bench.extra[1].array, x, y)
        depth = int(np.float32(held.depth).view(np.uint32)) if "d32" in format else held.depth
        wanted = (depth, held.stencil if "s8" in format else 0) if x < 40 and y < 36 else (0, 0)
        assert (depths[lane], stencils[lane]) == wanted


def test_without_a_depth_buffer_depths_and_stencils_are_zero() -> None:
    target, bench = target_of(DepthState("", separate_stencil=False)), Target(gen=4.5)
    made, context = HeldDepth(target, bench.space.bits), Context(table=ctypes.addressof(bench.space.table))
    size = ctypes.sizeof(DepthBlock)
    room = np.full(size + 2 * 16 * 4, 0xEE, np.uint8)
    room[:size] = np.frombuffer(bytes(DepthBlock(0, 0, 0xFFFF)), np.uint8)
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(made.function)(ctypes.addressof(context), made.target, room.ctypes.data)
    assert not room[size:].any()


# -- writes that read their target ---------------------------------------------------------------------------------

CLEAR, COPY_INVERTED, COPY, SET = 0, 3, 12, 15  # of 3D_Logic_Op_Function: all that do not look at the target


@pytest.mark.parametrize("operation", range(16))
def test_logic_operations_that_depend_on_the_target(operation: int) -> None:
    assert needs_destination(TargetState(logic_op=operation)) is (operation not in (CLEAR, COPY_INVERTED, COPY, SET))


ONE_ZERO = BlendEquation("add", "one", "zero")


@pytest.mark.parametrize("color, alpha, reads", [
    (None, None, False), (ONE_ZERO, None, False), (BlendEquation("subtract"), None, False), (BlendEquation("reverse_subtract"), None, True),
    (BlendEquation("min"), None, True), (BlendEquation("max"), None, True),
    (BlendEquation("add", "src_alpha", "inv_src_alpha"), None, True), (BlendEquation("add", "dst_color", "zero"), None, True),
    (BlendEquation("add", "inv_dst_alpha", "zero"), None, True), (BlendEquation("add", "src_alpha", "zero"), None, False),
    (ONE_ZERO, BlendEquation("add", "one", "one"), True),
    (BlendEquation("add", "src_alpha_saturate", "zero"), ONE_ZERO, True), (ONE_ZERO, BlendEquation("add", "src_alpha_saturate"), False),
])  # fmt: skip
def test_blending_that_depends_on_the_target(color: BlendEquation | None, alpha: BlendEquation | None, reads: bool) -> None:
    """The saturated factor is 1 for alpha, and the lesser of source alpha and what destination alpha leaves for colours."""
    assert needs_destination(TargetState(color, alpha)) is reads
