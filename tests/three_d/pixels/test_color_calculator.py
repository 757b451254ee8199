"""The colour calculator's state: what each generation's commands and structures say, as the pixel backend takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits import catalogue
from softgen.bits.generation import generation
from softgen.errors import DecodeError, GpuFault, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions.pixel_backend import BackendState, BlendEquation, StencilFace, StencilNumbers, TargetState
from softgen.three_d.pixels.color_calculator import ColorCalculator, color_calculator
from softgen.three_d.pixels.depth_buffer import depth_buffers
from softgen.three_d.state.plan_cache import PlanCache
from softgen.three_d.state.state import DrawState
from tests.three_d.made import MadeCommands, no_registers

GENERATIONS = [4.5, 7, 7.5, 8, 9, 11]
LATER = [7, 7.5, 8, 9, 11]
BASE, PAGE = 0x40000, 0x1000
CC, BLEND, VIEWPORT, DEPTH_STENCIL, WM = 0x100, 0x200, 0x300, 0x400, 0x500  # offsets of structures
DEPTH, STENCIL = 0x100000, 0x200000
FACTORS = {"one": 1, "src_alpha": 3, "const_color": 7, "zero": 17, "inv_src_alpha": 19}
COMPARES = {"always": 0, "less": 2, "lequal": 4, "greater": 5}
FORMATS = {"d32_float": 1, "d24_unorm_s8_uint": 2, "d24_unorm_x8_uint": 3, "d16_unorm": 5}


class Draw:
    """A draw's state, put together from pages; `tests`, `blend`, `calc` and `shader` are fields by the names that the pages share."""

    def __init__(self, gen: float, tests: Any = None, blend: Any = None, calc: Any = None, shader: Any = None, common: Any = None,
                 depth: Any = None, stencil: Any = None) -> None:  # fmt: skip
        self.gen, self.latched = gen, MadeCommands()
        self.memory = MemfdBuffer(PAGE, "state")
        self.space = AddressSpace("draw", 48 if gen >= 8 else 32)
        self.space.map(BASE, self.memory)
        tests, blend, calc, shader, common = (given or {} for given in (tests, blend, calc, shader, common))
        self.put("CC_VIEWPORT", VIEWPORT, minimum_depth=0.25, maximum_depth=0.75)
        if gen == 4.5:
            self.put("COLOR_CALC_STATE", CC, cc_viewport_pointer=VIEWPORT, **tests, **blend, **calc, **common)
            self.put("WM_STATE", WM, **{"thread_dispatch_enable": 1, **shader})
            self.latch("3DSTATE_PIPELINED_POINTERS", pointer_to_color_calc_state=CC, pointer_to_wm_state=WM)
        else:
            self.late_state(tests, blend, calc, shader, common)
        if depth is not None:
            self.latch("3DSTATE_DEPTH_BUFFER", **{"surface_type": 1, "surface_base_address": DEPTH, "width": 63, "height": 31,
                                                  "surface_pitch": 255, **depth})  # fmt: skip
        if stencil is not None:
            enable = {"stencil_buffer_enable": 1} if gen > 7 else {}
            self.latch("3DSTATE_STENCIL_BUFFER", **{"surface_base_address": STENCIL, "surface_pitch": 127, **enable, **stencil})

    def late_state(self, tests: Any, blend: Any, calc: Any, shader: Any, common: Any) -> None:
        gen, references = self.gen, {key: value for key, value in tests.items() if "reference" in key}
        tests = {key: value for key, value in tests.items() if key not in references or gen >= 9}
        self.put("COLOR_CALC_STATE", CC, **calc, **(references if gen < 9 else {}))
        self.latch("3DSTATE_CC_STATE_POINTERS", color_calc_state_pointer=CC, color_calc_state_pointer_valid=1)
        self.latch("3DSTATE_BLEND_STATE_POINTERS", blend_state_pointer=BLEND, blend_state_pointer_valid=1)
        self.latch("3DSTATE_VIEWPORT_STATE_POINTERS_CC", cc_viewport_pointer=VIEWPORT)
        if gen >= 8:
            head = catalogue.layout("BLEND_STATE", gen).pack(**common)[:1]
            self.words(BLEND, [*head, *catalogue.layout("BLEND_STATE_ENTRY", gen).pack(**blend)])
            self.latch("3DSTATE_WM_DEPTH_STENCIL", **tests)
            windower = ("early_depth_stencil_control", "force_kill_pixel_enable")
            self.latch("3DSTATE_WM", **{key: value for key, value in shader.items() if key in windower})
            given = {key: value for key, value in shader.items() if key not in windower}
            self.latch("3DSTATE_PS_EXTRA", **{"pixel_shader_valid": 1, **given})
            return
        self.words(BLEND, catalogue.layout("BLEND_STATE_ENTRY", gen).pack(**blend, **common))
        self.put("DEPTH_STENCIL_STATE", DEPTH_STENCIL, **tests)
        self.latch("3DSTATE_DEPTH_STENCIL_STATE_POINTERS", depth_stencil_state_pointer=DEPTH_STENCIL, depth_stencil_state_pointer_valid=1)
        outputs = {key: value for key, value in shader.items() if key == "omask_present_to_render_target"}
        self.latch("3DSTATE_PS", **outputs)
        given = {key: value for key, value in shader.items() if key not in outputs}
        self.latch("3DSTATE_WM", **{"thread_dispatch_enable": 1, **given})

    def put(self, name: str, at: int, **fields: Any) -> None:
        self.words(at, catalogue.layout(name, self.gen).pack(**fields))

    def words(self, at: int, words: list[int]) -> None:
        self.memory.array[at : at + 4 * len(words)] = np.array(words, np.uint32).view(np.uint8)

    def latch(self, name: str, **fields: Any) -> None:
        page = catalogue.layout(name, self.gen)
        self.latched[name] = page.raw(page.pack(**fields))

    @property
    def state(self) -> DrawState:
        return DrawState(generation(self.gen), self.space, self.latched, {"dynamic": BASE, "general": BASE}, no_registers)

    def made(self) -> ColorCalculator:
        return color_calculator(self.state)


