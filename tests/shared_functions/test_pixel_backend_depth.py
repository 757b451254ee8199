"""Depth and stencil tests against a twin in plain Python: inside render target writes, and before the pixel shader."""

from __future__ import annotations

import ctypes
import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from softgen.errors import GpuFault
from softgen.eu.thread.block import Context
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.record import RecordView
from softgen.lanes.types import f32 as f32_lanes
from softgen.lanes.types import u32
from softgen.lanes.value import Memory
from softgen.shared_functions.pixel_backend import (
    BackendState,
    DepthState,
    DepthTarget,
    StencilFace,
    StencilNumbers,
    SurfacePlacement,
    TargetState,
)
from softgen.shared_functions.pixel_backend import surface as pixel_surface
from softgen.shared_functions.pixel_backend.blocks_h import DepthBlock
from softgen.shared_functions.pixel_backend.depth import DepthTest
from softgen.shared_functions.pixel_backend.functions import early_depth
from softgen.shared_functions.pixel_backend.interpreter import absolute, record_bytes
from softgen.shared_functions.pixel_backend.records import DEPTH as DEPTH_RECORD
from tests.shared_functions.rendering import BLOCK, DEPTH, GENERATIONS, STENCIL, Array, Target, offset
from tests.shared_functions.test_pixel_backend import pixels
from tests.shared_functions.test_pixel_backend_blend import COMPARES

f32 = np.float32
OPERATIONS = ["keep", "zero", "replace", "incrsat", "decrsat", "incr", "decr", "invert"]
FORMATS = {"d32_float": 4, "d24_unorm_x8_uint": 4, "d16_unorm": 2, "d24_unorm_s8_uint": 4, "d32_float_s8x24_uint": 8}
SIZE = 0x10000


# -- the twin --------------------------------------------------------------------------------------------------------


@dataclass
class Buffers:
    """Depth and stencil of pixels, as a twin has them: numbers as their format holds them."""

    depth: Any
    stencil: int


def quantised(format: str, z: Any) -> Any:
    bits = 24 if "d24" in format else 16 if "d16" in format else 0
    return round(float(f32(min(max(z, f32(0)), f32(1))) * f32((1 << bits) - 1))) if bits else f32(z)


def operated(name: str, value: int, reference: int) -> int:
    return {"keep": value, "zero": 0, "replace": reference, "incrsat": min(value + 1, 255), "decrsat": max(value - 1, 0),
            "incr": (value + 1) & 255, "decr": (value - 1) & 255, "invert": value ^ 255}[name]  # fmt: skip


def twin(target: DepthTarget, held: Buffers, z: Any, back: bool) -> tuple[bool, Buffers]:
    """Whether a pixel passes, and what the buffers then hold (G45 8073-8106)."""
    state, (low, high) = target.state, target.ranges[0]
    source = quantised(state.format, min(max(f32(z), f32(low)), f32(high)))
    deep = state.test is None or COMPARES[state.test](source, held.depth)
    fine, stencil = True, held.stencil
    if state.faces is not None:
        face, numbers = state.faces[back], target.faces[back]
        fine = COMPARES[face.function](numbers.reference & numbers.test_mask, held.stencil & numbers.test_mask)
        new = operated(face.fail if not fine else face.depth_pass if deep else face.depth_fail, held.stencil, numbers.reference)
        if state.stencil_write:
            stencil = held.stencil & ~numbers.write_mask & 255 | new & numbers.write_mask
    return fine and deep, Buffers(source if fine and deep and state.write else held.depth, stencil)


# -- buffers in memory -----------------------------------------------------------------------------------------------


def depth_at(target: DepthTarget, x: int, y: int) -> int:
    size = FORMATS[target.state.format]
    return offset(target.state.tiling, target.depth.pitch, (x + target.depth.left) * size, y + target.depth.top)


def stencil_at(target: DepthTarget, x: int, y: int) -> int:
    return offset("w_major", target.stencil.pitch, x, y)


