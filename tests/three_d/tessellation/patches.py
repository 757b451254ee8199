"""Draws of patches for tests: kernels of HS and DS of our own, and what stream output has written of their vertices.

    drawn = Patches("kbl", [Patch(outer=(3, 2, 4, 1), inner=(2, 3))]).run()
    drawn.vertices                          # of objects, in order: coordinates and data of the patch

A patch's first vertex is the header of its entry. Each HS thread writes the record of its instance behind it: instance, PrimitiveID, and
the first two attributes of the last vertex. With a barrier, it then copies the record of the instance after it. DS threads write their
coordinates and PrimitiveID, and the patch's first two records.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.eu.text import dialect
from softgen.three_d.tessellation.tessellator import TessellatedDomain, TessellatorPlan, tessellate
from tests.three_d.own_draw import CODE, DATA, send
from tests.three_d.stream_out.streaming import FILL, Buffer, Declaration, Streamed, Streaming

GPUS = ("ivb", "hsw", "bdw", "kbl", "icl")
LATER = ("bdw", "kbl", "icl")  # SIMD8 threads
HS_CODE, DS_CODE = 0x2000, 0x4000
URB, GATEWAY = 6, 3  # shared functions
PATCHES = 0x20  # topology of patches of one vertex
DOMAINS, PARTITIONINGS = ("quad", "tri", "isoline"), ("integer", "odd_fractional", "even_fractional")
OUTPUTS = ("point", "line", "tri_cw", "tri_ccw")
HEADER, PER_SLOT = 1 << 19, {7: 1 << 16, 7.5: 1 << 16, 8: 1 << 17, 9: 1 << 17, 11: 1 << 17}
INTERLEAVE = {7: 1 << 14, 7.5: 1 << 14, 8: 1 << 15, 9: 1 << 15, 11: 1 << 15}
HEADER_SLOTS = 2  # of an entry, before records
Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Patch:
    """Factors of a patch, and two values that its records have."""

    outer: Sequence[float] = (1, 1, 1, 1)
    inner: Sequence[float] = (1, 1)
    mark: tuple[float, float] = (0.5, 0.25)

    def header(self, domain: str) -> bytes:
        """The first dwords of an entry."""
        outer, inner = [*self.outer, 0, 0, 0, 0][:4], [*self.inner, 0, 0][:2]
        places = {"quad": (0, 0, inner[1], inner[0], *outer[::-1]), "tri": (0, 0, 0, 0, inner[0], *outer[2::-1]),
                  "isoline": (0, 0, 0, 0, 0, 0, *outer[:2])}  # fmt: skip
        return struct.pack("<8f", *places[domain])


# -- kernels -----------------------------------------------------------------------------------------------------------


def urb(gen: float, opcode: int, offset: int, length: int, source: int, more: int = 0, response: int = 0, to: str = "null<1>UW",
        eot: bool = False) -> str:  # fmt: skip
    """A message to the URB; `offset` in slots, or for opcode 0 in pairs of them."""
    return send(HEADER | offset << (3 if gen < 8 else 4) | opcode | more, length, response, source, to, eot, URB, "send")


def one(to: str, source: str) -> str:
    """A move of a dword."""
    return f"mov(1) {to}<1>UD {source}UD {{ align1 WE_all 1N }};"


def all_of(to: str, source: str, kind: str = "UD") -> str:
    """A move in all channels, whichever are enabled."""
    return f"mov(8) {to}<1>{kind} {source}{kind} {{ align1 WE_all 1Q }};"


def scalar(register: str) -> str:
    return f"{register}<0,1,0>"


def instance_of(gen: float, to: str) -> list[str]:
    """The number of a thread's instance."""
    field = layout("HS_THREAD_PAYLOAD", gen).field("instance_number")
    return [f"shr(8) {to}<1>UD g0.2<0,1,0>UD {field.low % 32:#x}UD {{ align1 WE_all 1Q }};",
            f"and(8) {to}<1>UD {to}<8,8,1>UD {(1 << field.width) - 1:#x}UD {{ align1 WE_all 1Q }};"]  # fmt: skip


