"""Parameters of hardware contexts: their defaults, what is set and read back, and what a GPU does not have."""

from __future__ import annotations

import errno
import struct
from types import SimpleNamespace

import pytest

from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.uapi import CONTEXT_PARAM, EXTENSION, SSEU
from tests.driver.ioctl.test_gem import refused
from tests.driver.program import Gpu, Held, Program, served

PARAM = "I915_CONTEXT_PARAM_"
KEPT = {"NO_ZEROMAP": 0, "NO_ERROR_CAPTURE": 0, "BANNABLE": 1, "RECOVERABLE": 1, "PERSISTENCE": 1, "PRIORITY": 0}
GET, SET = "DRM_IOCTL_I915_GEM_CONTEXT_GETPARAM", "DRM_IOCTL_I915_GEM_CONTEXT_SETPARAM"


def number(name: str) -> int:
    return int(getattr(i915, PARAM + name))


def get(program: Program, name: str, context: int = 0) -> int:
    return int(program.ioctl(GET, context=context, param=number(name)).value)


def test_parameters_are_read_back(gpu: Gpu) -> None:
    """Those of one context; another one has the defaults."""
    program = gpu.program()
    other = program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_CREATE").context
    assert {name: get(program, name) for name in KEPT} == KEPT
    for name, value in KEPT.items():
        program.ioctl(SET, context=0, param=number(name), value=1 - value)
    assert {name: get(program, name) for name in KEPT} == {name: 1 - value for name, value in KEPT.items()}
    assert {name: get(program, name, other) for name in KEPT} == KEPT
    assert get(program, "GTT_SIZE") == 1 << 48
    for name in (*KEPT, "GTT_SIZE", "VM"):
        assert program.ioctl(GET, param=number(name), size=77).size == 0, "the value is in the argument itself"
    refused(errno.ENOENT, program, GET, context=99, param=number("PRIORITY"))


CREATE, DESTROY = "DRM_IOCTL_I915_GEM_CONTEXT_CREATE", "DRM_IOCTL_I915_GEM_CONTEXT_DESTROY"


def extension(program: Program, name: int, context_param: int, value: int, after: int = 0) -> int:
    """The address of an extension that sets a parameter of a context that is created."""
    head = EXTENSION.pack(SimpleNamespace(next=after, name=name, flags=0, r0=0, r1=0, r2=0, r3=0))
    setting = CONTEXT_PARAM.pack(SimpleNamespace(context=0, size=0, param=context_param, value=value))
    return program.memory(head + setting).address


def test_a_context_is_created_with_parameters(gpu: Gpu) -> None:
    """In a chain of extensions, which are read where the flags say that there are some."""
    program = gpu.program()
    chain = extension(program, 0, number("PRIORITY"), 5, extension(program, 0, number("RECOVERABLE"), 0))
    made = program.ioctl(CREATE, flags=1, extensions=chain).context
    assert (get(program, "PRIORITY", made), get(program, "RECOVERABLE", made), get(program, "BANNABLE", made)) == (5, 0, 1)
    for flags in (0, 2):  # 2: one timeline for all its engines, which is what it has
        plain = program.ioctl(CREATE, flags=flags, extensions=8).context
        assert {name: get(program, name, plain) for name in KEPT} == KEPT
    refused(errno.EFAULT, program, CREATE, flags=1, extensions=8)
    for flags in (4, 1 << 31):
        refused(errno.EINVAL, program, CREATE, flags=flags)


@pytest.mark.parametrize("name, param, expected", [
    (0, "RINGSIZE", errno.ENODEV), (0, "BAN_PERIOD", errno.EINVAL), (1, "PRIORITY", errno.EINVAL),
])  # fmt: skip
def test_a_context_whose_parameters_are_refused_is_not_there(gpu: Gpu, name: int, param: str, expected: int) -> None:
    """Its number is that of the next one. Extension 1 would be a clone of another context."""
    program = gpu.program()
    wrong = extension(program, name, number(param), 1)
    refused(expected, program, CREATE, flags=1, extensions=extension(program, 0, number("PRIORITY"), 1, wrong))
    refused(errno.ENOENT, program, GET, context=1, param=number("PRIORITY"))
    assert program.ioctl(CREATE).context == 1


