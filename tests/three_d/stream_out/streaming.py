"""Draws that stream out, for tests; and what stream output should write, from its description alone.

    drawn = Streaming("kbl", {0: [Declaration(0, 1, 0xF)]}, {0: Buffer(pitch=16)}).run()
    drawn.words(0)                          # the dwords of buffer 0
    drawn.counts(0)                         # SO_NUM_PRIMS_WRITTEN, SO_PRIM_STORAGE_NEEDED of stream 0

Without a vertex shader, vertex entries are what fetch stores: header, position on the screen, attribute, and a slot of zeros.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits.generation import device
from tests.three_d.gen7_draw import Gen7Draw
from tests.three_d.own_draw import DATA, TRIANGLES, Drawn, OwnDraw, vertex

Words = npt.NDArray[np.uint32]
GPUS = ("ivb", "hsw", "bdw", "kbl", "icl")
LATER = ("bdw", "kbl", "icl")
OFFSETS, WRITTEN, NEEDED = 0x5280, 0x5200, 0x5240
SLOTS = 4  # of a vertex entry
FILL = 0xEEEEEEEE  # what buffers hold before
ROOM = 0x1000  # bytes from a test's buffer to the next


class Declaration(NamedTuple):
    buffer: int
    register: int
    mask: int
    hole: bool = False


@dataclass
class Buffer:
    """A buffer; `offset`: of the first vertex, in the register."""

    pitch: int
    size: int = 0x200
    enable: bool = True
    offset: int = 0
    address: int = 0  # where it is, if it matters
    more: Mapping[str, Any] = field(default_factory=dict)  # fields of 3DSTATE_SO_BUFFER


def corners(count: int) -> list[bytes]:
    """Vertices that differ in each component, within the target."""
    return [vertex(1 + n % 4 * 3.5, 1 + n // 4 * 2.5, 0.25 + n / 64, 1.0, (n + 0.125, n + 0.25, n + 0.5, n + 0.75), width=1 + n / 8)
            for n in range(count)]  # fmt: skip


def words_of(entry: bytes) -> Words:
    """A vertex entry's dwords."""
    return np.frombuffer(entry.ljust(16 * SLOTS, b"\0"), np.uint32)


# -- draws -------------------------------------------------------------------------------------------------------------


