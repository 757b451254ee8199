"""Buffers, timelines and sync files between programs; one that dies takes nothing from the others."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.driver.running import PROGRAMS, needs_shim, softgen_run


@needs_shim
def test_a_program_that_is_killed_leaves_shared_buffers_and_timelines_to_the_other() -> None:
    run = softgen_run("--gpu", "kbl", "--", sys.executable, str(PROGRAMS / "share.py"))
    assert run.process.returncode == 0 and run.out.split() == ["0xcafe", "0xf00d", "True", "True", "True"], run.out + run.err
    assert "softgen itself failed" not in run.err


def shared(what: str, *options: str) -> list[str]:
    run = softgen_run("--gpu", "kbl", *options, "--", sys.executable, str(PROGRAMS / "share_lies.py"), what)
    assert run.process.returncode == 0 and "softgen itself failed" not in run.err, run.out + run.err
    return run.out.splitlines()


@needs_shim
def test_an_importer_that_lies_about_modifiers_sizes_and_fences_is_refused(tmp_path: Path) -> None:
    """framebuffer_check() and intel_framebuffer_init() of the kernel, and sync_file_get_fence(): descriptors closed, or of a dma-buf."""
    answers = shared("lies", "--report", str(tmp_path / "report"))
    assert answers == ["tiling 1", "fine", *["EINVAL"] * 6, "fine", "EINVAL", "EINVAL"]
    refused = json.loads((tmp_path / "report").read_text("utf-8"))["refused_ioctls"]
    assert [refused[f"DRM_IOCTL_{name} EINVAL"]["count"] for name in ("MODE_ADDFB2", "I915_GEM_EXECBUFFER2")] == [6, 2]
    assert "in a buffer with tiling 1" in refused["DRM_IOCTL_MODE_ADDFB2 EINVAL"]["first"]


@needs_shim
@pytest.mark.witness
def test_work_that_waits_for_a_program_without_end_goes_on_when_that_is_killed() -> None:
    assert shared("endless") == ["waits True", "goes on True True"]
