"""`Gpu.execute`: machine code without metadata on every GPU that has a walker."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import softgen
from softgen.api.gpu import SLOTS
from softgen.api.machine import TracingDispatcher
from softgen.api.run import Trace
from softgen.threads.dispatcher import EngineDispatcher
from tests.gpgpu.job import ADD, Job, stores

GPUS = ("ivb", "hsw", "bdw", "skl", "kbl", "icl")
# Each channel stores three times its payload into surface 0, at the payload as an index.
IGA = """
(W) mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
    shl (16|M0) r10.0<1>:d r1.0<8;8,1>:d 2:w
    mul (16|M0) r12.0<1>:d r1.0<8;8,1>:d 3:w
    send (16|M0) null:w r10 0xC 0x08025E00
(W) send (8|M0) null r127 0x27 0x02000010 {EOT}
"""
MESA = """
mov(8) g127<1>UD g0<8,8,1>UD { align1 WE_all 1Q };
shl(16) g10<1>D g1<8,8,1>D 2W { align1 1H };
mul(16) g12<1>D g1<8,8,1>D 3W { align1 1H };
send(16) null<1>UW g10<8,8,1>UD 0x08035e00 data MsgDesc: { align1 1H };
send(8) null<1>UW g127<8,8,1>UD 0x82000010 thread_spawner MsgDesc: { align1 WE_all 1Q EOT };
"""
# The same to stateless memory (binding table index 255), at 1 GiB from the base: nothing is there.
FAULT = IGA.replace("0x08025E00", "0x08025EFF").replace("shl (16|M0) r10.0<1>:d r1.0<8;8,1>:d 2:w", "mov (16|M0) r10.0<1>:ud 0x40000000:ud")
# Stores the group's number (r0.1) at the group's number.
GROUPS = """
(W) mov (8|M0)  r127.0<1>:ud r0.0<8;8,1>:ud
    shl (8|M0)  r10.0<1>:d r0.1<0;1,0>:d 2:w
    mov (8|M0)  r11.0<1>:d r0.1<0;1,0>:d
(W) mov (1|M0)  f0.0<1>:uw 1:uw
(f0.0) send (8|M0) null:w r10 0xC 0x04026E00
(W) send (8|M0) null r127 0x27 0x02000010 {EOT}
"""


def code(gpu: str) -> bytes:
    return softgen.assemble(MESA if gpu == "ivb" else IGA, gpu)


@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["reference", "t0", "t1", "auto"])
@pytest.mark.parametrize("gpu", GPUS)
def test_a_row_of_payload_for_each_thread(gpu: str, engine: str) -> None:
    numbers = np.random.default_rng(1).permutation(64).astype(np.int32)
    with softgen.Gpu(gpu, engine=engine, threads=1) as device:
        x = device.empty(64, np.int32)
        run = device.execute(code(gpu), threads=4, payload=numbers.reshape(4, 16), surfaces=[x])
        assert x.array.tolist() == [3 * number for number in range(64)]
        assert (run.threads, run.instructions, run.faults, run.remarks) == (4, 20, [], [])


@pytest.mark.parametrize("threads", [64, 200])
def test_payloads_of_threads_may_take_several_pages(threads: int) -> None:
    """What follows them in memory, surface states and commands, is found all the same."""
    with softgen.Gpu("kbl", engine="t0", threads=1) as gpu:
        x = gpu.empty(16 * threads, np.int32)
        run = gpu.execute(code("kbl"), threads=threads, payload=np.arange(16 * threads, dtype=np.int32).reshape(threads, 16), surfaces=[x])
        assert run.threads == threads and x.array.tolist() == [3 * number for number in range(16 * threads)]


def test_one_payload_for_all_threads_and_group_numbers() -> None:
    with softgen.Gpu("kbl", engine="t0", threads=1) as gpu:
        x = gpu.buffer(np.full(64, -1, np.int32))
        run = gpu.execute(softgen.assemble(GROUPS, "kbl"), simd=8, threads=64, surfaces=[x])
        assert x.array.tolist() == list(range(64)) and run.threads == 64


@pytest.mark.parametrize("rows", [False, True])
def test_groups_of_several_threads(rows: bool) -> None:
    """r0.1 is the group's number; payloads follow the threads through the groups."""
    with softgen.Gpu("kbl", engine="t0", threads=1) as gpu:
        x = gpu.empty(64, np.int32)
        payload = np.arange(64, dtype=np.int32).reshape(4, 16) if rows else np.arange(16, dtype=np.int32)
        run = gpu.execute(code("kbl"), threads=4, group=2, payload=payload, surfaces=[x])
        assert run.threads == 4 and x.array.tolist() == [3 * number if rows or number < 16 else 0 for number in range(64)]