@dataclass
class Streaming:
    """A draw whose vertices go to buffers. `unit`, `list` and `state` are more fields of 3DSTATE_STREAMOUT, 3DSTATE_SO_DECL_LIST and other
    commands."""

    gpu: str
    declarations: Mapping[int, Sequence[Declaration]]
    buffers: Mapping[int, Buffer]
    vertices: Sequence[bytes] = field(default_factory=lambda: corners(6))
    topology: int = TRIANGLES
    unit: Mapping[str, Any] = field(default_factory=dict)
    list: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    between: Sequence[Sequence[int]] = ()
    primitives: Sequence[Mapping[str, Any]] = ()
    more: Mapping[str, Any] = field(default_factory=dict)  # fields of OwnDraw

    @property
    def early(self) -> bool:
        """Pitches are in 3DSTATE_SO_BUFFER, and enables in 3DSTATE_STREAMOUT."""
        return device(self.gpu).generation.number < 8

    def address(self, number: int) -> int:
        return self.buffers[number].address or DATA + ROOM * number

    def draw(self) -> OwnDraw:
        made: Any = Gen7Draw if self.early else OwnDraw
        held = {self.address(n): struct.pack("<I", FILL) * (ROOM // 4) for n in self.buffers if not self.buffers[n].address}
        state = {"3DSTATE_STREAMOUT": self._unit(), "3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": self.topology}, **self.state}
        if self.early:
            del state["3DSTATE_VF_TOPOLOGY"]
            self.more = {"topology": self.topology, **self.more}
        draw: OwnDraw = made(self.gpu, self.vertices, state, between=self.between, primitives=self.primitives,
                             **{"patch": held, **self.more})  # fmt: skip
        draw.before = [*(self.buffer(draw, n) for n in self.buffers), self.offsets(draw), self._declarations(draw), *draw.before]
        return draw

    def run(self, engine: str = "t0", threads: int = 1) -> Streamed:
        return Streamed(self, self.draw().run(engine, threads))

    def _unit(self) -> dict[str, Any]:
        own = [self.buffers.get(n, Buffer(0, enable=False)) for n in range(4)]
        buffers = [{"so_buffer_enable": held.enable} if self.early else {"surface_pitch": held.pitch} for held in own]
        streams = [{"vertex_read_length": SLOTS // 2 - 1}] * 4
        return {"enable": 1, "statistics_enable": 1, "buffer": buffers, "stream": streams, **self.unit}

    def buffer(self, draw: OwnDraw, number: int, **more: Any) -> list[int]:
        """The command for a buffer."""
        held, base = self.buffers[number], self.address(number)
        fields = {"surface_pitch": held.pitch, "surface_end_address": base + held.size} if self.early else {
            "so_buffer_enable": held.enable, "surface_size": held.size // 4 - 1}  # fmt: skip
        return draw.pack("3DSTATE_SO_BUFFER", **{"so_buffer_index": number, "surface_base_address": base, **fields, **held.more, **more})

    def offsets(self, draw: OwnDraw, **more: Any) -> list[int]:
        """The command that sets all write offsets."""
        entries = [{"register_offset": OFFSETS + 4 * n, "data_dword": held.offset} for n, held in self.buffers.items()]
        return draw.pack("MI_LOAD_REGISTER_IMM", entry=entries or [{"register_offset": OFFSETS, "data_dword": 0}])

    def _declarations(self, draw: OwnDraw) -> list[int]:
        longest = max((len(held) for held in self.declarations.values()), default=0)
        entries = [{"stream": [self._declaration(stream, n) for stream in range(4)]} for n in range(longest)]
        masks = [sum({1 << held.buffer for held in self.declarations.get(stream, ())}) for stream in range(4)]
        fields = {"stream_to_buffer_selects": [{"buffer_mask": mask} for mask in masks], "entry": entries,
                  "num_entries": [{"count": len(self.declarations.get(stream, ()))} for stream in range(4)]}  # fmt: skip
        return draw.pack("3DSTATE_SO_DECL_LIST", **{**fields, **self.list})

    def _declaration(self, stream: int, number: int) -> dict[str, Any]:
        held = self.declarations.get(stream, ())
        if number >= len(held):
            return {}
        buffer, register, mask, hole = held[number]
        return {"output_buffer_slot": buffer, "register_index": register, "component_mask": mask, "hole_flag": hole}


@dataclass
class Streamed:
    """What a draw that streams out has left."""

    streaming: Streaming
    drawn: Drawn

    def words(self, number: int) -> Words:
        """The dwords of a buffer; some more behind its end."""
        held = self.streaming.buffers[number]
        return np.frombuffer(self.drawn.space.read(self.streaming.address(number), held.size + 64), np.uint32)

    def register(self, at: int) -> int:
        return self.drawn.gpu.read_register(at)

    def counts(self, stream: int) -> tuple[int, int]:
        found = [self.register(at + 8 * stream) | self.register(at + 8 * stream + 4) << 32 for at in (WRITTEN, NEEDED)]
        return found[0], found[1]

    def offset(self, number: int) -> int:
        return self.register(OFFSETS + 4 * number)


# -- what should be written --------------------------------------------------------------------------------------------


Written = tuple[dict[int, Words], tuple[int, int], dict[int, int]]


def expected(streaming: Streaming, objects: Sequence[Sequence[int]], stream: int = 0) -> Written:
    """Buffers, counts and write offsets after objects of a stream, each given by its vertices in the order in which they are written."""
    held = {n: np.full((buffer.size + 64) // 4, FILL, np.uint32) for n, buffer in streaming.buffers.items()}
    offsets, written = {n: buffer.offset for n, buffer in streaming.buffers.items()}, 0
    declarations = streaming.declarations[stream]
    used = {declaration.buffer for declaration in declarations}
    for vertices in objects:
        if any(offsets[n] + len(vertices) * streaming.buffers[n].pitch > streaming.buffers[n].size for n in used):
            continue
        for number in vertices:
            entry, pointers = words_of(streaming.vertices[number]), dict(offsets)
            for buffer, register, mask, hole in declarations:
                for component in range(4):
                    if mask >> component & 1:
                        if not hole:
                            held[buffer][pointers[buffer] // 4] = entry[4 * register + component]
                        pointers[buffer] += 4
            for n in used:
                offsets[n] += streaming.buffers[n].pitch
        written += 1
    return held, (written, len(objects)), offsets


def check(streamed: Streamed, objects: Sequence[Sequence[int]]) -> None:
    """Buffers, counts and write offsets are what they should be."""
    held, counts, offsets = expected(streamed.streaming, objects)
    for number, words in held.items():
        assert streamed.words(number).tolist() == words.tolist(), f"buffer {number}"
    assert (streamed.counts(0), {n: streamed.offset(n) for n in held}) == (counts, offsets)
