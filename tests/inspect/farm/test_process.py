"""Subprocesses with limits: they end, with all they started, and their output is read to the end and no further."""

from __future__ import annotations

import os
import time

import pytest

from softgen.inspect.farm import process
from softgen.inspect.farm.process import CappedText, EndedProcess, ProcessLimits, run_limited, tree_memory

GIB = 1 << 30


def run(script: str, seconds: float = 20, memory: int = GIB, silence: bool = False, stop: bool = False) -> tuple[EndedProcess, list[str]]:
    heard = list[str]()
    return run_limited(["sh", "-c", script], ProcessLimits(seconds, memory, silence), os.environ, "/", heard.append, lambda: stop), heard


def alive(mark: str) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                found += [pid] if mark.encode() in file.read().split(b"\0") else []
        except OSError:
            continue
    return found


def test_output_and_exit_code() -> None:
    ended, heard = run("echo one; echo two >&2; printf three; exit 3")
    assert (ended.code, ended.signal, ended.limit) == (3, "", "") and heard == ["one", "three"]
    assert (ended.out, ended.err) == ("one\nthree", "two\n")


def test_a_signal_is_named() -> None:
    ended, _ = run("kill -SEGV $$")
    assert (ended.code, ended.signal) == (139, "SIGSEGV") and run("exit 128")[0].signal == "" == run("exit 255")[0].signal


def test_time_is_up_for_all_that_was_started() -> None:
    ended, _ = run("sleep 1234.25 & sleep 1234.25; true", seconds=0.3)
    assert ended.limit == "time" and ended.seconds < 0.3 + process.GRACE + 1 and not alive("1234.25")


def test_a_process_that_ignores_the_signal_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE", 0.2)
    ended, _ = run("trap '' TERM; while :; do sleep 0.1; done", seconds=0.2)
    assert (ended.limit, ended.signal) == ("time", "SIGKILL")


def test_each_line_begins_the_time_anew_where_silence_is_limited() -> None:
    script = "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done"
    assert run(script, seconds=0.6, silence=True)[0].limit == "" and run(script, seconds=0.6)[0].limit == "time"
    ended, heard = run("echo 1; sleep 60", seconds=0.5, silence=True)
    assert ended.limit == "time" and heard == ["1"]


def test_memory_counts_for_the_whole_tree() -> None:
    grow = "python3 -c 'import time; x = bytearray(150 << 20); time.sleep(60)'"
    ended, _ = run(f"{grow} & {grow}", memory=250 << 20)
    assert ended.limit == "memory" and ended.seconds < 30
    assert run("sleep 0.5", memory=250 << 20)[0].limit == ""


def test_own_memory_is_seen() -> None:
    before, held = tree_memory(os.getpid()), bytearray(64 << 20)
    assert tree_memory(os.getpid()) - before > 60 << 20 and held and tree_memory(1 << 30) == 0


def test_the_farm_can_stop_it() -> None:
    ended, _ = run("sleep 60", stop=True)
    assert ended.limit == "stopped" and ended.seconds < 5


def test_a_process_left_behind_does_not_hold_the_farm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "DRAIN", 0.3)
    ended, _ = run("sleep 1234.5 & exit 4")
    assert (ended.code, ended.limit) == (4, "") and ended.seconds < 5
    time.sleep(0.1)
    assert not alive("1234.5")


def test_closed_output_is_waited_for_without_a_busy_loop() -> None:
    before = time.process_time()
    assert run("exec >&- 2>&-; sleep 1; exit 5")[0].code == 5 and time.process_time() - before < 0.3


def test_output_without_end_takes_no_memory() -> None:
    ended, _ = run("yes 0123456789012345 | head -c 30000000; echo the end >&2; echo last")
    assert ended.out.endswith("last\n") and ended.out.startswith("0123456789012345\n") and "bytes left out" in ended.out
    assert len(ended.out) < 2 * (process.HEAD + process.TAIL) and ended.err == "the end\n"


def test_first_and_last_bytes_are_kept_whole_where_they_fit() -> None:
    text = CappedText()
    for part in (b"a" * process.HEAD, b"b" * (process.TAIL - 1), b"c"):
        text.add(part)
    assert text.text() == "a" * process.HEAD + "b" * (process.TAIL - 1) + "c"
    text.add(b"dd")
    assert text.text() == "a" * process.HEAD + "\n[2 bytes left out]\n" + "b" * (process.TAIL - 3) + "cdd"


def test_a_line_without_end_is_cut() -> None:
    heard = list[str]()
    lines = process.LineSplitter(heard.append)
    for _ in range(4):
        lines.add(b"x" * process.LONGEST)
    lines.add(b"y\nz")
    lines.end()
    assert [len(line) for line in heard] == [process.LONGEST + 1, 1] and heard[0].endswith("xy")


def test_an_exception_ends_the_process() -> None:
    def fail(line: str) -> None:
        raise KeyError(line)

    with pytest.raises(KeyError):
        run_limited(["sh", "-c", "echo x; exec sleep 1234.75"], ProcessLimits(20, GIB), os.environ, "/", fail)
    assert not alive("1234.75")
