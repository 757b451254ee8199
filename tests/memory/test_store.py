"""Buffers: sealed, padded, alive for as long as anyone looks at them."""

import gc
import os

import numpy as np
import pytest

from softgen.errors import DriverError, SoftgenError
from softgen.memory.store import Buffer


def test_a_buffer_is_one_memory_seen_as_view_array_and_file() -> None:
    buffer = Buffer(5000, "vertices")
    buffer.view[4999] = 7
    assert buffer.array[4999] == 7 and buffer.array.dtype == np.uint8 and len(buffer.array) == 5000
    assert os.pread(buffer.fd, 1, 4999) == b"\x07"
    assert (buffer.size, buffer.capacity, len(buffer.view)) == (5000, 8192, 5000)
    assert bytes(buffer.window(4096, 4096)[5000 - 4096 :]) == bytes(8192 - 5000), "the padding reads as zero"


@pytest.mark.parametrize("name", ["a\0b", "\ufffd" * 300, "x" * 5000, "\ud800", "näm\n"])
def test_any_name_will_do(name: str) -> None:
    buffer = Buffer(4096, name)
    assert buffer.name == name and os.readlink(f"/proc/self/fd/{buffer.fd}").startswith("/memfd:softgen ")


def test_nobody_can_shrink_a_buffer() -> None:
    buffer = Buffer(8192)
    with pytest.raises(PermissionError):
        os.ftruncate(buffer.fd, 4096)
    os.ftruncate(buffer.fd, 12288)  # growing harms no mapping


def test_a_view_outlives_its_buffer() -> None:
    buffer = Buffer(4096)
    array, fd = buffer.array, buffer.fd
    array[:] = 9
    del buffer
    gc.collect()
    assert array.sum() == 9 * 4096
    with pytest.raises(OSError):
        os.fstat(fd)


def test_a_foreign_memfd_is_taken_over_and_sealed() -> None:
    fd = os.memfd_create("other", os.MFD_ALLOW_SEALING)
    os.write(fd, b"hello")
    buffer = Buffer.from_fd(fd, "other")
    assert bytes(buffer.view) == b"hello" and buffer.capacity == 4096
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 0)


def test_a_descriptor_that_cannot_be_sealed_is_refused() -> None:
    fd = os.memfd_create("loose")  # without MFD_ALLOW_SEALING
    os.write(fd, bytes(4096))
    with pytest.raises(DriverError, match="no memfd that can be sealed"):
        Buffer.from_fd(fd, "loose")
    with pytest.raises(DriverError, match="has 0x0 bytes"):
        Buffer.from_fd(os.memfd_create("empty", os.MFD_ALLOW_SEALING))
    with pytest.raises(SoftgenError):
        Buffer.from_fd(os.open("/dev/null", os.O_RDWR))
    os.close(fd)


@pytest.mark.parametrize("size", [0, -1, 1 << 60])
def test_sizes_no_kernel_would_grant_are_refused(size: int) -> None:
    with pytest.raises(DriverError, match=r"buffer 'b': size must be between 1 and 0x400000000000 bytes"):
        Buffer(size, "b")
