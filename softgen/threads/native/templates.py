"""Templates: the blocks of a group's threads as they start. Kept for later dispatches of the same kind; only what changed is written again.

In:  a SharedDispatch. Out: a block for each thread of a group, or one for all where payloads are written by C code. Counters of a header
patch are not in it: they differ between groups.
Everything that a block is made of is compared: drivers rewrite state in place between two dispatches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.eu.thread import block
from softgen.eu.thread.block import ControlBlock
from softgen.eu.thread.state import ThreadState
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.payload import PayloadList, TemplatePayload, ThreadMasks
from softgen.threads.workers.shared import SharedDispatch

Bytes = npt.NDArray[np.uint8]

LINE = 64
GRF_END = block.BLOCK_OFFSETS["mrf"]
NUMBER = block.BLOCK_OFFSETS["control"] + ControlBlock.number.offset
MAX_KEPT = 16  # kinds of dispatches whose templates a worker keeps


class AlignedMemory:
    """Bytes that start at a cache line; they grow and are kept from one dispatch to the next."""

    def __init__(self) -> None:
        self.bytes: Bytes = np.zeros(0, np.uint8)
        self.address = 0

    def fit(self, size: int) -> Bytes:
        if len(self.bytes) < size:
            raw = np.zeros(size + LINE, np.uint8)
            self.bytes = raw[-raw.ctypes.data % LINE :][:size]
            self.address = self.bytes.ctypes.data
        return self.bytes[:size]


@lru_cache(256)
def _started(gen: float, kernel: int, control: tuple[int, ...], state: int, mask: int) -> bytes:
    """The block of a thread that starts, without its payload."""
    thread = ThreadState(gen, kernel=kernel, dispatch_mask=mask)
    thread.dwords("cr")[: len(control)] = control
    thread.dwords("sr")[0] = state
    thread.save()
    return thread.block.tobytes()


class ThreadTemplates(AlignedMemory):
    """Template blocks of the threads that one worker runs. `stride` is 0 where one block serves all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.control = 0  # cr0.0 of a thread that starts
        self.stride = block.BLOCK_SIZE
        self._data: bytes | tuple[bytes, ...] | None = None  # of the payloads; None: blocks are not complete

    def make(self, shared: SharedDispatch, first_slot: int) -> bool:
        """Writes the blocks of a dispatch; False if they are there already. Its threads have slots from `first_slot` on."""
        dispatch, payload = shared.dispatch, shared.dispatch.payload
        own = payload if isinstance(payload, TemplatePayload | PayloadList) else None
        data = own.data if isinstance(own, TemplatePayload) else own.payloads if own else b""
        if data == self._data:
            return False
        count = dispatch.threads if own or isinstance(dispatch.masks, ThreadMasks) else 1
        rows = self.fit(count * block.BLOCK_SIZE).reshape(count, block.BLOCK_SIZE)
        made, self._data = self._data, None  # until all is complete
        if made is None:
            self._start(rows, shared)
            self.stride = block.BLOCK_SIZE if len(rows) == dispatch.threads else 0
        if isinstance(own, PayloadList):
            self._list(rows, own)
        elif own:
            self._fill(rows, own, dispatch.threads, made is None)
        if own and (made is None or isinstance(own, PayloadList)):
            self._fill_slots(rows, own, first_slot)
        self._data = data
        return True

    def _start(self, rows: Bytes, shared: SharedDispatch) -> None:
        """All but the payloads."""
        dispatch: ThreadDispatch = shared.dispatch
        started = shared.gen, dispatch.kernel, dispatch.control, dispatch.thread_state
        if shared.full:
            rows[:] = np.frombuffer(_started(*started, dispatch.all_channels), np.uint8)
        else:
            for number, row in enumerate(rows):
                row[:] = np.frombuffer(_started(*started, dispatch.mask(number)), np.uint8)
        rows[:, NUMBER : NUMBER + 4].view(np.uint32)[:, 0] = np.arange(len(rows), dtype=np.uint32)
        self.control = dispatch.control[0]

    def _list(self, rows: Bytes, payload: PayloadList) -> None:
        for row, registers in zip(rows, payload.payloads, strict=True):
            row[: len(registers)] = np.frombuffer(registers, np.uint8)
            row[len(registers) : GRF_END] = 0  # an earlier thread may have had more

    def _fill(self, rows: Bytes, payload: TemplatePayload, threads: int, first: bool) -> None:
        """Writes the payloads; the header only the first time: all that have these templates have the same."""
        data = np.frombuffer(payload.data, np.uint8)
        own, common, own_offset, common_offset = payload.own, payload.common, payload.own_offset, payload.common_offset
        if first:
            rows[:, : len(payload.header)] = np.frombuffer(payload.header, np.uint8)
        rows[:, common_offset : common_offset + common] = data[:common]
        rows[:, own_offset : own_offset + own] = data[common : common + own * threads].reshape(threads, own)

    def _fill_slots(self, rows: Bytes, payload: TemplatePayload | PayloadList, first_slot: int) -> None:
        slots = np.arange(first_slot, first_slot + len(rows), dtype=np.uint64)
        for rule in payload.slots:
            values = (slots * np.uint64(rule.step) + np.uint64(rule.base) & np.uint64(rule.mask)).astype(np.uint32)
            dwords = rows[:, rule.offset : rule.offset + 4].view(np.uint32)[:, 0]
            dwords[:] = dwords & np.uint32(~rule.mask & 0xFFFFFFFF) | values


class TemplateCache:
    """The templates of the last kinds of dispatches: a draw's stages alternate."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], ThreadTemplates] = {}
        self._last: ThreadTemplates | None = None

    def choose(self, shared: SharedDispatch, first_slot: int) -> tuple[ThreadTemplates, bool]:
        """The templates of a dispatch, and whether they differ from those chosen last."""
        key = _kind(shared, first_slot)
        found = self._kept.pop(key, None) or ThreadTemplates()
        if len(self._kept) >= MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = found  # the last one used comes last
        differ = found.make(shared, first_slot) or found is not self._last
        self._last = found
        return found, differ


def _kind(shared: SharedDispatch, first_slot: int) -> tuple[Any, ...]:
    """All that blocks are made of but the data of payloads."""
    dispatch, payload = shared.dispatch, shared.dispatch.payload
    layout: tuple[Any, ...] = ()
    if isinstance(payload, TemplatePayload):
        layout = payload.header, payload.common, payload.own, payload.own_first, payload.slots
    elif isinstance(payload, PayloadList):
        layout = (payload.slots,)
    patched = tuple(counter.offset for counter in dispatch.patch.counters) if dispatch.patch is not None else ()
    return (shared.gen, first_slot, dispatch.kernel, dispatch.control, dispatch.thread_state, dispatch.simd, dispatch.threads,
            dispatch.masks, patched, type(payload), layout)  # fmt: skip
