"""State of the pixel shader: which kernel runs with which payload, whether threads are started, and when depth and stencil are tested.

Reads   3DSTATE_WM 3DSTATE_PS 3DSTATE_PS_EXTRA 3DSTATE_PS_BLEND BLEND_STATE 3DSTATE_WM_CHROMAKEY 3DSTATE_CC_STATE_POINTERS;
        WM_STATE COLOR_CALC_STATE 3DSTATE_DEPTH_BUFFER where units read blocks
Writes  a PixelState

Where the fields stand has changed from generation to generation, their names have not: a field is looked up in whichever record has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple

from softgen.bits import catalogue
from softgen.bits.generation import Generation
from softgen.bits.record import Record
from softgen.bits.units import DWORD_MASK
from softgen.errors import DecodeError
from softgen.threads.dispatch import KIB, Scratch, control_register, size_code, state_register
from softgen.three_d.pixels import rasterizer
from softgen.three_d.pixels.pixel_payload import MODES, HeaderFormat, PayloadParts
from softgen.three_d.rules.software_rules import check_registers
from softgen.three_d.samples.sample_plan import stored_samples
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table, samplers, unit_state

WIDTHS = (8, 16, 32)
# Enabled widths -> the width of a draw's threads, and their kernel start pointer (GRAPHICS_THREADS 5; BDW-PS-01). A dispatch has one
# kernel, so a draw has threads of one width: 16 if that is enabled, as a block of 4x4 pixels is 16 channels, else 8.
KERNELS: dict[tuple[int, ...], tuple[int, int]] = {
    (): (16, 0),  # nothing can be dispatched
    (8,): (8, 0), (16,): (16, 0), (32,): (32, 0), (8, 16): (16, 2), (8, 32): (8, 0), (16, 32): (16, 2), (8, 16, 32): (16, 2),
}  # fmt: skip
ENTRY = 16  # bytes between the entries of a kernel that has several (G45 7158-7190)
NORMAL, FORCE_OFF, FORCE_ON = 0, 1, 2  # overrides of 3DSTATE_WM
PS_EXECUTES, PRE_PS = 1, 2  # early_depth_stencil_control
NULL_SURFACE = 7
OF_PIXELS, SAMPLE_PAIRS, SAMPLE_SLOTS = range(3)  # enum sample_threads of pixels.h
# Pointers of r0, and the inputs that have them.
POINTERS = {"color_calculator_state_pointer": "color_calc", "sampler_state_pointer": "samplers", "binding_table_pointer": "binding_table"}
HEADER_DWORDS, FLAGS_DWORD = 8, 14  # r0; r1.6, which depths a payload of Gen4.5 has
EXCEPTIONS = {"illegal_opcode_exception_enable": "illegal_opcode_enable", "mask_stack_exception_enable": "stack_overflow_enable",
              "software_exception_enable": "software_enable"}  # fmt: skip
# State that would change the picture and is not built; and that of threads.
NOT_BUILT = ("rt_independent_rasterization_enable", "legacy_depth_buffer_clear_enable", "legacy_depth_buffer_resolve_enable",
             "legacy_hierarchical_depth_buffer_resolve_enable", "render_target_fast_clear_enable", "render_target_resolve_enable",
             "render_target_resolve_type")  # fmt: skip
NOT_BUILT_OF_THREADS = (
    "contiguous_64_pixel_dispatch_enable", "contiguous_32_pixel_dispatch_enable", "pixel_shader_is_per_coarse_pixel",
    "force_computed_depth", "pixel_shader_requires_requested_coarse_pixel_shading_size",
    "pixel_shader_requires_source_depth_and_or_w_plane_coefficients", "pixel_shader_requires_perspective_bary_plane_coefficients",
    "pixel_shader_requires_non_perspective_bary_plane_coefficients", "pixel_shader_requires_subpixel_sample_offsets")  # fmt: skip


@dataclass(frozen=True)
class PixelState:
    """What state says about a draw's pixel shader threads."""

    parts: PayloadParts
    kernel: int  # offset from the instruction base
    control: tuple[int, ...]  # cr0
    dispatched: bool  # threads are started; else pixels are only tested
    late: bool  # depth and stencil tests come after the shader, with its render-target write
    statistics: bool
    push_constants: bool
    attributes: bool  # each record's attributes follow the constants
    setup_bytes: int | None  # of a record's setup data that follow; None: all of its attributes
    binding_table: int
    samplers: int
    scratch: Scratch | None
    interpolated: bool = False  # threads may send messages to the pixel interpolator
    thread_state: int = 0  # sr0.0


