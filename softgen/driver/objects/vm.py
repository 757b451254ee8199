"""Address spaces (VMs): addresses given to buffers, and buffers mapped.

Addresses are decided when work is submitted (a relocation needs them) and buffers are mapped when it runs: until then an earlier
submission may still use the addresses for something else.
"""

from __future__ import annotations

import errno
import itertools
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from softgen.bits.units import PAGE_SIZE
from softgen.driver.errors import Errno
from softgen.driver.objects import address_parts
from softgen.driver.objects.address_parts import AddressParts
from softgen.driver.objects.buffer_list import BufferList
from softgen.driver.objects.fence import Signals
from softgen.driver.objects.gem_object import GemObject
from softgen.driver.objects.placement import Placement
from softgen.errors import SoftgenError
from softgen.memory.address_space import AddressSpace

PLACED_BYTES = 640  # memory of the server that a buffer takes in an address space, about
HIGHEST = 0xFFF0_0000  # unless pinned, addresses fit 32 bits,
ANYWHERE = 0, HIGHEST  # and are among these
ZONE_4G = (1 << 32) - PAGE_SIZE  # where buffers without EXEC_OBJECT_SUPPORTS_48B_ADDRESS must end (the kernel's PIN_ZONE_4G)


class PlacementRequest(NamedTuple):
    """A buffer that needs an address: a pinned one or any, and whether it may end above ZONE_4G."""

    bo: GemObject
    address: int | None
    alignment: int
    high: bool

    def fits(self, address: int) -> bool:
        """Whether the buffer may stay at an address it was given earlier."""
        if self.address is not None:
            return address == self.address
        return not (self.alignment and address % self.alignment) and (self.high or address + self.bo.size <= ZONE_4G)


def ended(space: AddressSpace, placed: Placement, give_parts: Callable[[int], None], parts: set[int]) -> None:
    """Release what an address space had. Executions in it may be kept, in cycles that the garbage collector frees much later: its buffers
    are not to wait for that."""
    space.close()
    placed.charge(-len(placed))
    give_parts(len(parts))


class Vm:
    """An address space: addresses given to buffers, and buffers mapped now."""

    def __init__(self, name: str, address_bits: int, gtt_bytes: int, signals: Signals, charge: Callable[[int], None] = lambda size: None,
                 parts: AddressParts | None = None, pid: int = 0) -> None:  # fmt: skip
        """`charge` is called with bytes of memory that are taken, or negative, given back; parts of 4 GiB count for process `pid`."""
        self.name, self.signals = name, signals
        self.space = AddressSpace(name, address_bits)
        self.limit = min(gtt_bytes, HIGHEST)
        self.lock = threading.RLock()
        self.placed, self.mapped = Placement(lambda count: charge(count * PLACED_BYTES)), Placement()
        self.parts: set[int] = set()  # in which there were buffers: they stay with the space
        shared = parts or AddressParts()
        self._take_parts = partial(shared.take, pid)
        weakref.finalize(self, ended, self.space, self.placed, partial(shared.give, pid), self.parts).atexit = False
        self.running: list[BufferList] = []  # of submissions that run now

    def place(self, requests: list[PlacementRequest]) -> list[int]:
        """Addresses for the buffers of a submission: the pinned address, the one a buffer has, or a free one, aligned."""
        with self.lock:
            if (kept := self._kept(requests)) is not None:
                return kept
            taken = sorted((address, address + bo.size) for bo, address, _, _ in requests if address is not None)
            for (_, end), (start, _) in itertools.pairwise(taken):
                if start < end:
                    raise Errno(errno.EINVAL, f"two buffers are pinned at {start:#x}")
            if any(end > 1 << self.space.bits for _, end in taken):
                raise Errno(errno.EINVAL, f"a buffer is pinned beyond {self.space.bits} bits")
            self._claim_parts(taken + [ANYWHERE] * any(address is None for _, address, _, _ in requests))
            for start, end in taken:
                for bo in self.placed.overlapping(start, end):
                    self.placed.remove(bo)
            for bo, address, _, _ in requests:
                if address is not None:
                    self.placed.put(bo, address)
                    bo.bind(self)
            return [self._place(request) for request in requests]

    def _claim_parts(self, ranges: list[tuple[int, int]]) -> None:
        """Count the parts that ranges of addresses lie in; ENOSPC where they are too many."""
        new = {part for start, end in ranges for part in address_parts.parts(start, end)} - self.parts
        if new:
            self._take_parts(len(new))
            self.parts |= new

    def _kept(self, requests: list[PlacementRequest]) -> list[int] | None:
        """The addresses they have, if all may stay where they are: those do not overlap."""
        found = []
        for request in requests:
            at = self.placed.get(request.bo)
            if at is None or not request.fits(at):
                return None
            found.append(at)
        return found

    def _place(self, request: PlacementRequest) -> int:
        bo, address = request.bo, self.placed.get(request.bo)
        if address is None or not request.fits(address):
            self.placed.remove(bo)
            address = self.placed.free(bo.size, max(request.alignment, PAGE_SIZE))
            if address + bo.size > self.limit:
                raise Errno(errno.ENOSPC, f"no room for {bo.size:#x} bytes")
            self.placed.put(bo, address)
        bo.bind(self)
        return address

    def enter(self, buffers: BufferList, before_waiting: Callable[[], None] = lambda: None) -> None:
        """Map what a submission needs; buffers in the way are unmapped, when nothing that runs needs them."""
        with self.lock:
            if buffers.mapped_at == self.mapped.changes:  # they still are
                self.running.append(buffers)
                return
        while blockers := self._try_all(buffers):
            before_waiting()
            self.signals.wait(lambda others=blockers: self._running().isdisjoint(others), None)  # type: ignore[misc]

    def _try_all(self, buffers: BufferList) -> list[GemObject]:
        """Map buffers, which run from then on: other submissions must not unmap some while the rest is mapped. The buffers that run where
        one of them should be, if there are any."""
        with self.lock:
            for bound in buffers:
                if blockers := self._try(bound.bo, bound.address):
                    return blockers
            buffers.mapped_at = self.mapped.changes
            self.running.append(buffers)
            return []

    def _running(self) -> set[GemObject]:
        """Buffers of submissions that run now."""
        with self.lock:
            return {bo for buffers in self.running for bo in buffers.bos}

    def _try(self, bo: GemObject, address: int) -> list[GemObject]:
        """Map a buffer, under the lock; the buffers that run where it should be, if there are any."""
        if self.mapped.get(bo) == address:
            return []
        there = set(self.mapped.overlapping(address, address + bo.size))
        if self.mapped.get(bo) is not None:
            there.add(bo)
        if blockers := list(there & self._running()):
            return blockers
        for other in there:
            self._unmap(other)
        at = address
        try:
            for piece in bo.pieces:
                self.space.map(at, piece.buffer, piece.offset, piece.size)
                at += piece.size
        except SoftgenError:
            self.space.unmap(address, bo.size)  # the pieces before, which nobody would find
            raise
        self.mapped.put(bo, address)
        return []

    def _unmap(self, bo: GemObject) -> None:
        address = self.mapped.remove(bo)
        if address is not None:
            self.space.unmap(address, bo.size)

    def leave(self, buffers: BufferList) -> None:
        with self.lock:
            self.running.remove(buffers)  # or an equal one
        self.signals.notify()

    def forget(self, bo: GemObject) -> None:
        with self.lock:
            self.placed.remove(bo)
            bo.bound.discard(weakref.ref(self))
            self._unmap(bo)
