"""A run of the launcher in this process, with a server that does nothing: what program and server are given, and what is left."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.run import environment, launcher, run_folder
from softgen.driver.run.launcher import Outcome, launch
from softgen.driver.run.service import Service
from softgen.errors import SoftgenError
from tests.driver.running import needs_shim

pytestmark = needs_shim

PDEATHSIG, GET_PDEATHSIG, SUBREAPER = 1, 2, 36  # linux/prctl.h
PROGRAM = f"""
import ctypes, json, os, signal, sys
found = ctypes.c_int()
ctypes.CDLL(None).prctl({GET_PDEATHSIG}, ctypes.byref(found))
run = os.environ["SOFTGEN_RUN"]
told = dict(ends_with=found.value, blocked=[int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])], run=run,
            files=sorted(os.listdir(run)), open=os.path.exists(f"/proc/self/fd/{{sys.argv[2]}}"), name=sys.argv[3], parent=os.getppid())
open(sys.argv[1], "w").write(json.dumps(told))
sys.exit(3)
"""


def serve(service: Service) -> dict[str, Any]:
    """Until it is told to end."""
    return {"told": service.command().decode(), "own session": os.getsid(0) == os.getpid(), "sockets": sorted(service.listening)}


class Place:
    """Where runs are made in a test; what the launcher asks of the kernel for itself is noted."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told, self.asked = tmp_path / "told", list[tuple[int, ...]]()
        self.runs = Path(tempfile.mkdtemp(prefix="sg-"))  # names of sockets are short
        weakref.finalize(self, shutil.rmtree, self.runs, True)
        monkeypatch.setattr(run_folder, "parent", lambda: self.runs)
        others, children, prctl = set(launcher.children()), launcher.children, launcher._libc.prctl
        launcher_pid = os.getpid()

        def asked(*what: int) -> None:
            if os.getppid() == launcher_pid:
                prctl(*what)  # the program
            self.asked.append(what)

        monkeypatch.setattr(launcher, "children", lambda: [pid for pid in children() if pid not in others])
        monkeypatch.setattr(launcher, "_libc", SimpleNamespace(prctl=asked))

    def launch(self, serve: Callable[[Service], dict[str, Any]] = serve, **more: Any) -> Outcome:
        with open(os.devnull, "rb") as given:
            os.set_inheritable(given.fileno(), True)
            return launch([sys.executable, "-c", PROGRAM, str(self.told), str(given.fileno()), "name"], device("kbl"), serve, **more)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def test_a_run_from_its_beginning_to_its_end(place: Place) -> None:
    """The program has the launcher's signals and descriptors, and ends with it; nothing is left."""
    gc.collect()  # garbage of other tests holds descriptors
    before, descriptors = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH}), sorted(os.listdir("/proc/self/fd"))
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found = place.launch()
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before | {signal.SIGWINCH}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert (found.code, found.failed, found.trouble, found.signal) == (3, [], "", 0)
    assert found.report == {"told": "end", "own session": True, "sockets": ["card0", "event0", "event1", "renderD128", "server"]}
    told = json.loads(place.told.read_text())
    assert told["blocked"] == sorted(int(number) for number in before | {signal.SIGWINCH}) and told["ends_with"] == signal.SIGKILL
    assert {*told["files"]} - {"vendors"} == {"card0", "event0", "event1", "renderD128", "server", "tree", run_folder.MARK}
    assert Path(told["run"]).parent == place.runs
    assert told["open"] and told["name"] == "name" and told["parent"] == os.getpid()
    assert not list(place.runs.iterdir()) and sorted(os.listdir("/proc/self/fd")) == descriptors and not launcher.children()
    assert place.asked == [(SUBREAPER, 1)] and not [warning for warning in warned if warning.category is ResourceWarning]


def test_folders_of_runs_that_were_killed_are_removed_before(place: Place) -> None:
    dead = place.runs / "softgen-0123456789ab"
    dead.mkdir()
    (dead / run_folder.MARK).touch()
    place.launch()
    assert not dead.exists()


@pytest.mark.parametrize("keep_going, code", [(None, 1), (False, 1), (True, 3)])
def test_a_failure_counts_more_than_the_programs_code_unless_it_is_to_go_on(place: Place, keep_going: bool | None, code: int) -> None:
    def failing(service: Service) -> dict[str, Any]:
        found = serve(service)
        service.send({"failed": "a fault"})
        return found

    more = {} if keep_going is None else {"keep_going": keep_going}
    found = place.launch(failing, **more)
    assert (found.code, found.failed) == (code, ["a fault"])


def test_a_program_that_is_not_there_starts_nothing(place: Place, tmp_path: Path) -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with pytest.raises(SoftgenError, match="no program 'no-such-program' can be run: not found, or not executable"):
        launch(["no-such-program", "true"], device("kbl"), serve)
    assert not list(place.runs.iterdir()) and not place.asked and signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask


def test_nothing_is_started_without_a_shim(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise SoftgenError("the shim is not built")

    monkeypatch.setattr(environment, "shim", missing)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a server is started"))
    with pytest.raises(SoftgenError, match="the shim is not built"):
        place.launch()
    assert not list(place.runs.iterdir()) and not place.asked


def test_files_that_cannot_be_written_are_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*where: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(launcher.sysfs_tree, "build", build)
    with pytest.raises(SoftgenError, match="the files that programs are shown cannot be written: No space left on device"):
        place.launch()
    assert not list(place.runs.iterdir()) and not launcher.children() and not place.told.exists()


def test_a_server_that_does_not_start_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the program does not start either."""
    def broken(service: Service) -> dict[str, Any]:
        raise MemoryError("no room")

    def build(*where: object) -> None:
        [server] = launcher.children()
        os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)

    monkeypatch.setattr(launcher.sysfs_tree, "build", build)
    with pytest.raises(SoftgenError, match=r"the simulator did not start.*: the simulator cannot go on: MemoryError: no room"):
        place.launch(broken)
    assert not place.told.exists() and not list(place.runs.iterdir())


@pytest.mark.parametrize("data, told", [
    (b"\x7fELF no program", "Exec format error; advice"), (b"#!/no/such/program\n", "No such file or directory"),
])  # fmt: skip
def test_a_program_that_the_kernel_does_not_start(
    place: Place, tmp_path: Path, data: bytes, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What else may help is said where the kernel does not know the file's format."""
    program = tmp_path / "program"
    program.write_bytes(data)
    program.chmod(0o755)
    monkeypatch.setattr(environment, "advice", lambda path: "; advice" if path == str(program) else "")
    with pytest.raises(SoftgenError) as found:
        launch([str(program)], device("kbl"), serve)
    assert str(found.value) == f"{program}: cannot be started: {told}" and not list(place.runs.iterdir())


def test_a_program_whose_launcher_is_gone_does_not_start(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has ended before the kernel was asked to end the program with it."""
    start = launcher.ProgramRun._start_program

    def late(run: launcher.ProgramRun, env: dict[str, str]) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: 1)
            start(run, env)

    monkeypatch.setattr(launcher.ProgramRun, "_start_program", late)
    assert place.launch().code == 1 and not place.told.exists()


def test_the_outcome_of_a_run_that_says_nothing() -> None:
    assert Outcome(5) == Outcome(5, {}, [], "", 0, [], [])
