"""A sampler over a surface with mip levels, on any generation; the rules of sampling once more, in plain Python for one lane at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softgen.bits.catalogue import layout
from softgen.bits.formats import surface_formats
from softgen.bits.generation import generation
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions.dataport import LocalMemory, Surfaces
from softgen.shared_functions.sampler import SamplerPort, Samplers
from softgen.shared_functions.texture import TexelRequest
from tests.shared_functions.sending import BASE, DATA, PAGE, TABLE, Bench
from tests.shared_functions.texture import BORDER, KINDS, MODES, NUMBER, STATES, meaning
from tests.surface.test_image import place

PITCH = 512
ROWS = 640
SIGNS = ("negative", "positive")
Texel = Sequence[float]


@dataclass
class Mipmap(Bench):
    """`shape` is width, height and depth or slices; texels have four bytes."""

    kind: str = "2d"
    format: str = "R8G8B8A8_UNORM"
    shape: tuple[int, int, int] = (16, 12, 1)
    array: bool = False
    levels: int = 4
    tiling: str = "linear"
    sampler: Mapping[str, float] = field(default_factory=dict)
    border: Any = (0.25, 0.5, 0.75, 1.0)  # floats, or the dwords of the state

    def __post_init__(self) -> None:
        self.space = AddressSpace("bench", 48)
        self.data, self.state = MemfdBuffer(-(-PITCH * ROWS // PAGE) * PAGE, "data"), MemfdBuffer(PAGE, "state")
        self.space.map(DATA, self.data)
        self.space.map(BASE, self.state)
        page = layout("RENDER_SURFACE_STATE", self.gen)
        known = {field.name for field in page.fields}
        self.put(self.state, 0, page.pack(**{name: value for name, value in self._fields().items() if name in known} | self.surface))
        self.put(self.state, TABLE, [0])
        state = layout("SAMPLER_STATE", self.gen)
        named = {field.name for field in state.fields}
        chosen = {name: value for name, value in self.sampler.items() if name in named}
        self.put(self.state, STATES, state.pack(border_color_pointer=BORDER, **chosen))
        border = np.asarray(self.border, np.float32 if isinstance(self.border, tuple) else np.uint32)
        self.put(self.state, BORDER, list(border.view(np.uint32)))
        self.slm, self.samplers, self.compiled = LocalMemory(1), STATES, 0
        bases = {"surface": BASE, "dynamic": BASE, "general": BASE}
        self.port: Any = SamplerPort(Surfaces(generation(self.gen), self.space, bases, TABLE),
                                     Samplers(generation(self.gen), self.space, bases, STATES))  # fmt: skip
        self.data.array[:] = np.random.default_rng(5).integers(0, 256, len(self.data.array), np.uint8)
        self.image = self.port.picture(0, False)
        self.look = surface_formats()[NUMBER[self.format]]

    def _fields(self) -> dict[str, Any]:
        width, height, depth = self.shape
        faces = {f"cube_face_enable_{sign}_{axis}": int(self.kind == "cube") for sign in SIGNS for axis in "xyz"}
        tiles = {"linear": 0, "x_major": 2, "y_major": 3}[self.tiling]
        return {"surface_type": KINDS[self.kind], "surface_format": NUMBER[self.format], "surface_base_address": DATA, "width": width - 1,
                "height": height - 1, "depth": depth - 1, "surface_pitch": PITCH - 1, "surface_array": int(self.array),
                "surface_qpitch": (32 if self.kind != "1d" else 128) // 4, "mip_count_lod": self.levels - 1, "tile_mode": tiles,
                "tiled_surface": int(tiles > 0), "tile_walk": tiles & 1, "surface_vertical_alignment": int(self.gen >= 8),
                "surface_horizontal_alignment": int(self.gen >= 8), **faces,
                **{f"shader_channel_select_{name}": 4 + n for n, name in enumerate(("red", "green", "blue", "alpha"))}}  # fmt: skip

    def _how(self, asked: TexelRequest) -> object:
        return self.port.sampling(asked.sampler, None, self.image.partial) if asked.samples else None

    def texel(self, x: int, y: int, r: int, level: int) -> Texel:
        """Red, green, blue and alpha; all bits are zero outside."""
        at = place(self.image, x, y, r, level)
        raw = np.zeros(4, np.uint8)
        if at is not None:
            at = tiled(self.tiling, at % PITCH, at // PITCH)
            raw = self.data.array[at : at + 4]
        found: Texel = meaning(self.look, np.ascontiguousarray(raw)).tolist()
        return found


def tiled(tiling: str, x: int, y: int) -> int:
    """Tiles of 4 KiB, row after row: of 512 bytes by 8 rows, or of 128 by 32 with columns of 16 bytes."""
    if tiling == "x_major":
        return (y // 8 * (PITCH // 512) + x // 512) * 4096 + y % 8 * 512 + x % 512
    if tiling == "y_major":
        return (y // 32 * (PITCH // 128) + x // 128) * 4096 + x % 128 // 16 * 512 + y % 32 * 16 + x % 16
    return y * PITCH + x


def floats(*values: Any) -> list[Any]:
    return [np.float32(value) for value in values]


class Twin:
    """Samples of one lane."""

    def __init__(self, mipmap: Mipmap) -> None:
        self.mipmap, self.image = mipmap, mipmap.image
        self.axes = {"1d": 1, "2d": 2, "cube": 2, "3d": 3}[mipmap.kind]
        state = mipmap.sampler
        names = {number: name for name, number in MODES.items()}
        self.modes = [names[int(state.get(f"tc{axis}_address_control_mode", 0))] for axis in "xyz"]
        self.ways = {way: bool(state.get(f"{way}_mode_filter")) for way in ("mag", "min")}
        self.mip = {0: "none", 1: "nearest", 3: "linear"}[int(state.get("mip_mode_filter", 0))]
        self.low, self.high = (float(state.get(name, 0)) for name in ("min_lod", "max_lod"))
        self.bias, self.rounds = float(state.get("texture_lod_bias", 0)), bool(state.get("u_address_mag_filter_rounding_enable"))
        self.preclamp = bool(state.get("lod_preclamp_mode"))

    def size(self, axis: int, level: int) -> int:
        return max((self.image.width, self.image.height, self.image.depth)[axis] >> level + self.image.level, 1)

    def detail(self, gradients: Sequence[tuple[float, float]]) -> float:
        """log2 of the longer gradient in texels, to a 256th."""
        length = [math.hypot(*(pair[side] * self.size(axis, 0) for axis, pair in enumerate(gradients))) for side in (0, 1)]
        longest = max(length)
        return round(math.log2(longest) * 256) / 256 if longest else -99.0

    def levels(self, lod: float) -> tuple[bool, list[tuple[int, float]]]:
        """Whether it is magnified; levels and their weights."""
        clamp = max(min(lod, self.high), self.low)
        larger = (clamp if self.preclamp else lod) <= 0
        last = self.image.levels - 1
        if self.mip == "none" or larger:
            return larger, [(min(int(self.low), last), 1.0)]
        level = max(min(clamp, float(last)), 0.0)
        if self.mip == "nearest":
            return larger, [(math.floor(level + 0.5), 1.0)]
        near = math.floor(level)
        part = math.floor((level - near) * 256) / 256
        return larger, [(near, 1 - part), (min(near + 1, last), part)]

    def texel(self, mode: str, i: int, n: int) -> int | None:
        if mode == "wrap":
            return i % n
        if mode == "mirror":
            return min(i % (2 * n), 2 * n - 1 - i % (2 * n))
        if mode == "clamp_border":
            return i if 0 <= i < n else None
        return min(max(-1 - i if mode == "mirror_once" and i < 0 else i, 0), n - 1)

    def taps(self, axis: int, u: Any, level: int, linear: bool, offset: int) -> list[tuple[int, float]]:
        n = self.size(axis, level)
        if self.modes[axis] == "wrap":  # coordinates are brought near before they are scaled
            u = np.float32(u) - np.floor(np.float32(u))
        fixed = math.floor(float(np.float32(u) * np.float32(n)) * 256 + (0.5 if self.rounds else 0))
        if not linear:
            return [((fixed >> 8) + offset, 1.0)]
        fixed -= 128
        return [((fixed >> 8) + offset, 1 - (fixed & 255) / 256), ((fixed >> 8) + 1 + offset, (fixed & 255) / 256)]

    def filtered(self, places: Sequence[Any], r: int, level: int, linear: bool, offsets: Sequence[int] = (0, 0, 0),
                 compare: Any = None) -> np.ndarray[Any, Any]:  # fmt: skip
        total = np.zeros(4)
        axes = [self.taps(axis, places[axis], level, linear, offsets[axis]) for axis in range(self.axes)] + [[(0, 1.0)]] * (3 - self.axes)
        for x, a in axes[0]:
            for y, b in axes[1]:
                for z, c in axes[2]:
                    at = [self.texel(self.modes[axis], i, self.size(axis, level)) if axis < self.axes else i
                          for axis, i in enumerate((x, y, z))]  # fmt: skip
                    inside = None not in at
                    value = list(self.mipmap.texel(at[0], at[1], at[2] if self.axes == 3 else r, level) if inside else self.mipmap.border)  # type: ignore[arg-type]
                    if compare is not None:
                        value[0] = compare(np.float32(value[0]))
                    total += a * b * c * np.array(value)
        return total

    def sample(self, places: Sequence[Any], r: int, lod: float, **more: Any) -> np.ndarray[Any, Any]:
        larger, levels = self.levels(lod + self.bias)
        linear = self.ways["mag" if larger else "min"]
        return sum((weight * self.filtered(places, r, level, linear, **more) for level, weight in levels), np.zeros(4))
