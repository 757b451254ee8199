"""Early depth and stencil tests of all samples of a block of pixels.

Interleaved samples of 4x4 pixels are as many 4x4 blocks of the buffer as a pixel has samples. Each is tested at once as a block of pixels
with one sample would be, where it is contiguous; sample by sample, words would be gathered. Values and their rounding are those of
DepthTest with a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordLayout, RecordView
from softgen.lanes.types import f32, u32
from softgen.lanes.value import Memory, Region, Value
from softgen.shared_functions.pixel_backend import surface
from softgen.shared_functions.pixel_backend.blocks_h import SampledBlock
from softgen.shared_functions.pixel_backend.depth import DepthTest
from softgen.shared_functions.pixel_backend.records import DEPTH
from softgen.shared_functions.pixel_backend.state import DepthState
from softgen.shared_functions.pixel_backend.surface import Pixels
from softgen.surface.samples import SPREAD

QUAD, QUADS = 4, 4  # pixels of a subspan; subspans of a block
BLOCK = RecordLayout.of(SampledBlock)


@cache
def stored_quads(samples: int, number: int) -> tuple[tuple[int, int], ...]:
    """The quads of stored block `number` of a block of pixels: the subspan and the sample that each is of (surface/samples.py:
    interleave)."""
    (across, down), found = SPREAD[samples], []
    for quad in range(QUADS):
        column, row = 2 * (number & (1 << across) - 1) + quad % 2, 2 * (number >> across) + quad // 2
        x, y = column & (1 << across) - 1, row & (1 << down) - 1
        sample = x & 1 | (y & 1) << 1 | (x & 2) << 1 | (y & 2) << 2
        found.append((2 * (row >> down) + (column >> across), sample))
    return tuple(found)


def early_samples(m: Machine, state: DepthState, memory: Callable[[Value], Region], target: Memory, block: Memory) -> Value:
    """`uint32_t f(context, target, block)` (blocks.h: struct sampled_block): leaves the pixels that pass at each sample in `masks`, and
    returns those that do at any."""
    given, numbers, count = RecordView(m, BLOCK, block, 0), RecordView(m, DEPTH, target, 0), state.samples
    masks = m.load_block(u32, surface.BLOCK, block, BLOCK.offset("masks"))
    steps = m.load_block(f32, surface.BLOCK, block, BLOCK.offset("steps"))
    z = m.load_block(f32, surface.BLOCK, block, BLOCK.offset("z"))
    x, y, layer, back_facing, viewport = (given.load(name) for name in ("x", "y", "layer", "back_facing", "viewport"))
    (across, down), pixels = SPREAD[count], surface.one_block(m, x, y)
    test, left = DepthTest(m, state, numbers, memory), m.variable(m.like(masks, 0))
    for number in range(count):
        quads = stored_quads(count, number)
        of = [QUAD * subspan + pixel for subspan, _ in quads for pixel in range(QUAD)]
        samples = [sample for _, sample in quads for _ in range(QUAD)]
        on = (m.shuffle(masks, samples) >> m.constant(u32, of) & 1) != 0
        column, row = QUAD * (number & (1 << across) - 1), QUAD * (number >> across)
        for _ in m.If(m.any(on)):
            stored = surface.one_block(m, (x << across) + column, (y << down) + row)
            seen = Pixels(m.shuffle(pixels.x, of), m.shuffle(pixels.y, of))
            passed = test.run(seen, layer, m.shuffle(z, of) + m.shuffle(steps, samples), back_facing, viewport, on, on, stored=stored)
            left.value = left.value | _by_sample(m, m.bits_from_mask(passed), quads)
    m.store_block(left.value, block, BLOCK.offset("masks"))
    found = left.value
    for half in (8, 4, 2, 1):
        found = m.slice(found, 0, half) | m.slice(found, half, half)
    return found


def _by_sample(m: Machine, bits: Value, quads: tuple[tuple[int, int], ...]) -> Value:
    """The lanes of a stored block, as bits, as masks of pixels by sample."""
    spread, left, found = m.broadcast(bits, surface.BLOCK), list(enumerate(quads)), m.constant(u32, 0, surface.BLOCK)
    while left:
        now = {sample: (quad, subspan) for quad, (subspan, sample) in reversed(left)}  # one quad of each sample
        left = [(quad, place) for quad, place in left if now[place[1]][0] != quad]
        at = [now.get(sample, (0, 0)) for sample in range(surface.BLOCK)]
        part = spread >> m.constant(u32, [QUAD * quad for quad, _ in at]) & m.constant(u32, [15 * (n in now) for n in range(surface.BLOCK)])
        found = found | part << m.constant(u32, [QUAD * subspan for _, subspan in at])
    return found
