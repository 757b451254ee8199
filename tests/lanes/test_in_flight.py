"""Calls in flight: the end of a process waits for them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

from softgen.lanes.in_flight import InFlight

ENDS = """
    import atexit, threading
    atexit.register(lambda: print("left", jit.in_flight._calls))  # after what is registered later

    from softgen.lanes import jit

    lines = [f"%x{n} = fmul <8 x float> %x{n - 1}, %x{n // 2}" for n in range(1, 500)]
    text = ["define void @f(ptr %p) {", "%x0 = load <8 x float>, ptr %p", *lines, "store <8 x float> %x499, ptr %p", "ret void", "}"]

    def go_on():
        while True:
            jit.compile_object("\\n".join(text), jit.host())

    for _ in range(2):
        threading.Thread(target=go_on, daemon=True).start()
    while jit.in_flight._calls < 2:
        pass
"""


def test_a_program_ends_well_while_something_is_compiled() -> None:
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(ENDS)], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "left 0\n", "")


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
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    in_flight.__exit__()
