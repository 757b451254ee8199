"""Advice in the message about a submission that failed."""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.queue.execute import Executor
from softgen.driver.queue.hints import COMPUTE_ONLY
from softgen.errors import GpuFault, SoftgenError, Unsupported

DREW = Unsupported("3DPRIMITIVE at 0x1000 (batch 0x1000, gen 9): not yet simulated")


def messages(*errors: SoftgenError, pid: int | None = None) -> list[str]:
    """The messages about submissions of this process that failed."""
    told: list[str] = []
    executor = Executor(device("kbl"), [], lambda submission, text: "somewhere", told.append)
    context = SimpleNamespace(cancelled=False, context_engines={})
    submission: Any = SimpleNamespace(sequence=7, program="p", pid=pid or os.getpid(), engine="rcs0", slot=0, context=context)
    for error in errors:
        executor.failed(submission, error)
    return told


@pytest.fixture(params=["libvulkan_intel.so", "libvulkan_intel_hasvk.so"])
def vulkan(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """A file with the name of a Vulkan driver is mapped, as the loader does it."""
    library = tmp_path / request.param
    library.write_bytes(bytes(4096))
    with library.open("rb") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ):
        yield


@pytest.mark.usefixtures("vulkan")
def test_a_vulkan_program_that_draws_learns_of_queues_without_graphics() -> None:
    [told] = messages(DREW)
    assert told.startswith("submission 7 of p (") and "kept in somewhere" in told and told.endswith(f"; {COMPUTE_ONLY}")
    assert "ANV_QUEUE_OVERRIDE=gc=0,c=1" in COMPUTE_ONLY


@pytest.mark.usefixtures("vulkan")
def test_the_hint_is_given_once_and_only_about_drawing() -> None:
    other = Unsupported("MI_URB_CLEAR at 0x1000: not yet simulated"), GpuFault(0x1000, "read", by="3DPRIMITIVE")
    assert [COMPUTE_ONLY in told for told in messages(*other, DREW, DREW)] == [False, False, True, False]


def test_programs_without_a_vulkan_driver_get_no_hint() -> None:
    [told] = messages(DREW)
    assert told.endswith("kept in somewhere")
    [told] = messages(DREW, pid=1 << 30)  # has ended
    assert told.endswith("kept in somewhere")


def test_failures_beyond_the_first_are_only_counted() -> None:
    """A program that goes on may fail at every frame: twenty of a kind are kept."""
    told = messages(*[GpuFault(0x1000, "read")] * 25)
    assert len(told) == 21 and "kept in" in told[-2]
    assert told[-1].endswith("more failures are only counted (--report)")
