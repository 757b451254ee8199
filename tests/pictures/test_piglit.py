"""A sample of piglit on g45 and gm965: shaders, lines, stencil, textures and framebuffers; all of the list as a witness."""

from __future__ import annotations

import pytest

from tests.conftest import SHARED, needs_shared
from tests.driver.running import needs_driver, needs_shim
from tests.pictures.piglit import failing, installed, listed, run

SAMPLE = {
    "uniforms that are scalars": ("shader_runner", "generated_tests/spec/glsl-1.10/execution/built-in-functions/fs-log-vec3.shader_test"),
    "loops": ("shader_runner", "tests/spec/glsl-1.10/execution/loops/glsl-fs-loop-while-false-02.shader_test"),
    "line loop": ("gl-1.0-long-line-loop",),
    "two-sided stencil": ("gl-2.0-two-sided-stencil",),
    "shadow": ("depth-tex-compare",),
    "edge flags": ("gl-2.0-edgeflag",),
    "user clip planes": ("user-clip",),
    "logic operations": ("gl-1.1-xor-copypixels",),
    "occlusion query": ("occlusion-query-discard",),
}
pytestmark = [needs_shim, pytest.mark.skipif(installed() is None, reason="piglit is not installed")]
LISTED = listed("g45") if (SHARED / "piglit").exists() else []


@pytest.fixture(autouse=True)
def driver() -> None:
    needs_driver("g45", "OpenGL")


@pytest.mark.parametrize(("gpu", "name"), [
    ("g45", "shadow"), ("g45", "two-sided stencil"), ("g45", "uniforms that are scalars"),
    ("gm965", "shadow"), ("gm965", "user clip planes"),
])  # fmt: skip
def test_a_sample(gpu: str, name: str) -> None:
    assert run(gpu, SAMPLE[name]) == "pass"


@pytest.mark.witness
@pytest.mark.parametrize("name", sorted(SAMPLE))
def test_the_whole_sample(name: str) -> None:
    assert run("g45", SAMPLE[name]) == "pass"


@needs_shared("piglit")
def test_at_least_95_of_100_pass() -> None:
    """Tests that fail on the real G41 do not count."""
    names = {test.name for test in LISTED}
    counted = {name for name, (_, why) in failing("g45").items() if "Mesa's list" not in why}
    assert len(names) == 217 and set(failing("g45")) <= names and len(counted) <= 0.05 * len(names)


@pytest.mark.witness
@needs_shared("piglit")
@pytest.mark.parametrize("test", LISTED, ids=lambda test: test.name)
def test_all_pass_but_those_of_the_list(test) -> None:  # type: ignore[no-untyped-def]
    assert test.name in failing("g45") or run("g45", test.command) == "pass"
