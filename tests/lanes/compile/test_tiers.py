"""Functions in two speeds: bytecode at once, compiled code in its place when it is hot, the same address and results all the time."""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.errors import SoftgenError, Unsupported
from softgen.lanes.bytecode import kept_programs
from softgen.lanes.bytecode.machine import BytecodeMachine
from softgen.lanes.bytecode.program import BytecodeProgram
from softgen.lanes.compile import compile_policy, jit, tiers
from softgen.lanes.compile.tiers import TieredFunction
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.scalar import Parameter
from softgen.lanes.machine import Machine
from softgen.lanes.types import u32
from softgen.lanes.value import Value

PATIENCE = 60.0  # seconds that the compiler may take on a busy machine
FEW = 20  # calls


def program(m: Machine, number: Value) -> Value:
    return number * 3 + 1


def written() -> BytecodeProgram:
    m = BytecodeMachine()
    return m.program(0, 0, program(m, m.argument(1, u32)))


def compiled() -> jit.LoadedCode:
    m = LlvmMachine()
    m.give(m.scalar(program(m, m.argument(u32, "number").lane())))
    m.code.frame("f", u32, [Parameter("context"), Parameter("number", u32)])
    return jit.load(m.ir.module.text(), ("f",), Cache(None))


def call(address: int, number: int) -> int:
    context = np.zeros(8, np.uint64)
    return int(ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint32)(address)(context.ctypes.data, number))


