"""A program without a shim: speaks to a server as shim.c does, from inside the test.

    with served("kbl") as gpu:
        program = gpu.program()
        handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4096).handle
"""

from __future__ import annotations

import array
import ctypes
import os
import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.bits.units import QWORD_MASK
from softgen.driver.objects.node import GpuState, SubmissionRunner
from softgen.driver.objects.submission import Submission
from softgen.driver.queue.execute import Executor
from softgen.driver.queue.queue import Queues
from softgen.driver.run.protocol import MESSAGE, PART
from softgen.driver.run.server import Server
from softgen.driver.run.service import Service, listen
from softgen.driver.shim import shim_h
from softgen.driver.uapi.uapi import ARGUMENTS, NAMES

NUMBERS = {name: number for number, name in NAMES.items()}
TYPES = {"dma-buf": ord("b"), "sync file": ord(">")}


class Memory:
    """Memory of the program; `address` is what an ioctl is given."""

    def __init__(self, data: bytes | int) -> None:
        self.buffer = ctypes.create_string_buffer(data, len(data)) if isinstance(data, bytes) else ctypes.create_string_buffer(data)
        self.address = ctypes.addressof(self.buffer)

    def __bytes__(self) -> bytes:
        return self.buffer.raw


class Program:
    """One opened node and one thread."""

    def __init__(self, folder: Path, node: str = "renderD128") -> None:
        self.folder = folder
        self.channel, self.node = self.connect("server"), self.connect(node, named=True)
        self.name = bytes(self.node.getsockname()).ljust(8, b"\0")
        self.kept: list[Memory] = []
        self.lent: list[tuple[int, int]] = []  # address and size of other memory that pointers may lead to
        self.received: list[int] = []
        self.maps = b""  # what it says about its own mappings, where it lies

    def connect(self, name: str, named: bool = False) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if named:
            connection.bind("")
        connection.connect(str(self.folder / name))
        kind, _, result, _, _, _ = MESSAGE.unpack(connection.recv(MESSAGE.size, socket.MSG_WAITALL))
        assert kind == shim_h.WELCOME
        if result:
            connection.close()
            raise OSError((1 << 64) - result, os.strerror((1 << 64) - result))
        return connection

    def thread(self) -> Program:
        """Another thread of the same program: the same node, its own channel."""
        other = object.__new__(Program)
        other.__dict__.update(self.__dict__, channel=self.connect("server"), kept=[], received=[])
        return other

    def memory(self, data: bytes | int) -> Memory:
        self.kept.append(Memory(data))
        return self.kept[-1]

    def numbers(self, letter: str, *values: int) -> int:
        return self.memory(struct.pack(f"<{len(values)}{letter}", *values)).address

    def owns(self, address: int, size: int) -> bool:
        """Is this memory the test made? Anything else is a bad pointer."""
        ranges = [*self.lent, *((item.address, len(item.buffer)) for item in self.kept)]
        return any(start <= address and address + size <= start + length for start, length in ranges)

    # -- requests

    def ioctl(self, name: str, /, shorter: int | None = None, **fields: Any) -> SimpleNamespace:
        layout = ARGUMENTS[name]
        data = layout.pack(SimpleNamespace(**{**vars(layout.unpack(b"")), **fields}))
        argument = self.memory(data[:shorter])
        _, result, _ = self._exchange(shim_h.IOCTL, ord("d") << 8 | NUMBERS[name], argument.address, self.node.fileno(), bytes(argument))
        assert result == 0  # what ioctl() returns
        return layout.unpack(bytes(argument))

    def refused(self, name: str, /, **fields: Any) -> tuple[int, SimpleNamespace]:
        """The error number of an ioctl that fails, and its argument afterwards."""
        with pytest.raises(OSError) as found:
            self.ioctl(name, **fields)
        assert found.value.errno is not None
        return found.value.errno, ARGUMENTS[name].unpack(bytes(self.kept[-1]))

    def raw(self, number: int, data: bytes = b"") -> None:
        argument = self.memory(data or b"\0")
        self._exchange(shim_h.IOCTL, ord("d") << 8 | number, argument.address, self.node.fileno(), data)

    def foreign(self, kind: str, number: int, descriptor: int, data: bytes) -> bytes | None:
        argument = self.memory(data)
        kind_number = self._exchange(shim_h.FOREIGN, TYPES[kind] << 8 | number, argument.address, descriptor, bytes(argument))[0]
        return None if kind_number == shim_h.NOT_MINE else bytes(argument)

    def mmap(self, offset: int, size: int) -> tuple[int, int]:
        """The descriptor and the offset a shim would map."""
        _, _, at = self._exchange(shim_h.MMAP, offset, size, self.node.fileno())
        return self.received.pop(), at

    def _exchange(self, kind: int, a: int, b: int = 0, c: int = 0, payload: bytes = b"") -> tuple[int, int, int]:
        self._send(kind, a, b, c, payload)
        while True:
            kind, a, b, c, payload, descriptors = self._receive()
            if kind in (shim_h.DONE, shim_h.NOT_MINE):
                break
            self._serve(kind, a, b, c, payload, descriptors)
        self.received += descriptors
        result = a - (1 << 64) if a >> 63 else a
        self._finish(payload, descriptors)
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return kind, result, b

    def _serve(self, kind: int, a: int, b: int, c: int, payload: bytes, descriptors: list[int]) -> None:
        if kind in (shim_h.READ, shim_h.WRITE):
            assert (a, b, c) == (0, 0, 0)  # all that they say follows the message
        if kind == shim_h.READ:
            parts = list(PART.iter_unpack(payload))
            if not all(self.owns(address, size) for address, size, _ in parts):
                return self._send(shim_h.REPLY, (-14) & QWORD_MASK, 0, 0, b"")
            self._send(shim_h.REPLY, 0, 0, 0, b"".join(ctypes.string_at(address, size) for address, size, _ in parts))
        elif kind == shim_h.GIVE:
            if not Path(f"/proc/self/fd/{a}").exists():
                return self._send(shim_h.REPLY, (-9) & QWORD_MASK, 0, 0, b"")
            data = MESSAGE.pack(shim_h.REPLY, 0, 0, 0, 0, b"")
            self.channel.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [a]))])
        elif kind == shim_h.WRITE:
            address, size, _ = PART.unpack_from(payload)
            fine = self.owns(address, size)
            self._finish(payload, [])
            self._send(shim_h.REPLY, 0 if fine else (-14) & QWORD_MASK, 0, 0, b"")
        elif kind == shim_h.MAPS:
            self._send(shim_h.REPLY, 0, 0, 0, self.maps or Path("/proc/self/maps").read_bytes())
        else:
            self._send(shim_h.REPLY, (-38) & QWORD_MASK, 0, 0, b"")
        return None

    def _finish(self, payload: bytes, descriptors: list[int]) -> None:
        at = 0
        while at < len(payload):
            address, size, descriptor = PART.unpack_from(payload, at)
            at += PART.size
            if descriptor:
                assert size == 4, "a descriptor's number is an int"
                if self.owns(address, 4):
                    ctypes.memmove(address, struct.pack("<i", descriptors[descriptor - 1]), 4)
            else:
                if self.owns(address, size):
                    ctypes.memmove(address, payload[at : at + size], size)
                at += size

    def _send(self, kind: int, a: int, b: int, c: int, payload: bytes) -> None:
        self.channel.sendall(MESSAGE.pack(kind, len(payload), a, b, c, self.name) + payload)

    def _receive(self) -> tuple[int, int, int, int, bytes, list[int]]:
        data, descriptors = b"", array.array("i")
        size = MESSAGE.size
        while len(data) < size:
            more, control, _, _ = self.channel.recvmsg(size - len(data), 256)
            assert more, "the server closed the channel"
            for _, _, packed in control:
                descriptors.frombytes(packed)
            data += more
            if len(data) == MESSAGE.size:
                size = MESSAGE.size + MESSAGE.unpack(data)[1]
        kind, _, a, b, c, _ = MESSAGE.unpack(data[: MESSAGE.size])
        return kind, a, b, c, data[MESSAGE.size :], list(descriptors)

    def close(self) -> None:
        self.channel.close()
        self.node.close()
        for descriptor in self.received:
            try:
                os.close(descriptor)
            except OSError:
                pass


