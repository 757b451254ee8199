"""TBX: server of the socket protocol by which Intel's OpenCL runtime uses a simulator.

Reads   TBX_HEADER TBX_CONTROL TBX_REGISTER_REQUEST TBX_REGISTER_ANSWER TBX_TABLE_REQUEST TBX_TABLE_ANSWER TBX_MEMORY_WRITE
        TBX_MEMORY_READ TBX_MEMORY_ANSWER
Writes  a GPU's registers, global table and physical memory

A client writes memory, page tables and contexts, and starts work by writing registers; the work has run when the next message is read.
Nothing in the protocol reports a failure, and the client waits for a number in memory: a command that fails is logged and skipped, and the
rest of the submission is executed.

Each connection has a simulator of its own. The runtime opens one connection per engine context (three of one process at once with version
22.43 on Gen8 and Gen9), and each has page tables and an allocator of physical memory of its own, which start at the same addresses
(compute-runtime, tbx_command_stream_receiver_hw.inl): connections that shared a memory would overwrite each other, and strangers would
read each other's.
"""

from __future__ import annotations

import errno
import gc
import itertools
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from softgen.bits import catalogue
from softgen.bits.generation import Device
from softgen.bits.units import PAGE_SIZE
from softgen.device.gpu import GpuDevice
from softgen.device.memory import DeviceMemory
from softgen.errors import DecodeError, SoftgenError
from softgen.memory.host import host_memory
from softgen.memory.space import Space
from softgen.threads.dispatcher_protocol import Dispatcher

LOOPBACK = "127.0.0.1"
HEADER = 12
LARGEST = 1 << 30  # bytes of memory in one message
CHUNK = 1 << 20  # bytes of memory read or written at a time
MOST_CONNECTIONS = 64  # at once
FIRST_MESSAGE = 20.0  # seconds until a connection has sent one: others may want its place
HOST_SHARE = 0.75  # of the host's memory for all of them
BREATH = 0.1  # seconds until the next try to accept a connection, where the host has no descriptor left
REFUSALS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ECONNABORTED, errno.EPROTO)  # of accept(), which others survive
REGISTERS_END = 1 << 23
MOST_FAILURES = 100  # listed of one connection

# Message types (public compute-runtime tbx_proto).
REGISTER, REGISTER_ANSWER, TABLE, TABLE_ANSWER, WRITE, READ, READ_ANSWER, CONTROL = 0, 1, 2, 3, 4, 5, 6, 11
BODIES = {REGISTER: "TBX_REGISTER_REQUEST", TABLE: "TBX_TABLE_REQUEST", WRITE: "TBX_MEMORY_WRITE", READ: "TBX_MEMORY_READ",
          CONTROL: "TBX_CONTROL"}  # fmt: skip


@dataclass
class Options:
    """Options for the execution of clients' work."""

    deterministic: bool = False  # timestamps count up
    time_limit: float | None = None  # seconds for one submission
    memory: int = 1 << 34  # bytes of physical memory at most,
    all_memory: int | None = None  # and of all connections together; default: a share of the host's
    groups: Callable[[], Dispatcher] | None = None  # makes what runs the dispatches of one simulator; default: the reference


@dataclass
class Statistics:
    """Messages and failures of one connection so far."""

    messages: int = 0
    failures: list[str] = field(default_factory=list)


class TbxSimulator:
    """The machine of one connection: a GPU with its memory."""

    def __init__(self, device: Device, options: Options, log: Callable[[str], None],
                 check_memory: Callable[[int], None] = lambda more: None) -> None:  # fmt: skip
        """`check_memory` raises where all connections together may not write so many bytes more."""
        self.device, self.options, self.log, self.check_memory, self.statistics = device, options, log, check_memory, Statistics()
        self.memory = DeviceMemory(device.generation, options.memory)
        groups = options.groups() if options.groups else None
        clock = itertools.count(1).__next__ if options.deterministic else None
        self.gpu = GpuDevice(device, clock, self._timed_out, self.memory, self._on_error, groups)
        self._end: float | None = None
        self._stopped = False
        self._remarks = 0

    def stop(self) -> None:
        """End the work that runs, as if its time were up; called from another thread."""
        self._stopped = True

    def _timed_out(self) -> bool:
        return self._stopped or self._end is not None and time.monotonic() >= self._end

    def _on_error(self, error: SoftgenError) -> bool:
        """Log a failed command and go on with the rest of the submission, which gets a time limit of its own."""
        self.failed(str(error))
        self._start_clock()
        return not self._stopped

    def _start_clock(self) -> None:
        self._end = None if self.options.time_limit is None else time.monotonic() + self.options.time_limit

    def failed(self, what: str) -> None:
        if len(self.statistics.failures) < MOST_FAILURES:
            self.statistics.failures.append(what)
        self.log(what)

    # -- requests -------------------------------------------------------------------------------------------------

    def register(self, request: Any) -> int:
        """Read a register, or write one, which may start work."""
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
            self._log_remarks()
        return 0

    def _log_remarks(self) -> None:
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
        """Physical memory, after a check of the request's size."""
        if request.bytes > LARGEST:
            raise DecodeError(f"{request.bytes:#x} bytes at once; the most is {LARGEST:#x}")
        return self.memory.physical

    def changed(self) -> None:
        """Poll engines that wait for memory, after it was written."""
        if any(engine.busy() for engine in self.gpu.engines.values()):
            try:
                self.gpu.poll()
            except SoftgenError as error:
                self.failed(str(error))


