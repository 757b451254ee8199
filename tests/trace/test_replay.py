"""Replay: Intel's own files pass, ours pass or fail as they should, captures keep what the GPU wrote."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.command import Counters
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.capture import CaptureTrace
from softgen.trace.file import open_trace
from softgen.trace.replay import Content, ReplayedCapture, Report, Trouble, events, replay
from softgen.trace.work import Expectation, Work
from tests.conftest import ROOT, SHARED, needs_shared
from tests.gpgpu.job import aub, dwords, vector_add
from tests.trace.test_capture import Made

CAPTURE = ROOT / "tests" / "data" / "kbl-vk-compute"
FIRST = CAPTURE / "exec-000001.json"
SUMS = 0xFFFEFFFFA000  # where its kernel puts i + 1000 i


@needs_shared("aub")
@pytest.mark.parametrize("name, instructions", [("bdw", 1376), ("skl", 832), ("icllp", 896)])
def test_the_runtimes_vector_add_does_what_its_file_expects(name: str, instructions: int) -> None:
    report = replay(open_trace(SHARED / "aub" / f"vadd_selfcheck_{name}.aub"))
    done = report.counters
    assert report.fine and report.passed == 1
    assert (done.batches, done.dispatches, done.threads, done.instructions) == (2, 1, 32, instructions)


@needs_shared("aub")
def test_nothing_passes_when_nothing_runs() -> None:
    """The expectation is not met by what the file itself puts there."""
    trace = open_trace(SHARED / "aub" / "vadd_selfcheck_skl.aub")
    assert [event.check() != "" for event in trace.events() if not isinstance(event, Work)] == [True]


@pytest.mark.parametrize("gpu", ["bdw", "skl", "icl"])
def test_a_file_of_our_own_passes(gpu: str, tmp_path: Path) -> None:
    report = replay(open_trace(aub(tmp_path / "add.aub", vector_add(gpu), dwords(*range(1000, 1064)))))
    assert report.fine and (report.submissions, report.passed, report.counters.threads) == (1, 1, 4)


def test_an_expectation_that_is_not_met_says_where(tmp_path: Path) -> None:
    report = replay(open_trace(aub(tmp_path / "add.aub", vector_add("skl"), dwords(1000, 1000))))
    assert not report.fine and report.passed == 0 and not report.faults
    assert "expected 0xe8, found 0xe9" in report.failed[0]
    assert replay(open_trace(aub(tmp_path / "other.aub", vector_add("skl"), dwords(1000, 1000), equal=False))).fine


def test_faults_and_what_is_missing_are_collected_with_their_place(tmp_path: Path) -> None:
    job = vector_add("skl")
    job.buffers = [*job.buffers, bytes(4)]
    job.after = [job.pack("MI_LOAD_SCAN_LINES_INCL")]
    report = replay(open_trace(aub(tmp_path / "math.aub", job, dwords(*range(1000, 1064)))))
    assert report.passed == 1 and not report.faults and "MI_LOAD_SCAN_LINES_INCL at 0x" in report.unsupported[0].what
    job.after = [job.pack("MI_STORE_DATA_IMM", address=0xDEAD000)]
    report = replay(open_trace(aub(tmp_path / "fault.aub", job, dwords(*range(1000, 1064)))))
    assert report.passed == 1 and str(report.faults[0]).startswith("submission 0 on render: write at 0xdead000")


def test_reports_of_several_traces_are_added() -> None:
    one = Report(Counters(1, 2, 3, 4, 5, 6), 7, 8, ["failed"], [Trouble("f", "s", "fault")], [Trouble("f", "", "lacking")], ["remark"])
    two = Report(Counters(10, 20, 30, 40, 50, 60), 70, 80, ["late"], [Trouble("g", "", "hang")], [], ["odd"])
    one.add(two)
    assert one == Report(Counters(11, 22, 33, 44, 55, 66), 77, 88, ["failed", "late"],
                         [Trouble("f", "s", "fault"), Trouble("g", "", "hang")], [Trouble("f", "", "lacking")],
                         ["remark", "odd"])  # fmt: skip
    assert two.counters.batches == 10 and [str(trouble) for trouble in one.faults] == ["s: fault", "hang"]
    trouble = Trouble("f", "", "x")
    assert [Report(failed=a, faults=b, unsupported=c, remarks=["odd"]).fine for a, b, c in (
        ([], [], []), (["x"], [], []), ([], [trouble], []), ([], [], [trouble]))] == [True, False, False, False]  # fmt: skip


def test_time_ends_a_replay(tmp_path: Path) -> None:
    left = iter(range(7))
    report = replay(open_trace(aub(tmp_path / "add.aub", vector_add("skl"), b"\0")), timed_out=lambda: next(left, None) is None)
    assert "time is up" in report.faults[0].what and report.passed == 0 and not report.failed


@dataclass(frozen=True)
class Expected:
    """Bytes, as an expectation has them."""

    content: bytes

    def __len__(self) -> int:
        return len(self.content)

    def read(self, start: int = 0, size: int | None = None) -> bytes:
        return self.content[start:] if size is None else self.content[start : start + size]


GPR, UNUSED = 0x2600, 0x2680


@pytest.mark.parametrize("offset, content, options, says", [
    (GPR, "78563412", {}, ""), (GPR, "7856341221436587", {}, ""), (GPR + 4, "21436587", {}, ""), (GPR + 1, "56", {}, ""),
    (GPR + 2, "34", {}, ""), (GPR, "79563412", {}, "register 0x2600 expected 0x12345679, found 0x12345678"),
    (GPR + 1, "57", {}, "register 0x2601 expected 0x57, found 0x56"), (GPR, "ff563412", {"mask": 0xFFFFFF00}, ""),
    (GPR, "79ffffff", {"mask": 0xFF}, "expected 0x79, found 0x78"), (GPR, "79563412", {"equal": False}, ""),
    (GPR, "78563412", {"equal": False}, "register 0x2600 expected 0x12345678, found 0x12345678"), (UNUSED, "00000000", {}, None),
])  # fmt: skip
def test_what_a_register_must_hold(offset: int, content: str, options: dict[str, Any], says: str | None) -> None:
    """Any byte of it, or several; the bits of a mask alone. A register that no command wrote is not simulated: nothing is checked."""
    space, buffer = AddressSpace("batch", 48), MemfdBuffer(0x1000, "batch")
    load = layout("MI_LOAD_REGISTER_IMM", 9).pack(
        entry=[{"register_offset": GPR, "data_dword": 0x12345678}, {"register_offset": GPR + 4, "data_dword": 0x87654321}])  # fmt: skip
    buffer.view[: 4 * len(load) + 4] = dwords(*load, 0x05000000)
    space.map(0x1000, buffer)
    made = Made(Work("render", space, 0x1000), Expectation("register", offset, Expected(bytes.fromhex(content)), where="here", **options))
    report = replay(made)
    assert not report.faults and report.passed == (says == "") and len(report.unsupported) == (says is None)
    assert [says in failure for failure in report.failed] == [True] * bool(says) if says is not None else not report.failed
    assert says is not None or str(report.unsupported[0]).startswith("here: register 0x2680 is not simulated")


NOOP = "a privileged command in a batch that is not; read as MI_NOOP"


@pytest.mark.parametrize("options, remarks", [({}, []), ({"privileged": True}, []), ({"privileged": False}, [NOOP])])
def test_a_batch_may_do_what_only_the_kernel_driver_may_unless_a_trace_says_otherwise(options: dict[str, bool], remarks: list[str]) -> None:
    space, buffer = AddressSpace("batch", 48), MemfdBuffer(0x1000, "batch")
    buffer.view[:8] = dwords(*layout("MI_ARB_ON_OFF", 9).pack(), 0x05000000)
    space.map(0x1000, buffer)
    report = replay(Made(Work("render", space, 0x1000, **options)))
    assert [remark.rpartition(": ")[2] for remark in report.remarks] == remarks


# -- captures --------------------------------------------------------------------------------------------------------


def test_a_capture_of_a_vulkan_driver_adds_vectors() -> None:
    found = b""
    for event in events(open_trace(CAPTURE)):
        assert isinstance(event, Work)
        replay_one(event)
        if event.space.extent(SUMS, 256) == 256:
            found = event.space.read(SUMS, 256)
    assert struct.unpack("<64I", found) == tuple(1001 * i for i in range(64))


def replay_one(work: Work) -> None:
    from softgen.device.gpu import GpuDevice

    GpuDevice(device("kbl")).execute(work)


@needs_shared("traces")
@pytest.mark.parametrize("name", ["bdw-ocl-vadd", "skl-ocl-vadd", "kbl-ocl-vadd", "icl-ocl-vadd", "bdw-vk-compute", "skl-vk-compute",
                                  "icl-vk-compute", "ivb-vk-compute", "hsw-vk-compute"])  # fmt: skip
def test_compute_captures_run_without_a_fault(name: str) -> None:
    report = replay(open_trace(SHARED / "traces" / name))
    assert report.fine and report.counters.dispatches == 1 and report.counters.threads > 0


def test_a_content_is_read_whole_or_in_parts() -> None:
    buffer = MemfdBuffer(8, "b")
    buffer.view[:] = b"abcdefgh"
    content = Content(buffer)
    assert len(content) == 8 and content.read() == b"abcdefgh"
    assert (content.read(3), content.read(3, 2), content.read(6, 9)) == (b"defgh", b"de", b"gh")


ELSEWHERE = 0x10000000


def capture(folder: Path, blobs: list[str], address: int | None = None) -> CaptureTrace:
    """The bundled capture's first submission again and again, with other contents each time of its batch, or of a buffer at `address`."""
    (folder / "bo").symlink_to(CAPTURE / "bo")
    first = json.loads((FIRST).read_text("utf-8"))
    if address is not None:
        first["bos"].append({**first["bos"][0], "uid": 99, "handle": 99, "gpu_addr": hex(address)})
    for number, blob in enumerate(blobs):
        first["seq"], first["bos"][-1]["blob"] = number, blob
        (folder / f"exec-{number:06}.json").write_text(json.dumps(first))
    return ReplayedCapture(folder)


