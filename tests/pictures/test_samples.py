"""Vulkan with several samples of a pixel, on each GPU and for each count that its driver offers, beside a plain model and lavapipe."""

import re
import shlex
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import in_ci
from tests.driver.running import needs_driver, needs_shim, softgen_run
from tests.pictures import sample_model
from tests.pictures.compare import Picture, read_pam
from tests.pictures.running import built, expected, folder, needs

pytestmark = needs_shim
SCENES = ("resolved", "copied", "masked", "shaded", "fetched")
OFFERED = {"ivb": (4, 8), "hsw": (4, 8), "bdw": (2, 4, 8), "skl": (2, 4, 8, 16), "kbl": (2, 4, 8, 16), "icl": (2, 4, 8, 16)}
MOST = 0.004  # of the pixels may differ: depths of two triangles, and samples at edges, are rounded


def differing(found: Picture, reference: Picture) -> float:
    """The share of pixels that are more than 2 units apart."""
    return float((np.abs(found.astype(int) - reference).max(-1) > 2).mean())


@pytest.mark.parametrize("scene", SCENES)
def test_the_model_draws_as_lavapipe(scene: str) -> None:
    needs("vulkan_samples")
    assert differing(expected("vulkan_samples", f"{scene}:4"), sample_model.picture(scene, 4)[0]) <= MOST


@pytest.mark.parametrize("gpu", in_ci(OFFERED, "kbl"))
def test_pictures_and_samples_that_pass(gpu: str) -> None:
    needs("vulkan_samples")
    needs_driver(gpu, "Vulkan")
    cases = [(scene, count) for scene in SCENES for count in OFFERED[gpu]]
    files = [Path(tempfile.mkstemp(suffix=".pam", dir=folder())[1]) for _ in cases]
    script = " && ".join(shlex.join([built("vulkan_samples"), f"{scene}:{count}", str(file)])
                         for (scene, count), file in zip(cases, files, strict=True))  # fmt: skip
    run = softgen_run("--gpu", gpu, "--", "/bin/sh", "-c", script)
    assert run.process.returncode == 0, run.out + run.err
    said = [(int(counts), int(passed)) for counts, passed in re.findall(r"counts (\d+), (\d+) samples pass", run.out)]
    assert {counts for counts, _ in said} == {1 + sum(OFFERED[gpu])}
    apart = {}
    for case, file, (_, passed) in zip(cases, files, said, strict=True):
        picture, reference = sample_model.picture(*case)
        apart[case] = differing(read_pam(file), picture)
        assert abs(passed - reference) <= MOST * reference, case
    assert max(apart.values()) <= MOST, apart