def barrier(gen: float, members: int) -> list[str]:
    """All threads of the patch have come as far as this."""
    place, shift = layout("HS_THREAD_PAYLOAD", gen).field("barrier_id"), 24
    count = members << (8 if gen >= 11 else 9) | (1 << 15 if gen < 11 else 0)
    low = place.low % 32
    return [all_of("g80", "0x0"), f"and(1) g80.2<1>UD g0.2<0,1,0>UD {(1 << place.width) - 1 << low:#x}UD {{ align1 WE_all 1N }};",
            *([f"shl(1) g80.2<1>UD g80.2<0,1,0>UD {shift - low:#x}UD {{ align1 WE_all 1N }};"] if shift > low else []),
            f"or(1) g80.2<1>UD g80.2<0,1,0>UD {count:#x}UD {{ align1 WE_all 1N }};",
            send(4, 1, 0, 80, eot=False, target=GATEWAY, opcode="send"), "wait(1) n0<1>UD { align1 WE_all 1N };"]  # fmt: skip


def _header(number: int, *handles: str, offsets: Sequence[str] = (), channels: int = 0xFF00) -> list[str]:
    """The header of a message of SIMD4x2 threads: up to two handles, their offsets, and which channels are written."""
    register = f"g{number}"
    return [all_of(register, "0x0"), *(one(f"{register}.{n}", held) for n, held in enumerate(handles)),
            *(one(f"{register}.{3 + n}", held) for n, held in enumerate(offsets)), one(f"{register}.5", f"{channels:#x}")]  # fmt: skip


def _next(members: int) -> list[str]:
    """The number of the instance after a thread's."""
    return ["add(8) g71<1>UD g70<8,8,1>UD 1UD { align1 WE_all 1Q };",
            f"cmp.e.f0.0(8) null<1>UD g71<8,8,1>UD {members:#x}UD {{ align1 WE_all 1Q }};",
            "(+f0.0) mov(8) g71<1>UD 0UD { align1 WE_all 1Q };"]  # fmt: skip


def hull4x2(gen: float, corners: int, members: int = 1, marks: Sequence[str] = ()) -> str:
    """A thread of SIMD4x2 generations; vertex handles are in g1 and on."""
    def handle(n: int) -> str:
        return scalar(f"g{1 + n // 8}.{n % 8}")

    pair = INTERLEAVE[gen] | PER_SLOT[gen]
    lines = [*instance_of(gen, "g70"), *_header(40, handle(0), handle(0), offsets=("0x0", "0x1")),
             urb(gen, 3, 1, 1, 40, pair, 1, "g41<1>UD"),  # slots 1 and 2 of the first vertex
             *_header(50, scalar("g0.0")), all_of("g51", "g41<8,8,1>"), urb(gen, 0, 0, 2, 50),
             *_header(42, handle(corners - 1), handle(corners - 1)), urb(gen, 3, 2, 1, 42, INTERLEAVE[gen], 1, "g43<1>UD"),
             *_header(52, scalar("g0.0"), offsets=(scalar("g70.0"),), channels=0x0F00), all_of("g53", "0x0"), one("g53.0", scalar("g70.0")),
             one("g53.1", scalar("g0.1")), one("g53.2", scalar("g43.0")), one("g53.3", scalar("g43.1")), *marks,
             urb(gen, 1, HEADER_SLOTS, 2, 52, PER_SLOT[gen])]  # fmt: skip
    if members > 1:
        lines += [*barrier(gen, members), *_next(members), *_header(44, scalar("g0.0"), offsets=(scalar("g71.0"),)),
                  urb(gen, 3, HEADER_SLOTS, 1, 44, PER_SLOT[gen], 1, "g53<1>UD"),
                  urb(gen, 1, HEADER_SLOTS + members, 2, 52, PER_SLOT[gen])]  # fmt: skip
    end = [*_header(126, scalar("g0.0"), channels=0), all_of("g127", "0x0"), urb(gen, 1, 0, 2, 126, eot=True)]
    return "\n".join([*lines, *end])


def hull8(gen: float, corners: int, members: int = 1, marks: Sequence[str] = (), eight: bool = False) -> str:
    """A thread of SIMD8 generations, of one patch or of eight."""
    def handle(n: int) -> str:
        return f"g{3 + n}<8,8,1>" if eight else scalar(f"g{1 + n // 8}.{n % 8}")

    entry, primitive = ("g1<8,8,1>", "g2<8,8,1>") if eight else (scalar("g0.0"), scalar("g0.1"))
    lines = [*instance_of(gen, "g70"), all_of("g90", handle(0)), urb(gen, 8, 1, 1, 90, response=8, to="g101<1>UD"),
             all_of("g100", entry), urb(gen, 7, 0, 9, 100),
             all_of("g91", handle(corners - 1)), urb(gen, 8, 2, 1, 91, response=4, to="g92<1>UD"),
             all_of("g112", entry), all_of("g113", "g70<8,8,1>"), all_of("g114", "g70<8,8,1>"), all_of("g115", primitive),
             all_of("g116", "g92<8,8,1>"), all_of("g117", "g93<8,8,1>"), *marks]  # fmt: skip
    record = urb(gen, 7, HEADER_SLOTS, 6, 112, PER_SLOT[gen], eot=members == 1)
    if members == 1:
        return "\n".join([*lines, record])
    again = [*_next(members), all_of("g76", scalar("g0.0")), all_of("g77", "g71<8,8,1>"),
             urb(gen, 8, HEADER_SLOTS, 2, 76, PER_SLOT[gen], 4, "g114<1>UD"),
             urb(gen, 7, HEADER_SLOTS + members, 6, 112, PER_SLOT[gen], eot=True)]  # fmt: skip
    return "\n".join([*lines, record, *barrier(gen, members), *again])


