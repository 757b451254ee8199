"""The executor of a run: failures that are reported, kept and counted, and the time that work took."""

from __future__ import annotations

import gc
import struct
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver import execute
from softgen.driver.execute import Executor
from softgen.errors import SoftgenError, Unsupported
from tests.driver.execbuffer import END, STORE, buffer, row, submit
from tests.driver.program import Program, served


def submission(number: int) -> Any:
    return SimpleNamespace(sequence=number, program="p", pid=0, engine="rcs0", context=SimpleNamespace(cancelled=False))


def test_many_failures_are_counted_and_the_first_ones_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "MOST_REPORTED", 2)
    told = list[str]()
    made = Executor(device("kbl"), [], lambda submission, text: f"capture of {submission.sequence}", told.append)
    for number in range(1, 6):
        made.failed(submission(number), SoftgenError("broken"))
    assert made.report.faults == [f"submission {number} of p (process 0, rcs0): broken" for number in range(1, 6)]
    assert [text.split(" of ")[0] for text in told] == ["submission 1", "submission 2", "submission 3"]
    assert told[2].endswith("more failures are only counted (--report)") and made.report.captures == ["capture of 1", "capture of 2"]


@pytest.mark.parametrize(
    "error, faults, unsupported", [(SoftgenError("broken"), 1, 0), (Unsupported("a stage"), 0, 1), (ValueError("x"), 1, 0)]
)
def test_a_run_with_either_kind_of_failure_is_not_fine(error: Exception, faults: int, unsupported: int) -> None:
    made = Executor(device("kbl"), [], lambda submission, text: "", lambda text: None)
    assert made.report.fine
    made.failed(submission(1), error)
    assert (len(made.report.faults), len(made.report.unsupported)) == (faults, unsupported) and not made.report.fine


def test_the_seconds_of_a_run_are_those_its_work_took() -> None:
    with served("kbl") as gpu:
        began, program = time.monotonic(), gpu.program()
        assert gpu.executor is not None
        report = gpu.executor.report
        batch = buffer(program, struct.pack("<2I", END, 0))
        for _ in range(3):
            submit(program, [row(batch)])
            program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=20 * 10**9)
        assert report.submissions == 3 and 0 < report.seconds < time.monotonic() - began


@pytest.mark.parametrize("name, engine, instance", [
    ("rcs0", "render", 0), ("rcs", "render", 0), ("vcs1", "video", 1), ("vecs0", "video_enhance", 0), ("bcs0", "blitter", 0),
])  # fmt: skip
def test_an_engine_has_a_class_and_a_number(name: str, engine: str, instance: int) -> None:
    made = execute.ContextEngine(Executor(device("kbl"), [], lambda submission, text: "", lambda text: None), name)
    assert (made.engine, made.instance) == (engine, instance)


def test_a_context_whose_work_failed_ends_with_its_program() -> None:
    with served("kbl") as gpu:
        program = Program(gpu.folder)
        batch = buffer(program, struct.pack("<6I", STORE, 0x7F0000, 0, 7, END, 0))
        submit(program, [row(batch)])
        program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch, timeout=20 * 10**9)
        assert len(gpu.told) == 1 and "not mapped" in gpu.told[0]
        (node,) = gpu.server.nodes.values()
        ended = [weakref.ref(held) for held in (node.contexts.get(0), node.objects.get(batch))]
        del node
        program.close()
        until = time.monotonic() + 20
        while any(held() is not None for held in ended) and time.monotonic() < until:
            time.sleep(0.01)
            gc.collect()
        assert [held() for held in ended] == [None, None]
