"""Buffers: sealed, padded, alive for as long as anyone looks at them."""

import fcntl
import gc
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from softgen.errors import DriverError, SoftgenError
from softgen.memory import host
from softgen.memory.store import MemfdBuffer, identity

F_SEAL_FUTURE_WRITE = 0x10


def test_a_buffer_is_one_memory_seen_as_view_array_and_file() -> None:
    buffer = MemfdBuffer(5000, "vertices")
    buffer.view[4999] = 7
    assert buffer.array[4999] == 7 and buffer.array.dtype == np.uint8 and len(buffer.array) == 5000
    assert os.pread(buffer.fd, 1, 4999) == b"\x07"
    assert (buffer.size, buffer.capacity, len(buffer.view)) == (5000, 8192, 5000)
    assert bytes(buffer.window(4096, 4096)[5000 - 4096 :]) == bytes(8192 - 5000), "the padding reads as zero"


@pytest.mark.parametrize("name", ["a\0b", "\ufffd" * 300, "x" * 5000, "\ud800", "näm\n"])
def test_any_name_will_do(name: str) -> None:
    buffer = MemfdBuffer(4096, name)
    assert buffer.name == name and os.readlink(f"/proc/self/fd/{buffer.fd}").startswith("/memfd:softgen ")


@pytest.mark.parametrize("size", [4096, 12288])
def test_nobody_can_change_the_size_of_a_buffer(size: int) -> None:
    buffer = MemfdBuffer(8192)
    with pytest.raises(PermissionError):
        os.ftruncate(buffer.fd, size)
    with pytest.raises(PermissionError):
        os.posix_fallocate(buffer.fd, 8192, 4096)


@pytest.mark.parametrize("seal", [fcntl.F_SEAL_WRITE, fcntl.F_SEAL_SEAL, F_SEAL_FUTURE_WRITE])
def test_nobody_can_seal_a_buffer_further(seal: int) -> None:
    """With a seal against writing nobody could map the buffer for writing any more, the simulator included."""
    buffer = MemfdBuffer(4096)
    descriptor = buffer.reopen()
    with pytest.raises(PermissionError):
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seal)
    os.close(descriptor)


@pytest.fixture
def no_sigio() -> Iterator[None]:
    """The kernel sends SIGIO to a lease's holder when somebody opens the file."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGIO, before)


@pytest.mark.usefixtures("no_sigio")
def test_a_lease_of_another_process_holds_nobody_up() -> None:
    """open() waits for the end of a lease, 45 seconds by default."""
    buffer = MemfdBuffer(4096)
    mapped = os.dup(buffer.fd)  # as a program gets it to map
    fcntl.fcntl(mapped, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    exported = in_time(buffer.reopen)
    again = os.open(f"/proc/self/fd/{exported}", os.O_RDONLY)
    for descriptor in (exported, mapped, again):
        for lease in (fcntl.F_RDLCK, fcntl.F_WRLCK):
            with pytest.raises(BlockingIOError):
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, lease)
    os.close(in_time(buffer.reopen))
    for descriptor in (exported, mapped, again):
        os.close(descriptor)
    assert not buffer.open_elsewhere()


@pytest.mark.usefixtures("no_sigio")
def test_a_lease_that_was_there_first_is_an_error_and_not_a_wait() -> None:
    buffer = MemfdBuffer(4096)
    opened = os.open(f"/proc/self/fd/{buffer.fd}", os.O_RDWR)
    fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    with pytest.raises(BlockingIOError):
        in_time(buffer.reopen)
    os.close(opened)
    os.close(buffer.reopen())


def test_a_descriptor_for_another_process_is_an_open_file_of_its_own() -> None:
    """Programs read and write it as they do files of a driver: it waits, is closed by exec, and has a position of its own."""
    buffer = MemfdBuffer(4096)
    first, second = buffer.reopen(), buffer.reopen()
    try:
        assert os.get_blocking(first) and not os.get_inheritable(first)
        assert fcntl.fcntl(first, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
        os.write(first, b"abc")
        assert os.read(second, 3) == b"abc" == bytes(buffer.view[:3]) and os.lseek(buffer.fd, 0, os.SEEK_CUR) == 0
    finally:
        os.close(first)
        os.close(second)


def test_a_changed_mode_does_not_lock_the_buffer() -> None:
    buffer = MemfdBuffer(4096)
    os.fchmod(buffer.fd, 0)
    os.close(buffer.reopen())  # the superuser may anyway


def test_a_mode_that_keeps_its_owner_out_is_changed_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user without privileges: files without a mode cannot be opened."""
    buffer, real = MemfdBuffer(4096), os.open

    def checked(path: str, flags: int, *more: int) -> int:
        if not os.stat(path).st_mode & 0o600 == 0o600:
            raise PermissionError
        return real(path, flags, *more)

    os.fchmod(buffer.fd, 0)
    monkeypatch.setattr(os, "open", checked)
    os.close(buffer.reopen())
    assert os.fstat(buffer.fd).st_mode & 0o777 == 0o600, "and nobody else is let in"