BLENDING = {"color_buffer_blend_enable": 1, "color_blend_function": 1, "source_blend_factor": FACTORS["src_alpha"],
            "destination_blend_factor": FACTORS["inv_src_alpha"], "alpha_blend_function": 4, "source_alpha_blend_factor": FACTORS["one"],
            "destination_alpha_blend_factor": FACTORS["zero"]}  # fmt: skip


@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("independent", [0, 1])
def test_blending(gen: float, independent: int) -> None:
    own = {"independent_alpha_blend_enable": independent}
    draw = Draw(gen, blend={**BLENDING, "color_clamp_range": 2, "pre_blend_color_clamp_enable": 1, "post_blend_color_clamp_enable": 1},
                common=own)  # fmt: skip
    target = draw.made().backend.targets[0]
    assert target.color == BlendEquation("subtract", "src_alpha", "inv_src_alpha")
    assert target.alpha == (BlendEquation("max", "one", "zero") if independent else None)
    assert (target.clamp_range, target.pre_clamp, target.post_clamp) == ("rtformat", "all", True)


@pytest.mark.parametrize("gen", LATER)
def test_what_else_a_target_has(gen: float) -> None:
    draw = Draw(gen, blend={"write_disable_red": 1, "write_disable_alpha": 1, "logic_op_enable": 1, "logic_op_function": 6},
                common={"color_dither_enable": 1, "x_dither_offset": 1, "y_dither_offset": 3, "alpha_to_one_enable": 1})  # fmt: skip
    wanted = TargetState(logic_op=6, write_disable="ra", clamp_range="unorm", alpha_test_unorm8=True, alpha_to_one=True, dither=(1, 3))
    assert draw.made().backend.targets == (wanted,)


@pytest.mark.parametrize("gen", LATER)
def test_draws_may_have_no_blend_state(gen: float) -> None:
    """Drivers clear stencil so: nothing is blended, and other targets than the first have no state."""
    draw = Draw(gen)
    del draw.latched["3DSTATE_BLEND_STATE_POINTERS"]
    backend = draw.made().backend
    assert backend.targets == (TargetState(),) and backend.more is None


