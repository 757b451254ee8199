"""The ioctls on buffer objects: creating and closing them, mapping, reading and writing, waiting, tiling."""

from __future__ import annotations

import errno
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

from softgen.bits.units import PAGE_SIZE
from softgen.driver.errors import Errno
from softgen.driver.ioctl import userptr
from softgen.driver.ioctl.aperture import LinearView
from softgen.driver.objects.descriptors import leave_some
from softgen.driver.objects.gem_object import GemObject, Piece
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import i915_drm as i915
from softgen.driver.uapi.kernel_tables import x86_64_host
from softgen.driver.uapi.uapi import ENGINE_CLASSES, EXTENSION
from softgen.errors import SoftgenError
from softgen.memory.host import round_up
from softgen.memory.store import MemfdBuffer

if TYPE_CHECKING:
    from softgen.driver.objects.node import Node

OFFSET_BITS = 40  # an mmap offset is a handle, above the offset inside the buffer
APERTURE = 1 << OFFSET_BITS - 1  # of such an offset: the rows of a tiled buffer, in order
TILINGS = {i915.I915_TILING_NONE: ("none", 1), i915.I915_TILING_X: ("X", 512), i915.I915_TILING_Y: ("Y", 128)}  # name, unit of strides
USER_ADDRESSES = 1 << (47 if x86_64_host() else 48)  # end of a program's address space: access_ok() of the kernel
USERPTR_FLAGS = i915.I915_USERPTR_READ_ONLY | i915.I915_USERPTR_PROBE | i915.I915_USERPTR_UNSYNCHRONIZED
NANOSECONDS = 1_000_000_000


def lookup(node: Node, handle: int) -> GemObject:
    found = node.objects.get(handle)
    if found is None:
        raise Errno(errno.ENOENT, f"no buffer {handle}")
    return found


def add_handle(node: Node, bo: GemObject) -> int:
    """The handle of a buffer on a node, a new one if it has none."""
    with node.gpu.lock:
        if (handle := node.handles.get(bo)) is None:
            handle = node.handles[bo] = node.objects.add(bo)  # first: it may be refused
            bo.handles += 1
            node.gpu.orphans.discard(bo)
            if bo.identity:
                node.gpu.objects[bo.identity] = bo
        return handle


def new(node: Node, call: Call, size: int) -> tuple[int, int]:
    size = round_up(size)
    if not size:
        raise Errno(errno.EINVAL, "a buffer of no bytes")
    if size > node.gpu.kernel.gtt_bytes:
        raise Errno(errno.E2BIG, f"a buffer of {size:#x} bytes")
    pid, budget = call.channel.pid, node.gpu.budget
    budget.check(pid, 0, "a new buffer")
    try:
        leave_some()
        bo = node.gpu.new_object(pid, [Piece(budget.adopt(pid, MemfdBuffer(size, "buffer")), 0, size)])
    except (SoftgenError, OSError, MemoryError) as error:
        raise Errno(errno.ENOMEM, str(error)) from None
    return add_handle(node, bo), size