class Connection:
    """One socket: messages in, answers out."""

    def __init__(self, stream: socket.socket, simulator: TbxSimulator) -> None:
        self.stream, self.simulator = stream, simulator
        gen = simulator.device.generation.number
        self.layouts = {number: catalogue.layout(name, gen) for number, name in BODIES.items()}
        self.header = catalogue.layout("TBX_HEADER", gen)
        self.gen = gen
        self.until: float | None = None  # when the first message must be there; None afterwards

    def serve(self) -> None:
        """Answer messages until the client disconnects; a malformed one is a DecodeError."""
        self.until = time.monotonic() + FIRST_MESSAGE
        while (head := self._take(HEADER, optional=True)) is not None:
            header: Any = self.header.unpack(memoryview(head).cast("I"))
            layout = self.layouts.get(header.type)
            if layout is None:
                raise DecodeError(f"message type {header.type:#x} is unknown")
            if header.bytes != 4 * layout.dwords:
                raise DecodeError(f"{layout.name} has {4 * layout.dwords} bytes, not {header.bytes}")
            body = self._take(header.bytes)
            assert body is not None
            if self.until is not None:
                self.until = None
                self.stream.settimeout(None)
            self.simulator.statistics.messages += 1
            self._answer(header, layout.raw(memoryview(body).cast("I")))

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
                self._write(request)
            case 5:
                self._read(header, request)
            case _:
                pass  # TBX_CONTROL: settings of a simulator that has time and messages of its own; this one needs none

    def _write(self, request: Any) -> None:
        space = self.simulator.physical(request)
        self.simulator.check_memory(request.bytes)
        for start in range(0, request.bytes, CHUNK):
            data = self._take(min(CHUNK, request.bytes - start))
            assert data is not None
            space.write(request.address + start, data)
        self.simulator.changed()

    def _read(self, header: Any, request: Any) -> None:
        space = self.simulator.physical(request)
        first = space.read(request.address, min(CHUNK, request.bytes))
        self._send(READ_ANSWER, header, "TBX_MEMORY_ANSWER", first, address=request.address, bytes=request.bytes)
        for start in range(CHUNK, request.bytes, CHUNK):
            self.stream.sendall(space.read(request.address + start, min(CHUNK, request.bytes - start)))

    def _send(self, number: int, question: Any, name: str, data: bytes = b"", **values: int) -> None:
        body = catalogue.layout(name, self.gen).pack(**values)
        head = self.header.pack(type=number, transaction=question.transaction, bytes=4 * len(body))
        self.stream.sendall(b"".join(dword.to_bytes(4, "little") for dword in head + body) + data)

    def _take(self, count: int, optional: bool = False) -> bytes | None:
        """Receive `count` bytes; None where the client has disconnected between messages."""
        buffer = bytearray(count)
        view, done = memoryview(buffer), 0
        while done < count:
            try:
                if self.until is not None:
                    self.stream.settimeout(max(self.until - time.monotonic(), 0.001))
                received = self.stream.recv_into(view[done:])
            except TimeoutError:
                raise DecodeError(f"it has sent no message in {FIRST_MESSAGE:g} s") from None
            if not received:
                if optional and not done:
                    return None
                raise DecodeError(f"the client disconnected in the middle of a message: {done} of {count} bytes")
            done += received
        return bytes(buffer)


