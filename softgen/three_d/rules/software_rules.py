"""Software rules of Gen4.5: what a draw's state must not ask for, reported when its plans are made.

Reads   3DSTATE_PIPELINED_POINTERS VS_STATE GS_STATE CLIP_STATE SF_STATE WM_STATE COLOR_CALC_STATE CS_URB_STATE 3DSTATE_DEPTH_BUFFER
        RENDER_SURFACE_STATE
Writes  remarks
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from softgen.bits.catalogue import layout
from softgen.bits.describe import value_name
from softgen.bits.generation import most_of
from softgen.bits.record import Record
from softgen.surface.image import SurfaceImage
from softgen.three_d.pixels.render_target import blends
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state

READ_UNIT, ROW = 32, 64  # bytes of a read length or offset, of a row of the URB
TRANSPOSED = Fraction(4, 3)  # what transposed reads make of an entry's size (G45 6045)
STENCIL_FORMATS = ("d32_float_s8x24_uint", "d24_unorm_s8_uint")  # G45 7822
UPSTREAM = {"GS": ("VS",), "CLIP": ("GS", "VS"), "SF": ("CLIP", "GS", "VS")}  # owners of the vertices that a stage's threads read


def check_state(state: DrawState, target: SurfaceImage | None) -> None:
    """Report what the state of a draw must not ask for; `target` is the first render target."""
    if not state.generation.unit_state:
        return
    calc = color_calc(state)
    colors = _colors(state, calc, target) if target is not None else ()
    for text in (*_threads(state), *_reads(state), *_stencil(state, calc), *_logic(calc), *colors):
        state.remark(text)


def color_calc(state: DrawState) -> Record:
    """The state of the colour calculator."""
    pointer = state.command("3DSTATE_PIPELINED_POINTERS").pointer_to_color_calc_state
    return state.structure("COLOR_CALC_STATE", state.address("general", pointer))


def _threads(state: DrawState) -> Iterator[str]:
    """Pixel shader threads: as many as the EUs have room for (G45 6233-6235)."""
    eus, each = (most_of(state.generation, name) for name in ("eus", "threads"))
    threads = int(unit_state(state, "PS").maximum_number_of_threads) + 1
    if threads > eus * each:
        yield f"WM_STATE: maximum_number_of_threads {threads}; {eus} EUs of {each} threads each have {eus * each}"


# -- URB reads (G45 1594-1597) -----------------------------------------------------------------------------------------


def _enabled(state: DrawState, stage: str) -> bool:
    return bool(getattr(state.command("3DSTATE_PIPELINED_POINTERS"), f"{stage.lower()}_enable", 1))


def _reads(state: DrawState) -> Iterator[str]:
    """Reads that go past the end of the owning stage's entries."""
    for stage, owners in UPSTREAM.items():
        if not _enabled(state, stage):
            continue
        unit = unit_state(state, stage)
        owner = next(name for name in owners if _enabled(state, name))  # of what arrives, as far as that stage makes it
        yield from _past(stage, unit, "vertex", owner, unit_state(state, owner))
    pixels = unit_state(state, "PS")
    yield from _past("WM", pixels, "setup", "SF", unit_state(state, "SF"), TRANSPOSED if pixels.transposed_urb_read_enable else 1)
    constants = state.get("CS_URB_STATE")
    for stage in ("VS", "GS", "CLIP", "SF", "PS"):
        if constants is not None and _enabled(state, stage):
            yield from _past("WM" if stage == "PS" else stage, unit_state(state, stage), "constant", "CS_URB", constants)


def _past(stage: str, unit: Record, kind: str, owner: str, entries: Record, larger: Fraction | int = 1) -> Iterator[str]:
    offset, length = (int(getattr(unit, f"{kind}_urb_entry_read_{name}")) for name in ("offset", "length"))
    size = int((int(entries.urb_entry_allocation_size) + 1) * ROW * larger)
    if length and (offset + length) * READ_UNIT > size:
        yield f"{stage}_STATE: {kind}_urb_entry_read_length {length} at {offset} goes past the {size} bytes of {owner}_STATE's entries"


def check_registers(state: DrawState, stage: str, count: int, registers: int) -> None:
    """Report payloads larger than the registers that a stage's threads have: `count` is the field, blocks of 16 less 1 (G45 1587)."""
    most = 16 * (count + 1)
    if registers > most:
        state.remark(f"{stage}_STATE: grf_register_count {count}, {most} registers, and payloads have {registers}")


# -- depth, stencil and colours ----------------------------------------------------------------------------------------


def _stencil(state: DrawState, calc: Record) -> Iterator[str]:
    """Stencil tests need a buffer with stencil (G45 7822, 8097)."""
    buffer = state.get("3DSTATE_DEPTH_BUFFER")
    if buffer is None:
        return
    page = layout("3DSTATE_DEPTH_BUFFER", state.gen)
    format, null = value_name(page, buffer, "surface_format"), value_name(page, buffer, "surface_type") == "null"
    for field in ("stencil_test_enable", "stencil_buffer_write_enable"):
        if getattr(calc, field) and (null or format not in STENCIL_FORMATS):
            yield f"COLOR_CALC_STATE: {field} 1, and the depth buffer, {'null' if null else format}, has no stencil"


def _logic(calc: Record) -> Iterator[str]:
    """Blending and logic operations exclude each other (G45 8039)."""
    if calc.color_buffer_blend_enable and calc.logic_op_enable:
        yield "COLOR_CALC_STATE: color_buffer_blend_enable 1 with logic_op_enable 1"


def _colors(state: DrawState, calc: Record, target: SurfaceImage) -> Iterator[str]:
    types = {channel.type for channel in target.format.channels if channel.name != "x"}
    if target.format.space == "yuv":  # G45 8131, 8224
        for field in ("stencil_test_enable", "depth_test_enable"):
            if getattr(calc, field):
                yield f"COLOR_CALC_STATE: {field} 1 with a render target of format {target.format.name}"
    if types & {"uint", "sint"} and unit_state(state, "SF").antialiasing_enable:  # G45 5676
        yield f"SF_STATE: antialiasing_enable 1 with a render target of format {target.format.name}"
    if calc.color_buffer_blend_enable and target.format.name == "R32G32B32A32_FLOAT" and not state.generation.saturated_float_alpha:
        yield from _saturated(state, calc)


def _saturated(state: DrawState, calc: Record) -> Iterator[str]:
    """Factors of alpha that the hardware gets wrong beside a float target (G45 8379-8384); software sets independent factors of one."""
    page, of_alpha = layout("COLOR_CALC_STATE", state.gen), "alpha_" if calc.independent_alpha_blend_enable else ""
    for side in ("source", "destination"):
        name = f"{side}_{of_alpha}blend_factor"
        if value_name(page, calc, name) == "src_alpha_saturate" and blends(state):
            yield f"COLOR_CALC_STATE: {name} SRC_ALPHA_SATURATE is wrong for alpha with a render target of format R32G32B32A32_FLOAT"