def create(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.handle, arg.size = new(node, call, arg.size)


def create_extended(node: Node, call: Call, arg: SimpleNamespace) -> None:
    for name, _, _ in extensions(call, arg.extensions):
        if name != i915.I915_GEM_CREATE_EXT_MEMORY_REGIONS:
            raise Errno(errno.EINVAL, f"GEM_CREATE_EXT extension {name}")
    arg.handle, arg.size = new(node, call, arg.size)


def extensions(call: Call, address: int) -> list[tuple[int, int, int]]:
    """Read a chain of i915_user_extension: (name, flags, address after the header) of each."""
    found: list[tuple[int, int, int]] = []
    while address:
        if len(found) == 512:
            raise Errno(errno.E2BIG, "a chain of extensions without end")
        link = EXTENSION.unpack(call.read(address, EXTENSION.size))
        found.append((link.name, link.flags, address + EXTENSION.size))
        address = link.next
    return found


def close(node: Node, call: Call, arg: SimpleNamespace) -> None:
    with node.gpu.lock:
        bo = node.objects.remove(arg.handle)
        if bo is None:
            raise Errno(errno.EINVAL, f"no buffer {arg.handle}")
        del node.handles[bo]
        node.forget_lists()
    node.gpu.release(bo)
    node.gpu.sweep()


def from_user(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_I915_GEM_USERPTR: a buffer made of the program's own pages."""
    if not arg.size or (arg.address | arg.size) % PAGE_SIZE or arg.address + arg.size > USER_ADDRESSES:
        raise Errno(errno.EINVAL, f"USERPTR of {arg.size:#x} bytes at {arg.address:#x}")
    if arg.flags & ~USERPTR_FLAGS:
        raise Errno(errno.EINVAL, f"USERPTR flags {arg.flags:#x}")
    try:
        pieces, copied = userptr.share(node, call, arg.address, arg.size)
    except SoftgenError as error:
        raise Errno(errno.ENOMEM, str(error)) from None
    bo = node.gpu.new_object(call.channel.pid, [Piece(*piece) for piece in pieces], copied, user=True)
    arg.handle = add_handle(node, bo)


def map_old(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_I915_GEM_MMAP: maps in the program and returns the address."""
    bo = lookup(node, arg.handle)
    if bo.user:
        raise Errno(errno.ENODEV, "memory of the program itself cannot be mapped")
    if not arg.size or arg.offset % PAGE_SIZE or arg.offset + arg.size > round_up(bo.size):
        raise Errno(errno.EINVAL, f"GEM_MMAP of {arg.size:#x} bytes from {arg.offset:#x} of {bo.size:#x}")
    arg.address = call.map(bo.pieces[0].buffer.fd, arg.offset, arg.size)


def map_offset(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_I915_GEM_MMAP_OFFSET and I915_GEM_MMAP_GTT, the same ioctl with a shorter argument: an offset for mmap()."""
    bo = lookup(node, arg.handle)
    if arg.flags > i915.I915_MMAP_OFFSET_UC:
        raise Errno(errno.EINVAL, f"GEM_MMAP_OFFSET flags {arg.flags}")
    if bo.user:
        raise Errno(errno.ENODEV, "memory of the program itself cannot be mapped")
    offset = arg.handle << OFFSET_BITS
    if arg.flags == i915.I915_MMAP_OFFSET_GTT and (bo.tiling or bo.view):
        with bo.viewing:
            if bo.view is None:
                leave_some()
                view = LinearView(bo.pieces[0].buffer, bo.size, node.gpu.budget, bo.pid)
                view.arrange(bo.tiling, bo.stride)
                bo.view, node.gpu.linear_views = view, True
        offset |= APERTURE
    arg.offset = offset


def mapped(node: Node, offset: int, size: int) -> tuple[int, int]:
    """The descriptor and offset that an mmap() of a node stands for."""
    bo, inside = lookup(node, offset >> OFFSET_BITS), offset % APERTURE
    if offset & APERTURE and bo.view is None:
        raise Errno(errno.EINVAL, f"mmap at {offset:#x}, an offset that no ioctl gave")
    if bo.user or inside + size > round_up(bo.size) or inside % PAGE_SIZE:
        raise Errno(errno.EINVAL, f"mmap of {size:#x} bytes from {inside:#x} of a buffer of {bo.size:#x}")
    bo.sync_view()
    return (bo.view if offset & APERTURE and bo.view else bo.pieces[0]).buffer.fd, inside


def accessed(node: Node, call: Call, arg: SimpleNamespace, name: str) -> GemObject | None:
    """The idle buffer of which PREAD or PWRITE copies a range; None where the range is empty: the kernel looks at nothing else then."""
    if not arg.size:
        return None
    bo = lookup(node, arg.handle)
    check_range(bo, arg)
    wait_idle(node, call, bo)
    node.gpu.budget.check(call.channel.pid, arg.size, name)  # reading a page that was never touched allocates it, too
    return bo


def read(node: Node, call: Call, arg: SimpleNamespace) -> None:
    bo, at = accessed(node, call, arg, "PREAD"), arg.data
    if bo is None:
        return
    for view in bo.views(arg.offset, arg.size):
        call.write_now(at, view)
        at += len(view)


def write(node: Node, call: Call, arg: SimpleNamespace) -> None:
    bo, at = accessed(node, call, arg, "PWRITE"), arg.data
    if bo is None:
        return
    for view in bo.views(arg.offset, arg.size):
        call.read_into(at, view)
        at += len(view)
    bo.sync_view()


def check_range(bo: GemObject, arg: SimpleNamespace) -> None:
    if arg.offset + arg.size > bo.size:
        raise Errno(errno.EINVAL, f"{arg.size:#x} bytes at {arg.offset:#x} of a buffer of {bo.size:#x}")


def wait_idle(node: Node, call: Call, bo: GemObject, writes_only: bool = False) -> None:
    node.gpu.signals.wait(lambda: not any(use.write or not writes_only for use in bo.busy()), None, call.channel.gone)
    bo.sync_view()


def set_domain(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_I915_GEM_SET_DOMAIN: wait for the GPU. Submissions do not say reliably what they write, so it waits for all of them."""
    wait_idle(node, call, lookup(node, arg.handle))


def wait(node: Node, call: Call, arg: SimpleNamespace) -> None:
    if arg.flags:
        raise Errno(errno.EINVAL, f"GEM_WAIT flags {arg.flags:#x}")
    bo = lookup(node, arg.handle)
    began = time.monotonic_ns()
    until = None if arg.timeout < 0 else (began + arg.timeout) / NANOSECONDS
    idle = node.gpu.signals.wait(bo.idle, until, call.channel.gone)
    if arg.timeout > 0:
        arg.timeout = max(arg.timeout - (time.monotonic_ns() - began), 0)
    if not idle:
        raise Errno(errno.ETIME)
    bo.sync_view()


def busy(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_I915_GEM_BUSY: the engines that use a buffer.

    Low half: class of the engine that writes, plus 1. High half: a bit for each engine class that uses the buffer.
    """
    uses = lookup(node, arg.handle).busy()
    arg.busy = 0
    for use in uses:
        kind = ENGINE_CLASSES.index(use.engine.rstrip("0123456789"))
        arg.busy |= 1 << 16 + kind | (kind + 1 if use.write else 0)


def advise(node: Node, call: Call, arg: SimpleNamespace) -> None:
    lookup(node, arg.handle)
    if arg.advice not in (i915.I915_MADV_WILLNEED, i915.I915_MADV_DONTNEED):
        raise Errno(errno.EINVAL, f"GEM_MADVISE of {arg.advice}")
    arg.retained = 1


def set_tiling(node: Node, call: Call, arg: SimpleNamespace) -> None:
    bo = lookup(node, arg.handle)
    longest = node.gpu.kernel.fence_stride  # a view compares whole rows of tiles (aperture.py)
    if arg.mode not in TILINGS or arg.mode and (not 0 < arg.stride <= longest or arg.stride % TILINGS[arg.mode][1]):
        raise Errno(errno.EINVAL, f"tiling {arg.mode} with a stride of {arg.stride}")
    bo.sync_view()
    bo.tiling, bo.stride = arg.mode, arg.stride if arg.mode else 0
    with bo.viewing:
        if bo.view:
            bo.view.arrange(bo.tiling, bo.stride)
    arg.stride, arg.swizzle = bo.stride, i915.I915_BIT_6_SWIZZLE_NONE


def get_tiling(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.mode = lookup(node, arg.handle).tiling
    arg.swizzle = arg.physical = i915.I915_BIT_6_SWIZZLE_NONE


def set_caching(node: Node, call: Call, arg: SimpleNamespace) -> None:
    bo = lookup(node, arg.handle)
    if arg.caching > i915.I915_CACHING_DISPLAY:
        raise Errno(errno.EINVAL, f"GEM_SET_CACHING of {arg.caching}")
    bo.caching = arg.caching


def get_caching(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.caching = lookup(node, arg.handle).caching


def finished(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """DRM_IOCTL_I915_GEM_SW_FINISH: the CPU has finished writing."""
    lookup(node, arg.handle).sync_view()


def nothing(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """An ioctl that succeeds without doing anything."""


HANDLERS = {
    "DRM_IOCTL_GEM_CLOSE": close,
    "DRM_IOCTL_I915_GEM_CREATE": create,
    "DRM_IOCTL_I915_GEM_CREATE_EXT": create_extended,
    "DRM_IOCTL_I915_GEM_USERPTR": from_user,
    "DRM_IOCTL_I915_GEM_MMAP": map_old,
    "DRM_IOCTL_I915_GEM_MMAP_OFFSET": map_offset,
    "DRM_IOCTL_I915_GEM_PREAD": read,
    "DRM_IOCTL_I915_GEM_PWRITE": write,
    "DRM_IOCTL_I915_GEM_SET_DOMAIN": set_domain,
    "DRM_IOCTL_I915_GEM_SW_FINISH": finished,
    "DRM_IOCTL_I915_GEM_WAIT": wait,
    "DRM_IOCTL_I915_GEM_BUSY": busy,
    "DRM_IOCTL_I915_GEM_THROTTLE": nothing,
    "DRM_IOCTL_I915_GEM_MADVISE": advise,
    "DRM_IOCTL_I915_GEM_SET_TILING": set_tiling,
    "DRM_IOCTL_I915_GEM_GET_TILING": get_tiling,
    "DRM_IOCTL_I915_GEM_SET_CACHING": set_caching,
    "DRM_IOCTL_I915_GEM_GET_CACHING": get_caching,
}