@pytest.mark.parametrize("gen", GENERATIONS)
def test_reserved_values_are_left_to_the_write_that_blends(gen: float) -> None:
    blend = {"color_buffer_blend_enable": 1, "color_blend_function": 7, "alpha_blend_function": 5, "destination_alpha_blend_factor": 31}
    target = Draw(gen, blend=blend, common={"independent_alpha_blend_enable": 1}).made().backend.targets[0]
    assert (target.color, target.alpha) == (BlendEquation("value 7", "value 0", "value 0"), BlendEquation("value 5", "value 0", "value 31"))


@pytest.mark.behaviour("ICL-TH-01", shows="action")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_blend_state_is_not_read_without_pixel_shader_threads(gen: float) -> None:
    """Drivers clear depth and stencil so; the pointer of an earlier batch then leads to what is no blend state, or nowhere."""
    draw = Draw(gen, tests=TESTS, blend={"color_buffer_blend_enable": 1, "color_blend_function": 7}, **buffers(gen))
    shaded = draw.made()
    if gen >= 7:
        draw.latch("3DSTATE_BLEND_STATE_POINTERS", blend_state_pointer=16 * PAGE, blend_state_pointer_valid=1)
        with pytest.raises(GpuFault):
            draw.made()
    found = color_calculator(draw.state, shaded=False)
    assert found.early == shaded.early is not None and found.backend == BackendState() and not found.late


@pytest.mark.parametrize("gen", LATER)
def test_other_targets_are_read_when_they_are_named(gen: float) -> None:
    draw = Draw(gen)
    entry = catalogue.layout("BLEND_STATE_ENTRY", gen)
    draw.words(BLEND + (4 if gen >= 8 else 0) + 8 * 3, entry.pack(write_disable_green=1))
    more = draw.made().backend.more
    assert more is not None
    address, size = more.place(3)
    assert more.parse(draw.space.read(address, size)).write_disable == "g"
    assert hash(more) == hash(draw.made().backend.more) and more == draw.made().backend.more


@pytest.mark.behaviour("G45-CC-28", shows="layout")
@pytest.mark.parametrize("gen", GENERATIONS)
def test_constant_colour_and_alpha_reference(gen: float) -> None:
    constant = zip(("red", "green", "blue", "alpha"), (0.5, 0.25, -1.0, 2.0), strict=True)
    colors = {f"blend_constant_color_{name}": value for name, value in constant}
    common = {"alpha_test_enable": 1, "alpha_test_function": COMPARES["greater"]}
    if gen == 4.5:
        draw = Draw(gen, calc={"alpha_test_format": 1, "alpha_reference_value_as_float32": 0.75}, common=common)
        draw.latch("3DSTATE_CONSTANT_COLOR", **colors)
    else:
        draw = Draw(gen, calc={"alpha_test_format": 1, "alpha_reference_value_as_float32": 0.75, **colors}, common=common)
    made = draw.made()
    assert made.backend.constant == (0.5, 0.25, -1.0, 2.0) and made.backend.alpha_reference == 0.75
    assert made.backend.targets[0].alpha_test == "greater" and not made.backend.targets[0].alpha_test_unorm8
    assert made.late, "the alpha test comes before depth and stencil"
    other = Draw(gen, calc={"alpha_test_format": 0, "alpha_reference_value_as_unorm8": 51}, common=common).made().backend
    assert other.alpha_reference == 0.2 and other.targets[0].alpha_test_unorm8


def test_the_constant_colour_is_black_until_a_command_sets_it() -> None:
    assert Draw(4.5).made().backend.constant == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize(("given", "clamp"), [((0, 0), ""), ((0, 1), "sources"), ((1, 0), "all"), ((1, 1), "all")])
def test_what_is_clamped_before_blending(gen: float, given: tuple[int, int], clamp: str) -> None:
    names = ["pre_blend_color_clamp_enable", *(["pre_blend_source_only_clamp_enable"] if gen >= 8 else [])]
    made = Draw(gen, blend=dict(zip(names, given, strict=False))).made().backend.targets[0]
    assert (made.pre_clamp, made.post_clamp) == ("" if gen < 8 and not given[0] else clamp, False)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_alpha_that_is_blended_as_colours_are_has_no_equation_of_its_own(gen: float) -> None:
    same = {"alpha_blend_function": 1, "source_alpha_blend_factor": FACTORS["src_alpha"],
            "destination_alpha_blend_factor": FACTORS["inv_src_alpha"]}  # fmt: skip
    made = Draw(gen, blend={**BLENDING, **same}, common={"independent_alpha_blend_enable": 1}).made().backend.targets[0]
    assert made.color == BlendEquation("subtract", "src_alpha", "inv_src_alpha") and made.alpha is None
    off = {**BLENDING, "color_buffer_blend_enable": 0}
    made = Draw(gen, blend=off, common={"independent_alpha_blend_enable": 1}).made().backend.targets[0]
    assert made.color is made.alpha is None


