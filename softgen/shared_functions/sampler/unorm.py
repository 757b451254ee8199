"""sample_unorm: a block of 8x4 pixels of a surface, by a place and steps; words with eight bits behind the point.

The place and the steps stand where sample_8x8 has them; channels follow one another, 32 words each, row by row (public: IGC's vISA manual,
SAMPLE_UNORM). What drivers' kernels do with the words (they add 0x80 and take the upper byte) leaves bytes as they are only where 255
is 0xFF00. Executed on the interpreter alone.

Reads   MH_SAMPLER MH_SAMPLE_8X8 MDP_SAMPLE_8X8 RENDER_SURFACE_STATE
"""

from __future__ import annotations

from softgen.errors import Unsupported
from softgen.lanes.types import f32, u16, u32
from softgen.lanes.value import Value
from softgen.shared_functions.message import answers
from softgen.shared_functions.sampler.environment import StateMessage
from softgen.surface import texel

HEADER = "MH_SAMPLER"
COLUMNS, ROWS, LANES = 8, 4, 16  # lanes of a part: two rows
MASKS = ("red_channel_mask", "green_channel_mask", "blue_channel_mask", "alpha_channel_mask")
U, V, STEP_U, STEP_V = 2, 3, 4, 5  # dwords of MDP_SAMPLE_8X8
FULL = 0xFF00
OUTPUTS = ("16 bits", "16 bits with chroma halved", "8 bits", "8 bits with chroma halved")


@answers("sample_unorm", "sample_unorm_media", compiled=False)
def sample_unorm(x: StateMessage) -> None:
    m = x.m
    _check(x)
    masked = [bool(x.header(HEADER, name).payload[0]) if x.plan.header else False for name in MASKS]
    sampler = x.environment.sampler(x.sampler_index, None)
    given = x.take(f32, 0, COLUMNS)
    u, v, step_u, step_v = (m.broadcast(m.slice(given, place, 1), LANES) for place in (U, V, STEP_U, STEP_V))
    size = COLUMNS * ROWS * u16.bytes
    x.expect(size * masked.count(False))
    column = m.constant(f32, [float(lane % COLUMNS) for lane in range(LANES)])
    for part in range(ROWS * COLUMNS // LANES):
        row = m.constant(f32, [float(part * LANES // COLUMNS + lane // COLUMNS) for lane in range(LANES)])
        values = x.environment.textured(x, "sample_l", sampler, _places(x, u + step_u * column, v + step_v * row), x.any(LANES), len(MASKS))
        kept = [value for value, left_out in zip(values, masked, strict=True) if not left_out]
        for number, value in enumerate(kept):
            x.give(_words(x, value), number * size + part * LANES * u16.bytes, x.any(LANES))


def _places(x: StateMessage, u: Value, v: Value) -> list[Value]:
    """Parameters of a sample at level 0: u, v, r, the array index, and the level."""
    zero = x.m.constant(u32, 0, LANES)
    return [x.m.bitcast(u, u32), x.m.bitcast(v, u32), zero, zero, zero]


def _words(x: StateMessage, value: Value) -> Value:
    m = x.m
    scaled = m.bitcast(value, f32) * float(FULL) + 0.5
    return m.convert(m.min(m.max(scaled, m.constant(f32, 0.0, LANES)), m.constant(f32, float(FULL), LANES)), u16)


def _check(x: StateMessage) -> None:
    """Refuse what blocks of other kinds need."""
    output = int(x.header("MH_SAMPLE_8X8", "output_format_control").payload[0]) if x.plan.header else 0
    if output:
        raise Unsupported(f"{x.plan.name} with {OUTPUTS[output]}: not yet simulated")
    image = x.environment.picture(x.plan.fields.binding_table_index, False)
    if texel.is_integer(image.format):
        raise Unsupported(f"{x.plan.name} of a surface with integers: not yet simulated")
    state = x.environment.surfaces.state(int(x.plan.fields.binding_table_index))
    if getattr(state, "render_target_and_sample_unorm_rotation", 0):
        raise Unsupported(f"{x.plan.name} with a rotated surface: not yet simulated")
