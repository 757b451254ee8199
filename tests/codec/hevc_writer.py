"""HEVC streams of random syntax: tools that coders at hand do not use (tiles, PCM, dependent slices, long-term references, NxN inter).

Whatever is chosen is legal, and no sample is reconstructed: contexts depend on depths, skip flags and intra modes alone. What the stream
shows is for a decoder to say (record.py asks ffmpeg). Tables are those of the C code: one that is wrong there is wrong for ffmpeg.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from tests.codec.hevc_cabac import (
    B_SLICE,
    BYPASS,
    CHROMA_MODE,
    I_SLICE,
    LISTS,
    MERGE_FLAG,
    MERGE_INDEX,
    MPM,
    P_SLICE,
    PART_MODE,
    PRED_MODE,
    PREDICTOR,
    REFERENCE,
    ROOT_CBF,
    SAO_MERGE,
    SAO_TYPE,
    SKIP,
    SPLIT_CU,
    VECTOR_0,
    VECTOR_1,
    Cabac,
)
from tests.codec.hevc_headers import Options, Stream, parameter_sets, slice_header
from tests.codec.hevc_transform import TransformWriter, Unit

PLANAR, DC = 0, 1


class Slices(TransformWriter):
    """The slice segments of a picture."""

    def __init__(self, random: Random, options: Options, slice_type: int) -> None:
        self.random, self.options, self.type = random, options, slice_type
        o = options
        self.qp, self.swapped, self.slice = 26, False, 0
        self.sao: list[int] = [0, 0]
        self.slice_of = [-1] * (o.across * o.down)
        self.depth = [[0] * (o.width // 8 + 8) for _ in range(o.height // 8 + 8)]
        self.skip = [[0] * (o.width // 8 + 8) for _ in range(o.height // 8 + 8)]
        self.mode = [[DC] * (o.width // 4 + 16) for _ in range(o.height // 4 + 16)]
        self.order, self.tile = [], [0] * (o.across * o.down)
        for ty, top in enumerate(o.rows):
            for tx, left in enumerate(o.columns):
                for y in range(top, [*o.rows, o.down][ty + 1]):
                    for x in range(left, [*o.columns, o.across][tx + 1]):
                        self.order.append(y * o.across + x)
                        self.tile[y * o.across + x] = ty * len(o.columns) + tx

    def is_beside(self, x: int, y: int) -> bool:
        """Whether the block at the left or above may be used; it was coded before."""
        o = self.options
        if x < 0 or y < 0:
            return False
        address = (y >> o.ctb) * o.across + (x >> o.ctb)
        return self.slice_of[address] == self.slice and self.tile[address] == self.tile[self.address]

    # -- slice segments ------------------------------------------------------------------------------------------------

    def _ends(self, at: int, segment: int, first: int) -> tuple[bool, bool]:
        """Whether the segment ends behind a block, and whether a dependent one follows."""
        o, here = self.options, self.order[at]
        if at + 1 == len(self.order):
            return True, False
        begins_tile = self.tile[self.order[at + 1]] != self.tile[here]
        whole = {start: start == 0 or self.tile[self.order[start]] != self.tile[self.order[start - 1]] for start in (segment, first)}
        dependent = bool(o.dependent) and bool(self.chance(0.6))
        if len(self.tile_starts) > 1:
            if begins_tile:
                if not whole[segment] or not whole[first]:
                    return True, dependent and whole[first]
                return bool(self.chance(o.split)), dependent
            mine = self.tile[self.order[segment]] == self.tile[here], self.tile[self.order[first]] == self.tile[here]
            return bool(mine[0] and (dependent or mine[1]) and self.chance(o.split)), dependent
        if o.wavefront and (here + 1) % o.across == 0:
            mid = self.order[segment] % o.across or self.order[first] % o.across
            if mid:
                return True, dependent and not self.order[first] % o.across
        return bool(self.chance(o.split)), dependent

    def code(self, header: dict[str, int]) -> Iterator[bytes]:
        """The payloads of all segments, header included."""
        o = self.options
        self.tile_starts = [at for at, address in enumerate(self.order) if not at or self.tile[address] != self.tile[self.order[at - 1]]]
        at, first, is_dependent = 0, 0, False
        stored, second = list[int](), list[int]()
        while at < len(self.order):
            segment, ends = at, False
            if not is_dependent:
                first, self.slice = at, self.order[at]
                self.merge_count, self.counts = self.random.randint(1, 5), [self.random.randint(1, o.references) for _ in range(2)]
                self.qp, self.swapped = self.random.randint(20, 38), bool(self.chance(0.5))
                self.zero_1, self.sao = self.chance(0.5), [int(o.sao and self.chance(0.8)) for _ in range(2)]
            body = Stream()
            self.cabac, sizes = Cabac(body), list[int]()
            while not ends:
                self.address = self.order[at]
                x, y = self.address % o.across, self.address // o.across
                self.slice_of[self.address] = self.slice
                begins_tile, row = (
                    at in self.tile_starts,
                    o.wavefront and (x == 0 or self.tile[self.address] != self.tile[self.address - 1]),
                )
                if begins_tile or row or at == segment:
                    if at != segment:
                        self.cabac.terminate(1)
                        sizes.append(len(body.bytes()))
                    above = self.address - o.across + 1
                    has_above = row and y and x + 1 < o.across and self.slice_of[above] == self.slice and (
                        self.tile[above] == self.tile[self.address])  # fmt: skip
                    if row and not begins_tile and has_above:
                        self.cabac.states = list(second)
                    elif not begins_tile and not row and at == segment and is_dependent:
                        self.cabac.states = list(stored)
                    else:
                        self.cabac.reset(self.type, self.qp, self.swapped)
                self.tree_block(x, y)
                if x and self.tile[self.address] == self.tile[self.address - 1] and (
                        x == 1 or self.tile[self.address] != self.tile[self.address - 2]):  # fmt: skip
                    second = list(self.cabac.states)
                ends, next_dependent = self._ends(at, segment, first)
                if ends:
                    stored = list(self.cabac.states)
                self.cabac.terminate(int(ends))
                at += 1
            yield slice_header(o, self, header, self.order[segment], is_dependent, sizes) + body.bytes()
            is_dependent = next_dependent

    # -- coding tree ---------------------------------------------------------------------------------------------------

    def tree_block(self, x: int, y: int) -> None:
        if self.options.sao:
            self.offsets(x, y)
        self.tree(x << self.options.ctb, y << self.options.ctb, self.options.ctb, 0)

    def offsets(self, x: int, y: int) -> None:
        c, o, random = self.cabac, self.options, self.random
        if not any(self.sao):
            return
        for there, px, py in ((x > 0, x - 1, y), (y > 0, x, y - 1)):
            if there and self.is_beside(px << o.ctb, py << o.ctb) and c.bit(SAO_MERGE, self.chance(0.3)):
                return
        kind = 0
        for component in range(3):
            if not self.sao[component > 0]:
                continue
            if component < 2:
                kind = random.randint(0, 2)
                if c.bit(SAO_TYPE, int(kind > 0)):
                    c.bypass(kind - 1)
            if not kind:
                continue
            most = (1 << (min(o.depth, 10) - 5)) - 1
            values = [random.randint(0, most) for _ in range(4)]
            for value in values:
                c.ones(value, most)
            if kind == 1:
                for value in values:
                    if value:
                        c.bypass(self.chance(0.5))
                c.bypass(random.randint(0, 31), 5)
            elif component < 2:
                c.bypass(random.randint(0, 3), 2)

    def tree(self, x: int, y: int, log2: int, depth: int) -> None:
        o, size = self.options, 1 << log2
        split = int(log2 > o.block)
        if split and x + size <= o.width and y + size <= o.height:
            deeper = sum(self.is_beside(px, py) and self.depth[py >> 3][px >> 3] > depth for px, py in ((x - 1, y), (x, y - 1)))
            split = self.cabac.bit(SPLIT_CU + deeper, self.chance(0.5))
        if log2 >= o.ctb - o.qp_depth:
            self.qp_coded = False
        if not split:
            self.unit(x, y, log2, depth)
            return
        for i in range(4):
            px, py = x + (i & 1) * size // 2, y + (i >> 1) * size // 2
            if px < o.width and py < o.height:
                self.tree(px, py, log2 - 1, depth + 1)

    def unit(self, x: int, y: int, log2: int, depth: int) -> None:
        c, o = self.cabac, self.options
        unit = Unit(x, y, log2, True)
        if o.bypass:
            unit.bypass = c.bit(BYPASS, self.chance(0.15))
        skip = 0
        if self.type != I_SLICE:
            skipped = sum(self.is_beside(px, py) and self.skip[py >> 3][px >> 3] for px, py in ((x - 1, y), (x, y - 1)))
            skip = c.bit(SKIP + skipped, self.chance(0.3))
            unit.intra = not skip and bool(c.bit(PRED_MODE, self.chance(0.3)))
        for row in range(y >> 3, y + (1 << log2) >> 3):
            for column in range(x >> 3, x + (1 << log2) >> 3):
                self.depth[row][column], self.skip[row][column] = depth, skip
        self.fill(x, y, 1 << log2, DC)
        if skip:
            self.merge_index()
            return
        if not unit.intra or log2 == o.block:
            self.part_mode(unit)
        if unit.intra:
            if self.pcm(unit):
                return
            self.intra_modes(unit)
            self.transforms(unit, x, y, log2, 0, 0, (1, 1))
        elif self.prediction(unit, depth):
            self.transforms(unit, x, y, log2, 0, 0, (1, 1))

    def fill(self, x: int, y: int, size: int, mode: int) -> None:
        for row in range(y >> 2, y + size >> 2):
            self.mode[row][x >> 2 : x + size >> 2] = [mode] * (size >> 2)

    def part_mode(self, unit: Unit) -> None:
        c, o = self.cabac, self.options
        least = unit.log2 == o.block
        if unit.intra:
            unit.part = 3 * (1 - c.bit(PART_MODE, self.chance(0.5)))
            return
        if c.bit(PART_MODE, self.chance(0.3)):
            return
        flat = c.bit(PART_MODE + 1, self.chance(0.5))
        if least:
            unit.part = 1 if flat else 2
            if not flat and unit.log2 > 3 and not c.bit(PART_MODE + 2, self.chance(0.5)):
                unit.part = 3
        elif not o.amp or c.bit(PART_MODE + 3, self.chance(0.3)):
            unit.part = 1 if flat else 2
        else:
            second = self.chance(0.5)
            c.bypass(second)
            unit.part = (4 if flat else 6) + second

    def pcm(self, unit: Unit) -> bool:
        o, c = self.options, self.cabac
        if o.pcm is None or unit.part or not o.pcm[0] <= unit.log2 <= o.pcm[1]:
            return False
        if not c.terminate(self.chance(0.25)):
            return False
        count = 1 << 2 * unit.log2
        for bits, samples in zip(o.pcm_bits, (count, count // 2), strict=True):
            for _ in range(samples):
                c.stream.u(bits, self.random.getrandbits(bits))
        c.stream.align()
        return True

    def intra_modes(self, unit: Unit) -> None:
        c, parts = self.cabac, 4 if unit.part else 1
        size = (1 << unit.log2) // (2 if unit.part else 1)
        probable = [c.bit(MPM, self.chance(0.4)) for _ in range(parts)]
        for i in range(parts):
            x, y = unit.x + (i & 1) * size, unit.y + (i >> 1) * size
            candidates = self.candidates(x, y)
            if probable[i]:
                index = self.random.randint(0, 2)
                c.ones(index, 2)
                mode = candidates[index]
            else:
                mode = self.random.randint(0, 31)
                c.bypass(mode, 5)
                for candidate in sorted(candidates):
                    mode += mode >= candidate
            unit.modes[i] = mode
            self.fill(x, y, size, mode)
        if parts == 1:
            unit.modes = unit.modes[:1] * 4
        unit.chroma = unit.modes[0]
        if c.bit(CHROMA_MODE, self.chance(0.5)):
            index = self.random.randint(0, 3)
            c.bypass(index, 2)
            mode = (0, 26, 10, 1)[index]
            unit.chroma = 34 if mode == unit.modes[0] else mode

    def candidates(self, x: int, y: int) -> list[int]:
        a = self.mode[y >> 2][x - 1 >> 2] if self.is_beside(x - 1, y) else DC
        b = self.mode[y - 1 >> 2][x >> 2] if self.is_beside(x, y - 1) and y & (1 << self.options.ctb) - 1 else DC
        if a != b:
            return [a, b, next(mode for mode in (PLANAR, DC, 26) if mode not in (a, b))]
        return [PLANAR, DC, 26] if a < 2 else [a, 2 + (a + 29) % 32, 2 + (a - 1) % 32]

    # -- inter ---------------------------------------------------------------------------------------------------------

    def merge_index(self) -> None:
        index = self.random.randint(0, self.merge_count - 1)
        if self.merge_count > 1 and self.cabac.bit(MERGE_INDEX, int(index > 0)):
            self.cabac.ones(index - 1, self.merge_count - 2)

    def prediction(self, unit: Unit, depth: int) -> int:
        """Prediction units; whether the unit has coefficients."""
        c, size, merge = self.cabac, 1 << unit.log2, 0
        quarter, half = size // 4, size // 2
        shapes = ([(size, size)], [(size, half)] * 2, [(half, size)] * 2, [(half, half)] * 4, [(size, quarter), (size, size - quarter)],
                  [(size, size - quarter), (size, quarter)], [(quarter, size), (size - quarter, size)],
                  [(size - quarter, size), (quarter, size)])  # fmt: skip
        for width, height in shapes[unit.part]:
            merge = c.bit(MERGE_FLAG, self.chance(0.4))
            if merge:
                self.merge_index()
            else:
                self.motion(width, height, depth)
        return 1 if merge and not unit.part else c.bit(ROOT_CBF, self.chance(0.6))

    def motion(self, width: int, height: int, depth: int) -> None:
        c, lists = self.cabac, 1
        if self.type == B_SLICE:
            lists = self.random.randint(1, 3 if width + height != 12 else 2)
            if (width + height == 12 or not c.bit(LISTS + depth, int(lists == 3))) and lists < 3:
                c.bit(LISTS + 4, lists - 1)
        for number in range(2):
            if not lists >> number & 1:
                continue
            index, count = self.random.randint(0, self.counts[number] - 1), self.counts[number]
            for i in range(min(index + 1, count - 1)):
                if i < 2:
                    c.bit(REFERENCE + i, int(i < index))
                else:
                    c.bypass(int(i < index))
            if not (number and self.zero_1 and lists == 3):
                self.difference()
            c.bit(PREDICTOR, self.chance(0.5))

    def difference(self) -> None:
        c = self.cabac
        values = [self.random.choice((0, 0, 1, -1, self.random.randint(-30, 30))) for _ in range(2)]
        for value in values:
            c.bit(VECTOR_0, int(value != 0))
        for value in values:
            if value:
                c.bit(VECTOR_1, int(abs(value) > 1))
        for value in values:
            if abs(value) > 1:
                c.exp_golomb(abs(value) - 2, 1)
            if value:
                c.bypass(int(value < 0))


def clip(seed: int, count: int, **options: object) -> bytes:
    """Pictures of random syntax: the first intra, the others inter."""
    chosen, random = Options(**options), Random(seed)  # type: ignore[arg-type]
    stream = parameter_sets(chosen)
    for number in range(count):
        kind = I_SLICE if not number else B_SLICE if chosen.b_slices and number % 3 else P_SLICE
        for payload in Slices(random, chosen, kind).code({"number": number}):
            stream += nal(19 if not number else 1, payload)
    return stream


def nal(kind: int, payload: bytes) -> bytes:
    """A NAL unit, emulation prevented."""
    return b"\0\0\0\1" + bytes([kind << 1, 1]) + re.sub(rb"\0\0(?=[\0-\3])", b"\0\0\3", payload)