def hull(gen: float, corners: int, members: int = 1, marks: Sequence[str] = ()) -> str:
    """`marks` are lines that set the third and fourth value of a record."""
    return (hull4x2 if gen < 8 else hull8)(gen, corners, members, marks)


def marks_of(gen: float, *sources: str) -> list[str]:
    """Lines that set them to sources."""
    if gen < 8:
        return [one(f"g53.{2 + n}", source) for n, source in enumerate(sources)]
    return [all_of(f"g{116 + n}", source) for n, source in enumerate(sources)]


def domain8(gen: float, data: int = 5) -> str:
    """SIMD8: coordinates in g1 to g3, handles in g4, two slots of data in a register."""
    first = [all_of("g101", "g4<8,8,1>"), *(all_of(f"g{102 + n}", "0x0") for n in range(4)),
             *(all_of(f"g{106 + n}", f"g{1 + n}<8,8,1>") for n in range(3)), all_of("g109", scalar("g0.1")),
             urb(gen, 7, 0, 9, 101)]  # fmt: skip
    last = [all_of("g112", "g4<8,8,1>"), *(all_of(f"g{113 + n}", scalar(f"g{data}.{n}")) for n in range(8)),
            urb(gen, 7, 2, 9, 112, eot=True)]  # fmt: skip
    return "\n".join([*first, *last])


def domain4x2(gen: float, data: int = 2) -> str:
    """SIMD4x2: coordinates of two points in g1, with the patch's handle and PrimitiveID in their fourth places; data in a register."""
    def slot(number: int, register: str, eot: bool = False) -> list[str]:
        return [*_header(112, scalar("g0.0"), scalar("g0.1")), all_of("g113", register),
                urb(gen, 1, number, 2, 112, INTERLEAVE[gen], eot=eot)]  # fmt: skip

    both = [all_of("g60", "g1<8,8,1>"), one("g60.3", scalar("g1.7"))]
    return "\n".join([*slot(0, "0x0"), *both, *slot(1, "g60<8,8,1>"), *slot(2, f"g{data}<0,4,1>"), *slot(3, f"g{data}.4<0,4,1>", eot=True)])


# -- draws -------------------------------------------------------------------------------------------------------------


