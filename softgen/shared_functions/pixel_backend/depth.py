"""Depth and stencil tests as a lane program (G45 7808-7844, 8073-8106). It is part of render target writes, or a function of its own that
runs before the pixel shader.

Depths are clamped to the viewport's range and converted to the buffer's format, then compared.
"""

from __future__ import annotations

from collections.abc import Callable

from softgen.errors import Unsupported
from softgen.lanes.machine import Machine
from softgen.lanes.record import RecordView
from softgen.lanes.types import LaneType, bool_, f32, i32, u8, u16, u32
from softgen.lanes.value import Region, Value
from softgen.shared_functions.pixel_backend import surface
from softgen.shared_functions.pixel_backend.records import DEPTH_AT, PLACEMENT, STENCIL_AT
from softgen.shared_functions.pixel_backend.state import DepthState, StencilFace
from softgen.shared_functions.pixel_backend.surface import PixelAddresses, Pixels, PixelSample

# Depth formats: bytes of a pixel, bits of a UNORM depth (0: a float), byte offset and shift of stencil.
FORMATS = {
    "d32_float_s8x24_uint": (8, 0, 4, 0),
    "d32_float": (4, 0, None, 0),
    "d24_unorm_s8_uint": (4, 24, 0, 24),
    "d24_unorm_x8_uint": (4, 24, None, 0),
    "d16_unorm": (2, 16, None, 0),
}
STENCIL_BITS, STENCIL_MAX = 8, 255
VIEWPORTS = 16


def check(state: DepthState) -> None:
    """Raise Unsupported for what is not simulated."""
    if state.format and state.format not in FORMATS:
        raise Unsupported(f"depth buffers of format {state.format}: not yet simulated")


def compare(m: Machine, function: str, a: Value, b: Value) -> Value:
    """A 3D_Compare_Function; of floats, NaN passes always and notequal."""
    if function in ("always", "never"):
        return m.constant(bool_, int(function == "always"), a.lanes)
    return {"less": m.less, "equal": m.equal, "lequal": m.less_equal, "greater": m.greater, "notequal": m.not_equal,
            "gequal": m.greater_equal}[function](a, b)  # fmt: skip


