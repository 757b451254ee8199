"""`softgen run --record` when something ends it early: finished submissions stay, and replay and decode say that it was cut short."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import signal
import sys
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.objects.gem_object import Piece
from softgen.errors import DecodeError, SoftgenError
from softgen.inspect.cli import main as cli
from softgen.inspect.report import recording
from softgen.inspect.report.recording import Recorder, keep_failure
from softgen.memory.store import MemfdBuffer
from softgen.trace.capture import CaptureTrace
from softgen.trace.capture_json import read_exec
from tests.driver.run.test_launcher import HANG
from tests.driver.running import PROGRAMS, Softgen, needs_shim, softgen_run

BATCH = (0x05000000).to_bytes(4, "little") + bytes(4092)  # MI_BATCH_BUFFER_END


class Store:
    """A buffer object of the driver, as far as a recorder looks at it."""

    def __init__(self, data: bytes = BATCH) -> None:
        self.size, self.uid, self.tiling, self.stride, self.user = len(data), 1, 0, 0, False
        self.pieces = [Piece(MemfdBuffer(len(data), "store"), 0, len(data))]
        self.fill(data)

    def fill(self, data: bytes) -> None:
        self.pieces[0].buffer.view[:] = data


class Made:
    """A submission of one buffer, its batch."""

    def __init__(self, sequence: int = 1) -> None:
        self.store = Store()
        self.bound = [SimpleNamespace(bo=self.store, handle=1, address=0x10000, flags=0, relocations=0)]
        self.sequence, self.batch, self.batch_index, self.batch_start, self.batch_size = sequence, 0x10000, 0, 0, 8
        self.engine, self.pid, self.flags, self.relocations, self.context = "rcs0", 1, 0, 0, SimpleNamespace(number=1, cancelled=False)


def made(sequence: int = 1) -> Any:
    return Made(sequence)


def recorder(path: Path) -> Recorder:
    return Recorder(path, device("skl"))


# -- processes that are killed -----------------------------------------------------------------------------------------


def recorded(folder: Path, number: int) -> bool:
    """Waits until so many submissions are on disk."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if sum(name.startswith("exec-") for name in os.listdir(folder)) >= number:
                return True
        time.sleep(0.02)
    return False