class Fields:
    """Fields by name, wherever they stand; 0 where the generation has none of that name."""

    def __init__(self, *records: Record | None) -> None:
        self._records = [record for record in records if record is not None]

    def __getattr__(self, name: str) -> int:
        return next((int(getattr(record, name)) for record in self._records if name in record._fields), 0)

    def has(self, name: str) -> bool:
        return any(name in record._fields for record in self._records)


class PixelInputs(NamedTuple):
    """The records that a PixelState is made of; equal inputs mean an equal state."""

    windower: Record
    shader: Record
    extra: Record | None
    blend: Record | None
    chroma_key: Record | None
    depth_buffer: Record | None
    color_calc: int  # pointer
    binding_table: int
    samplers: int
    raster: tuple[Record | None, ...]


def pixel_inputs(state: DrawState) -> PixelInputs:
    """What a draw's state has now."""
    shader, pointers = unit_state(state, "PS"), state.get("3DSTATE_CC_STATE_POINTERS")
    common = binding_table(state, "PS"), samplers(state, "PS"), tuple(state.get(name) for name in rasterizer.STATE)
    if state.generation.unit_state:
        common = *common[:2], (*common[2], unit_state(state, "SF"))
        pointer = state.command("3DSTATE_PIPELINED_POINTERS").pointer_to_color_calc_state
        color_calc = state.structure("COLOR_CALC_STATE", state.address("general", pointer))
        return PixelInputs(shader, shader, None, color_calc, None, state.get("3DSTATE_DEPTH_BUFFER"), pointer, *common)
    windower = state.command("3DSTATE_WM")
    blend = _blend(state) if getattr(windower, "thread_dispatch_enable", 1) else None  # else it is not read
    return PixelInputs(windower, shader, state.get("3DSTATE_PS_EXTRA"), blend, state.get("3DSTATE_WM_CHROMAKEY"), None,
                       pointers.color_calc_state_pointer if pointers is not None else 0, *common)  # fmt: skip


def _blend(state: DrawState) -> Record | None:
    """Where alpha test and alpha to coverage are enabled: a command that repeats it (BDW-PS-14), or the first entry of the blend state."""
    if "3DSTATE_PS_BLEND" in state.latched:
        return state.command("3DSTATE_PS_BLEND")
    name = "3DSTATE_BLEND_STATE_POINTERS"
    pointer = state.get(name)
    if pointer is None:
        return None
    blend = state.structure("BLEND_STATE", state.block_address(pointer.blend_state_pointer), name)
    entry: Record = blend.render_target[0]
    return blend if "alpha_test_enable" in blend._fields else entry


def pixel_state(state: DrawState, inputs: PixelInputs) -> PixelState:
    return _of_unit(state, inputs) if state.generation.unit_state else _of_commands(state, inputs)


# -- commands ------------------------------------------------------------------------------------------------------------------


def _of_commands(state: DrawState, inputs: PixelInputs) -> PixelState:
    """Pointers move with each batch, while all else is one of few."""
    plain = inputs._replace(color_calc=0, binding_table=0, samplers=0, raster=())
    made = _without_pointers(state.generation, plain, stored_samples(state))
    header = list(made.parts.header)
    for number, mask, name in _pointers(state.gen):
        header[number] |= getattr(inputs, name) & mask
    parts = replace(made.parts, header=tuple(header))
    return replace(made, parts=parts, binding_table=inputs.binding_table, samplers=inputs.samplers)