def test_contexts_are_destroyed_but_for_the_first(gpu: Gpu) -> None:
    program = gpu.program()
    made = program.ioctl(CREATE).context
    program.ioctl(DESTROY, context=made)
    for context in (made, 0, 99):
        refused(errno.ENOENT, program, DESTROY, context=context)
    assert get(program, "PRIORITY", 0) == 0


def test_an_engine_map_has_no_size_to_read(gpu: Gpu) -> None:
    assert gpu.program().ioctl(GET, param=number("ENGINES"), size=77).size == 0


@pytest.mark.parametrize("name", ["RINGSIZE", "BAN_PERIOD"])
def test_parameters_that_are_not_there(gpu: Gpu, name: str) -> None:
    """The size of a ring is none where submissions go through execlists; the ban period was removed."""
    expected = errno.ENODEV if name == "RINGSIZE" else errno.EINVAL
    refused(expected, gpu.program(), GET, param=number(name))
    for value in (0, 1):
        refused(expected, gpu.program(), SET, param=number(name), value=value)


@pytest.mark.parametrize("name", ["kbl", "hsw"])
def test_content_cannot_be_protected(name: str) -> None:
    """As where the kernel has no PXP: a context may be created without protection, and not with it."""
    with served(name, Held()) as gpu:
        program = gpu.program()
        program.ioctl(SET, param=number("PROTECTED_CONTENT"), value=0)
        refused(errno.ENODEV, program, SET, param=number("PROTECTED_CONTENT"), value=1)


@pytest.mark.parametrize("value", [0, 1])
def test_which_slices_are_used_may_be_said(gpu: Gpu, value: int) -> None:
    """It is a matter of power: all are used."""
    program = gpu.program()
    program.ioctl(SET, param=number("SSEU"), value=program.memory(SSEU.size).address * value, size=SSEU.size * value)


def test_old_gpus_have_neither_priorities_nor_address_spaces_nor_slices_to_choose() -> None:
    with served("hsw", Held()) as gpu:
        program = gpu.program()
        for name in ("PRIORITY", "VM", "SSEU"):
            for value in (0, 1):
                refused(errno.ENODEV, program, SET, param=number(name), value=value)
        for name in ("VM", "SSEU"):
            refused(errno.ENODEV, program, GET, param=number(name))
        refused(errno.ENODEV, program, "DRM_IOCTL_I915_GEM_VM_CREATE")


def test_an_address_space_is_named_and_used(gpu: Gpu) -> None:
    program = gpu.program()
    refused(errno.ENOENT, program, SET, param=number("VM"), value=99)
    vm, node = program.ioctl("DRM_IOCTL_I915_GEM_VM_CREATE").vm, next(iter(gpu.server.nodes.values()))
    program.ioctl(SET, param=number("VM"), value=vm)
    assert node.contexts.items[0].vm is node.vms.items[vm] is node.vms.items[get(program, "VM")]


def test_slices_and_execution_units_are_those_of_the_gpu(gpu: Gpu) -> None:
    program, device = gpu.program(), gpu.shared.device
    assert program.ioctl(GET, param=number("SSEU")).size == SSEU.size
    room = program.memory(SSEU.pack(SimpleNamespace(**dict.fromkeys(SSEU.names, 0))))
    program.ioctl(GET, param=number("SSEU"), size=SSEU.size, value=room.address)
    found = SSEU.unpack(bytes(room))
    slices, subslices, eus = (device.limit(name) for name in ("slices", "subslices", "eus"))
    assert (found.slices.bit_count(), found.subslices.bit_count() * slices) == (slices, subslices)
    assert found.eus_min == found.eus_max == eus // subslices
    value = program.memory(4)
    for param, count in ((i915.I915_PARAM_SLICE_MASK, slices), (i915.I915_PARAM_SUBSLICE_MASK, subslices // slices)):
        program.ioctl("DRM_IOCTL_I915_GETPARAM", param=param, value=value.address)
        assert struct.unpack("<i", bytes(value))[0] == (1 << count) - 1
