"""Processes of a run that are killed: the others end, and nothing is left."""

import errno
import os
import random
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from softgen.driver.run import run_folder
from tests.driver.running import PATIENCE, PROGRAMS, Softgen, needs_shim, softgen_run

pytestmark = needs_shim


def kill_one(who: str, after: float) -> None:
    run = Softgen("--", sys.executable, str(PROGRAMS / "loop.py"))
    try:
        assert run.process.stdout is not None
        if after < 0:  # before it is ready
            time.sleep(-after)
        else:
            assert run.process.stdout.readline() == "ready\n"
            time.sleep(after)
        children = run.children()
        victim = run.process.pid if who == "launcher" or len(children) < 2 else children[0 if who == "server" else 1]
        os.kill(victim, signal.SIGKILL)
        if not children and run.left():  # there was no server yet: its folder stays for the next run
            assert softgen_run("--", "true", TMPDIR=run.folder).process.returncode == 0
        assert run.all_gone(), (who, after, run.alive(), run.left())
        code = run.finish(seconds=PATIENCE)
        if victim == run.process.pid:
            assert code == -signal.SIGKILL
        elif who == "server":
            assert code == 1 and "softgen: the simulator " in run.err and "(killed by signal 9)" in run.err, run.err
        else:
            assert code == 137 and "was ended by SIGKILL" in run.err, run.err
        if who == "launcher" and after >= 0:
            assert "the launcher has ended" in run.err
    finally:
        run.process.kill()


@pytest.mark.parametrize("who", ["program", "server", "launcher"])
@pytest.mark.parametrize("after", [-0.15, 0.0, 0.05])
def test_one_is_killed_and_the_others_end(who: str, after: float) -> None:
    kill_one(who, after)


@pytest.mark.parametrize("who", ["server", "launcher"])
def test_the_folder_of_compiled_programs_is_removed_whoever_is_killed(who: str, tmp_path: Path) -> None:
    """It is there for a report. One that the user has chosen stays."""
    for chosen in ("", str(tmp_path)):
        run = Softgen("--json", "--", "sh", "-c", "echo $cl_cache_dir; sleep 60", cl_cache_dir=chosen)
        assert run.process.stdout is not None
        folder = run.process.stdout.readline().strip()
        assert Path(folder).is_dir() and (folder == chosen) == bool(chosen)
        os.kill(run.process.pid if who == "launcher" else run.children()[0], signal.SIGKILL)
        assert run.all_gone(), (run.alive(), run.left())
        run.finish(seconds=PATIENCE)
        assert Path(folder).is_dir() == bool(chosen)


@pytest.mark.witness
@pytest.mark.parametrize("seed", range(50))
def test_one_is_killed_at_a_random_moment(seed: int) -> None:
    chance = random.Random(seed)
    kill_one(chance.choice(["program", "server", "launcher"]), chance.uniform(-1.0, 0.5))


STUBBORN = "trap '' TERM; sh -c \"trap '' TERM; while :; do sleep 60; done\" & echo ready; while :; do sleep 60; done"


@pytest.mark.parametrize("who", ["server", "launcher"])
@pytest.mark.parametrize("script", [STUBBORN, "setsid sleep 60 & (sleep 60 &) ; echo ready; sleep 60"], ids=["stubborn", "scattered"])
def test_processes_of_the_program_end_when_any_process_is_killed(who: str, script: str) -> None:
    """Processes that ignore being told, that left their session or parent, or that never opened the GPU."""
    run = Softgen("--", "sh", "-c", script)
    assert run.process.stdout is not None and run.process.stdout.readline() == "ready\n"
    os.kill(run.process.pid if who == "launcher" else run.children()[0], signal.SIGKILL)
    assert run.all_gone(), (run.alive(), run.left())
    assert run.finish(seconds=PATIENCE) == (-signal.SIGKILL if who == "launcher" else 1)


def killed_at_once() -> Softgen:
    """A run whose launcher and server are killed before either can learn of the other's end."""
    run = Softgen("--", sys.executable, str(PROGRAMS / "loop.py"))
    assert run.process.stdout is not None and run.process.stdout.readline() == "ready\n"
    both = [run.process.pid, run.children()[0]]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in both:
            os.kill(pid, number)
    run.finish(seconds=PATIENCE)
    return run


def test_the_next_run_removes_what_one_that_was_killed_left() -> None:
    dead = killed_at_once()
    assert len(dead.left()) == 1
    alive = Softgen("--", sys.executable, str(PROGRAMS / "loop.py"), TMPDIR=dead.folder)
    assert alive.process.stdout is not None and alive.process.stdout.readline() == "ready\n"
    [live] = dead.left()  # the one of the run that lives
    os.mkdir(f"{dead.folder}/softgen-{'0' * 11}x")  # no folder of a run
    os.symlink(dead.folder, f"{dead.folder}/softgen-{'0' * 12}")
    assert softgen_run("--", "true", TMPDIR=dead.folder).process.returncode == 0
    assert sorted(dead.left()) == sorted([live, f"softgen-{'0' * 11}x", f"softgen-{'0' * 12}"])
    assert os.path.exists(f"{dead.folder}/{live}/server"), "a run that lives keeps its folder"
    alive.process.kill()
    alive.finish()


def test_a_folder_with_a_socket_that_somebody_listens_on_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock, as a version of softgen that does not lock its folder has it."""
    monkeypatch.setattr(run_folder, "parent", lambda: tmp_path)
    place = tmp_path / f"softgen-{'a' * 12}"
    place.mkdir()
    (place / run_folder.MARK).touch()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place / "server"))
        listening.listen()
        run_folder.remove_dead()
        assert place.exists()
    run_folder.remove_dead()
    assert not place.exists()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EMFILE])
def test_a_folder_that_cannot_be_locked_is_an_error_and_not_tried_for_ever(number: int, tmp_path: Path,
                                                                           monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    tries = []

    def flock(descriptor: int, how: int) -> None:
        tries.append(descriptor)
        assert len(tries) < 10, "tried again and again"
        raise OSError(number, "no lock")

    monkeypatch.setattr(run_folder, "parent", lambda: tmp_path)
    monkeypatch.setattr(run_folder.fcntl, "flock", flock)
    with pytest.raises(OSError, match="no lock"):
        run_folder.create()
    assert len(tries) == 1 and not list(tmp_path.iterdir())


def test_a_folder_that_another_run_took_for_a_dead_one_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails, lock = iter([BlockingIOError("locked"), FileNotFoundError("removed")]), run_folder._lock

    def contended(folder: Path) -> int:
        error = next(fails, None)
        if error is not None:
            raise error
        return lock(folder)

    monkeypatch.setattr(run_folder, "parent", lambda: tmp_path)
    monkeypatch.setattr(run_folder, "_lock", contended)
    folder, descriptor = run_folder.create()
    os.close(descriptor)
    assert folder.is_dir() and len(list(tmp_path.iterdir())) == 3