@pytest.mark.parametrize("name, asked, each", [
    ("ivb", 9000, 9 << 10), ("hsw", 2048, 2 << 10), ("hsw", 9000, 16 << 10), ("kbl", 9000, 16 << 10)])  # fmt: skip
def test_every_thread_has_the_scratch_space_that_its_size_code_means(name: str, asked: int, each: int) -> None:
    """Ivy Bridge counts KiB, Haswell begins with 2 KiB, later ones with 1 KiB: a thread's space lies as far from the next one's."""
    with softgen.Gpu(name, engine="t0", threads=1) as gpu:
        gpu.execute(code(name), threads=2, payload=np.arange(32, dtype=np.int32).reshape(2, 16), surfaces=[gpu.empty(32, np.int32)],
                    scratch_bytes=asked)  # fmt: skip
        assert gpu._scratch is not None and gpu._scratch.store.size == SLOTS * each


SPILLS = """
mov(8) g127<1>UD g0<8,8,1>UD {{ align1 WE_all 1Q }};
mov(8) g20<1>UD g0<8,8,1>UD {{ align1 WE_all 1Q }};
mov(8) g21<1>UD g2<8,8,1>UD {{ align1 1Q }};
send(8) null<1>UW g20<8,8,1>UD {beyond_write:#010x} 10 MsgDesc: {{ align1 1Q }};
mov(8) g21<1>UD g1<8,8,1>UD {{ align1 1Q }};
send(8) null<1>UW g20<8,8,1>UD {last_write:#010x} 10 MsgDesc: {{ align1 1Q }};
shl(8) g10<1>D g1<8,8,1>D 2W {{ align1 1Q }};
shl(8) g12<1>D g2<8,8,1>D 2W {{ align1 1Q }};
send(8) g11<1>UW g20<8,8,1>UD {last_read:#010x} 10 MsgDesc: {{ align1 1Q }};
send(8) g13<1>UW g20<8,8,1>UD {beyond_read:#010x} 10 MsgDesc: {{ align1 1Q }};
send(8) null<1>UW g10<8,8,1>UD {store:#010x} {port} MsgDesc: {{ align1 1Q }};
send(8) null<1>UW g12<8,8,1>UD {store:#010x} {port} MsgDesc: {{ align1 1Q }};
send(8) null<1>UW g127<8,8,1>UD 0x82000010 7 MsgDesc: {{ align1 WE_all 1Q EOT }};
"""
SCRATCH_WRITE, SCRATCH_READ = 0x040E0000, 0x021C0000  # one register


def spills(gpu: str, last: int) -> bytes:
    """A kernel that writes g1 into register `last` of scratch space and g2 into the one behind it, reads both, and stores what it got
    into surface 0, where g1 and g2 say."""
    places = {"last": last, "beyond": last + 1}
    sends = {f"{name}_{what}": message | at for name, at in places.items()
             for what, message in (("write", SCRATCH_WRITE), ("read", SCRATCH_READ))}  # fmt: skip
    store = {"store": 0x04036E00, "port": 10} if gpu == "ivb" else {"store": 0x04026E00, "port": 12}
    return softgen.assemble(SPILLS.format(**sends, **store), gpu)


