"""Buffers: memory with a handle, and the ioctls on one of them.

A buffer's memory is a memfd that the program maps and the simulator reads. Memory that was the program's own (USERPTR) may be in several
pieces. A buffer is busy while a fence of a submission that uses it is not done.
"""

from __future__ import annotations

import errno
import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

from softgen.bits.units import PAGE_SIZE
from softgen.driver import userptr
from softgen.driver.aperture import View
from softgen.driver.fence import Fence, all_of
from softgen.driver.protocol import Call, Errno
from softgen.driver.uapi import ENGINE_CLASSES, EXTENSION
from softgen.errors import SoftgenError
from softgen.memory.host import round_up
from softgen.memory.store import Buffer

if TYPE_CHECKING:
    from softgen.driver.context import Vm
    from softgen.driver.node import Node, Shared

OFFSET_BITS = 40  # an mmap offset is a handle, above the offset inside the buffer
APERTURE = 1 << OFFSET_BITS - 1  # of such an offset: the rows of a tiled buffer, in order
TILINGS = {0: ("none", 1), 1: ("X", 512), 2: ("Y", 128)}  # kernel's number -> name, what a stride must be a multiple of
MMAP_GTT, MMAP_MOST = 0, 3
CREATE_MEMORY_REGIONS = 0
NANOSECONDS = 1_000_000_000


class Piece(NamedTuple):
    buffer: Buffer
    offset: int
    size: int


class Use(NamedTuple):
    fence: Fence
    engine: str
    write: bool


class Object:
    """A buffer object: one piece of memory, or several that follow one another."""

    def __init__(self, gpu: Shared, pieces: list[Piece], copied: userptr.Copied | None = None, user: bool = False) -> None:
        self.gpu, self.pieces, self.copied, self.user = gpu, pieces, copied, user
        self.size = sum(piece.size for piece in pieces)
        self.uid = next(gpu.uids)
        self.handles = 0
        self.tiling = self.stride = self.name = 0
        self.caching = int(gpu.kernel.llc)
        self.uses: list[Use] = []
        self.bound: set[Vm] = set()
        self.view: View | None = None  # if a program maps it through the aperture
        self.inode = 0 if user else os.fstat(pieces[0].buffer.fd).st_ino

    def seen(self) -> None:
        """The program asks about it: both sides of the aperture are brought to the same."""
        if self.view:
            self.view.sync()

    def use(self, fence: Fence, engine: str, write: bool) -> None:
        self.uses = [*(self.busy() if self.uses else ()), Use(fence, engine, write)]

    def busy(self) -> list[Use]:
        return [use for use in self.uses if not use.fence.done]

    def idle(self) -> bool:
        return all(use.fence.done for use in self.uses)

    def read(self, offset: int, size: int) -> bytes:
        return b"".join(view for view in self._views(offset, size))

    def write(self, offset: int, data: bytes) -> None:
        done = 0
        for view in self._views(offset, len(data)):
            view[:] = data[done : done + len(view)]
            done += len(view)

    def _views(self, offset: int, size: int) -> list[memoryview]:
        found, at = [], 0
        for piece in self.pieces:
            first, last = max(offset, at), min(offset + size, at + piece.size)
            if first < last:
                found.append(piece.buffer.window(piece.offset, piece.size)[first - at : last - at])
            at += piece.size
        return found

    def release(self) -> None:
        """One handle less; after the last, and when no work uses it any more, it leaves every address space."""
        with self.gpu.lock:
            self.handles -= 1
            if self.handles:
                return
            self.gpu.objects.pop(self.inode, None)
            self.gpu.flinks.pop(self.name, None)
        all_of(self.gpu.signals, [use.fence for use in self.uses]).then(self._unbind)

    def _unbind(self) -> None:
        if not self.handles:
            for vm in list(self.bound):
                vm.forget(self)


def one(node: Node, handle: int) -> Object:
    found = node.objects.get(handle)
    if found is None:
        raise Errno(errno.ENOENT, f"no buffer {handle}")
    return found


def keep(node: Node, thing: Object) -> int:
    """A handle for a buffer; the one it has already, if it has."""
    with node.gpu.lock:
        for handle, other in node.objects:
            if other is thing:
                return handle
        thing.handles += 1
        if thing.inode:
            node.gpu.objects[thing.inode] = thing
    return node.objects.add(thing)


def new(node: Node, size: int) -> tuple[int, int]:
    size = round_up(size)
    if not size:
        raise Errno(errno.EINVAL, "a buffer of no bytes")
    if size > node.gpu.kernel.gtt_bytes:
        raise Errno(errno.E2BIG, f"a buffer of {size:#x} bytes")
    try:
        thing = Object(node.gpu, [Piece(Buffer(size, "buffer"), 0, size)])
    except (SoftgenError, OSError, MemoryError) as error:
        raise Errno(errno.ENOMEM, str(error)) from None
    with node.gpu.lock:
        thing.handles += 1
        node.gpu.objects[thing.inode] = thing
    return node.objects.add(thing), size


