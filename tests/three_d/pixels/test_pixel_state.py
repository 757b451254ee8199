"""What state says about pixel shader threads, generation by generation."""

from __future__ import annotations

import struct
from itertools import product
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.memory.store import MemfdBuffer
from softgen.three_d.pixels.pixel_payload import HeaderFormat, place_parts
from softgen.three_d.pixels.pixel_state import PROMOTED, PixelState, early_depth, late_depth, pixel_inputs, pixel_state
from softgen.three_d.state.state import DrawState
from tests.conftest import needs_shared
from tests.three_d.captured import walk
from tests.three_d.shaded import Stream

COMMANDS = ("ivb", "hsw", "bdw", "skl", "icl")
GENERAL, UNIT, CALC = 0x100000, 0x40, 0x80


def stream(gpu: str, **values: Any) -> Stream:
    """A stream with windower and shader state; `values` go to whichever command has a field of that name. Threads are started."""
    made = Stream(gpu)
    defaults = {"thread_dispatch_enable": 1, "pixel_shader_valid": 1, "has_writeable_rt": 1, "16_pixel_dispatch_enable": 1,
                "statistics_enable": 1}  # fmt: skip
    known = set[str]()
    for name in ("3DSTATE_WM", "3DSTATE_PS", "3DSTATE_PS_EXTRA", "3DSTATE_PS_BLEND"):
        if name in ("3DSTATE_WM", "3DSTATE_PS") or made.generation.number >= 8:
            made.latch(name)
            fields = set(made.latched[name]._fields)
            made.latch(name, **{field: value for field, value in (defaults | values).items() if field in fields - known})
            known |= fields
    assert set(values) <= known, "a field that the generation has"
    return made


def found(made: Stream) -> PixelState:
    state = made.state()
    return pixel_state(state, pixel_inputs(state))


# -- commands ------------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-PS-01", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", COMMANDS)
@pytest.mark.parametrize(("widths", "width", "number"), [((8,), 8, 0), ((16,), 16, 0), ((32,), 32, 0), ((8, 16), 16, 2), ((8, 32), 8, 0),
                                                         ((16, 32), 16, 2), ((8, 16, 32), 16, 2)])  # fmt: skip
def test_kernel_and_register_start_belong_together(gpu: str, widths: tuple[int, ...], width: int, number: int) -> None:
    """BDW-PS-01: three kernels with register starts of their own, picked by the enabled widths."""
    enables = {f"{value}_pixel_dispatch_enable": int(value in widths) for value in (8, 16, 32)}
    starts = {f"dispatch_grf_start_register_for_constant_setup_data_{n}": 10 + n for n in range(3)}
    pointers = {f"kernel_start_pointer_{n}": 0x1000 * (n + 1) for n in range(3)}
    pixels = found(stream(gpu, **enables, **starts, **pointers))
    assert (pixels.parts.width, pixels.kernel, pixels.parts.start) == (width, 0x1000 * (number + 1), 10 + number)


@pytest.mark.behaviour("BDW-PS-03", "BDW-PS-10", shows="action")
@pytest.mark.parametrize("gpu", COMMANDS)
def test_the_parts_of_a_payload(gpu: str) -> None:
    """BDW-PS-03, BDW-WM-06, BDW-PS-10: what the payload has, and that pushed data are gated."""
    pixels = found(stream(gpu, barycentric_interpolation_mode=0b101001, pixel_shader_uses_source_depth=1, pixel_shader_uses_source_w=1,
                          position_xy_offset_select=3, input_coverage_mask_state=1, push_constant_enable=1,
                          attribute_enable=1))  # fmt: skip
    parts = pixels.parts
    assert parts.format is HeaderFormat.BARYCENTRIC and parts.barycentrics == (True, False, False, True, False, True)
    assert parts.depth and parts.w and parts.xy_offsets and parts.coverage and pixels.push_constants and pixels.attributes
    none = found(stream(gpu))
    assert not any(none.parts.barycentrics) and not none.parts.depth and not none.parts.w and not none.parts.xy_offsets
    assert not none.parts.coverage and not none.push_constants and not none.attributes