@pytest.mark.behaviour("KBL-DP-09", shows="action")
@pytest.mark.covering(1)
@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
@pytest.mark.parametrize("name, asked, bound", [
    ("ivb", 1024, 1024), ("ivb", 2048, 2048), ("ivb", 8192, 8192), ("hsw", 2048, 2048), ("hsw", 4096, 4096), ("hsw", 65536, 65536),
    ("bdw", 1024, 1024), ("bdw", 4096, 4096), ("skl", 8192, 8192), ("kbl", 1024, 1024), ("kbl", 32768, 32768), ("icl", 1024, 1024),
    ("icl", 16384, 16384), ("ivb", 3072, 4096), ("ivb", 12288, 16384)])  # fmt: skip
def test_scratch_space_ends_where_the_size_of_the_front_end_says(name: str, asked: int, bound: int, engine: str) -> None:
    """The last register is the thread's, one beyond is dropped and read as 0 (KBL 16394-16401), however MEDIA_VFE_STATE counts: KiB on
    Ivy Bridge, from 2 KiB on Haswell, from 1 KiB later. Headers have powers of two: Ivy Bridge's other sizes end at the next of those."""
    payload = np.random.default_rng(3).permutation(64).astype(np.int32).reshape(4, 16)
    for size in {asked, bound}:
        with softgen.Gpu(name, engine=engine, threads=1) as gpu:
            x = gpu.buffer(np.full(64, -1, np.int32))
            gpu.execute(spills(name, size // 32 - 1), simd=16, threads=4, payload=payload, surfaces=[x], scratch_bytes=asked)
            assert (x.array[payload[:, :8]] == payload[:, :8]).all()
            assert size < bound or not x.array[payload[:, 8:]].any()


def test_trace_rows() -> None:
    with softgen.Gpu("kbl") as gpu:
        x = gpu.empty(32, np.int32)
        run = gpu.execute(code("kbl"), threads=2, payload=np.arange(32, dtype=np.int32).reshape(2, 16), surfaces=[x], trace=True)
    assert len(run.trace) == 10 == run.instructions
    row = run.trace.thread(0, (1, 0, 0))[2]
    assert (row.offset, row.channels) == (0x20, 0xFFFF) and row.text.startswith("mul (16|M0)")
    assert row.registers == {"r12:d": tuple(range(48, 72, 3)), "r13:d": tuple(range(72, 96, 3))}
    assert "r12:d = 48 51" in str(row) and str(run.trace[2:3]).count("mul") == 1
    assert x.array.tolist() == [3 * number for number in range(32)]  # traced threads compute all the same


def test_threads_of_a_group_are_traced_one_after_the_other() -> None:
    """As the reference engine executes them: each until it ends or waits."""
    with softgen.Gpu("kbl") as gpu:
        run = gpu.execute(code("kbl"), threads=2, group=2, payload=np.arange(16, dtype=np.int32), surfaces=[gpu.empty(16, np.int32)],
                          trace=True)  # fmt: skip
    assert [(row.thread, row.offset) for row in run.trace] == [(thread, offset) for thread in (0, 1) for offset in range(0, 80, 16)]


@pytest.mark.parametrize("number, stored", [(0, [0, 3, 6, 9]), (1, [0] * 4), (2, [0] * 4), (8, [0] * 4)])
@pytest.mark.parametrize("gpu", ["hsw", "bdw", "kbl", "icl"])
def test_messages_to_an_entry_without_a_surface_store_nowhere(gpu: str, number: int, stored: list[int]) -> None:
    """Neither to None in the binding table, nor past its last surface."""
    program = softgen.assemble(IGA.replace("0x08025E00", f"0x08025E{number:02X}"), gpu)
    with softgen.Gpu(gpu, engine="t0", threads=1) as device:
        x, last = device.empty(16, np.int32), device.empty(16, np.int32)
        for surfaces in ([x], [x, None, None, last]):
            device.execute(program, payload=np.arange(16, dtype=np.int32), surfaces=surfaces)
            assert x.array[:4].tolist() == stored and not last.array.any()


def test_threads_without_a_thread_group_id_are_traced_by_their_number() -> None:
    """Root threads of MEDIA_OBJECT."""
    dispatcher, trace = TracingDispatcher(EngineDispatcher("t0", 1)), Trace()
    dispatcher.trace = trace
    job = Job(stores("(8|M0) r11.0<1>:ud 0x7:ud"), [bytes(4)])
    job.starts_threads = [job.pack("MEDIA_OBJECT", inline_data=[{"inline_data": 0}])] * 2
    assert job.run(groups=dispatcher).buffer(0) == (7,)
    assert [(row.group, row.thread, row.offset) for row in trace] == [((0, 0, 0), 0, offset) for offset in range(0, 80, 16)] * 2


def test_memory_of_programs_is_counted_until_the_dispatcher_is_retired() -> None:
    dispatcher, taken = TracingDispatcher(EngineDispatcher("t0", 3)), list[int]()
    dispatcher.count_memory(taken.append)
    Job(ADD, [bytes(64), bytes(64)], shared=bytes(32), own=[bytes(32)]).run(groups=dispatcher)
    assert sum(taken) > 0 and dispatcher.threads == 3 and not dispatcher.prepares  # with a trace the next draw is another
    dispatcher.retire()
    assert not sum(taken)


def test_a_fault_raises_and_names_its_place() -> None:
    with softgen.Gpu("kbl", threads=1) as gpu, pytest.raises(softgen.GpuFault) as found:
        gpu.execute(softgen.assemble(FAULT, "kbl"), threads=2, payload=np.zeros((2, 16), np.int32))
    fault = found.value
    assert fault.access == "write" and fault.address & 0x3FFFFFFF < 0x2000_0000
    assert "GPGPU_WALKER" in str(fault) and "send (16|M0)" in str(fault)


@pytest.mark.parametrize("engine", ["reference", "t0", "t1"])
def test_faults_are_collected_for_each_walker(engine: str) -> None:
    with softgen.Gpu("kbl", engine=engine, threads=1, on_fault="collect") as gpu:
        run = gpu.execute(softgen.assemble(FAULT, "kbl"), threads=2, payload=np.zeros((2, 16), np.int32))
        assert len(run.faults) == 2 and all(isinstance(fault, softgen.GpuFault) for fault in run.faults)
        good = gpu.execute(code("kbl"), payload=np.arange(16, dtype=np.int32), surfaces=[gpu.empty(16, np.int32)])
        assert good.faults == [] and good.threads == 1  # the GPU goes on working


def test_code_without_an_end() -> None:
    with softgen.Gpu("kbl", threads=1) as gpu, pytest.raises(softgen.SoftgenError):
        gpu.execute(softgen.assemble("mov (8|M0) r2.0<1>:f 1.5:f", "kbl"))


@pytest.mark.parametrize("how, message", [
    ({"simd": 4}, "simd is 8, 16 or 32"), ({"threads": 0}, "a multiple of group"), ({"threads": 3, "group": 2}, "multiple of group"),
    ({"payload": np.zeros(5000, np.uint8)}, "larger than the registers"), ({"local_bytes": 1 << 20}, "too many for shared_local_memory"),
    ({"group": 60, "threads": 60}, "at most 56"), ({"on_fault": "ignore"}, "on_fault is 'raise' or 'collect'"),
    ({"scratch_bytes": 1 << 30}, "too many for per_thread_scratch_space"),
    ({"threads": 17, "group": 17, "payload": np.zeros(127 * 32, np.uint8)}, "17 threads with 4,064 bytes .* a group takes 65,536 bytes"),
])  # fmt: skip
def test_wrong_use(how: dict[str, object], message: str) -> None:
    with softgen.Gpu("kbl") as gpu, pytest.raises(softgen.UsageError, match=message):
        gpu.execute(code("kbl"), **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("how, error, message", [
    ({"gpu": "g45"}, softgen.UsageError, "G45 has no GPGPU_WALKER"), ({"gpu": "tgl"}, softgen.SpecError, "no GPU is called 'tgl'"),
    ({"engine": "fast"}, softgen.UsageError, "no engine is called 'fast'"), ({"threads": 0}, softgen.UsageError, "1 or more"),
])  # fmt: skip
def test_a_gpu_that_does_not_exist(how: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        softgen.Gpu(**how)  # type: ignore[arg-type]


@pytest.mark.parametrize("name, most", [("ivb", 64), ("hsw", 64), ("bdw", 56), ("kbl", 56), ("icl", 56)])
def test_a_group_has_as_many_threads_as_run_at_once_and_as_a_walker_counts(name: str, most: int) -> None:
    """70 threads of Haswell have a barrier in common, and a walker counts to 64."""
    with softgen.Gpu(name, engine="reference", threads=1) as gpu:
        gpu._check_group(most, "this code")
        with pytest.raises(softgen.UsageError, match=f"this code has {most + 1} hardware threads; .* runs at most {most}"):
            gpu.execute(code("kbl"), threads=most + 1, group=most + 1)


@pytest.mark.parametrize("payload, threads, rows", [
    (None, 2, [b""]), (np.zeros(0, np.uint8), 1, [b""]), (np.uint32(7), 1, [b"\x07".ljust(32, b"\0")]),
    (np.full(32, 1, np.uint8), 1, [b"\1" * 32]), (np.full(33, 1, np.uint8), 1, [(b"\1" * 33).ljust(64, b"\0")]),
    (np.array([1, 2], np.uint8), 2, [b"\1\2".ljust(32, b"\0")]),
    (np.array([[1], [2]], np.uint8), 2, [b"\1".ljust(32, b"\0"), b"\2".ljust(32, b"\0")]),
    (np.array([[1], [2]], np.uint8), 1, [b"\1\2".ljust(32, b"\0")]), (np.full((1, 127 * 32), 3, np.uint8), 1, [b"\3" * 127 * 32]),
])  # fmt: skip
def test_payloads_are_whole_registers_for_all_threads_or_for_each(payload: npt.ArrayLike | None, threads: int, rows: list[bytes]) -> None:
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu:
        assert gpu._payloads(payload, threads) == rows


@pytest.mark.parametrize("payload, message", [
    (np.zeros(127 * 32 + 1, np.uint8), "of 4,096 bytes is larger .* has 3 elements, not 4065"), (np.zeros(1, "V4096"), "3 elements, not 1"),
    (np.zeros((), "V4065"), "3 elements, not 1"), (np.array("text"), "an array of numbers, not of <U4"),
    (np.zeros(1, complex), "complex128"),
])  # fmt: skip
def test_payloads_that_are_none(payload: npt.ArrayLike, message: str) -> None:
    with softgen.Gpu("kbl", engine="reference", threads=1) as gpu, pytest.raises(softgen.UsageError, match=message):
        gpu._payloads(payload, 3)


def test_no_code() -> None:
    with softgen.Gpu("kbl") as gpu, pytest.raises(softgen.UsageError, match="there is no code"):
        gpu.execute(b"")


def test_each_run_has_its_own_counts_and_offsets() -> None:
    """Of one machine, and of code that is uploaded after other code."""
    end = "(W) mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud\n(W) send (8|M0) null r127 0x27 0x02000010 {EOT}"
    programs = {lines + 2: softgen.assemble("mov (8|M0) r1.0<1>:d 0x1:d\n" * lines + end, "kbl") for lines in (1, 3)}
    with softgen.Gpu("kbl", threads=1) as gpu:
        for lines, program in (*programs.items(), *programs.items()):
            run = gpu.execute(program, threads=2, trace=True)
            assert (run.threads, run.instructions) == (2, 2 * lines)
            assert [row.offset for row in run.trace.thread(0)] == [16 * line for line in range(lines)]
