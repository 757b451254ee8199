"""A KeyboardInterrupt between any two lines of the interface's own code: the Gpu can be used afterwards."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
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