@pytest.mark.behaviour("BDW-PS-05", "BDW-PS-06", "BDW-PS-07", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", COMMANDS)
@pytest.mark.parametrize(("values", "late"), [
    ({}, False),
    ({"pixel_shader_kills_pixel": 1}, True),
    ({"pixel_shader_computed_depth_mode": 2}, True),
    ({"omask_present_to_render_target": 1}, True),
    ({"early_depth_stencil_control": 1}, True),
    ({"early_depth_stencil_control": 2, "pixel_shader_kills_pixel": 1}, False),
])  # fmt: skip
def test_tests_come_late_where_the_shader_decides(gpu: str, values: dict[str, int], late: bool) -> None:
    """BDW-PS-05, BDW-PS-06, BDW-PS-07: results are as if tests came after the shader, unless control says before it (BDW 13453-13485)."""
    assert found(stream(gpu, **values)).late is late


@pytest.mark.behaviour("BDW-PS-02", "BDW-PS-13", "BDW-PS-14", "BDW-WM-13", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gpu", ["bdw", "skl", "icl"])
@pytest.mark.parametrize(("values", "dispatched"), [
    ({}, True),
    ({"pixel_shader_valid": 0}, False),
    ({"has_writeable_rt": 0}, False),
    ({"pixel_shader_does_not_write_to_rt": 1}, False),
    ({"has_writeable_rt": 0, "pixel_shader_has_uav": 1}, True),
    ({"has_writeable_rt": 0, "pixel_shader_kills_pixel": 1}, True),
    ({"has_writeable_rt": 0, "pixel_shader_computed_depth_mode": 1}, True),
    ({"has_writeable_rt": 0, "alpha_test_enable": 1}, True),
    ({"has_writeable_rt": 0, "early_depth_stencil_control": 1}, True),
    ({"force_thread_dispatch_enable": 1}, False),
    ({"has_writeable_rt": 0, "force_thread_dispatch_enable": 2}, True),
])  # fmt: skip
def test_threads_are_started_if_they_can_change_something(gpu: str, values: dict[str, int], dispatched: bool) -> None:
    """Threads start for what they could change: targets, depth, surfaces; a shader must be valid, and overrides decide alone."""
    pixels = found(stream(gpu, **values))
    assert pixels.dispatched is dispatched and (dispatched or not pixels.late)


@pytest.mark.parametrize("gpu", ["ivb", "hsw"])
def test_a_bit_says_whether_threads_are_started(gpu: str) -> None:
    assert found(stream(gpu)).dispatched and not found(stream(gpu, thread_dispatch_enable=0)).dispatched


@pytest.mark.parametrize("field", ["alpha_test_enable", "alpha_to_coverage_enable"])
def test_tests_of_alpha_come_after_the_shader(field: str) -> None:
    """In a command that repeats it, or in the first entry of the blend state in memory."""
    assert found(stream("skl", **{field: 1})).late
    for value in (0, 1):
        made = stream("ivb")
        made.bases["dynamic"] = GENERAL
        made.latch("3DSTATE_BLEND_STATE_POINTERS", blend_state_pointer=0x40)
        mapped(made, 0x40, "BLEND_STATE_ENTRY", **{field: value})
        assert found(made).late is bool(value)


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.parametrize("gpu", ["ivb", "hsw"])
def test_blend_state_is_not_read_without_threads(gpu: str) -> None:
    """The pointer may be that of an earlier batch, and lead nowhere."""
    for enable in (0, 1):
        made = stream(gpu, thread_dispatch_enable=enable)
        made.latch("3DSTATE_BLEND_STATE_POINTERS", blend_state_pointer=0x40)
        if not enable:
            assert not found(made).dispatched
            continue
        with pytest.raises(GpuFault, match="BLEND_STATE"):
            found(made)


@pytest.mark.behaviour("BDW-PS-15", shows="action")
def test_a_chroma_key_kills() -> None:
    """With chromakey_kill_enable, depth is tested and written after the shader, as with a shader that kills pixels."""
    made = stream("bdw")
    made.latch("3DSTATE_WM_CHROMAKEY", chromakey_kill_enable=1)
    assert found(made).late


@pytest.mark.behaviour("BDW-WM-13", shows="action")
def test_killing_can_be_forced() -> None:
    """force_kill_pixel_enable decides over what the shader's state says, on and off."""
    assert found(stream("bdw", force_kill_pixel_enable=2)).late
    assert not found(stream("bdw", force_kill_pixel_enable=1, pixel_shader_kills_pixel=1)).late


@pytest.mark.behaviour("BDW-PS-08", shows="action")
def test_the_control_register() -> None:
    """BDW-PS-08: float mode, rounding, denormals, masks and exceptions."""
    control = found(stream("bdw", floating_point_mode=1, rounding_mode=2, vector_mask_enable=1, single_program_flow=1,
                           single_precision_denormal_mode=1, illegal_opcode_exception_enable=1)).control  # fmt: skip
    assert control[0] == 1 | 1 << 2 | 1 << 3 | 2 << 4 | 1 << 7 and control[1] == 1 << 12
    assert found(stream("ivb", single_precision_denormal_mode=1)).control[0] == 0  # this cr0 has no such bit


@pytest.mark.behaviour("BDW-PS-12", shows="action")
@pytest.mark.parametrize(("gpu", "threads"), [("ivb", 49), ("hsw", 49), ("bdw", 50), ("icl", 49)])
def test_scratch_space(gpu: str, threads: int) -> None:
    """Size by code, on Haswell too (public: Mesa's hasvk, get_scratch_space); r0.3 has the code, r0.5 the base. The number of threads is
    more than its field, by 2 on Broadwell."""
    unit = 1024
    limit = "maximum_number_of_threads" if gpu in ("ivb", "hsw") else "maximum_number_of_threads_per_psd"
    pixels = found(stream(gpu, scratch_space_base_pointer=0x40000, per_thread_scratch_space=2, **{limit: 48}))
    assert pixels.scratch is not None and pixels.scratch.size == pixels.parts.scratch_step == unit << 2 and pixels.scratch.base == 0x40000
    assert pixels.scratch.threads == threads and pixels.parts.header[3] == 2 and pixels.parts.header[5] == 0x40000
    assert found(stream(gpu)).scratch is None
    for field, value in (("scratch_space_base_pointer", 0x40000), ("per_thread_scratch_space", 2)):
        held = found(stream(gpu, **{field: value, limit: 48})).scratch
        assert held is not None and (held.base, held.size) == ((0x40000, unit) if "pointer" in field else (0, unit << 2))


def test_the_header_announces_what_goes_to_the_target() -> None:
    """BDW 7659: bits of the state are inserted in the header."""
    values = {"omask_present_to_render_target": 1, "pixel_shader_computed_depth_mode": 1}
    assert found(stream("bdw", **values)).parts.header[0] == 1 << 13 | 1 << 12
    assert found(stream("skl", pixel_shader_computes_stencil=1)).parts.header[0] == 1 << 14


def test_tables_are_in_the_header() -> None:
    made = stream("skl")
    made.latch("3DSTATE_BINDING_TABLE_POINTERS_PS", pointer_to_binding_table=0x80)
    made.latch("3DSTATE_SAMPLER_STATE_POINTERS_PS", pointer_to_sampler_state=0x1C0)
    made.latch("3DSTATE_CC_STATE_POINTERS", color_calc_state_pointer=0x240, color_calc_state_pointer_valid=1)
    pixels = found(made)
    assert pixels.parts.header == (0, 0x240, 0, 0x1C0, 0x80, 0, 0, 0) and (pixels.binding_table, pixels.samplers) == (0x80, 0x1C0)


@pytest.mark.parametrize(("gpu", "field"), [("skl", "render_target_resolve_type"), ("ivb", "legacy_depth_buffer_clear_enable"),
                                            ("icl", "pixel_shader_is_per_coarse_pixel"), ("hsw", "rt_independent_rasterization_enable"),
                                            ("icl", "pixel_shader_requires_subpixel_sample_offsets")])  # fmt: skip
def test_state_that_is_not_built_is_refused_by_name(gpu: str, field: str) -> None:
    with pytest.raises(Unsupported, match=f"3DSTATE_.*{field} = 1"):
        found(stream(gpu, **{field: 1}))


@pytest.mark.parametrize("state", range(4))
def test_coverage_of_the_payload_is_what_state_says(state: int) -> None:
    assert found(stream("skl", input_coverage_mask_state=state)).parts.coverage == state


def test_shaders_that_pull_barycentrics_may_send_to_the_pixel_interpolator() -> None:
    """A bit says so from Gen9 on; before, any may."""
    assert found(stream("skl", pixel_shader_pulls_bary=1)).interpolated and not found(stream("skl")).interpolated
    assert found(stream("bdw")).interpolated


def test_threads_of_no_width_are_an_error() -> None:
    with pytest.raises(DecodeError, match="no dispatch width is enabled"):
        found(stream("skl", **{"16_pixel_dispatch_enable": 0}))


def test_missing_state_is_named() -> None:
    made = stream("skl")
    del made.latched["3DSTATE_WM"]
    with pytest.raises(DecodeError, match="needs 3DSTATE_WM"):
        found(made)


# -- captures ------------------------------------------------------------------------------------------------------------------


@needs_shared("traces")
@pytest.mark.parametrize(("gpu", "start"), [("g45", 2), ("ivb", 6), ("hsw", 6), ("bdw", 6), ("kbl", 6), ("icl", 6)])
def test_the_triangle_of_each_capture(gpu: str, start: int) -> None:
    """The registers that its kernel reads are where the plan has them (GRAPHICS_THREADS 7)."""
    seen = list[PixelState]()

    def draw(cs: CommandStreamer, command: Record) -> None:
        state = DrawState.of(cs)
        try:
            seen.append(pixel_state(state, pixel_inputs(state)))
        except Unsupported as fast_clear:
            assert "render_target" in str(fast_clear)

    assert walk(f"{gpu}-gles-tri", draw) == []
    last = next(pixels for pixels in reversed(seen) if pixels.push_constants)
    assert last.parts.width == 16 and last.parts.start == start and last.dispatched and not last.late
    assert last.parts.barycentrics[0] is (gpu != "g45") and not any(last.parts.barycentrics[1:]) and not last.parts.depth
    attribute_bytes = 64 if last.setup_bytes is None else last.setup_bytes
    plan = place_parts(last.parts, 32, attribute_bytes)
    assert plan.constants == 32 * start and plan.attributes == 32 * (start + 1) and plan.barycentric[0] == (0 if gpu == "g45" else 64)


# -- unit state ------------------------------------------------------------------------------------------------------------------


def mapped(made: Stream, offset: int, name: str, **values: Any) -> None:
    """Puts a structure into the page at GENERAL."""
    dwords = layout(name, made.generation.number).pack(**values)
    try:
        made.space.read(GENERAL, 1)
    except GpuFault:
        made.space.map(GENERAL, MemfdBuffer(0x1000, "state"))
    made.space.write(GENERAL + offset, struct.pack(f"<{len(dwords)}I", *dwords))


def unit(calc: dict[str, int] | None = None, depth: bool = True, **values: Any) -> Stream:
    made = Stream("g45")
    made.bases["general"] = GENERAL
    made.latch("3DSTATE_PIPELINED_POINTERS", pointer_to_wm_state=UNIT, pointer_to_color_calc_state=CALC)
    made.latch("3DSTATE_DEPTH_BUFFER", surface_type=1 if depth else 7)
    mapped(made, UNIT, "WM_STATE", **{"thread_dispatch_enable": 1, "16_pixel_dispatch_enable": 1, "early_depth_test_enable": 1} | values)
    mapped(made, CALC, "COLOR_CALC_STATE", **(calc or {}))
    return made


@pytest.mark.behaviour("G45-WM-29", "G45-WM-31", shows="action")
@pytest.mark.parametrize(("widths", "width", "entry", "start"), [
    ((8,), 8, 0, 3), ((16,), 16, 0, 3), ((32,), 32, 0, 6), ((8, 16), 16, 32, 3), ((16, 32), 16, 32, 3), ((8, 16, 32), 16, 32, 3),
])  # fmt: skip
def test_a_kernel_with_several_entries(widths: tuple[int, ...], width: int, entry: int, start: int) -> None:
    """G45-WM-29, G45-WM-31: entries are 16 bytes apart; 32 channels double the register start."""
    enables = {f"{value}_pixel_dispatch_enable": int(value in widths) for value in (8, 16, 32)}
    pixels = found(unit(**enables, kernel_start_pointer_0=0x2000, dispatch_grf_start_register_for_constant_setup_data_0=3))
    assert (pixels.parts.width, pixels.kernel, pixels.parts.start) == (width, 0x2000 + entry, start)
    assert pixels.parts.format is HeaderFormat.COEFFICIENTS


@pytest.mark.behaviour("G45-WM-30", shows="action")
def test_a_combination_that_the_manual_lacks_is_an_error() -> None:
    """G45-WM-30: 8 and 32 without 16."""
    with pytest.raises(DecodeError, match="8 and 32 pixel dispatch"):
        found(unit(**{"8_pixel_dispatch_enable": 1, "16_pixel_dispatch_enable": 0, "32_pixel_dispatch_enable": 1}))


@pytest.mark.parametrize("pixels", [32, 64])
def test_threads_of_contiguous_pixels_are_refused_by_name(pixels: int) -> None:
    with pytest.raises(Unsupported, match=f"WM_STATE: contiguous_{pixels}_pixel_dispatch_enable = 1"):
        found(unit(**{f"contiguous_{pixels}_pixel_dispatch_enable": 1}))


@pytest.mark.behaviour("G45-WM-52", "G45-WM-53", shows="action")
def test_setup_data_of_the_unit() -> None:
    """G45-WM-52, G45-WM-53: read offset and length in 32 bytes."""
    pixels = found(unit(setup_urb_entry_read_offset=1, setup_urb_entry_read_length=4, constant_urb_entry_read_length=2))
    assert pixels.parts.attribute_offset == 32 and pixels.setup_bytes == 128 and pixels.push_constants and pixels.attributes


@pytest.mark.behaviour("G45-WM-24", "G45-WM-35", shows="action")
def test_depth_that_threads_carry() -> None:
    """G45-WM-24, G45-WM-35: source depth where the shader uses it, or where it writes later; r1.6 says so."""
    plain = found(unit({"depth_test_enable": 1, "depth_buffer_write_enable": 1}))
    assert not plain.parts.depth and not plain.late and plain.parts.flags == 0
    used = found(unit(pixel_shader_uses_source_depth=1))
    assert used.parts.depth and used.parts.flags == 1 << 30
    killed = found(unit({"depth_test_enable": 1, "depth_buffer_write_enable": 1}, pixel_shader_kills_pixel=1))
    assert killed.parts.depth and killed.late and killed.parts.flags == 3 << 29


@pytest.mark.behaviour("G45-WM-18", shows="action")
def test_without_a_depth_buffer_nothing_is_tested() -> None:
    """A null depth surface masks the enables of depth test and write."""
    assert not found(unit({"depth_test_enable": 1, "depth_buffer_write_enable": 1}, False, pixel_shader_kills_pixel=1)).late


@pytest.mark.behaviour("G45-WM-25", shows="action")
def test_statistics_count_killed_pixels_after_the_shader() -> None:
    """G45-WM-25: with an alpha test too."""
    for calc, values in (({}, {"pixel_shader_kills_pixel": 1}), ({"alpha_test_enable": 1}, {})):
        counted = found(unit(calc, statistics_enable=1, **values))
        assert counted.late and counted.parts.depth and counted.parts.flags == 3 << 29 and not found(unit(calc, **values)).late


@pytest.mark.behaviour("G45-WM-35", shows="action")
def test_payloads_with_destination_values() -> None:
    """What the early-depth table says is in the payload, and its flags in r1.6 (G45-WM-35)."""
    deep = found(unit({"depth_test_enable": 1}, pixel_shader_computed_depth=1))
    assert (deep.parts.held_depth, deep.parts.held_stencil) == (True, False) and deep.parts.flags == 1 << 29 | 1 << 28
    both = {"depth_test_enable": 1, "stencil_test_enable": 1, "stencil_buffer_write_enable": 1}
    killed = found(unit(both, pixel_shader_kills_pixel=1))
    assert (killed.parts.held_depth, killed.parts.held_stencil) == (True, True) and killed.parts.flags == 0xF << 27


STENCIL_TEST, STENCIL_WRITE, DEPTH_TEST, DEPTH_WRITE = (
    {name: 1} for name in ("stencil_test_enable", "stencil_buffer_write_enable", "depth_test_enable", "depth_buffer_write_enable"))


@pytest.mark.behaviour("G45-WM-18", "G45-WM-19", "G45-WM-20", shows="action")
@pytest.mark.parametrize(("calc", "early", "late"), [
    ({}, "", ""), (STENCIL_TEST, "", "s"), (STENCIL_WRITE, "", ""), (STENCIL_TEST | STENCIL_WRITE, "s", "s"), (DEPTH_TEST, "", "ptd"),
    (DEPTH_WRITE, "pt", "pt"), (DEPTH_TEST | DEPTH_WRITE, "pt", "ptd"), (STENCIL_TEST | DEPTH_WRITE, "pts", "pts"),
    (STENCIL_WRITE | DEPTH_WRITE, "pt", "pt"), (STENCIL_TEST | STENCIL_WRITE | DEPTH_TEST, "ptds", "ptds"),
])  # fmt: skip
def test_what_threads_that_kill_pixels_carry(calc: dict[str, int], early: str, late: str) -> None:
    """Source depth present in the payload (p) and sent to the target (t), destination depth (d) and stencil (s): with early tests enabled
    or not. Stencil writes need the stencil test; without a depth buffer, or with a null one, nothing is tested."""
    bits = {"p": 1 << 30, "t": 1 << 29, "d": 1 << 28, "s": 1 << 27}
    for enabled, carried in ((1, early), (0, late)):
        for buffer in ("there", "null", "none"):
            made = unit(calc, buffer == "there", pixel_shader_kills_pixel=1, early_depth_test_enable=enabled)
            if buffer == "none":
                del made.latched["3DSTATE_DEPTH_BUFFER"]
            pixels, wanted = found(made), carried if buffer == "there" else ""
            assert (pixels.late, pixels.parts.flags) == (bool(wanted), sum(bits[part] for part in wanted)), (enabled, buffer)
            assert (pixels.parts.depth, pixels.parts.held_depth, pixels.parts.held_stencil) == tuple(part in wanted for part in "pds")


@pytest.mark.behaviour("G45-WM-26", shows="action")
def test_dispatch_can_be_off() -> None:
    """With thread_dispatch_enable 0 no pixel shader threads start."""
    assert not found(unit(thread_dispatch_enable=0)).dispatched


ROWS = [tuple(bool(bit) for bit in row) for row in product((0, 1), repeat=6) if row[0] or not row[1]]  # writes need the stencil test


@pytest.mark.behaviour("G45-WM-19", "G45-WM-21", "G45-WM-22", "G45-WM-23", shows="action")
@pytest.mark.parametrize(("row", "mode"), [
    ("000000", "P 0000"), ("000001", "P 0000"), ("000101", "N 1100"), ("000111", "N 0100"), ("000110", "N 0100"), ("001000", "P 0000"),
    ("001001", "P 0000"), ("001010", "C 0110"), ("001100", "P 0000"), ("001101", "N 1100"), ("001110", "C 0110"), ("100101", "N 1101"),
    ("101010", "C 0111"), ("110000", "P 0000"), ("110001", "C 0001"), ("110011", "C 0101"), ("111000", "P 0000"), ("111001", "C 1111"),
    ("111010", "C 0111"), ("111101", "C 1111"), ("110010", "P 0000"), ("101000", "P 0000"), ("100000", "P 0000"),
])  # fmt: skip
def test_early_depth_rows(row: str, mode: str) -> None:
    """G45-WM-19, G45-WM-21 to G45-WM-23: stencil test and write, depth test and write, computed depth, kill -> mode; source depth to the
    thread and to the target, destination depth and stencil."""
    result = early_depth(*(bit == "1" for bit in row))
    assert result.late is (mode[0] != "P") and "".join(str(int(value)) for value in result[1:]) == mode[2:]


@pytest.mark.behaviour("G45-WM-20", shows="action")
@pytest.mark.parametrize("row", ROWS)
def test_late_depth_rows(row: tuple[bool, ...]) -> None:
    """G45-WM-20, by columns: everything is computed after the shader, unless there is nothing to do."""
    stencil, _, test, write, computes, _ = row
    result = late_depth(*row)
    if not (stencil or test or write or computes):
        assert result is PROMOTED
        return
    assert result.late and result.destination_depth is test and result.destination_stencil is stencil
    assert result.source_present is ((test or write) and not computes) and result.source_to_target is (test or write or computes)