@needs_shim
@pytest.mark.parametrize("victims", [("server",), ("launcher",), ("launcher", "server")], ids="+".join)
def test_finished_submissions_stay(tmp_path: Path, victims: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "capture"
    run = Softgen("--gpu", "skl", "--record", str(folder), "--", sys.executable, str(PROGRAMS / "loop.py"))
    try:
        assert recorded(folder, 4)
        pids = {"launcher": run.process.pid, "server": run.children()[0]}
        for victim in victims:
            os.kill(pids[victim], signal.SIGKILL)
        run.finish(seconds=30)
        if victims != ("launcher", "server"):
            assert f"{folder}: the recording was cut short; it holds" in run.err
    finally:
        run.process.kill()
    assert cli.main(["replay", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "note: the recording was cut short" in shown and "0 not met" in shown
    assert cli.main(["decode", str(folder), "--json", "--brief"]) == 0
    notes = [line["note"] for line in map(json.loads, capsys.readouterr().out.splitlines()) if "note" in line]
    assert len(notes) == 1 and notes[0].startswith("the recording was cut short")
    done = [exec_ for exec_ in CaptureTrace(folder).execs() if exec_.bos[0].after]
    assert len(done) >= 3


@needs_shim
def test_the_submission_that_never_ended_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "capture"
    run = Softgen("--record", str(folder), "--", sys.executable, "-c", HANG)
    try:
        assert recorded(folder, 1)
        run.process.terminate()
        assert run.finish() == 128 + signal.SIGTERM and "the recording was cut short; it holds 1 submission" in run.err
    finally:
        run.process.kill()
    assert cli.main(["decode", str(folder), "--brief"]) == 0
    shown = capsys.readouterr().out
    assert "MI_BATCH_BUFFER_START" in shown and "note: the recording was cut short" in shown


@needs_shim
def test_a_whole_recording_is_not_marked(tmp_path: Path) -> None:
    run = softgen_run("--record", str(tmp_path / "new"), "--", sys.executable, str(PROGRAMS / "doors.py"), "plainly")
    assert run.process.returncode == 0 and "cut short" not in run.err, run.err
    assert not CaptureTrace(tmp_path / "new").notes
    assert not [name for name in os.listdir(tmp_path / "new") if not name.startswith(("exec-", "bo"))]


# -- the recorder ------------------------------------------------------------------------------------------------------


def test_each_submission_is_on_disk_when_it_starts_and_when_it_ends(tmp_path: Path) -> None:
    path, submission = tmp_path / "c", made()
    with recorder(path) as writer:
        writer.before(submission)
        exec_ = read_exec(path / "exec-000001.json")
        (bo,) = exec_.bos
        assert bo.after is None and (exec_.pid, exec_.ctx, exec_.vm) == (1, 1, 0)
        assert bytes(CaptureTrace(path).contents(bo).view[: bo.size]) == BATCH
        submission.store.fill(BATCH[:4] + b"\1" + BATCH[5:])
        writer.after(submission, fine=True)
        trace = CaptureTrace(path)
        assert trace.notes == ["the recording was cut short, or is still being written: its last submission is 1"]
        (bo,) = read_exec(path / "exec-000001.json").bos
        assert bo.after not in (None, bo.blob)
    assert not CaptureTrace(path).notes and writer.close() == ""


def test_a_recording_ends_incomplete_while_a_submission_runs(tmp_path: Path) -> None:
    with recorder(tmp_path / "c") as writer:
        writer.before(made())
    assert CaptureTrace(tmp_path / "c").notes and "it holds 1 submission" in writer.close()


def test_a_submission_whose_program_was_ended_cuts_the_recording_short(tmp_path: Path) -> None:
    """One that failed by itself does not."""
    for cancelled, marked in ((False, False), (True, True)):
        path, submission = tmp_path / str(cancelled), made()
        submission.context.cancelled = cancelled
        with recorder(path) as writer:
            writer.before(submission)
            writer.after(submission, fine=False)
        assert bool(CaptureTrace(path).notes) == marked


def test_nothing_is_written_behind_the_end(tmp_path: Path) -> None:
    first, second = made(1), made(2)
    with recorder(tmp_path / "c") as writer:
        writer.before(first)
    writer.after(first, fine=True)
    writer.before(second)
    writer.after(second, fine=True)
    (exec_,) = CaptureTrace(tmp_path / "c").execs()
    assert exec_.seq == 1 and exec_.bos[0].after is None


def test_a_killed_writer_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as killed here: no file gets its name after the first three."""
    path, left = tmp_path / "c", [3]
    replace = os.replace

    def killed(old: Path, new: Path) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        replace(old, new)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt), recorder(path) as writer:
        for number in range(1, 9):
            submission = made(number)
            submission.store.fill(BATCH[:8] + bytes([number]) + BATCH[9:])
            writer.before(submission)
            writer.after(submission, fine=True)
    trace = CaptureTrace(path)
    assert [work.sequence for work in trace.work()] == [1] and len(trace.notes) == 1


def test_a_full_disk_is_told_and_the_recording_stays_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, submission = tmp_path / "c", made()
    with recorder(path) as writer:
        writer.before(submission)
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", full)
            with pytest.raises(SoftgenError, match=r"exec-000001.json: cannot be written: No space left on device"):
                writer.after(submission, fine=True)
    assert "cut short" in writer.close() and [exec_.seq for exec_ in CaptureTrace(path).execs()] == [1]


def full(path: Path, data: bytes) -> None:
    raise OSError(28, "No space left on device")


def test_nothing_recorded_leaves_nothing(tmp_path: Path) -> None:
    writer = recorder(tmp_path / "c")
    with pytest.raises(DecodeError, match="is a recording that was cut short before its first submission"):
        CaptureTrace(tmp_path / "c")
    assert writer.close() == f"{tmp_path / 'c'}: nothing was recorded" and not os.listdir(tmp_path)
    writer = recorder(tmp_path / "c")
    (tmp_path / "c" / "thesis.txt").write_text("important")
    writer.close()
    assert os.listdir(tmp_path / "c") == ["thesis.txt"]


def test_two_recorders_do_not_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder(tmp_path / "c")
    for seen in (True, False):  # also where the other came between the look and the first file
        monkeypatch.setattr(os.path, "lexists", lambda path, seen=seen: seen)
        with pytest.raises(SoftgenError, match="already exists"):
            recorder(tmp_path / "c")


def test_a_failure_of_more_than_4_gib_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> Path:
        raise KeyError("where to")

    monkeypatch.setattr(recording, "failures", asked)
    submission = made()
    submission.bound *= 2
    submission.store.size = 2 << 30
    with pytest.raises(KeyError, match="where to"):
        keep_failure(submission, "a fault", device("skl"))
    submission.store.size += 1
    with pytest.raises(SoftgenError, match="its buffers have more than 4 GiB"):
        keep_failure(submission, "a fault", device("skl"))


def test_a_failure_is_kept_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(recording, "KEPT_FAILURES", 2)
    (tmp_path / "softgen" / "failures").mkdir(parents=True)
    (tmp_path / "softgen" / "failures").chmod(0o755)  # as an older version made it
    kept = [Path(keep_failure(made(number), "a fault", device("skl"))) for number in (1, 2, 3)]
    assert [path.exists() for path in kept] == [False, True, True]
    assert {path.stat().st_mode & 0o777 for path in (*kept[1:], kept[1].parent)} == {0o700}
    assert (kept[2] / "message.txt").read_text() == "a fault\n" and not CaptureTrace(kept[2]).notes


def test_without_a_usable_home_failures_are_kept_where_the_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty HOME is not the root directory."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_dir="/home/me"))
    assert recording.failures() == Path("/home/me/.local/state/softgen/failures")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    with pytest.raises(SoftgenError, match="no home folder; XDG_STATE_HOME may name another"):
        recording.failures()


@pytest.mark.parametrize("offset, size", [(0, 600 << 20), (4096, 300 << 20), (5 << 20, (1 << 20) + 4096)])
def test_a_sparse_buffer_is_recorded_as_it_is(tmp_path: Path, offset: int, size: int) -> None:
    """Its pages that nobody touched are not allocated, and there is no copy of them. USERPTR buffers begin somewhere in their memory."""
    submission, memory = made(), MemfdBuffer(offset + size, "sparse")
    memory.view[:offset] = bytes(offset)
    at = offset + size - 4096
    memory.view[at : at + 4] = b"last"
    submission.store.pieces, submission.store.size, before = [Piece(memory, offset, size)], size, memory.resident()
    tracemalloc.start()
    try:
        with recorder(tmp_path / "capture") as writer:
            writer.before(submission)
            writer.after(submission, True)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert memory.resident() == before
    [exec_] = CaptureTrace(tmp_path / "capture").execs()
    assert exec_.bos[0].nonzero == 4096 and exec_.bos[0].after == exec_.bos[0].blob
    contents = CaptureTrace(tmp_path / "capture").contents(exec_.bos[0])
    assert contents.size == size and contents.resident() <= 1 << 20
    assert bytes(contents.view[-4096:-4090]) == b"last\0\0"
