"""A pixel backend without a thread: a render target, the pixels of a thread, and messages to them, on both machines."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softgen.bits.catalogue import layout
from softgen.bits.formats import surface_formats
from softgen.bits.generation import generation
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions import descriptors, message
from softgen.shared_functions.dataport import LocalMemory, Surfaces
from softgen.shared_functions.pixel_backend import NAME, BackendState, messages, read
from softgen.shared_functions.pixel_backend.binding import BoundTargets
from softgen.shared_functions.pixel_backend.interpreter import PixelBackend
from softgen.shared_functions.pixel_backend.records import NULL_TARGET
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch
from softgen.shared_functions.unit import DispatchBindings
from tests.shared_functions.compiled import PIXEL, Compiled
from tests.shared_functions.sending import BASE, DATA, PAGE, TABLE, Bench, Sent

Array = np.ndarray[Any, Any]
NUMBER = {surface_format.name: value for value, surface_format in surface_formats().items()}
TILES = {"linear": 0, "w_major": 1, "x_major": 2, "y_major": 3}
WIDTH, HEIGHT = 40, 36
DEPTH = 0x400000  # addresses of depth and stencil buffers
STENCIL = 0x500000
GENERATIONS = [4.5, 7, 7.5, 8, 9, 11]
BLOCK = [(0, 0), (2, 0), (0, 2), (2, 2)]


class Thread:
    """What the backend sees of a thread."""

    def __init__(self, pixel: PixelDispatch) -> None:
        self.pixel = np.frombuffer(memoryview(pixel).cast("B"), np.uint8)


def tiled(gen: float, tiling: str) -> dict[str, int]:
    if gen >= 8:
        return {"tile_mode": TILES[tiling]}
    return {"tiled_surface": int(tiling != "linear"), "tile_walk": int(tiling == "y_major")}


def offset(tiling: str, pitch: int, x: int, y: int) -> int:
    """The offset of byte x of row y, by hand."""
    if tiling == "linear":
        return y * pitch + x
    if tiling == "x_major":
        return (y // 8 * (pitch // 512) + x // 512) * 4096 + y % 8 * 512 + x % 512
    if tiling == "y_major":
        return (y // 32 * (pitch // 128) + x // 128) * 4096 + x % 128 // 16 * 512 + y % 32 * 16 + x % 16
    bits = [x & 1, y & 1, x >> 1 & 1, y >> 1 & 1, x >> 2 & 1, *(y >> n & 1 for n in range(2, 6)), *(x >> n & 1 for n in range(3, 6))]
    return (y // 64 * (pitch // 128) + x // 64) * 4096 + sum(bit << n for n, bit in enumerate(bits))


@dataclass
class Target(Bench):
    """A render target as surface 0; a second one of the same kind, 0x8000 bytes further on, as surface 1; a null surface as surface 2."""

    format: str = "B8G8R8A8_UNORM"
    tiling: str = "y_major"
    state_of_backend: BackendState = field(default_factory=BackendState)
    width: int = WIDTH
    height: int = HEIGHT
    pitch: int = 0
    buffers: dict[int, Array] = field(default_factory=dict)  # more memory: bytes by address

    def __post_init__(self) -> None:
        self.blocks = True
        self.look = surface_formats()[NUMBER[self.format]]
        self.bytes = self.look.bits // 8
        step = {"linear": 64, "x_major": 512, "y_major": 128}[self.tiling]
        self.pitch = self.pitch or -(-self.width * self.bytes // step) * step
        self.space = AddressSpace("bench", 48 if self.gen >= 8 else 32)
        self.state = MemfdBuffer(PAGE, "state")
        self.data = MemfdBuffer(0x40000, "data")
        self.space.map(DATA, self.data)
        self.space.map(BASE, self.state)
        self.extra = []
        for address, held in self.buffers.items():
            buffer = MemfdBuffer(-(-len(held) // PAGE) * PAGE, "more")
            buffer.array[: len(held)] = held
            self.space.map(address, buffer)
            self.extra.append(buffer)
        self.data.array[:] = np.random.default_rng(5).integers(0, 256, len(self.data.array), np.uint8)
        values = {"surface_type": 1, "surface_format": NUMBER[self.format], "surface_base_address": DATA, "width": self.width - 1,
                  "height": self.height - 1, "surface_pitch": self.pitch - 1, **tiled(self.gen, self.tiling)}  # fmt: skip
        if self.gen > 4.5:
            values |= {"surface_vertical_alignment": 1, "surface_horizontal_alignment": 1}
        if self.gen >= 7.5:
            values |= {f"shader_channel_select_{name}": 4 + n for n, name in enumerate(("red", "green", "blue", "alpha"))}
        page = layout("RENDER_SURFACE_STATE", self.gen)
        for number, more in enumerate(({}, {"surface_base_address": DATA + 0x8000}, {"surface_type": 7})):
            self.put(self.state, 64 * number, page.pack(**values | self.surface | more))
        self.put(self.state, TABLE, [0, 64, 128])
        self.slm = LocalMemory(64)
        self.dispatch = DispatchBindings(generation(self.gen), self.space, {"surface": BASE}, TABLE,
                                         unit_states=((NAME, self.state_of_backend),))  # fmt: skip
        self.port: Any = Port(self.dispatch)
        self.compiled = 0
        self.pixel = PixelDispatch(lit=0xFFFFFFFF)
        self.at(BLOCK)

    def at(self, places: list[tuple[int, int]], lit: int = 0xFFFFFFFF) -> None:
        """Put the thread's subspans at places."""
        for number, (x, y) in enumerate(places):
            self.pixel.place[number] = x | y << 16
        self.pixel.lit = lit

    def sender(self) -> object:
        return Thread(self.pixel)

    def _prepare(self, twin: Compiled, sent: Sent, index: int) -> None:
        bound = self.keep = BoundTargets(self.dispatch)
        plan = message.plan(sent.sfid, sent.descriptor, self.gen)
        twin.context.targets = bound.fields()["targets"]
        twin.block[PIXEL : PIXEL + ctypes.sizeof(PixelDispatch)] = self.before
        self.twin = twin
        if plan.name == read.NAME:
            assert bound.resolve(descriptors.named(sent.sfid, sent.descriptor, self.gen))
            return
        form, registers = messages.form_of(plan), (len(sent.payload) + len(sent.second)) // 32 - 2 * plan.header
        for parts in messages.combinations_of(self.gen, form, registers):
            variant = messages.Variant(form.lanes, form.dual, *(part in parts for part in ("source0_alpha", "source_depth", "stencil")),
                                       omask="omask" in parts)  # fmt: skip
            for surface in (index, NULL_TARGET):
                bound.fill(surface, variant, range(len(self.state_of_backend.targets)))

    def send(self, *parts: Any, **fields: Any) -> Array:
        self.before = np.frombuffer(bytes(self.pixel), np.uint8)
        return super().send(*parts, **fields)

    def _compare(self, sent: Sent, response: Any, before: list[Any], fault: Any) -> None:
        compared = self.compiled
        super()._compare(sent, response, before, fault)
        if fault is None and self.compiled > compared:
            found = bytes(self.twin.block[PIXEL : PIXEL + ctypes.sizeof(PixelDispatch)])
            assert found == bytes(self.pixel), "what the thread's block says of its pixels differs"

    def _memories(self) -> list[Any]:
        return [self.data.array, self.state.array, *(buffer.array for buffer in self.extra)]

    # -- what is there -----------------------------------------------------------------------------------------------

    def place(self, x: int, y: int, top: int = 0) -> int:
        return offset(self.tiling, self.pitch, x * self.bytes, y + top)

    def texel(self, x: int, y: int, top: int = 0, base: int = 0) -> bytes:
        at = base + self.place(x, y, top)
        return bytes(self.data.array[at : at + self.bytes])

    def picture(self) -> Array:
        """The target as width x height texels of bytes."""
        return np.array([[list(self.texel(x, y)) for x in range(self.width)] for y in range(self.height)], np.uint8)

    # -- messages ----------------------------------------------------------------------------------------------------

    def header(self, pixels: int = 0xFFFF, index: int = 0, first: int = 0, **present: int) -> Array:
        """The two registers of a header, as a page says; `first` is that of the subspans in it."""
        page = layout("MH_RT", self.gen)
        places = [(self.pixel.place[n] & 0xFFFF, self.pixel.place[n] >> 16) for n in range(first, first + 4)]
        values: dict[str, int] = {"pixel_enables": pixels, **{f"subspan_{n}_x": x for n, (x, _) in enumerate(places)},
                                  **{f"subspan_{n}_y": y for n, (_, y) in enumerate(places)}, **present}  # fmt: skip
        if index:
            values["render_target_index"] = index
        return np.array(page.pack(**values), np.uint32)

    def write(self, colors: Any, subtype: str = "simd16", header: Array | None = None, extra: tuple[Any, ...] = (),
              before: tuple[Any, ...] = (), surface: int = 0, last: int = 1, mask: int = 0xFFFF, **fields: Any) -> None:  # fmt: skip
        """Write colours: an array of lanes and channels, floats or integers; of two sources one behind the other."""
        colors = np.ascontiguousarray(colors, np.float32 if np.asarray(colors).dtype.kind == "f" else None).view(np.uint32)
        width = fields.pop("width", 8 if subtype.startswith("simd8") else 16)
        if "replicated" in subtype:
            payload = np.zeros(8, np.uint32)
            payload[:4] = colors.reshape(-1)[:4]
        elif subtype == "simd16" and self.gen == 4.5:
            payload = np.concatenate([colors[half : half + 8].T.reshape(-1) for half in (0, 8)])
        else:
            payload = colors.T.reshape(-1)
        if self.gen == 4.5 and header is None:
            header = self.header()
        parts = [*([header] if header is not None else []), *before, payload, *extra]
        if self.gen > 4.5:
            fields.setdefault("header_present", int(header is not None))
        self.send("render_target_write", *parts, message_subtype=subtype, binding_table_index=surface, last_render_target=last, mask=mask,
                  width=width, **fields)  # fmt: skip


class Port(PixelBackend):
    """A PixelBackend, as Bench uses data ports."""

    def __init__(self, dispatch: DispatchBindings) -> None:
        super().__init__(dispatch)
        self.surfaces = dispatch.state(Surfaces.of)


def place_of(channel: int) -> tuple[int, int]:
    """X and Y of a channel's pixel in its subspan."""
    return channel & 1, channel >> 1 & 1
