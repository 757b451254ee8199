"""Verdicts on programs: the contract's five words, the suites' own, and messages that another run repeats."""

from __future__ import annotations

import pytest

from softgen.inspect.farm.process import EndedProcess, ProcessLimits
from softgen.inspect.farm.verdicts import ProgramOutput, first_error, program_verdict, stable

LIMITS = ProcessLimits(60, 3 << 30)


def verdict(code: int = 0, out: str = "", err: str = "", limit: str = "", limits: ProcessLimits = LIMITS) -> tuple[str, str]:
    output = ProgramOutput()
    for line in out.splitlines():
        output.line(line)
    return program_verdict(EndedProcess(code, 1.0, limit, out, err), limits, output)


@pytest.mark.parametrize("code, found", [(0, ("pass", "")), (77, ("skip", "exit code 77")), (1, ("fail", "exit code 1")),
                                         (139, ("crash", "ended by SIGSEGV")), (137, ("crash", "ended by SIGKILL")),
                                         (255, ("fail", "exit code 255"))])  # fmt: skip
def test_exit_codes(code: int, found: tuple[str, str]) -> None:
    assert verdict(code) == found


def test_limits_come_first() -> None:
    assert verdict(143, limit="time") == ("timeout", "no end after 60 s")
    assert verdict(143, limit="time", limits=ProcessLimits(2.5, 1, silence=True)) == ("timeout", "no output after 2.5 s")
    assert verdict(143, limit="memory") == ("crash", "more than 3,072 MiB of memory")


def test_the_end_of_the_simulator_is_a_crash() -> None:
    said = "softgen: the simulator has ended (killed by signal 9); so does the program\n"
    assert verdict(1, err=said) == ("crash", "the simulator was killed by signal 9")


def test_a_failure_is_explained_by_softgen_then_by_the_program() -> None:
    said = "late\nsoftgen: 2 pictures in out\nsoftgen: submission 3 of a (process 77, rcs0): gone; kept in /a/b\nsoftgen: more\nlast\n"
    assert verdict(1, "out\n", said) == ("fail", "submission 3 of a (rcs0): gone")
    assert verdict(3, "first\nsecond\n", "") == ("fail", "exit code 3: second")
    assert verdict(3, "first\n", "worst\n\n") == ("fail", "exit code 3: worst")
    assert first_error("softgen: x was ended by SIGSEGV\nsoftgen: the program is ended, because …") == ""


def test_piglit_has_its_own_words() -> None:
    assert verdict(0, 'PIGLIT: {"result": "skip" }\n') == ("skip", "") and verdict(0, 'PIGLIT: {"result": "pass" }') == ("pass", "")
    assert verdict(0, 'PIGLIT: {"result": "warn" }') == ("pass", "warn")
    assert verdict(1, 'PIGLIT: {"result": "fail" }') == ("fail", "")
    parts = "".join(f'PIGLIT: {{"subtest": {{"part {n}": "fail"}}}}\n' for n in range(5)) + 'PIGLIT: {"subtest": {"good": "pass"}}\n'
    assert verdict(1, parts + 'PIGLIT: {"result": "fail" }') == ("fail", "part 0, part 1, part 2 and 2 more")
    assert verdict(0, 'PIGLIT: nonsense\nPIGLIT: ["x"]\nPIGLIT: {"result": {}}') == ("pass", "")


def test_deqp_says_so_with_exit_code_0() -> None:
    one, two = "Test case 'dEQP.a'..\n  Pass (Pass)\n\n", "Test case 'dEQP.b'..\n  Fail (Image comparison failed)\n"
    assert verdict(0, one + two) == ("fail", "dEQP.b: Fail: Image comparison failed") and verdict(0, one) == ("pass", "")
    skip = "Test case 'dEQP.c'..\n  NotSupported (no such thing at x.cpp:5)\n"
    assert verdict(0, skip) == ("skip", "NotSupported: no such thing at x.cpp:5") and verdict(0, skip + one)[0] == "pass"


def test_messages_do_not_differ_from_run_to_run() -> None:
    one = "at 0x7f1234567890 in /tmp/softgen-cases-abcdefgh/file of process 71 at 12:34:56.789; kept in /home/a/7"
    two = "at 0x7f1234567999 in /dev/shm/softgen-0123456789ab/file of process 8 at 01:02:03; kept in /home/a/8"
    same = "0x1000 and 0xfffeffff1914 of /tmp/mine/file"
    assert stable(one) == stable(two) and stable(same) == same
    assert len(stable("x" * 9999)) == 400
