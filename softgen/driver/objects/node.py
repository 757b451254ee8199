"""Opened nodes: their handles of buffers, contexts, address spaces and sync objects; and the state that all nodes share.

A node lives as long as any descriptor of it, in whatever process; then everything it owned is let go, as the kernel does.
"""

from __future__ import annotations

import errno
import heapq
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from softgen.bits.generation import Device
from softgen.driver.errors import Errno
from softgen.driver.ioctl.user_copy import Copied
from softgen.driver.kms.display import Display
from softgen.driver.objects.address_parts import AddressParts
from softgen.driver.objects.budget import Budget, default_limit
from softgen.driver.objects.fence import Pipes, Signals, SyncFiles, Syncobj, all_of
from softgen.driver.objects.gem_context import GemContext
from softgen.driver.objects.gem_object import GemObject, Piece
from softgen.driver.objects.submission import Submission
from softgen.driver.objects.vm import Vm
from softgen.driver.queue.queue import DeferredRun
from softgen.driver.uapi import kernel_tables
from softgen.memory.store import Identity, MemfdBuffer

Item = TypeVar("Item")
FIRST_RENDER_MINOR = 128
MOST_CONTEXTS = 1 << 14  # and address spaces, of a node
CONTEXT_BYTES, SYNCOBJ_BYTES, OBJECT_BYTES = 4096, 512, 1024  # memory of the server that one takes, about
MOST_LOGGED = 1000  # different texts: a program may make up any number of them
FEW_ORPHANS = 64  # are looked at every time; more, when their number has doubled


class Table(Generic[Item]):
    """Handles: numbers for items, the lowest free number first."""

    def __init__(self, first: int = 1, most: int = 1 << 20, charge: Callable[[int], None] = lambda count: None) -> None:
        """`charge` is called with the number of items that are added, or negative, removed; it may refuse more."""
        self.most, self.charge = most, charge
        self.items: dict[int, Item] = {}
        self.free: list[int] = []
        self.next = first
        self.changes = 0  # counted: whether a handle may mean something else than before
        self.lock = threading.Lock()

    def add(self, item: Item) -> int:
        """A handle for an item; Errno(ENOMEM) where there are too many."""
        with self.lock:
            if len(self.items) >= self.most:
                raise Errno(errno.ENOMEM, f"{self.most} handles are in use")
            self.charge(1)
            if self.free:
                number = heapq.heappop(self.free)
            else:
                number, self.next = self.next, self.next + 1
            self.items[number] = item
            self.changes += 1
            return number

    def get(self, number: int) -> Item | None:
        return self.items.get(number)

    def remove(self, number: int) -> Item | None:
        with self.lock:
            item = self.items.pop(number, None)
            if item is not None:
                self.charge(-1)
                self.changes += 1
                heapq.heappush(self.free, number)
            return item

    def clear(self) -> list[Item]:
        with self.lock:
            items = list(self.items.values())
            self.charge(-len(items))
            self.items.clear()
            self.changes += 1
            return items

    def __iter__(self) -> Iterator[tuple[int, Item]]:
        return iter(list(self.items.items()))


class SubmissionRunner(Protocol):
    """Interface of what executes submissions."""

    def submit(self, submission: Submission) -> None: ...
    def at_once(self, submission: Submission, awaited: bool = False) -> DeferredRun | None: ...


