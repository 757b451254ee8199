"""Folders of runs: where they are made, what is started in them, and how the processes of a run that lost its launcher are ended."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.driver.run import launcher, run_folder, service
from tests.driver.running import Softgen, needs_shim, softgen_run


def left(folder: Path) -> Path:
    """A folder as a run that was killed leaves it."""
    folder.mkdir()
    (folder / run_folder.MARK).touch()
    return folder


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for the names of sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="sg") as name:
        yield Path(name)


def test_folders_are_made_where_the_user_has_such_things(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    assert run_folder.parent() == short


@pytest.mark.parametrize("useless", ["", "tmp", "/tmp/absent", "/proc", "/tmp/" + "./" * 20])
def test_or_else_among_temporary_files_or_in_memory(useless: str, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder must exist under a whole path that leaves room for the names of sockets, and folders can be made in it."""
    monkeypatch.setattr(os, "access", lambda place, mode, may=os.access: place != "/proc" and may(place, mode))  # root may try there
    monkeypatch.chdir(short)
    (short / "tmp").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", useless)
    monkeypatch.setenv("TMPDIR", str(short))
    assert run_folder.parent() == short
    monkeypatch.setenv("TMPDIR", useless)
    monkeypatch.setattr(run_folder, "MEMORY", str(short))
    assert run_folder.parent() == short
    monkeypatch.setattr(run_folder, "MEMORY", "/dev/absent")
    assert run_folder.parent() == Path("/tmp")


def long_path(short: Path, size: int, letter: str) -> Path:
    """A folder with a path of so many bytes."""
    count, rest = divmod(size - len(os.fsencode(short)) - 1, len(os.fsencode(letter)))
    made = short / (letter * count + "x" * rest)
    made.mkdir()
    assert len(os.fsencode(made)) == size
    return made


