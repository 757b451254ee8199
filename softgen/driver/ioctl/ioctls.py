"""Dispatch of ioctls to their handlers, for device nodes, dma-bufs and sync files."""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from softgen.driver.errors import Errno
from softgen.driver.ioctl import context, execbuffer, gem, prime, query, syncobj
from softgen.driver.kms import atomic, framebuffer, gamma, planes, properties, resources, sequence
from softgen.driver.objects.fence import Fence, all_of
from softgen.driver.objects.gem_object import GemObject
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import drm
from softgen.driver.uapi.uapi import (
    ARGUMENTS,
    DISPLAY_NAMES,
    DMABUF_SYNC_FILE,
    NAMES,
    PRIMARY_ONLY,
    SYNC_FENCE,
    SYNC_INFO,
    SYNC_MERGE,
    Structure,
    name_of,
)

if TYPE_CHECKING:
    from softgen.driver.objects.node import GpuState, Node

Handler = Callable[["Node", Call, Any], None]
UNCHANGED = frozenset({"DRM_IOCTL_I915_GEM_EXECBUFFER2"})  # ioctls whose argument is only read
HANDLERS: dict[str, Handler] = {
    **query.HANDLERS, **gem.HANDLERS, **prime.HANDLERS, **context.HANDLERS, **syncobj.HANDLERS, **execbuffer.HANDLERS,
    **resources.HANDLERS, **framebuffer.HANDLERS, **planes.HANDLERS, **properties.HANDLERS, **gamma.HANDLERS, **sequence.HANDLERS,
    **atomic.HANDLERS,
}  # fmt: skip

DMA_BUF_ACCESS = drm.DMA_BUF_SYNC_READ | drm.DMA_BUF_SYNC_WRITE


class Answered(NamedTuple):
    """An ioctl that has a handler."""

    handler: Handler
    layout: Structure
    unchanged: bool  # its argument is only read
    primary_only: bool


ANSWERED = {number: Answered(HANDLERS[name], ARGUMENTS[name], name in UNCHANGED, name in PRIMARY_ONLY)
            for number, name in NAMES.items() if name in HANDLERS}  # fmt: skip
FOREIGN_NAMES = {  # of dma-bufs and sync files, by type and number
    (drm.DMA_BUF_BASE, drm.DMA_BUF_IOCTL_SYNC): "DMA_BUF_IOCTL_SYNC",
    (drm.DMA_BUF_BASE, drm.DMA_BUF_IOCTL_EXPORT_SYNC_FILE): "DMA_BUF_IOCTL_EXPORT_SYNC_FILE",
    (drm.DMA_BUF_BASE, drm.DMA_BUF_IOCTL_IMPORT_SYNC_FILE): "DMA_BUF_IOCTL_IMPORT_SYNC_FILE",
    (drm.SYNC_IOC_MAGIC, drm.SYNC_IOC_MERGE): "SYNC_IOC_MERGE",
    (drm.SYNC_IOC_MAGIC, drm.SYNC_IOC_FILE_INFO): "SYNC_IOC_FILE_INFO",
}


def number_of(request: int) -> int:
    return request & 0xFF


def kind_of(request: int) -> int:
    return request >> 8 & 0xFF


def foreign_name(request: int) -> str:
    """The name of an ioctl on a dma-buf or sync file."""
    kind, number = kind_of(request), number_of(request)
    return FOREIGN_NAMES.get((kind, number), f"ioctl {number:#04x} of type {chr(kind)!r}")


def answer(node: Node, call: Call, request: int, data: bytes) -> None:
    """Answer an ioctl on a node; its changed argument is written back, also where the ioctl fails (the kernel's drm_ioctl())."""
    answered = ANSWERED.get(request & 0xFF)
    if answered is None:
        raise _refusal(node, request)
    handler, layout, unchanged, primary_only = answered
    if primary_only and node.render:
        raise _refusal(node, request)
    if unchanged:
        handler(node, call, layout.unpack_row(data))
        return
    argument = layout.unpack(data)
    try:
        handler(node, call, argument)
    finally:
        changed = layout.pack(argument)[: len(data)]
        if changed != data[: len(changed)]:
            call.returned = changed


