"""Waits for vertical blanks, and events at them: WAIT_VBLANK, CRTC_GET_SEQUENCE, CRTC_QUEUE_SEQUENCE (drm_vblank.c)."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.driver.errors import Errno
from softgen.driver.kms.crtc import ModeObject
from softgen.driver.kms.display import MICROSECOND, SECOND, vblank_event
from softgen.driver.kms.handler import Handler, find, show_console
from softgen.driver.kms.vblank import Vblank
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm
from softgen.driver.uapi.uapi import SEQUENCE_EVENT

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

WAIT_FLAGS = drm._DRM_VBLANK_RELATIVE | drm._DRM_VBLANK_HIGH_CRTC_MASK | drm._DRM_VBLANK_EVENT | drm._DRM_VBLANK_NEXTONMISS
QUEUE_FLAGS = drm.DRM_CRTC_SEQUENCE_RELATIVE | drm.DRM_CRTC_SEQUENCE_NEXT_ON_MISS
AHEAD = 1 << 23  # a number so far behind is one that is still to come
LONGEST_WAIT = 3.0  # seconds
WRAP = (1 << 64) - 1
WRAP_SHORT = (1 << 32) - 1


def passed(now: int, sequence: int) -> bool:
    """Whether a vertical blank has passed; its number wraps."""
    return now - sequence & WRAP <= AHEAD


def last_vblank(node: Node, call: Call) -> Vblank:
    """The last vertical blank; EINVAL while the CRTC is off."""
    show_console(node, call)
    if not node.gpu.display.crtc.active:
        raise Errno(errno.EINVAL, "the CRTC is off: it has no vertical blanks")
    return node.gpu.display.last_vblank()


def get_sequence(node: Node, call: Call, arg: SimpleNamespace) -> None:
    find(arg.crtc, ModeObject.CRTC)
    show_console(node, call)
    arg.active = int(node.gpu.display.crtc.active)
    arg.sequence, arg.when = node.gpu.display.last_vblank()


def queue_sequence(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_CRTC_QUEUE_SEQUENCE: an event at a vertical blank; at once where that has passed."""
    find(arg.crtc, ModeObject.CRTC)
    if arg.flags & ~QUEUE_FLAGS:
        raise Errno(errno.EINVAL, f"flags {arg.flags:#x} of CRTC_QUEUE_SEQUENCE")
    now = last_vblank(node, call).sequence
    sequence = arg.sequence + now & WRAP if arg.flags & drm.DRM_CRTC_SEQUENCE_RELATIVE else arg.sequence
    if arg.flags & drm.DRM_CRTC_SEQUENCE_NEXT_ON_MISS and passed(now, sequence):
        sequence = now + 1
    user_data = arg.user_data

    def event(vblank: Vblank) -> bytes:
        return SEQUENCE_EVENT.pack(SimpleNamespace(kind=drm.DRM_EVENT_CRTC_SEQUENCE, size=SEQUENCE_EVENT.size, user_data=user_data,
                                                   when=vblank.when, sequence=vblank.sequence))  # fmt: skip

    sequence = now if passed(now, sequence) else sequence
    node.gpu.display.at_vblank(node, sequence, event)
    arg.sequence = sequence


def wait_vblank(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_WAIT_VBLANK: waits for a vertical blank, or for an event at it; numbers have 32 bits."""
    pipe = (arg.kind & drm._DRM_VBLANK_HIGH_CRTC_MASK) >> 1
    if arg.kind & ~WAIT_FLAGS or pipe:
        raise Errno(errno.EINVAL, f"WAIT_VBLANK of type {arg.kind:#x}: pipe {pipe}, or flags that there are not")
    now = last_vblank(node, call)
    if arg.kind & drm._DRM_VBLANK_RELATIVE:
        sequence = now.sequence + arg.sequence
    else:  # widened about the current number
        sequence = now.sequence + (((arg.sequence - now.sequence & WRAP_SHORT) ^ 1 << 31) - (1 << 31))
    if arg.kind & drm._DRM_VBLANK_NEXTONMISS and passed(now.sequence, sequence):
        sequence = now.sequence + 1
    arg.kind &= ~drm._DRM_VBLANK_RELATIVE
    if arg.kind & drm._DRM_VBLANK_EVENT:
        sequence, user_data = now.sequence if passed(now.sequence, sequence) else sequence, arg.seconds & WRAP
        node.gpu.display.at_vblank(node, sequence, lambda vblank: vblank_event(drm.DRM_EVENT_VBLANK, vblank, user_data))
        arg.sequence = sequence & WRAP_SHORT
        return
    found = node.gpu.display.wait_vblank(lambda vblank: passed(vblank.sequence, sequence), sequence, LONGEST_WAIT, call.channel.gone)
    arg.sequence, arg.seconds, arg.microseconds = found.sequence & WRAP_SHORT, found.when // SECOND, found.when % SECOND // MICROSECOND


HANDLERS: dict[str, Handler] = {
    "DRM_IOCTL_WAIT_VBLANK": wait_vblank,
    "DRM_IOCTL_CRTC_GET_SEQUENCE": get_sequence,
    "DRM_IOCTL_CRTC_QUEUE_SEQUENCE": queue_sequence,
}
