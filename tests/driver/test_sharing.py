"""Buffers, timelines and sync files between programs; one that dies takes nothing from the others."""

from __future__ import annotations

import sys

from tests.driver.running import PROGRAMS, needs_shim, softgen_run


@needs_shim
def test_a_program_that_is_killed_leaves_shared_buffers_and_timelines_to_the_other() -> None:
    run = softgen_run("--gpu", "kbl", "--", sys.executable, str(PROGRAMS / "share.py"))
    assert run.process.returncode == 0 and run.out.split() == ["0xcafe", "0xf00d", "True", "True", "True"], run.out + run.err
    assert "softgen itself failed" not in run.err