TESTS = {"depth_test_enable": 1, "depth_test_function": COMPARES["lequal"], "depth_buffer_write_enable": 1, "stencil_test_enable": 1,
         "stencil_buffer_write_enable": 1, "stencil_test_function": COMPARES["less"], "stencil_fail_op": 1, "stencil_pass_depth_fail_op": 2,
         "stencil_pass_depth_pass_op": 3, "stencil_test_mask": 0x0F, "stencil_write_mask": 0xF0, "stencil_reference_value": 0x12,
         "backface_stencil_test_function": COMPARES["greater"], "backface_stencil_fail_op": 4, "backface_stencil_pass_depth_fail_op": 5,
         "backface_stencil_pass_depth_pass_op": 6, "backface_stencil_test_mask": 0x33, "backface_stencil_write_mask": 0xCC,
         "backface_stencil_reference_value": 0x34}  # fmt: skip


def buffers(gen: float) -> dict[str, Any]:
    if gen == 4.5:
        return {"depth": {"surface_format": FORMATS["d24_unorm_s8_uint"], "tiled_surface": 1, "tile_walk": 1}}
    return {"depth": {"surface_format": FORMATS["d24_unorm_x8_uint"], "depth_write_enable": 1, "stencil_write_enable": 1}, "stencil": {}}


@pytest.mark.behaviour("BDW-Z-06", shows="layout")
@pytest.mark.parametrize("gen", GENERATIONS)
@pytest.mark.parametrize("double_sided", [0, 1])
def test_depth_and_stencil(gen: float, double_sided: int) -> None:
    made = Draw(gen, tests={**TESTS, "double_sided_stencil_enable": double_sided}, **buffers(gen)).made()
    assert made.early is not None and not made.late
    state = made.early.state
    front, back = StencilFace("less", "zero", "replace", "incrsat"), StencilFace("greater", "decrsat", "incr", "decr")
    assert state.faces == (front, back if double_sided else front)
    numbers = StencilNumbers(0x12, 0x0F, 0xF0), StencilNumbers(0x34, 0x33, 0xCC)
    assert made.early.faces == (numbers[0], numbers[1] if double_sided else numbers[0])
    assert (state.test, state.write, state.stencil_write, state.separate_stencil) == ("lequal", True, True, gen > 4.5)
    assert (state.format, state.tiling) == ("d24_unorm_s8_uint" if gen == 4.5 else "d24_unorm_x8_uint", "y_major")
    assert made.early.ranges == ((0.25, 0.75),)
    assert (made.early.depth.base, made.early.depth.width, made.early.depth.height, made.early.depth.pitch) == (DEPTH, 64, 32, 256)
    if gen > 4.5:
        assert (made.early.stencil.base, made.early.stencil.pitch) == (STENCIL, 128)


@pytest.mark.parametrize("gen", LATER)
@pytest.mark.parametrize("last", [0, 1, 15])
def test_each_viewport_has_a_depth_range(gen: float, last: int) -> None:
    """Of those that CLIP lets through; before it says how many, the first has."""
    draw = Draw(gen, tests=TESTS, **buffers(gen))
    for number in range(17):
        draw.put("CC_VIEWPORT", VIEWPORT + 8 * number, minimum_depth=number / 64, maximum_depth=1 - number / 64)
    first = draw.made().early
    draw.latch("3DSTATE_CLIP", maximum_vp_index=last)
    found = draw.made().early
    assert first is not None and first.ranges == ((0.0, 1.0),)
    assert found is not None and found.ranges == tuple((number / 64, 1 - number / 64) for number in range(last + 1))


