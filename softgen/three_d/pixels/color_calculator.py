"""Colour calculator: what a draw's state says about blending, depth and stencil, as the pixel backend takes it.

In:  latched commands, and the structures they point at; on Gen4.5 COLOR_CALC_STATE has all of it.
Out: BackendState (the state of the unit "pixel backend"), and the tests that run before the pixel shader.

Reads   3DSTATE_BLEND_STATE_POINTERS BLEND_STATE BLEND_STATE_ENTRY 3DSTATE_CC_STATE_POINTERS COLOR_CALC_STATE 3DSTATE_CONSTANT_COLOR
        3DSTATE_DEPTH_STENCIL_STATE_POINTERS DEPTH_STENCIL_STATE 3DSTATE_WM_DEPTH_STENCIL 3DSTATE_VIEWPORT_STATE_POINTERS_CC CC_VIEWPORT
        3DSTATE_PIPELINED_POINTERS WM_STATE 3DSTATE_WM 3DSTATE_PS 3DSTATE_PS_EXTRA 3DSTATE_CLIP 3DSTATE_RASTER 3DSTATE_SF
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.record import Record, to_float
from softgen.shared_functions.pixel_backend import (
    BackendState,
    BlendEquation,
    DepthState,
    DepthTarget,
    StencilFace,
    StencilNumbers,
    TargetState,
)
from softgen.three_d.pixels import depth_buffer
from softgen.three_d.pixels.rasterizer import is_antialiased
from softgen.three_d.samples.sample_plan import stored_samples
from softgen.three_d.state.state import DrawState

ENTRY = "BLEND_STATE_ENTRY"
COLORS = ("red", "green", "blue", "alpha")
SIDES = ("", "backface_")
TEST_ENABLES = ("depth_test_enable", "depth_buffer_write_enable", "stencil_test_enable")


@dataclass(frozen=True)
class ColorCalculator:
    """State of the pixel backend for a draw."""

    backend: BackendState
    early: DepthTarget | None  # tests before the pixel shader; None: all pixels pass

    @property
    def late(self) -> bool:
        """Whether depth and stencil are tested in the render target write, which then sets PixelDispatch.passed."""
        return self.backend.late is not None


@dataclass(frozen=True)
class PixelOutputs:
    """What a pixel shader may do to its pixels besides colours."""

    kills: bool = False
    depth: bool = False
    stencil: bool = False
    omask: bool = False
    before: bool = False  # tests run before the shader whatever it does (BDW 13453-13485)
    always: bool = False  # the shader runs for pixels that fail tests too: they come after it (BDW 13461-13467)

    @property
    def parts(self) -> frozenset[str]:
        """Parts of render target writes without a header."""
        found = {"source_depth": self.depth, "stencil": self.stencil, "omask": self.omask}
        return frozenset(part for part, there in found.items() if there)


class _Page:
    """A record with the names of its values."""

    def __init__(self, name: str, gen: float, record: Record) -> None:
        self.layout, self.record = catalogue.layout(name, gen), record

    def word(self, field: str) -> str:
        return value_name(self.layout, self.record, field)

    def on(self, field: str) -> bool:
        return bool(getattr(self.record, field)) if field in self.record._fields else False

    def number(self, field: str) -> int:
        return int(getattr(self.record, field))


def color_calculator(state: DrawState, shaded: bool = True) -> ColorCalculator:
    """The state of the pixel backend for a draw, with pixel shader threads or without."""
    return _shaded(state) if shaded else _unshaded(state)


def _unshaded(state: DrawState) -> ColorCalculator:
    """Without threads, pixels are tested and no target is written: what is said about targets is not looked at. Drivers leave the
    pointers of an earlier batch then, to blocks that are no more."""
    tests = depth_target(state)
    return ColorCalculator(BackendState(), None if tests.state.idle else tests)


def _shaded(state: DrawState) -> ColorCalculator:
    calc, outputs = _color_calc(state), pixel_outputs(state)
    first, more = _targets(state, calc)
    tests = depth_target(state)
    alpha_tested = first.alpha_test != "always" or first.alpha_to_coverage
    late = not outputs.before and (outputs.kills or outputs.depth or outputs.stencil or outputs.omask or outputs.always or alpha_tested)
    backend = BackendState((first,), more, _constant(state, calc), _alpha_reference(calc), tests if late else None, outputs.parts)
    return ColorCalculator(backend, None if late or tests.state.idle else tests)


def _color_calc(state: DrawState) -> _Page:
    if state.generation.unit_state:
        address = state.address("general", state.command("3DSTATE_PIPELINED_POINTERS").pointer_to_color_calc_state)
        return _Page("COLOR_CALC_STATE", state.gen, state.structure("COLOR_CALC_STATE", address))
    name = "3DSTATE_CC_STATE_POINTERS"
    address = state.block_address(state.command(name).color_calc_state_pointer)
    return _Page("COLOR_CALC_STATE", state.gen, state.structure("COLOR_CALC_STATE", address, name))


def pixel_outputs(state: DrawState) -> PixelOutputs:
    """What the pixel shader does to its pixels, by WM_STATE, 3DSTATE_WM and 3DSTATE_PS, or 3DSTATE_PS_EXTRA."""
    if state.generation.unit_state:
        pointer = state.address("general", state.command("3DSTATE_PIPELINED_POINTERS").pointer_to_wm_state)
        unit = state.structure("WM_STATE", pointer)
        if not unit.thread_dispatch_enable:
            return PixelOutputs()
        return PixelOutputs(bool(unit.pixel_shader_kills_pixel), bool(unit.pixel_shader_computed_depth))
    wm = _Page("3DSTATE_WM", state.gen, state.command("3DSTATE_WM"))
    before, always = (wm.word("early_depth_stencil_control") == word for word in ("preps", "psexec"))
    extra = state.get("3DSTATE_PS_EXTRA")
    if "pixel_shader_kills_pixel" in wm.record._fields:
        shader = _Page("3DSTATE_PS", state.gen, state.command("3DSTATE_PS"))
        if not wm.on("thread_dispatch_enable"):
            return PixelOutputs()
        return PixelOutputs(wm.on("pixel_shader_kills_pixel"), wm.on("pixel_shader_computed_depth_mode"), False,
                            shader.on("omask_present_to_render_target"), before, always)  # fmt: skip
    if extra is None or not extra.pixel_shader_valid:
        return PixelOutputs()
    shader, forced = _Page("3DSTATE_PS_EXTRA", state.gen, extra), wm.word("force_kill_pixel_enable")
    keyed = state.get("3DSTATE_WM_CHROMAKEY")
    may_kill = shader.on("pixel_shader_kills_pixel") or keyed is not None and bool(keyed.chromakey_kill_enable)
    kills = forced == "force_on" or forced == "normal" and may_kill
    return PixelOutputs(kills, shader.on("pixel_shader_computed_depth_mode"), shader.on("pixel_shader_computes_stencil"),
                        shader.on("omask_present_to_render_target"), before, always)  # fmt: skip


# -- blending --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PixelTraits:
    """What blend states do not say of a draw's pixels."""

    antialiased: bool = False
    samples: int = 1
    alpha_covers: bool = True  # alpha to coverage may be enabled: the shader does not disable it (BDW 7766-7773)


