"""The virtual display: one CRTC with three planes, one connector, its framebuffers, and commits of new state with their events.

A node's descriptor is a socket (shim.c), so a DRM event is 32 bytes sent to it: poll, select and read need no help from the shim.

There is no refresh rate to wait for. A page flip completes as soon as the rendering into the framebuffer is done (its implicit fence), and
each one counts as a vertical blank; programs that wait for flips run as fast as their work is simulated.

Until a program sets a mode the CRTC shows a black console, as on a machine that has booted: programs save and restore what they find.
"""

from __future__ import annotations

import errno
import select
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace

from softgen.driver.errors import Errno
from softgen.driver.kms.crtc import NODE, OFF, PLANES, Blob, Crtc, Framebuffer, ModeObject
from softgen.driver.kms.monitor import DEFAULT_SIZE, SIZES, mode, mode_size
from softgen.driver.kms.vblank import Due, Vblank, VblankCounter, VblankEvents
from softgen.driver.objects.fence import Fence, Signals, all_of
from softgen.driver.objects.gem_object import GemObject
from softgen.driver.uapi import drm
from softgen.driver.uapi.kernel_tables import ScanoutFormat, ScanoutModifier
from softgen.driver.uapi.uapi import VBLANK_EVENT

MOST_FRAMEBUFFERS = 1 << 14
FIRST_NUMBER = 100  # of framebuffers and blobs, exclusive
RATE_FRAMES = 60  # that a frame rate is taken from
MOST_EVENTS = 128  # that a node waits for: 4096 bytes of them in the kernel (drm_file.c)
MICROSECOND, SECOND = 1000, 10**9  # ns


@dataclass(frozen=True, eq=False)
class Commit:
    """A new state of the CRTC whose framebuffers are still drawn to. `user_data`: that of its event, None where none was asked for."""

    node: NODE
    crtc: Crtc
    user_data: int | None
    finished: Fence
    ready: Fence  # the rendering is done
    shows: bool = True  # state of the CRTC, or of something on it, is in it


@dataclass(eq=False)
class Master:
    """What a master of the display shares with the nodes that were opened while it was one (drm_master)."""

    named: bool = False  # SET_VERSION has named the device


Presented = Callable[[Crtc, int], None]


