"""Dispatches of a shape: items of groups of any size, numbered as drivers do it, on every engine against the reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softgen.errors import SoftgenError
from softgen.threads.dispatcher import EngineDispatcher
from tests.gpgpu.job import END, FIRST, Job, dwords, words

ENGINES = ("t0", "t1")


@dataclass
class Shape:
    """Threads of a group: x, y and flat ids of their items, in r1, r2 and r3; r4 has parameters."""

    size: tuple[int, int] = (64, 1)
    simd: int = 16
    groups: int = 2

    def own(self) -> list[bytes]:
        items = [(x, y, x + y * self.size[0]) for y in range(self.size[1]) for x in range(self.size[0])]
        threads = [items[first : first + self.simd] for first in range(0, len(items), self.simd)]
        return [b"".join(words(*(item[axis] for item in thread)).ljust(32, b"\0") for axis in range(3)) for thread in threads]

    def job(self, kernel: str, buffers: list[bytes], parameters: tuple[int, ...] = (), **more: Any) -> Job:
        own, items = self.own(), self.size[0] * self.size[1]
        left = items - self.simd * (len(own) - 1)
        shared = dwords(*parameters, *[0] * (8 - len(parameters)))
        return Placed(kernel, buffers, simd=self.simd, shape=(len(own), 1, 1), ends=(self.groups, 1, 1), right=(1 << left) - 1,
                      shared=shared, own=own, **{"local": 4096, **more})  # fmt: skip


@dataclass
class Placed(Job):
    """With more memory, at addresses of its own."""

    more: dict[int, bytes] = field(default_factory=dict)

    def address(self, number: int) -> int:
        return FIRST + number * 0x40000

    def pieces(self) -> dict[int, bytes]:
        return super().pieces() | self.more


Outcome = tuple[str, list[bytes], list[str], int]


def outcome(job: Job, engine: str, threads: int = 1) -> Outcome:
    groups = EngineDispatcher(engine, threads)
    try:
        ran = job.run(groups=groups)
    except SoftgenError as error:
        return f"{type(error).__name__}: {error}", [], [], 0
    assert not groups.notes
    held = [ran.space.read(job.address(number), len(data)) for number, data in enumerate(job.buffers)]
    return "", held, list(ran.gpu.remarks), ran.gpu.counters.instructions


def agree(job: Job) -> Outcome:
    """The reference's outcome, which is everybody's."""
    expected = outcome(job, "reference")
    for engine in ENGINES:
        found = outcome(job, engine)
        assert (found[0], found[2:]) == (expected[0], expected[2:]), engine
        for number, (a, b) in enumerate(zip(found[1], expected[1], strict=True)):
            assert dwords_of(a) == dwords_of(b), f"buffer {number} on {engine}"
    return expected


def dwords_of(held: bytes) -> list[int]:
    return [int(item) for item in np.frombuffer(held.ljust(-(-len(held) // 4) * 4, b"\0"), np.uint32)]


HEAD = "(W) mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud\n"
# Where each item writes what it found: its number among all, in dwords of surface 1.
PLACE = """
(W)  mul (1|M0) r6.0<1>:ud r0.1<0;1,0>:ud r4.7<0;1,0>:ud
     add (16|M0) r30.0<1>:d r3.0<16;16,1>:uw r6.0<0;1,0>:d
     shl (16|M0) r30.0<1>:d r30.0<8;8,1>:d 2:w
"""
SHOW = PLACE + "     mov (16|M0) r32.0<1>:d r20.0<8;8,1>:d\n     send (16|M0) null:w r30 0xC 0x08025E01\n" + END
FLAT = "     shl (16|M0) r10.0<1>:d r3.0<16;16,1>:uw 2:w\n"
READS = {
    "surface": "     send (16|M0) r20:w r10 0xC 0x04205E00\n",
    "stateless": "     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d 0x100000:d\n     send (16|M0) r20:w r10 0xC 0x04205EFF\n",
    "byte": "     send (16|M0) r20:w r10 0xA 0x04210100\n", "word": "     send (16|M0) r20:w r10 0xA 0x04210500\n",
    "local": PLACE + "     shl (16|M0) r50.0<1>:d r3.0<16;16,1>:uw 2:w\n     add (16|M0) r52.0<1>:d r50.0<8;8,1>:d 0x70000:d\n"
             "     send (16|M0) null:w r50 0xC 0x08025EFE\n     send (16|M0) r20:w r10 0xC 0x04205EFE\n",
    "pairs": "     send (16|M0) r20:w r10 0xC 0x04405C00\n     xor (16|M0) r20.0<1>:d r20.0<8;8,1>:d r22.0<8;8,1>:d\n",
}  # fmt: skip
HELD = dwords(*(0x1000 + 3 * number for number in range(1024)))
