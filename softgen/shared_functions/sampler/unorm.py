"""sample_unorm: a block of 8x4 pixels of a surface, by a place and steps; words with eight bits behind the point.

The place and the steps stand where sample_8x8 has them; channels follow one another, 32 words each, row by row (public: IGC's vISA manual,
SAMPLE_UNORM). What drivers' kernels do with the words (they add 0x80 and take the upper byte) leaves bytes as they are only where 255
is 0xFF00.

Reads   MH_SAMPLER MH_SAMPLE_8X8 MDP_SAMPLE_8X8 RENDER_SURFACE_STATE
"""

from __future__ import annotations

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.errors import Unsupported
from softgen.lanes.types import f32, u16, u32
from softgen.lanes.value import Value
from softgen.shared_functions import descriptors
from softgen.shared_functions.bindings import BLOCK_SAMPLE
from softgen.shared_functions.message import MessagePlan, answers
from softgen.shared_functions.sampler.environment import SamplerMessage, StateMessage
from softgen.shared_functions.texture.operations import ASKERS, TexelRequest
from softgen.surface import texel
from softgen.surface.image import SurfaceImage

NAMES = ("sample_unorm", "sample_unorm_media")
HEADER = "MH_SAMPLER"
COLUMNS, ROWS, BLOCK_LANES = 8, 4, 16  # lanes of a part: two rows
MASKS = ("red_channel_mask", "green_channel_mask", "blue_channel_mask", "alpha_channel_mask")
U, V, STEP_U, STEP_V = 2, 3, 4, 5  # dwords of MDP_SAMPLE_8X8
FULL = 0xFF00
OUTPUTS = ("16 bits", "16 bits with chroma halved", "8 bits", "8 bits with chroma halved")


def is_block(name: str) -> bool:
    """Whether a message samples a block."""
    return name in NAMES


def _in_tables(plan: MessagePlan) -> bool:
    """Whether a message names its surface by an entry of the binding table: then it can be compiled."""
    return plan.header and plan.indices[0] not in catalogue.enumeration(descriptors.SURFACES, plan.gen)


ASKERS.update(dict.fromkeys(NAMES, lambda plan, sent: TexelRequest(BLOCK_SAMPLE, BLOCK_LANES, plan.indices[1])))


@answers(*NAMES, compiled=_in_tables)
def sample_unorm(x: SamplerMessage) -> None:
    m = x.m
    x.environment.check_block(x)
    masked = [m.broadcast(x.header(HEADER, name) == 1, BLOCK_LANES) for name in MASKS] if x.plan.header else []
    sampler = x.environment.sampler(x.sampler_index, None)
    given = x.take(f32, 0, COLUMNS)
    u, v, step_u, step_v = (m.broadcast(m.slice(given, place, 1), BLOCK_LANES) for place in (U, V, STEP_U, STEP_V))
    column = m.constant(f32, [float(lane % COLUMNS) for lane in range(BLOCK_LANES)])
    for part in range(ROWS * COLUMNS // BLOCK_LANES):
        row = m.constant(f32, [float(part * BLOCK_LANES // COLUMNS + lane // COLUMNS) for lane in range(BLOCK_LANES)])
        places = _places(x, u + step_u * column, v + step_v * row)
        values = x.environment.textured(x, BLOCK_SAMPLE, sampler, places, x.any(BLOCK_LANES), len(MASKS))
        _respond(x, part, _compacted(x, [_words(x, value) for value in values], masked))


def _places(x: SamplerMessage, u: Value, v: Value) -> list[Value]:
    """Parameters of a sample at level 0: u, v, r, the array index, and the level."""
    zero = x.m.constant(u32, 0, BLOCK_LANES)
    return [x.m.bitcast(u, u32), x.m.bitcast(v, u32), zero, zero, zero]


def _words(x: SamplerMessage, value: Value) -> Value:
    m = x.m
    scaled = m.bitcast(value, f32) * float(FULL) + 0.5
    return m.convert(m.min(m.max(scaled, m.constant(f32, 0.0, BLOCK_LANES)), m.constant(f32, float(FULL), BLOCK_LANES)), u16)


def _compacted(x: SamplerMessage, values: list[Value], masked: list[Value]) -> list[Value]:
    """Channels that the header masks are left out, and the others move up."""
    found = list(values)
    for number in reversed(range(len(masked))):  # from the last: what follows a masked channel moves up
        for place in range(number, len(values) - 1):
            found[place] = x.m.select(masked[number], found[place + 1], found[place])
    return found


def _respond(x: SamplerMessage, part: int, values: list[Value]) -> None:
    """A part of each channel that there is room for."""
    size = COLUMNS * ROWS * u16.bytes
    for number, value in enumerate(values[: x.answered // size]):
        x.give(value, number * size + part * BLOCK_LANES * u16.bytes, x.any(BLOCK_LANES))


def refused(image: SurfaceImage, state: Record) -> str:
    """What of a surface such messages do not know."""
    if texel.is_integer(image.format):
        return "of a surface with integers"
    return "with a rotated surface" if getattr(state, "render_target_and_sample_unorm_rotation", 0) else ""


def check(x: StateMessage) -> None:
    """Refuse what blocks of other kinds need."""
    output = int(x.header("MH_SAMPLE_8X8", "output_format_control").payload[0]) if x.plan.header else 0
    index = int(x.plan.fields.binding_table_index)
    why = f"with {OUTPUTS[output]}" if output else refused(x.environment.picture(index, False), x.environment.surfaces.state(index))
    if why:
        raise Unsupported(f"{x.plan.name} {why}: not yet simulated")
