"""Early tests of all samples of a block beside the tests of one sample after another: the same buffers, the same samples pass."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from softgen.eu.thread.block import Context
from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.record import RecordView
from softgen.lanes.types import f32, u32
from softgen.lanes.value import Memory
from softgen.shared_functions.pixel_backend import DepthState, DepthTarget, StencilFace, StencilNumbers, SurfacePlacement, surface
from softgen.shared_functions.pixel_backend.blocks_h import SampledBlock
from softgen.shared_functions.pixel_backend.depth import DepthTest
from softgen.shared_functions.pixel_backend.functions import early_function
from softgen.shared_functions.pixel_backend.interpreter import absolute, record_bytes
from softgen.shared_functions.pixel_backend.records import DEPTH as DEPTH_RECORD
from softgen.shared_functions.pixel_backend.records import DepthRecord, fill_depth
from softgen.shared_functions.pixel_backend.sample_depth import stored_quads
from softgen.surface.samples import SPREAD, interleave
from tests.conftest import every
from tests.shared_functions.rendering import DEPTH, STENCIL, Target
from tests.shared_functions.test_bytecode_functions import as_bytecode
from tests.shared_functions.test_pixel_backend_depth import FORMATS, SIZE

FACES = StencilFace("lequal", "incr", "decr", "replace"), StencilFace("always", depth_pass="invert")
NUMBERS = StencilNumbers(7, 0xFF, 0xFF), StencilNumbers(0, 0xFF, 0xF0)
M = NumpyMachine()


def target_of(format: str, count: int, width: int, stencil: bool) -> DepthTarget:
    more: Any = {"faces": FACES, "stencil_write": True} if stencil else {}
    state = DepthState(format, test="less", write=True, samples=count, separate_stencil="s8" not in format, **more)
    across, _ = SPREAD[count]
    pitch = -(-(width << across) * FORMATS[format] // 128) * 128
    return DepthTarget(state, SurfacePlacement(DEPTH, width, 8, pitch=pitch), SurfacePlacement(STENCIL, width, 7, pitch=128), NUMBERS)


def by_sample(bench: Target, target: DepthTarget, record: Any, block: SampledBlock) -> list[int]:
    """The tests of one sample after another, on the interpreter."""
    numbers, passed = RecordView(M, DEPTH_RECORD, Memory(M, record_bytes(record), "target"), 0), []
    x, y, layer, back, viewport = (M.constant(u32, getattr(block, name), 1) for name in ("x", "y", "layer", "back_facing", "viewport"))
    for sample in range(target.state.samples):
        z = M.constant(f32, [float(np.float32(depth) + np.float32(block.steps[sample])) for depth in block.z])
        mask = M.mask_from_bits(block.masks[sample], 16)
        test = DepthTest(M, target.state, numbers, lambda base: absolute(M, bench.space, int(base.payload[0])))
        found = test.run(surface.one_block(M, x, y), layer, z, back, viewport, mask, mask, sample=sample)
        passed.append(int(M.bits_from_mask(found).payload[0]))
    return passed


@pytest.mark.parametrize(("count", "format", "made"), every(3, [
    *((4, format, "compiled") for format in sorted(FORMATS)), *((count, "d24_unorm_x8_uint", "compiled") for count in (2, 8, 16)),
    *((count, "d32_float", "bytecode") for count in (2, 4, 8, 16))]))  # fmt: skip
def test_blocks_of_samples_are_tested_as_samples_are(count: int, format: str, made: str) -> None:
    """Blocks inside a buffer and across its right edge, with masks that differ by sample; stencil buffers are smaller than depth ones."""
    rng = np.random.default_rng(count)
    for width, stencil in ((8, True), (7, False)):
        target = target_of(format, count, width, stencil)
        held = {DEPTH: rng.integers(0, 64, SIZE, np.uint8), STENCIL: rng.integers(0, 16, SIZE, np.uint8)}
        bench = Target(buffers=held)
        with nullcontext() if made == "compiled" else as_bytecode():
            code = early_function.__wrapped__(target.state, bench.space.bits)  # type: ignore[attr-defined]
        fill_depth(record := DepthRecord(), target)
        context = Context(table=ctypes.addressof(bench.space.table))
        function = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(code.address)
        for x, y, back in ((0, 0, 0), (4, 4, 1), (4, 0, 0)):
            block = SampledBlock(x, y, 0, back, 0, 0, (ctypes.c_float * 16)(*rng.uniform(-0.2, 0.4, 16)),
                                 (ctypes.c_float * 16)(*rng.uniform(-0.1, 0.1, 16)),
                                 (ctypes.c_uint32 * 16)(*rng.integers(0, 0x10000, 16)))  # fmt: skip
            before = [buffer.array.copy() for buffer in bench.extra]
            wanted = by_sample(bench, target, record, block)
            after = [buffer.array.copy() for buffer in bench.extra]
            for buffer, was in zip(bench.extra, before, strict=True):
                buffer.array[:] = was
            any_of_them = function(ctypes.addressof(context), ctypes.addressof(record), ctypes.addressof(block))
            assert list(block.masks)[:count] == wanted and any(wanted) and any_of_them == np.bitwise_or.reduce(wanted)
            for buffer, expected in zip(bench.extra, after, strict=True):
                assert (buffer.array == expected).all()


@pytest.mark.parametrize("count", [2, 4, 8, 16])
def test_stored_quads_are_where_samples_are_interleaved(count: int) -> None:
    across, down = SPREAD[count]
    for number in range(count):
        for quad, (subspan, sample) in enumerate(stored_quads(count, number)):
            place = [M.constant(u32, value, 1) for value in (2 * (subspan % 2), 2 * (subspan // 2), sample)]
            column, row = (int(value.payload[0]) for value in interleave(M, count, *place))
            assert (column // 4 + (row // 4 << across), column % 4 // 2 + row % 4 // 2 * 2) == (number, quad)
    assert across + down == count.bit_length() - 1