def pixel_traits(state: DrawState) -> PixelTraits:
    disables = getattr(state.get("3DSTATE_PS_EXTRA"), "pixel_shader_disables_alpha_to_coverage", 0)
    return PixelTraits(is_antialiased(state), stored_samples(state), not disables)


@dataclass(frozen=True)
class BlendEntries:
    """The entries of a BLEND_STATE: read from memory when a message names their target (state.MoreTargets)."""

    gen: float
    address: int  # of the first entry
    common: Record | None  # what BLEND_STATE says for all targets, from Gen8 on
    alpha_format: str
    pixels: PixelTraits

    def place(self, index: int) -> tuple[int, int]:
        """Address and size of an entry."""
        size = 4 * catalogue.layout(ENTRY, self.gen).dwords
        return self.address + size * index, size

    def parse(self, data: bytes) -> TargetState:
        return _parsed(data, self.gen, self.common, self.alpha_format, self.pixels)


@lru_cache(512)
def _parsed(data: bytes, gen: float, common: Record | None, alpha_format: str, pixels: PixelTraits) -> TargetState:
    """An entry of the blend state."""
    entry = _Page(ENTRY, gen, catalogue.layout(ENTRY, gen).raw(array("I", data)))
    return target_state(entry, entry if common is None else _Page("BLEND_STATE", gen, common), alpha_format, pixels)


