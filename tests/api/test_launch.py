"""`Gpu.launch` with kernels that ocloc compiled: arguments, images, local memory, program data, from both containers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import softgen
from softgen.api.kernels import chosen_local_size, value_bytes
from softgen.eu.binary import Argument
from tests.api import cases
from tests.conftest import ROOT, SHARED, needs_shared

COLLATZ = ROOT / "tests" / "data" / "kernels" / "cf_collatz.kbl.bin"
GPUS = ("bdw", "kbl", "icllp")
LONG = {"app_nqueens"}
# Every case once in the quick run, GPUs and containers in turn; `make witness` takes all combinations.
TURNS = [(gpu, container) for gpu in GPUS for container in cases.CONTAINERS]


def rotated() -> list[tuple[str, str, str]]:
    return [(name, *TURNS[number % len(TURNS)]) for number, name in enumerate(cases.names()) if name not in LONG]


def check(name: str, gpu: str, container: str, engine: str) -> None:
    if not cases.file(name, gpu, container).exists():
        pytest.skip(f"{name} was not built for {gpu}")
    wrong = cases.differences(name, gpu, container, engine)
    assert wrong and not any(wrong.values()), wrong


@needs_shared("kernels")
@pytest.mark.parametrize("name, gpu, container", rotated())
def test_a_kernel_computes_what_is_expected(name: str, gpu: str, container: str) -> None:
    check(name, gpu, container, "t0")


@needs_shared("kernels")
@pytest.mark.parametrize("container", cases.CONTAINERS)
@pytest.mark.parametrize("name", ["img_nearest", "img_sobel", "img_write", "slm_scan", "const_table", "cf_calls_stack", "priv_big"])
def test_images_local_memory_program_data_and_stacks(name: str, container: str) -> None:
    check(name, "kbl", container, "auto")


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("engine", ["t0", "t1", "auto"])
@pytest.mark.parametrize("container", cases.CONTAINERS)
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", cases.names())
def test_all_kernels(name: str, gpu: str, container: str, engine: str) -> None:
    check(name, gpu, container, engine)


# -- the bundled kernel ----------------------------------------------------------------------------------------------


@pytest.fixture
def collatz() -> softgen.Kernel:
    return softgen.load_kernels(COLLATZ, "kbl")["cf_collatz"]


def steps(numbers: np.ndarray) -> list[int]:
    found = []
    for number in numbers:
        x, count = (int(number) & 0xFFFF) + 1, 0
        while x != 1 and count < 500:
            x, count = (3 * x + 1 if x & 1 else x >> 1), count + 1
        found.append(count)
    return found


def test_results_appear_in_the_array_without_a_copy(collatz: softgen.Kernel) -> None:
    numbers = np.arange(40, dtype=np.uint32) * 37
    with softgen.Gpu("kbl", engine="t0", threads=1) as gpu:
        source, result = gpu.buffer(numbers), gpu.empty(40, np.uint32)
        array = result.array
        run = gpu.launch(collatz, source, result, global_size=40, local_size=20)  # 20 items: one whole thread and a part of another
        assert array.tolist() == steps(numbers) and run.threads == 4 and run.seconds > 0
        source.array[:] = 0
        gpu.launch(collatz, source, result, global_size=40)
        assert not array.any()
    assert not np.asarray(result).any()  # arrays stay valid after the GPU is closed


def test_only_the_items_asked_for_are_written(collatz: softgen.Kernel) -> None:
    with softgen.Gpu("kbl", engine="t0", threads=1) as gpu:
        source, result = gpu.buffer(np.full(64, 26, np.uint32)), gpu.buffer(np.full(64, 9999, np.uint32))
        gpu.launch(collatz, source, result, global_size=16, local_size=8, offset=8)
        assert result.array.tolist() == [9999] * 8 + [111] * 16 + [9999] * 40


def test_a_trace_of_a_launch_has_a_row_for_each_instruction(collatz: softgen.Kernel) -> None:
    with softgen.Gpu("kbl") as gpu:
        source, result = gpu.buffer(np.zeros(16, np.uint32)), gpu.empty(16, np.uint32)
        run = gpu.launch(collatz, source, result, global_size=16, trace=True)
        assert len(run.trace) == run.instructions and run.trace.thread(0)[0].offset == 0
        assert "<table>" in run.trace._repr_html_() and "<table>" in run._repr_html_()


def test_a_prepared_launch_runs_again(collatz: softgen.Kernel) -> None:
    with softgen.Gpu("kbl", engine="t0", threads=1) as gpu:
        source, result = gpu.buffer(np.full(32, 5, np.uint32)), gpu.empty(32, np.uint32)
        prepared = gpu.prepare(collatz, source, result, global_size=32, local_size=16)
        assert prepared.groups == 2
        prepared.run()
        result.array[:] = 0
        assert prepared.run().threads == 2 and result.array.tolist() == [8] * 32


@pytest.mark.parametrize("arguments, sizes, message", [
    ((), {"global_size": 16}, r"cf_collatz takes 2 arguments \(uint\* a, uint\* o\), not 0"),
    ((1, 2), {"global_size": 16}, r"argument 0 \(a\) of cf_collatz must be a Buffer, not int"),
    ((None, None, None), {"global_size": 16}, "takes 2 arguments"),
])  # fmt: skip
def test_wrong_arguments(collatz: softgen.Kernel, arguments: tuple[object, ...], sizes: dict[str, int], message: str) -> None:
    with softgen.Gpu("kbl") as gpu, pytest.raises(softgen.UsageError, match=message):
        gpu.launch(collatz, *arguments, **sizes)  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes, message", [
    ({"global_size": 16, "local_size": 5}, "must be a multiple of local_size"),
    ({"global_size": 0}, "not zero"),
    ({"global_size": (1, 2, 3, 4)}, "one to three dimensions"),
    ({"global_size": -1}, "one to three dimensions"),
    ({"global_size": 1 << 14, "local_size": 1 << 14}, "has 1024 hardware threads; Kaby Lake GT2 runs at most 56"),
])  # fmt: skip
def test_wrong_sizes(collatz: softgen.Kernel, sizes: dict[str, int], message: str) -> None:
    with softgen.Gpu("kbl") as gpu, pytest.raises(softgen.UsageError, match=message):
        buffer = gpu.empty(16, np.uint32)
        gpu.launch(collatz, buffer, buffer, **sizes)


def test_a_kernel_of_another_gpu(collatz: softgen.Kernel) -> None:
    with softgen.Gpu("icl") as gpu, pytest.raises(softgen.UsageError, match="compiled for skl kbl, not for icl"):
        gpu.launch(collatz, global_size=16)
    with pytest.raises(softgen.UsageError, match="has no kernels for icl; they are for kbl, skl"):
        softgen.load_kernels(COLLATZ, "icl")


def test_time_limit(collatz: softgen.Kernel) -> None:
    with softgen.Gpu("kbl", engine="reference") as gpu, pytest.raises(softgen.SoftgenError, match="time is up"):
        source, result = gpu.buffer(np.full(4096, 26, np.uint32)), gpu.empty(4096, np.uint32)
        gpu.launch(collatz, source, result, global_size=4096, time_limit=0.05)


@pytest.mark.parametrize("type, size, value, expected", [
    ("int", 4, -2, "feffffff"), ("uint", 4, 0xFFFFFFFE, "feffffff"), ("float", 4, 2.5, "00002040"), ("float", 4, 2, "00000040"),
    ("double", 8, 1.0, "000000000000f03f"), ("half", 2, 1.0, "003c"), ("char", 1, True, "01"), ("int", 4, np.int32(7), "07000000"),
    ("int2", 8, np.array([1, 2], np.int32), "0100000002000000"), ("", 4, 1.0, "0000803f"),
])  # fmt: skip
def test_numbers_take_the_arguments_size(type: str, size: int, value: object, expected: str) -> None:
    assert value_bytes(Argument(0, "value", "n", type, size), value).hex() == expected


@pytest.mark.parametrize("type, size, value", [("int", 4, 1 << 32), ("int", 4, 2.5), ("int", 4, np.int64(1)),
                                               ("int", 4, "text"), ("char", 1, -129)])
def test_numbers_that_do_not_fit(type: str, size: int, value: object) -> None:
    with pytest.raises(softgen.UsageError, match=r"argument 0 \(n\)"):
        value_bytes(Argument(0, "value", "n", type, size), value)


def test_a_local_size_is_chosen() -> None:
    assert chosen_local_size((1 << 20, 1, 1)) == (256, 1, 1)
    assert chosen_local_size((30, 30, 2)) == (30, 6, 1)
    assert chosen_local_size((7, 1, 1)) == (7, 1, 1)


@needs_shared("kernels")
def test_kernels_by_value_and_local() -> None:
    """Python numbers as arguments, and __local memory by size."""
    kernel = softgen.load_kernels(SHARED / "kernels" / "slm_hist" / "kbl" / "slm_hist.bin", "kbl")["slm_hist"]
    data = np.arange(2048, dtype=np.uint8)
    with softgen.Gpu("kbl", engine="t0", threads=1) as gpu:
        counts = gpu.empty(64, np.uint32)
        gpu.launch(kernel, gpu.buffer(data), counts, 8, global_size=256, local_size=64)
        assert counts.array.sum() == 2048


def test_memory_is_reused_after_free() -> None:
    with softgen.Gpu("ivb") as gpu:
        first = gpu.empty(1 << 20)
        address = first.address
        second = gpu.empty(16)
        first.free()
        assert gpu.empty(1 << 20).address == address and second.address > address
        with pytest.raises(softgen.UsageError, match="do not fit into an address space of 32 bits"):
            gpu.empty(1 << 32, np.uint8)


def test_an_unknown_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"hello")
    with pytest.raises(softgen.DecodeError, match="neither a compiled OpenCL program"):
        softgen.load_kernels(tmp_path / "x.bin")


def test_channels_without_a_work_item_are_off(collatz: softgen.Kernel) -> None:
    """20 items in SIMD16 threads: 16 and 4."""
    with softgen.Gpu("kbl") as gpu:
        source, result = gpu.buffer(np.zeros(20, np.uint32)), gpu.empty(20, np.uint32)
        trace = gpu.launch(collatz, source, result, global_size=20, local_size=20, trace=True).trace
        assert [trace.thread(number)[0].channels for number in (0, 1)] == [0xFFFF, 0xF]
