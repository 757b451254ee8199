"""Mistakes in calls of the Python interface: each raises UsageError with what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import softgen
from softgen.api.checks import check_numbers, triple
from softgen.api.kernels import value_bytes
from softgen.eu.binary import Argument
from tests.conftest import ROOT

COLLATZ = ROOT / "tests" / "data" / "kernels" / "cf_collatz.kbl.bin"
CODE = softgen.assemble("(W) mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud\n(W) send (8|M0) null r127 0x27 0x02000010 {EOT}", "kbl")


@pytest.fixture(scope="module")
def gpu() -> Iterator[softgen.Gpu]:
    with softgen.Gpu("kbl", engine="reference", threads=1) as found:
        yield found


def refused(expected: str, call: Callable[..., Any], *args: Any, **options: Any) -> None:
    with pytest.raises(softgen.UsageError) as error:
        call(*args, **options)
    assert expected in str(error.value)


@pytest.mark.parametrize("options, expected", [
    ({"threads": "2"}, "host threads are 1 or more, not '2'"), ({"on_fault": "ignore"}, "on_fault is 'raise' or 'collect'")])  # fmt: skip
def test_a_gpu_with_wrong_options(options: dict[str, Any], expected: str) -> None:
    refused(expected, softgen.Gpu, "kbl", **options)


@pytest.mark.parametrize("shape", [-1, (4, -1), 4.5, "4", None])
def test_wrong_shapes(gpu: softgen.Gpu, shape: Any) -> None:
    refused("a shape is a number of elements", gpu.empty, shape)


def test_shapes_of_numpy_integers_and_odd_arrays(gpu: softgen.Gpu) -> None:
    assert gpu.empty(np.int64(4)).shape == (4,)
    assert gpu.buffer(np.arange(16).reshape(4, 4)[:, ::2]).array.tolist() == [[0, 2], [4, 6], [8, 10], [12, 14]]
    refused("not understood", gpu.empty, 4, "no_such_type")
    refused("inhomogeneous", gpu.buffer, [[1], [1, 2]])


def test_images_larger_than_surface_state_can_say(gpu: softgen.Gpu) -> None:
    refused("an image's width is at most 16,384 on Kaby Lake GT2, not 16,385", gpu.image, np.zeros((1, 16385), np.uint8))
    assert gpu.image(np.zeros((1, 16384), np.uint8)).size == (16384, 1)


@pytest.mark.parametrize("size", ["64", 64.0, (64.5,), None, (), (1, 1, 1, 1), -1, True])
def test_wrong_global_sizes(gpu: softgen.Gpu, size: Any) -> None:
    kernel, x = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"], gpu.empty(64, np.uint32)
    refused("global_size has one to three dimensions of 32 bits", gpu.launch, kernel, x, x, global_size=size)


def test_kernels_by_name_and_by_path(gpu: softgen.Gpu) -> None:
    kernels = softgen.load_kernels(COLLATZ, "kbl")
    refused("no kernel is called 'collatz'; there are cf_collatz", kernels.__getitem__, "collatz")
    assert "collatz" not in kernels and kernels.get("collatz") is None
    refused("not str", gpu.launch, "cf_collatz", global_size=1)
    refused("cannot be read: No such file", softgen.load_kernels, "/no/such/file")
    refused("a path or bytes, not int", softgen.load_kernels, 3)


@pytest.mark.parametrize("options, expected", [
    ({"surfaces": [np.zeros(4)]}, "surfaces[0] must be Buffer or Image or None, not ndarray"), ({"surfaces": 3}, "surfaces is a list"),
    ({"samplers": [3]}, "samplers[0] must be Sampler, not int"), ({"payload": "text"}, "a payload is an array of numbers"),
    ({"payload": [object()]}, "a payload is an array of numbers"), ({"threads": 1 << 40}, "threads is a number of at most 32 bits"),
    ({"threads": 2.0}, "threads is a number"), ({"local_bytes": -1}, "local_bytes is a number"),
    ({"scratch_bytes": -1}, "scratch_bytes is a number")])  # fmt: skip
def test_wrong_options_of_execute(gpu: softgen.Gpu, options: dict[str, Any], expected: str) -> None:
    refused(expected, gpu.execute, CODE, **options)


def test_sizes_and_counts_have_32_bits() -> None:
    check_numbers(none=0, most=0xFFFFFFFF, numpy=np.int64(7))
    assert triple(0xFFFFFFFF, 1, "size") == ((0xFFFFFFFF, 1, 1), 1) and triple((0, np.int32(2)), 5, "size") == ((0, 2, 5), 2)
    assert triple(np.array([1, 2, 3]), 5, "size") == ((1, 2, 3), 3)
    for number in (1 << 32, -1, True, 1.0):
        refused(f"n is a number of at most 32 bits, not {number!r}", check_numbers, fine=1, n=number)
        refused("size has one to three dimensions of 32 bits", triple, (1, number), 1, "size")


@pytest.mark.parametrize("code", ["mov", 5, [1, 2], None])
def test_code_is_bytes(gpu: softgen.Gpu, code: Any) -> None:
    refused("code is bytes", gpu.execute, code)
    if code is not None:
        refused("machine code is bytes", softgen.disassemble, code, "kbl")


def test_memory_of_another_gpu(gpu: softgen.Gpu) -> None:
    kernel = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"]
    with softgen.Gpu("kbl", threads=1) as other:
        foreign, own = other.empty(64, np.uint32), gpu.empty(64, np.uint32)
        refused("argument 1 (o) of cf_collatz belongs to another Gpu", gpu.launch, kernel, own, foreign, global_size=64)
        refused("surfaces[1] belongs to another Gpu", gpu.execute, CODE, surfaces=[own, foreign])


def test_a_closed_gpu_says_so() -> None:
    kernel = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"]
    gpu = softgen.Gpu("kbl", engine="reference", threads=1)
    x = gpu.buffer(np.arange(4, dtype=np.uint32))
    prepared = gpu.prepare(kernel, x, x, global_size=4)
    gpu.close()
    gpu.close()
    for call in (lambda: gpu.empty(4), lambda: gpu.image(np.zeros((2, 2), np.uint8)), lambda: gpu.execute(CODE),
                 lambda: gpu.launch(kernel, x, x, global_size=4)):  # fmt: skip
        refused("this Gpu is closed", call)
    refused("its Gpu is closed", prepared.run)
    assert x.array.tolist() == [0, 1, 2, 3]
    assert gpu._heap.space.extent(x.address, 16) == 0
    with softgen.Gpu("kbl") as other:
        pass
    refused("this Gpu is closed", other.empty, 4)


def test_memory_freed_twice_leaves_its_successor_mapped(gpu: softgen.Gpu) -> None:
    kernel = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"]
    first = gpu.empty(64, np.uint32)
    first.free()
    second = gpu.empty(64, np.uint32)
    assert second.address == first.address
    first.free()
    assert gpu._heap.space.extent(second.address, 256) == 256
    prepared = gpu.prepare(kernel, second, second, global_size=64)
    prepared.free()
    refused("this launch was freed", prepared.run)


@pytest.mark.parametrize("type, value, expected", [
    ("int", np.float32(2.5), "argument 1 (n) is int, not float32"), ("float", np.int32(2), "argument 1 (n) is float, not int32"),
    ("uint2", np.zeros(2, np.float32), "is uint2, not float32")])  # fmt: skip
def test_numpy_scalars_are_not_reinterpreted(type: str, value: Any, expected: str) -> None:
    refused(expected, value_bytes, Argument(1, "value", "n", type, value.nbytes), value)
    assert value_bytes(Argument(1, "value", "n", "", value.nbytes), value) == value.tobytes()  # a type that is not known


def test_local_and_sampler_values() -> None:
    refused("a number of bytes, not -4", softgen.Local, -4)
    refused("filter of a sampler is one of nearest linear, not 'cubic'", softgen.Sampler, filter="cubic")
    refused("addressing of a sampler is one of", softgen.Sampler, addressing="wrap")


def test_text_names_and_batches() -> None:
    refused("assembly is text", softgen.assemble, b"mov", "kbl")
    refused("a name is text", softgen.spec, None, "kbl")
    refused("softgen.decode takes bytes", softgen.open, bytes(8))
    refused("name it with gpu=", softgen.decode, bytes(8))
    refused("whole dwords, not 7 bytes", softgen.decode, bytes(7), "kbl")
    assert [command.name for command in softgen.decode(bytearray(4), "kbl")] == ["MI_NOOP"]


@pytest.mark.parametrize("shape, dtype, expected", [
    (4, "V0", "elements of |V0 have no bytes"), (4, "S", "have no bytes"), (4, "U", "have no bytes"), (4, "i4,,,", "dtype: "),
    (4, {"names": ["a"], "formats": ["u1"], "offsets": [-3]}, "dtype: offset -3 cannot be negative"),
    ((1 << 62, 1 << 62, 0), "u1", "shape: "), ((1,) * 70, "u1", "shape: maximum supported dimension"),
])  # fmt: skip
def test_arrays_that_numpy_does_not_have(gpu: softgen.Gpu, shape: Any, dtype: Any, expected: str) -> None:
    """Memory that was taken for one is free again."""
    before = gpu.empty(1)
    before.free()
    refused(expected, gpu.empty, shape, dtype)
    after = gpu.empty(1)
    after.free()
    assert after.address == before.address


def test_elements_that_are_arrays(gpu: softgen.Gpu) -> None:
    found = gpu.empty(3, (np.int32, (2, 4)))
    assert found.shape == (3, 2, 4) and found.dtype == np.int32 and found.nbytes == 96


@pytest.mark.parametrize("seconds", ["1", float("nan"), 1e30, 10**400, [1], True])
def test_time_limits_that_are_none(gpu: softgen.Gpu, seconds: Any) -> None:
    refused("a time limit is a number of seconds", gpu.execute, CODE, time_limit=seconds)
    refused("a time limit is a number of seconds", softgen.open(ROOT / "tests" / "data" / "kbl-vk-compute").replay, time_limit=seconds)


def test_time_limits_of_numpy_and_without_end(gpu: softgen.Gpu) -> None:
    for seconds in (np.float32(60), 9e29, float("inf"), None):
        assert gpu.execute(CODE, time_limit=seconds).threads == 1  # type: ignore[arg-type]


def test_a_group_of_billions_is_refused_at_once(gpu: softgen.Gpu) -> None:
    """Before the numbers of its work items are written down."""
    kernel, x = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"], gpu.empty(64, np.uint32)
    refused("a group of cf_collatz has 134217728 hardware threads", gpu.launch, kernel, x, x, global_size=1 << 31, local_size=1 << 31)
    assert gpu.launch(kernel, x, x, global_size=np.array(64), local_size=np.array([64])).threads == 4  # type: ignore[arg-type]


def test_what_is_no_array_of_numbers(gpu: softgen.Gpu) -> None:
    refused("a payload is an array: setting an array element", gpu.execute, CODE, payload=[[1], [1, 2]])
    refused("a payload is an array of numbers", gpu.execute, CODE, payload=np.zeros(2, [("a", object)]))
    refused("code is bytes", gpu.execute, np.array([None]))
    refused("simd is a number", gpu.execute, CODE, simd=np.array([8, 16]))
    refused("an image is a copy of an array", gpu.image, [[1], [1, 2]])
    refused("channels is a number", gpu.image, np.zeros((2, 2), np.uint8), channels="1")
    refused("channels is a number", gpu.image, np.zeros((2, 2, 2), np.uint8), channels=2.0)
    refused("a surface format is named by text (str), not int", gpu.image, np.zeros((2, 2), np.uint8), format=5)
    refused("cannot be read: embedded null byte", softgen.load_kernels, "a\0b")
    refused("kbl has no engine 'sound'; it has render", list, softgen.decode(bytes(8), "kbl", "sound"))


def test_freed_memory_is_no_argument(gpu: softgen.Gpu) -> None:
    """Its address may already be that of the launch's own state, which a kernel would read and write without a fault."""
    kernel = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"]
    x, y, image = gpu.empty(64, np.uint32), gpu.empty(64, np.uint32), gpu.image(np.zeros((2, 2), np.uint8))
    prepared = gpu.prepare(kernel, x, y, global_size=64)
    assert prepared.run().threads == 4
    for memory in (x, image):
        memory.free()
    refused("argument 0 (a) of cf_collatz was freed", gpu.launch, kernel, x, y, global_size=64)
    refused("surfaces[1] was freed", gpu.execute, CODE, surfaces=[y, image])
    refused("an argument of this launch was freed", prepared.run)


def test_big_endian_arrays_are_converted(gpu: softgen.Gpu) -> None:
    """The GPU is little-endian."""
    kernel, numbers = softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"], np.arange(1, 17, dtype=">u4")
    x, steps = gpu.buffer(numbers), gpu.empty(16, np.uint32)
    gpu.launch(kernel, x, steps, global_size=16)
    assert x.array.tolist() == numbers.tolist() and steps.array[:4].tolist() == [1, 7, 2, 5]
    assert gpu.image(numbers.reshape(4, 4)).array.view(np.uint8)[0, 0] == 1
    assert gpu._payloads(numbers[:8], 1) == [numbers[:8].astype("<u4").tobytes()]
    assert value_bytes(Argument(1, "value", "n", "uint2", 8), numbers[:2]) == b"\1\0\0\0\2\0\0\0"