@pytest.mark.behaviour("BDW-Z-02", shows="action")
@pytest.mark.parametrize("gen", LATER)
def test_writes_need_the_buffers_enable_as_well(gen: float) -> None:
    depth = {"surface_format": FORMATS["d32_float"], "depth_write_enable": 0, "stencil_write_enable": 0}
    made = Draw(gen, tests=TESTS, depth=depth, stencil={}).made()
    assert made.early is not None and not made.early.state.write and not made.early.state.stencil_write


@pytest.mark.parametrize("gen", GENERATIONS)
def test_without_buffers_all_pixels_pass(gen: float) -> None:
    assert Draw(gen, tests=TESTS).made().early is None
    assert Draw(gen, tests=TESTS, depth={"surface_type": 7}).made().early is None


@pytest.mark.parametrize("gen", [7.5, 8, 9, 11])
def test_stencil_may_be_disabled(gen: float) -> None:
    made = Draw(gen, tests=TESTS, depth={"surface_format": 1, "depth_write_enable": 1}, stencil={"stencil_buffer_enable": 0}).made()
    assert made.early is not None and made.early.state.faces is None and made.early.state.write


OUTPUTS = {"kills": {"pixel_shader_kills_pixel": 1}, "depth": {"pixel_shader_computed_depth_mode": 1},
           "omask": {"omask_present_to_render_target": 1}}  # fmt: skip


@pytest.mark.behaviour("BDW-PS-06", shows="action")
@pytest.mark.parametrize("gen", LATER)
@pytest.mark.parametrize("mode", range(4))
def test_a_depth_that_the_shader_computes_is_tested_late(gen: float, mode: int) -> None:
    """Off, any depth, or one that is at least or at most the pixel's: the write has the depth (BDW 7687-7713)."""
    made = Draw(gen, tests=TESTS, shader={"pixel_shader_computed_depth_mode": mode}, **buffers(gen)).made()
    assert made.late == bool(mode) and made.backend.parts == ({"source_depth"} if mode else frozenset())


@pytest.mark.behaviour("BDW-PS-05", "BDW-PS-07", shows="action")
@pytest.mark.parametrize("gen", LATER)
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_shader_that_changes_its_pixels_is_tested_late(gen: float, output: str) -> None:
    made = Draw(gen, tests=TESTS, shader=OUTPUTS[output], **buffers(gen)).made()
    assert made.late and made.early is None and made.backend.late is not None and made.backend.late.state.test == "lequal"
    assert made.backend.parts == {"kills": frozenset(), "depth": {"source_depth"}, "omask": {"omask"}}[output]
    forced = Draw(gen, tests=TESTS, shader={**OUTPUTS[output], "early_depth_stencil_control": 2}, **buffers(gen)).made()
    assert not forced.late and forced.early is not None


@pytest.mark.behaviour("BDW-Z-09", shows="action")
@pytest.mark.parametrize("gen", LATER)
def test_a_shader_that_always_runs_is_tested_late(gen: float) -> None:
    """PSEXEC: pixels that fail their tests are shaded too, for what the shader writes elsewhere (BDW 13461-13467)."""
    made = Draw(gen, tests=TESTS, shader={"early_depth_stencil_control": 1}, **buffers(gen)).made()
    assert made.late and made.early is None and not Draw(gen, tests=TESTS, **buffers(gen)).made().late


