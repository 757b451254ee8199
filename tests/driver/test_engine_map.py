"""I915_CONTEXT_PARAM_ENGINES: the engines a context's submissions name by number, and entries balanced between siblings."""

from __future__ import annotations

import errno
import struct
from types import SimpleNamespace

import pytest

from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.uapi import EXTENSION, LOAD_BALANCE
from tests.driver.execbuffer import buffer, refused, row, submit
from tests.driver.program import Gpu, Held, Program, served

RENDER, COPY, VIDEO, NONE = (0, 0), (1, 0), (2, 0), (0xFFFF, 0xFFFF)


def balanced(program: Program, index: int, *siblings: tuple[int, int], after: int = 0, name: int = 0, **fields: int) -> int:
    """The address of an extension that balances an entry between siblings."""
    head = EXTENSION.pack(SimpleNamespace(next=after, name=name, flags=0, r0=0, r1=0, r2=0, r3=0))
    balance = SimpleNamespace(**{"index": index, "siblings": len(siblings), "flags": 0, "zero": 0, **fields})
    return program.memory(head + LOAD_BALANCE.pack(balance) + pairs(*siblings)).address


def pairs(*engines: tuple[int, int]) -> bytes:
    return b"".join(struct.pack("<HH", *engine) for engine in engines)


def set_map(program: Program, data: bytes) -> None:
    fields = {"param": i915.I915_CONTEXT_PARAM_ENGINES, "size": len(data), "value": program.memory(data).address}
    program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_SETPARAM", context=0, **fields)


def engine_map(program: Program, *engines: tuple[int, int], chain: int = 0) -> None:
    """Sets the engines of the first context."""
    set_map(program, struct.pack("<Q", chain) + pairs(*engines))


def error(program: Program, *engines: tuple[int, int], chain: int = 0) -> int | None:
    """The error number with which a map is refused."""
    with pytest.raises(OSError) as found:
        engine_map(program, *engines, chain=chain)
    return found.value.errno


def test_an_engine_map_says_where_work_goes(gpu: Gpu, held: Held) -> None:
    program = gpu.program()
    handle = buffer(program)
    engine_map(program, COPY, NONE, RENDER, chain=balanced(program, 1, VIDEO))
    for index in range(3):
        submit(program, [row(handle)], flags=index)
    assert [submission.engine for submission in held.submissions] == ["bcs0", "vcs0", "rcs0"]
    refused(errno.EINVAL, program, [row(handle)], flags=3)


@pytest.mark.parametrize("engine", [(2, 1), (4, 0), (0xFFFF, 0), (0xFFFF, 0xFFFE), (0, 0xFFFF)])
def test_an_entry_is_an_engine_of_the_gpu_or_none(gpu: Gpu, engine: tuple[int, int]) -> None:
    """None is both numbers, I915_ENGINE_CLASS_INVALID and I915_ENGINE_CLASS_INVALID_NONE."""
    assert error(gpu.program(), RENDER, engine) == errno.ENOENT


def test_a_map_has_whole_entries_as_many_as_a_submission_can_name(gpu: Gpu) -> None:
    """64: the bits of I915_EXEC_RING_MASK. None at all is a map, too; a context without a map has a size of 0."""
    program = gpu.program()
    handle = buffer(program)
    engine_map(program)
    refused(errno.EINVAL, program, [row(handle)], flags=0)
    engine_map(program, *[RENDER] * 64)
    submit(program, [row(handle)], flags=63)
    for size in (4, 7, 9, 10, 11, 8 + 65 * 4):
        with pytest.raises(OSError, match="Invalid"):
            set_map(program, bytes(size))
    submit(program, [row(handle)], flags=63)  # a map that is refused leaves the old one
    program.ioctl("DRM_IOCTL_I915_GEM_CONTEXT_SETPARAM", context=0, param=i915.I915_CONTEXT_PARAM_ENGINES)
    refused(errno.EINVAL, program, [row(handle)], flags=63)
    submit(program, [row(handle)], flags=1)


@pytest.mark.parametrize("siblings", [[VIDEO, (2, 1)], [VIDEO, COPY], [VIDEO, NONE], [(9, 0)], [VIDEO, VIDEO]])
def test_an_entry_is_balanced_between_engines_of_one_class_that_are_there(gpu: Gpu, siblings: list[tuple[int, int]]) -> None:
    """No GPU here has two of a class."""
    program = gpu.program()
    assert error(program, NONE, chain=balanced(program, 0, *siblings)) == errno.EINVAL


def test_an_entry_balanced_between_no_engines_stays_without_one(gpu: Gpu, held: Held) -> None:
    """Nothing is to be done; a later extension may still give it siblings."""
    program = gpu.program()
    handle = buffer(program)
    engine_map(program, RENDER, NONE, chain=balanced(program, 1))
    refused(errno.EINVAL, program, [row(handle)], flags=1)
    engine_map(program, RENDER, NONE, chain=balanced(program, 1, after=balanced(program, 1, VIDEO)))
    submit(program, [row(handle)], flags=1)
    assert [submission.engine for submission in held.submissions] == ["vcs0"]


@pytest.mark.parametrize("siblings", [(), (VIDEO,), ((9, 0),)])
@pytest.mark.parametrize("index, fields, expected", [
    (2, {}, errno.EINVAL), (0xFFFF, {}, errno.EINVAL),  # no such entry
    (0, {}, errno.EEXIST), (0, {"flags": 1}, errno.EEXIST),  # it has an engine
    (1, {"flags": 1}, errno.EINVAL), (1, {"zero": 1 << 63}, errno.EINVAL),
])  # fmt: skip
def test_the_entry_is_checked_before_the_siblings(
    gpu: Gpu, siblings: tuple[tuple[int, int], ...], index: int, fields: dict[str, int], expected: int
) -> None:
    program = gpu.program()
    assert error(program, RENDER, NONE, chain=balanced(program, index, *siblings, **fields)) == expected


def test_an_entry_that_was_balanced_has_an_engine(gpu: Gpu) -> None:
    program = gpu.program()
    assert error(program, NONE, chain=balanced(program, 0, VIDEO, after=balanced(program, 0, VIDEO))) == errno.EEXIST


def test_other_extensions_of_a_map_are_refused(gpu: Gpu) -> None:
    """Such as I915_CONTEXT_ENGINES_EXT_BOND (1)."""
    program = gpu.program()
    assert error(program, NONE, chain=balanced(program, 0, VIDEO, name=1)) == errno.EINVAL


def test_gpus_without_execlists_balance_nothing() -> None:
    with served("hsw", held := Held()) as gpu:
        program = gpu.program()
        for index in (0, 9):
            assert error(program, NONE, chain=balanced(program, index, VIDEO)) == errno.ENODEV
        engine_map(program, VIDEO)
        submit(program, [row(buffer(program))], flags=0)
        assert [submission.engine for submission in held.submissions] == ["vcs0"]


@pytest.mark.parametrize("address", [0x10000, 1 << 47, 1 << 56, 1 << 63, (1 << 64) - 64])
def test_extensions_of_a_map_are_where_it_says(gpu: Gpu, address: int) -> None:
    """All 64 bits of their address count: the program has no memory there."""
    assert error(gpu.program(), RENDER, chain=address) == errno.EFAULT
