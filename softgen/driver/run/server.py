"""The server: accepts connections of programs and answers their ioctls. One process serves all programs of a run.

Programs connect to three sockets in the run's folder: `card0` and `renderD128`, a connection for each open(), which ends with the last
descriptor of it; and `server`, a channel for each thread, on which ioctls come. Each channel has a thread here.
"""

from __future__ import annotations

import errno
import os
import resource
import selectors
import socket
import threading
import time
import weakref
from collections.abc import Callable

from softgen.driver.errors import Errno, Gone
from softgen.driver.ioctl import context, gem, ioctls
from softgen.driver.objects.descriptors import OUT_OF_DESCRIPTORS, leave_some
from softgen.driver.objects.fence import Pipes
from softgen.driver.objects.gem_context import GemContext
from softgen.driver.objects.node import GpuState, Node
from softgen.driver.queue.queue import DeferredRun
from softgen.driver.run.channel_threads import ChannelThreads
from softgen.driver.run.input_devices import InputDevices
from softgen.driver.run.node_name import ended, leads_to, picked
from softgen.driver.run.protocol import Call, Channel, ShimMessage, greet, peer
from softgen.driver.run.service import Service
from softgen.driver.run.sysfs_tree import INPUTS, NODES
from softgen.driver.shim.shim_h import FOREIGN, IOCTL, MMAP, NOT_MINE
from softgen.driver.uapi.uapi import ARGUMENTS, name_of

ROUTINE = (errno.ETIME, errno.EAGAIN, errno.EINTR)  # errors with which a wait ends
BREATH = 0.05  # seconds until the next try, where neither accepting nor refusing was possible
DRAIN = 5.0  # seconds that work may go on after the program has ended
PATIENCE = 0.003  # seconds that a program may wait for an answer awake; behind longer work a late wake-up matters little


