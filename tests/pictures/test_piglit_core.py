"""A sample of piglit on kbl, bdw and icl: compute, time stamps, formats, framebuffers; all of shared/piglit/kbl-core.txt as a witness."""

from __future__ import annotations

import pytest

from tests.conftest import SHARED, needs_shared
from tests.driver.running import needs_driver, needs_shim
from tests.pictures.piglit import CORE, failing, installed, listed, run

GPUS = ("kbl", "bdw", "icl")
SAMPLE = {
    "time stamps rise": ("kbl", "shader_runner", "tests/spec/arb_shader_clock/execution/clock2x32.shader_test"),
    "buffer textures": ("kbl", "arb_texture_buffer_object-formats", "fs", "arb"),
    "compute": ("icl", "shader_runner", "generated_tests/spec/glsl-4.30/execution/built-in-functions/cs-min-vec2-vec2.shader_test"),
}
pytestmark = [needs_shim, pytest.mark.skipif(installed() is None, reason="piglit is not installed")]
LISTED = listed(CORE) if (SHARED / "piglit").exists() else []


@pytest.mark.parametrize("name", ["compute", "time stamps rise"])
def test_a_sample(name: str) -> None:
    gpu, *command = SAMPLE[name]
    needs_driver(gpu, "OpenGL")
    assert run(gpu, command) == "pass"


@pytest.mark.witness
@pytest.mark.parametrize("name", sorted(SAMPLE))
def test_the_whole_sample(name: str) -> None:
    gpu, *command = SAMPLE[name]
    needs_driver(gpu, "OpenGL")
    assert run(gpu, command) == "pass"


@needs_shared("piglit")
def test_at_least_97_of_100_pass() -> None:
    names = {test.name for test in LISTED}
    assert len(names) == 270 and set(failing("kbl")) <= names and len(failing("kbl")) <= 0.03 * len(names)
    assert all(result and why for result, why in failing("kbl").values())


@pytest.mark.witness
@needs_shared("piglit")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("test", LISTED, ids=lambda test: test.name)
def test_all_pass_but_those_of_the_list(test, gpu: str) -> None:  # type: ignore[no-untyped-def]
    """What a driver does not offer on a GPU is skipped by the test itself."""
    needs_driver(gpu, "OpenGL")
    assert test.name in failing("kbl") or run(gpu, test.command) in ("pass", "skip")