@pytest.fixture
def background(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(compile_policy._Mode, "background", True)
    monkeypatch.setattr(tiers, "HOT", FEW * written().size)
    monkeypatch.setattr(tiers, "HOT_KEPT", FEW * written().size // 4)
    yield


def made(compile: Any = compiled, kept: bool = False) -> TieredFunction:
    return TieredFunction("f", written, compile, lambda: kept)


@pytest.mark.usefixtures("background")
def test_bytecode_serves_until_it_is_hot_and_code_from_then_on() -> None:
    compiler: list[str] = []

    def compile() -> jit.LoadedCode:
        compiler.append(threading.current_thread().name)
        return compiled()

    function = made(compile)
    first = function.address
    assert function.program is not None and first == function.program.address
    assert [call(first, number) for number in range(FEW - 1)] == [3 * number + 1 for number in range(FEW - 1)] and not compiler
    call(first, 0)
    end = time.monotonic() + PATIENCE
    while function.code is None and time.monotonic() < end:
        time.sleep(0.01)
    assert compiler == ["compiling functions"], "another thread compiles"
    before = function.program.calls
    assert call(first, 5) == call(function.address, 5) == 16 and function.address != first
    assert function.program.calls == before, "calls of the first address reach the code"


@pytest.mark.usefixtures("background")
def test_what_is_cached_or_no_bytecode_is_compiled_at_once() -> None:
    assert made(kept=True).program is None

    def refused() -> BytecodeProgram:
        raise Unsupported("an operation")

    function = TieredFunction("f", refused, compiled, lambda: False)
    assert function.program is None and call(function.address, 2) == 7


@pytest.mark.usefixtures("background")
def test_what_cannot_be_compiled_stays_bytecode() -> None:
    asked = threading.Event()

    def fails() -> jit.LoadedCode:
        asked.set()
        raise SoftgenError("no code")

    function = made(fails)
    for _ in range(2 * FEW):
        assert call(function.address, 1) == 4
    assert asked.wait(PATIENCE) and call(function.address, 1) == 4
    other = made()
    for _ in range(FEW):
        call(other.address, 1)
    end = time.monotonic() + PATIENCE
    while other.code is None and time.monotonic() < end:
        time.sleep(0.01)
    assert other.code is not None, "others are still compiled"


@pytest.mark.usefixtures("background")
def test_bytecode_of_an_earlier_process_is_read_and_hot_earlier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not the code is in the cache, too; each form has its own."""
    monkeypatch.setattr(kept_programs, "default_folder", lambda: tmp_path)
    tmp_path.chmod(0o700)
    asked = list[str]()

    def write() -> BytecodeProgram:
        asked.append("written")
        return written()

    def kept() -> bool:
        asked.append("looked for code")
        return False

    first = TieredFunction("f", write, compiled, kept, form=(1, "a"))
    saved = threading.Event()
    tiers.in_turn(saved.set)
    assert saved.wait(PATIENCE) and asked == ["looked for code", "written"]
    second, other = (TieredFunction("f", write, compiled, kept, form=form) for form in ((1, "a"), (2, "a")))
    assert asked == ["looked for code", "written"] * 2, "one of another form was written"
    assert first.program and second.program and other.program and second.program is not first.program
    assert call(first.address, 9) == call(second.address, 9) == call(other.address, 9) == 28
    assert second.program.record.hot == tiers.HOT_KEPT // second.program.size < first.program.record.hot == other.program.record.hot


def test_without_a_background_functions_are_compiled_when_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_policy._Mode, "background", False)
    function = made()
    assert function.program is None and call(function.address, 4) == 13


@pytest.mark.parametrize("size, calls", [(0, 1_000_000), (1, 1_000_000), (3, 333_333), (500_000, 2), (999_999, 1), (5_000_000, 1)])
def test_the_longer_a_function_the_fewer_calls_make_it_hot(size: int, calls: int) -> None:
    """A million operations, and one call at least."""
    program = SimpleNamespace(size=size, record=SimpleNamespace(number=-1, hot=0))
    tiers.BackgroundCompiler.watch(SimpleNamespace(_watched={}), made(), program, tiers.HOT)  # type: ignore[arg-type]
    assert program.record.hot == calls


def test_jobs_are_done_in_turn_on_the_thread_that_compiles() -> None:
    """Also after one that fails."""
    done, last = list[tuple[int, str]](), threading.Event()

    def job(number: int) -> None:
        done.append((number, threading.current_thread().name))
        if number == 1:
            raise SoftgenError("job 1")

    for number in range(4):
        tiers.in_turn(partial(job, number))
    tiers.in_turn(last.set)
    assert last.wait(PATIENCE) and done == [(number, "compiling functions") for number in range(4)]
    assert [str(error) for error in tiers._worker().errors].count("job 1") == 1


def test_a_function_that_is_reported_comes_before_the_next_job() -> None:
    """And jobs go on after it, though their own reports were read with it."""
    done, last, worker, number = list[str](), threading.Event(), tiers._worker(), 1 << 60
    worker._watched[number] = SimpleNamespace(promote=lambda: done.append("function"))  # type: ignore[assignment]

    def first() -> None:
        tiers.in_turn(lambda: done.append("second"))
        tiers.in_turn(last.set)
        os.write(worker._reports, number.to_bytes(8, "little"))
        done.append("first")

    tiers.in_turn(first)
    assert last.wait(PATIENCE) and done == ["first", "function", "second"]


@pytest.mark.parametrize(("processors", "used", "turn"), [(2, 0.8, True), (2, 1.0, False), (16, 13.4, True), (16, 13.6, False),
                                                          (1, 0.4, True), (1, 0.5, False)])  # fmt: skip
def test_a_job_that_may_wait_is_done_when_a_processor_is_free(processors: int, used: float, turn: bool,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """One of them, in a gap of the others; of a single one half."""
    waited, job = list[float](), object()
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(processors)))
    clocks = SimpleNamespace(monotonic=iter((10.0, 12.0)).__next__, process_time=iter((5.0, 5.0 + 2 * used)).__next__)
    monkeypatch.setattr(tiers, "time", clocks)
    worker: Any = SimpleNamespace(_jobs=deque[Any](), _later=deque[Any]([job]))
    waiting: Any = SimpleNamespace(poll=lambda milliseconds: waited.append(milliseconds))
    assert not tiers.BackgroundCompiler._told(worker, waiting)
    assert (list(worker._jobs), list(worker._later)) == (([job], []) if turn else ([], [job]))
    assert waited == [1000 * tiers.GAP]


def test_jobs_that_may_wait_come_after_all_others() -> None:
    done, last = list[str](), threading.Event()

    def first() -> None:
        tiers.in_turn(lambda: done.append("later"), later=True)
        tiers.in_turn(last.set, later=True)
        tiers.in_turn(lambda: done.append("second"))

    tiers.in_turn(first)
    assert last.wait(PATIENCE) and done == ["second", "later"]


def test_a_job_waits_in_its_queue_where_the_pipe_is_full() -> None:
    """Whatever fills it wakes the thread. A message of the pipe is eight bytes, as the interpreter writes them."""
    jobs, (reads, writes), job = deque[Any](), os.pipe2(os.O_NONBLOCK), object()
    worker: Any = SimpleNamespace(_jobs=jobs, _reports=writes)
    tiers.BackgroundCompiler.submit(worker, job)  # type: ignore[arg-type]
    assert list(jobs) == [job] and os.read(reads, 100) == b"\xff" * 8
    with suppress(BlockingIOError):
        while True:
            os.write(writes, bytes(4096))
    tiers.BackgroundCompiler.submit(worker, job)  # type: ignore[arg-type]
    assert list(jobs) == [job, job]
    os.close(reads)
    os.close(writes)


def test_threads_that_report_a_function_do_not_wait_for_the_compiler() -> None:
    """Where its pipe is full, the function stays bytecode; programs that the process starts do not get it."""
    worker = tiers._worker()
    assert not os.get_blocking(worker._reports) and os.get_blocking(worker._hot)
    assert not os.get_inheritable(worker._reports) and not os.get_inheritable(worker._hot)


def test_a_child_process_has_a_compiler_of_its_own() -> None:
    """Threads do not survive fork()."""
    tiers.in_turn(lambda: None)
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        tiers.in_turn(lambda: os._exit(os.write(writes, b"done") != 4))
        time.sleep(PATIENCE)
        os._exit(1)
    os.close(writes)
    if not select.select([reads], [], [], PATIENCE / 3)[0]:
        os.kill(child, signal.SIGKILL)
    found = os.read(reads, 4)
    os.close(reads)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and found == b"done"


def test_promotion_happens_once() -> None:
    function = made()
    code = function.code
    function.promote()
    assert function.code is code


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("raised", [[], [ValueError]])
def test_the_garbage_collector_is_as_before_when_what_was_uncollected_has_ended(enabled: bool, raised: list[type[Exception]]) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with suppress(ValueError), tiers.uncollected():
            assert not gc.isenabled()
            for error in raised:
                raise error
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
