"""Memory of another process: read and written from here, in one piece or in many, and what is said where it is not there."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import subprocess
import sys

import pytest

from softgen.driver.run import process


class Other:
    """Two pages of memory, and a page that nobody may touch after them; `pid` is this process, which the kernel treats as any other."""

    def __init__(self) -> None:
        self.pid, self.memory = os.getpid(), mmap.mmap(-1, 3 * mmap.PAGESIZE)
        self.memory[: 2 * mmap.PAGESIZE] = bytes(range(256)) * (2 * mmap.PAGESIZE // 256)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.closed = self.address + 2 * mmap.PAGESIZE
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mprotect(ctypes.c_void_p(self.closed), mmap.PAGESIZE, 0) == 0


def ended() -> int:
    """The number of a process that is no more."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_a_few_bytes() -> None:
    other = Other()
    assert process.read_small(other.pid, other.address + 5, 300) == bytes(range(5, 256)) + bytes(range(49))
    assert process.read_small(other.pid, other.closed - 4, 8) is None and process.read_small(ended(), other.address, 8) is None


@pytest.mark.parametrize("step", [100, process.STEP])
def test_ranges_are_joined(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than a call takes, and some longer than a call takes."""
    monkeypatch.setattr(process, "STEP", step)
    other, into = Other(), bytearray(4400)
    ranges = [(other.address + 3 * number, 3) for number in range(1200)] + [(other.address + 256, 430), (other.address, 5)]
    assert process.read_ranges(other.pid, ranges, into)
    assert into == (bytes(range(256)) * 15)[:3600] + (bytes(range(256)) * 2)[:430] + bytes(range(5)) + bytes(365)
    assert not process.read_ranges(other.pid, [(other.address, 8), (other.closed, 8)], into)
    assert not process.read_ranges(ended(), [(other.address, 8)], into)


def test_ranges_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STEP", 100)
    other, data = Other(), bytearray(range(250))
    assert process.write_range(other.pid, other.address + 7, data)
    assert other.memory[:7] == bytes(range(7)) and other.memory[7:257] == data and other.memory[257] == 1
    assert not process.write_range(other.pid, other.closed - 50, data)


def test_what_is_written_to_a_process_that_ended_is_dropped() -> None:
    other = Other()
    process.write_to(other.pid, other.address + 1, b"written")
    assert other.memory[:9] == b"\0written\x08"
    process.write_to(ended(), other.address, b"written")
    with pytest.raises(OSError, match="cannot be written") as found:
        process.write_to(other.pid, other.closed, b"written")
    assert found.value.errno == errno.EFAULT
