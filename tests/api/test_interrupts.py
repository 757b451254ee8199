"""A KeyboardInterrupt between any two lines of the interface's own code: the Gpu can be used afterwards."""

from __future__ import annotations

import gc
import linecache
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import softgen
from softgen.api.memory import FIRST, Heap
from tests.conftest import ROOT

COLLATZ = ROOT / "tests" / "data" / "kernels" / "cf_collatz.kbl.bin"
PLACES = ("/softgen/api/gpu.py", "/softgen/api/memory.py", "/softgen/memory/address_space.py")


def interrupted(line: int, call: Callable[[], Any]) -> bool:
    """Call a function and raise KeyboardInterrupt before the line of PLACES that comes after so many; False where there are fewer.

    Signals are handled after calls: never between the body of a `with` and the release of its lock, where a tracer would raise as well."""
    left = line

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(PLACES):
            return None
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
        return False
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("verb", ["allocate", "free"])
def test_memory_whose_allocation_or_release_was_interrupted_is_given_back(verb: str) -> None:
    line, more = 0, True
    while more:
        heap = Heap("memory", 48)
        assert heap.space.table  # as compiled code needs it
        if verb == "allocate":
            more = interrupted(line, lambda heap=heap: heap.allocate(4096, "first"))  # type: ignore[misc]
        else:
            first = heap.allocate(4096, "first")
            more = interrupted(line, lambda heap=heap, first=first: heap.free(first))  # type: ignore[misc]
            heap.free(first)
        second = heap.allocate(4096, "second")
        second.write(b"data")
        assert second.address == FIRST or verb == "allocate" and len(heap._live) == 2
        assert heap.space.read(second.address, 4) == b"data" and len(heap._live) == len(heap._taken)
        heap.close()
        line += 1
    assert line > 8


def test_the_first_launch_of_a_kernel_may_be_interrupted_anywhere() -> None:
    """The next one finds its code and state complete, and the memory of the first is free again, but for what is kept."""
    kernel, line, more, left = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"], 0, True, set[int]()
    while more:
        with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
            x, steps = gpu.buffer(np.arange(1, 9, dtype=np.uint32)), gpu.empty(8, np.uint32)

            def launch(gpu: softgen.Gpu = gpu, x: softgen.Buffer = x, steps: softgen.Buffer = steps) -> softgen.Run:
                return gpu.launch(kernel, x, steps, global_size=8)

            more = interrupted(line, launch)
            launch()
            assert steps.array.tolist() == [1, 7, 2, 5, 8, 16, 3, 19]
            left.add(len(gpu._heap._live))
        line += 13
    assert line > 100 and max(left) <= 5  # two buffers, code, scratch space; and one more in the moment before it has an owner


def test_memory_of_state_is_free_again_where_writing_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"]

    def interrupt(*bases: int) -> bytes:
        raise KeyboardInterrupt

    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        x = gpu.empty(8, np.uint32)
        gpu.launch(kernel, x, x, global_size=8)
        before = list(gpu._heap._live)
        monkeypatch.setattr(gpu._packer, "bases", interrupt)
        with pytest.raises(KeyboardInterrupt):
            gpu.prepare(kernel, x, x, global_size=8)
        assert list(gpu._heap._live) == before


def test_a_signal_handler_cannot_launch_on_a_gpu_that_it_interrupts() -> None:
    """It would wait for ever for what it interrupts."""
    kernel, refusals = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"], list[str]()
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        x, steps = gpu.buffer(np.arange(1, 9, dtype=np.uint32)), gpu.empty(8, np.uint32)
        prepared, execute = gpu.prepare(kernel, x, steps, global_size=8), gpu._machine._execute

        def handled(*arguments: Any) -> softgen.Run:
            with pytest.raises(softgen.UsageError) as refused:
                prepared.run()
            refusals.append(str(refused.value))
            return execute(*arguments)

        gpu._machine._execute = handled  # type: ignore[method-assign]
        for _ in range(2):
            assert prepared.run().threads == 1
    assert len(refusals) == 2 and "a launch on this Gpu is still running" in refusals[0]


def test_decoding_that_is_left_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it needs no temporary folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    commands = softgen.decode(bytes(64), "kbl")
    assert next(commands).name == "MI_NOOP" and len(list(softgen.decode(bytes(64), "kbl"))) == 16
    del commands
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before