@pytest.mark.parametrize("letter", ["a", "é", "図"])
def test_a_path_has_as_many_bytes_as_the_shim_has_room_for(letter: str, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes, not characters: 63 with the 21 of the folder's own name."""
    monkeypatch.setenv("TMPDIR", str(short))
    for size, fits in ((41, True), (42, True), (43, False), (90, False)):
        place = long_path(short, size, letter)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
        assert run_folder.parent() == (place if fits else short), size


def test_only_folders_of_runs_are_removed(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what a user has called softgen-0123456789ab himself."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    dead, lock = run_folder.create()
    (dead / "tree").mkdir()
    os.close(lock)
    (mine := short / "softgen-0123456789ab").mkdir()
    (mine / "thesis").write_text("years of work")
    run_folder.remove_dead()
    assert os.listdir(short) == [mine.name] and (mine / "thesis").read_text() == "years of work"


@needs_shim
@pytest.mark.parametrize("letter", ["a", "図"])
def test_a_program_finds_the_gpu_through_the_longest_path(letter: str, short: Path) -> None:
    place = long_path(short, 42, letter)
    look = "import os; os.close(os.open('/dev/dri/renderD128', os.O_RDWR)); print(os.environ['SOFTGEN_RUN'], os.listdir('/dev/dri'))"
    run = softgen_run("--", sys.executable, "-X", "utf8", "-c", look, TMPDIR=str(place))
    assert run.process.returncode == 0 and run.out.startswith(f"{place}/softgen-") and "card0" in run.out, run.err
    assert os.listdir(place) == []


def opened(short: Path) -> set[int]:
    """The descriptors of what is, or was, in a folder: threads of other tests open and close theirs meanwhile."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed since
            if os.readlink(f"/proc/self/fd/{name}").startswith(f"{short}/"):
                found.add(int(name))
    return found


def test_a_folder_that_another_run_removed_is_made_again(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that begins takes a folder without a lock for a dead one: before or after it is opened here."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    flock, taken = fcntl.flock, list[Path]()

    def removed(descriptor: int, how: int) -> None:
        if len(taken) < 2:
            (folder,) = short.iterdir()
            shutil.rmtree(folder)
            taken.append(folder)
            if len(taken) == 2:
                raise BlockingIOError
        flock(descriptor, how)

    monkeypatch.setattr(run_folder.fcntl, "flock", removed)
    folder, lock = run_folder.create()
    assert list(short.iterdir()) == [folder] and folder not in taken and len(set(taken)) == 2
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and run_folder.NAME.fullmatch(folder.name)
    assert opened(short) == {lock}
    run_folder.remove_dead()
    assert folder.exists()  # it is locked
    os.close(lock)
    run_folder.remove_dead()
    assert not folder.exists()


def test_only_folders_of_runs_that_have_ended_are_removed(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those that are locked, nor those with a socket that somebody listens on; and no descriptor is left of those looked at."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    alive, lock = run_folder.create()
    dead, listening, file = (short / f"softgen-{digit * 12}" for digit in "abc")
    for folder in (dead, listening, other := short / "other"):
        (left(folder) / "tree").touch()
    file.touch()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(listening / "server"))
        server.listen()
        run_folder.remove_dead()
        assert opened(short) == {lock} and set(short.iterdir()) == {alive, listening, other, file}
    run_folder.remove_dead()
    assert set(short.iterdir()) == {alive, other, file}, "nobody listens any more"
    os.close(lock)
    run_folder.remove_dead()
    assert set(short.iterdir()) == {other, file} and (other / "tree").exists()


def test_a_folder_that_a_link_leads_to_is_not_locked(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may put one where everybody may write. It is no folder of a run, also where it becomes one while it is looked at."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    (elsewhere := short / "elsewhere").mkdir()
    (link := short / "softgen-0123456789ab").symlink_to(elsewhere)
    with pytest.raises(OSError, match=str(link)):
        run_folder._lock(link)
    folder = elsewhere.stat()
    monkeypatch.setattr(Path, "lstat", lambda path: folder)
    run_folder.remove_dead()
    assert os.path.islink(link) and elsewhere.is_dir() and not opened(short)


def test_folders_stay_where_nobody_can_say_who_listens_in_them(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    folder = left(short / "softgen-0123456789ab")

    def unreadable(path: Path, *_: str) -> str:
        raise PermissionError(errno.EACCES, "not for you", str(path))

    with monkeypatch.context() as hidden:
        hidden.setattr(Path, "read_text", unreadable)
        run_folder.remove_dead()
    assert folder.is_dir()
    run_folder.remove_dead()
    assert not folder.exists()


def test_a_folder_that_cannot_be_removed_is_no_error(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in it may belong to another user; the next run goes on without."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    for digit in "ab":
        (left(folder := short / f"softgen-{digit * 12}") / "tree").mkdir()
    rmdir, tried = os.rmdir, list[str]()

    def refused(path: str, **fields: Any) -> None:
        tried.append(path)
        if len(tried) == 1:
            raise PermissionError(errno.EACCES, "not yours")
        rmdir(path, **fields)

    with monkeypatch.context() as others:
        others.setattr(os, "rmdir", refused)
        run_folder.remove_dead()
    assert len(list(short.iterdir())) == 1 and not opened(short), f"the other one is gone: {folder}"


@needs_shim
def test_a_program_ends_with_its_launcher_where_nobody_is_left_to_end_it() -> None:
    """The server would do so: it is killed at the same time. The program never asks it for anything."""
    run = Softgen("--", "sh", "-c", "echo ready; exec sleep 90")
    assert run.process.stdout is not None and run.process.stdout.readline() == "ready\n"
    both = [run.process.pid, run.children()[0]]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in both:
            os.kill(pid, number)
    assert run.finish(seconds=30) == -signal.SIGKILL and not run.alive()


def test_a_file_system_without_locks_is_an_error(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))

    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(run_folder.fcntl, "flock", no_locks)
    with pytest.raises(OSError, match="no locks"):
        run_folder.create()
    assert not list(short.iterdir()) and not opened(short)


def test_all_processes_of_a_run_are_ended_and_no_others(short: Path) -> None:
    waits = [sys.executable, "-c", "import time; time.sleep(60)"]
    ours = [subprocess.Popen(waits, env={**os.environ, "SOFTGEN_RUN": str(short)}) for _ in range(2)]
    other = subprocess.Popen(waits, env={**os.environ, "SOFTGEN_RUN": f"{short}-another"})
    try:
        while service.members(short) != {process.pid for process in ours}:  # until they have begun
            time.sleep(0.01)
        began = time.monotonic()
        ending = [process.poll() for process in (*ours, other)]
        assert ending == [None] * 3
        service.end_all(short, [])
        assert [process.wait(10) for process in ours] == [-signal.SIGKILL] * 2 and other.poll() is None
        assert time.monotonic() - began < 30
    finally:
        for process in (*ours, other):
            process.kill()
            process.wait()


def test_a_run_without_processes_is_over_at_once(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "INSIST", 60.0)
    looked: list[Path] = []
    monkeypatch.setattr(service, "members", lambda folder: (looked.append(folder), set[int]())[1])
    service.end_all(short, [])
    assert looked == [short]


@pytest.mark.parametrize("program, command", [("server", False), ("renderD128", False), ("", True), ("card0", True)])
def test_a_server_waits_for_a_program_or_the_launchers_command(program: str, command: bool, short: Path) -> None:
    """A program that came is answered even if the command is there too, which stays to be read."""
    ours, theirs = socket.socketpair()
    listening = service.listen(short)
    with ours, theirs, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        server = service.Service(theirs, short, listening)
        if program:
            connection.connect(str(short / program))
        if command:
            ours.send(b"end")
        assert server.wait_for_program() is bool(program)
        assert not command or server.command() == b"end"
        server.reserve.close()
    for listener in listening.values():
        listener.close()


def test_a_server_notes_when_it_was_asked(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it has loaded all modules, which waits for requests."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = service.Service(theirs, short, {})
        monkeypatch.setattr(service, "time", SimpleNamespace(monotonic=lambda: 77.0))
        server.loaded.clear()
        assert not server.admit() and server.asked == 77.0
        server.loaded.set()
        assert server.admit()
        server.reserve.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("fails", [False, True])
def test_a_server_ends_all_of_a_run_when_its_launcher_is_gone(fails: bool, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order: what was added last, processes, the folder; and it ends whatever fails."""
    run, done, ended = short / "run", list[Any](), threading.Event()

    def end_all(folder: Path, clients: list[int]) -> None:
        done.append((folder, folder.is_dir(), clients))
        if fails:
            shutil.rmtree(run)
            raise OSError("nothing can be ended")

    def leave(code: int) -> None:
        done.append((run.exists(), code))
        ended.set()

    monkeypatch.setattr(service, "end_all", end_all)
    monkeypatch.setattr(os, "_exit", leave)
    ours, theirs = socket.socketpair()
    (run / "tree").mkdir(parents=True)
    with theirs:
        server = service.Service(theirs, run, {})
        server.clients.append(77)
        server.orphaned += [lambda: done.append("first"), lambda: done.append("last")]
        server.watch()
        ours.send(b"stop")  # a command is no end
        assert not ended.wait(0.02) and not done
        assert all(thread.daemon for thread in threading.enumerate() if thread.name == "launcher"), "they hold up no exit"
        ours.close()
        assert ended.wait(20)
        for thread in threading.enumerate():
            if thread.name == "launcher":
                thread.join(20)  # what fails in it is told in this test
        server.reserve.close()
    assert done == ["last", "first", (run, True, [77]), (False, 1)]


@pytest.mark.parametrize("child, control, server, wanted", [
    (None, False, "", []), (None, True, "", ["close"]), (None, True, "gone", ["close"]),
    (None, True, "alive", ["close", (77, signal.SIGKILL), (77, 0)]), ("alive", True, "gone", ["kill", "wait", "close"]),
    ("ended", True, "alive", ["close", (77, signal.SIGKILL), (77, 0)]),
])  # fmt: skip
def test_a_launcher_ends_and_removes_what_it_had_started(child: str | None, control: bool, server: str, wanted: list[Any], short: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """However far it came: the program, the connection, the server and the folder of the run."""
    done, run = list[Any](), launcher.ProgramRun([], "", device("kbl"), short / "run", set())
    (short / "run").mkdir()
    if child is not None:
        run.child = SimpleNamespace(poll=lambda: None if child == "alive" else 0, kill=lambda: done.append("kill"),
                                    wait=lambda: done.append("wait"))  # type: ignore[assignment]  # fmt: skip
    if control:
        run.control = SimpleNamespace(close=lambda: done.append("close"))  # type: ignore[assignment]
    run.server = 77 if server else 0

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        if options == os.WNOHANG:
            return (0, 0) if server == "alive" else (pid, 0)
        done.append((pid, options))
        return pid, 9

    monkeypatch.setattr(os, "kill", lambda pid, number: done.append((pid, number)))
    monkeypatch.setattr(os, "waitpid", waitpid)
    run.clean()
    assert done == wanted and not (short / "run").exists()
    run.clean()  # nothing is left to be removed


@pytest.mark.parametrize("launched_by, code", [("launcher", 7), ("another", 1)])
def test_a_program_whose_launcher_has_ended_is_not_begun(launched_by: str, code: int, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel ends it with its launcher, but only once it has asked for that."""
    before = list[Callable[[], None]]()
    monkeypatch.setattr(subprocess, "Popen", lambda *command, preexec_fn, **options: before.append(preexec_fn))
    launcher.ProgramRun(["true"], "/bin/true", device("kbl"), short, set())._start_program({})
    child = os.fork()
    if not child:
        try:
            if launched_by == "another":
                os.getppid = lambda: 1  # who gets what has lost its parent
            before[0]()
            os._exit(7)  # here the program would begin
        finally:
            os._exit(8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code


STARTED = """
import os, sys
from softgen.bits.generation import device
from softgen.driver.run import launcher; from softgen.driver.run import sysfs_tree
from softgen.errors import SoftgenError

def no_room(folder, device, inputs):
    raise OSError(28, "No space left on device")

def server_ends_first(folder, device, inputs):
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)

def broken(service):
    raise ValueError("broken")

def killed(service):
    os.kill(os.getpid(), 9)

sysfs_tree.build, serve = {"no_room": (no_room, lambda service: service.command()), "broken": (server_ends_first, broken),
                     "killed": (server_ends_first, killed)}[sys.argv[2]]
try:
    launcher.launch(["touch", sys.argv[1]], device("kbl"), serve)
except SoftgenError as error:
    print(error)
"""


@pytest.mark.parametrize("what, why", [
    ("no_room", "the files that programs are shown cannot be written: No space left on device"),
    ("broken", "the simulator did not start: the simulator cannot go on: ValueError: broken"),
    ("killed", "the simulator did not start (killed by signal 9)"),
])  # fmt: skip
def test_no_program_is_started_without_files_and_server(what: str, why: str, short: Path) -> None:
    told = subprocess.run([sys.executable, "-c", STARTED, str(short / "touched"), what], env={**os.environ, "XDG_RUNTIME_DIR": str(short)},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert told.stdout.endswith(f"{why}\n") and not told.stderr
    assert not list(short.iterdir()), "no folder of the run, and nothing that the program would have made"


LEFT_RUNNING = """
import signal, subprocess, sys, time
from softgen.driver.run import launcher

launcher.GRACE = 0.5
WAITS = "try:\\n    print('up', flush=True)\\n    time.sleep(60)\\nexcept KeyboardInterrupt:\\n    print('told', flush=True)"
handlers = ["signal.default_int_handler", "signal.SIG_IGN"]
left = [subprocess.Popen([sys.executable, "-c", f"import signal, time\\nsignal.signal(signal.SIGTERM, {handler})\\n{WAITS}"],
                         stdout=subprocess.PIPE, text=True) for handler in handlers]
spared = subprocess.Popen(["sleep", "60"])
assert [process.stdout.readline() for process in left] == ["up\\n"] * 2
began = time.monotonic()
launcher.end_descendants({spared.pid}, began)
print([process.stdout.read() for process in left], spared.poll(), 0.5 <= time.monotonic() - began < 30)
spared.kill()
"""


def test_what_is_left_running_is_told_to_end_and_then_killed() -> None:
    """One process ends when it is told so, another does not; one is spared."""
    done = subprocess.run([sys.executable, "-c", LEFT_RUNNING], capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "['told\\n', ''] None True\n", done.stderr