def in_time(function: Callable[[], int]) -> int:
    """The result of a function, or BlockingIOError; TimeoutError where it waits."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(function).result(5)
    finally:
        pool.shutdown(wait=False)


def test_a_view_outlives_its_buffer() -> None:
    buffer = MemfdBuffer(4096)
    array, fd = buffer.array, buffer.fd
    array[:] = 9
    del buffer
    gc.collect()
    assert array.sum() == 9 * 4096
    with pytest.raises(OSError):
        os.fstat(fd)


def test_pages_and_descriptors_stay_until_the_process_is_gone() -> None:
    """A thread or a handler that runs after Python's finalizers may still use a buffer: pages that are gone would be a crash."""
    mailbox = MemfdBuffer(4096)
    program = f"""if True:
        import atexit, os
        atexit.register(lambda: os.pwrite({mailbox.fd}, os.pread(buffer.fd, 2, 0) + buffer.view[2:4], 0))
        from softgen.memory.store import MemfdBuffer
        buffer = MemfdBuffer(4096)
        buffer.view[:4] = b"last"
    """
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2], pass_fds=[mailbox.fd], timeout=20)
    assert bytes(mailbox.view[:5]) == b"last\0"


@pytest.mark.parametrize(("owner", "name"), [(os, "ftruncate"), (host, "map_file")])
def test_a_buffer_that_the_host_refuses_leaves_no_descriptor(owner: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, real = list[int](), os.memfd_create

    def kept(label: str, flags: int) -> int:
        made.append(real(label, flags))
        return made[-1]

    def refused(*_: object, **__: object) -> int:
        raise OSError("no room") if owner is os else SoftgenError("no room")

    monkeypatch.setattr(os, "memfd_create", kept)
    monkeypatch.setattr(owner, name, refused)
    with pytest.raises(SoftgenError, match=r"^buffer 'vertices' of 0x1388 bytes: no room$"):
        MemfdBuffer(5000, "vertices")
    (fd,) = made
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_file_is_identified_by_device_and_inode(tmp_path: Path) -> None:
    buffer = MemfdBuffer(4096)
    other = os.dup(buffer.fd)
    assert identity(other) == buffer.identity == (os.fstat(other).st_dev, os.fstat(other).st_ino)
    os.close(other)
    with open(tmp_path / "file", "wb") as file:
        assert identity(file.fileno())[0] != buffer.identity[0]


def test_a_descriptor_elsewhere_is_noticed_until_its_last_copy_and_mapping_are_gone() -> None:
    buffer = MemfdBuffer(4096)
    view = mmap.mmap(buffer.fd, 4096)  # the buffer's own open file does not count
    assert not buffer.open_elsewhere()
    first = buffer.reopen()
    second, third = os.dup(first), buffer.reopen()
    assert identity(first) == buffer.identity and buffer.open_elsewhere()
    os.close(first)
    os.close(third)
    assert buffer.open_elsewhere()
    mapped = mmap.mmap(second, 4096)  # keeps a copy of the descriptor
    os.close(second)
    assert buffer.open_elsewhere()
    mapped.close()
    assert not buffer.open_elsewhere() and not buffer.open_elsewhere()
    view.close()


@pytest.mark.usefixtures("no_sigio")
def test_asking_whether_it_is_open_elsewhere_leaves_no_lease() -> None:
    """With one, the next to open the file would wait for its end, or be refused."""
    buffer = MemfdBuffer(4096)
    os.close(buffer.reopen())
    assert not buffer.open_elsewhere()
    again = in_time(buffer.reopen)
    assert buffer.open_elsewhere()
    os.close(again)
    assert not buffer.open_elsewhere()


def test_only_touched_pages_are_resident() -> None:
    buffer = MemfdBuffer(1 << 40, "sparse")
    assert buffer.resident() == 0
    buffer.view[5 << 30] = 1
    assert 0 < buffer.resident() <= 2 << 20  # a page, of whichever size


@pytest.mark.parametrize("size", [0, -1, 1 << 60])
def test_sizes_no_kernel_would_grant_are_refused(size: int) -> None:
    with pytest.raises(DriverError, match=r"buffer 'b': size must be between 1 and 0x400000000000 bytes"):
        MemfdBuffer(size, "b")
