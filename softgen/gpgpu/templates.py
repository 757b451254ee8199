"""The blocks of a group's threads as they start. They are kept from one dispatch to the next, and only what changed is made anew.

In:  a Job, which says how threads start. Out: a block for each thread; all but the group's number is the same in all groups.
Everything that a block is made of is compared: a driver may change any of it between two dispatches, in the same place.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.eu.thread import block
from softgen.eu.thread.block import ControlBlock
from softgen.eu.thread.state import ThreadState
from softgen.gpgpu import walker
from softgen.gpgpu.group import set_mode
from softgen.gpgpu.job import Job
from softgen.gpgpu.walker import REGISTER, Plan

Bytes = npt.NDArray[np.uint8]

LINE = 64
HEADER = REGISTER  # r0
REST = block.BLOCK_OFFSETS["mrf"]  # where general registers end
NUMBER = block.BLOCK_OFFSETS["control"] + ControlBlock.number.offset
# What no block shows: payloads and data are compared on their own, of the grid only the first group's number stands in blocks.
APART = frozenset({"data", "payloads", "grid", "local_bytes", "barrier"})
_fields = attrgetter(*(one.name for one in fields(Plan) if one.name not in APART))


class Memory:
    """Bytes that begin at a cache line; they grow and are kept from one dispatch to the next."""

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
def _started(gen: float, kernel: int, single_flow: bool, alternate: bool, rounding: int, mask: int) -> bytes:
    """The block of a thread that starts, without its payload."""
    thread = ThreadState(gen, kernel=kernel, dispatch_mask=mask)
    set_mode(thread, single_flow, alternate, rounding)
    thread.save()
    return thread.block.tobytes()


class Templates(Memory):
    def __init__(self) -> None:
        super().__init__()
        self.control = 0  # cr0.0 of a thread that starts
        self._made: tuple[Any, ...] | None = None  # what the blocks were made of, but
        self._payload: bytes | list[bytes] = b""  # this

    def make(self, job: Job, before: int) -> bool:
        """Blocks for a dispatch at whose time `before` other threads run; False if they are there already."""
        plan = job.plan
        wanted = job.gen, before, plan.group(0), plan.payloads is None, plan.registers, *_fields(plan)
        payload = plan.data if plan.payloads is None else _payloads(job, before)
        if wanted == self._made and payload == self._payload:
            return False
        rows = self.fit(plan.threads * block.BLOCK_SIZE).reshape(plan.threads, block.BLOCK_SIZE)
        made, self._made = self._made, None  # until all is whole
        if wanted != made:
            self._start(rows, job, before)
        self._fill(rows, plan, payload)
        self._made, self._payload = wanted, payload
        return True

    def _start(self, rows: Bytes, job: Job, before: int) -> None:
        """All but the payloads; headers of GPGPU threads, too."""
        plan = job.plan
        width, height, _ = plan.shape
        numbers = np.arange(plan.threads, dtype=np.uint32)
        mode = job.gen, plan.kernel, plan.single_flow, plan.alternate, plan.rounding
        if job.full:
            rows[:] = np.frombuffer(_started(*mode, (1 << plan.simd) - 1), np.uint8)
        else:
            for number, row in enumerate(rows):
                row[:] = np.frombuffer(_started(*mode, walker.mask(plan, number % width, number // width % height)), np.uint8)
        if plan.payloads is None:
            one, other = (walker.registers(plan, plan.group(0), number, job.header, before) for number in (0, min(1, plan.threads - 1)))
            head, step = np.frombuffer(one[:HEADER], np.uint32), np.frombuffer(other[:HEADER], np.uint32)
            rows[:, :HEADER].view(np.uint32)[:] = head + numbers[:, None] * (step - head)  # what tells threads apart grows evenly
        rows[:, NUMBER : NUMBER + 4].view(np.uint32)[:, 0] = numbers
        self.control = int.from_bytes(rows[0, block.BLOCK_OFFSETS["cr"] :][:4].tobytes(), "little")

    def _fill(self, rows: Bytes, plan: Plan, payload: bytes | list[bytes]) -> None:
        if isinstance(payload, list):
            for row, registers in zip(rows, payload, strict=True):
                row[: len(registers)] = np.frombuffer(registers, np.uint8)
                row[len(registers) : REST] = 0  # an earlier thread may have had more
            return
        own, shared = plan.own * REGISTER, plan.shared * REGISTER
        first, second = (HEADER, HEADER + own) if plan.own_first else (HEADER + shared, HEADER)  # where own and shared data stand
        data = np.frombuffer(payload, np.uint8)
        rows[:, second : second + shared] = data[:shared]
        rows[:, first : first + own] = data[shared : shared + own * plan.threads].reshape(plan.threads, own)


def _payloads(job: Job, before: int) -> list[bytes]:
    """Registers of threads that differ in more than their number."""
    plan = job.plan
    return [walker.registers(plan, plan.group(0), number, job.header, before) for number in range(plan.threads)]
