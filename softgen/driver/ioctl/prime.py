"""Buffers shared between programs: PRIME descriptors (dma-bufs) and the names of DRM_IOCTL_GEM_FLINK.

A shared buffer is recognised by (st_dev, st_ino) of a descriptor that this server exported, and by nothing a client can choose. Any other
descriptor is refused and not touched.
"""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.driver.errors import Errno
from softgen.driver.ioctl import gem
from softgen.driver.objects.descriptors import leave_some
from softgen.driver.run.protocol import Call
from softgen.driver.uapi.uapi import ARGUMENTS
from softgen.memory.store import Identity

if TYPE_CHECKING:
    from softgen.driver.objects.gem_object import GemObject
    from softgen.driver.objects.node import GpuState, Node


def export(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_PRIME_HANDLE_TO_FD: the memory itself, as a descriptor."""
    bo = gem.lookup(node, arg.handle)
    if bo.user:
        raise Errno(errno.EINVAL, "memory of the program itself cannot be shared")
    node.gpu.budget.export(call.channel.pid, bo.pieces[0].buffer)
    leave_some()
    try:
        descriptor = bo.pieces[0].buffer.reopen()
    except BlockingIOError:
        raise Errno(errno.EBUSY, "a program has a lease on the buffer's file") from None
    bo.exported = True
    call.hand(call.argument + ARGUMENTS["DRM_IOCTL_PRIME_HANDLE_TO_FD"].offsets["fd"], descriptor)
    node.gpu.sweep()


def import_(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_PRIME_FD_TO_HANDLE: the buffer behind a descriptor that was exported here."""
    key = call.identity(arg.fd)
    with node.gpu.lock:
        bo = exported(node.gpu, key)
        if bo is None:
            raise Errno(errno.EINVAL, "the descriptor is no buffer that was exported here")
        arg.handle = gem.add_handle(node, bo)


def exported(gpu: GpuState, key: Identity) -> GemObject | None:
    bo = gpu.objects.get(key)
    return bo if bo is not None and bo.exported else None


def flink(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_GEM_FLINK: a number by which any program on the primary node opens the buffer."""
    bo = gem.lookup(node, arg.handle)
    with node.gpu.lock:
        bo.name = bo.name or next(node.gpu.names)
        node.gpu.flinks[bo.name] = bo
    arg.name = bo.name


def open_name(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_GEM_OPEN: the buffer of a name."""
    with node.gpu.lock:
        bo = node.gpu.flinks.get(arg.name)
        if bo is None:
            raise Errno(errno.ENOENT, f"no buffer has the name {arg.name}")
        arg.handle, arg.size = gem.add_handle(node, bo), bo.size


HANDLERS = {
    "DRM_IOCTL_GEM_FLINK": flink,
    "DRM_IOCTL_GEM_OPEN": open_name,
    "DRM_IOCTL_PRIME_HANDLE_TO_FD": export,
    "DRM_IOCTL_PRIME_FD_TO_HANDLE": import_,
}
