"""TBX: the socket that Intel's OpenCL runtime speaks to a simulator, and the simulator behind it.

Reads   TBX_HEADER TBX_CONTROL TBX_REGISTER_REQUEST TBX_REGISTER_ANSWER TBX_TABLE_REQUEST TBX_TABLE_ANSWER TBX_MEMORY_WRITE
        TBX_MEMORY_READ TBX_MEMORY_ANSWER
Writes  a GPU's registers, global table and physical memory

A client writes memory, page tables and contexts, and starts work by writing registers; the work has run when the next message is read.
Nothing tells a client that its work failed, and it waits for a number in memory: so a command that fails is told in the log and skipped,
and the rest of the submission is executed. Connections that overlap in time are one client's, and share one machine.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from softgen.bits import catalogue
from softgen.bits.generation import Device
from softgen.device.gpu import Gpu
from softgen.device.memory import DeviceMemory
from softgen.errors import DecodeError, SoftgenError
from softgen.memory.space import Space
from softgen.threads.dispatch import Dispatcher

LOOPBACK = "127.0.0.1"
HEADER = 12
LARGEST = 1 << 30  # bytes of memory in one message
REGISTERS_END = 1 << 23
MOST_FAILURES = 100  # listed of one client

# Message types (public compute-runtime tbx_proto).
REGISTER, REGISTER_ANSWER, TABLE, TABLE_ANSWER, WRITE, READ, READ_ANSWER, CONTROL = 0, 1, 2, 3, 4, 5, 6, 11
BODIES = {REGISTER: "TBX_REGISTER_REQUEST", TABLE: "TBX_TABLE_REQUEST", WRITE: "TBX_MEMORY_WRITE", READ: "TBX_MEMORY_READ",
          CONTROL: "TBX_CONTROL"}  # fmt: skip


@dataclass
class Options:
    """How clients' work is run."""

    deterministic: bool = False  # timestamps count up
    time_limit: float | None = None  # seconds for one submission
    memory: int = 1 << 34  # bytes of physical memory at most
    groups: Dispatcher | None = None  # runs dispatches; the reference unless told


@dataclass
class Told:
    """What has happened to one client so far."""

    messages: int = 0
    failures: list[str] = field(default_factory=list)