class DepthTest:
    """The tests of a draw on one machine. `memory` gives graphics memory from an address on."""

    def __init__(self, m: Machine, state: DepthState, numbers: RecordView, memory: Callable[[Value], Region]) -> None:
        self.m, self.state, self.numbers, self.memory = m, state, numbers, memory
        self.depth, self.stencil = (RecordView(m, PLACEMENT, numbers.memory, numbers.offset + at) for at in (DEPTH_AT, STENCIL_AT))
        self.size, self.unorm, self.stencil_byte, self.shift = FORMATS.get(state.format, (4, 24, None, 0))
        self.stencil_passed: Value | None = None  # of the last run; None: there is no such test
        self.depth_passed: Value | None = None

    def run(self, pixels: Pixels, layer: Value, z: Value, back_facing: Value, viewport: Value, mask: Value, update: Value,
            reference: Value | None = None, sample: int | Value = 0,
            stored: Pixels | None = None) -> Value:  # fmt: skip
        """The pixels of a mask that pass; buffers change for those in `update`. `reference`: stencil references of pixels; `sample`: which
        is meant where pixels have several; `stored`: where they are in the buffers, if not there."""
        m, state = self.m, self.state
        if state.idle:
            return mask
        self.pixels, self.layer, self.viewport = pixels, layer, viewport
        self.back = m.broadcast(back_facing != 0, pixels.lanes)
        self.on = mask & surface.inside(m, self.depth, pixels) if state.format else mask
        self.sample = PixelSample(sample, state.samples, True) if state.samples > 1 and stored is None else None
        self.stored = pixels if stored is None else stored
        self.places = PixelAddresses(m, self.depth, state.tiling, self.size, self.stored, layer, sample=self.sample)
        self.base = self.memory(self.depth.load("base"))
        source = self._source(z)
        word, held = self._stored()
        old = self._stencil(word)
        deep = compare(m, state.test, source, source if held is None else held) if state.test and state.format else None
        fine, new = self._stencil_test(old, deep, reference)
        both = fine if deep is None else deep if fine is None else fine & deep
        self.stencil_passed, self.depth_passed = fine, deep
        passed = mask if both is None else mask & both
        self._update(word, source, old, new, passed, update & self.on)
        return passed

    def held(self, pixels: Pixels, layer: Value, mask: Value) -> tuple[Value, Value]:
        """What the buffers hold: depths as they are stored, and stencils (G45 7429-7470); 0 where there is none."""
        m, state, nothing = self.m, self.state, self.m.constant(u32, 0, pixels.lanes)
        if not state.format:
            return nothing, nothing
        self.pixels, self.layer = pixels, layer
        on = mask & surface.inside(m, self.depth, pixels)
        places, base = PixelAddresses(m, self.depth, state.tiling, self.size, pixels, layer), self.memory(self.depth.load("base"))
        word = m.convert(places.load(self._type, base, on), u32)
        if self.stencil_byte is None:
            return word, nothing
        stencil = m.convert(m.load(u8, base.moved(self.stencil_byte), places.all(), on), u32) if self.stencil_byte else word >> self.shift
        return (word & (1 << self.unorm) - 1 if self.unorm else word), stencil

    # -- depth -----------------------------------------------------------------------------------------------------

    def _source(self, z: Value) -> Value:
        """Depths as the buffer has them: floats, or integers of 24 or 16 bits."""
        m, viewport = self.m, self.viewport & VIEWPORTS - 1
        low, high = (m.broadcast(self.numbers.load(name, element=viewport), z.lanes) for name in ("minimum", "maximum"))
        z = m.select(z < low, low, m.select(z > high, high, z))
        if not self.unorm:
            return z
        z = m.min(m.max(z, m.like(z, 0.0)), m.like(z, 1.0))
        return m.bitcast(m.convert(m.round_even(z * float((1 << self.unorm) - 1)), i32), u32)

    @property
    def _type(self) -> LaneType:
        return {2: u16, 4: u32, 8: u32}[self.size]

    def _stored(self) -> tuple[Value | None, Value | None]:
        """The buffer's words and the depths in them, where they are needed: to compare, or because a part of a word is kept."""
        m, state = self.m, self.state
        compares = state.test not in (None, "always", "never")
        shares = self.unorm == 24 and (state.write or self._has_stencil and not state.separate_stencil)
        if not state.format or not compares and not shares:
            return None, None
        word = m.convert(self.places.load(self._type, self.base, self.on), u32)
        return word, m.bitcast(word, f32) if not self.unorm else word & (1 << self.unorm) - 1

    # -- stencil ---------------------------------------------------------------------------------------------------

    @property
    def _has_stencil(self) -> bool:
        return self.state.faces is not None and (self.state.separate_stencil or self.stencil_byte is not None)

    def _stencil(self, word: Value | None) -> Value | None:
        """The stencil values in the buffer."""
        m = self.m
        if not self._has_stencil:
            return None
        if not self.state.separate_stencil:
            if self.stencil_byte:
                far = self.base.moved(self.stencil_byte)
                return m.convert(m.load(u8, far, self.places.all(), self.on), u32)
            assert word is not None
            return word >> self.shift
        self.stencils = PixelAddresses(m, self.stencil, "w_major", 1, self.stored, self.layer, sample=self.sample)
        self.stencil_on = surface.inside(m, self.stencil, self.pixels)
        return m.convert(self.stencils.load(u8, self.memory(self.stencil.load("base")), self.on & self.stencil_on), u32)

    def _by_face(self, name: str) -> Value:
        front, back = (self.m.broadcast(self.numbers.load(name, element=face), self.pixels.lanes) for face in (0, 1))
        return self.m.select(self.back, back, front)

    def _stencil_test(self, old: Value | None, deep: Value | None, reference: Value | None) -> tuple[Value | None, Value | None]:
        """The pixels that pass, and what the buffer then holds."""
        m, faces = self.m, self.state.faces
        if old is None or faces is None:
            return None, None
        reference = self._by_face("reference") if reference is None else reference & STENCIL_MAX
        mask = self._by_face("test_mask")
        a, b = reference & mask, old & mask
        if faces[0] == faces[1]:
            return self._face(faces[0], a, b, old, deep, reference)
        front, back = (self._face(face, a, b, old, deep, reference) for face in faces)
        return m.select(self.back, back[0], front[0]), m.select(self.back, back[1], front[1])

    def _face(self, face: StencilFace, a: Value, b: Value, old: Value, deep: Value | None, reference: Value) -> tuple[Value, Value]:
        m = self.m
        fine = compare(m, face.function, a, b)
        passed = self._operation(face.depth_pass, old, reference)
        if deep is not None:
            passed = m.select(deep, passed, self._operation(face.depth_fail, old, reference))
        return fine, m.select(fine, passed, self._operation(face.fail, old, reference))

    def _operation(self, name: str, old: Value, reference: Value) -> Value:
        m = self.m
        if name in ("keep", "zero", "replace"):
            return {"keep": old, "zero": m.like(old, 0), "replace": reference}[name]
        if name == "incrsat":
            return m.select(old == STENCIL_MAX, old, old + 1)
        if name == "decrsat":
            return m.select(old == 0, old, old - 1)
        return {"incr": old + 1, "decr": old - 1, "invert": ~old}[name] & STENCIL_MAX

    # -- updates ---------------------------------------------------------------------------------------------------

    def _update(self, word: Value | None, source: Value, old: Value | None, new: Value | None, passed: Value, update: Value) -> None:
        """Depth is written where both tests passed, stencil where it was tested."""
        m, state = self.m, self.state
        stencil = None
        if old is not None and new is not None and state.stencil_write:
            mask = self._by_face("write_mask")
            stencil = (old & ~mask) | (new & mask)
        if stencil is not None and state.separate_stencil:
            self.stencils.store(m.convert(stencil, u8), self.memory(self.stencil.load("base")), update & self.stencil_on)
            stencil = None
        elif stencil is not None and self.stencil_byte:
            m.store(m.convert(stencil, u8), self.base.moved(self.stencil_byte), self.places.all(), update)
            stencil = None
        if not state.format or not state.write and stencil is None:
            return
        written = update & passed
        depth = m.bitcast(source, u32)
        if self.unorm == 24:
            assert word is not None
            kept = word if stencil is None else (word & (1 << 24) - 1) | stencil << self.shift
            merged = (kept & 0xFF000000) | depth
            depth = m.select(passed, merged, kept) if state.write else kept
            written = update if stencil is not None else written
        self.places.store(m.convert(depth, self._type), self.base, written)