@cache
def _pointers(gen: float) -> tuple[tuple[int, int, str], ...]:
    """Pointers of r0: their dwords and bits, and the inputs that have them."""
    page, found = catalogue.layout("PS_THREAD_PAYLOAD", gen), list[tuple[int, int, str]]()
    for name, given in POINTERS.items():
        if _has_field("PS_THREAD_PAYLOAD", gen, name) and (low := page.field(name).low) < 32 * HEADER_DWORDS:
            found.append((low // 32, DWORD_MASK & -1 << low % 32, given))
    return tuple(found)


@lru_cache(512)
def _without_pointers(generation: Generation, inputs: PixelInputs, samples: int) -> PixelState:
    """The state with pointers of 0; `samples`: those of targets."""
    fields = Fields(inputs.windower, inputs.shader, inputs.extra)
    width, number = chosen_kernel(fields)
    kills = _kills(fields, inputs)
    computes = bool(fields.pixel_shader_computed_depth_mode or fields.pixel_shader_computes_stencil)
    dispatched = _dispatched(fields, inputs, kills or computes)
    _refuse(inputs, dispatched)
    if dispatched and not enabled_widths(fields):
        raise DecodeError("3DSTATE_PS: pixel shader threads are to be started, but no dispatch width is enabled")
    scratch = _scratch(generation, fields)
    parts = PayloadParts(
        HeaderFormat.BARYCENTRIC, width, getattr(fields, f"dispatch_grf_start_register_for_constant_setup_data_{number}"),
        _header(generation.number, inputs, scratch, fields, stencil_to_render_target=bool(fields.pixel_shader_computes_stencil),
                omask_to_render_target=fields.omask_present_to_render_target,
                source_depth_to_render_target=bool(fields.pixel_shader_computed_depth_mode))[:HEADER_DWORDS],
        barycentrics=tuple(bool(fields.barycentric_interpolation_mode >> mode & 1) for mode in range(MODES)),
        depth=bool(fields.pixel_shader_uses_source_depth), w=bool(fields.pixel_shader_uses_source_w),
        xy_offsets=bool(fields.position_xy_offset_select), coverage=fields.input_coverage_mask_state,
        zw_place=fields.position_zw_interpolation_mode, xy_place=fields.position_xy_offset_select,
        per_sample=_per_sample(generation, fields, samples), scratch_step=scratch.size if scratch is not None else 0,
    )  # fmt: skip
    late = dispatched and fields.early_depth_stencil_control != PRE_PS and bool(
        kills or computes or fields.early_depth_stencil_control == PS_EXECUTES)  # fmt: skip
    return PixelState(parts, getattr(fields, f"kernel_start_pointer_{number}"), _control(generation.number, fields), dispatched, late,
                      bool(fields.statistics_enable), bool(fields.push_constant_enable), bool(fields.attribute_enable), None, 0, 0, scratch,
                      bool(fields.pixel_shader_pulls_bary or not fields.has("pixel_shader_pulls_bary")),
                      state_register(generation.number, "PS"))  # fmt: skip


def _per_sample(generation: Generation, fields: Fields, samples: int) -> int:
    """Whether threads are of samples, and how they say which (enum sample_threads of pixels.h)."""
    if samples == 1:
        return OF_PIXELS
    each = not fields.multisample_dispatch_mode if fields.has("multisample_dispatch_mode") else fields.pixel_shader_is_per_sample
    return {"pair": SAMPLE_PAIRS, "slots": SAMPLE_SLOTS}[generation.sample_ids] if each else OF_PIXELS


def _refuse(inputs: PixelInputs, dispatched: bool) -> None:
    for record in (inputs.windower, inputs.shader, inputs.extra):
        if record is not None:
            rasterizer.refuse(type(record).__name__, record, (*NOT_BUILT, *(NOT_BUILT_OF_THREADS if dispatched else ())))


def chosen_kernel(fields: Fields) -> tuple[int, int]:
    """The width of threads, and the number of their kernel start pointer."""
    return KERNELS[enabled_widths(fields)]


def enabled_widths(fields: Fields) -> tuple[int, ...]:
    return tuple(width for width in WIDTHS if getattr(fields, f"{width}_pixel_dispatch_enable"))


def _kills(fields: Fields, inputs: PixelInputs) -> bool:
    """Whether a pixel may be removed after its early tests (BDW-PS-05, BDW-PS-07, BDW-PS-15)."""
    if fields.force_kill_pixel_enable == FORCE_OFF:
        return False
    after = Fields(inputs.blend, inputs.chroma_key)
    return bool(fields.force_kill_pixel_enable == FORCE_ON or fields.pixel_shader_kills_pixel or fields.omask_present_to_render_target
                or after.alpha_test_enable or after.alpha_to_coverage_enable or after.chromakey_kill_enable)  # fmt: skip


def _dispatched(fields: Fields, inputs: PixelInputs, decides_depth: bool) -> bool:
    """Whether threads are started: a bit says so, or it follows from what they could change (BDW-PS-02, BDW-PS-13, BDW-PS-14)."""
    if fields.has("thread_dispatch_enable"):
        return bool(fields.thread_dispatch_enable)
    if fields.force_thread_dispatch_enable != NORMAL:  # BDW-WM-13
        return fields.force_thread_dispatch_enable == FORCE_ON
    writes = Fields(inputs.blend).has_writeable_rt and not fields.pixel_shader_does_not_write_to_rt
    acts = decides_depth or fields.pixel_shader_has_uav or writes or fields.early_depth_stencil_control == PS_EXECUTES
    return bool(fields.pixel_shader_valid and acts)


def _header(gen: float, inputs: PixelInputs, scratch: Scratch | None, fields: Fields, **flags: int) -> tuple[int, ...]:
    """r0, on Gen4.5 also r1, without viewport, array index, facing and topology."""
    page = catalogue.layout("PS_THREAD_PAYLOAD", gen)
    pointers = {name: getattr(inputs, given) for name, given in POINTERS.items()}
    pointers["scratch_space_offset"] = scratch.base if scratch is not None else 0
    known = {field.name for field in page.fields}
    held = {name: pointer & 0xFFFFFFFF & -1 << page.field(name).low % 32 for name, pointer in pointers.items() if name in known}
    return tuple(page.pack(per_thread_scratch_space=size_code(scratch), **held, **flags))


def _scratch(generation: Generation, fields: Fields) -> Scratch | None:
    """Scratch space (BDW-PS-12); none where neither pointer nor size are set, as drivers leave it for kernels that need none."""
    base, code = fields.scratch_space_base_pointer, fields.per_thread_scratch_space
    if not base and not code:
        return None
    if fields.has("maximum_number_of_threads"):
        threads = fields.maximum_number_of_threads + 1
    else:
        threads = fields.maximum_number_of_threads_per_psd + generation.psd_thread_bias  # BDW-PS-09
    return Scratch(base, KIB << code, threads)


def _control(gen: float, fields: Fields) -> tuple[int, ...]:
    """cr0 of a thread that starts (BDW-PS-08)."""
    more = {enable: getattr(fields, name) for name, enable in EXCEPTIONS.items() if getattr(fields, name)}
    if fields.vector_mask_enable:
        more["vector_mask_enable"] = 1
    if fields.single_precision_denormal_mode and _has_field("EU_CONTROL_REGISTER", gen, "float_denormals"):
        more["float_denormals"] = 1
    return control_register(gen, bool(fields.single_program_flow), bool(fields.floating_point_mode), fields.rounding_mode, **more)


@cache
def _has_field(page: str, gen: float, name: str) -> bool:
    return any(field.name == name for field in catalogue.layout(page, gen).fields)


# -- unit state ----------------------------------------------------------------------------------------------------------------


class DepthOrder(NamedTuple):
    """When depth and stencil are tested and written, and what of them threads and messages carry."""

    late: bool  # written after the shader
    source_present: bool = False  # to the thread
    source_to_target: bool = False  # with its render-target write
    destination_depth: bool = False
    destination_stencil: bool = False


PROMOTED = DepthOrder(False)


def early_depth(stencil_test: bool, stencil_write: bool, test: bool, write: bool, computes: bool, kills: bool) -> DepthOrder:
    """With early_depth_test_enable (G45-WM-19, G45 6730-6790), condensed from its 48 rows."""
    if stencil_write:
        if not kills and not (computes and (test or write)):
            return PROMOTED
        return DepthOrder(True, kills and not computes and (test or write), test or write or computes, test, True)
    if computes and (test or write):
        return DepthOrder(True, False, True, test, stencil_test)
    if write and kills:
        return DepthOrder(True, True, True, False, stencil_test)
    return PROMOTED


def late_depth(stencil_test: bool, stencil_write: bool, test: bool, write: bool, computes: bool, kills: bool) -> DepthOrder:
    """Without early_depth_test_enable (G45-WM-20, G45 6793-6848)."""
    if not (stencil_test or test or write or computes):
        return PROMOTED
    return DepthOrder(True, (test or write) and not computes, test or write or computes, test, stencil_test)


def _early_depth(inputs: PixelInputs, fields: Fields) -> DepthOrder:
    buffer, tests = inputs.depth_buffer, Fields(inputs.blend)
    bound = buffer is not None and buffer.surface_type != NULL_SURFACE  # G45-WM-18
    stencil = bool(bound and tests.stencil_test_enable)
    kills, computes = bool(fields.pixel_shader_kills_pixel or tests.alpha_test_enable), bool(fields.pixel_shader_computed_depth)
    rule = early_depth if fields.early_depth_test_enable else late_depth
    found = rule(stencil, bool(stencil and tests.stencil_buffer_write_enable), bool(bound and tests.depth_test_enable),
                 bool(bound and tests.depth_buffer_write_enable), computes, kills)  # fmt: skip
    if not found.late and kills and fields.statistics_enable:  # counted after the shader (G45-WM-25)
        return found._replace(late=True, source_present=not computes, source_to_target=True)
    return found


def _of_unit(state: DrawState, inputs: PixelInputs) -> PixelState:
    fields = Fields(inputs.shader)
    dispatched = bool(fields.thread_dispatch_enable)
    _refuse(inputs, dispatched)
    width, number = chosen_kernel(fields)
    if dispatched and enabled_widths(fields) == (8, 32):
        raise DecodeError("WM_STATE: 8 and 32 pixel dispatch without 16 (G45-WM-30)")
    depth = _early_depth(inputs, fields)
    scratch = _scratch(state.generation, fields)
    source = bool(depth.source_present or fields.pixel_shader_uses_source_depth)  # G45-WM-24
    header = _header(state.gen, inputs, scratch, fields, source_depth_present=source,
                     source_depth_to_render_target=depth.source_to_target, destination_depth_present=depth.destination_depth,
                     destination_stencil_present=depth.destination_stencil)  # fmt: skip
    parts = PayloadParts(
        HeaderFormat.COEFFICIENTS, width, fields.dispatch_grf_start_register_for_constant_setup_data_0 * (2 if width == 32 else 1),
        header[:HEADER_DWORDS], header[FLAGS_DWORD], depth=source,
        held_stencil=depth.destination_stencil, held_depth=depth.destination_depth, antialias=rasterizer.is_antialiased(state),
        attribute_offset=32 * fields.setup_urb_entry_read_offset, scratch_step=scratch.size if scratch is not None else 0,
    )  # fmt: skip
    if dispatched:
        check_registers(state, "WM", fields.grf_register_count_0,
                        parts.start + fields.constant_urb_entry_read_length + fields.setup_urb_entry_read_length)  # fmt: skip
    return PixelState(parts, fields.kernel_start_pointer_0 + ENTRY * number, _control(state.gen, fields), dispatched,
                      dispatched and depth.late, bool(fields.statistics_enable), bool(fields.constant_urb_entry_read_length), True,
                      32 * fields.setup_urb_entry_read_length, inputs.binding_table, inputs.samplers, scratch)  # fmt: skip