def written_to(trace: CaptureTrace, address: int | None = None) -> list[bytes]:
    """What a buffer (the batch unless named) begins with at each submission, and after the GPU has written to it then."""
    contents = []
    for work in trace.events():
        place = work.batch if address is None else address
        contents.append(work.space.read(place, 8))
        work.space.write(place + 4, b"\x11\x22\x33\x44")
        contents.append(work.space.read(place, 8))
    return contents


def test_what_the_gpu_wrote_survives_until_the_capture_changes_those_bytes(tmp_path: Path) -> None:
    blob = json.loads((FIRST).read_text("utf-8"))["bos"][0]["blob"]
    contents = written_to(capture(tmp_path, [blob, blob, "zero"], ELSEWHERE), ELSEWHERE)
    assert contents[2] == contents[1] != contents[0]  # not changed by the capture: kept
    was = contents[0]
    expected = bytes(0 if was[n] else contents[3][n] for n in range(8))  # bytes that were not zero change to zero, the others stay
    assert contents[4] == expected


def test_a_new_batch_is_as_captured(tmp_path: Path) -> None:
    """Its buffer may have been a render target before: zeros of the batch are not what was drawn there."""
    blob = json.loads((FIRST).read_text("utf-8"))["bos"][0]["blob"]
    contents = written_to(capture(tmp_path, [blob, blob, "zero"]))
    assert contents[2] == contents[1] != contents[0] and contents[4] == bytes(8)


def test_what_a_capture_says_it_held_afterwards_is_checked(tmp_path: Path) -> None:
    trace = capture(tmp_path, [json.loads((FIRST).read_text("utf-8"))["bos"][0]["blob"]])
    file = tmp_path / "exec-000000.json"
    content = json.loads(file.read_text("utf-8"))
    content["bos"][0]["after"] = content["bos"][0]["blob"]
    file.write_text(json.dumps(content))
    report = replay(open_trace(trace.path))
    assert report.fine and report.passed == 1
    content["bos"][0]["after"] = "zero"
    file.write_text(json.dumps(content))
    report = replay(open_trace(trace.path))
    assert "buffer" in report.failed[0] and "after submission 0" in report.failed[0]
