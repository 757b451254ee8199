"""Draws of Gen4.5 of our own: state blocks, kernels in text, vertices and a batch in memory, executed by a whole GPU.

    drawn = G45Draw([vertex(0, 0), vertex(8, 0), vertex(0, 8)]).run()
    drawn.pixels            # (rows, columns, 4) floats of the render target
    drawn.register("CL_PRIMITIVES_COUNT")

Vertices are not shaded: fetch writes header, position and one attribute into entries of 16 dwords. The SF kernel puts what it gets into the
primitive entry as it is: r1, r2 and the attributes of up to three vertices; pixel shaders have these five registers from r8 on. Behind them
are the coefficients of depth.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import layout
from softgen.bits.formats import surface_formats
from softgen.bits.generation import device
from softgen.bits.registers import place
from softgen.device.gpu import GpuDevice
from softgen.eu.text import dialect
from softgen.memory.address_space import AddressSpace
from tests.three_d.draw_memory import executed, filled_space

GEN = 4.5
Fields = dict[str, Any]
BATCH, GENERAL, SURFACES, VERTICES, INDICES, CONSTANTS, TARGET, DEPTH, SCRATCH, DATA = (number << 20 for number in range(1, 11))
SIZE = 1 << 16  # of each of them
BLOCKS = {"VS_STATE": 0x000, "GS_STATE": 0x040, "CLIP_STATE": 0x080, "SF_STATE": 0x0C0, "WM_STATE": 0x100, "COLOR_CALC_STATE": 0x140,
          "CC_VIEWPORT": 0x200, "SF_VIEWPORT": 0x400, "CLIP_VIEWPORT": 0x800}  # fmt: skip
KERNELS = {"vs": 0x1000, "gs": 0x2000, "clip": 0x3000, "sf": 0x4000, "ps": 0x5000}
POINTS, LINES, LINE_STRIP, TRIANGLES, STRIP, FAN, QUADS, QUAD_STRIP = range(1, 9)
LINES_ADJ, LINE_STRIP_ADJ, TRIANGLES_ADJ, STRIP_ADJ, STRIP_REVERSE, POLYGON, RECTANGLES, LINE_LOOP = range(9, 17)
NULL_SURFACE = 7


# -- kernels -----------------------------------------------------------------------------------------------------------


def send(mrf: int, target: int, descriptor: int, mlen: int, rlen: int = 0, eot: bool = False, to: str = "null<1>UD",
         name: str = "urb", source: str = "g0") -> str:  # fmt: skip
    """A message whose first register is `source`, which the instruction moves to message register `mrf`."""
    bits = descriptor | rlen << 16 | mlen << 20 | target << 24 | eot << 31
    words = f"{name} MsgDesc: mlen {mlen} rlen {rlen}"
    return f"send(8) {mrf} {to} {source}<8,8,1>UD {bits:#010x} {words} {{ align1 nomask{' EOT' if eot else ''} }};"


def urb_write(mlen: int, eot: bool = False, used: bool = True, allocate: bool = False, transpose: bool = False) -> str:
    """Completes the entry whose handle is in r0, with registers from m1 on; with `allocate`, r0 then has the next one."""
    descriptor = 0x8000 | used << 14 | allocate << 13 | transpose << 11
    return send(0, 6, descriptor, mlen, int(allocate), eot, "g0<1>UD" if allocate else "null<1>UD")


def move(to: str, source: str, kind: str = "UD") -> str:
    """A register, whatever channels are on."""
    return f"mov(8) {to}<1>{kind} {source}{kind} {{ align1 nomask }};"


def moves(first: int, *registers: str) -> str:
    """Registers into message registers from `first` on."""
    return "\n".join(move(f"m{first + n}", f"{name}<8,8,1>") for n, name in enumerate(registers))


def put_out(vertices: Sequence[int], topology: int, start: int = 1, more: int = 0) -> str:
    """A GS or CLIP kernel that puts out these of its vertices, of two registers each from r`start` on, as one primitive."""
    lines = []
    for number, vertex in enumerate(vertices):
        last = number == len(vertices) - 1
        flags = topology << 2 | (number == 0) << 1 | last | more
        lines += [f"mov(1) g0.2<1>UD {flags:#010x}UD {{ align1 nomask }};",
                  moves(1, f"g{start + 2 * vertex}", f"g{start + 2 * vertex + 1}"), urb_write(3, eot=last, allocate=not last)]  # fmt: skip
    return "\n".join(lines)


def calculated(*lines: tuple[str, str, str, str]) -> str:
    """One float after another: operation, destination and two sources."""
    return "\n".join(f"{name}(1) {to}<1>F {a}<0,1,0>F {b}<0,1,0>F {{ align1 nomask }};" for name, to, a, b in lines)


def depth_plane(line: bool = False) -> str:
    """The plane coefficients of depth in r24, from what r1 and r2 have: determinant, differences and depths (G45 5872-5945). Of a line, a
    third vertex is taken at a right angle, with the depth of the first."""
    third = ("g2", "g1.3", "-g1.5") if line else ("g2.4", "g1.6", "g1.4")  # depth, y and x
    z2, y2, x2 = third
    return "\n".join((
        f"send(1) 0 g20<1>F g1.2<0,1,0>F {0x01110081:#010x} math MsgDesc: math scalar full unsigned inv mlen 1 rlen 1 {{ align1 nomask }};",
        "mov(8) g24<1>F 0x00000000F { align1 nomask };",
        calculated(("add", "g21", "g2.2", "-g2"), ("add", "g21.1", z2, "-g2"), ("mul", "g22", "g21", y2), ("mul", "g22.1", "g21.1", "g1.5"),
                   ("add", "g22", "g22", "-g22.1"), ("mul", "g24", "g22", "g20"), ("mul", "g22.2", "g21.1", "g1.3"),
                   ("mul", "g22.3", "g21", x2), ("add", "g22.2", "g22.2", "-g22.3"), ("mul", "g24.1", "g22.2", "g20")),
        "mov(1) g24.3<1>F g2<0,1,0>F { align1 nomask };"))  # fmt: skip


def setup_kernel(line: bool = False) -> str:
    return "\n".join((depth_plane(line), moves(1, "g1", "g2", "g3", "g4", "g5", "g24"), urb_write(7, eot=True)))


SF = setup_kernel()
WRITE = 0x4000 | 0x800 | 0x400  # render target write, last target, 8 channels


def pixel_shader(red: str = "g10.0<0,1,0>", green: str = "g10.1<0,1,0>", blue: str = "g10.2<0,1,0>", alpha: str = "g10.3<0,1,0>",
                 depth: Sequence[str] = (), before: str = "", extra: Sequence[str] = ()) -> str:  # fmt: skip
    """Writes four sources as colour, by default the attribute of the start vertex; `extra` registers go before them, `depth` after."""
    first = 3 + len(extra)
    colors = "\n".join(move(f"m{first + n}", source) for n, source in enumerate((red, green, blue, alpha)))
    parts = [before, moves(2, "g1"), moves(3, *extra), colors, moves(first + 4, *depth),
             send(1, 5, WRITE, 6 + len(extra) + len(depth), eot=True, name="write")]  # fmt: skip
    return "\n".join(part for part in parts if part)


PS = pixel_shader()


# -- vertices ----------------------------------------------------------------------------------------------------------


def vertex(x: float, y: float, z: float = 0.5, rhw: float = 1.0, attribute: Sequence[float] = (1, 1, 1, 1), layer: int = 0,
           viewport: int = 0, flags: int = 0, width: float = 1.0) -> bytes:  # fmt: skip
    """A vertex entry: header, position on the screen, attribute."""
    return struct.pack("<4I8f4x4x4x4x", 0, layer, viewport, int(width * 8) << 8 | flags, x, y, z, rhw, *attribute)


# -- draws -------------------------------------------------------------------------------------------------------------

# Everything drawn as it comes: no viewport transformation, no culling, colours only.
DEFAULTS: dict[str, Fields] = {
    "VS_STATE": {"urb_entry_allocation_size": 1, "number_of_urb_entries": 32},
    "GS_STATE": {"kernel_start_pointer": KERNELS["gs"], "vertex_urb_entry_read_length": 2, "dispatch_grf_start_register_for_urb_data": 1,
                 "urb_entry_allocation_size": 1, "number_of_urb_entries": 8, "maximum_number_of_threads": 1, "single_program_flow": 1},
    "CLIP_STATE": {"kernel_start_pointer": KERNELS["clip"], "vertex_urb_entry_read_length": 2, "urb_entry_allocation_size": 1,
                   "dispatch_grf_start_register_for_urb_data": 1, "number_of_urb_entries": 8, "maximum_number_of_threads": 1,
                   "clip_viewport_pointer": BLOCKS["CLIP_VIEWPORT"], "clip_mode": 4},
    "SF_STATE": {"kernel_start_pointer": KERNELS["sf"], "vertex_urb_entry_read_length": 1, "vertex_urb_entry_read_offset": 1,
                 "dispatch_grf_start_register_for_urb_data": 3, "urb_entry_allocation_size": 2, "number_of_urb_entries": 8, "cull_mode": 1,
                 "sf_viewport_pointer": BLOCKS["SF_VIEWPORT"], "destination_origin_horizontal_bias": 0.5, "line_width": 1.0,
                 "destination_origin_vertical_bias": 0.5, "point_width": 1.0, "point_width_source": 1},
    "WM_STATE": {"kernel_start_pointer_0": KERNELS["ps"], "8_pixel_dispatch_enable": 1, "thread_dispatch_enable": 1,
                 "setup_urb_entry_read_length": 5, "dispatch_grf_start_register_for_constant_setup_data_0": 8,
                 "depth_coefficient_urb_read_offset": 5, "maximum_number_of_threads": 49},
    "COLOR_CALC_STATE": {"cc_viewport_pointer": BLOCKS["CC_VIEWPORT"]},
    "CC_VIEWPORT": {"minimum_depth": 0.0, "maximum_depth": 1.0},
    "SF_VIEWPORT": {}, "CLIP_VIEWPORT": {},
    "3DSTATE_PIPELINED_POINTERS": {f"pointer_to_{name}_state": BLOCKS[block] for name, block in (
        ("vs", "VS_STATE"), ("gs", "GS_STATE"), ("clip", "CLIP_STATE"), ("sf", "SF_STATE"), ("wm", "WM_STATE"),
        ("color_calc", "COLOR_CALC_STATE"))},
    "3DSTATE_DEPTH_BUFFER": {"surface_type": NULL_SURFACE, "surface_format": 1},
    "RENDER_SURFACE_STATE": {"surface_type": 1, "surface_base_address": TARGET},
}  # fmt: skip
COMMANDS = ("3DSTATE_PIPELINED_POINTERS", "3DSTATE_DEPTH_BUFFER")


@dataclass
class G45Draw:
    """A draw. `state` has more fields of blocks and commands by name; commands that are not in DEFAULTS come before the draw.

    With a kernel in `gs` or `clip`, the stage is enabled; other stages have theirs. `shapes` are pairs of a topology and a vertex count, or
    fields of 3DPRIMITIVE; `between` are commands before each draw after the first.
    """

    vertices: Sequence[bytes]
    topology: int = TRIANGLES
    state: Mapping[str, Fields] = field(default_factory=dict)
    gs: str = ""
    clip: str = ""
    sf: str = SF
    ps: str = PS
    vs: str = ""
    size: tuple[int, int] = (16, 16)  # pixels
    format: str = "R32G32B32A32_FLOAT"
    fill: float | int = 0
    depth: npt.NDArray[Any] | None = None  # what the depth buffer holds, a row of pixels after another
    depth_format: int = 1  # d32_float
    constants: bytes = b""
    indices: bytes = b""
    primitives: Sequence[Fields] = ()
    between: Sequence[Sequence[int]] = ()
    before: Sequence[Sequence[int]] = ()
    after: Sequence[Sequence[int]] = ()
    patch: Mapping[int, bytes] = field(default_factory=dict)  # what memory holds besides, by address
    device: str = "g45"

    @property
    def gen(self) -> float:
        return device(self.device).generation.number

    def pack(self, name: str, **fields: Any) -> list[int]:
        return list(layout(name, self.gen).pack(**fields))

    def fields(self, name: str) -> Fields:
        return {**DEFAULTS.get(name, {}), **self.state.get(name, {})}

    @property
    def pixel_bytes(self) -> int:
        return surface_formats()[self._format].bits // 8

    @property
    def _format(self) -> int:
        return next(number for number, surface_format in surface_formats().items() if surface_format.name == self.format)

    def _pointers(self) -> Fields:
        return {"gs_enable": int(bool(self.gs)), "clip_enable": int(bool(self.clip)), **self.fields("3DSTATE_PIPELINED_POINTERS")}

    def _depth_buffer(self) -> Fields:
        if self.depth is None:
            return self.fields("3DSTATE_DEPTH_BUFFER")
        rows, columns = self.depth.shape
        return {"surface_type": 1, "surface_format": self.depth_format, "surface_pitch": columns * self.depth.itemsize - 1,
                "width": columns - 1, "height": rows - 1, "surface_base_address": DEPTH,
                **self.state.get("3DSTATE_DEPTH_BUFFER", {})}  # fmt: skip

    def batch(self) -> bytes:
        bases = {"general_state_base_address": GENERAL, "surface_state_base_address": SURFACES}
        elements = [{"valid": 1, "source_element_format": code, "source_element_offset": 16 * n, "destination_element_offset": 4 * n,
                     **{f"component_{c}_control": 1 for c in range(4)}} for n, code in enumerate((2, 0, 0))]  # fmt: skip
        width, height = self.size
        commands: list[Sequence[int]] = [
            self.pack("STATE_BASE_ADDRESS", **bases, **{f"{name}_modify_enable": 1 for name in bases}),
            self.pack("3DSTATE_PIPELINED_POINTERS", **self._pointers()),
            self.pack("3DSTATE_BINDING_TABLE_POINTERS", **{"pointer_to_ps_binding_table": 0x800, "pointer_to_gs_binding_table": 0x820,
                                                           **self.state.get("3DSTATE_BINDING_TABLE_POINTERS", {})}),
            self.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{"buffer_pitch": 64, "buffer_starting_address": VERTICES}]),
            self.pack("3DSTATE_VERTEX_ELEMENTS", vertex_element=self.state.get("elements", {}).get("all", elements)),
            self.pack("3DSTATE_DRAWING_RECTANGLE", **{
                "clipped_drawing_rectangle_x_max": width - 1, "clipped_drawing_rectangle_y_max": height - 1,
                **self.state.get("3DSTATE_DRAWING_RECTANGLE", {})}),
            self.pack("3DSTATE_DEPTH_BUFFER", **self._depth_buffer()),
        ]  # fmt: skip
        if self.constants:
            commands.append(self.pack("CONSTANT_BUFFER", valid=1, buffer_starting_address=CONSTANTS - GENERAL,
                                      buffer_length=len(self.constants) // 64 - 1))  # fmt: skip
        if self.indices:
            commands.append(self.pack("3DSTATE_INDEX_BUFFER", index_format=1, buffer_starting_address=INDICES,
                                      buffer_ending_address=INDICES + len(self.indices) - 1,
                                      **self.state.get("3DSTATE_INDEX_BUFFER", {})))  # fmt: skip
        fixed = {*BLOCKS, "RENDER_SURFACE_STATE", "3DSTATE_PIPELINED_POINTERS", "3DSTATE_DEPTH_BUFFER", "3DSTATE_DRAWING_RECTANGLE",
                 "3DSTATE_INDEX_BUFFER", "3DSTATE_BINDING_TABLE_POINTERS", "elements", "surfaces"}  # fmt: skip
        commands += [self.pack(name, **fields) for name, fields in self.state.items() if name not in fixed]
        commands += self.before
        count = len(self.indices) // 2 if self.indices else len(self.vertices)
        whole = {"primitive_topology_type": self.topology, "vertex_count_per_instance": count, "instance_count": 1,
                 "vertex_access_type": int(bool(self.indices))}  # fmt: skip
        for number, primitive in enumerate(self.primitives or ({},)):
            if number:
                commands += self.between
            commands.append(self.pack("3DPRIMITIVE", **{**whole, **primitive}))
        commands += [*self.after, self.pack("MI_BATCH_BUFFER_END")]
        return b"".join(struct.pack(f"<{len(command)}I", *command) for command in commands)

    def _general(self) -> bytes:
        held = bytearray(SIZE)
        for name, at in BLOCKS.items():
            copies = 16 if "VIEWPORT" in name else 1
            for n in range(copies):
                fields = self.fields(name)
                own = fields.get("each", [])[n] if n < len(fields.get("each", [])) else fields
                block = np.array(self.pack(name, **{k: v for k, v in own.items() if k != "each"}), np.uint32).tobytes()
                held[at + n * len(block) : at + (n + 1) * len(block)] = block
        for name, at in KERNELS.items():
            if text := getattr(self, name):
                code = dialect.read(text, self.gen)
                held[at : at + len(code)] = code
        return bytes(held)

    def _surfaces(self) -> bytes:
        width, height = self.size
        target = {"surface_format": self._format, "width": width - 1, "height": height - 1, "surface_pitch": width * self.pixel_bytes - 1,
                  **self.fields("RENDER_SURFACE_STATE")}  # fmt: skip
        states = [target, *self.state.get("surfaces", {}).get("more", [])]
        held = bytearray(SIZE)
        for number, fields in enumerate(states):
            words = np.array(self.pack("RENDER_SURFACE_STATE", **fields), np.uint32).tobytes()
            held[0x40 * number : 0x40 * number + len(words)] = words
            for table in (0x800, 0x820):
                held[table + 4 * number : table + 4 * number + 4] = struct.pack("<I", 0x40 * number)
        return bytes(held)

    def memory(self) -> AddressSpace:
        width, height = self.size
        picture = np.full(width * height * self.pixel_bytes // 4, self.fill, np.float32 if isinstance(self.fill, float) else np.uint32)
        held = {BATCH: self.batch(), GENERAL: self._general(), SURFACES: self._surfaces(), VERTICES: b"".join(self.vertices),
                INDICES: self.indices, CONSTANTS: self.constants, TARGET: picture.tobytes(), SCRATCH: b"", DATA: b"",
                DEPTH: b"" if self.depth is None else self.depth.tobytes()}  # fmt: skip
        return filled_space("g45", 32, SIZE, held, self.patch)

    def run(self, engine: str = "t0", threads: int = 1) -> Drawn:
        space = self.memory()
        return Drawn(self, executed(self.device, engine, threads, space, BATCH), space)


@dataclass
class Drawn:
    """What a draw has left."""

    draw: G45Draw
    gpu: GpuDevice
    space: AddressSpace

    @property
    def pixels(self) -> npt.NDArray[Any]:
        """The target: channels of 32 bits as floats, or whole pixels."""
        width, height = self.draw.size
        data = self.space.read(TARGET, width * height * self.draw.pixel_bytes)
        kind = {16: np.float32, 4: np.uint32, 2: np.uint16}[self.draw.pixel_bytes]
        return np.frombuffer(data, kind).reshape((height, width, 4) if self.draw.pixel_bytes == 16 else (height, width))

    @property
    def bits(self) -> npt.NDArray[np.uint32]:
        """The target's channels as they are."""
        return self.pixels.view(np.uint32)

    @property
    def lit(self) -> list[tuple[int, int]]:
        """Columns and rows of pixels that the draw changed."""
        was = self.draw.pixel_bytes
        changed = (self.bits != 0).any(-1) if was == 16 else self.pixels != 0
        return [(int(x), int(y)) for y, x in zip(*np.nonzero(changed), strict=True)]

    @property
    def depth(self) -> npt.NDArray[Any]:
        assert self.draw.depth is not None
        return np.frombuffer(self.space.read(DEPTH, self.draw.depth.nbytes), self.draw.depth.dtype).reshape(self.draw.depth.shape)

    def register(self, name: str) -> int:
        """A statistics register of the render engine."""
        places = {at: place(at, self.draw.gen, "render") for at in range(0x2000, 0x2400, 8)}
        offset = next(at for at, found in places.items() if found is not None and found.layout.name == name)
        return self.gpu.read_register(offset) | self.gpu.read_register(offset + 4) << 32