class Display:
    """State of the display. `presented` is called with what the CRTC shows and the number of the frame, from 1, before its event."""

    def __init__(self, signals: Signals) -> None:
        self.signals = signals
        self.lock = threading.RLock()
        self.mode = mode(*DEFAULT_SIZE)  # of the connector
        self.connections: dict[NODE, socket.socket] = {}
        self.master: NODE | None = None
        self.masters_before: set[NODE] = set()
        self.masters: dict[NODE, Master] = {}  # that each node belongs to
        self.dpms = drm.DRM_MODE_DPMS_ON  # what programs have set; nothing is turned off by it
        self.framebuffers: dict[int, Framebuffer] = {}
        self.blobs: weakref.WeakValueDictionary[int, Blob] = weakref.WeakValueDictionary()  # those of programs and of states
        self.blobs_of: dict[NODE, dict[int, Blob]] = {}  # that programs have made
        self.last_number = FIRST_NUMBER
        self.crtc = Crtc()
        self.cursor_at = 0, 0  # where MODE_CURSOR has moved the cursor
        self.ramps: list[bytes] = []  # red, green and blue, of SETGAMMA
        self.console: Crtc | None = None
        self.untouched = True  # since the last program closed its node, no mode was set and nothing shown was removed
        self.pending: Commit | None = None
        self.vblank = VblankCounter()
        self.vblank_events = VblankEvents(self.vblank, self.lock)
        self.frames = 0
        self.times: deque[float] = deque(maxlen=RATE_FRAMES)  # of the last frames, in seconds
        self.presented: Presented = lambda crtc, frame: None

    def modes(self) -> list[bytes]:
        """The modes of the connector, the preferred one first."""
        return [self.mode, *(mode(*size, preferred=False) for size in SIZES if size != mode_size(self.mode))]

    # -- nodes

    def opened(self, node: NODE, connection: socket.socket) -> None:
        """A primary node was opened; its events go to the connection. The first one without a master before it becomes the master."""
        with self.lock:
            self.connections[node] = connection
            self.masters[node] = self.masters[self.master] if self.master is not None else Master()
            if self.master is None:
                self.set_master(node)

    def closed(self, node: NODE) -> None:
        """The last descriptor of a node was closed: its framebuffers go, it is no master any more, and gets no event."""
        with self.lock:
            self.connections.pop(node, None)
            self.masters.pop(node, None)
            self.masters_before.discard(node)
            self.blobs_of.pop(node, None)
            self.vblank_events.forget(node)
            if self.master is node:
                self.master = None
            for framebuffer in [entry for entry in self.framebuffers.values() if entry.owner is node]:
                self.remove(framebuffer)
            if not self.connections:
                self.crtc, self.untouched = Crtc(), True

    def master_of(self, node: NODE) -> Master:
        """The master under which a node was opened; another thread may close it meanwhile."""
        return self.masters.get(node) or Master()

    def set_master(self, node: NODE) -> None:
        with self.lock:
            if self.master not in (None, node):
                raise Errno(errno.EBUSY, "another program is the master of the display")
            self.master = node
            if node not in self.masters_before:
                self.masters_before.add(node)
                self.masters[node] = Master()

    def drop_master(self, node: NODE) -> None:
        with self.lock:
            if self.master is not node:
                raise Errno(errno.EINVAL, "only the master of the display can drop it")
            self.master = None

    # -- framebuffers

    def add(self, make: Callable[[int], Framebuffer]) -> int:
        """Add a framebuffer that is made with its number."""
        with self.lock:
            if len(self.framebuffers) >= MOST_FRAMEBUFFERS:
                raise Errno(errno.ENOMEM, f"{MOST_FRAMEBUFFERS} framebuffers exist")
            number = self.new_number()
            self.framebuffers[number] = make(number)
            return number

    def new_number(self) -> int:
        """An identifier that no other object has or had."""
        with self.lock:
            self.last_number += 1
            return self.last_number

    def framebuffer(self, number: int) -> Framebuffer:
        found = self.framebuffers.get(number)
        if found is None:
            raise Errno(errno.ENOENT, f"no framebuffer {number}")
        return found

    def remove(self, framebuffer: Framebuffer) -> None:
        """Remove a framebuffer: other planes that show it are turned off, with the primary plane the CRTC (drm_framebuffer_remove)."""
        with self.lock:
            self.framebuffers.pop(framebuffer.number, None)
            for number in [number for number in PLANES if self.crtc.plane(number).framebuffer is framebuffer]:
                self.crtc, self.untouched = self.crtc.with_plane(number, OFF), False
                if number == ModeObject.PLANE:
                    self.crtc = replace(self.crtc, mode_blob=None, active=False, connected=False)
                    self.vblank_events.send_due(everything=True)

    # -- blobs

    def new_blob(self, data: bytes, owner: NODE | None = None) -> Blob:
        """A property blob with a number of its own. It exists while a program that made it, or a state, keeps it."""
        with self.lock:
            number = self.new_number()
            blob = self.blobs[number] = Blob(number, data, owner)
            if owner is not None:
                self.blobs_of.setdefault(owner, {})[blob.number] = blob
            return blob

    # -- what is shown

    def boot(self, new_bo: Callable[[int], GemObject], format: ScanoutFormat, modifier: ScanoutModifier) -> None:
        """Show the console if no program has touched the CRTC yet. `new_bo` makes a buffer of so many bytes."""
        with self.lock:
            if not self.untouched or self.crtc.framebuffers():
                return
            if self.console is None:
                width, height = mode_size(self.mode)
                pitch = -(-width * format.bits // 8 // modifier.unit) * modifier.unit
                bo = new_bo(pitch * height)
                number = self.add(lambda number: Framebuffer(number, None, bo, width, height, format, modifier, pitch, 0))
                self.console = Crtc.showing(self.framebuffers[number], self.new_blob(self.mode))
            self.crtc = self.console

    def set_crtc(self, crtc: Crtc, gone: Callable[[], bool]) -> None:
        """Set the mode, and show a framebuffer on the primary plane. Other planes stay as they are."""

        def change(now: Crtc) -> Crtc:
            return replace(now, primary=crtc.primary, mode_blob=crtc.mode_blob, active=crtc.active, connected=crtc.connected)

        self.apply(change, crtc.framebuffers(), gone)
        self.dpms = drm.DRM_MODE_DPMS_ON if crtc.active else drm.DRM_MODE_DPMS_OFF

    def apply(self, change: Callable[[Crtc], Crtc], framebuffers: list[Framebuffer], gone: Callable[[], bool]) -> None:
        """Change what is shown when the rendering into framebuffers is done; waits for that and for a pending commit."""
        for framebuffer in framebuffers:
            self.signals.wait(framebuffer.bo.idle, None, gone)
        while not gone():
            self.signals.wait(lambda: self.pending is None, None, gone)
            with self.lock:
                if self.pending is not None:
                    continue  # another program was faster
                self.crtc, self.untouched = change(self.crtc), False
                if not self.crtc.active:
                    self.vblank_events.send_due(everything=True)
                self.present(self.crtc)
                return

    def present(self, crtc: Crtc) -> None:
        """Count a frame and report it; the console is none."""
        primary = crtc.framebuffer
        if not crtc.active or not crtc.framebuffers() or primary is not None and primary.owner is None:
            return
        for framebuffer in crtc.framebuffers():
            framebuffer.bo.sync_view()
        self.frames += 1
        self.times.append(time.monotonic())
        self.vblank.frame()
        self.presented(crtc, self.frames)

    def rate(self) -> dict[str, float]:
        """How many frames were presented, and how many per second of late."""
        seconds = self.times[-1] - self.times[0] if len(self.times) > 1 else 0.0
        return {"presented": self.frames, "per_second": round((len(self.times) - 1) / seconds, 3) if seconds else 0.0}

    def flip(self, node: NODE, framebuffer: Framebuffer, user_data: int | None) -> None:
        """Queue a page flip. It completes, perhaps at once, when the rendering into the framebuffer is done."""
        with self.lock:
            shown = self.crtc.framebuffer
            if shown is None:
                raise Errno(errno.EBUSY, "the CRTC shows no framebuffer yet")
            if not self.crtc.active:
                raise Errno(errno.EINVAL, "a page flip while the CRTC is not active")
            plane = replace(self.crtc.primary, framebuffer=framebuffer)
            plane.check_viewport()
            if framebuffer.format != shown.format:
                raise Errno(errno.EINVAL, f"a page flip from format {shown.format.name} to {framebuffer.format.name}")
            self.check_free()
            if user_data is not None:
                self.check_room(node)
            flip = Commit(node, replace(self.crtc, primary=plane), user_data, Fence(self.signals), rendering(self.signals, framebuffer.bo))
            self._begin(flip)
        flip.ready.then(lambda: self._complete(flip))

    def commit(self, make: Callable[[Crtc], Commit], gone: Callable[[], bool], blocking: bool) -> None:
        """Make a commit from the current state, and its state the current one; it completes when the rendering is done. A blocking one
        waits for a pending one before it and then until it is complete, another one is refused while one is pending."""
        while True:
            if blocking:
                self.signals.wait(lambda: self.pending is None, None, gone)
            with self.lock:
                if blocking and self.pending is not None and not gone():
                    continue  # another program was faster
                commit = make(self.crtc)
                self._begin(commit)
                break
        commit.ready.then(lambda: self._complete(commit))
        if blocking:
            self.signals.wait(lambda: commit.finished.done, None, gone)

    def check_free(self) -> None:
        """EBUSY while a commit is pending."""
        if self.pending is not None:
            raise Errno(errno.EBUSY, "a page flip is pending")

    def _begin(self, commit: Commit) -> None:
        """Make the state of a commit the current one; called with the lock held."""
        if (commit.crtc.active, commit.crtc.connected) != (self.crtc.active, self.crtc.connected):
            self.dpms = drm.DRM_MODE_DPMS_ON if commit.crtc.active else drm.DRM_MODE_DPMS_OFF
        self.crtc, self.pending, self.untouched = commit.crtc, commit, False

    def _complete(self, commit: Commit) -> None:
        with self.lock:
            # A cursor or gamma ramp that was set meanwhile is there already.
            if commit.shows:
                self.present(replace(commit.crtc, cursor=self.crtc.cursor, gamma_blob=self.crtc.gamma_blob))
            self.pending = None
            if commit.user_data is not None:
                self.send(commit.node, vblank_event(drm.DRM_EVENT_FLIP_COMPLETE, self.vblank.now(), commit.user_data))
            self.vblank_events.send_due(everything=not self.crtc.active)
        commit.finished.signal()
        self.signals.notify()

    # -- vertical blanks and events

    def last_vblank(self) -> Vblank:
        with self.lock:
            return self.vblank.now()

    def wait_vblank(self, passed: Callable[[Vblank], bool], sequence: int, seconds: float, gone: Callable[[], bool]) -> Vblank:
        """Wait until a vertical blank has passed, EBUSY after some seconds (drm_wait_vblank_ioctl)."""
        until = time.monotonic() + seconds
        while not passed(found := self.last_vblank()):
            if time.monotonic() >= until or gone():
                raise Errno(errno.EBUSY, f"vertical blank {sequence} did not come within {seconds:g} seconds")
            with self.lock:
                due = self.vblank.due(sequence)
            self.signals.wait_unlocked(lambda: passed(self.last_vblank()), min(due, until), gone)
        return found

    def at_vblank(self, node: NODE, sequence: int, event: Callable[[Vblank], bytes]) -> None:
        """Send an event at a vertical blank."""
        with self.lock:
            self.check_room(node)
            send: Due = lambda now: self.send(node, event(now))  # noqa: E731
            self.vblank_events.add(node, sequence, send)

    def check_room(self, node: NODE) -> None:
        """ENOMEM where another event cannot be sent to a node; a socket whose buffer is a quarter full is not writable."""
        connection = self.connections.get(node)
        if connection is None:
            return
        poll = select.poll()
        poll.register(connection, select.POLLOUT)
        if self.vblank_events.count(node) >= MOST_EVENTS or not poll.poll(0):
            raise Errno(errno.ENOMEM, "too many events that the program has not read")

    def send(self, node: NODE, event: bytes) -> None:
        """Send an event; called with the lock held, so that the connection stays open."""
        connection = self.connections.get(node)
        if connection is None:
            return
        try:
            connection.send(event, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            pass  # the program is gone


def vblank_event(kind: int, vblank: Vblank, user_data: int) -> bytes:
    """A drm_event_vblank: of a completed flip, or of a vertical blank."""
    return VBLANK_EVENT.pack(SimpleNamespace(
        kind=kind, size=VBLANK_EVENT.size, user_data=user_data, seconds=vblank.when // SECOND,
        microseconds=vblank.when % SECOND // MICROSECOND, sequence=vblank.sequence & 0xFFFFFFFF, crtc=ModeObject.CRTC))  # fmt: skip


def rendering(signals: Signals, bo: GemObject) -> Fence:
    """The implicit fence of a buffer: all work that uses it, because submissions do not say reliably what they write."""
    return all_of(signals, [use.fence for use in bo.busy()])
