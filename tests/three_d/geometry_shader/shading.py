"""Draws with a geometry shader, for tests: kernels in text for every dispatch mode, and stream output that shows what they put out.

    shown = Shading("kbl", SIMD8, topology=TRIANGLES).run()
    shown.vertices()                        # of the first stream, as they came: Put(number, primitive, instance)

The kernel puts out the vertices of its object, one after another: header, position, attribute, and a slot that says which object and which
instance this is, and R0.2. Their numbers are those of `corners`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from softgen.bits.generation import device
from tests.three_d.own_draw import GS_CODE, TRIANGLES, move, send
from tests.three_d.stream_out.streaming import FILL, Buffer, Declaration, Streamed, Streaming, corners

SINGLE, DUAL_INSTANCE, DUAL_OBJECT, SIMD8 = range(4)
MODES: dict[str, tuple[int, ...]] = {"ivb": (SINGLE, DUAL_INSTANCE, DUAL_OBJECT), "hsw": (SINGLE, DUAL_INSTANCE, DUAL_OBJECT),
                                     "bdw": (SINGLE, DUAL_INSTANCE, DUAL_OBJECT, SIMD8),
                                     "skl": (SINGLE, DUAL_INSTANCE, DUAL_OBJECT, SIMD8), "icl": (SIMD8,)}  # fmt: skip
EVERY = [(gpu, mode) for gpu, modes in MODES.items() for mode in modes]
LANES = {SINGLE: 1, DUAL_INSTANCE: 2, DUAL_OBJECT: 2, SIMD8: 8}
CUT, SID = range(2)
URB = 6  # shared function
HEADER, POSITION, ATTRIBUTE, STAMP = SLOTS = range(4)
NULLS = "null<1>UW"
STAMPS = 104  # register of what threads know of themselves
Slot = Sequence[str]  # sources: of each component with SIMD8, else one of both lanes
Vertex = Mapping[int, Slot]


class Put(NamedTuple):
    """A vertex that a thread has put out: which one, of which object, by which instance."""

    number: int
    primitive: int
    instance: int


# -- kernels -----------------------------------------------------------------------------------------------------------


@dataclass
class Kernel:
    """A kernel that puts out vertices. `count`: how many it says; `control`: dwords of the control data header, by number."""

    gen: float
    mode: int
    vertices: Sequence[Vertex]
    before: Sequence[str] = ()
    control: Mapping[int, int] = field(default_factory=dict)
    header_size: int = 0  # units of 32 bytes
    count: int | None = None  # None: static output
    slots: int = len(SLOTS)  # of a vertex

    @property
    def wide(self) -> bool:
        return self.mode == SIMD8

    def text(self) -> str:
        first = 2 if self.count is not None and self.gen >= 8 else 0  # slots in front of the control data header
        messages = [self._write(first + 2 * self.header_size + self.slots * number + slot, sources)
                    for number, vertex in enumerate(self.vertices) for slot, sources in vertex.items()]  # fmt: skip
        messages += [self._write_dwords(first + row, [self.control.get(4 * row + n, 0) for n in range(4)])
                     for row in sorted({number // 4 for number in self.control})]  # fmt: skip
        if self.count is not None and self.gen >= 8:
            messages.append(self._write_dwords(0, [self.count]))
        return "\n".join((*self.before, *(message(False) for message in messages[:-1]), self._last(messages[-1])))

    def _last(self, message: Callable[[bool], str]) -> str:
        """The end of the thread. Before Gen8 its message has the numbers of vertices of both lanes."""
        if self.count is None or self.gen >= 8:
            return message(True)
        return "\n".join([message(False), *CHANNELS, scalar("mov", "g113.2", f"{self.count | self.count << 16:#010x}UD"),
                          self._send(0, 0, 1, True)])  # fmt: skip

    def _write(self, slot: int, sources: Slot) -> Callable[[bool], str]:
        return lambda end: "\n".join(self._message(slot, [move(f"g{114 + n}", source, "UD") for n, source in enumerate(sources)], end))

    def _write_dwords(self, slot: int, values: Sequence[int]) -> Callable[[bool], str]:
        """The same for all lanes."""
        if self.wide:
            sources = [move(f"g{114 + n}", f"{value:#010x}", "UD") for n, value in enumerate(values)]
        else:
            sources = [move("g114", "0x00000000", "UD")]
            sources += [scalar("mov", f"g114.{lane + n}", f"{value:#010x}UD") for lane in (0, 4) for n, value in enumerate(values)]
        return lambda end: "\n".join(self._message(slot, sources, end))

    def _message(self, slot: int, sources: Sequence[str], end: bool) -> list[str]:
        header = [move("g113", "g1<8,8,1>", "UD")] if self.wide else CHANNELS
        return [*header, *sources, self._send(7 if self.wide else 1, slot, 1 + len(sources) if self.wide else 2, end)]

    def _send(self, opcode: int, slot: int, length: int, end: bool) -> str:
        offset, interleave = (3, 14) if self.gen < 8 else (4, 15)
        bits = opcode | slot << offset | 1 << 19 | (0 if self.wide else 1 << interleave)
        return send(bits, length, source=113, target=URB, opcode="send", eot=end)


def scalar(opcode: str, to: str, sources: str) -> str:
    return f"{opcode}(1) {to}<1>UD {sources} {{ align1 WE_all 1N }};"


# The header of SIMD4x2 messages: R0, with all channels on.
CHANNELS = ["mov(8) g113<1>UD g0<8,8,1>UD { align1 WE_all 1Q };", scalar("or", "g113.5", "g113.5<0,1,0>UD 0x0000ff00UD")]


# -- draws -------------------------------------------------------------------------------------------------------------


@dataclass
class Shading:
    """A draw whose geometry shader puts out the `given` vertices of each object. `unit` has more fields of 3DSTATE_GS."""

    gpu: str
    mode: int
    topology: int = TRIANGLES
    given: int = 3  # of an object
    vertices: Sequence[bytes] = field(default_factory=lambda: corners(6))
    primitive_ids: bool = True
    handles: int = 0  # registers of handles in the payload
    put: Sequence[int] | None = None  # which of them, in which order
    count: int | None = None
    static: bool | None = None
    control: Mapping[int, int] = field(default_factory=dict)
    header_size: int = 0
    unit: Mapping[str, Any] = field(default_factory=dict)
    entry: int = 0  # of 64 bytes
    state: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)  # fields of Streaming

    @property
    def gen(self) -> float:
        return device(self.gpu).generation.number

    @property
    def start(self) -> int:
        """The first register of vertices' data."""
        return (2 if self.mode == SIMD8 else 1) + self.primitive_ids + self.handles

    def pushed(self, vertex: int, slot: int) -> Slot:
        """Where the payload has a vertex's slot."""
        if self.mode == SIMD8:
            return [f"g{self.start + 4 * len(SLOTS) * vertex + 4 * slot + n}<8,8,1>" for n in range(4)]
        if self.mode == DUAL_OBJECT:
            return [f"g{self.start + len(SLOTS) * vertex + slot}<8,8,1>"]
        return [f"g{self.start + len(SLOTS) // 2 * vertex + slot // 2}.{slot % 2 * 4}<0,4,1>"]

    def stamps(self) -> tuple[list[str], Slot]:
        """What writes the stamp: PrimitiveID, instance and R0.2 of each lane."""
        if self.mode == SIMD8:
            ids = "g2<8,8,1>" if self.primitive_ids else "0x00000000"
            return [move("g104", ids, "UD"), "shr(8) g105<1>UD g1<8,8,1>UD 0x0000001bUD { align1 1Q };", move("g106", "g0.2<0,1,0>", "UD"),
                    move("g107", "0x00000000", "UD")], [f"g{STAMPS + n}<8,8,1>" for n in range(4)]  # fmt: skip
        lines = ["mov(8) g104<1>UD 0x00000000UD { align1 WE_all 1Q };"]
        for lane in range(2):
            if self.primitive_ids:
                lines.append(scalar("mov", f"g104.{4 * lane}", f"g1.{4 * lane}<0,1,0>UD"))
            lines += [scalar("shr", f"g104.{4 * lane + 1}", f"g0.{lane}<0,1,0>UD 0x0000001bUD"),
                      scalar("mov", f"g104.{4 * lane + 2}", "g0.2<0,1,0>UD")]  # fmt: skip
        return lines, ["g104<8,8,1>"]

    def kernel(self) -> Kernel:
        before, stamp = self.stamps()
        order = range(self.given) if self.put is None else self.put
        vertices = [{**{slot: self.pushed(n, slot) for slot in (POSITION, ATTRIBUTE)}, STAMP: stamp} for n in order]
        static = self.static if self.static is not None else False
        count = None if static else len(vertices) if self.count is None else self.count
        return Kernel(self.gen, self.mode, vertices, before, self.control, self.header_size, count)

    def fields(self) -> dict[str, Any]:
        """Those of 3DSTATE_GS."""
        made = {"enable": 1, "kernel_start_pointer": GS_CODE, "dispatch_mode": self.mode, "output_topology": 1,
                "output_vertex_size": len(SLOTS) - 1,
                "vertex_urb_entry_read_length": len(SLOTS) // 2, "dispatch_grf_start_register_for_urb_data": self.start,
                "include_primitive_id": self.primitive_ids, "statistics_enable": 1, "control_data_header_size": self.header_size,
                "maximum_number_of_threads": 7, "instance_control": 0, "reorder_mode": 1,
                "include_vertex_handles": bool(self.handles)}  # fmt: skip
        if self.gen >= 8:
            made |= {"expected_vertex_count": self.given, "static_output": bool(self.static)}
            if self.static:
                made["static_output_vertex_count"] = len(self.kernel().vertices)
        return {**made, **self.unit}

    def streaming(self) -> Streaming:
        declarations = {stream: [Declaration(stream, ATTRIBUTE, 1), Declaration(stream, STAMP, 7)] for stream in range(4)}
        buffers = {stream: Buffer(16, 0x800) for stream in range(4)}
        entries = {"urb_starting_address": 8, "number_of_urb_entries": 64, "urb_entry_allocation_size": (self.entry or 16) - 1}
        state = {"3DSTATE_GS": self.fields(), "3DSTATE_URB_GS": entries, **self.state}
        more = {"declarations": declarations, "buffers": buffers, **self.more}
        return Streaming(self.gpu, vertices=self.vertices, topology=self.topology, state=state,
                         **{**more, "more": {"gs": self.kernel().text(), **more.get("more", {})}})  # fmt: skip

    def run(self, engine: str = "t0", threads: int = 1) -> Shaded:
        return Shaded(self.streaming().run(engine, threads))


@dataclass
class Shaded:
    """What a draw with a geometry shader has left."""

    streamed: Streamed

    def rows(self, stream: int = 0) -> list[tuple[int, ...]]:
        """Each vertex of a stream: the first component of its attribute, and its stamp."""
        words = self.streamed.words(stream)
        found = words[: self.streamed.offset(stream) // 4].reshape(-1, 4)
        assert (words[found.size :] == FILL).all()
        return [(int(row[:1].view("f4")[0]), *(int(value) for value in row[1:])) for row in found]

    def vertices(self, stream: int = 0) -> list[Put]:
        return [Put(*row[:3]) for row in self.rows(stream)]

    def numbers(self, stream: int = 0) -> list[int]:
        return [put.number for put in self.vertices(stream)]

    def register(self, name: str) -> int:
        return self.streamed.drawn.register(name)

    @property
    def remarks(self) -> list[str]:
        return self.streamed.drawn.remarks
