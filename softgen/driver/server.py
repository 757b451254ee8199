"""The server: the process behind the nodes. One for all programs of a run.

Programs connect to three sockets in the run's folder: `card0` and `renderD128`, a connection for each open(), which ends with the last
descriptor of it; and `server`, a channel for each thread, on which ioctls come. Each channel has a thread here.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from softgen.driver import context, gem, ioctls
from softgen.driver.node import Node, Shared
from softgen.driver.protocol import FOREIGN, HELLO, IOCTL, MMAP, NOT_MINE, Call, Channel, Errno, Gone, Message
from softgen.driver.tree import NODES
from softgen.driver.uapi import ARGUMENTS, name_of

PATIENCE = 5.0  # seconds a node that was connected may take to appear
SWITCH = 0.001  # seconds until another thread may have the interpreter: answers to ioctls must not wait long for a kernel that runs
DESCRIPTORS = 1 << 16
DRAIN = 5.0  # seconds that work may go on when nobody waits for it any more


def listen(folder: Path) -> dict[str, socket.socket]:
    """The sockets of a run; made before the server starts, so that nobody comes too early."""
    found = {}
    for name in ("server", *NODES):
        found[name] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        found[name].bind(str(folder / name))
        found[name].listen(128)
    return found


class Server:
    """Accepts and answers until the launcher says that it is over, or is gone."""

    def __init__(self, gpu: Shared, listening: dict[str, socket.socket], control: socket.socket,
                 trace: Callable[[str], None] | None = None) -> None:  # fmt: skip
        """`trace` is told of every ioctl and mmap."""
        self.gpu, self.listening, self.control, self.trace = gpu, listening, control, trace
        self.nodes: dict[bytes, Node] = {}
        self.arrived = threading.Condition()
        self.clients: set[int] = set()
        self.selector = selectors.DefaultSelector()

    def run(self) -> bytes:
        """Until the launcher says `end` or `stop`; nothing: it is gone."""
        for name, listener in self.listening.items():
            listener.setblocking(False)
            self.selector.register(listener, selectors.EVENT_READ, name)
        self.selector.register(self.control, selectors.EVENT_READ, "control")
        while True:
            for key, _ in self.selector.select():
                if key.data == "control":
                    return self.control.recv(64)
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
        for thing in node.objects.clear():
            thing.release()
        for one in node.contexts.clear():
            if one.last and not one.last.done:  # work may outlive the program that wanted it, but not for long
                threading.Timer(DRAIN, setattr, (one, "cancelled", True)).start()
        node.vms.clear()
        node.syncobjs.clear()

    def node(self, key: bytes) -> Node:
        with self.arrived:
            if not self.arrived.wait_for(lambda: key in self.nodes, PATIENCE):
                raise Errno(errno.EBADF, "the node is not open")
            return self.nodes[key]

    def _serve(self, channel: Channel) -> None:
        self.clients.add(channel.pid)
        try:
            while True:
                self._answer(channel, channel.receive())
        except Gone:
            pass
        finally:
            channel.close()

    def _answer(self, channel: Channel, message: Message) -> None:
        call, offset, result, why = Call(channel, message.b), 0, 0, ""
        if message.kind == HELLO:
            return
        try:
            if message.kind == IOCTL:
                ioctls.answer(self.node(message.name), call, message.a, message.payload)
            elif message.kind == MMAP:
                descriptor, offset = gem.mapped(self.node(message.name), message.a, message.b)
                call.hand(0, os.dup(descriptor))
            elif message.kind == FOREIGN:
                if not ioctls.foreign(self.gpu, call, message.a, message.c, message.payload):
                    channel.send(NOT_MINE)
                    return
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
        if result < 0:
            call = Call(channel, message.b) if not call.handed else dropped(call)
        call.done(result, offset)


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


def prepare() -> None:
    """What the process needs before it serves: its own session (a terminal's signals are for the program), descriptors, quick turns."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # who reads the program's output must see its end when it ends
        os.dup2(nothing, stream)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(max(DESCRIPTORS, 1), hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    sys.setswitchinterval(SWITCH)


def send(control: socket.socket, message: dict[str, Any]) -> None:
    """A line for the launcher; it may be gone."""
    try:
        control.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        pass


def end_clients(clients: set[int]) -> None:
    """Without a launcher nobody looks after the programs: they end too."""
    for pid in clients:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
