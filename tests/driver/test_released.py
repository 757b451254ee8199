"""What a program had is released when it ends or destroys it, without the garbage collector, which may not look for long (collector.py)."""

import gc
import struct
import time
import weakref
from collections.abc import Callable, Iterator

import pytest

from softgen.driver.objects.fence import Signals
from softgen.driver.objects.vm import PlacementRequest, Vm
from softgen.memory.store import MemfdBuffer
from tests.driver.execbuffer import END, buffer, row, submit
from tests.driver.objects.test_vm import bo
from tests.driver.program import Gpu, Program, served

PATIENCE = 10.0  # seconds


@pytest.fixture
def gpu() -> Iterator[Gpu]:
    with served("kbl") as gpu:
        gc.collect()
        gc.disable()
        try:
            yield gpu
        finally:
            gc.enable()


def executed(program: Program, context: int) -> int:
    """A buffer that a batch was executed from."""
    handle = buffer(program, struct.pack("<I", END))
    submit(program, [row(handle)], context=context, size=8)
    program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=handle, timeout=-1)
    return handle


def memory_of(gpu: Gpu, handle: int) -> weakref.ref[MemfdBuffer]:
    (node,) = gpu.server.nodes.values()
    bo = node.objects.get(handle)
    assert bo is not None
    return weakref.ref(bo.pieces[0].buffer)


def soon(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def test_the_memory_of_a_program_that_ended(gpu: Gpu) -> None:
    """Its descriptors too: another program may need them."""
    program = gpu.program()
    memory = memory_of(gpu, executed(program, 0))
    assert memory() is not None
    program.close()
    assert soon(lambda: memory() is None)


def test_a_buffer_that_is_closed_after_the_context_that_used_it(gpu: Gpu) -> None:
    program = gpu.program()
    context = program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context
    handle = executed(program, context)
    memory = memory_of(gpu, handle)
    program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_DESTROY", context=context)
    program.ioctl("DRM_IOCTL_GEM_CLOSE", handle=handle)
    assert soon(lambda: memory() is None)


def test_an_address_space_that_ends_maps_nothing_more() -> None:
    """Whatever still has it: the last execution of a context, for example."""
    vm, kept = Vm("space", 48, 1 << 32, Signals()), bo(1)
    vm.place([PlacementRequest(kept, None, 0, False)])
    space = vm.space
    space.map(0x100000, kept.pieces[0].buffer)
    del vm
    assert not list(space.regions())
