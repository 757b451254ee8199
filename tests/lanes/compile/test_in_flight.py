"""Calls in flight: the end of a process waits for them, and so does a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from softgen.lanes.compile.in_flight import InFlight

COMPILES = """
    import atexit, os, signal, threading
    atexit.register(lambda: print("left", len(jit.in_flight._calls)))  # after what is registered later

    from softgen.lanes.compile import jit

    most = 499
    lines = [f"%x{n} = fmul <8 x float> %x{n - 1}, %x{n // 2}" for n in range(1, most + 1)]
    text = ["define void @f(ptr %p) {", "%x0 = load <8 x float>, ptr %p", *lines, f"store <8 x float> %x{most}, ptr %p", "ret void", "}"]

    def go_on():
        while True:
            jit.compile_object("\\n".join(text), jit.host())

    for _ in range(2):
        threading.Thread(target=go_on, daemon=True).start()
    while len(jit.in_flight._calls) < 2:
        pass
"""
FORKS = """
    def read_on():
        while not done:
            jit.parse("\\n".join(text))  # outside of compilations

    done, reading = [], threading.Thread(target=read_on, daemon=True)
    reading.start()
    for _ in range(FORKED):
        child = os.fork()
        if not child:
            signal.alarm(10)  # seconds
            os._exit(jit.compile_object("define void @g() {\\n ret void\\n}", jit.host())[1:4] != b"ELF")
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    done.append(True)
    reading.join()
"""


def test_a_program_ends_well_while_something_is_compiled() -> None:
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(COMPILES)], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "left 0\n", "")


def test_a_child_process_compiles_though_its_parent_did_when_it_forked() -> None:
    """It has no lock and no module of threads that it does not have. Short functions are under llvmlite's lock for most of the time."""
    program = textwrap.dedent((COMPILES + FORKS).replace("most = 499", "most = 1").replace("FORKED", "40"))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "child 0\n" * 40 + "left 0\n", "")


def test_a_fork_waits_for_the_calls_of_other_threads_and_for_the_lock() -> None:
    """And none begins before it is done."""
    in_flight, began, may_end, lock = InFlight(), threading.Event(), threading.Event(), threading.RLock()
    in_flight.lock, said = lock, list[str]()

    @in_flight
    def call(name: str) -> None:
        began.set()
        may_end.wait(100)
        said.append(name)

    def take() -> None:
        with lock:
            said.append("taken")

    calling = threading.Thread(target=call, args=("first",), daemon=True)
    calling.start()
    assert began.wait(100)
    threading.Timer(0.2, may_end.set).start()
    in_flight._before_fork()
    assert said == ["first"]
    another = threading.Thread(target=call, args=("second",), daemon=True)
    taking = threading.Thread(target=take, daemon=True)
    another.start()
    taking.start()
    time.sleep(0.1)
    assert said == ["first"] and taking.is_alive()
    in_flight._after_fork()
    for thread in (calling, another, taking):
        thread.join(100)
        assert not thread.is_alive()
    assert sorted(said) == ["first", "second", "taken"]


def test_the_end_waits_for_calls_and_lets_no_other_thread_begin_one() -> None:
    in_flight, began, may_end, ended, late = InFlight(), *(threading.Event() for _ in range(3)), list[str]()

    @in_flight
    def call() -> None:
        began.set()
        may_end.wait(100)

    @in_flight
    def another() -> str:
        late.append("begun")
        return "fine"

    def end() -> None:
        in_flight.end()
        ended.set()
        late.append(another())

    calling, ending = threading.Thread(target=call), threading.Thread(target=end)
    calling.start()
    assert began.wait(100)
    ending.start()
    while in_flight._ending is None:
        pass
    with ThreadPoolExecutor(1) as other:
        assert isinstance(other.submit(another).exception(100), SystemExit)
    assert not late and not ended.is_set()
    may_end.set()
    assert ended.wait(100)
    ending.join(100)
    assert late == ["begun", "fine"]  # by the thread that ends the process
    calling.join(100)


def test_calls_that_fail_are_over() -> None:
    in_flight = InFlight()

    @in_flight
    def fails() -> None:
        raise ValueError("no")

    for _ in range(2):
        try:
            fails()
        except ValueError:
            continue
    in_flight.end()  # at once


def test_a_child_process_does_not_wait_for_threads_of_its_parent() -> None:
    in_flight = InFlight()
    in_flight.__enter__()
    child = os.fork()
    if not child:
        in_flight.end()
        in_flight.__exit__()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    in_flight.__exit__()
