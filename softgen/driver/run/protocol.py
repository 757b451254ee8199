"""The protocol between shim.c and the server: a request, questions back, and an answer that ends it (shim.h).

    call = Call(channel, message)
    call.read(address, size)        memory of the program; Errno(EFAULT) where there is none
    call.read_into(address, view)   the same without a copy; call.write_now(address, view) the other way
    call.write(address, data)       is written when the ioctl returns
    call.take(number)               a copy of one of the program's descriptors
    call.hand(address, descriptor)  the program gets the descriptor; its number is written to the address
"""

from __future__ import annotations

import array
import errno
import os
import re
import select
import socket
import struct
import time
import weakref
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from softgen.bits.units import QWORD_MASK
from softgen.driver.errors import Errno, Gone
from softgen.driver.objects.budget import Budget
from softgen.driver.queue.queue import DeferredRun
from softgen.driver.run.process import SMALL, read_ranges, read_small, write_range
from softgen.driver.run.wait_prediction import WaitPrediction
from softgen.driver.shim.shim_h import DONE, GIVE, MAP, MAPS, READ, REPLY, SWAP, WELCOME, WRITE
from softgen.memory.store import Identity, identity

MESSAGE = struct.Struct("<IIQQQ8s")
HEADER = MESSAGE.size
PART = struct.Struct("<QII")
ONE_DESCRIPTOR = socket.CMSG_LEN(4)
LARGEST_REQUEST = 1 << 14  # the size of an ioctl's argument has 14 bits; a longer message is no request
LARGEST_MAPS = 16 << 20  # 256 for each mapping that a process may have
LARGEST_READ = 256 << 20
UNCOUNTED = 1 << 16  # bytes of memory so small that it is not worth counting
CHUNK = 4 << 20  # of what is read or written with questions to the program
PLENTY, MOST_AT_ONCE = 1 << 16, 1 << 20  # bytes that are received at once: so many, or as many as are missing
AT_ONCE = 1 << 15  # bytes that a socket takes as a whole, if it takes any
SOON = 0.0003  # seconds in which a program that waits for each submission makes the next


class ShimMessage(NamedTuple):
    """A message from shim.c; what `a`, `b` and `c` mean depends on its kind."""

    kind: int
    a: int
    b: int
    c: int
    name: bytes
    payload: bytes