class Server:
    """The accept loop, the opened nodes, and a thread for each channel."""

    def __init__(self, gpu: GpuState, service: Service, trace: Callable[[str], None] | None = None, spare_processor: bool = False,
                 drain: float | None = None) -> None:  # fmt: skip
        """`trace` is called with a line of text for every ioctl and mmap; `spare_processor`: whether one is left for a program that waits
        awake while all host threads are busy; `drain`: seconds that work may outlive its program, DRAIN by default."""
        self.gpu, self.service, self.listening, self.trace = gpu, service, service.listening, trace
        self.patience = PATIENCE if spare_processor else 0.0
        self.drain = drain
        self.nodes: dict[bytes, Node] = {}
        self.connections: dict[Node, socket.socket] = {}  # our ends
        self.selector = selectors.DefaultSelector()
        self.threads = ChannelThreads()
        self.inputs = InputDevices()
        self.loaded = False  # all modules (service.py)

    def run(self) -> bytes:
        """Accept connections until the launcher sends `end` or `stop`; returns which."""
        for name, listener in self.listening.items():
            listener.setblocking(False)
            self.selector.register(listener, selectors.EVENT_READ, name)
        self.selector.register(self.service.control, selectors.EVENT_READ, "control")
        for pipes in (self.gpu.sync_files, self.gpu.syncobjs):
            self.selector.register(pipes.closed, selectors.EVENT_READ, pipes)
        while True:
            for key, _ in self.selector.select():
                if key.data == "control":
                    return self.service.command()
                try:
                    self._event(key)
                except Exception as error:  # a mistake of ours, or a limit of the host, for one program must not end all
                    self.gpu.log_once(f"softgen itself failed at a connection: {type(error).__name__}: {error}")

    def _event(self, key: selectors.SelectorKey) -> None:
        if isinstance(key.data, str):
            self._accept(key.data)
        elif isinstance(key.data, Pipes):
            key.data.sweep()  # the last copy of a sync descriptor was closed
        else:
            self._closed(key.fileobj, *key.data)  # type: ignore[arg-type]

    def _accept(self, name: str) -> None:
        self.service.admit()
        try:
            leave_some()
            connection, address = self.listening[name].accept()
        except OSError as error:
            if error.errno in OUT_OF_DESCRIPTORS:
                self._refuse(name)
            return  # otherwise it went away again
        if name == "server":
            channel = Channel(connection, self.gpu.budget)
            try:
                self.threads.start(lambda: self._serve(channel))
            except RuntimeError:  # no thread left
                with connection:
                    greet(connection, -errno.EAGAIN)
            return
        if name in INPUTS:
            fine = self.inputs.opened(name, connection)
            greet(connection, 0 if fine else -errno.EMFILE)
            if not fine:
                connection.close()
            return
        try:
            key, node = self._named(address), Node(self.gpu, NODES[name], peer(connection)[0])
            context.new(node)
        except Errno as refused:
            with connection:
                greet(connection, -refused.number)
            return
        self.gpu.opened += 1
        self.nodes[key], self.connections[node] = node, connection
        self.selector.register(connection, selectors.EVENT_READ, (key, node))
        if not node.render:
            self.gpu.display.opened(node, connection)
        greet(connection)

    def _named(self, address: object) -> bytes:
        """The name of a new node, which no other may have; a program in another network namespace may have the same by chance."""
        key = picked(address)
        if not key:
            raise Errno(errno.EINVAL, "the kernel did not pick the name of the socket")
        if key in self.nodes:
            raise Errno(errno.EADDRINUSE, "another node has the name")
        return key

    def _refuse(self, name: str) -> None:
        """Refuse a connection with EMFILE: the server has no descriptor left. Closes unused descriptors."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.gpu.log_once(f"all {limit} descriptors of the server are in use: programs get EMFILE until some are closed (see `ulimit -Hn`)")
        self.gpu.reclaim()
        with self.service.reserve.lent():
            try:
                connection, _ = self.listening[name].accept()
            except OSError:
                time.sleep(BREATH)  # nothing could be done: try again, and not at once
                return
            with connection:
                greet(connection, -errno.EMFILE)

    def _closed(self, connection: socket.socket, key: bytes, node: Node) -> None:
        """Release what a node owns when its last descriptor is closed."""
        if not ended(connection):
            return
        self.selector.unregister(connection)
        self.gpu.display.closed(node)  # before its connection: events go there
        connection.close()
        if self.nodes.get(key) is node:
            del self.nodes[key], self.connections[node]
        with self.gpu.lock:
            node.handles.clear()
            node.forget_lists()
            released, contexts = node.objects.clear(), weakref.WeakSet([*node.contexts.clear(), *node.destroyed])
        for bo in released:
            self.gpu.release(bo)
        self.gpu.sweep()
        cancel_later(list(contexts), self.drain)  # those that submissions still have
        node.vms.clear()
        node.syncobjs.clear()

    def node(self, call: Call, message: ShimMessage) -> Node:
        """The node a message is about. The program must have a descriptor of it: names can be guessed, and sockets' names are public."""
        node = self.nodes.get(message.name)
        if node is None:
            raise Errno(errno.EBADF, "the node is not open")
        if call.channel.last_node() is not node:
            self._check_node(call, message, node)
            call.channel.last_node = weakref.ref(node)
        return node

    def _check_node(self, call: Call, message: ShimMessage, node: Node) -> None:
        if node not in call.channel.nodes:
            connection = self.connections.get(node)
            if connection is None or not leads_to(call.take(message.c), connection):
                raise Errno(errno.EBADF, "the descriptor is not of the node that is named")
            call.channel.nodes.add(node)

    def _serve(self, channel: Channel) -> None:
        self.service.clients.append(channel.pid)
        greet(channel.connection, patience=self.patience)
        self._go_on(channel)

    def _go_on(self, channel: Channel) -> None:
        """Answer requests until the program has ended, or another thread has taken over."""
        ours = True
        try:
            while ours:
                ours = self._answer(channel, channel.next_request())
        except Gone:
            pass
        finally:
            if ours:
                self.service.clients.remove(channel.pid)
                channel.close()

    def _answer_late(self, call: Call, offset: int) -> None:
        """Answer a call whose program has to read first what was sent before, and go on."""
        try:
            call.done(0, offset)
        except Gone:
            pass
        self._go_on(call.channel)

    def _answer(self, channel: Channel, message: ShimMessage) -> bool:
        """Answer one request; False where another thread answers from now on, because this one runs a submission."""
        call, offset, result, why = Call(channel, message.b), 0, 0, ""
        if not self.loaded:
            self.loaded = self.service.admit()
        try:
            if message.kind == IOCTL:
                ioctls.answer(self.node(call, message), call, message.a, message.payload)
            elif message.kind == MMAP:
                descriptor, offset = gem.mapped(self.node(call, message), message.a, message.b)
                call.hand(0, os.dup(descriptor))
            elif message.kind == FOREIGN:
                if not ioctls.foreign(self.gpu, call, message.a, message.c, message.payload):
                    channel.send(NOT_MINE)
                    return True
            else:
                raise Gone(f"message {message.kind}")
        except Errno as refused:
            result, why = -refused.number, self._refused(refused, message)
        except (Gone, KeyboardInterrupt):
            raise
        except (OSError, MemoryError) as error:
            result, why = self._short_of(error, message)
        except Exception as error:  # a mistake of ours must not hang the program
            self.gpu.log(f"softgen itself failed in {called(message)}: {type(error).__name__}: {error}")
            result = -errno.EIO
        if self.trace:
            self.trace(f"{channel.program} {channel.pid}: {requested(message)}{why}")
        later = call.later
        if result < 0:
            drop(call)
        if later is None:
            channel.wait_prediction.ioctl(message.a & 0xFF)
        elif call.work_first:
            return self._work(later, call, offset)
        try:
            call.done(result, offset, wait=later is None)
        except BlockingIOError:
            assert later is not None
            return self._work(later, call, offset)
        except Gone:
            if later is not None:
                later(lambda: None)  # others may wait for its work
            raise
        return later is None or self._work(later, call)

    def _refused(self, error: Errno, message: ShimMessage) -> str:
        """Count a refused request; its error and reason for the trace."""
        name = errno.errorcode.get(error.number, str(error.number))
        if error.number not in ROUTINE:
            self.gpu.count_refused(called(message), name, str(error))
        return f" {name}: {error}"

    def _short_of(self, error: OSError | MemoryError, message: ShimMessage) -> tuple[int, str]:
        """Error number and text for an exhausted host: no descriptor or no memory left. Anything else is an error of softgen."""
        if isinstance(error, MemoryError) or error.errno == errno.ENOMEM:
            return -errno.ENOMEM, " ENOMEM: the host has no memory left"
        if error.errno in OUT_OF_DESCRIPTORS:
            self.gpu.reclaim()
            return -errno.EMFILE, " EMFILE: the server has no descriptor left"
        self.gpu.log(f"softgen itself failed in {called(message)}: {type(error).__name__}: {error}")
        return -errno.EIO, ""

    def _work(self, later: DeferredRun, call: Call, offset: int | None = None) -> bool:
        """Run a submission in this thread and answer the call if `offset` is given, as soon as its result is there. If it takes long, the
        call is answered at once, another thread answers the channel from then on, and the result is False.

        While it runs, it has the engine and nothing waits for the program: one that reads no answers would keep all others from it."""
        alone, unanswered, channel = True, offset, call.channel

        def reply(wait: bool = False) -> None:
            nonlocal unanswered
            if unanswered is not None:
                try:
                    call.done(0, unanswered, wait)
                except BlockingIOError:
                    return
                except Gone:
                    pass  # who reads the next request will see it
                unanswered = None

        def hand_over() -> None:
            nonlocal alone, unanswered
            reply()
            late, unanswered = unanswered, None
            try:
                self.threads.start((lambda: self._go_on(channel)) if late is None else (lambda: self._answer_late(call, late)))
            except RuntimeError:  # no thread is left: the program's next request waits for this work
                unanswered = late
                return
            alone = False

        later(hand_over, reply)
        reply(wait=True)
        call.channel.waited_for = alone and offset is not None
        return alone


