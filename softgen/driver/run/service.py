"""The server's process: its sockets, its connection to the launcher, and how it ends.

A thread waits for the launcher's end from the first moment on, whatever the rest of the process does meanwhile: loads, simulates, or
writes a recording. Then what belongs to the run ends with it. Nothing that simulates is loaded here.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from softgen.driver.objects.descriptors import Reserve, few_left
from softgen.driver.run import sysfs_tree

DESCRIPTORS = 1 << 16
SWITCH = 0.0002  # seconds until another thread may have the interpreter: ioctls and dispatches must not wait long for a translation
INSIST = 1.0  # seconds in which new processes of a run are looked for, when it ends without its launcher
SOCKETS = ("server", *sysfs_tree.NODES, *sysfs_tree.INPUTS)
CANNOT_GO_ON = "the simulator cannot go on"


class Service:
    """The server's side of its connection to the launcher, and what it cleans up at the end."""

    def __init__(self, control: socket.socket, folder: Path, listening: dict[str, socket.socket]) -> None:
        self.control, self.folder, self.listening = control, folder, listening
        self.clients: list[int] = []  # processes, one for each channel
        self.orphaned: list[Callable[[], None]] = []  # what is done when the launcher is gone, the latest first
        self.reserve = Reserve()
        self.asked = 0.0  # when the last request came, until modules are loaded
        self.loaded = threading.Event()  # modules are no longer imported in the background
        self.loaded.set()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the launcher, which may have ended."""
        try:
            self.control.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass

    def wait_for_program(self) -> bool:
        """Wait for the first connection of a program; False if the launcher's command comes first. The command stays to be read."""
        found, _, _ = select.select([self.control, *self.listening.values()], [], [])
        return not (self.control in found and len(found) == 1 and self.command(socket.MSG_PEEK))

    def command(self, flags: int = 0) -> bytes:
        """Read the launcher's command; `flags` are those of recv(). If the launcher has ended, another thread ends this process."""
        try:
            if command := self.control.recv(64, flags):
                return command
        except OSError:
            pass
        threading.Event().wait()
        raise AssertionError("unreachable")

    def admit(self) -> bool:
        """Called for each connection and request until modules are loaded; says whether they are. Where programs have nearly all
        descriptors it waits until then: an import that fails half-way cannot be repeated, since extension modules such as NumPy's are
        initialised once in a process."""
        self.asked = time.monotonic()
        if not self.loaded.is_set() and few_left():
            self.loaded.wait()
        return self.loaded.is_set()

    def watch(self) -> None:
        threading.Thread(target=self._end_with_launcher, name="launcher", daemon=True).start()

    def _end_with_launcher(self) -> None:
        gone = select.poll()
        gone.register(self.control, select.POLLRDHUP)
        gone.poll()
        with self.reserve.lent():
            try:
                for last in reversed(self.orphaned):
                    last()
                end_all(self.folder, self.clients)
            finally:
                shutil.rmtree(self.folder, ignore_errors=True)
                os._exit(1)


def run(serve: Callable[[Service], dict[str, Any]], service: Service, orphaned: Callable[[], None]) -> None:
    """Main function of the server's process; does not return."""
    code = 1
    try:
        service.orphaned.append(orphaned)
        prepare()
        service.watch()
        service.send({"report": serve(service)})
        code = 0
    except BaseException as error:
        service.send({"failed": f"{CANNOT_GO_ON}: {type(error).__name__}: {error}"})
    finally:
        os._exit(code)


def prepare() -> None:
    """Set up the process: a session of its own (a terminal's signals are for the program), descriptors, short switch intervals."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy's library starts threads when it is loaded, which spin while the program starts
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # who reads the program's output must see its end when it ends
        os.dup2(nothing, stream)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGIO):  # SIGIO: see MemfdBuffer.open_elsewhere
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    sys.setswitchinterval(SWITCH)


def listen(folder: Path) -> dict[str, socket.socket]:
    """Open the sockets of a run, before any program starts."""
    found = {}
    for name in SOCKETS:
        found[name] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        found[name].bind(str(folder / name))
        found[name].listen(128)
    return found


def members(folder: Path) -> set[int]:
    """Processes of a run, whatever their parents: those with its folder in their environment."""
    mark, found = b"SOFTGEN_RUN=" + os.fsencode(folder) + b"\0", set()
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(name) != os.getpid() and mark in Path("/proc", name, "environ").read_bytes() + b"\0":
                found.add(int(name))
        except OSError:
            pass  # another user's process, or one that has ended
    return found


def end_all(folder: Path, clients: list[int]) -> None:
    """Kill all processes of a run whose launcher has ended, and those that they start meanwhile."""
    until = time.monotonic() + INSIST
    while (left := members(folder) | set(clients)) and time.monotonic() < until:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.01)
