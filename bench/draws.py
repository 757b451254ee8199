"""Small draws in one batch, without a driver: processor time of the command streamer and the pipeline for each.

The state is that of the last draw of a capture, whose commands are executed first; a batch repeats that draw with the first three of its
vertices, alone or with a state command before each. Where a uniform changes, two copies of the push constants take turns.
"""

from __future__ import annotations

import dataclasses
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from bench import Measurement
from softgen.bits.catalogue import layout
from softgen.bits.record import Record
from softgen.device.gpu import COMMANDS, GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.execute import Streamer
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work

SHARED = Path(os.environ.get("SOFTGEN_SHARED", Path(__file__).parent.parent.parent / "shared"))
CAPTURE = SHARED / "traces" / "kbl-es2gears"
DRAWS, ROUNDS, VERTICES = 1000, 3, 3
GOAL = 25e-6  # seconds
PRIMITIVE, CONSTANTS, COUNT = "3DPRIMITIVE", "3DSTATE_CONSTANT_VS", 2  # the dword with the number of vertices
BATCH, COPY, UNIT = 0x7000_0000, 0x7100_0000, 32  # addresses of a batch and of push constants; bytes of their unit


class Draws:
    """The last draw of a capture, to be repeated in batches of its own."""

    def __init__(self, path: Path) -> None:
        trace = open_trace(path)
        self.gpu, self.gen = GpuDevice(trace.device, dispatcher=EngineDispatcher("t1", threads=1)), trace.device.generation.number
        self.draw, self.constants = [0], [0]
        self.gpu.interface = dataclasses.replace(self.gpu.interface, commands={**COMMANDS, PRIMITIVE: self._seen})
        for event in events(trace):
            if isinstance(event, Work):
                self.gpu.execute(event)
                self.last = event
        self.gpu.interface = dataclasses.replace(self.gpu.interface, commands=COMMANDS)
        self.draw[COUNT] = VERTICES
        self.other = self._moved_constants()

    def _seen(self, cs: Streamer, command: Record) -> None:
        self.draw, self.constants, self.space = list(cs.command.dwords), list(cs.latched.dwords(CONSTANTS)[1]), cs.space
        COMMANDS[PRIMITIVE](cs, command)

    def _moved_constants(self) -> list[int]:
        """The command for a copy of the constants."""
        page, space = layout(CONSTANTS, self.gen), self.space
        assert isinstance(space, AddressSpace)
        space.map(COPY, MemfdBuffer(4096, "constants"))
        number, length = next((n, part.length) for n, part in enumerate(page.raw(self.constants).read_length) if part.length)
        pointer = page.raw(self.constants).constant_buffer[number].pointer & (1 << space.bits) - 1
        space.write(COPY, space.read(pointer, length * UNIT))
        moved, at = list(self.constants), self.constants.index(pointer & 0xFFFFFFFF)
        moved[at : at + 2] = COPY, 0
        return moved

    def batch(self, uniforms: bool) -> Work:
        each = [*self.other, *self.draw, *self.constants, *self.draw] if uniforms else self.draw * 2
        dwords = [*each * (DRAWS // 2), *layout("MI_BATCH_BUFFER_END", self.gen).pack()]
        assert isinstance(self.space, AddressSpace)
        self.space.map(BATCH + uniforms * 0x100_0000 // 4, MemfdBuffer(-(-4 * len(dwords) // 4096) * 4096, "batch"))
        self.space.write(BATCH + uniforms * 0x100_0000 // 4, struct.pack(f"<{len(dwords)}I", *dwords))
        return dataclasses.replace(self.last, space=self.space, kind="batch", batch=BATCH + uniforms * 0x100_0000 // 4)


def measure() -> Iterator[Measurement]:
    if not CAPTURE.exists():
        yield Measurement("draws", 1, "", 1.0, note=f"not measured: {CAPTURE} is absent")
        return
    draws = Draws(CAPTURE)
    for what, uniforms in (("draw of a triangle, state unchanged", False), ("draw of a triangle, push constants moved", True)):
        work, seconds = draws.batch(uniforms), float("inf")
        for _ in range(ROUNDS):
            start = time.process_time()
            draws.gpu.execute(work)
            seconds = min(seconds, time.process_time() - start)
        yield Measurement(what, DRAWS, "draws", seconds, "the goal", GOAL * DRAWS,
                          f"{seconds / DRAWS * 1e6:.0f} µs of processor time; goal {GOAL * 1e6:g} µs")  # fmt: skip