@pytest.mark.behaviour("BDW-PS-15", "BDW-WM-13", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("gen", [8, 9, 11])
@pytest.mark.parametrize(("forced", "kills", "keyed", "late"), [
    (0, 0, None, False), (0, 1, None, True), (0, 0, 0, False), (0, 0, 1, True), (0, 1, 0, True), (1, 1, None, False), (1, 1, 1, False),
    (2, 0, None, True), (2, 0, 0, True), (2, 1, 1, True),
])  # fmt: skip
def test_state_that_says_whether_pixels_are_killed(gen: float, forced: int, kills: int, keyed: int | None, late: bool) -> None:
    """The shader or a chroma key may; 3DSTATE_WM has the last word, off or on."""
    draw = Draw(gen, tests=TESTS, shader={"force_kill_pixel_enable": forced, "pixel_shader_kills_pixel": kills}, **buffers(gen))
    if keyed is not None:
        draw.latch("3DSTATE_WM_CHROMAKEY", chromakey_kill_enable=keyed)
    made = draw.made()
    assert (made.late, made.early is None, made.backend.parts) == (late, late, frozenset())


@pytest.mark.parametrize("gen", [9, 11])
def test_a_stencil_value_of_the_shader_is_tested_late(gen: float) -> None:
    made = Draw(gen, tests=TESTS, shader={"pixel_shader_computes_stencil": 1}, **buffers(gen)).made()
    assert made.late and made.backend.parts == {"stencil"}


def test_early_generations_say_it_in_the_units_state() -> None:
    for shader in ({"pixel_shader_kills_pixel": 1}, {"pixel_shader_computed_depth": 1}):
        assert Draw(4.5, tests=TESTS, shader=shader, **buffers(4.5)).made().late
    assert not Draw(4.5, tests=TESTS, **buffers(4.5)).made().late


@pytest.mark.parametrize("gen", [4.5, *LATER])
def test_draws_without_pixel_shader_threads_are_tested_early(gen: float) -> None:
    """Whatever their state says that the threads would do."""
    off = "pixel_shader_valid" if gen >= 8 else "thread_dispatch_enable"
    for output in (OUTPUTS["kills"], {"pixel_shader_computed_depth": 1} if gen == 4.5 else OUTPUTS["depth"]):
        made = Draw(gen, tests=TESTS, shader={**output, off: 0}, **buffers(gen)).made()
        assert not made.late and made.early is not None and made.backend.late is None and not made.backend.parts
        assert Draw(gen, tests=TESTS, shader={**output, off: 1}, **buffers(gen)).made().late


@pytest.mark.behaviour("G45-CC-07", shows="action")
def test_a_depth_offset_is_added_to_coordinates() -> None:
    draw = Draw(4.5, depth={"surface_format": 1, "depth_coordinate_offset_x": 8, "depth_coordinate_offset_y": -16})
    found = depth_buffers(draw.state).depth
    assert (found.left, found.top) == (8, (1 << 32) - 16)


@pytest.mark.parametrize("gen", [gen for gen in GENERATIONS if gen > 4.5])
def test_before_there_is_a_blend_state_nothing_is_blended(gen: float) -> None:
    """Mesa's first clear of a depth buffer has no render target, and comes before any blend state."""
    draw = Draw(gen, blend=BLENDING)
    del draw.latched["3DSTATE_BLEND_STATE_POINTERS"]
    assert draw.made().backend.targets == (TargetState(),)


@pytest.mark.behaviour("KBL-BLEND-07", shows="action")
@pytest.mark.parametrize("gen", [8, 9, 11])
def test_alpha_to_coverage_has_tests_come_late(gen: float) -> None:
    """A pixel that it removes must not be in the depth buffer."""
    draw = Draw(gen, common={"alpha_to_coverage_enable": 1}, depth={"surface_format": 1})
    made = draw.made()
    assert made.backend.targets[0].alpha_to_coverage and made.late and made.early is None


def test_what_is_missing_or_not_built_is_named() -> None:
    with pytest.raises(DecodeError, match="3DSTATE_CC_STATE_POINTERS"):
        color_calculator(DrawState(generation(9), AddressSpace("none", 48), {}, {}, no_registers))
    with pytest.raises(Unsupported, match="tiled_resource_mode 1"):
        Draw(9, tests=TESTS, depth={"surface_format": 1, "tiled_resource_mode": 1}).made()


@pytest.mark.parametrize("gen", GENERATIONS)
def test_state_in_memory_that_changed_is_read_again(gen: float) -> None:
    """Drivers rewrite structures in place; the same bytes give the same object."""
    draw, cache = Draw(gen, tests=TESTS, blend=BLENDING, **buffers(gen)), PlanCache(color_calculator)
    first = cache.get(draw.state, True)
    assert cache.get(draw.state, True) is first
    draw.put("CC_VIEWPORT", VIEWPORT, minimum_depth=0.0, maximum_depth=0.5)
    again = cache.get(draw.state, True)
    assert again is not first and draw.made().backend == again.backend
    entry = CC if gen == 4.5 else BLEND + (4 if gen >= 8 else 0)
    for at in range(entry, entry + (32 if gen == 4.5 else 8), 4):
        before, changed = cache.get(draw.state, True), draw.memory.array[at : at + 4].copy()
        draw.memory.array[at : at + 4] = 0
        if changed.any():
            assert cache.get(draw.state, True) is not before