def cancel_later(contexts: list[GemContext], seconds: float | None = None) -> None:
    """Cancel contexts after so long (DRAIN by default), or at once where no thread is left: work may outlive the program that wanted it,
    but not for long."""

    def cancel() -> None:
        for ctx in contexts:
            ctx.cancelled = True

    if contexts:
        try:
            threading.Timer(DRAIN if seconds is None else seconds, cancel).start()
        except RuntimeError:
            cancel()


def called(message: ShimMessage) -> str:
    """The name of what a program calls."""
    if message.kind == MMAP:
        return "mmap"
    return ioctls.foreign_name(message.a) if message.kind == FOREIGN else name_of(ioctls.number_of(message.a))


def requested(message: ShimMessage) -> str:
    """A request as text, for the trace."""
    name = called(message)
    if message.kind == MMAP:
        return f"{name} of {message.b:#x} bytes at {message.a:#x}"
    layout = ARGUMENTS.get(name)
    if layout is None:
        return f"{name} ({message.a:#x})"
    fields = vars(layout.unpack(message.payload))
    return " ".join([name, *(f"{field}={shown(value)}" for field, value in fields.items() if value and field != "pad")])


def shown(value: int | bytes) -> str:
    """A field of an argument, for the trace."""
    return value.rstrip(b"\0").hex() if isinstance(value, bytes) else f"{value:#x}"


def drop(call: Call) -> None:
    """Discard the writes and descriptors of a refused call, but not its argument."""
    for descriptor in call.handed:
        os.close(descriptor)
    call.writes, call.handed = [], []