def program_name(pid: int) -> str:
    """The name of a process, for messages. It may choose any, so what a terminal would act on is replaced."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return re.sub(r"[^ -~\u00a1-\u1fff]", "?", file.read().rstrip("\n"))
    except OSError:
        return "a program"


@lru_cache(256)  # most answers have the same
def header(kind: int, size: int, a: int, b: int, c: int) -> bytes:
    """The header of a message to shim.c."""
    return MESSAGE.pack(kind, size, a & QWORD_MASK, b & QWORD_MASK, c & QWORD_MASK, b"")


def greet(connection: socket.socket, result: int = 0, patience: float = 0.0) -> None:
    """Send the first message on a connection: 0 where the server accepts it, otherwise the negative error number; and the seconds that the
    program's thread may wait for an answer awake."""
    message = header(WELCOME, 0, result, round(patience * 1e9), 0)
    try:
        connection.send(message, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except OSError:
        pass  # gone again


def peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user that made a connection, as the kernel says."""
    pid, uid, _ = struct.unpack("iii", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid


def no_node() -> object:
    return None


class Channel:
    """A connection to one thread of a program."""

    def __init__(self, connection: socket.socket, budget: Budget) -> None:
        self.connection, self.budget = connection, budget
        self.pid, self.uid = peer(connection)
        self.program = program_name(self.pid)
        self.near = True  # may its memory be read from here?
        self.rest = b""
        self.wait_prediction = WaitPrediction()
        self.waited_for = False  # the last request was a submission, and its thread waited for the work
        self.hopeful = False  # and the last time the next request came soon
        self.descriptors: list[int] = []  # asked for and received
        self.nodes: weakref.WeakSet[object] = weakref.WeakSet()  # nodes of which the program has shown that it has a descriptor
        self.last_node: Callable[[], object] = no_node  # a weak reference to the one of the last request
        self._readable = select.poll()
        self._readable.register(connection, select.POLLIN)

    def next_request(self) -> ShimMessage:
        """The next request. Where a program enqueues and waits in a loop, this thread does not sleep in between: processors that do lose
        their clock rate and caches, and are slow for longer than the pause was."""
        if not self.waited_for:
            return self.receive()
        self.waited_for, began = False, time.monotonic()
        if self.hopeful:
            self._spin(began + SOON)
        message = self.receive()
        self.hopeful = time.monotonic() < began + SOON
        return message

    def _spin(self, until: float) -> None:
        """Waits for a message until then. Any other thread that could run has the processor and the interpreter in between."""
        poll = self._readable.poll
        while not poll(0) and time.monotonic() < until:
            os.sched_yield()

    def receive(self, most: int = LARGEST_REQUEST, room: int = 0) -> ShimMessage:
        """The next message; `room` for descriptors that were asked for. Any others the kernel closes at once."""
        data = self.rest
        if len(data) < HEADER:
            data = self._read(data, HEADER, room)
        kind, size, a, b, c, name = MESSAGE.unpack_from(data)
        if size > most:
            raise Gone(f"a message of {size} bytes")
        end = HEADER + size
        if len(data) < end:
            data = self._read(data, end, 0)
        self.rest = data[end:]
        return ShimMessage(kind, a, b, c, name, data[HEADER:end])

    def _read(self, data: bytes, size: int, room: int) -> bytes:
        """Receives, once at least, until there are so many bytes, `data` first; all that are there."""
        most = PLENTY if size < PLENTY else min(size, MOST_AT_ONCE)
        while True:
            try:
                received = self._receive_with_descriptors(most, room) if room else self.connection.recv(most)
            except OSError as error:
                raise Gone(str(error)) from None
            if not received:
                raise Gone("closed")
            data += received
            if len(data) >= size:
                return data

    def _receive_with_descriptors(self, most: int, room: int) -> bytes:
        data, control, _, _ = self.connection.recvmsg(most, room)
        for _, kind, packed in control:
            if kind == socket.SCM_RIGHTS:
                self.descriptors += array.array("i", packed[: len(packed) // 4 * 4])
        return data

    def send(self, kind: int, a: int = 0, b: int = 0, c: int = 0, payload: bytes = b"", descriptors: tuple[int, ...] = (),
             wait: bool = True) -> None:  # fmt: skip
        """Send a message. Without `wait`, BlockingIOError where the program may have to read first what was sent before."""
        data, flags = header(kind, len(payload), a, b, c) + payload, 0 if wait else socket.MSG_DONTWAIT
        if not wait and len(data) > AT_ONCE:
            raise BlockingIOError
        try:
            if descriptors:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                sent = self.connection.sendmsg([data], rights, flags)
            else:
                sent = self.connection.send(data, flags)
            if sent < len(data):
                self.connection.sendall(data[sent:])
        except BlockingIOError:
            raise
        except OSError as error:
            raise Gone(str(error)) from None

    def ask(self, kind: int, a: int = 0, b: int = 0, c: int = 0, payload: bytes = b"", descriptors: tuple[int, ...] = (),
            most: int = 0) -> ShimMessage:  # fmt: skip
        """A question to the program's thread; its answer, with `most` bytes at most, or the error it met."""
        self.send(kind, a, b, c, payload, descriptors)
        answer = self.receive(most, ONE_DESCRIPTOR if kind == GIVE else 0)
        if answer.kind != REPLY:
            raise Gone(f"message {answer.kind} where an answer was expected")
        result = answer.a - (1 << 64) if answer.a >> 63 else answer.a
        if result < 0:
            raise Errno(-result)
        return answer

    def gone(self) -> bool:
        """Has the program closed the channel? What it sent before, which nobody has read yet, does not hide that."""
        try:
            ended = select.poll()
            ended.register(self.connection, select.POLLRDHUP)
            return bool(ended.poll(0))
        except (OSError, ValueError):  # closed here
            return True

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []
        self.connection.close()


class Call:
    """An ioctl or mmap that is being answered."""

    returned = b""  # the argument, if it changed; written before all else, so that descriptors' numbers in it stay
    reserved = 0  # bytes of the budget, until the answer is sent
    later: DeferredRun | None = None  # work that is left
    work_first = False  # before the answer, not after it

    def __init__(self, channel: Channel, argument: int = 0) -> None:
        self.channel, self.argument = channel, argument
        self.writes: list[bytes] = []
        self.late: list[tuple[int, memoryview]] = []  # written when nobody waits for this call any more
        self.handed: list[int] = []
        self.claims: list[Callable[[], None]] = []  # each ends a claim on buffers, once a submission is made (buffer_claim.py)

    def reserve(self, size: int) -> None:
        """Count memory for this call; Errno(ENOMEM) where it is too much."""
        self.channel.budget.take(self.channel.pid, size, "an ioctl's data")
        self.reserved += size

    def release(self) -> None:
        if self.reserved:
            self.channel.budget.give(self.channel.pid, self.reserved)
            self.reserved = 0

    def read(self, address: int, size: int) -> bytes:
        channel = self.channel
        if channel.near and 0 < size <= SMALL and address + size <= QWORD_MASK:
            found = read_small(channel.pid, address, size)
            if found is not None:
                return found
        return bytes(self.read_all([(address, size)]))

    def read_all(self, ranges: list[tuple[int, int]]) -> bytearray:
        """Several pieces of memory, joined."""
        total = sum(size for _, size in ranges)
        if not total:
            return bytearray()
        if total > LARGEST_READ or any(address + size > QWORD_MASK or size < 0 for address, size in ranges):
            raise Errno(errno.EFAULT, f"{total} bytes of the program's memory")
        if total > UNCOUNTED:
            self.reserve(2 * total)
        data = bytearray(total)
        if not (self.channel.near and read_ranges(self.channel.pid, ranges, data)):
            self._read_far(deque((address + at, min(size - at, CHUNK)) for address, size in ranges for at in range(0, size, CHUNK)), data)
        return data

    def read_into(self, address: int, view: memoryview) -> None:
        """Read memory of the program into a view of ours."""
        if address + len(view) > QWORD_MASK:
            raise Errno(errno.EFAULT, f"{len(view)} bytes of the program's memory")
        if not (self.channel.near and read_ranges(self.channel.pid, [(address, len(view))], view)):
            self._read_far(deque((address + at, min(len(view) - at, CHUNK)) for at in range(0, len(view), CHUNK)), view)

    def _read_far(self, ranges: deque[tuple[int, int]], into: bytearray | memoryview) -> None:
        """Read by questions to the program. Where it can read and we could not, we are not allowed to, as in some containers."""
        at = 0
        while ranges:
            chunk, total = list[tuple[int, int]](), 0
            while ranges and total + ranges[0][1] <= CHUNK:
                chunk.append(ranges.popleft())
                total += chunk[-1][1]
            question = b"".join(PART.pack(address, size, 0) for address, size in chunk)
            answer = self.channel.ask(READ, payload=question, most=total).payload
            if len(answer) != total:
                raise Gone("a short answer")
            into[at : at + total] = answer
            at += total
        self.channel.near = False

    def write_now(self, address: int, view: memoryview) -> None:
        """Write a view of ours into memory of the program, before the answer."""
        if address + len(view) > QWORD_MASK:
            raise Errno(errno.EFAULT, f"{len(view)} bytes of the program's memory")
        if self.channel.near and write_range(self.channel.pid, address, view):
            return
        for at in range(0, len(view), CHUNK):
            part = view[at : at + CHUNK]
            self.channel.ask(WRITE, payload=PART.pack(address + at, len(part), 0) + bytes(part))
        self.channel.near = False

    def write(self, address: int, data: bytes) -> None:
        if data:
            self.writes.append(PART.pack(address & QWORD_MASK, len(data), 0) + data)

    def write_late(self, address: int, view: memoryview) -> None:
        """Write memory that may be large, and may be read-only, before the answer. The program may keep the server waiting for that."""
        self.late.append((address, view))

    def give_up(self) -> None:
        """End all claims."""
        while self.claims:
            self.claims.pop()()

    def take(self, number: int) -> int:
        self.channel.ask(GIVE, number)
        if not self.channel.descriptors:
            raise Errno(errno.EMFILE, "the server has no descriptor left")  # the kernel drops what the receiver has no number for
        return self.channel.descriptors.pop()

    def identity(self, number: int) -> Identity:
        """Which file one of the program's descriptors is, as the kernel says."""
        descriptor = self.take(number)
        try:
            return identity(descriptor)
        finally:
            os.close(descriptor)

    def hand(self, address: int, descriptor: int) -> None:
        """Give a descriptor to the program with the answer; it is closed here then. Its number is written to the address."""
        self.handed.append(descriptor)
        self.writes.append(PART.pack(address & QWORD_MASK, 4, len(self.handed)))

    def maps(self, start: int, end: int) -> str:
        """Lines of the program's /proc/self/maps: those of a range, or all."""
        self.reserve(4 * LARGEST_MAPS)  # as bytes, as text, and as lines
        return self.channel.ask(MAPS, start, end, most=LARGEST_MAPS).payload.decode("utf-8", "replace")

    def swap(self, start: int, size: int, protection: int, descriptor: int) -> None:
        self.channel.ask(SWAP, start, size, protection, descriptors=(descriptor,))

    def map(self, descriptor: int, offset: int, size: int) -> int:
        return self.channel.ask(MAP, offset, size, descriptors=(descriptor,)).a

    def done(self, result: int, offset: int, wait: bool = True) -> None:
        """Send the answer; the call needs nothing more then. Without `wait`, BlockingIOError where that may not be possible at once."""
        if self.late:
            self._write_late(wait)
        if not (self.returned or self.writes or self.reserved):  # nor are there descriptors, whose numbers would be written
            self.channel.send(DONE, result, offset, wait=wait)
            return
        argument = PART.pack(self.argument, len(self.returned), 0) + self.returned if self.returned else b""
        try:
            self.channel.send(DONE, result, offset, payload=argument + b"".join(self.writes), descriptors=tuple(self.handed), wait=wait)
        except BlockingIOError:
            raise
        except BaseException:
            self._end()
            raise
        self._end()

    def _write_late(self, wait: bool) -> None:
        if not wait:
            raise BlockingIOError
        late, self.late = self.late, []
        try:
            for address, view in late:
                try:
                    self.write_now(address, view)
                except Errno:
                    pass  # the kernel does not complain either
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        for descriptor in self.handed:
            os.close(descriptor)
        self.handed = []
        self.release()
