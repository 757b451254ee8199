"""Templates: the blocks of a group's threads as they start. Kept from one dispatch to the next; only what changed is written again.

In:  a SharedDispatch. Out: a block for each thread of a group. Counters of a header patch are not in it: they differ between groups.
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
from softgen.threads.payload import LoopPayload, PayloadList, PayloadWriter, TemplatePayload
from softgen.threads.shared import SharedDispatch

Bytes = npt.NDArray[np.uint8]

LINE = 64
GRF_END = block.BLOCK_OFFSETS["mrf"]
NUMBER = block.BLOCK_OFFSETS["control"] + ControlBlock.number.offset


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
def _started(gen: float, kernel: int, control: tuple[int, ...], mask: int) -> bytes:
    """The block of a thread that starts, without its payload."""
    thread = ThreadState(gen, kernel=kernel, dispatch_mask=mask)
    thread.dwords("cr")[: len(control)] = control
    thread.save()
    return thread.block.tobytes()


class ThreadTemplates(AlignedMemory):
    """Template blocks of the threads that one worker runs."""

    def __init__(self) -> None:
        super().__init__()
        self.control = 0  # cr0.0 of a thread that starts
        self._made: tuple[Any, ...] | None = None  # all that the blocks were made of, but
        self._data: bytes | tuple[bytes, ...] = b""  # this

    def make(self, shared: SharedDispatch, first_slot: int) -> bool:
        """Writes the blocks of a dispatch; False if they are there already. Its threads have slots from `first_slot` on."""
        dispatch, payload = shared.dispatch, shared.dispatch.payload
        layout: tuple[Any, ...]
        data: bytes | tuple[bytes, ...]
        if isinstance(payload, TemplatePayload):
            layout, data = (payload.header, payload.common, payload.own, payload.own_first, payload.slots), payload.data
        elif isinstance(payload, PayloadList):
            layout, data = (payload.slots,), payload.payloads
        else:
            layout, data = (), b""
        patched = tuple(counter.offset for counter in dispatch.patch.counters) if dispatch.patch is not None else ()
        wanted = (shared.gen, first_slot, dispatch.kernel, dispatch.control, dispatch.simd, dispatch.threads, dispatch.masks, patched,
                  layout)  # fmt: skip
        if wanted == self._made and data == self._data:
            return False
        rows = self.fit(dispatch.threads * block.BLOCK_SIZE).reshape(dispatch.threads, block.BLOCK_SIZE)
        made, self._made = self._made, None  # until all is complete
        if wanted != made:
            self._start(rows, shared)
        if not isinstance(payload, PayloadWriter | LoopPayload):
            self._fill(rows, payload, dispatch.threads)
            self._fill_slots(rows, payload, first_slot)
        self._made, self._data = wanted, data
        return True

    def _start(self, rows: Bytes, shared: SharedDispatch) -> None:
        """All but the payloads."""
        dispatch: ThreadDispatch = shared.dispatch
        if shared.full:
            rows[:] = np.frombuffer(_started(shared.gen, dispatch.kernel, dispatch.control, dispatch.all_channels), np.uint8)
        else:
            for number, row in enumerate(rows):
                row[:] = np.frombuffer(_started(shared.gen, dispatch.kernel, dispatch.control, dispatch.mask(number)), np.uint8)
        rows[:, NUMBER : NUMBER + 4].view(np.uint32)[:, 0] = np.arange(dispatch.threads, dtype=np.uint32)
        self.control = dispatch.control[0]

    def _fill(self, rows: Bytes, payload: TemplatePayload | PayloadList, threads: int) -> None:
        if isinstance(payload, PayloadList):
            for row, registers in zip(rows, payload.payloads, strict=True):
                row[: len(registers)] = np.frombuffer(registers, np.uint8)
                row[len(registers) : GRF_END] = 0  # an earlier thread may have had more
            return
        data = np.frombuffer(payload.data, np.uint8)
        own, common, own_offset, common_offset = payload.own, payload.common, payload.own_offset, payload.common_offset
        rows[:, : len(payload.header)] = np.frombuffer(payload.header, np.uint8)
        rows[:, common_offset : common_offset + common] = data[:common]
        rows[:, own_offset : own_offset + own] = data[common : common + own * threads].reshape(threads, own)

    def _fill_slots(self, rows: Bytes, payload: TemplatePayload | PayloadList, first_slot: int) -> None:
        slots = np.arange(first_slot, first_slot + len(rows), dtype=np.uint64)
        for rule in payload.slots:
            values = (slots * np.uint64(rule.step) + np.uint64(rule.base) & np.uint64(rule.mask)).astype(np.uint32)
            dwords = rows[:, rule.offset : rule.offset + 4].view(np.uint32)[:, 0]
            dwords[:] = dwords & np.uint32(~rule.mask & 0xFFFFFFFF) | values