class TbxServer:
    """Listens on the loopback interface; `port` 0 takes a free one. `log` gets a line per event.

    Connections that overlap in time count as one client: the runtime opens several.
    """

    def __init__(self, device: Device, port: int, options: Options | None = None, log: Callable[[str], None] = print) -> None:
        self.device, self.options, self.log = device, options or Options(), log
        try:
            self.listener = socket.create_server((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            raise SoftgenError(f"cannot listen on {LOOPBACK}:{port}: {getattr(error, 'strerror', None) or error}") from None
        self.port: int = self.listener.getsockname()[1]
        self.open: set[socket.socket] = set()
        self.clients = self.connections = self.refused = 0  # connections of the last client, and how many of these were refused
        self.wanted: int | None = None  # clients to serve
        self.done: list[Statistics] = []  # of connections that have ended
        self.simulators: set[TbxSimulator] = set()  # of open connections
        self.all_memory = self.options.all_memory or int(host_memory() * HOST_SHARE)
        self.left = threading.Condition()
        self.refusal = 0  # error number of accept() that was logged last
        self.closed = False

    def serve(self, clients: int | None = None) -> None:
        """Serve until `clients` clients have disconnected; default: until the server is closed."""
        self.wanted = clients
        try:
            while True:
                if (stream := self._accept()) is not None:
                    self._enter(stream)
        except OSError:
            if not (self.closed and clients is None or self._served()):
                raise
        finally:
            self.close()

    def _accept(self) -> socket.socket | None:
        """The next connection; None where it went away again, or the host has no descriptor or memory for it yet."""
        try:
            return self.listener.accept()[0]
        except OSError as error:
            if error.errno not in REFUSALS:
                raise
            if error.errno != self.refusal:
                self.refusal = error.errno
                self.log(f"a connection has to wait: {error.strerror}")
            gc.collect()
            with self.left:
                self.left.wait(BREATH)
            return None

    def _served(self) -> bool:
        """Whether the last client has disconnected."""
        return self.wanted is not None and self.clients >= self.wanted and not self.open

    def close(self) -> None:
        """End serve(), the connections and the work that runs for them."""
        self.closed = True
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # close() alone does not end the wait for a connection
        except OSError:
            pass  # closed already
        self.listener.close()
        for simulator in list(self.simulators):
            simulator.stop()
        with self.left:
            for stream in self.open:
                try:
                    stream.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the client has disconnected already

    def _enter(self, stream: socket.socket) -> None:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.left:
            if len(self.open) >= MOST_CONNECTIONS:
                self.log(f"a connection is refused: {MOST_CONNECTIONS} are open, the most there may be")
                stream.close()
                return
            if not self.open:
                self.clients, self.connections, self.refused = self.clients + 1, 0, 0
            self.connections += 1
            name = f"client {self.clients}" + (f", connection {self.connections}" if self.connections > 1 else "")
            self.open.add(stream)
        self.log(f"{name}: connected")
        try:
            threading.Thread(target=self._talk, args=(stream, name), daemon=True).start()
        except RuntimeError as error:
            self._refuse(stream, name, str(error))

    def _simulator(self, name: str) -> TbxSimulator:
        def make() -> TbxSimulator:
            return TbxSimulator(self.device, self.options, lambda text: self.log(f"{name}: {text}"), self._check_memory)

        try:
            return make()
        except (SoftgenError, OSError, MemoryError):
            gc.collect()  # simulators of clients that have disconnected are in cycles, with their memory and descriptors
            return make()

    def _check_memory(self, more: int) -> None:
        used = sum(simulator.memory.physical.pages_written for simulator in list(self.simulators)) * PAGE_SIZE
        if used + more > self.all_memory:
            raise SoftgenError(f"{more:#x} bytes more of memory: all connections together may have {self.all_memory >> 20} MiB")

    def _refuse(self, stream: socket.socket, name: str, why: str) -> None:
        """A connection for which the host has too little of something."""
        self.log(f"{name}: refused: {why}")
        stream.close()
        with self.left:
            self.refused += 1
            self.clients -= self.refused == self.connections  # none of the client's connections is served
            self._leave(stream, Statistics(failures=[why]))

    def _talk(self, stream: socket.socket, name: str) -> None:
        """A connection's thread. Nothing is shared with the others: one that stalls keeps nobody waiting."""
        try:
            simulator = self._simulator(name)
        except (SoftgenError, OSError, MemoryError) as error:
            self._refuse(stream, name, str(error) or type(error).__name__)
            return
        self.simulators.add(simulator)
        if self.closed:
            simulator.stop()  # close() did not see it
        try:
            Connection(stream, simulator).serve()
        except SoftgenError as error:
            simulator.failed(f"{error}; the connection is closed")
        except OSError as error:
            simulator.failed(f"the connection broke: {error.strerror or error}")
        except Exception as error:  # a mistake of ours, or no memory, for one client must not end all
            simulator.failed(f"softgen itself failed: {type(error).__name__}: {error}; the connection is closed")
        finally:
            stream.close()
            self.simulators.discard(simulator)
            done, statistics = simulator.gpu.counters, simulator.statistics
            simulator.log(f"disconnected after {statistics.messages} messages, {done.batches} batches, {done.dispatches} dispatches, "
                          f"{done.instructions} instructions; {len(statistics.failures)} failures")  # fmt: skip
            self._leave(stream, statistics)

    def _leave(self, stream: socket.socket, statistics: Statistics) -> None:
        with self.left:
            self.done.append(statistics)
            self.open.discard(stream)
            self.left.notify_all()
            if self._served():
                self.listener.shutdown(socket.SHUT_RDWR)  # ends the wait for another connection
