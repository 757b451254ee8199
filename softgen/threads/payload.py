"""Payload sources, dispatch-mask sources and header patches: the registers and channels that threads start with.

A payload is the bytes of a thread's first registers, r0 first. Sources of payloads:

TemplatePayload  a header, data common to all threads, and own data of each thread of a group; all groups get the same
PayloadList      the bytes of each thread
PayloadWriter    a C function that writes the payloads of a batch of threads (threads.h)
LoopPayload      a C loop writes payloads and starts batches itself (threads.h)

Two kinds of header fields are filled in late. SlotFields depend on which threads run at the same time (scratch space, thread ID): a slot is
worker number x group size + number in the group. A HeaderPatch holds counters that advance from group to group.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field, replace
from functools import cached_property

from softgen.bits.units import GRF_BYTES, GRF_COUNT
from softgen.errors import DecodeError


def check_length(registers: int, whose: str) -> None:
    """Refuse payloads that do not fit into a thread's registers: every stage that plans payloads asks here."""
    if registers > GRF_COUNT:
        raise DecodeError(f"{whose}: a payload of {registers} registers; threads have {GRF_COUNT}")


@dataclass(frozen=True)
class SlotField:
    """A header field that tells threads apart which run at the same time: (base + slot x step) & mask, in the dword at `offset`."""

    offset: int
    mask: int
    base: int
    step: int

    def value(self, slot: int) -> int:
        return self.base + slot * self.step & self.mask


@dataclass(frozen=True)
class Counter:
    """One axis of a HeaderPatch: `count` values from `start` on, written to the dword at byte `offset` of the payload."""

    start: int
    count: int
    offset: int


@dataclass(frozen=True)
class HeaderPatch:
    """An odometer of up to three counters over the groups of a dispatch, the first counter fastest."""

    counters: tuple[Counter, ...]

    @property
    def groups(self) -> int:
        found = 1
        for counter in self.counters:
            found *= counter.count
        return found

    def values(self, group: int) -> tuple[int, ...]:
        """The counters in the group that comes after `group` others."""
        found = []
        for counter in self.counters:
            found.append(counter.start + group % counter.count)
            group //= counter.count
        return tuple(found)

    def only(self, group: int) -> HeaderPatch:
        """Patch of one group's headers alone."""
        values = self.values(group)
        return HeaderPatch(tuple(replace(counter, start=value, count=1) for counter, value in zip(self.counters, values, strict=True)))


@dataclass(frozen=True)
class TemplatePayload:
    """Payloads made of a header, then common data and each thread's own data, or the other way round (`own_first`).

    `data` holds the common bytes, then those of each thread."""

    header: bytes
    common: int = 0  # bytes
    own: int = 0  # bytes
    own_first: bool = False
    data: bytes = field(default=b"", repr=False)
    slots: tuple[SlotField, ...] = ()

    @property
    def registers(self) -> int:
        return -(-(len(self.header) + self.common + self.own) // GRF_BYTES)

    @property
    def own_offset(self) -> int:
        """Where in a payload a thread's own data starts."""
        return len(self.header) + (0 if self.own_first else self.common)

    @property
    def common_offset(self) -> int:
        return len(self.header) + (self.own if self.own_first else 0)

    def again(self, header: bytes, data: bytes) -> TemplatePayload:
        """Copy with another header and other data, as long as these."""
        made = object.__new__(TemplatePayload)
        made.__dict__.update(self.__dict__, header=header, data=data)
        return made

    def of(self, number: int) -> bytes:
        """The payload of one thread of a group, without slot fields and counters."""
        common, start = self.data[: self.common], self.common + number * self.own
        own = self.data[start : start + self.own]
        return self.header + (own + common if self.own_first else common + own)


@dataclass(frozen=True)
class PayloadList:
    """Payloads of threads that have nothing in common, one after another; the dispatch is one group."""

    payloads: tuple[bytes, ...] = field(repr=False)
    slots: tuple[SlotField, ...] = ()

    @cached_property
    def registers(self) -> int:
        return -(-max(map(len, self.payloads)) // GRF_BYTES)

    def of(self, number: int) -> bytes:
        return self.payloads[number]


@dataclass(frozen=True)
class PayloadWriter:
    """A C function (`threads_writer` of threads.h) that writes payloads, and dispatch masks if the dispatch has WrittenMasks.

    `owner` keeps `state` and the function's code alive."""

    function: int  # host address
    state: int  # passed to it
    registers: int
    first: int = 0  # number of the first thread
    count: int | None = None  # threads of the dispatch; default: all groups are full
    owner: object = field(default=None, repr=False, compare=False)
    slots: tuple[SlotField, ...] = ()  # filled in after the function

    def written(self, number: int) -> tuple[bytes, int]:
        """The payload of one thread, and its dispatch mask if the function gives one."""
        block, mask = ctypes.create_string_buffer(self.registers * GRF_BYTES), ctypes.c_uint32()
        _WRITER(self.function)(self.state, self.first + number, 1, ctypes.addressof(block), len(block), ctypes.addressof(mask))
        return block.raw, mask.value


@dataclass(frozen=True)
class LoopPayload:
    """Payloads that a C loop writes before it starts each batch; the dispatch has no groups of its own."""

    registers: int


Payload = TemplatePayload | PayloadList | PayloadWriter | LoopPayload
_WRITER = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p))


@dataclass(frozen=True)
class FullMask:
    """All channels of every thread are on."""


@dataclass(frozen=True)
class ThreadMasks:
    """A dispatch mask for each thread of a group."""

    masks: tuple[int, ...]


@dataclass(frozen=True)
class WrittenMasks:
    """The PayloadWriter gives each thread its dispatch mask."""


Masks = FullMask | ThreadMasks | WrittenMasks
FULL = FullMask()


def patched(payload: bytes, slots: tuple[SlotField, ...], slot: int, patch: HeaderPatch | None, group: int) -> bytes:
    """A payload with its slot fields and counters filled in."""
    if not slots and patch is None:
        return payload
    made = bytearray(payload)
    for rule in slots:
        _merge(made, rule.offset, rule.value(slot), rule.mask)
    if patch is not None:
        for counter, value in zip(patch.counters, patch.values(group), strict=True):
            _merge(made, counter.offset, value, 0xFFFFFFFF)
    return bytes(made)


def _merge(payload: bytearray, offset: int, value: int, mask: int) -> None:
    (old,) = struct.unpack_from("<I", payload, offset)
    struct.pack_into("<I", payload, offset, (old & ~mask | value & mask) & 0xFFFFFFFF)