def create(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.handle, arg.size = new(node, arg.size)


def create_extended(node: Node, call: Call, arg: SimpleNamespace) -> None:
    for name, _, _ in extensions(call, arg.extensions):
        if name != CREATE_MEMORY_REGIONS:
            raise Errno(errno.EINVAL, f"GEM_CREATE_EXT extension {name}")
    arg.handle, arg.size = new(node, arg.size)


def extensions(call: Call, address: int) -> list[tuple[int, int, int]]:
    """(name, flags, address of what follows the head) of each link of a chain."""
    found: list[tuple[int, int, int]] = []
    while address:
        if len(found) == 512:
            raise Errno(errno.E2BIG, "a chain of extensions without end")
        link = EXTENSION.unpack(call.read(address, EXTENSION.size))
        found.append((link.name, link.flags, address + EXTENSION.size))
        address = link.next
    return found


def close(node: Node, call: Call, arg: SimpleNamespace) -> None:
    thing = node.objects.remove(arg.handle)
    if thing is None:
        raise Errno(errno.EINVAL, f"no buffer {arg.handle}")
    thing.release()


def flink(node: Node, call: Call, arg: SimpleNamespace) -> None:
    thing = one(node, arg.handle)
    with node.gpu.lock:
        thing.name = thing.name or next(node.gpu.names)
        node.gpu.flinks[thing.name] = thing
    arg.name = thing.name


def open_name(node: Node, call: Call, arg: SimpleNamespace) -> None:
    thing = node.gpu.flinks.get(arg.name)
    if thing is None:
        raise Errno(errno.ENOENT)
    arg.handle, arg.size = keep(node, thing), thing.size


def from_user(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """USERPTR: the program's own pages as a buffer."""
    if not arg.size or (arg.address | arg.size) % PAGE_SIZE or arg.address + arg.size > 1 << 47:
        raise Errno(errno.EINVAL, f"USERPTR of {arg.size:#x} bytes at {arg.address:#x}")
    if arg.flags & ~(userptr.READ_ONLY | userptr.PROBE | userptr.UNSYNCHRONIZED):
        raise Errno(errno.EINVAL, f"USERPTR flags {arg.flags:#x}")
    try:
        pieces, copied = userptr.share(node.gpu, call, arg.address, arg.size)
    except SoftgenError as error:
        raise Errno(errno.ENOMEM, str(error)) from None
    thing = Object(node.gpu, [Piece(*piece) for piece in pieces], copied, user=True)
    thing.handles = 1
    arg.handle = node.objects.add(thing)


def map_old(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """GEM_MMAP, which answers with an address."""
    thing = one(node, arg.handle)
    if thing.user:
        raise Errno(errno.ENODEV, "memory of the program itself cannot be mapped")
    if not arg.size or arg.offset % PAGE_SIZE or arg.offset + arg.size > round_up(thing.size):
        raise Errno(errno.EINVAL, f"GEM_MMAP of {arg.size:#x} bytes from {arg.offset:#x} of {thing.size:#x}")
    arg.address = call.map(thing.pieces[0].buffer.fd, arg.offset, arg.size)


def map_offset(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """GEM_MMAP_OFFSET, and GEM_MMAP_GTT, which is the same with a shorter argument."""
    thing = one(node, arg.handle)
    if arg.flags > MMAP_MOST:
        raise Errno(errno.EINVAL, f"GEM_MMAP_OFFSET flags {arg.flags}")
    if thing.user:
        raise Errno(errno.ENODEV, "memory of the program itself cannot be mapped")
    arg.offset = arg.handle << OFFSET_BITS
    if arg.flags == MMAP_GTT and (thing.tiling or thing.view):
        thing.view = thing.view or View(thing)
        arg.offset |= APERTURE


def mapped(node: Node, offset: int, size: int) -> tuple[int, int]:
    """mmap() of a node: the memory's descriptor, and where in it."""
    thing, inside = one(node, offset >> OFFSET_BITS), offset % APERTURE
    if thing.user or inside + size > round_up(thing.size) or inside % PAGE_SIZE:
        raise Errno(errno.EINVAL, f"mmap of {size:#x} bytes from {inside:#x} of a buffer of {thing.size:#x}")
    thing.seen()
    return (thing.view if offset & APERTURE and thing.view else thing.pieces[0]).buffer.fd, inside


def read(node: Node, call: Call, arg: SimpleNamespace) -> None:
    thing = one(node, arg.handle)
    check_range(thing, arg)
    wait_idle(node, call, thing)
    call.write(arg.data, thing.read(arg.offset, arg.size))


def write(node: Node, call: Call, arg: SimpleNamespace) -> None:
    thing = one(node, arg.handle)
    check_range(thing, arg)
    wait_idle(node, call, thing)
    thing.write(arg.offset, call.read(arg.data, arg.size))
    thing.seen()


def check_range(thing: Object, arg: SimpleNamespace) -> None:
    if arg.offset + arg.size > thing.size:
        raise Errno(errno.EINVAL, f"{arg.size:#x} bytes at {arg.offset:#x} of a buffer of {thing.size:#x}")


def wait_idle(node: Node, call: Call, thing: Object, writes_only: bool = False) -> None:
    node.gpu.signals.wait(lambda: not any(use.write or not writes_only for use in thing.busy()), None, call.channel.gone)
    thing.seen()


def set_domain(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """The processor's turn: waits for the GPU. Submissions do not say reliably what they write, so it waits for all."""
    wait_idle(node, call, one(node, arg.handle))


def wait(node: Node, call: Call, arg: SimpleNamespace) -> None:
    thing = one(node, arg.handle)
    began = time.monotonic_ns()
    until = None if arg.timeout < 0 else (began + arg.timeout) / NANOSECONDS
    idle = node.gpu.signals.wait(thing.idle, until, call.channel.gone)
    if arg.timeout > 0:
        arg.timeout = max(arg.timeout - (time.monotonic_ns() - began), 0)
    if not idle:
        raise Errno(errno.ETIME)
    thing.seen()


def busy(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """Low half: the class of the engine that writes, plus one. High half: a bit for each class that uses it."""
    arg.busy = 0
    for use in one(node, arg.handle).busy():
        kind = ENGINE_CLASSES.index(use.engine.rstrip("0123456789"))
        arg.busy |= 1 << 16 + kind | (kind + 1 if use.write else 0)


def advise(node: Node, call: Call, arg: SimpleNamespace) -> None:
    one(node, arg.handle)
    arg.retained = 1


def set_tiling(node: Node, call: Call, arg: SimpleNamespace) -> None:
    thing = one(node, arg.handle)
    if arg.mode not in TILINGS or arg.mode and (not arg.stride or arg.stride % TILINGS[arg.mode][1]):
        raise Errno(errno.EINVAL, f"tiling {arg.mode} with a stride of {arg.stride}")
    thing.seen()
    thing.tiling, thing.stride = arg.mode, arg.stride if arg.mode else 0
    if thing.view:
        thing.view.arrange()
    arg.stride, arg.swizzle = thing.stride, 0


def get_tiling(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.mode, arg.swizzle, arg.physical = one(node, arg.handle).tiling, 0, 0


def set_caching(node: Node, call: Call, arg: SimpleNamespace) -> None:
    one(node, arg.handle).caching = arg.caching


def get_caching(node: Node, call: Call, arg: SimpleNamespace) -> None:
    arg.caching = one(node, arg.handle).caching


def export(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """PRIME: the memory itself, as a descriptor."""
    thing = one(node, arg.handle)
    if thing.user:
        raise Errno(errno.EINVAL, "memory of the program itself cannot be shared")
    call.hand(call.argument + 8, os.dup(thing.pieces[0].buffer.fd))


def import_(node: Node, call: Call, arg: SimpleNamespace) -> None:
    descriptor = call.take(arg.fd)
    thing = node.gpu.objects.get(os.fstat(descriptor).st_ino)
    if thing is None:
        try:
            buffer = Buffer.from_fd(descriptor, "buffer")
        except (SoftgenError, OSError) as error:
            os.close(descriptor)
            raise Errno(errno.EINVAL, str(error)) from None
        thing = Object(node.gpu, [Piece(buffer, 0, buffer.capacity)])
    else:
        os.close(descriptor)
    arg.handle = keep(node, thing)


def finished(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """SW_FINISH: the processor has drawn."""
    one(node, arg.handle).seen()


def nothing(node: Node, call: Call, arg: SimpleNamespace) -> None:
    """Granted, and nothing is to be done."""


HANDLERS = {
    "GEM_CLOSE": close, "GEM_FLINK": flink, "GEM_OPEN": open_name, "PRIME_HANDLE_TO_FD": export, "PRIME_FD_TO_HANDLE": import_,
    "I915_GEM_CREATE": create, "I915_GEM_CREATE_EXT": create_extended, "I915_GEM_USERPTR": from_user, "I915_GEM_MMAP": map_old,
    "I915_GEM_MMAP_OFFSET": map_offset, "I915_GEM_PREAD": read, "I915_GEM_PWRITE": write, "I915_GEM_SET_DOMAIN": set_domain,
    "I915_GEM_SW_FINISH": finished, "I915_GEM_WAIT": wait, "I915_GEM_BUSY": busy, "I915_GEM_THROTTLE": nothing, "I915_GEM_MADVISE": advise,
    "I915_GEM_SET_TILING": set_tiling, "I915_GEM_GET_TILING": get_tiling, "I915_GEM_SET_CACHING": set_caching,
    "I915_GEM_GET_CACHING": get_caching,
}  # fmt: skip
