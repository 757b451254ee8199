"""Descriptors of the server: how many it may have, and spare ones, which are held, lent and taken again."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
import signal
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from softgen.driver.objects import descriptors
from softgen.driver.objects.descriptors import Reserve
from softgen.driver.run import collector, service
from tests.driver.program import Gpu, Held, served


class Files:
    """A process that has so many descriptors."""

    def __init__(self, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most, self.held = most, set[int]()
        monkeypatch.setattr(descriptors, "os", SimpleNamespace(**{**vars(os), "open": self.open, "close": self.held.remove}))

    def open(self, path: str, flags: int) -> int:
        assert path == os.devnull and flags == os.O_RDONLY | os.O_CLOEXEC, "a program that is started must not inherit it"
        if len(self.held) >= self.most:
            raise OSError(24, "too many open files")
        number = next(number for number in range(self.most) if number not in self.held)
        self.held.add(number)
        return number


@pytest.mark.parametrize("most, count, held", [(100, 3, 3), (100, 1, 1), (3, 3, 3), (2, 3, 2), (0, 3, 0)])
def test_as_many_are_held_as_can_be_had(most: int, count: int, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(most, monkeypatch)
    reserve = Reserve(count)
    assert len(files.held) == held and sorted(reserve.spare) == sorted(files.held)
    assert reserve.refill() is bool(held) and len(files.held) == held, "those that are there are not taken again"
    reserve.close()
    assert not files.held and not reserve.spare
    reserve.close()


def test_sixteen_are_held_without_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(1000, monkeypatch)
    Reserve()
    assert len(files.held) == 16


@pytest.mark.parametrize("left, again", [(0, 3), (2, 1), (3, 0)])
def test_they_are_lent_and_taken_again(left: int, again: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are free then; the next time perhaps more. An error inside does not lose them."""
    files = Files(3, monkeypatch)
    reserve = Reserve(3)
    with pytest.raises(KeyError), reserve.lent():
        assert not files.held
        kept = [files.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(left)]
        raise KeyError
    assert len(reserve.spare) == again and len(files.held) == 3
    files.held -= set(kept)
    assert reserve.refill() and len(reserve.spare) == 3


@pytest.mark.parametrize("most, few", [(0, True), (10, False)])
def test_a_process_without_a_descriptor_has_few(most: int, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one with which it finds out is closed again."""
    files = Files(most, monkeypatch)
    assert descriptors.few_left() is few and not files.held


@pytest.mark.parametrize("hard, most", [(resource.RLIM_INFINITY, 65536), (1 << 20, 65536), (65536, 65536), (65535, 65535), (256, 256)])
def test_a_server_may_have_65536_descriptors_or_what_the_host_allows(hard: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its other preparations: a session of its own, no terminal, no signals but the launcher's, threads that take turns quickly."""
    done = list[object]()
    limits = SimpleNamespace(RLIM_INFINITY=resource.RLIM_INFINITY, RLIMIT_NOFILE=resource.RLIMIT_NOFILE,
                             getrlimit=lambda which: (20, hard), setrlimit=lambda which, pair: done.append((which, pair)))  # fmt: skip
    processes = SimpleNamespace(environ={}, devnull=os.devnull, O_RDWR=os.O_RDWR, setsid=lambda: done.append("session"),
                                open=lambda path, flags: done.append((path, flags)) or 77,  # type: ignore[func-returns-value]
                                dup2=lambda old, new: done.append((old, new)))  # fmt: skip
    signals = SimpleNamespace(**{**vars(signal), "signal": lambda number, what: done.append((number, what)),
                                 "pthread_sigmask": lambda how, mask: done.append((how, mask))})  # fmt: skip
    for name, stand_in in (("resource", limits), ("os", processes), ("signal", signals),
                           ("sys", SimpleNamespace(setswitchinterval=done.append))):  # fmt: skip
        monkeypatch.setattr(service, name, stand_in)
    service.prepare()
    ignored = [(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGIO)]
    assert processes.environ == {"OPENBLAS_NUM_THREADS": "1"}
    assert done == ["session", (os.devnull, os.O_RDWR), (77, 0), (77, 1), *ignored, (signal.SIG_SETMASK, []),
                    (resource.RLIMIT_NOFILE, (most, hard)), 0.0002]  # fmt: skip


@pytest.mark.parametrize("soft, hard, lowest, fine, raised", [
    (1000, 1000, 935, True, False), (1000, 1000, 936, False, False), (100, 100, 74, True, False), (100, 100, 75, False, False),
    (1000, 4000, 936, True, True), (1000, 1000, None, False, False)])  # fmt: skip
def test_some_are_left_for_what_the_server_itself_opens(soft: int, hard: int, lowest: int | None, fine: bool, raised: bool,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """A program that takes all others is refused, as far as this process may have no more."""
    changed = list[tuple[int, int]]()
    files = Files(5000 if lowest is not None else 0, monkeypatch)
    files.held.update(range(lowest or 0))
    monkeypatch.setattr(descriptors, "resource", SimpleNamespace(
        RLIMIT_NOFILE=7, getrlimit=lambda which: (soft, hard), setrlimit=lambda which, pair: changed.append(pair)))  # fmt: skip
    if fine:
        descriptors.leave_some()
    else:
        with pytest.raises(OSError) as refused:
            descriptors.leave_some()
        assert refused.value.errno == errno.EMFILE
    assert changed == [(hard, hard)] * raised


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    """A server in a process that has few descriptors left, as soon as a program is there."""
    with served("kbl", Held()) as gpu:
        yield gpu


def test_a_program_gets_nothing_for_which_the_server_keeps_a_descriptor(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    program = gpu.program()
    syncobj = program.ioctl("DRM_IOCTL_SYNCOBJ_CREATE", flags=1).handle
    handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
    program.ioctl("DRM_IOCTL_I915_GEM_SET_TILING", handle=handle, mode=1, stride=512)
    page = mmap.mmap(-1, 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    program.lent.append((address, 4096))
    asked: list[tuple[str, dict[str, int], int]] = [
        ("I915_GEM_CREATE", {"size": 4096}, errno.ENOMEM), ("I915_GEM_USERPTR", {"address": address, "size": 4096}, errno.EMFILE),
        ("SYNCOBJ_HANDLE_TO_FD", {"handle": syncobj}, errno.EMFILE), ("PRIME_HANDLE_TO_FD", {"handle": handle}, errno.EMFILE),
        ("I915_GEM_MMAP_OFFSET", {"handle": handle, "flags": 0}, errno.EMFILE)]  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(descriptors, "few_left", lambda: True)
        patch.setattr(descriptors.resource, "getrlimit", lambda which: (300, 300))
        for name, fields, number in asked:
            assert program.refused(f"DRM_IOCTL_{name}", **fields)[0] == number
        for _ in range(2):
            with pytest.raises(OSError) as refused:
                gpu.program()
            assert refused.value.errno == errno.EMFILE
        assert program.ioctl("DRM_IOCTL_VERSION").major == 1
    for name, fields, _ in asked:
        program.ioctl(f"DRM_IOCTL_{name}", **fields)
    assert gpu.log == ["all 300 descriptors of the server are in use: programs get EMFILE until some are closed (see `ulimit -Hn`)"]


def test_a_submission_needs_no_descriptor_for_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*arguments: object, **more: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr("builtins.open", none_left)
    assert collector.resident() == 0