class Simulator:
    """The machine one client sees: a GPU with its memory."""

    def __init__(self, device: Device, options: Options, log: Callable[[str], None]) -> None:
        self.device, self.options, self.log, self.told = device, options, log, Told()
        self.memory = DeviceMemory(device.generation, options.memory)
        clock = itertools.count(1).__next__ if options.deterministic else None
        self.gpu = Gpu(device, clock, self._spent, self.memory, self._excuse, options.groups)
        self._end: float | None = None
        self._remarks = 0

    def _spent(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def _excuse(self, error: SoftgenError) -> bool:
        """A command failed; the rest of the submission gets its time."""
        self.failed(str(error))
        self._start_clock()
        return True

    def _start_clock(self) -> None:
        self._end = None if self.options.time_limit is None else time.monotonic() + self.options.time_limit

    def failed(self, what: str) -> None:
        if len(self.told.failures) < MOST_FAILURES:
            self.told.failures.append(what)
        self.log(what)

    # -- what a client may ask -------------------------------------------------------------------------------------

    def register(self, request: Any) -> int:
        """A register read, or written: which may start work."""
        if request.kind:
            return 0  # configuration and ports of the rest of the machine, which is not here
        if request.offset >= REGISTERS_END or request.offset % 4:
            raise DecodeError(f"register {request.offset:#x} does not exist: registers are dwords below {REGISTERS_END:#x}")
        if not request.write:
            return self.gpu.read_register(request.offset)
        self._start_clock()
        try:
            self.gpu.write_register(request.offset, request.value)
        except SoftgenError as error:
            self.failed(str(error))
        finally:
            self._end = None
            self._tell_remarks()
        return 0

    def _tell_remarks(self) -> None:
        for remark in list(self.gpu.remarks)[self._remarks :]:
            self.log(f"note: {remark}")
        self._remarks = len(self.gpu.remarks)

    def table(self, request: Any) -> int:
        size = self.device.generation.ggtt_entry // 8
        if (request.index + 1) * size > self.memory.entries.capacity:
            raise DecodeError(f"the global table has no entry {request.index:#x}")
        if not request.write:
            return int.from_bytes(self.memory.entries.read(request.index * size, size), "little")
        self.memory.write_entry(request.index, request.entry)
        return 0

    def physical(self, request: Any) -> Space:
        """The memory a request is about."""
        if request.bytes > LARGEST:
            raise DecodeError(f"{request.bytes:#x} bytes at once; the most is {LARGEST:#x}")
        return self.memory.physical

    def changed(self) -> None:
        """Memory was written: who waits for it looks again."""
        if any(one.busy() for one in self.gpu.engines.values()):
            try:
                self.gpu.poll()
            except SoftgenError as error:
                self.failed(str(error))


class Connection:
    """One socket: messages in, answers out."""

    def __init__(self, stream: socket.socket, simulator: Simulator, lock: threading.Lock) -> None:
        self.stream, self.simulator, self.lock = stream, simulator, lock
        gen = simulator.device.generation.number
        self.layouts = {number: catalogue.layout(name, gen) for number, name in BODIES.items()}
        self.header = catalogue.layout("TBX_HEADER", gen)
        self.gen = gen

    def serve(self) -> None:
        """Until the client leaves. What is no message is a DecodeError."""
        while (head := self._take(HEADER, optional=True)) is not None:
            header: Any = self.header.unpack(memoryview(head).cast("I"))
            layout = self.layouts.get(header.type)
            if layout is None:
                raise DecodeError(f"message type {header.type:#x} is unknown")
            if header.bytes != 4 * layout.dwords:
                raise DecodeError(f"{layout.name} has {4 * layout.dwords} bytes, not {header.bytes}")
            body = self._take(header.bytes)
            assert body is not None
            request = layout.raw(memoryview(body).cast("I"))
            with self.lock:
                self.simulator.told.messages += 1
                self._answer(header, request)

    def _answer(self, header: Any, request: Any) -> None:
        match header.type:
            case 0:
                value = self.simulator.register(request)
                if not request.write:
                    self._send(REGISTER_ANSWER, header, "TBX_REGISTER_ANSWER", value=value)
            case 2:
                entry = self.simulator.table(request)
                if not request.write:
                    self._send(TABLE_ANSWER, header, "TBX_TABLE_ANSWER", entry=entry)
            case 4:
                space, data = self.simulator.physical(request), self._take(request.bytes)
                assert data is not None
                space.write(request.address, data)
                self.simulator.changed()
            case 5:
                data = self.simulator.physical(request).read(request.address, request.bytes)
                self._send(READ_ANSWER, header, "TBX_MEMORY_ANSWER", data, address=request.address, bytes=request.bytes)
            case _:
                pass  # how the client would like the simulator to behave; it behaves as it does

    def _send(self, number: int, question: Any, name: str, data: bytes = b"", **values: int) -> None:
        body = catalogue.layout(name, self.gen).pack(**values)
        head = self.header.pack(type=number, transaction=question.transaction, bytes=4 * len(body))
        self.stream.sendall(b"".join(one.to_bytes(4, "little") for one in head + body) + data)

    def _take(self, count: int, optional: bool = False) -> bytes | None:
        """So many bytes; None where the client has left between messages."""
        buffer = bytearray(count)
        view, done = memoryview(buffer), 0
        while done < count:
            got = self.stream.recv_into(view[done:])
            if not got:
                if optional and not done:
                    return None
                raise DecodeError(f"the client left in the middle of a message: {done} of {count} bytes")
            done += got
        return bytes(buffer)


class Server:
    """Listens on the loopback interface; `port` 0 takes a free one. `log` gets a line for whatever happens."""

    def __init__(self, device: Device, port: int, options: Options | None = None, log: Callable[[str], None] = print) -> None:
        self.device, self.options, self.log = device, options or Options(), log
        try:
            self.listener = socket.create_server((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            raise SoftgenError(f"cannot listen on {LOOPBACK}:{port}: {getattr(error, 'strerror', None) or error}") from None
        self.port: int = self.listener.getsockname()[1]
        self.lock = threading.Lock()  # of the machine
        self.open: set[socket.socket] = set()
        self.simulator: Simulator | None = None
        self.clients = 0
        self.done: list[Told] = []
        self.left = threading.Condition()

    def serve(self, clients: int | None = None) -> None:
        """Until so many clients have come and gone; for ever unless told."""
        try:
            while clients is None or self.clients < clients or self.open:
                if clients is not None and self.clients >= clients:
                    with self.left:
                        self.left.wait_for(lambda: not self.open)
                    break
                stream, _ = self.listener.accept()
                self._enter(stream)
        finally:
            self.close()

    def close(self) -> None:
        self.listener.close()
        with self.left:
            for stream in self.open:
                try:
                    stream.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the client was faster

    def _enter(self, stream: socket.socket) -> None:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.left:
            if self.simulator is None:
                self.clients += 1
                name = f"client {self.clients}"
                self.simulator = Simulator(self.device, self.options, lambda text: self.log(f"{name}: {text}"))
                self.log(f"{name}: connected")
            self.open.add(stream)
            simulator = self.simulator
        threading.Thread(target=self._talk, args=(stream, simulator), daemon=True).start()

    def _talk(self, stream: socket.socket, simulator: Simulator) -> None:
        try:
            Connection(stream, simulator, self.lock).serve()
        except SoftgenError as error:
            simulator.failed(f"{error}; the connection is closed")
        except OSError as error:
            simulator.failed(f"the connection broke: {error.strerror or error}")
        finally:
            stream.close()
            self._leave(stream, simulator)

    def _leave(self, stream: socket.socket, simulator: Simulator) -> None:
        with self.left:
            self.open.discard(stream)
            if not self.open and self.simulator is simulator:
                self.simulator = None
                done = simulator.gpu.counters
                self.done.append(simulator.told)
                simulator.log(f"left after {simulator.told.messages} messages, {done.batches} batches, {done.dispatches} dispatches, "
                              f"{done.instructions} instructions; {len(simulator.told.failures)} failures")  # fmt: skip
            self.left.notify_all()