def read(target: DepthTarget, depth: Array, stencil: Array, x: int, y: int) -> Buffers:
    at, format = depth_at(target, x, y), target.state.format
    word = int.from_bytes(bytes(depth[at : at + FORMATS[format]]), "little")
    held: Any = np.uint32(word & 0xFFFFFFFF).view(f32) if "d32" in format else word & 0xFFFFFF if "d24" in format else word
    if "s8" not in format:
        return Buffers(held, int(stencil[stencil_at(target, x, y)]))
    return Buffers(held, word >> (24 if "d24" in format else 32) & 255)


def put(target: DepthTarget, depth: Array, stencil: Array, x: int, y: int, held: Buffers) -> None:
    at, format = depth_at(target, x, y), target.state.format
    word = int(f32(held.depth).view(np.uint32)) if "d32" in format else int(held.depth)
    if "s8" not in format:
        stencil[stencil_at(target, x, y)] = held.stencil
        old = int.from_bytes(bytes(depth[at : at + FORMATS[format]]), "little")
        word |= old & 0xFF000000 if "d24" in format else 0
    elif "d24" in format:
        word |= held.stencil << 24
    else:
        old = int.from_bytes(bytes(depth[at : at + 8]), "little") >> 40 << 40
        word |= old | held.stencil << 32
    depth[at : at + FORMATS[format]] = np.frombuffer(word.to_bytes(FORMATS[format], "little"), np.uint8)


def bench_of(target: DepthTarget, gen: float = 9, seed: int = 1, **more: Any) -> Target:
    random = np.random.default_rng(seed)
    held = {DEPTH: random.integers(0, 256, SIZE, np.uint8), STENCIL: random.integers(0, 256, SIZE, np.uint8)}
    for x, y in itertools.product(range(12), range(8)):  # depths near each other, and stencil values near the reference
        depth = quantised(target.state.format, f32(random.choice([0.25, 0.5, 0.75])))
        put(target, held[DEPTH], held[STENCIL], x, y, Buffers(depth, int(random.choice([0, 1, 7, 0x80, 254, 255]))))
    state = replace(more.pop("state", BackendState()), late=target)
    return Target(gen=gen, state_of_backend=state, buffers=held, **more)