class GpuState:
    """State of the GPU that all opened nodes share."""

    def __init__(self, device: Device, runner: SubmissionRunner, log: Callable[[str], None] = lambda text: None,
                 memory_limit: int | None = None) -> None:  # fmt: skip
        """`memory_limit`: bytes the server may take for all programs; the default is a share of the host's memory."""
        self.device, self.runner, self.log = device, runner, log
        self.budget = Budget(memory_limit or default_limit(), self.log_once)
        self.parts = AddressParts(self.log_once)
        self.kernel = kernel_tables.kernel(device.name)
        self.signals = Signals()
        self.display = Display(self.signals)
        self.sync_files, self.syncobjs = SyncFiles(), Pipes[Syncobj]()
        self.objects: dict[Identity, GemObject] = {}  # by the file of its memory; only those with one file
        self.orphans: set[GemObject] = set()  # exported, without a handle, and perhaps with a descriptor somewhere
        self.sweep_at = 0  # number of orphans at which they are looked at
        self.flinks: dict[int, GemObject] = {}
        # Memory taken from programs, by process and file. The file is what the process itself says, so no other process's may be found.
        self.swapped: weakref.WeakValueDictionary[tuple[int, Identity], MemfdBuffer] = weakref.WeakValueDictionary()
        self.copies: weakref.WeakSet[GemObject] = weakref.WeakSet()  # USERPTR buffers that are copied
        self.uids, self.names, self.sequence = itertools.count(1), itertools.count(1), itertools.count(1)
        self.lock = threading.RLock()
        self.unknown: dict[str, int] = {}  # ioctls nobody answers -> how often
        self.refused: dict[str, dict[str, Any]] = {}  # by ioctl and error: how often, and the first reason
        self.logged: set[str] = set()  # by log_once
        self.opened = 0
        self.linear_views = False  # whether any buffer has one
        self.settle = 0.0  # seconds that EXECBUFFER2 waits for its work: a recording's buffers are then not written meanwhile

    def count_refused(self, name: str, error: str, reason: str) -> None:
        """Count a refused ioctl for the report."""
        with self.lock:
            row = self.refused.setdefault(f"{name} {error}", {"count": 0, "first": reason})
            row["count"] += 1

    def log_once(self, text: str) -> None:
        """Log a text the first time only: a program may cause it over and over."""
        with self.lock:
            if text in self.logged or len(self.logged) >= MOST_LOGGED:
                return
            self.logged.add(text)
        self.log(text)

    def new_object(self, pid: int, pieces: list[Piece], copied: Copied | None = None, user: bool = False) -> GemObject:
        """A buffer object without a handle yet; `pid`: the process for which its memory counts."""
        bo = GemObject(next(self.uids), pid, pieces, int(self.kernel.llc), copied, user)
        if copied is not None:
            with self.lock:
                self.copies.add(bo)
        return bo

    def release(self, bo: GemObject) -> None:
        """Drop a handle of a buffer. After the last one, and when no submission uses the buffer any more, it is unmapped everywhere.

        An exported buffer can still be imported while a descriptor of it is open, as a dma-buf keeps it in the kernel (sweep).
        """
        with self.lock:
            bo.handles -= 1
            if bo.handles:
                return
            self.flinks.pop(bo.name, None)
            bo.name = 0
            if bo.exported:
                self.orphans.add(bo)
            else:
                self._forget(bo)
        all_of(self.signals, [use.fence for use in bo.uses]).then(bo.unbind)

    def _forget(self, bo: GemObject) -> None:
        """Remove a buffer from the table of buffers by identity; called with the lock held."""
        if bo.identity:
            self.objects.pop(bo.identity, None)

    def reclaim(self) -> None:
        """Close descriptors whose other side nobody has open any more."""
        self.sync_files.sweep()
        self.syncobjs.sweep()
        self.sweep(everything=True)

    def sweep(self, everything: bool = False) -> None:
        """Forget exported buffers without a handle whose last descriptor is closed."""
        with self.lock:
            if len(self.orphans) <= FEW_ORPHANS or len(self.orphans) >= self.sweep_at or everything:
                for bo in [bo for bo in self.orphans if not bo.pieces[0].buffer.open_elsewhere()]:
                    self.orphans.remove(bo)
                    self._forget(bo)
                self.sweep_at = 2 * len(self.orphans)


class Node:
    """State of one open() of a device node."""

    def __init__(self, gpu: GpuState, minor: int, pid: int = 0) -> None:
        """`pid`: the process that opened it, for which its handles, contexts and sync objects count."""
        self.gpu, self.minor, self.pid, self.render = gpu, minor, pid, minor >= FIRST_RENDER_MINOR
        self.objects: Table[GemObject] = Table(charge=partial(self._charge, OBJECT_BYTES, "a buffer's handle"))
        self.handles: dict[GemObject, int] = {}  # the other way round
        self.contexts: Table[GemContext] = Table(0, MOST_CONTEXTS, partial(self._charge, CONTEXT_BYTES, "a context"))
        self.vms: Table[Vm] = Table(1, MOST_CONTEXTS, partial(self._charge, CONTEXT_BYTES, "an address space"))
        self.syncobjs: Table[Syncobj] = Table(charge=partial(self._charge, SYNCOBJ_BYTES, "a sync object"))
        self.lists: weakref.WeakSet[GemContext] = weakref.WeakSet()  # contexts that keep lists of buffers (execbuffer.py)
        self.destroyed: weakref.WeakSet[GemContext] = weakref.WeakSet()  # contexts without a number, of which work may still run
        self.client_caps: dict[int, int] = {}  # set with DRM_IOCTL_SET_CLIENT_CAP

    def _charge(self, size: int, what: str, count: int) -> None:
        """Count memory of the server for the process that opened the node; Errno(ENOMEM) where it is too much."""
        if count > 0:
            self.gpu.budget.take(self.pid, count * size, what)
        elif count:
            self.gpu.budget.give(self.pid, -count * size)

    def forget_lists(self) -> None:
        """Lists of buffers that contexts keep: a buffer whose handle is closed may be in one of them."""
        for context in list(self.lists):
            context.listed.clear()
        self.lists.clear()
