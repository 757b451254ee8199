"""`Gpu.launch` with kernels that ocloc compiled: arguments, images, local memory, program data, from both containers."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softgen
from softgen.api.kernels import Grid, Value, chosen_local_size, cross_thread, local_ids, local_memory, value_bytes
from softgen.api.memory import Addressing
from softgen.eu.binary import Argument
from softgen.eu.binary.launch import BinaryKernel, InlineSampler, Launch, PayloadValue, Relocation
from tests.api import cases
from tests.conftest import ROOT, SHARED, every, needs_shared

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
@pytest.mark.parametrize("name, gpu, container", every(3, rotated()))
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
        run = gpu.launch(collatz, source, result, global_size=(16, 2, 3), local_size=(16, 1, 1), trace=True)
        assert list(dict.fromkeys(row.group for row in run.trace)) == [(0, y, z) for z in range(3) for y in range(2)]


def test_a_prepared_launch_runs_again(collatz: softgen.Kernel) -> None:
    with softgen.Gpu("kbl", engine="t0", threads=1) as gpu:
        source, result = gpu.buffer(np.full(32, 5, np.uint32)), gpu.empty(32, np.uint32)
        prepared = gpu.prepare(collatz, source, result, global_size=32, local_size=16)
        assert prepared.groups == 2
        prepared.run()
        result.array[:] = 0
        run = prepared.run()
        assert run.threads == 2 and not run.trace and result.array.tolist() == [8] * 32


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
    ("int2", 8, np.array([1, 2], np.int32), "0100000002000000"), ("", 4, 1.0, "0000803f"), ("int", 4, 0, "00000000"),
    ("uchar", 1, 255, "ff"), ("char", 1, -128, "80"), ("int", 4, False, "00000000"), ("", 4, 1, "01000000"),
    ("struct", 3, b"abc", "616263"),
])  # fmt: skip
def test_numbers_take_the_arguments_size(type: str, size: int, value: object, expected: str) -> None:
    assert value_bytes(Argument(0, "value", "n", type, size), value).hex() == expected


@pytest.mark.parametrize("type, size, value", [("int", 4, 1 << 32), ("int", 4, 2.5), ("int", 4, np.int64(1)),
                                               ("int", 4, "text"), ("char", 1, -129), ("char", 1, 256),
                                               ("half", 2, 65520.0), ("", 3, 1.0), ("struct", 3, b"ab")])
def test_numbers_that_do_not_fit(type: str, size: int, value: object) -> None:
    with pytest.raises(softgen.UsageError, match=r"argument 0 \(n\)"):
        value_bytes(Argument(0, "value", "n", type, size), value)


@pytest.mark.parametrize("simd, row", [(8, 32), (16, 32), (32, 64)])
def test_local_ids_are_words_in_rows_of_x_y_and_z(simd: int, row: int) -> None:
    """A register each, two of them in SIMD32; the last thread may have fewer items."""
    found = local_ids(Grid((5, 4, 3), (5, 4, 3)), simd)
    assert len(found) == -(-60 // simd) and {len(thread) for thread in found} == {3 * row}
    items = []
    for number, thread in enumerate(found):
        x, y, z = (np.frombuffer(thread, np.uint16).reshape(3, -1)[axis] for axis in range(3))
        count = min(simd, 60 - simd * number)
        items += list(zip(x[:count].tolist(), y[:count].tolist(), z[:count].tolist(), strict=True))
        assert not x[count:].any() and not y[count:].any() and not z[count:].any()
    assert items == [(x, y, z) for z in range(3) for y in range(4) for x in range(5)]


def test_a_local_size_is_chosen() -> None:
    assert chosen_local_size((1 << 20, 1, 1)) == (256, 1, 1)
    assert chosen_local_size((30, 30, 2)) == (30, 6, 1)
    assert chosen_local_size((7, 1, 1)) == (7, 1, 1)
    assert chosen_local_size((64, 5, 9)) == (64, 1, 3) and chosen_local_size((257, 257, 256)) == (1, 1, 256)
    assert chosen_local_size((0, 5, 0)) == (1, 5, 1), "a size of 0 has no groups"


# -- payloads and program data, of kernels whose launch description is written here --------------------------------------


def described(launch: Launch, code: bytes = bytes(16)) -> softgen.Kernel:
    return softgen.Kernel(BinaryKernel("k", code, 16, 9.0, "zebin", describe=lambda: launch))


def test_a_kernel_shows_its_arguments_in_a_table() -> None:
    arguments = Argument(0, "buffer", "a", "uint*", surface=0), Argument(1, "value", "n", "int", 4), Argument(2, "image", "<b>", surface=3)
    kernel = described(Launch(arguments, (), 64))
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", kernel._repr_html_())
    assert cells == ["0", "a", "uint*", "buffer", "", "0", "1", "n", "int", "value", "4", "", "2", "&lt;b&gt;", "", "image", "", "3"]
    assert "Kernel(&#x27;k&#x27;, SIMD16, 16 bytes, " in kernel._repr_html_()


def payload(argument: Argument, value: Value, *kinds: str) -> list[int]:
    """Dwords of a payload: properties of one argument."""
    slots = tuple(PayloadValue(kind, 4 * number, 4, 0) for number, kind in enumerate(kinds))
    kernel = described(Launch((argument,), slots, 64))
    data = cross_thread(kernel, [value], Grid((1, 1, 1), (1, 1, 1)), {}, {})
    return list(struct.unpack(f"<{len(kinds)}I", data[: 4 * len(kinds)]))


@pytest.mark.parametrize("shape, dtype, options, order, type", [  # CL_R, CL_RG and CL_RGBA; CL_SNORM_INT8 to CL_FLOAT (cl.h)
    ((2, 3), np.int8, {"normalized": True}, 0x10B0, 0x10D0), ((2, 3), np.int16, {"normalized": True}, 0x10B0, 0x10D1),
    ((2, 3, 4), np.uint8, {"normalized": True}, 0x10B5, 0x10D2), ((2, 3, 2), np.uint16, {"normalized": True}, 0x10B2, 0x10D3),
    ((2, 3, 2), np.int8, {}, 0x10B2, 0x10D7), ((2, 3), np.int16, {}, 0x10B0, 0x10D8), ((2, 3), np.int32, {}, 0x10B0, 0x10D9),
    ((2, 3), np.uint8, {}, 0x10B0, 0x10DA), ((2, 3), np.uint16, {}, 0x10B0, 0x10DB), ((2, 3, 4), np.uint32, {}, 0x10B5, 0x10DC),
    ((2, 3), np.float16, {}, 0x10B0, 0x10DD), ((2, 3, 2), np.float32, {}, 0x10B2, 0x10DE),
    ((2, 3), np.uint32, {"format": "R11G11B10_FLOAT"}, 0, 0),  # OpenCL has no such image
])  # fmt: skip
def test_the_format_of_an_image_in_a_payload(shape: tuple[int, ...], dtype: type, options: dict[str, Any], order: int, type: int) -> None:
    with softgen.Gpu("kbl") as gpu:
        image = gpu.image(np.zeros(shape, dtype), **options)
        assert payload(Argument(0, "image"), image, "image_channel_order", "image_channel_data_type") == [order, type]


@pytest.mark.parametrize("shape, layered, expected", [((2, 3), False, [3, 2, 0, 0]), ((5, 2, 3), False, [3, 2, 5, 0]),
                                                      ((5, 2, 3), True, [3, 2, 0, 5])])  # fmt: skip
def test_the_size_of_an_image_in_a_payload(shape: tuple[int, ...], layered: bool, expected: list[int]) -> None:
    """Levels and samples of a texel are counted where there are several, which images here have not."""
    kinds = ("image_width", "image_height", "image_depth", "image_array_size", "image_num_samples", "image_num_mip_levels")
    with softgen.Gpu("kbl") as gpu:
        assert payload(Argument(0, "image"), gpu.image(np.zeros(shape, np.uint8), layered=layered), *kinds) == [*expected, 0, 0]


@pytest.mark.parametrize("addressing, code", [("none", 0x1130), ("clamp_edge", 0x1131), ("clamp_border", 0x1132), ("repeat", 0x1133),
                                              ("mirror", 0x1134)])  # fmt: skip
def test_a_sampler_in_a_payload(addressing: Addressing, code: int) -> None:
    """CL_ADDRESS_NONE and following; what nearest samples outside the border need is said for these alone."""
    kinds = ("sampler_address", "sampler_normalized", "sampler_snap_wa")
    for normalized, filter in ((False, "linear"), (True, "nearest")):
        snaps = 0xFFFFFFFF if (filter, addressing) == ("nearest", "clamp_border") else 0
        sampler = softgen.Sampler(filter, addressing, normalized)  # type: ignore[arg-type]
        assert payload(Argument(0, "sampler"), sampler, *kinds) == [code, normalized, snaps]


def test_a_buffer_in_a_payload() -> None:
    """Its address; the offset is that of the buffer in itself."""
    with softgen.Gpu("ivb") as gpu:
        buffer = gpu.empty(4)
        assert payload(Argument(0, "buffer"), buffer, "buffer_address", "buffer_offset") == [buffer.address, 0]
        with pytest.raises(softgen.Unsupported, match="k: its payload has a value 'buffer_colour'"):
            payload(Argument(0, "buffer"), buffer, "buffer_colour")


def test_a_range_without_an_offset_begins_at_zero() -> None:
    assert payload(Argument(0, "value", "n", "int", 4), 7, "arg_byvalue", "global_id_offset") == [7, 0]


@pytest.mark.parametrize("sizes, expected", [
    ((16, 8, 4), Grid((16, 1, 1), (8, 1, 1), (4, 0, 0), 1)), (((16, 6), (8, 3), (4, 5)), Grid((16, 6, 1), (8, 3, 1), (4, 5, 0), 2)),
    (((4, 6, 8), (2, 3), 0), Grid((4, 6, 8), (2, 3, 1), (0, 0, 0), 3)), ((16, None, (1, 2, 3)), Grid((16, 1, 1), (16, 1, 1), (1, 2, 3), 1)),
])  # fmt: skip
def test_dimensions_that_are_not_given_have_one_item_and_no_offset(sizes: tuple[Any, Any, Any], expected: Grid) -> None:
    with softgen.Gpu("kbl") as gpu:
        assert gpu._grid(described(Launch()), *sizes) == expected


def test_a_kernel_may_require_its_local_size() -> None:
    kernel = described(Launch(required_local_size=(8, 2, 1)))
    with softgen.Gpu("kbl") as gpu:
        for given in (None, (8, 2)):
            assert gpu._grid(kernel, (16, 4), given, 0).local_size == (8, 2, 1)
        with pytest.raises(softgen.UsageError, match=r"k requires local_size \(8, 2, 1\), not \(4, 4, 1\)"):
            gpu._grid(kernel, (16, 4), (4, 4), 0)
        with pytest.raises(softgen.UsageError, match=r"global_size \(16, 3, 1\) must be a multiple of local_size \(8, 2, 1\)"):
            gpu._grid(kernel, (16, 3), None, 0)


def test_a_launch_has_groups_in_three_dimensions(collatz: softgen.Kernel) -> None:
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        x = gpu.empty(64, np.uint32)
        assert gpu.prepare(collatz, x, x, global_size=(32, 2, 3), local_size=(16, 1, 1)).groups == 12


def test_relocations_store_addresses_of_program_data() -> None:
    """Both halves; of constant and of global data."""
    places = (Relocation(0, "constant", 8, 4), Relocation(4, "constant", 8, 4, 32), Relocation(8, "global", 4, 8))
    kernel = described(Launch(relocations=places, constant_data=b"abcdefghijkl", global_data=b"xyz"))
    with softgen.Gpu("kbl") as gpu:
        bases = gpu._program_data(kernel)
        gpu._heap.allocate(1 << 32, "so that addresses have an upper half")
        other = described(Launch(relocations=places, constant_data=b"abcdefghijkl", global_data=b"xyz"))
        above = gpu._program_data(other)
        for made, at in ((kernel, bases), (other, above)):
            low, high, whole = struct.unpack("<IIQ", gpu._relocated(made))
            assert low | high << 32 == at["const_base"] + 8 and whole == at["global_base"] + 4
        assert gpu._heap.space.read(bases["const_base"], 12) == b"abcdefghijkl"


def test_kernels_without_program_data_take_no_memory_for_it() -> None:
    with softgen.Gpu("kbl") as gpu:
        assert gpu._program_data(described(Launch())) == {"const_base": 0, "global_base": 0, "private_base_stateless": 0}
        assert not gpu._data


def test_samplers_of_arguments_and_of_the_program_have_their_places_in_one_table() -> None:
    """A place that nothing has is zero; a state that the container holds is taken as it is. Samplers of the payload alone have none."""
    own = (InlineSampler(0, "repeat", "linear", True), InlineSampler(3, state=b"state of sampler"))
    kernel = described(Launch((Argument(0, "sampler", sampler=1), Argument(1, "sampler"), Argument(2, "value")), samplers=own))
    with softgen.Gpu("kbl") as gpu:
        given = softgen.Sampler("linear", "mirror", True)
        first = gpu._packer.sampler(softgen.Sampler("linear", "repeat", True))
        assert gpu._samplers(kernel, [given, given, 5]) == [first, gpu._packer.sampler(given), bytes(16), b"state of sampler"]
        assert gpu._samplers(described(Launch()), []) == []


@pytest.mark.parametrize("own, alignments, sizes, offsets, whole", [
    (0, (4,), (100,), [0], 100), (5, (4, 16), (6, 3), [8, 16], 19), (16, (16, 16), (16, 0), [16, 32], 32), (1, (128,), (1,), [128], 129)])
def test_local_arguments_follow_the_local_variables_of_the_kernel(own: int, alignments: tuple[int, ...], sizes: tuple[int, ...],
                                                                  offsets: list[int], whole: int) -> None:  # fmt: skip
    declared = tuple(Argument(2 * number, "local", alignment=alignment) for number, alignment in enumerate(alignments))
    given: list[Value] = [1] * (2 * len(declared) - 1)  # values between them, which take no local memory
    given[::2] = [softgen.Local(size) for size in sizes]
    assert local_memory(described(Launch(declared, local_bytes=own)), given) == (
        {2 * number: offset for number, offset in enumerate(offsets)}, whole)  # fmt: skip


def test_a_launch_leaves_only_its_arguments_and_what_is_used_again(collatz: softgen.Kernel) -> None:
    """Code and scratch space stay; the state of a launch does not, whether it faults or not."""
    stop = softgen.assemble("(W) mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud\n(W) send (8|M0) null r127 0x27 0x02000010 {EOT}", "kbl")
    with softgen.Gpu("kbl", engine="t0", threads=1) as gpu:
        x = gpu.empty(16, np.uint32)
        gpu.launch(collatz, x, x, global_size=16)
        gpu.execute(stop)
        before = list(gpu._heap._live)
        gpu.launch(collatz, x, x, global_size=16, time_limit=600)
        gpu.execute(stop, time_limit=600)
        for call in (lambda: gpu.launch(collatz, x, x, global_size=16, on_fault="no"), lambda: gpu.execute(stop, on_fault="no")):  # type: ignore[arg-type]
            with pytest.raises(softgen.UsageError):
                call()
        assert list(gpu._heap._live) == before and len(before) == 4  # the buffer, two pieces of code, scratch space


def test_threads_without_local_ids_have_one_register_each() -> None:
    """20 items in SIMD16 threads are two threads all the same."""
    code = softgen.assemble("(W) mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud\n(W) send (8|M0) null r127 0x27 0x02000010 {EOT}", "kbl")
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        assert gpu.launch(described(Launch(local_ids=False), code), global_size=40, local_size=20).threads == 4


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