@dataclass
class Patches:
    """A draw of patches, whose vertices go to a buffer. `hs`, `te`, `ds` and `state` are more fields of commands."""

    gpu: str
    patches: Sequence[Patch]
    domain: str = "quad"
    partitioning: str = "integer"
    output: str = "tri_cw"
    corners: int = 3
    instances: int = 1
    simd4x2: bool = False  # DS threads
    barrier: bool = False
    hs: Mapping[str, Any] = field(default_factory=dict)
    te: Mapping[str, Any] = field(default_factory=dict)
    ds: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    unit: Mapping[str, Any] = field(default_factory=dict)  # of stream output
    hull: str = ""
    evaluation: str = ""  # kernels
    topology: int = 0
    patch: Mapping[int, bytes] = field(default_factory=dict)
    size: int = 0xF000  # of the buffer

    def __post_init__(self) -> None:
        self.gen = device(self.gpu).generation.number
        self.simd4x2 |= self.gen < 8

    def vertices(self) -> list[bytes]:
        made = []
        for number, held in enumerate(self.patches):
            made.append(bytes(16) + held.header(self.domain))
            made += [struct.pack("<12f", *[number] * 12)] * (self.corners - 2)
            made.append(struct.pack("<12f", *[0] * 8, *held.mark, 0, 0))
        return made

    def streaming(self) -> Streaming:
        mode = {} if self.gen < 8 else {"dispatch_mode": 0 if self.simd4x2 else 1}
        start = 2 if self.simd4x2 else 5
        state: dict[str, Any] = {
            "3DSTATE_HS": {"enable": 1, "statistics_enable": 1, "kernel_start_pointer": HS_CODE, "instance_count": self.instances - 1,
                           "include_vertex_handles": 1, "dispatch_grf_start_register_for_urb_data": 1 + -(-self.corners // 8),
                           "maximum_number_of_threads": 15, **self.hs},
            "3DSTATE_TE": {"enable": 1, "domain": DOMAINS.index(self.domain), "partitioning": PARTITIONINGS.index(self.partitioning),
                           "output_topology": OUTPUTS.index(self.output), "maximum_tessellation_factor_odd": 63.0,
                           "maximum_tessellation_factor_not_odd": 64.0, **self.te},
            "3DSTATE_DS": {"enable": 1, "statistics_enable": 1, "kernel_start_pointer": DS_CODE, "compute_w_coordinate_enable": 1,
                           "dispatch_grf_start_register_for_urb_data": start, "patch_urb_entry_read_offset": 1,
                           "patch_urb_entry_read_length": 1, "maximum_number_of_threads": 15, **mode, **self.ds},
            "3DSTATE_URB_VS": {"urb_starting_address": 4, "number_of_urb_entries": 192},
            "3DSTATE_URB_HS": {"urb_starting_address": 8, "number_of_urb_entries": 32, "urb_entry_allocation_size": 1},
            "3DSTATE_URB_DS": {"urb_starting_address": 10, "number_of_urb_entries": 64},
            "3DSTATE_CONSTANT_HS": {}, "3DSTATE_CONSTANT_DS": {}, "3DSTATE_CLIP": {"clipper_statistics_enable": 1},
        }  # fmt: skip
        for name, more in self.state.items():
            state[name] = {**state.get(name, {}), **more}
        kernels = {HS_CODE: self.hull or hull(self.gen, self.corners, self.instances if self.barrier else 1),
                   DS_CODE: self.evaluation or (domain4x2 if self.simd4x2 else domain8)(self.gen)}  # fmt: skip
        code = {CODE + at: dialect.read(text, self.gen, "mesa") for at, text in kernels.items()}
        held = {DATA: struct.pack("<I", FILL) * (self.size // 4 + 16)}
        return Streaming(self.gpu, {0: [Declaration(0, n, 0xF) for n in (1, 2, 3)]}, {0: Buffer(48, self.size, address=DATA)},
                         self.vertices(), self.topology or PATCHES + self.corners - 1, {"rendering_disable": 1, **self.unit}, state=state,
                         more={"patch": {**held, **code, **self.patch}})  # fmt: skip

    def run(self, engine: str = "t0", threads: int = 1) -> Tessellated:
        return Tessellated(self, self.streaming().run(engine, threads))

    def shape(self, patch: Patch) -> TessellatedDomain:
        """The points and indices of a patch."""
        plan = TessellatorPlan(PARTITIONINGS.index(self.partitioning), OUTPUTS.index(self.output), DOMAINS.index(self.domain), 63.0, 64.0)
        return tessellate(plan, [*patch.outer, 0, 0, 0][:4], [*patch.inner, 0][:2])

    def expected(self) -> list[list[float | int]]:
        """The vertices of all objects: u, v, w, PrimitiveID, and the first record's instance, PrimitiveID and marks."""
        made = []
        for number, patch in enumerate(self.patches):
            shape = self.shape(patch)
            order = shape.indices.tolist() if self.output != "point" else range(len(shape.points))
            for u, v in (shape.points[n] for n in order):
                made.append([float(u), float(v), float(np.float32(1) - (u + v)), number, 0, number, *patch.mark])
        return made


@dataclass
class Tessellated:
    """What a draw of patches has left."""

    patches: Patches
    streamed: Streamed

    @property
    def words(self) -> Words:
        """A row of twelve dwords for each vertex of the buffer."""
        count = self.streamed.offset(0) // 48
        return self.streamed.words(0)[: 12 * count].reshape(count, 12)

    @property
    def vertices(self) -> list[list[float | int]]:
        """As Patches.expected has them."""
        words = self.words
        floats = words.view(np.float32)
        return [[*map(float, at[:3]), int(row[3]), int(row[4]), int(row[5]), float(at[6]), float(at[7])]
                for row, at in zip(words, floats, strict=True)]  # fmt: skip

    def count(self, name: str) -> int:
        return self.streamed.drawn.register(name)

    @property
    def remarks(self) -> list[str]:
        return self.streamed.drawn.remarks
