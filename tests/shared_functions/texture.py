"""A sampler without a thread: a picture of random texels, a sampler state, and what 64-bit floats say that comes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from softgen.bits.catalogue import layout
from softgen.bits.formats import Format, surface_formats
from softgen.bits.generation import generation
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.shared_functions.dataport import LocalMemory, Surfaces
from softgen.shared_functions.sampler import SamplerPort, Samplers
from softgen.shared_functions.texture import TexelRequest
from tests.shared_functions.sending import BASE, DATA, PAGE, TABLE, Bench

Array = np.ndarray[Any, Any]
STATES, BORDER = 0x400, 0x600  # of the state page: sampler states, a border colour
KINDS = {"1d": 0, "2d": 1, "3d": 2, "cube": 3, "buffer": 4, "null": 7}
MODES = {"wrap": 0, "mirror": 1, "clamp": 2, "cube": 3, "clamp_border": 4, "mirror_once": 5, "half_border": 6, "mirror_101": 7}
NUMBER = {surface_format.name: value for value, surface_format in surface_formats().items()}
AXES = {"1d": 1, "2d": 2, "3d": 3}
ROUNDING = {f"{axis}_address_{way}_filter_rounding_enable": 1 for axis in "uvr" for way in ("mag", "min")}
BORDER_FLOATS = (0.25, 0.5, 0.75, 2.0)


@dataclass
class Texture(Bench):
    """`shape` is width, height, and depth or slices."""

    kind: str = "2d"
    format: str = "R32G32B32A32_FLOAT"
    shape: tuple[int, ...] = (13, 7)
    array: bool = False
    sampler: Mapping[str, float] = field(default_factory=dict)
    border: Any = BORDER_FLOATS
    seed: int = 1

    def __post_init__(self) -> None:
        self.look = surface_formats()[NUMBER[self.format]]
        self.pitch = -(-self.shape[0] * self.look.bits // 8 // 64) * 64
        width, height, depth = (*self.shape, 1, 1)[:3]
        if self.kind == "1d":
            height, depth = 1, height
        self.rows = -(-height // 4) * 4
        self.space = AddressSpace("bench", 48)
        self.data, self.state = MemfdBuffer(-(-self.pitch * self.rows * depth // PAGE) * PAGE, "data"), MemfdBuffer(PAGE, "state")
        self.space.map(DATA, self.data)
        self.space.map(BASE, self.state)
        values = {"surface_type": KINDS[self.kind], "surface_format": NUMBER[self.format], "surface_base_address": DATA, "width": width - 1,
                  "height": height - 1, "depth": depth - 1, "surface_pitch": self.pitch - 1, "surface_array": int(self.array),
                  "surface_qpitch": self._apart() // 4, "surface_vertical_alignment": 1, "surface_horizontal_alignment": 1,
                  **{f"cube_face_enable_{sign}_{axis}": 1 for sign in ("negative", "positive") for axis in "xyz" if self.kind == "cube"},
                  **{f"shader_channel_select_{name}": 4 + n for n, name in enumerate(("red", "green", "blue", "alpha"))}}  # fmt: skip
        self.put(self.state, 0, layout("RENDER_SURFACE_STATE", self.gen).pack(**values | self.surface))
        self.put(self.state, TABLE, [0])
        self.put(self.state, STATES, layout("SAMPLER_STATE", self.gen).pack(border_color_pointer=BORDER, **self.sampler))
        self.put(self.state, BORDER, list(np.asarray(self.border).astype(np.asarray(self.border).dtype.kind + "4").view(np.uint32)))
        self.slm, self.samplers = LocalMemory(1), STATES
        bases = {"surface": BASE, "dynamic": BASE}
        self.port: Any = SamplerPort(Surfaces(generation(self.gen), self.space, bases, TABLE),
                                     Samplers(generation(self.gen), self.space, bases, STATES))  # fmt: skip
        self.compiled = 0
        self.texels = self._fill(depth, height, width)

    def _apart(self) -> int:
        """What the state says from slice to slice: rows, or texels of 1D surfaces since 9."""
        return self.rows if self.kind != "1d" or self.gen < 9 else self.pitch * self.rows * 8 // self.look.bits

    def _fill(self, depth: int, height: int, width: int) -> Array:
        """Random texels; what they mean as red, green, blue and alpha, in 64-bit floats."""
        size, random = self.look.bits // 8, np.random.default_rng(self.seed)
        raw = random.integers(0, 256, (depth, height, width, size), np.uint8)
        if any(channel.type == "float" for channel in self.look.channels):
            kind = f"f{self.look.channels[0].bits // 8}"
            raw = random.uniform(-4, 4, (depth, height, width, len(self.look.channels))).astype(kind).view(np.uint8)
        rows = self.data.array[: self.pitch * self.rows * depth].reshape(depth, self.rows, self.pitch)
        rows[:, :height, : width * size] = raw.reshape(depth, height, -1)
        return meaning(self.look, raw)

    def _how(self, asked: TexelRequest) -> object:
        return self.port.sampling(asked.sampler) if asked.samples else None

    def expected(self, places: list[Array]) -> Array:
        """What the sampler state makes of coordinates: a row of four numbers for each lane."""
        return Model(self).sample(places)

    def ask(self, name: str, *places: Any, lanes: int = 16, answer: int = 0, mask: int = 0xFFFF, **more: Any) -> Array:
        """The four channels of a message without a header, as bits: lanes down, channels across."""
        mode = {8: 1, 16: 2}[lanes]
        parts = [np.broadcast_to(np.asarray(place), lanes).astype(np.asarray(place).dtype.kind.replace("i", "u") + "4") for place in places]
        found = self.send(name, *parts, mask=mask, answer=answer or 4 * lanes // 8, width=lanes, simd_mode=mode, **more)
        return found.view(np.uint32).reshape(-1, lanes).T


def meaning(look: Format, raw: Array) -> Array:
    """Texels by the definition of their channels."""
    bits = np.unpackbits(raw, axis=-1, bitorder="little")
    found = np.zeros((*raw.shape[:-1], 4))
    found[..., 3] = 1
    at = 0
    for channel in look.channels:
        value = (bits[..., at : at + channel.bits] * (1 << np.arange(channel.bits, dtype=np.uint64))).sum(-1)
        at += channel.bits
        if channel.type == "exponent":  # of the channels before it, whose mantissas have 9 bits
            found[..., :3] *= 2.0 ** (value.astype(np.int64) - 15 - 9)[..., None]
            continue
        number = _number(channel.type, channel.bits, value)
        for name in {"l": "rgb", "i": "rgba", "x": "", "p": "", "v": "r", "y": "g", "u": "b"}.get(channel.name, channel.name):
            found[..., "rgba".index(name)] = number
    return found


def _number(type: str, bits: int, value: Array) -> Array:
    if type == "float":
        return value.astype(f"u{bits // 8}").view(f"f{bits // 8}").astype(np.float64)
    signed = value.astype(np.int64) - ((value >> np.uint64(bits - 1)).astype(np.int64) << bits)
    most = (1 << bits - 1) - 1
    return {"unorm": value / (2 * most + 1), "snorm": np.maximum(signed / max(most, 1), -1), "sint": signed}.get(type, value)


class Model:
    """Sampling as the words of the OpenCL and OpenGL specifications have it, with weights of 8 bits."""

    def __init__(self, texture: Texture) -> None:
        self.texture, self.axes = texture, AXES[texture.kind]
        state = texture.sampler
        self.linear = bool(state.get("mag_mode_filter"))
        self.normal = not state.get("non_normalized_coordinate_enable")
        names = {number: name for name, number in MODES.items()}
        self.modes = [names[int(state.get(f"tc{axis}_address_control_mode", 0))] for axis in "xyz"]
        self.sizes = texture.shape

    def near(self, mode: str, s: Array, size: int) -> Array:
        if not self.normal:
            return np.clip(s, 0, size) if mode == "half_border" else s
        f = np.float32
        s = {"wrap": s - np.floor(s), "mirror": np.abs(s - f(2) * np.rint(f(0.5) * s)), "mirror_once": np.abs(s)}.get(mode, s) * f(size)
        return np.clip(s, 0, size) if mode == "half_border" else s

    def texel(self, mode: str, i: Array, size: int) -> tuple[Array, Array]:
        outside = ((i < 0) | (i >= size)) & (mode == "clamp_border" or mode == "half_border" and self.linear)
        if mode == "wrap":
            return i % size, outside
        if mode == "mirror":
            return np.minimum(i % (2 * size), 2 * size - 1 - i % (2 * size)), outside
        if mode == "mirror_101":
            turn = i % max(2 * size - 2, 1)
            return np.minimum(turn, 2 * size - 2 - turn), outside
        return np.clip(np.where((i < 0) & (mode == "mirror_once"), -1 - i, i), 0, size - 1), outside

    def along(self, axis: int, s: Array) -> list[tuple[Array, Array, Array]]:
        mode, size = self.modes[axis], self.sizes[axis]
        u = self.near(mode, s.astype(np.float32), size).astype(np.float64)
        u = np.floor(u * 256 + (0.5 if self.texture.sampler.get("u_address_mag_filter_rounding_enable") else 0)) / 256
        if not self.linear:
            return [(*self.texel(mode, np.floor(u).astype(np.int64), size), np.ones(len(s)))]
        first = np.floor(u - 0.5).astype(np.int64)
        part = u - 0.5 - first
        return [(*self.texel(mode, first, size), 1 - part), (*self.texel(mode, first + 1, size), part)]

    def sample(self, places: list[Array]) -> Array:
        total = np.zeros((len(places[0]), 4))
        layer = np.clip(np.rint(places[self.axes]), 0, self.sizes[-1] - 1).astype(np.int64) if self.texture.array else 0
        for taps in product(*(self.along(axis, places[axis]) for axis in range(self.axes))):
            x, y, z = [at for at, _, _ in taps] + [np.zeros(len(total), np.int64)] * (3 - self.axes)
            values = self.texture.texels[layer if self.texture.array else z, y, x]
            outside = np.logical_or.reduce([border for _, border, _ in taps])
            values = np.where(outside[:, None], self.border(), values)
            total += values * np.prod([weight for _, _, weight in taps], axis=0)[:, None]
        return total

    def border(self) -> Array:
        found = np.array([0.0, 0, 0, 1])
        for channel in self.texture.look.channels:
            for name in {"l": "rgb", "i": "rgba", "x": "", "p": "", "v": "r", "y": "g", "u": "b"}.get(channel.name, channel.name):
                found["rgba".index(name)] = self.texture.border[0 if channel.name in "li" else "rgba".index(name)]
        return found
