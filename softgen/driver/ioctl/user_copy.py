"""Copies of the program's memory, for USERPTR buffers whose pages cannot be shared: copied in, and changes written back."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field

from softgen.driver.errors import Errno
from softgen.driver.run.process import Process, process, read_ranges, write_to
from softgen.driver.run.protocol import Call
from softgen.errors import SoftgenError
from softgen.memory.store import MemfdBuffer

PART = 1 << 20  # compared and written back in parts, so that most are skipped at once


@dataclass
class Copied:
    """Memory of a program that is copied in and out: its process, address, and contents when it was last the same."""

    pid: int
    address: int
    buffer: MemfdBuffer
    before: list[bytes] = field(default_factory=list, repr=False)  # in parts
    process: Process = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.process = process(self.pid)

    @property
    def end(self) -> int:
        return self.address + self.buffer.size

    def bring(self, call: Call) -> None:
        """Copies in. Another process that has the same node open may submit it: the memory is still that of the process that made it."""
        if call.channel.pid == self.pid and not self.process.ended():
            call.read_into(self.address, self.buffer.view)
        elif self.process.ended() or not read_ranges(self.pid, [(self.address, self.buffer.size)], self.buffer.view):
            raise Errno(errno.EFAULT, f"USERPTR: memory of process {self.pid} at {self.address:#x} cannot be read")
        self.before = [bytes(self.buffer.view[start : start + PART]) for start in range(0, self.buffer.size, PART)]

    def give_back(self) -> None:
        """Write changed bytes back, and no others: the program may be writing next to them."""
        for number, then in enumerate(self.before):
            view = self.buffer.view[number * PART : (number + 1) * PART]
            if view != then:
                if self.process.ended():
                    return  # it needs nothing any more, and another one may have its number
                self.before[number] = now = bytes(view)
                for first, last in changed(then, now):
                    try:
                        write_to(self.pid, self.address + number * PART + first, now[first:last])
                    except OSError as error:  # it is no longer the program's, or was never to be written
                        raise SoftgenError(f"USERPTR: {error.strerror}") from None


def changed(then: bytes, now: bytes) -> list[tuple[int, int]]:
    """Ranges of bytes that differ."""
    import numpy as np

    differ = np.frombuffer(then, np.uint8) != np.frombuffer(now, np.uint8)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], differ, [False])).astype(np.int8)))
    return [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2], strict=True)]
