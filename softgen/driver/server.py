"""The server: the process behind the nodes. One for all programs of a run.

Programs connect to three sockets in the run's folder: `card0` and `renderD128`, a connection for each open(), which ends with the last
descriptor of it; and `server`, a channel for each thread, on which ioctls come. Each channel has a thread here.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import threading
from collections.abc import Callable

from softgen.driver import context, gem, ioctls
from softgen.driver.node import Node, Shared
from softgen.driver.protocol import FOREIGN, HELLO, IOCTL, MMAP, NOT_MINE, Call, Channel, Errno, Gone, Message
from softgen.driver.queue import Later
from softgen.driver.service import Service
from softgen.driver.tree import NODES
from softgen.driver.uapi import ARGUMENTS, name_of

PATIENCE = 5.0  # seconds a node that was connected may take to appear
DRAIN = 5.0  # seconds that work may go on when nobody waits for it any more


class Server:
    """Accepts and answers until the launcher says that it is over."""

    def __init__(self, gpu: Shared, service: Service, trace: Callable[[str], None] | None = None) -> None:
        """`trace` is told of every ioctl and mmap."""
        self.gpu, self.service, self.listening, self.trace = gpu, service, service.listening, trace
        self.nodes: dict[bytes, Node] = {}
        self.arrived = threading.Condition()
        self.selector = selectors.DefaultSelector()

    def run(self) -> bytes:
        """Until the launcher says `end` or `stop`."""
        for name, listener in self.listening.items():
            listener.setblocking(False)
            self.selector.register(listener, selectors.EVENT_READ, name)
        self.selector.register(self.service.control, selectors.EVENT_READ, "control")
        while True:
            for key, _ in self.selector.select():
                if key.data == "control":
                    return self.service.told()
                if isinstance(key.data, str):
                    self._accept(key.data)
                else:
                    self._closed(key.fileobj, *key.data)  # type: ignore[arg-type]

    def _accept(self, name: str) -> None:
        try:
            connection, address = self.listening[name].accept()
        except OSError:
            return  # it went away again
        if name == "server":
            threading.Thread(target=self._serve, args=(Channel(connection),), name="channel", daemon=True).start()
            return
        node, key = Node(self.gpu, NODES[name]), bytes(address).ljust(8, b"\0")[:8]
        context.new(node)
        self.gpu.opened += 1
        with self.arrived:
            self.nodes[key] = node
            self.arrived.notify_all()
        self.selector.register(connection, selectors.EVENT_READ, (key, node))

    def _closed(self, connection: socket.socket, key: bytes, node: Node) -> None:
        """The last descriptor of a node is gone, or somebody wrote to one, which means nothing."""
        try:
            if connection.recv(4096, socket.MSG_DONTWAIT):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.selector.unregister(connection)
        connection.close()
        if self.nodes.get(key) is node:
            del self.nodes[key]
        with self.gpu.lock:
            node.handles.clear()
            released = node.objects.clear()
        for bo in released:
            bo.release()
        self.gpu.sweep()
        for ctx in node.contexts.clear():
            if ctx.last and not ctx.last.done:  # work may outlive the program that wanted it, but not for long
                threading.Timer(DRAIN, setattr, (ctx, "cancelled", True)).start()
        node.vms.clear()
        node.syncobjs.clear()

    def node(self, key: bytes) -> Node:
        with self.arrived:
            if not self.arrived.wait_for(lambda: key in self.nodes, PATIENCE):
                raise Errno(errno.EBADF, "the node is not open")
            return self.nodes[key]

    def _serve(self, channel: Channel) -> None:
        self.service.clients.append(channel.pid)
        self._go_on(channel)

    def _go_on(self, channel: Channel) -> None:
        """Answer until the program has ended, or another thread does this."""
        ours = True
        try:
            while ours:
                ours = self._answer(channel, channel.receive())
        except Gone:
            pass
        finally:
            if ours:
                self.service.clients.remove(channel.pid)
                channel.close()

    def _answer(self, channel: Channel, message: Message) -> bool:
        """False: another thread answers from now on, because this one has work to do."""
        call, offset, result, why = Call(channel, message.b), 0, 0, ""
        if message.kind == HELLO:
            return True
        try:
            if message.kind == IOCTL:
                ioctls.answer(self.node(message.name), call, message.a, message.payload)
            elif message.kind == MMAP:
                descriptor, offset = gem.mapped(self.node(message.name), message.a, message.b)
                call.hand(0, os.dup(descriptor))
            elif message.kind == FOREIGN:
                if not ioctls.foreign(self.gpu, call, message.a, message.c, message.payload):
                    channel.send(NOT_MINE)
                    return True
            else:
                raise Gone(f"message {message.kind}")
        except Errno as refused:
            result, why = -refused.number, f" {errno.errorcode.get(refused.number, refused.number)}: {refused}"
        except (Gone, KeyboardInterrupt):
            raise
        except Exception as error:  # a mistake of ours must not hang the program
            self.gpu.log(f"softgen itself failed in {name_of(message.a & 0xFF)}: {type(error).__name__}: {error}")
            result = -errno.EIO
        if self.trace:
            self.trace(f"{channel.program} {channel.pid}: {requested(message)}{why}")
        later = call.later
        if result < 0:
            call = Call(channel, message.b) if not call.handed else dropped(call)
        try:
            call.done(result, offset)
        except Gone:
            if later is not None:
                later(lambda: None)  # others may wait for its work
            raise
        return later is None or self._work(later, channel)

    def _work(self, later: Later, channel: Channel) -> bool:
        """Work that is mostly over before the program has its next question; if it takes longer, another thread hears that."""
        alone = True

        def let_go() -> None:
            nonlocal alone
            alone = False
            threading.Thread(target=self._go_on, args=(channel,), name="channel", daemon=True).start()

        later(let_go)
        return alone


def requested(message: Message) -> str:
    """What a program asked for, in words."""
    if message.kind == MMAP:
        return f"mmap of {message.b:#x} bytes at {message.a:#x}"
    name, layout = name_of(message.a & 0xFF), ARGUMENTS.get(name_of(message.a & 0xFF))
    if message.kind == FOREIGN or layout is None:
        return f"{name} ({message.a:#x})"
    fields = vars(layout.unpack(message.payload))
    return " ".join([name, *(f"{field}={value:#x}" for field, value in fields.items() if value and field != "pad")])


def dropped(call: Call) -> Call:
    """A refused call hands out nothing."""
    for descriptor in call.handed:
        os.close(descriptor)
    return Call(call.channel, call.argument)