class Held:
    """A runner that holds submissions back until a test releases them."""

    def __init__(self) -> None:
        self.submissions: list[Submission] = []

    def submit(self, submission: Submission) -> None:
        self.submissions.append(submission)

    def at_once(self, submission: Submission, awaited: bool = False) -> None:
        return None

    def finish(self, error: int = 0) -> None:
        self.submissions.pop(0).fence.signal(error)


class Gpu:
    def __init__(self, shared: GpuState, server: Server, folder: Path) -> None:
        self.shared, self.server, self.folder = shared, server, folder
        self.programs: list[Program] = []
        self.log: list[str] = []
        self.told: list[str] = []
        self.executor: Executor | None = None

    def program(self, node: str = "renderD128") -> Program:
        self.programs.append(Program(self.folder, node))
        return self.programs[-1]


@contextmanager
def served(name: str, runner: SubmissionRunner | None = None, save: Callable[[Submission, str], str] = lambda submission, text: "",
           memory_limit: int | None = None) -> Iterator[Gpu]:  # fmt: skip
    """A server in a thread. Without a runner the real device executes."""
    folder = Path(tempfile.mkdtemp(prefix="softgen-test-"))
    told: list[str] = []
    executor = Executor(device(name), [], save, told.append)
    log: list[str] = []
    shared = GpuState(device(name), runner or Queues(executor.execute, executor.failed), log.append, memory_limit)
    executor.budget = shared.budget
    ours, theirs = socket.socketpair()
    server = Server(shared, Service(theirs, folder, listen(folder)))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    gpu = Gpu(shared, server, folder)
    gpu.log, gpu.told, gpu.executor = log, told, executor
    try:
        yield gpu
    finally:
        for program in gpu.programs:
            program.close()
        ours.send(b"end")
        thread.join(5)
        for each in (ours, theirs, *server.listening.values()):
            each.close()
        server.service.reserve.close()
        shutil.rmtree(folder)
