"""What render target writes have besides their colours: a second source, and the alpha of source 0."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.shared_functions.pixel_backend import BackendState, BlendEquation, TargetState
from tests.shared_functions.rendering import BLOCK, Target
from tests.shared_functions.test_pixel_backend import pixels

f32 = np.float32
WHITE = np.ones((8, 4), f32)


def written(bench: Target) -> list[list[float]]:
    return [np.frombuffer(bench.texel(x, y), f32).tolist() for x, y in pixels(BLOCK, 8)]


@pytest.mark.parametrize(("clamp_range", "lowest"), [("unorm", 0.0), ("snorm", -1.0)])
@pytest.mark.parametrize("pre_clamp", ["", "sources", "all"])
def test_a_second_source_is_clamped_before_it_is_blended(pre_clamp: str, clamp_range: str, lowest: float) -> None:
    """As the first is."""
    state = TargetState(color=BlendEquation("add", "src1_color", "zero"), clamp_range=clamp_range, pre_clamp=pre_clamp)
    bench = Target(format="R32G32B32A32_FLOAT", state_of_backend=BackendState((state,)))
    second = np.linspace(-3, 3, 32, dtype=f32).reshape(8, 4)
    bench.write(np.concatenate([WHITE / 2, second], axis=1), "simd8_dual_source_low")
    assert written(bench) == ((np.clip(second, lowest, 1) if pre_clamp else second) / 2).tolist() and bench.compiled == 1


@pytest.mark.parametrize("antialiased", [False, True])
def test_coverage_of_smooth_lines_attenuates_the_alpha_of_a_second_source(antialiased: bool) -> None:
    state = TargetState(color=BlendEquation("add", "src1_alpha", "zero"), antialiased=antialiased)
    bench = Target(format="R32G32B32A32_FLOAT", state_of_backend=BackendState((state,)))
    bench.pixel.antialias[:8] = [lane / 8 for lane in range(8)]
    bench.write(np.concatenate([WHITE, WHITE / 2], axis=1), "simd8_dual_source_low")
    coverage = [lane / 8 if antialiased else 1.0 for lane in range(8)]
    assert written(bench) == [[each / 2] * 3 + [each * each / 2] for each in coverage] and bench.compiled == 1


@pytest.mark.parametrize("antialiased", [False, True])
@pytest.mark.parametrize("test", [{"alpha_test": "gequal"}, {"alpha_to_coverage": True}], ids=["test", "coverage"])
def test_coverage_of_smooth_lines_attenuates_the_alpha_of_source_0(test: dict[str, str | bool], antialiased: bool) -> None:
    """By which pixels are tested, whatever alpha is written: half of it, or more, must be covered."""
    state = TargetState(antialiased=antialiased, **test)  # type: ignore[arg-type]
    bench = Target(format="R32G32B32A32_FLOAT", state_of_backend=BackendState((state,), alpha_reference=0.5))
    bench.pixel.antialias[:8] = [lane / 8 for lane in range(8)]
    before = [bench.texel(x, y) for x, y in pixels(BLOCK, 8)]
    bench.write(WHITE, "simd8", bench.header(source0_alpha_present=1), before=(np.ones(8, f32),))
    changed = [bench.texel(x, y) != was for (x, y), was in zip(pixels(BLOCK, 8), before, strict=True)]
    assert changed == [not antialiased or lane >= 4 for lane in range(8)] and bench.compiled == 1


@pytest.mark.parametrize("disabled", ["", "a", "r", "rgb"])
def test_a_lowest_bit_that_is_not_written_stays_as_it_was(disabled: str) -> None:
    """Alpha of A1B5G5R5, below the other channels."""
    bench = Target(format="A1B5G5R5_UNORM", state_of_backend=BackendState((TargetState(write_disable=disabled),)))
    before = [int.from_bytes(bench.texel(x, y), "little") for x, y in pixels(BLOCK, 8)]
    bench.write(WHITE, "simd8")
    kept = sum({"a": 0x0001, "b": 0x003E, "g": 0x07C0, "r": 0xF800}[name] for name in disabled)
    found = [int.from_bytes(bench.texel(x, y), "little") for x, y in pixels(BLOCK, 8)]
    assert found == [0xFFFF & ~kept | was & kept for was in before] and len({was & 1 for was in before}) == 2