def target_of(state: DepthState, **more: Any) -> DepthTarget:
    size = FORMATS.get(state.format, 4)
    step = {"linear": 64, "x_major": 512, "y_major": 128}[state.tiling]
    depth = SurfacePlacement(DEPTH, 40, 36, pitch=-(-40 * size // step) * step)
    return DepthTarget(state, depth, SurfacePlacement(STENCIL, 40, 36, pitch=128), **more)


def run(bench: Target, target: DepthTarget, z: Array, places: Any = BLOCK, back: bool = False, from_message: bool = False,
        lanes: int = 0xFFFF) -> None:  # fmt: skip
    """Send a write and compare everything with the twin."""
    before = [buffer.array.copy() for buffer in bench.extra]
    colors_before = bench.picture()
    bench.at(places)
    bench.pixel.back_facing = int(back)
    bench.pixel.depth[:16] = (np.zeros(16) if from_message else z).tolist()
    if not from_message:
        bench.write(np.full((16, 4), 0.2, f32), mask=lanes)
    elif bench.gen == 4.5:
        bench.write(np.full((16, 4), 0.2, f32), mask=lanes, extra=(z.astype(f32),), header=bench.header(source_depth_present=1))
    else:
        bench.write(np.full((16, 4), 0.2, f32), mask=lanes, extra=(z.astype(f32),), header=bench.header(source_depth_present=1))
    passed = 0
    for lane, (x, y) in enumerate(pixels(places)):
        if not lanes >> lane & 1:
            continue
        fine, after = twin(target, read(target, before[0], before[1], x, y), z[lane], back)
        put(target, before[0], before[1], x, y, after)
        passed |= fine << lane
        assert (list(bench.texel(x, y)) == [51] * 4) == fine or colors_before[y, x].tolist() == [51] * 4
    assert bench.pixel.passed == passed
    for found, wanted in zip(bench.extra, before, strict=True):
        assert np.flatnonzero(found.array[: len(wanted)] != wanted).tolist() == []


Z = np.array([0.25, 0.5, 0.75, 0.6, 0.1, 0.9, 1.5, -1.0] * 2, f32)


@pytest.mark.behaviour("BDW-Z-03", shows="action")
@pytest.mark.behaviour("G45-CC-11", shows="action")
@pytest.mark.behaviour("G45-CC-16", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("function", [None, *COMPARES])
@pytest.mark.parametrize(("format", "write"), [("d32_float", False), ("d32_float", True), ("d24_unorm_x8_uint", True), ("d16_unorm", True)])
def test_depth_tests_and_writes(format: str, function: str | None, write: bool) -> None:
    target = target_of(DepthState(format, test=function, write=write))
    bench = bench_of(target)
    run(bench, target, Z)
    run(bench, target, Z, [(8, 4), (10, 4), (2, 6), (6, 0)], lanes=0xF7FE)
    assert bench.compiled == 2


@pytest.mark.behaviour("BDW-Z-04", shows="action")
@pytest.mark.behaviour("BDW-Z-05", shows="action")
@pytest.mark.behaviour("G45-CC-08", shows="action")
@pytest.mark.behaviour("G45-CC-13", shows="action")
@pytest.mark.behaviour("G45-CC-15", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("first", range(len(OPERATIONS)))
@pytest.mark.parametrize("format", ["d24_unorm_x8_uint", "d24_unorm_s8_uint", "d32_float_s8x24_uint"])
def test_stencil_operations(format: str, first: int) -> None:
    """Each operation in each of the three places."""
    fail, depth_fail, depth_pass = (OPERATIONS[(first + place) % len(OPERATIONS)] for place in range(3))
    face = StencilFace("less" if first & 1 else "notequal", fail, depth_fail, depth_pass)
    state = DepthState(format, test="lequal", write=False, faces=(face, face), stencil_write=True, separate_stencil="s8" not in format)
    target = target_of(state, faces=(StencilNumbers(7, 0xF7, 0xFD),) * 2)
    bench = bench_of(target, gen=4.5 if "s8" in format else 9)
    run(bench, target, Z)
    run(bench, target, 1 - Z, [(8, 4), (10, 4), (2, 6), (6, 0)])
    assert bench.compiled == 2


@pytest.mark.behaviour("G45-CC-09", shows="action")
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("function", COMPARES)
def test_back_faces_have_a_test_of_their_own(function: str, back: bool) -> None:
    faces = StencilFace("greater", "incr", "decr", "replace"), StencilFace(function, "invert", "zero", "incrsat")
    state = DepthState("d32_float", test="greater", write=True, faces=faces, stencil_write=True)
    target = target_of(state, faces=(StencilNumbers(1, 0xFF, 0x0F), StencilNumbers(0x80, 0xF0, 0xFF)))
    bench = bench_of(target)
    run(bench, target, Z, back=back)
    assert bench.compiled == 1


@pytest.mark.behaviour("G45-CC-14", shows="action")
@pytest.mark.behaviour("G45-CC-10", shows="action")
def test_stencil_is_written_only_where_it_is_enabled() -> None:
    face = StencilFace("always", depth_pass="zero")
    plain = DepthState("d24_unorm_x8_uint", test="less", write=True)
    for state in (plain, replace(plain, faces=(face, face))):
        target = target_of(state)
        bench = bench_of(target)
        before = bench.extra[1].array.copy()
        run(bench, target, Z)
        assert (bench.extra[1].array == before).all()


@pytest.mark.parametrize("tiling", ["linear", "x_major", "y_major"])
@pytest.mark.parametrize("format", ["d24_unorm_s8_uint", "d16_unorm", "d32_float_s8x24_uint"])
def test_tilings_of_early_generations(format: str, tiling: str) -> None:
    face = StencilFace("always", depth_pass="incr", depth_fail="invert")
    stencil = {"faces": (face, face), "stencil_write": True} if "s8" in format else {}
    target = target_of(DepthState(format, tiling, test="less", write=True, separate_stencil=False, **stencil))  # type: ignore[arg-type]
    bench = bench_of(target, gen=4.5)
    run(bench, target, Z)
    run(bench, target, Z, [(6, 2), (8, 2), (6, 4), (8, 4)])
    assert bench.compiled == 2


@pytest.mark.parametrize("gen", GENERATIONS)
def test_the_message_may_have_the_depth(gen: float) -> None:
    target = target_of(DepthState("d32_float", test="gequal", write=True))
    bench = bench_of(target, gen=gen)
    run(bench, target, Z, from_message=True)
    assert bench.compiled == 1


@pytest.mark.behaviour("G45-CC-35", shows="action")
def test_disabled_tests_pass_and_are_counted() -> None:
    bench = Target(state_of_backend=BackendState(late=DepthTarget()))
    bench.at(BLOCK, lit=0x0FF0)
    bench.write(np.full((16, 4), 0.2, f32), mask=0xEEEE)
    assert bench.pixel.passed == 0x0FF0 & 0xEEEE and bench.compiled == 1


@pytest.mark.behaviour("G45-CC-05", shows="action")
def test_depth_is_updated_once_if_any_target_passes_the_alpha_test() -> None:
    target = target_of(DepthState("d32_float", test="less", write=True))
    state = BackendState((TargetState(alpha_test="greater"),) * 2, alpha_reference=0.5)
    bench = bench_of(target, state=state)
    for x, y in pixels(BLOCK):
        put(target, bench.extra[0].array, bench.extra[1].array, x, y, Buffers(f32(0.5), 0))
    bench.pixel.depth[:16] = [0.25] * 8 + [0.75] * 8
    first, second = (np.full((16, 4), 0.2, f32) for _ in range(2))
    first[:4, 3], second[2:6, 3], second[8:, 3] = 0.9, 0.9, 0.9
    bench.write(first, header=bench.header(index=0), last=0)
    assert all(read(target, bench.extra[0].array, bench.extra[1].array, x, y).depth == 0.5 for x, y in pixels(BLOCK)), "not the last target"
    assert bench.pixel.passed == 0
    bench.write(second, header=bench.header(index=1), surface=1)
    found = [float(read(target, bench.extra[0].array, bench.extra[1].array, x, y).depth) for x, y in pixels(BLOCK)]
    assert found == [0.25] * 6 + [0.5] * 10 and bench.pixel.passed == 0x3F
    assert [bench.texel(x, y)[0] == 51 for x, y in pixels(BLOCK)] == [True] * 4 + [False] * 12
    assert [bench.texel(x, y, base=0x8000)[0] == 51 for x, y in pixels(BLOCK)] == [False] * 2 + [True] * 4 + [False] * 10
    assert bench.compiled == 2


def test_slot_groups_pass_the_alpha_test_by_themselves() -> None:
    """Writes of the two halves of a thread are mixed: what one half has passed is kept for its last write."""
    target = target_of(DepthState("d32_float", test="less", write=True))
    bench = bench_of(target, state=BackendState((TargetState(alpha_test="greater"),) * 2, alpha_reference=0.5))
    places = [*BLOCK, *((x + 4, y) for x, y in BLOCK)]
    bench.at(places)
    for x, y in pixels(places, 32):
        put(target, bench.extra[0].array, bench.extra[1].array, x, y, Buffers(f32(0.5), 0))
    bench.pixel.depth[:32] = [0.25] * 32
    low, high, none = (np.full((16, 4), 0.2, f32) for _ in range(3))
    low[:3, 3], high[4:6, 3] = 0.9, 0.9
    for colors, group, last in ((low, 0, 0), (high, 1, 0), (none, 0, 1), (none, 1, 1)):
        bench.write(colors, header=bench.header(index=last, first=4 * group), surface=last, last=last, slot_group=group)
    found = [float(read(target, bench.extra[0].array, bench.extra[1].array, x, y).depth) for x, y in pixels(places, 32)]
    assert found == [0.25] * 3 + [0.5] * 17 + [0.25] * 2 + [0.5] * 10
    assert bench.pixel.passed == 0b111 | 0b11 << 20 and bench.compiled == 4
    assert bench.pixel.tested == 0, "all is forgotten with the last write"


@pytest.mark.behaviour("BDW-RT-11", shows="action")
@pytest.mark.parametrize("gen", [7, 8, 9, 11])
def test_a_write_to_a_null_surface_may_be_the_last_of_its_pixels(gen: float) -> None:
    """Pixels are counted and depth is written when the group is closed, whatever writes without the bit came before."""
    target = target_of(DepthState("d32_float", test="less", write=True))
    bench = bench_of(target, gen=gen)
    for x, y in pixels(BLOCK):
        put(target, bench.extra[0].array, bench.extra[1].array, x, y, Buffers(f32(0.5), 0))
    bench.pixel.depth[:16] = [0.25] * 16
    for last in (0, 0, 1):
        assert {float(read(target, bench.extra[0].array, bench.extra[1].array, x, y).depth) for x, y in pixels(BLOCK)} == {0.5}
        assert bench.pixel.passed == 0
        bench.write(np.full((16, 4), 0.2, f32), surface=2 if last else 0, last=last)
    assert {float(read(target, bench.extra[0].array, bench.extra[1].array, x, y).depth) for x, y in pixels(BLOCK)} == {0.25}
    assert bench.pixel.passed == 0xFFFF and bench.compiled == 3


@pytest.mark.behaviour("BDW-Z-07", shows="action")
def test_no_read_where_the_result_is_known() -> None:
    """Depth ALWAYS without a write touches no memory."""
    target = replace(target_of(DepthState("d32_float", test="always")), depth=SurfacePlacement(0x9000000, 40, 36, pitch=256))
    bench = Target(state_of_backend=BackendState(late=target))
    bench.write(np.full((16, 4), 0.2, f32))
    assert bench.pixel.passed == 0xFFFF and bench.compiled == 1
    other = Target(state_of_backend=BackendState(late=replace(target, state=DepthState("d32_float", test="less"))))
    with pytest.raises(GpuFault, match="0x9000000"):
        other.write(np.full((16, 4), 0.2, f32))


@pytest.mark.behaviour("KBL-Z-10", "G45-CC-11", shows="action")
def test_depths_are_clamped_to_the_range_of_their_viewport() -> None:
    target = target_of(DepthState("d32_float", test="always", write=True), ranges=((0.0, 1.0), (0.3, 0.6)))
    bench = bench_of(target)
    bench.pixel.viewport = 1
    bench.pixel.depth[:16] = Z.tolist()
    bench.write(np.full((16, 4), 0.2, f32))
    found = [read(target, bench.extra[0].array, bench.extra[1].array, x, y).depth for x, y in pixels(BLOCK)]
    assert found == np.clip(Z, f32(0.3), f32(0.6)).tolist() and bench.compiled == 1


@pytest.mark.parametrize("layer", [0, 1, 5])
def test_layers_of_depth_and_stencil(layer: int) -> None:
    face = StencilFace("always", depth_pass="replace")
    state = DepthState("d32_float", test="always", write=True, faces=(face, face), stencil_write=True)
    target = target_of(state, faces=(StencilNumbers(0x55),) * 2)
    depth, stencil = (replace(item, slices=2, first=1, rows=64) for item in (target.depth, target.stencil))
    target = replace(target, depth=depth, stencil=stencil)
    bench = bench_of(target)
    bench.pixel.layer, bench.pixel.depth[:16] = layer, [0.125] * 16
    bench.write(np.full((16, 4), 0.2, f32))
    slice = 1 + (layer if layer < 2 else 0)
    at, other = offset("y_major", depth.pitch, 4, slice * 64 + 1), offset("w_major", 128, 1, slice * 64 + 1)
    assert bench.extra[0].array[at : at + 4].view(f32)[0] == 0.125 and bench.extra[1].array[other] == 0x55 and bench.compiled == 1


def test_depth_and_stencil_of_one_message() -> None:
    """Each pixel's own, from the shader."""
    face = StencilFace("always", depth_pass="replace")
    state = DepthState("d32_float", test="always", write=True, faces=(face, face), stencil_write=True)
    target = target_of(state, faces=(StencilNumbers(0x55),) * 2)
    bench = bench_of(target, state=BackendState(parts=frozenset({"source_depth", "stencil"})))
    depths, stencils = np.linspace(0.1, 0.8, 8, dtype=f32), np.arange(32, dtype=np.uint8) + 60
    bench.write(np.full((8, 4), 0.2, f32), "simd8", extra=(depths, stencils))
    found = [read(target, bench.extra[0].array, bench.extra[1].array, x, y) for x, y in pixels(BLOCK, 8)]
    assert [(held.depth, held.stencil) for held in found] == list(zip(depths.tolist(), stencils[:8].tolist(), strict=True))
    assert bench.compiled == 1


def test_not_a_number() -> None:
    """It passes ALWAYS and NOTEQUAL only; a float buffer keeps it, a UNORM one gets zero."""
    for function, format in itertools.product(COMPARES, ("d32_float", "d24_unorm_x8_uint")):
        target = target_of(DepthState(format, test=function, write=True))
        bench = bench_of(target)
        bench.pixel.depth[:16] = [math.nan] * 16
        bench.write(np.full((16, 4), 0.2, f32))
        found = read(target, bench.extra[0].array, bench.extra[1].array, 1, 1).depth
        if format == "d32_float":
            assert bench.pixel.passed == (0xFFFF if function in ("always", "notequal") else 0)
            assert math.isnan(found) == (function in ("always", "notequal"))
        elif function == "always":
            assert found == 0


# -- early tests -----------------------------------------------------------------------------------------------------


def early(bench: Target, target: DepthTarget, block: DepthBlock) -> int:
    """The compiled function, run under the guard; and the same program on the interpreter, over the same memory."""
    before = [buffer.array.copy() for buffer in bench.extra]
    m, made = NumpyMachine(), early_depth(target, bench.space.bits)
    given = Memory(m, record_bytes(block), "block")
    numbers = RecordView(m, DEPTH_RECORD, Memory(m, record_bytes(made.record), "target"), 0)
    mask = m.mask_from_bits(block.mask, 16)
    position = [m.constant(u32, value, 1) for value in (block.x, block.y, block.layer, block.back_facing, block.viewport)]
    z = m.load_block(f32_lanes, 16, given, DepthBlock.z.offset)
    passed = DepthTest(m, target.state, numbers, lambda base: absolute(m, bench.space, int(base.payload[0]))).run(
        pixel_surface.one_block(m, position[0], position[1]), position[2], z, position[3], position[4], mask, mask)
    wanted, after = int(m.bits_from_mask(passed).payload[0]), [held.array.copy() for held in bench.extra]
    for held, was in zip(bench.extra, before, strict=True):
        held.array[:] = was
    table = bench.space.table
    context = Context(table=ctypes.addressof(table))
    function = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(made.function)
    found = function(ctypes.addressof(context), made.target, ctypes.addressof(block))
    assert found == wanted
    for held, expected in zip(bench.extra, after, strict=True):
        assert (held.array == expected).all()
    return int(found)


@pytest.mark.behaviour("BDW-Z-09", shows="action")
@pytest.mark.parametrize("format", ["d32_float", "d24_unorm_x8_uint", "d16_unorm"])
@pytest.mark.parametrize("place", [(0, 0), (8, 4)])
def test_early_tests_of_a_block(format: str, place: tuple[int, int]) -> None:
    faces = StencilFace("lequal", "incr", "decr", "replace"), StencilFace("always", depth_pass="invert")
    state = DepthState(format, test="less", write=True, faces=faces, stencil_write=True)
    target = target_of(state, faces=(StencilNumbers(7, 0xFF, 0xFF), StencilNumbers(0, 0xFF, 0xF0)))
    for back, mask in ((0, 0xFFFF), (1, 0x7BDE)):
        bench = bench_of(target)
        before = [buffer.array.copy() for buffer in bench.extra]
        block = DepthBlock(place[0], place[1], mask, back, 0, 0, (ctypes.c_float * 16)(*Z.tolist()))
        found, wanted = early(bench, target, block), 0
        for lane, (x, y) in enumerate(pixels([(x + place[0], y + place[1]) for x, y in BLOCK])):
            if mask >> lane & 1:
                fine, after = twin(target, read(target, before[0], before[1], x, y), Z[lane], bool(back))
                put(target, before[0], before[1], x, y, after)
                wanted |= fine << lane
        assert found == wanted
        for held, expected in zip(bench.extra, before, strict=True):
            assert (held.array[: len(expected)] == expected).all()
