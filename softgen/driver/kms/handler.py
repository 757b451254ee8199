"""What handlers of mode-setting ioctls have in common: identifiers, arrays, the master, the console."""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.driver.errors import Errno
from softgen.driver.kms.crtc import ModeObject
from softgen.driver.objects.gem_object import GemObject, Piece
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm, kernel_tables
from softgen.memory.store import MemfdBuffer

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

Handler = Callable[["Node", Call, SimpleNamespace], None]
FIRST_CRTC = 1 << 0  # in masks of CRTCs
CONSOLE_FORMAT = int.from_bytes(b"XR24", "little")


def find(number: int, expected: ModeObject) -> None:
    """Check the identifier of a mode object."""
    if number != expected:
        raise Errno(errno.ENOENT, f"no {expected.name} {number}")


def write_ids(call: Call, address: int, room: int, ids: Sequence[int]) -> int:
    """Write as many identifiers as the program has room for; their number is returned to it."""
    call.write(address, struct.pack(f"<{min(room, len(ids))}I", *ids[:room]))
    return len(ids)


def write_all(call: Call, address: int, room: int, rows: Sequence[bytes]) -> int:
    """Write an array if the program has room for all of it; the number of its rows is returned to it."""
    if room >= len(rows):
        call.write(address, b"".join(rows))
    return len(rows)


def as_master(handler: Handler) -> Handler:
    """A handler of an ioctl that only the master of the display may use."""

    def checked(node: Node, call: Call, arg: SimpleNamespace) -> None:
        if node.gpu.display.master is not node:
            raise Errno(errno.EACCES, "only the master of the display may do that")
        handler(node, call, arg)

    return checked


def show_console(node: Node, call: Call) -> None:
    """Show the console where no program has set a mode yet, before the state of the CRTC is used."""
    gpu, known = node.gpu, kernel_tables.display(node.gpu.device.name)

    def new_bo(size: int) -> GemObject:
        return gpu.new_object(call.channel.pid, [Piece(MemfdBuffer(size, "console"), 0, size)])

    gpu.display.boot(new_bo, known.formats[CONSOLE_FORMAT], known.modifiers[drm.DRM_FORMAT_MOD_LINEAR])
