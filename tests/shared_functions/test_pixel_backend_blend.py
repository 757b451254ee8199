"""Blending, clamps, logic operations and alpha test, against a twin in plain Python; formats, against what they say."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any

import numpy as np
import pytest

from softgen.bits.formats import surface_formats
from softgen.errors import Unsupported
from softgen.shared_functions.pixel_backend import BackendState, BlendEquation, TargetState
from tests.shared_functions.rendering import BLOCK, NUMBER, Target
from tests.shared_functions.test_pixel_backend import pixels

Array = np.ndarray[Any, Any]
FACTORS = ["zero", "one", "src_color", "src_alpha", "dst_alpha", "dst_color", "src_alpha_saturate", "const_color", "const_alpha",
           "src1_color", "src1_alpha", "inv_src_color", "inv_src_alpha", "inv_dst_alpha", "inv_dst_color", "inv_const_color",
           "inv_const_alpha", "inv_src1_color", "inv_src1_alpha"]  # fmt: skip
FUNCTIONS = ["add", "subtract", "reverse_subtract", "min", "max"]
CONSTANT = (0.25, 0.5, 0.75, 0.375)
f32 = np.float32


# -- the twin --------------------------------------------------------------------------------------------------------


def factor(name: str, channel: int, source: list[Any], second: list[Any], destination: list[Any], constant: list[Any]) -> Any:
    """G45 7926-7945, row by row."""
    inverse, name = name.startswith("inv_"), name.removeprefix("inv_")
    if name == "src_alpha_saturate":
        return f32(1) if channel == 3 else min(f32(1) - destination[3], source[3])
    rows = {"zero": f32(0), "one": f32(1), "src_color": source[channel], "src_alpha": source[3], "dst_alpha": destination[3],
            "dst_color": destination[channel], "const_color": constant[channel], "const_alpha": constant[3],
            "src1_color": second[channel], "src1_alpha": second[3]}  # fmt: skip
    return f32(1) - rows[name] if inverse else rows[name]


def blended(equation: BlendEquation, channel: int, *inputs: list[Any]) -> Any:
    source, _, destination, _ = inputs
    a = source[channel] * factor(equation.source, channel, *inputs)
    b = destination[channel] * factor(equation.destination, channel, *inputs)
    return {"add": a + b, "subtract": a - b, "reverse_subtract": b - a, "min": min(a, b), "max": max(a, b)}[equation.function]


def twin(state: TargetState, source: Array, second: Array, destination: Array, constant: Any = CONSTANT) -> list[Any]:
    assert state.color is not None
    inputs = [[f32(value) for value in values] for values in (source, second, destination, constant)]
    return [blended(state.alpha or state.color if channel == 3 else state.color, channel, *inputs) for channel in range(4)]


def unorm(value: Any, bits: int = 8) -> int:
    return round(float(f32(min(max(value, f32(0)), f32(1))) * f32((1 << bits) - 1)))


def sources(seed: int = 3, low: float = 0.0, high: float = 1.0) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    found = random.uniform(low, high, (2, 8, 4)).astype(f32)
    return found[0], found[1]


# -- blending --------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-BLEND-01", shows="action")
@pytest.mark.behaviour("KBL-BLEND-10", shows="action")
@pytest.mark.behaviour("G45-CC-24", shows="action")
@pytest.mark.behaviour("G45-CC-25", shows="action")
@pytest.mark.behaviour("G45-CC-27", shows="action")
@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("side", ["source", "destination"])
def test_every_factor(name: str, side: str) -> None:
    equation = BlendEquation(**{"function": "add", "source": "one", "destination": "one", side: name})
    check(TargetState(color=equation), "R32G32B32A32_FLOAT")


@pytest.mark.behaviour("G45-CC-22", shows="action")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_of_terms_with_factors(function: str) -> None:
    check(TargetState(color=BlendEquation(function, "src_alpha", "const_color")), "R32G32B32A32_FLOAT")
    check(TargetState(color=BlendEquation(function, "dst_color", "inv_src_alpha")), "B8G8R8A8_UNORM")


@pytest.mark.behaviour("G45-CC-23", shows="action")
def test_alpha_may_have_an_equation_of_its_own() -> None:
    check(TargetState(color=BlendEquation("add", "src_alpha", "inv_src_alpha"), alpha=BlendEquation("max", "one", "one")), "B8G8R8A8_UNORM")


def check(state: TargetState, format: str, gen: float = 9) -> None:
    bench = Target(gen=gen, format=format, state_of_backend=BackendState((state,), constant=CONSTANT))
    look = surface_formats()[NUMBER[format]]
    floating = look.channels[0].type == "float"
    random = np.random.default_rng(9)
    before = random.uniform(0, 1, (8, 4)).astype(f32) if floating else random.integers(0, 256, (8, 4), np.uint8)
    for (x, y), texel in zip(pixels(BLOCK, 8), before, strict=True):
        at = bench.place(x, y)
        bench.data.array[at : at + bench.bytes] = texel.view(np.uint8)
    first, second = sources()
    bench.write(np.concatenate([first, second], axis=1), "simd8_dual_source_low")
    for lane, (x, y) in enumerate(pixels(BLOCK, 8)):
        held = before[lane] if floating else [f32(before[lane][n]) / f32(255) for n in (2, 1, 0, 3)]
        wanted = twin(state, first[lane], second[lane], np.array(held, f32))
        found = np.frombuffer(bench.texel(x, y), before.dtype).tolist()
        assert found == [float(value) for value in wanted] if floating else found == [unorm(wanted[n]) for n in (2, 1, 0, 3)]
    assert bench.compiled == 1


@pytest.mark.behaviour("G45-CC-26", shows="action")
@pytest.mark.parametrize("format", ["B8G8R8X8_UNORM", "B5G6R5_UNORM"])
def test_a_target_without_alpha_reads_one(format: str) -> None:
    state = TargetState(color=BlendEquation("add", "dst_alpha", "inv_dst_alpha"))
    bench = Target(gen=9, format=format, state_of_backend=BackendState((state,)))
    plain = Target(gen=9, format=format)
    first = np.concatenate([*sources()])
    bench.write(first)
    plain.write(first)
    assert (bench.picture() == plain.picture()).all() and bench.compiled == 1


RESERVED, SECOND = "value 0", "src1_color"  # as color_calculator.py names reserved values; a factor that messages may have no source for
WRONG = {
    "source": ({"color": BlendEquation(source=RESERVED)}, "source_blend_factor has the value 0, which is reserved"),
    "destination": ({"color": BlendEquation(destination="value 31")}, "destination_blend_factor has the value 31, which is reserved"),
    "function": ({"color": BlendEquation("value 6")}, "color_blend_function has the value 6, which is reserved"),
    "alpha": ({"color": BlendEquation(), "alpha": BlendEquation(destination=RESERVED)}, "destination_alpha_blend_factor has the value 0"),
    "second": ({"color": BlendEquation(destination=SECOND)}, "second source"),
    "second of alpha": ({"color": BlendEquation(), "alpha": BlendEquation(source="inv_src1_alpha")}, "second source"),
    "clamp": ({"clamp_range": "value 3", "pre_clamp": "all"}, "color_clamp_range has the value 3, which is reserved"),
    "clamp of results": ({"color": BlendEquation(), "clamp_range": "value 3", "post_clamp": True}, "color_clamp_range has the value 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_state_that_means_nothing_is_refused_where_it_is_used(name: str) -> None:
    fields, why = WRONG[name]
    bench = Target(state_of_backend=BackendState((TargetState(**fields),)))  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match=why):
        bench.write(np.concatenate([*sources()]))


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("format, disabled", [("R32G32B32A32_UINT", ""), ("R8_UINT", ""), ("B8G8R8A8_UNORM", "rgba"), ("R8_UNORM", "r"),
                                              ("B8G8R8X8_UNORM", "bgr")])  # fmt: skip
def test_state_that_means_nothing_is_not_looked_at_where_nothing_is_blended(name: str, format: str, disabled: str) -> None:
    """Of integers, and where no channel is written."""
    written = []
    for fields in (WRONG[name][0], {}):
        bench = Target(format=format, state_of_backend=BackendState((TargetState(write_disable=disabled, **fields),)))  # type: ignore[arg-type]
        bench.write(np.concatenate([*sources()]))
        written.append(bench.data.array.copy())
    assert (written[0] == written[1]).all() and bench.compiled == 1


@pytest.mark.parametrize("wrong", [BlendEquation(source=RESERVED), BlendEquation("value 7"), BlendEquation(source=SECOND)])
@pytest.mark.parametrize("format, disabled, of", [("R32G32B32A32_FLOAT", "rgb", "color"), ("R32G32B32A32_FLOAT", "a", "alpha"),
                                                  ("B8G8R8X8_UNORM", "", "alpha"), ("A8_UNORM", "", "color")])  # fmt: skip
def test_an_equation_that_no_channel_goes_through_is_not_looked_at(wrong: BlendEquation, format: str, disabled: str, of: str) -> None:
    """Colours have one, alpha another: the right one blends as ever."""
    right = BlendEquation("add", "const_alpha", "zero")
    written = []
    for equation in (wrong, right):
        state = TargetState(**{"color": right, "alpha": right, of: equation}, write_disable=disabled)  # type: ignore[arg-type]
        bench = Target(format=format, state_of_backend=BackendState((state,), constant=(1.0, 1.0, 1.0, 0.5)))
        bench.write(np.concatenate([*sources()]))
        written.append(bench.data.array.copy())
        assert bench.compiled == 1
    plain = Target(format=format, state_of_backend=BackendState((TargetState(write_disable=disabled),)))
    plain.write(np.concatenate([*sources()]))
    assert (written[0] == written[1]).all() and (written[0] != plain.data.array).any()


def test_a_null_target_has_nothing_to_blend() -> None:
    for fields, _ in WRONG.values():
        bench = Target(state_of_backend=BackendState((TargetState(**fields),)))  # type: ignore[arg-type]
        before = bench.data.array.copy()
        bench.write(np.concatenate([*sources()]), surface=2)
        assert (bench.data.array == before).all()


# -- clamps ----------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-BLEND-04", shows="action")
@pytest.mark.behaviour("G45-CC-17", shows="action")
@pytest.mark.parametrize(("clamp_range", "low"), [("unorm", 0.0), ("snorm", -1.0), ("rtformat", None)])
@pytest.mark.parametrize("pre_clamp", ["", "sources", "all"])
@pytest.mark.parametrize("post_clamp", [False, True])
def test_clamps_before_and_after_blending(clamp_range: str, low: float | None, pre_clamp: str, post_clamp: bool) -> None:
    constant = (2.0, -2.0, 0.5, 3.0)
    state = TargetState(color=BlendEquation("add", "const_color", "src_alpha"), clamp_range=clamp_range, pre_clamp=pre_clamp,
                        post_clamp=post_clamp)  # fmt: skip
    bench = Target(format="R32G32B32A32_FLOAT", state_of_backend=BackendState((state,), constant=constant))
    before = np.random.default_rng(4).uniform(-3, 3, (8, 4)).astype(f32)
    for (x, y), texel in zip(pixels(BLOCK, 8), before, strict=True):
        bench.data.array[bench.place(x, y) :][:16] = texel.view(np.uint8)
    first, second = sources(5, -3, 3)
    bench.write(first, "simd8")

    def clamp(values: Any, does: bool) -> Any:
        return np.clip(np.array(values, f32), f32(low), f32(1)) if does and low is not None else np.array(values, f32)

    for lane, (x, y) in enumerate(pixels(BLOCK, 8)):
        every = pre_clamp == "all"
        given = clamp(first[lane], bool(pre_clamp)), second[lane], clamp(before[lane], every), clamp(constant, every)
        wanted = clamp(twin(state, *given), post_clamp)
        assert np.frombuffer(bench.texel(x, y), f32).tolist() == wanted.tolist()
    assert bench.compiled == 1


def test_sources_are_clamped_without_blending_too() -> None:
    bench = Target(format="R32G32B32A32_FLOAT", state_of_backend=BackendState((TargetState(clamp_range="unorm", pre_clamp="all"),)))
    bench.write(np.tile(np.array([-1.0, 2.0, 0.5, math.nan], f32), (16, 1)))
    assert np.frombuffer(bench.texel(1, 1), f32).tolist() == [0.0, 1.0, 0.5, 0.0]


@pytest.mark.parametrize(("color", "wanted"), [
    ((0.25, 0.5, 2.0, 0.5), (0.125, 0.25, 1.0)), ((0.25, -2.0, 2.0, -1.0), (0.0, 0.0, 0.0)),
    ((2.0**-10, 0.0, 1.0, 1e6), (65504 / 1024, 0.0, 65504.0)), ((0.0, -4.0, -(2.0**-10), -1e6), (0.0, 0.0, 0.0)),
])  # fmt: skip
def test_sources_in_the_range_of_floats_without_a_sign(color: tuple[float, ...], wanted: tuple[float, ...]) -> None:
    """R11G11B10_FLOAT. Its alpha, which is a factor here, is in the range of half floats."""
    state = TargetState(color=BlendEquation("add", "src_alpha", "zero"), clamp_range="rtformat", pre_clamp="sources")
    bench = Target(gen=9, format="R11G11B10_FLOAT", state_of_backend=BackendState((state,)))
    bench.write(np.tile(np.array(color, f32), (16, 1)))
    assert small_floats(bench.texel(1, 1)) == pytest.approx(wanted, rel=2**-5) and bench.compiled == 1


# -- logic operations, alpha test ------------------------------------------------------------------------------------


@pytest.mark.behaviour("KBL-BLEND-02", shows="action")
@pytest.mark.behaviour("G45-CC-33", shows="action")
@pytest.mark.parametrize("code", range(16))
def test_logic_operations_are_truth_tables(code: int) -> None:
    names = ["0", "~(s | d)", "~s & d", "~s", "s & ~d", "~d", "s ^ d", "~(s & d)", "s & d", "~(s ^ d)", "d", "~s | d", "s", "s | ~d",
             "s | d", "~0"]  # fmt: skip
    bench = Target(state_of_backend=BackendState((TargetState(logic_op=code, write_disable="g"),)))
    before = bench.picture()
    first = np.concatenate([*sources()])
    bench.write(first)
    for lane, (x, y) in enumerate(pixels(BLOCK)):
        for place, channel in enumerate((2, 1, 0, 3)):
            s, d = unorm(first[lane][channel]), int(before[y, x, place])
            wanted = d if channel == 1 else eval(names[code], {"s": s, "d": d}) & 0xFF
            assert bench.texel(x, y)[place] == wanted
    assert bench.compiled == 1


@pytest.mark.behaviour("G45-CC-33", shows="action")
@pytest.mark.parametrize(("format", "state"), [("R32_FLOAT", TargetState(logic_op=6)), ("B8G8R8A8_UNORM_SRGB", TargetState(logic_op=6)),
                                               ("R8G8B8A8_UINT", TargetState(color=BlendEquation("add", "zero", "one")))])  # fmt: skip
def test_logic_operations_of_floats_and_blending_of_integers_do_nothing(format: str, state: TargetState) -> None:
    """As APIs have it (OpenGL 4.6, 17.3.6 and 17.3.9); drivers leave both enabled."""
    first = np.concatenate([*sources()])
    bench, plain = Target(format=format, state_of_backend=BackendState((state,))), Target(format=format)
    for item in (bench, plain):
        item.write(first.view(np.uint32) if "UINT" in format else first)
    assert (bench.picture() == plain.picture()).all() and bench.compiled == 1


def test_signed_numbers_have_logic_operations() -> None:
    bench = Target(format="R8G8B8A8_SNORM", state_of_backend=BackendState((TargetState(logic_op=0),)))
    bench.write(np.concatenate([*sources()]))
    assert all(bench.texel(x, y) == bytes(4) for x, y in pixels(BLOCK))


@pytest.mark.behaviour("KBL-BLEND-07", "KBL-BLEND-08", shows="action")
def test_alpha_to_coverage_leaves_pixels_of_high_alpha() -> None:
    """None of alpha 0 and all of alpha 1; alpha is then 1, if that is enabled."""
    state = TargetState(alpha_to_coverage=True, alpha_to_one=True)
    bench = Target(gen=9, format="R32G32B32A32_FLOAT", state_of_backend=BackendState((state,)))
    colors = np.array([[0.25, 0.5, 0.75, lane / 7] for lane in range(8)], f32)
    before = [bench.texel(x, y) for x, y in pixels(BLOCK, 8)]
    bench.write(colors, "simd8")
    for lane, (x, y) in enumerate(pixels(BLOCK, 8)):
        written = np.array([0.25, 0.5, 0.75, 1.0], f32).tobytes()
        assert bench.texel(x, y) == (written if lane >= 4 else before[lane])


COMPARES = {"always": lambda a, b: True, "never": lambda a, b: False, "less": lambda a, b: a < b, "equal": lambda a, b: a == b,
            "lequal": lambda a, b: a <= b, "greater": lambda a, b: a > b, "notequal": lambda a, b: a != b,
            "gequal": lambda a, b: a >= b}  # fmt: skip


@pytest.mark.behaviour("KBL-BLEND-06", shows="action")
@pytest.mark.behaviour("G45-CC-03", shows="action")
@pytest.mark.behaviour("G45-CC-04", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("function", COMPARES)
@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("gen", [4.5, 7, 9])
def test_the_alpha_test_drops_pixels(gen: float, function: str, rounds: bool) -> None:
    state = BackendState((TargetState(alpha_test=function, alpha_test_unorm8=rounds),), alpha_reference=100 / 255)
    bench = Target(gen=gen, state_of_backend=state)
    alphas = np.array([99, 99.4, 99.6, 100, 100.2, 100.4, 100.6, 101] * 2, f32) / f32(255)
    colors = np.tile(alphas[:, None], (1, 4))
    before = bench.picture()
    bench.write(colors)
    for lane, (x, y) in enumerate(pixels(BLOCK)):
        reference = 100 if rounds else f32(100 / 255)
        passes = COMPARES[function](unorm(alphas[lane]) if rounds else alphas[lane], reference)
        wanted = [unorm(alphas[lane])] * 4 if passes else before[y, x].tolist()
        assert list(bench.texel(x, y)) == wanted
    assert bench.compiled == 1


@pytest.mark.parametrize("gen", [8, 11])
def test_the_alpha_test_takes_the_alpha_of_source_0(gen: float) -> None:
    """A message to another target has it besides its own (KBL 20663-20675)."""
    state = BackendState((TargetState(alpha_test="greater"),), alpha_reference=0.5)
    bench = Target(gen=gen, state_of_backend=state)
    alphas = np.linspace(0, 1, 16, dtype=f32)
    before = bench.picture()
    if gen == 11:
        bench.write(np.concatenate([*sources()]), before=(alphas,), extended=1 << 15)
    else:
        bench.write(np.concatenate([*sources()]), before=(alphas,), header=bench.header(source0_alpha_present=1))
    changed = [list(bench.texel(x, y)) != before[y, x].tolist() for x, y in pixels(BLOCK)]
    assert changed == [bool(alpha > 0.5) for alpha in alphas] and bench.compiled == 1


@pytest.mark.behaviour("KBL-BLEND-08", shows="action")
def test_alpha_to_one() -> None:
    bench = Target(state_of_backend=BackendState((TargetState(alpha_to_one=True),)))
    bench.write(np.full((16, 4), 0.25, f32))
    assert list(bench.texel(2, 1)) == [64, 64, 64, 255] and bench.compiled == 1


# -- formats ---------------------------------------------------------------------------------------------------------

UNORM = ["R8_UNORM", "R8G8_UNORM", "R8G8B8A8_UNORM", "B8G8R8A8_UNORM", "R16_UNORM", "R16G16_UNORM", "R16G16B16A16_UNORM", "B5G6R5_UNORM",
         "B5G5R5A1_UNORM", "B4G4R4A4_UNORM", "R10G10B10A2_UNORM", "B10G10R10A2_UNORM", "B8G8R8X8_UNORM", "A8_UNORM"]  # fmt: skip
OTHERS = ["R8G8B8A8_SNORM", "R16G16B16A16_SNORM", "R8_SNORM", "R8G8B8A8_UINT", "R16G16_UINT", "R32_UINT", "R32G32B32A32_UINT",
          "R8G8_SINT", "R16G16B16A16_SINT", "R32G32_SINT", "R10G10B10A2_UINT", "R16_FLOAT", "R16G16_FLOAT", "R16G16B16A16_FLOAT",
          "R32_FLOAT", "R32G32_FLOAT", "R32G32B32A32_FLOAT"]  # fmt: skip


def encode(kind: str, bits: int, value: Any) -> int:
    """A channel as its format has it: of a float, or of an integer."""
    if kind == "uint":
        return int(min(value, (1 << bits) - 1))
    if kind == "sint":
        return int(min(max(np.int32(value), -(1 << bits - 1)), (1 << bits - 1) - 1)) & (1 << bits) - 1
    if kind == "unorm":
        return unorm(value, bits)
    if kind == "snorm":
        return round(float(f32(min(max(value, f32(-1)), f32(1))) * f32((1 << bits - 1) - 1))) & (1 << bits) - 1
    if kind == "float":
        return int.from_bytes(np.array([value], f"f{bits // 8}").tobytes(), "little")
    return (1 << bits) - 1  # unused bits


@pytest.mark.behaviour("G45-CC-18", shows="action")
@pytest.mark.behaviour("G45-CC-37", shows="action")
@pytest.mark.behaviour("KBL-BLEND-05", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("tiling", ["linear", "y_major"])
@pytest.mark.parametrize("format", UNORM + OTHERS)
def test_colours_become_texels(format: str, tiling: str) -> None:
    bench = Target(gen=9, format=format, tiling=tiling)
    look = surface_formats()[NUMBER[format]]
    kinds = {channel.type for channel in look.channels}
    random = np.random.default_rng(1)
    if kinds & {"uint", "sint"}:
        colors: Array = random.integers(0, 1 << 32, (16, 4), np.uint32) >> random.integers(0, 31, (16, 4)).astype(np.uint32)
        colors = np.where(random.integers(0, 2, (16, 4)), -colors.astype(np.int64), colors).astype(np.uint32) if "sint" in kinds else colors
    else:
        colors = random.uniform(-1.5, 1.5, (16, 4)).astype(f32)
    places = [(0, 0), (2, 0), (6, 8), (36, 34)]
    bench.at(places)
    bench.write(colors)
    for lane, (x, y) in enumerate(pixels(places)):
        wanted, at = 0, 0
        for channel in look.channels:
            value = colors[lane]["rgba".index(channel.name)] if channel.name in "rgba" else 0
            wanted |= encode(channel.type if channel.name != "x" else "void", channel.bits, value) << at
            at += channel.bits
        assert int.from_bytes(bench.texel(x, y), "little") == wanted
    assert bench.compiled == 1


@pytest.mark.behaviour("G45-CC-30", shows="action")
@pytest.mark.parametrize("format", ["R8G8B8A8_UNORM_SRGB", "B8G8R8A8_UNORM_SRGB", "B8G8R8X8_UNORM_SRGB"])
def test_srgb_is_encoded_after_blending_and_alpha_is_not(format: str) -> None:
    """Every value of eight bits, from the middle of what rounds to it and from its edges."""
    for start in range(0, 256, 16):
        bench = Target(gen=9, format=format)
        codes = np.arange(start, start + 16)
        linear = [code / 255 / 12.92 if code / 255 <= 0.04045 else ((code / 255 + 0.055) / 1.055) ** 2.4 for code in codes]
        bench.write(np.tile(np.array(linear, f32)[:, None], (1, 4)))
        for lane, (x, y) in enumerate(pixels(BLOCK)):
            assert list(bench.texel(x, y))[:3] == [codes[lane]] * 3
            assert bench.texel(x, y)[3] == (255 if "X8" in format else unorm(f32(linear[lane])))
        assert bench.compiled == 1
    bench = Target(gen=9, format=format, state_of_backend=BackendState((TargetState(color=BlendEquation("add", "one", "one")),)))
    for x, y in pixels(BLOCK):
        bench.data.array[bench.place(x, y) :][:4] = 100
    bench.write(np.full((16, 4), 0.25, f32))
    value = 0.25 + ((100 / 255 + 0.055) / 1.055) ** 2.4
    assert abs(bench.texel(0, 0)[0] - (1.055 * value ** (1 / 2.4) - 0.055) * 255) < 0.51


def small_floats(texel: bytes) -> list[float]:
    """The channels of R11G11B10_FLOAT: half floats without a sign and with fewer bits."""
    word = int.from_bytes(texel, "little")
    halves = [(word >> shift & (1 << bits) - 1) << 15 - bits for shift, bits in ((0, 11), (11, 11), (22, 10))]
    return [struct.unpack("<e", struct.pack("<H", half))[0] for half in halves]


def test_eleven_and_ten_bit_floats() -> None:
    bench = Target(gen=9, format="R11G11B10_FLOAT")
    values = [0.0, 1.0, -3.0, 0.5, 65024.0, 2.0**-14, 3.1415926, 100.0]
    bench.write(np.tile(np.array(values * 2, f32)[:, None], (1, 4)))
    for lane, (x, y) in enumerate(pixels(BLOCK)):
        for found, bits in zip(small_floats(bench.texel(x, y)), (11, 11, 10), strict=True):
            exact = max((values * 2)[lane], 0.0)
            assert found <= exact and exact - found <= exact * 2.0 ** (6 - bits)
    assert bench.compiled == 1


@pytest.mark.behaviour("G45-CC-31", shows="action")
@pytest.mark.parametrize("offsets", [(0, 0), (1, 2)])
def test_dithering_adds_a_matrix_of_sixteenths(offsets: tuple[int, int]) -> None:
    """The mean of sixteen pixels has four more bits than one; pixels four apart have the same threshold."""
    state = BackendState((TargetState(dither=offsets),))
    for level in range(17):
        bench = Target(gen=9, format="B5G6R5_UNORM", state_of_backend=state)
        bench.write(np.full((16, 4), (10 + level / 16) / 31, f32))
        reds = [int.from_bytes(bench.texel(x, y), "little") >> 11 for x, y in pixels(BLOCK)]
        assert sum(reds) == 160 + level and set(reds) <= {10, 11}
        again = bench.picture()[:4, :4].copy()
        bench.at([(x + 8, y + 4) for x, y in BLOCK])
        bench.write(np.full((16, 4), (10 + level / 16) / 31, f32))
        assert (bench.picture()[4:8, 8:12] == again).all()
    assert bench.compiled == 2


@pytest.mark.parametrize(("dither", "wanted"), [((0, 0), {10, 11}), (None, {10})])
def test_narrow_channels_are_dithered_where_the_state_says(dither: tuple[int, int] | None, wanted: set[int]) -> None:
    bench = Target(gen=9, format="B5G6R5_UNORM", state_of_backend=BackendState((TargetState(dither=dither),)))
    bench.write(np.full((16, 4), 10.25 / 31, f32))
    assert {int.from_bytes(bench.texel(x, y), "little") >> 11 for x, y in pixels(BLOCK)} == wanted


def test_eight_bits_are_not_dithered() -> None:
    bench, plain = (Target(gen=9, state_of_backend=BackendState((TargetState(dither=dither),))) for dither in ((0, 0), None))
    for item in (bench, plain):
        item.write(np.concatenate([*sources()]))
    assert (bench.picture() == plain.picture()).all()


@pytest.mark.parametrize(("format", "disabled"), list(itertools.product(["R16G16B16A16_FLOAT", "B5G6R5_UNORM", "R32G32_UINT", "R8_UNORM"],
                                                                   ["r", "ga", "gba"])))  # fmt: skip
def test_channels_of_any_width_can_be_disabled(format: str, disabled: str) -> None:
    bench, plain = (Target(gen=9, format=format, state_of_backend=BackendState((TargetState(write_disable=which),)))
                    for which in (disabled, ""))  # fmt: skip
    before = {place: int.from_bytes(bench.texel(*place), "little") for place in pixels(BLOCK)}
    for item in (bench, plain):
        item.write((np.concatenate([*sources()]) * 1000).astype(np.uint32) if "UINT" in format else np.concatenate([*sources()]))
    mask, at = 0, 0
    for channel in bench.look.channels:
        mask |= (0 if channel.name in disabled else (1 << channel.bits) - 1) << at
        at += channel.bits
    for place in pixels(BLOCK):
        wanted = before[place] & ~mask | int.from_bytes(plain.texel(*place), "little") & mask
        assert int.from_bytes(bench.texel(*place), "little") == wanted
    assert bench.compiled == 1


# -- smooth lines and points -----------------------------------------------------------------------------------------


@pytest.mark.behaviour("BDW-SF-09", shows="action")
@pytest.mark.parametrize("antialiased", [False, True])
def test_alpha_is_attenuated_by_antialias_coverage_before_it_is_tested_and_blended(antialiased: bool) -> None:
    """Blended with alpha 1 x coverage over black; pixels of less than a half fail the alpha test."""
    state = TargetState(color=BlendEquation("add", "src_alpha", "zero"), alpha_test="gequal", antialiased=antialiased)
    bench = Target(gen=9, format="R32G32B32A32_FLOAT", state_of_backend=BackendState((state,), alpha_reference=0.5))
    for lane in range(8):
        bench.pixel.antialias[lane] = lane / 8
    before = [bench.texel(x, y) for x, y in pixels(BLOCK, 8)]
    bench.write(np.ones((8, 4), f32), "simd8")
    for lane, (x, y) in enumerate(pixels(BLOCK, 8)):
        coverage = lane / 8 if antialiased else 1.0
        wanted = np.array([coverage] * 3 + [coverage**2], f32).tobytes() if coverage >= 0.5 else before[lane]
        assert bench.texel(x, y) == wanted


def test_integers_have_no_antialias_coverage() -> None:
    bench = Target(gen=9, format="R32G32B32A32_UINT", state_of_backend=BackendState((TargetState(antialiased=True),)))
    bench.write(np.full((8, 4), 7, np.uint32), "simd8")
    assert np.frombuffer(bench.texel(*pixels(BLOCK, 8)[3]), np.uint32).tolist() == [7] * 4
