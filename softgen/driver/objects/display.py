"""The virtual display: one CRTC with a primary plane, one connector, its framebuffers, and page flips with their events.

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
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from types import SimpleNamespace

from softgen.driver.errors import Errno
from softgen.driver.objects.fence import Fence, Signals, all_of
from softgen.driver.objects.gem_object import GemObject
from softgen.driver.uapi import drm
from softgen.driver.uapi.facts import ScanoutFormat, ScanoutModifier
from softgen.driver.uapi.uapi import FLIP_EVENT, MODE

DEFAULT_SIZE = 640, 480
REFRESH = 60  # Hz, that modes name
MOST_FRAMEBUFFERS = 1 << 14
FIRST_FRAMEBUFFER = 100
RATE_FRAMES = 60  # that a frame rate is taken from
NODE = object  # an opened node (node.py): only its identity is used here
# VESA CVT with reduced blanking: pixels and lines around the picture
H_FRONT, H_SYNC, H_BLANK = 48, 32, 160
V_FRONT, V_BACK_LEAST, V_BLANK_LEAST = 3, 6, 460.0  # lines, lines, microseconds
V_SYNCS = {(4, 3): 4, (16, 9): 5, (16, 10): 6, (5, 4): 7, (15, 9): 7}  # lines, by aspect ratio
V_SYNC_OTHER = 10
CLOCK_STEP = 250  # kHz


class ModeObject(IntEnum):
    """Identifiers of the mode objects that always exist; those of framebuffers follow."""

    PLANE = 31
    CRTC = 41
    ENCODER = 51
    CONNECTOR = 61
    PLANE_TYPE = 71
    IN_FORMATS = 72
    IN_FORMATS_BLOB = 73
    DPMS = 74


def mode(width: int, height: int) -> bytes:
    """A drm_mode_modeinfo of a size, with the timings of VESA CVT reduced blanking at 60 Hz."""
    sync = next((lines for (across, down), lines in V_SYNCS.items() if width * down == height * across), V_SYNC_OTHER)
    line = (1e6 / REFRESH - V_BLANK_LEAST) / height  # microseconds
    total = height + max(int(V_BLANK_LEAST / line) + 1, V_FRONT + sync + V_BACK_LEAST)
    clock = REFRESH * total * (width + H_BLANK) // 1000 // CLOCK_STEP * CLOCK_STEP
    return MODE.pack(SimpleNamespace(
        clock=clock, hdisplay=width, hsync_start=width + H_FRONT, hsync_end=width + H_FRONT + H_SYNC, htotal=width + H_BLANK, hskew=0,
        vdisplay=height, vsync_start=height + V_FRONT, vsync_end=height + V_FRONT + sync, vtotal=total, vscan=0, vrefresh=REFRESH,
        flags=drm.DRM_MODE_FLAG_PHSYNC | drm.DRM_MODE_FLAG_NVSYNC, kind=drm.DRM_MODE_TYPE_PREFERRED | drm.DRM_MODE_TYPE_DRIVER,
        name=f"{width}x{height}".encode("ascii")))  # fmt: skip


@dataclass(frozen=True, eq=False)
class Framebuffer:
    """A buffer object with the size, format and tiling of the picture in it. It keeps the memory, also without a handle."""

    number: int
    owner: NODE | None  # None: the console
    bo: GemObject
    width: int
    height: int
    format: ScanoutFormat
    modifier: ScanoutModifier
    pitch: int
    offset: int


@dataclass(frozen=True)
class Crtc:
    """What the CRTC shows: a rectangle, the size of the mode, of a framebuffer. Without a mode it is off."""

    framebuffer: Framebuffer | None = None
    mode: bytes = b""
    x: int = 0
    y: int = 0

    @property
    def size(self) -> tuple[int, int]:
        found = MODE.unpack(self.mode)
        return found.hdisplay, found.vdisplay

    def check_viewport(self, framebuffer: Framebuffer) -> None:
        width, height = self.size
        if self.x + width > framebuffer.width or self.y + height > framebuffer.height:
            raise Errno(errno.ENOSPC, f"{width}x{height} at {self.x}, {self.y} of {framebuffer.width}x{framebuffer.height} pixels")


@dataclass(frozen=True, eq=False)
class PageFlip:
    """A page flip whose framebuffer is still drawn to. `user_data`: that of its event, None where none was asked for."""

    node: NODE
    crtc: Crtc
    user_data: int | None


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
        self.last_number = FIRST_FRAMEBUFFER
        self.crtc = Crtc()
        self.console: Crtc | None = None
        self.untouched = True  # since the last program closed its node, no mode was set and nothing shown was removed
        self.pending: PageFlip | None = None
        self.frames = 0
        self.times: deque[float] = deque(maxlen=RATE_FRAMES)  # of the last frames, in seconds
        self.presented: Presented = lambda crtc, frame: None

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
            self.last_number += 1
            self.framebuffers[self.last_number] = make(self.last_number)
            return self.last_number

    def framebuffer(self, number: int) -> Framebuffer:
        found = self.framebuffers.get(number)
        if found is None:
            raise Errno(errno.ENOENT, f"no framebuffer {number}")
        return found

    def remove(self, framebuffer: Framebuffer) -> None:
        """Remove a framebuffer; the CRTC is turned off if it shows it."""
        with self.lock:
            self.framebuffers.pop(framebuffer.number, None)
            if self.crtc.framebuffer is framebuffer:
                self.crtc, self.untouched = Crtc(), False

    # -- what is shown

    def boot(self, new_bo: Callable[[int], GemObject], format: ScanoutFormat, modifier: ScanoutModifier) -> None:
        """Show the console if no program has touched the CRTC yet. `new_bo` makes a buffer of so many bytes."""
        with self.lock:
            if not self.untouched or self.crtc.framebuffer is not None:
                return
            if self.console is None:
                width, height = Crtc(None, self.mode).size
                pitch = -(-width * format.bits // 8 // modifier.unit) * modifier.unit
                bo = new_bo(pitch * height)
                number = self.add(lambda number: Framebuffer(number, None, bo, width, height, format, modifier, pitch, 0))
                self.console = Crtc(self.framebuffers[number], self.mode)
            self.crtc = self.console

    def set_crtc(self, crtc: Crtc, gone: Callable[[], bool]) -> None:
        """Show a framebuffer when the rendering into it is done; waits for that and for a pending page flip."""
        if crtc.framebuffer is not None:
            self.signals.wait(crtc.framebuffer.bo.idle, None, gone)
        self.signals.wait(lambda: self.pending is None, None, gone)
        with self.lock:
            self.crtc, self.untouched = crtc, False
            self.dpms = drm.DRM_MODE_DPMS_ON if crtc.framebuffer is not None else drm.DRM_MODE_DPMS_OFF
            self.present(crtc)

    def present(self, crtc: Crtc) -> None:
        """Count a frame and report it; the console is none."""
        if crtc.framebuffer is None or crtc.framebuffer.owner is None:
            return
        crtc.framebuffer.bo.sync_view()
        self.frames += 1
        self.times.append(time.monotonic())
        self.presented(crtc, self.frames)

    def rate(self) -> dict[str, float]:
        """How many frames were presented, and how many per second of late."""
        seconds = self.times[-1] - self.times[0] if len(self.times) > 1 else 0.0
        return {"presented": self.frames, "per_second": round((len(self.times) - 1) / seconds, 3) if seconds else 0.0}

    def flip(self, node: NODE, framebuffer: Framebuffer, user_data: int | None) -> None:
        """Queue a page flip. It completes, perhaps at once, when the rendering into the framebuffer is done."""
        with self.lock:
            if self.crtc.framebuffer is None:
                raise Errno(errno.EBUSY, "the CRTC shows no framebuffer yet")
            self.crtc.check_viewport(framebuffer)
            if framebuffer.format != self.crtc.framebuffer.format:
                raise Errno(errno.EINVAL, f"a page flip from format {self.crtc.framebuffer.format.name} to {framebuffer.format.name}")
            if self.pending is not None:
                raise Errno(errno.EBUSY, "a page flip is pending")
            if user_data is not None and not self._has_room(node):
                raise Errno(errno.ENOMEM, "too many events that the program has not read")
            self.crtc = Crtc(framebuffer, self.crtc.mode, self.crtc.x, self.crtc.y)
            self.pending = flip = PageFlip(node, self.crtc, user_data)
        rendering(self.signals, framebuffer.bo).then(lambda: self._complete(flip))

    def _complete(self, flip: PageFlip) -> None:
        with self.lock:
            self.present(flip.crtc)
            self.pending = None
            if flip.user_data is not None:
                self._send(flip, flip.user_data)
        self.signals.notify()

    def _has_room(self, node: NODE) -> bool:
        """Whether another event can be sent to a node; a socket whose buffer is a quarter full is not writable."""
        connection = self.connections.get(node)
        if connection is None:
            return True
        poll = select.poll()
        poll.register(connection, select.POLLOUT)
        return bool(poll.poll(0))

    def _send(self, flip: PageFlip, user_data: int) -> None:
        """Send the event of a completed flip; called with the lock held, so that the connection stays open."""
        connection, now = self.connections.get(flip.node), time.monotonic_ns() // 1000
        if connection is None:
            return
        event = SimpleNamespace(kind=drm.DRM_EVENT_FLIP_COMPLETE, size=FLIP_EVENT.size, user_data=user_data, seconds=now // 10**6,
                                microseconds=now % 10**6, sequence=self.frames & 0xFFFFFFFF, crtc=ModeObject.CRTC)  # fmt: skip
        try:
            connection.send(FLIP_EVENT.pack(event), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            pass  # the program is gone


def rendering(signals: Signals, bo: GemObject) -> Fence:
    """The implicit fence of a buffer: all work that uses it, because submissions do not say reliably what they write."""
    return all_of(signals, [use.fence for use in bo.busy()])


