"""Draws of Gen8 and later of our own: commands, kernels in text and vertices in memory, executed by a whole GPU.

    drawn = OwnDraw("bdw", rectangle(0, 0, 8, 8)).run()
    drawn.pixels            # (rows, columns, 4) floats of the render target
    drawn.register("PS_INVOCATION_COUNT")

Vertices are not shaded unless there is a kernel: fetch writes header, position on the screen and one attribute. Pixel shader threads have 8
channels and the attribute of the object's first vertex, which they write as colour: g4.3, g4.7, g5.3 and g5.7.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from softgen.bits.catalogue import catalogue, layout
from softgen.bits.formats import surface_formats
from softgen.bits.generation import device
from softgen.bits.registers import place
from softgen.device.gpu import GpuDevice
from softgen.eu.text import dialect
from softgen.memory.address_space import AddressSpace
from softgen.surface.image import SurfaceImage
from softgen.three_d.draw.draw_cache import RecordCache
from tests.three_d.draw_memory import executed, filled_space

Fields = dict[str, Any]
BATCH, DYNAMIC, SURFACES, CODE, VERTICES, TARGET, DEPTH, STENCIL, DATA, CONSTANTS = (number << 20 for number in range(1, 11))
SIZE = 1 << 16  # of each of them
BLEND, CALC, CC_VIEWPORT, SF_VIEWPORT, SCISSOR, TABLE = 0x000, 0x100, 0x200, 0x400, 0x800, 0x1000  # the last in SURFACES
VS_CODE, PS_CODE, GS_CODE = 0x0, 0x1000, 0x2000
POINTS, LINES, TRIANGLES, RECTANGLES = 1, 2, 4, 15
NUMBER = {surface_format.name: value for value, surface_format in surface_formats().items()}
RENDER_CACHE = 5  # shared function
TARGET_WRITE = 0xC << 14 | 1 << 12  # message type, last render target


# -- kernels -----------------------------------------------------------------------------------------------------------


def send(descriptor: int, mlen: int, rlen: int = 0, source: int = 123, to: str = "null<1>UW", eot: bool = True, target: int = RENDER_CACHE,
         opcode: str = "sendc") -> str:  # fmt: skip
    """A message from registers `source` on."""
    bits = descriptor | rlen << 20 | mlen << 25 | eot << 31
    end = " EOT" if eot else ""
    return f"{opcode}(8) {to} g{source}<0,1,0>UD {bits:#010x} {target} MsgDesc: mlen {mlen} rlen {rlen} {{ align1 1Q{end} }};"


def move(to: str, source: str, kind: str = "F") -> str:
    return f"mov(8) {to}<1>{kind} {source}{kind} {{ align1 1Q }};"


ATTRIBUTE = ("g4.3<0,1,0>", "g4.7<0,1,0>", "g5.3<0,1,0>", "g5.7<0,1,0>")


def pixel_shader(colors: Sequence[str] = ATTRIBUTE, before: str = "", surface: int = 0, header: Sequence[str] = (),
                 after: Sequence[str] = (), control: int = 4 << 8) -> str:  # fmt: skip
    """Writes four sources as colour, with `header` registers before them and others after."""
    first = 123 - len(header) - len(after)
    registers = [*header, *colors, *after]
    lines = [before, *(move(f"g{first + n}", name) for n, name in enumerate(registers)),
             send(TARGET_WRITE | control | surface | bool(header) << 19, len(registers), source=first)]  # fmt: skip
    return "\n".join(line for line in lines if line)


PS = pixel_shader()


# -- vertices ----------------------------------------------------------------------------------------------------------


def vertex(x: float, y: float, z: float = 0.5, w: float = 1.0, attribute: Sequence[float] = (1, 1, 1, 1), layer: int = 0,
           viewport: int = 0, width: float = 1.0) -> bytes:  # fmt: skip
    """A vertex entry: header, position on the screen, attribute."""
    return struct.pack("<3I9f", 0, layer, viewport, width, x, y, z, w, *attribute)


def rectangle(left: float, top: float, right: float, bottom: float, **more: Any) -> list[bytes]:
    """The three corners that RECTLIST wants."""
    return [vertex(right, bottom, **more), vertex(left, bottom, **more), vertex(left, top, **more)]


# -- draws -------------------------------------------------------------------------------------------------------------

DEFAULTS: dict[str, Fields] = {
    "3DSTATE_VF_TOPOLOGY": {"primitive_topology_type": RECTANGLES},
    "3DSTATE_VF_STATISTICS": {"statistics_enable": 1},
    "3DSTATE_URB_VS": {"urb_starting_address": 4, "number_of_urb_entries": 64},
    **{f"3DSTATE_URB_{stage}": {"urb_starting_address": 8} for stage in ("HS", "DS", "GS")},
    "3DSTATE_VS": {}, "3DSTATE_HS": {}, "3DSTATE_TE": {}, "3DSTATE_DS": {}, "3DSTATE_GS": {}, "3DSTATE_STREAMOUT": {},
    "3DSTATE_CLIP": {"perspective_divide_disable": 1, "clipper_statistics_enable": 1},
    "3DSTATE_RASTER": {"cull_mode": 1},
    "3DSTATE_SF": {"line_width": 1.0, "point_width_source": 1, "point_width": 1.0, "statistics_enable": 1},
    "3DSTATE_SBE": {"force_vertex_urb_entry_read_length": 1, "force_vertex_urb_entry_read_offset": 1, "number_of_sf_output_attributes": 1,
                    "vertex_urb_entry_read_length": 1, "vertex_urb_entry_read_offset": 1, "constant_interpolation_enable": 1,
                    "attribute_active_component": [{"format": 3}] * 32},
    "3DSTATE_SBE_SWIZ": {},
    "3DSTATE_MULTISAMPLE": {}, "3DSTATE_SAMPLE_MASK": {"sample_mask": 1},
    "3DSTATE_WM": {"statistics_enable": 1},
    "3DSTATE_WM_DEPTH_STENCIL": {}, "3DSTATE_WM_CHROMAKEY": {},
    "3DSTATE_PS": {"kernel_start_pointer_0": PS_CODE, "8_pixel_dispatch_enable": 1, "maximum_number_of_threads_per_psd": 62,
                   "dispatch_grf_start_register_for_constant_setup_data_0": 4},
    "3DSTATE_PS_EXTRA": {"pixel_shader_valid": 1, "attribute_enable": 1},
    "3DSTATE_PS_BLEND": {"has_writeable_rt": 1},
    "3DSTATE_BLEND_STATE_POINTERS": {"blend_state_pointer": BLEND, "blend_state_pointer_valid": 1},
    "3DSTATE_CC_STATE_POINTERS": {"color_calc_state_pointer": CALC, "color_calc_state_pointer_valid": 1},
    "3DSTATE_VIEWPORT_STATE_POINTERS_CC": {"cc_viewport_pointer": CC_VIEWPORT},
    "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP": {"sf_clip_viewport_pointer": SF_VIEWPORT},
    "3DSTATE_SCISSOR_STATE_POINTERS": {"scissor_rect_pointer": SCISSOR},
    "3DSTATE_BINDING_TABLE_POINTERS_PS": {"pointer_to_binding_table": TABLE},
    "3DSTATE_CONSTANT_VS": {}, "3DSTATE_CONSTANT_PS": {},
    "3DSTATE_DEPTH_BUFFER": {"surface_type": 7, "surface_format": 1}, "3DSTATE_STENCIL_BUFFER": {}, "3DSTATE_HIER_DEPTH_BUFFER": {},
    "3DSTATE_CLEAR_PARAMS": {},
}  # fmt: skip
BLOCKS = {"BLEND_STATE": BLEND, "COLOR_CALC_STATE": CALC, "CC_VIEWPORT": CC_VIEWPORT, "SF_CLIP_VIEWPORT": SF_VIEWPORT,
          "SCISSOR_RECT": SCISSOR}  # fmt: skip
BLOCK_DEFAULTS: dict[str, Fields] = {"CC_VIEWPORT": {"maximum_depth": 1.0}, "BLEND_STATE": {"render_target": [{}]}}


@dataclass
class OwnDraw:
    """A draw, or several. `state` has more fields of commands and blocks by name; commands that are not in DEFAULTS come before the draw.

    `primitives` are fields of 3DPRIMITIVE, one for each draw; `between` are commands before each draw after the first.
    """

    defaults: ClassVar[Mapping[str, Fields]] = DEFAULTS
    blocks: ClassVar[Mapping[str, int]] = BLOCKS
    gpu: str
    vertices: Sequence[bytes]
    state: Mapping[str, Fields] = field(default_factory=dict)
    ps: str = PS
    vs: str = ""
    gs: str = ""
    size: tuple[int, int] = (16, 16)  # pixels
    format: str = "R32G32B32A32_FLOAT"
    pitch: int = 0
    depth: npt.NDArray[Any] | None = None  # what the depth buffer holds, tiled as it is in memory
    surfaces: Sequence[Fields] = ()  # more surface states, from index 1 on
    primitives: Sequence[Fields] = ()
    before: Sequence[Sequence[int]] = ()
    between: Sequence[Sequence[int]] = ()
    after: Sequence[Sequence[int]] = ()
    patch: Mapping[int, bytes] = field(default_factory=dict)  # what memory holds besides, by address

    def __post_init__(self) -> None:
        self.gen = device(self.gpu).generation.number
        self.pitch = self.pitch or self.size[0] * self.pixel_bytes

    def pack(self, name: str, **fields: Any) -> list[int]:
        return list(layout(name, self.gen).pack(**fields))

    def fields(self, name: str) -> Fields:
        """Those of the defaults that the generation has, and what the test says."""
        known = {field.name for field in layout(name, self.gen).fields} | {group.name for group in layout(name, self.gen).groups}
        defaults = {key: value for key, value in {**self.defaults, **BLOCK_DEFAULTS}.get(name, {}).items() if key in known}
        return {**defaults, **self.state.get(name, {})}

    @property
    def pixel_bytes(self) -> int:
        return surface_formats()[NUMBER[self.format]].bits // 8

    def commands(self) -> list[Sequence[int]]:
        bases = {"dynamic_state_base_address": DYNAMIC, "surface_state_base_address": SURFACES, "instruction_base_address": CODE}
        elements = [{"valid": 1, "source_element_format": 0, "source_element_offset": 16 * n,
                     **{f"component_{c}_control": 1 for c in range(4)}} for n in range(3)]  # fmt: skip
        buffer = {"buffer_pitch": 48, "buffer_starting_address": VERTICES, "buffer_size": 48 * len(self.vertices),
                  "address_modify_enable": 1}  # fmt: skip
        edges = {"clipped_drawing_rectangle_x_max": self.size[0] - 1, "clipped_drawing_rectangle_y_max": self.size[1] - 1}
        own = [name for name in self.state if name not in self.defaults and name not in self.blocks and name.isupper()]
        own = [name for name in own if name not in ("RENDER_SURFACE_STATE", "3DSTATE_DRAWING_RECTANGLE", "3DSTATE_VERTEX_BUFFERS")]
        known = [name for name in self.defaults if catalogue().get(name, self.gen) is not None]
        whole = {"vertex_count_per_instance": len(self.vertices), "instance_count": 1}
        made: list[Sequence[int]] = [
            self.pack("STATE_BASE_ADDRESS", **bases, **{f"{name}_modify_enable": 1 for name in bases}),
            self.pack("3DSTATE_VERTEX_BUFFERS", vertex_buffer=[{**buffer, **self.state.get("3DSTATE_VERTEX_BUFFERS", {})}]),
            self.pack("3DSTATE_VERTEX_ELEMENTS", vertex_element=elements),
            self.pack("3DSTATE_DRAWING_RECTANGLE", **{**edges, **self.state.get("3DSTATE_DRAWING_RECTANGLE", {})}),
            *(self.pack(name, **self.fields(name)) for name in known),
            *(self.pack(name, **self.state[name]) for name in own), *self.before,
        ]  # fmt: skip
        for number, primitive in enumerate(self.primitives or ({},)):
            made += [*(self.between if number else ()), self.pack("3DPRIMITIVE", **{**whole, **primitive})]
        return [*made, *self.after, self.pack("MI_BATCH_BUFFER_END")]

    def _dynamic(self) -> bytes:
        held = bytearray(SIZE)
        for name, at in self.blocks.items():
            block = np.array(self.pack(name, **self.fields(name)), np.uint32).tobytes()
            held[at : at + len(block)] = block
        return bytes(held)

    def _code(self) -> bytes:
        held = bytearray(SIZE)
        for at, text in ((VS_CODE, self.vs), (PS_CODE, self.ps), (GS_CODE, self.gs)):
            code = dialect.read(text, self.gen, "mesa")
            held[at : at + len(code)] = code
        return bytes(held)

    def _surfaces(self) -> bytes:
        target = {"surface_type": 1, "surface_format": NUMBER[self.format], "surface_base_address": TARGET, "width": self.size[0] - 1,
                  "height": self.size[1] - 1, "surface_pitch": self.pitch - 1, "surface_vertical_alignment": 1,
                  "surface_horizontal_alignment": 1,
                  **{f"shader_channel_select_{name}": 4 + n for n, name in enumerate(("red", "green", "blue", "alpha"))}}  # fmt: skip
        held, states = bytearray(SIZE), (self.state.get("RENDER_SURFACE_STATE", {}), *self.surfaces)
        for number, fields in enumerate({**target, **own} for own in states):
            block = np.array(self.pack("RENDER_SURFACE_STATE", **fields), np.uint32).tobytes()
            held[0x40 * number : 0x40 * number + len(block)] = block
            held[TABLE + 4 * number : TABLE + 4 * number + 4] = struct.pack("<I", 0x40 * number)
        return bytes(held)

    def memory(self) -> AddressSpace:
        batch = b"".join(struct.pack(f"<{len(command)}I", *command) for command in self.commands())
        held = {BATCH: batch, DYNAMIC: self._dynamic(), SURFACES: self._surfaces(), CODE: self._code(), VERTICES: b"".join(self.vertices),
                TARGET: b"", DEPTH: b"" if self.depth is None else self.depth.tobytes(), STENCIL: b"", DATA: b"",
                CONSTANTS: b""}  # fmt: skip
        return filled_space("own", device(self.gpu).generation.address_bits, SIZE, held, self.patch)

    def run(self, engine: str = "t0", threads: int = 1) -> Drawn:
        """Execute the batch; and once more with records that are not kept, which must leave the same."""
        drawn = self._executed(engine, threads)
        with patch.object(RecordCache, "ready", lambda *given: False):
            assert self._executed(engine, threads).left() == drawn.left()
        return drawn

    def _executed(self, engine: str, threads: int) -> Drawn:
        space, targets = self.memory(), list[SurfaceImage]()
        return Drawn(self, executed(self.gpu, engine, threads, space, BATCH, targets), space, targets)


@dataclass
class Drawn:
    """What a draw has left."""

    draw: OwnDraw
    gpu: GpuDevice
    space: AddressSpace
    targets: list[SurfaceImage]  # that draws have written to, one after another

    def left(self) -> Fields:
        """Memory that draws write and which targets they say so of, statistics registers, the work of threads, and remarks."""
        counts = [self.gpu.read_register(at) for at in (*range(0x2300, 0x2360, 4), *range(0x5200, 0x5290, 4))]
        memory = {at: self.space.read(at, SIZE) for at in (TARGET, DEPTH, STENCIL, DATA)}
        work = self.gpu.counters.threads, self.gpu.counters.instructions
        return {"memory": memory, "targets": self.targets, "counts": counts, "work": work, "remarks": list(self.gpu.remarks)}

    def texels(self, kind: Any = np.float32, channels: int = 4, at: int = TARGET) -> npt.NDArray[Any]:
        """The texels of a linear surface of the target's size and pitch."""
        width, height = self.draw.size
        rows = np.frombuffer(self.space.read(at, height * self.draw.pitch), np.uint8).reshape(height, -1)
        return np.ascontiguousarray(rows[:, : width * self.draw.pixel_bytes]).view(kind).reshape(height, width, channels)

    @property
    def pixels(self) -> npt.NDArray[Any]:
        return self.texels()

    @property
    def lit(self) -> set[tuple[int, int]]:
        """Columns and rows of pixels that the draw changed."""
        return {(int(x), int(y)) for y, x in zip(*np.nonzero(self.texels(np.uint8, self.draw.pixel_bytes).any(-1)), strict=True)}

    def register(self, name: str) -> int:
        """A statistics register of the render engine."""
        places = {at: place(at, self.draw.gen, "render") for at in range(0x2000, 0x2800, 4)}
        offset = next(at for at, found in places.items() if found is not None and found.layout.name == name)
        return self.gpu.read_register(offset) | self.gpu.read_register(offset + 4) << 32

    @property
    def remarks(self) -> list[str]:
        return list(self.gpu.remarks)


def box(left: int, top: int, right: int, bottom: int) -> set[tuple[int, int]]:
    return {(x, y) for x in range(left, right) for y in range(top, bottom)}