def _refusal(node: Node, request: int) -> Errno:
    """The error of an ioctl that nobody answers, or not on this node."""
    number = number_of(request)
    shown = name_of(number)
    if node.render and shown in PRIMARY_ONLY:
        return Errno(errno.EACCES, f"{shown} is not allowed on a render node")
    with node.gpu.lock:
        node.gpu.unknown[shown] = node.gpu.unknown.get(shown, 0) + 1
        first = node.gpu.unknown[shown] == 1
    if number in DISPLAY_NAMES:
        return Errno(errno.EOPNOTSUPP, f"the display has no {shown}")
    if first:
        node.gpu.log(f"{shown} (request {request:#x}) is not known; answered with EINVAL")
    return Errno(errno.EINVAL, f"{shown} is not known")


def foreign(gpu: GpuState, call: Call, request: int, descriptor: int, data: bytes) -> bool:
    """Answer an ioctl on a dma-buf or sync file, given the program's descriptor number; False where it is none of ours."""
    kind, number = kind_of(request), number_of(request)
    key = call.identity(descriptor)
    if kind == drm.DMA_BUF_BASE and (bo := prime.exported(gpu, key)):
        dma_buf(gpu, call, bo, number, data)
        return True
    if kind == drm.SYNC_IOC_MAGIC and (fence := gpu.sync_files.find(key)):
        sync_file(gpu, call, fence, number, data)
        return True
    return False


def sync_file(gpu: GpuState, call: Call, fence: Fence, number: int, data: bytes) -> None:
    """Answer an ioctl on a sync file, with the kernel's errors (sync_file_ioctl)."""
    if number == drm.SYNC_IOC_MERGE:
        merge = SYNC_MERGE.unpack(data)
        if merge.flags or merge.pad:
            raise Errno(errno.EINVAL, f"SYNC_IOC_MERGE flags {merge.flags:#x}, {merge.pad:#x}")
        other = syncobj.sync_file(gpu, call, merge.other, errno.ENOENT)
        call.hand(call.argument + SYNC_MERGE.offsets["fence"], gpu.sync_files.make(all_of(gpu.signals, [fence, other])))
    elif number == drm.SYNC_IOC_FILE_INFO:
        info = SYNC_INFO.unpack(data)
        if info.flags or info.pad:
            raise Errno(errno.EINVAL, f"SYNC_IOC_FILE_INFO flags {info.flags:#x}, {info.pad:#x}")
        status = -fence.error if fence.error else int(fence.done)
        if info.count:
            row = SimpleNamespace(object=b"softgen", driver=b"i915", status=status, flags=0, timestamp=fence.when)
            call.write(info.fences, SYNC_FENCE.pack(row))
        info.name, info.status, info.count = b"softgen", status, 1
        call.write(call.argument, SYNC_INFO.pack(info))
    else:
        raise Errno(errno.ENOTTY)


def dma_buf(gpu: GpuState, call: Call, bo: GemObject, number: int, data: bytes) -> None:
    """Answer an ioctl on a dma-buf; all of them say whether it is read or written (dma_buf_ioctl)."""
    argument = DMABUF_SYNC_FILE.unpack(data)
    if number == drm.DMA_BUF_IOCTL_SYNC:
        check_access(argument.flags | argument.fd << 32, DMA_BUF_ACCESS | drm.DMA_BUF_SYNC_END)  # its flags have 64 bits
        gpu.signals.wait(bo.idle, None, call.channel.gone)
    elif number == drm.DMA_BUF_IOCTL_EXPORT_SYNC_FILE:
        check_access(argument.flags)
        fences = [use.fence for use in bo.busy() if use.write or argument.flags & drm.DMA_BUF_SYNC_WRITE]
        call.hand(call.argument + DMABUF_SYNC_FILE.offsets["fd"], gpu.sync_files.make(all_of(gpu.signals, fences)))
    elif number == drm.DMA_BUF_IOCTL_IMPORT_SYNC_FILE:
        check_access(argument.flags)
        fence = syncobj.sync_file(gpu, call, argument.fd)
        with gpu.lock:  # submissions add their uses under it
            bo.use(fence, gpu.kernel.engines[0], bool(argument.flags & drm.DMA_BUF_SYNC_WRITE))
    else:
        raise Errno(errno.ENOTTY)


def check_access(flags: int, known: int = DMA_BUF_ACCESS) -> None:
    """Refuse flags that name no access, or are not known."""
    if flags & ~known or not flags & DMA_BUF_ACCESS:
        raise Errno(errno.EINVAL, f"flags {flags:#x} of a dma-buf")
