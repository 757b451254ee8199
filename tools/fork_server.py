#!/usr/bin/env python3
"""Runs tests in forked children of a process that has imported what is slow to import, but nothing of softgen.

A request is a line of JSON on standard input, its answer a line on standard output. The child runs the tests in the order given and stops
at the first that fails. A test that takes ten times its processor time and ten seconds more is ended and has timed out; so is one that
waits for minutes, or takes more memory than the limit.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from coverage_map import BEYOND, BUDGET, PYTEST, TimedTest

PRELOADED = ("hypothesis.strategies", "numpy", "llvmlite.binding", "zstandard", "yaml", "elftools.elf.elffile")
EXTRA, SLOWER = 10.0, 10.0  # seconds of the processor that a test may take: EXTRA + SLOWER * its time
WAITING, WAITING_SLOWER = 120.0, 50.0  # the same of the clock: a machine may be busy
MEMORY = 6 << 30  # bytes a child may hold
MOST = 3 * (BUDGET + BEYOND)  # seconds of the processor after which no further test is started


@dataclass(frozen=True)
class Request:
    tests: list[TimedTest]
    cache: str  # $XDG_CACHE_HOME
    scratch: str  # a folder for files of the run
    write_bytecode: bool = False  # bytecode of a fault would replace that of the sources
    extra: float = EXTRA


@dataclass(frozen=True)
class Answer:
    outcome: str  # "passed", "failed", "timeout", "memory", "ended by SIGNAL"
    test: str  # the one that was running then
    text: str  # what pytest printed

    @property
    def caught(self) -> bool:
        return self.outcome != "passed"


class Selected:
    """A plugin of pytest: runs the tests given and no others, in their order, each with its limit, and reports what happens."""

    def __init__(self, request: Request, pipe: int) -> None:
        self.places = {test.name: index for index, test in enumerate(request.tests)}
        self.seconds, self.extra, self.pipe = dict(request.tests), request.extra, pipe

    def report(self, **what: Any) -> None:
        os.write(self.pipe, (json.dumps(what) + "\n").encode())

    def pytest_sessionstart(self) -> None:
        """A failing example need not become small."""
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutate", hypothesis.settings.default, phases=phases)
        hypothesis.settings.load_profile("mutate")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.places), key=lambda item: self.places[item.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        seconds = self.seconds[nodeid]
        self.report(test=nodeid, waiting=WAITING + WAITING_SLOWER * seconds)
        signal.setitimer(signal.ITIMER_PROF, self.extra + SLOWER * seconds)  # SIGPROF ends the process

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.report(failed=report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.report(failed=report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        try:
            return (yield)
        finally:
            if used() > MOST:
                item.session.shouldstop = "out of budget"


def used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def run_tests(request: Request, pipe: int) -> int:
    """In the child: pytest's exit code."""
    os.setpgid(0, 0)
    output = os.open(f"{request.scratch}/output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ["XDG_CACHE_HOME"] = request.cache
    sys.dont_write_bytecode = not request.write_bytecode
    if not request.write_bytecode:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    signal.setitimer(signal.ITIMER_PROF, EXTRA * SLOWER)  # for the collection
    files = list(dict.fromkeys(test.name.partition("::")[0] for test in request.tests))
    return int(pytest.main([*PYTEST, "--basetemp", f"{request.scratch}/tmp", *files], plugins=[Selected(request, pipe)]))


def fork(request: Request) -> Answer:
    """Forks the child that runs the tests, and follows it to its end."""
    scratch = Path(request.scratch)
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 3
        try:
            os.close(reader)
            code = run_tests(request, writer)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    try:
        outcome, test = watch(child, reader)
    finally:
        os.close(reader)
        try:
            os.killpg(child, signal.SIGKILL)  # what the tests have started and left behind
        except ProcessLookupError:
            pass
    text = (scratch / "output").read_text("utf-8", "replace") if (scratch / "output").exists() else ""
    shutil.rmtree(scratch, ignore_errors=True)
    return Answer(outcome, test, text)


def watch(child: int, reader: int) -> tuple[str, str]:
    """Follows the reports of a child until it ends or has to be ended: the outcome, and the test it is about."""
    test, failed, ended, rest, deadline = "", "", "", b"", time.monotonic() + WAITING
    while True:
        ready = select.select([reader], [], [], 0.5)[0]
        data = os.read(reader, 65536) if ready else b""
        if ready and not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for report in map(json.loads, lines):
            test, failed = report.get("test", test), failed or report.get("failed", "")
            deadline = time.monotonic() + report["waiting"] if "waiting" in report else deadline
        ended = "timeout" if time.monotonic() > deadline else "memory" if resident(child) > MEMORY else ""
        if ended:
            os.kill(child, signal.SIGKILL)
            break
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended or code == -signal.SIGPROF:
        return ended or "timeout", test
    if code < 0:
        return f"ended by {signal.Signals(-code).name}", test
    return ("passed", "") if code == 0 else ("failed", failed or test or "the collection")


def resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


# -- both ends of the pipe -----------------------------------------------------------------------------------------


class ForkServer:
    """The process and its requests, one at a time."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen([sys.executable, __file__], cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE)  # fmt: skip

    def run(self, request: Request) -> Answer:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(vars(request)) + "\n")
        self._process.stdin.flush()
        return Answer(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def main() -> int:
    for name in PRELOADED:
        try:
            __import__(name)
        except ImportError:
            pass  # then tests that need it skip
    for line in sys.stdin:
        fields = json.loads(line)
        answer = fork(Request(**{**fields, "tests": [TimedTest(*test) for test in fields["tests"]]}))
        print(json.dumps(vars(answer)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