def _targets(state: DrawState, calc: _Page) -> tuple[TargetState, BlendEntries | None]:
    """The state of the first target; and where the others' is."""
    if state.generation.unit_state:  # one for all, less what surface states say (pixel_backend/surface.py)
        return target_state(calc, calc, calc.word("alpha_test_format"), pixel_traits(state)), None
    name = "3DSTATE_BLEND_STATE_POINTERS"
    pointers = state.get(name)
    if pointers is None:  # not set since the context was made: Mesa's first clear of a depth buffer, which has no render target
        return TargetState(samples=stored_samples(state)), None
    page = catalogue.layout("BLEND_STATE", state.gen)
    address = state.block_address(pointers.blend_state_pointer)
    group = next(group for group in page.groups if group.name == "render_target")
    space, wrap = state.block_space(name), (1 << state.space.bits) - 1
    common = page.raw(array("I", space.read(address, group.start // 8))) if group.start else None  # without entries
    entries = BlendEntries(state.gen, address + group.start // 8 & wrap, common, calc.word("alpha_test_format"), pixel_traits(state))
    return entries.parse(space.read(*entries.place(0))), entries


def target_state(entry: _Page, common: _Page, alpha_format: str, pixels: PixelTraits) -> TargetState:
    """The state of a target: from its entry, and what is common to all of them."""
    color = alpha = None
    if entry.on("color_buffer_blend_enable"):
        color = _equation(entry, "color_blend_function", "source_blend_factor", "destination_blend_factor")
    if color is not None and common.on("independent_alpha_blend_enable"):
        alpha = _equation(entry, "alpha_blend_function", "source_alpha_blend_factor", "destination_alpha_blend_factor")
    return TargetState(
        color=color,
        alpha=alpha if alpha != color else None,
        logic_op=entry.number("logic_op_function") if entry.on("logic_op_enable") else None,
        write_disable="".join(name[0] for name in COLORS if entry.on(f"write_disable_{name}")),
        clamp_range=entry.word("color_clamp_range"),
        pre_clamp=_pre_clamp(entry),
        post_clamp=entry.on("post_blend_color_clamp_enable"),
        alpha_test=common.word("alpha_test_function") if common.on("alpha_test_enable") else "always",
        alpha_test_unorm8=alpha_format == "unorm8",
        alpha_to_coverage=common.on("alpha_to_coverage_enable") and pixels.alpha_covers,
        alpha_to_one=common.on("alpha_to_one_enable"),
        antialiased=pixels.antialiased,
        samples=pixels.samples,
        dither=(common.number("x_dither_offset"), common.number("y_dither_offset")) if common.on("color_dither_enable") else None,
    )  # fmt: skip


def _pre_clamp(entry: _Page) -> str:
    if entry.on("pre_blend_color_clamp_enable"):
        return "all"
    return "sources" if entry.on("pre_blend_source_only_clamp_enable") else ""


def _equation(entry: _Page, function: str, source: str, destination: str) -> BlendEquation:
    """Reserved values keep the names that `value_name` gives them: the write that blends refuses them."""
    return BlendEquation(entry.word(function), entry.word(source), entry.word(destination))


def _constant(state: DrawState, calc: _Page) -> tuple[float, float, float, float]:
    record: Record | None = calc.record
    if "blend_constant_color_red" not in calc.record._fields:
        record = state.get("3DSTATE_CONSTANT_COLOR")
    red, green, blue, alpha = (to_float(getattr(record, f"blend_constant_color_{name}")) if record else 0.0 for name in COLORS)
    return red, green, blue, alpha


def _alpha_reference(calc: _Page) -> float:
    if calc.word("alpha_test_format") == "unorm8":
        return (calc.number("alpha_reference_value_as_unorm8") & 0xFF) / 255
    return to_float(calc.number("alpha_reference_value_as_float32"))


# -- depth and stencil -----------------------------------------------------------------------------------------------


def depth_target(state: DrawState) -> DepthTarget:
    """Depth and stencil tests of a draw, and their buffers. What is said about a test that is off, or about buffers that no test uses, is
    not looked at."""
    tests = _tests(state) if depth_buffer.is_there(state) else None
    if tests is None or not any(tests.on(enable) for enable in TEST_ENABLES):
        return DepthTarget()
    buffers = depth_buffer.depth_buffers(state)
    testing = tests.on("stencil_test_enable") and buffers.has_stencil
    held = HeldBuffers(buffers.format, buffers.tiling, buffers.depth_write, buffers.stencil_write, buffers.separate_stencil,
                       buffers.has_stencil)  # fmt: skip
    made = _depth_state(tests.layout.name, state.gen, tests.record, held, stored_samples(state))
    numbers = _numbers(state, tests) if testing else (StencilNumbers(), StencilNumbers())
    return DepthTarget(made, buffers.depth, buffers.stencil, numbers, _ranges(state))


class HeldBuffers(NamedTuple):
    """What tests depend on of depth and stencil buffers."""

    format: str
    tiling: str
    depth_write: bool
    stencil_write: bool
    separate_stencil: bool
    has_stencil: bool


@lru_cache(512)
def _depth_state(page: str, gen: float, record: Record, buffers: HeldBuffers, samples: int) -> DepthState:
    """Tests by the record that has them."""
    tests = _Page(page, gen, record)
    testing = tests.on("stencil_test_enable") and buffers.has_stencil
    return DepthState(
        format=buffers.format,
        tiling=buffers.tiling,
        test=tests.word("depth_test_function") if tests.on("depth_test_enable") and buffers.format else None,
        write=tests.on("depth_buffer_write_enable") and buffers.depth_write and bool(buffers.format),
        faces=_faces(tests) if testing else None,
        stencil_write=testing and tests.on("stencil_buffer_write_enable") and buffers.stencil_write,
        separate_stencil=buffers.separate_stencil,
        samples=samples,
    )


def _tests(state: DrawState) -> _Page:
    if state.generation.unit_state:
        return _color_calc(state)
    if catalogue.catalogue().get("3DSTATE_WM_DEPTH_STENCIL", state.gen) is not None:
        return _Page("3DSTATE_WM_DEPTH_STENCIL", state.gen, state.command("3DSTATE_WM_DEPTH_STENCIL"))
    name = "3DSTATE_DEPTH_STENCIL_STATE_POINTERS"
    address = state.block_address(state.command(name).depth_stencil_state_pointer)
    return _Page("DEPTH_STENCIL_STATE", state.gen, state.structure("DEPTH_STENCIL_STATE", address, name))


def _sides(tests: _Page) -> tuple[str, str]:
    """Prefixes of the fields of front and back faces."""
    return (SIDES[0], SIDES[1]) if tests.on("double_sided_stencil_enable") else (SIDES[0], SIDES[0])


def _faces(tests: _Page) -> tuple[StencilFace, StencilFace]:
    front, back = (StencilFace(tests.word(f"{side}stencil_test_function"), tests.word(f"{side}stencil_fail_op"),
                               tests.word(f"{side}stencil_pass_depth_fail_op"), tests.word(f"{side}stencil_pass_depth_pass_op"))
                   for side in _sides(tests))  # fmt: skip
    return front, back


def _numbers(state: DrawState, tests: _Page) -> tuple[StencilNumbers, StencilNumbers]:
    """References are in COLOR_CALC_STATE until Gen8."""
    where = tests if "stencil_reference_value" in tests.record._fields else _color_calc(state)
    front, back = (StencilNumbers(where.number(f"{side}stencil_reference_value"), tests.number(f"{side}stencil_test_mask"),
                                  tests.number(f"{side}stencil_write_mask")) for side in _sides(tests))  # fmt: skip
    return front, back


def _ranges(state: DrawState) -> tuple[tuple[float, float], ...]:
    """The depth ranges of the viewports that CLIP lets through."""
    if state.generation.unit_state:
        address, name = state.address("general", _color_calc(state).record.cc_viewport_pointer), ""
    else:
        name = "3DSTATE_VIEWPORT_STATE_POINTERS_CC"
        address = state.block_address(state.command(name).cc_viewport_pointer)
    clip, size = state.get("3DSTATE_CLIP"), 4 * catalogue.layout("CC_VIEWPORT", state.gen).dwords
    count = int(clip.maximum_vp_index) + 1 if clip is not None else 1
    viewports = [state.structure("CC_VIEWPORT", address + size * number, name) for number in range(count)]
    return tuple((to_float(viewport.minimum_depth), to_float(viewport.maximum_depth)) for viewport in viewports)
