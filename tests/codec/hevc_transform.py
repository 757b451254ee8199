"""Transform trees and coefficients of the HEVC streams that hevc_writer.py makes (7.3.8.8 to 7.3.8.11 of H.265)."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.codec.hevc_cabac import (
    CBF_CHROMA,
    CBF_LUMA,
    DIAGONAL,
    GREATER_1,
    GREATER_2,
    LAST_X,
    LAST_Y,
    QP_DELTA,
    SIGNIFICANT,
    SPLIT_TRANSFORM,
    SUB_BLOCK,
    TRANSFORM_SKIP,
    Cabac,
)
from tests.codec.hevc_headers import Options


@dataclass
class Unit:
    """A coding unit."""

    x: int
    y: int
    log2: int
    intra: bool
    part: int = 0  # 2Nx2N, 2NxN, Nx2N, NxN, 2NxnU, 2NxnD, nLx2N, nRx2N
    bypass: int = 0
    modes: list[int] = field(default_factory=lambda: [1] * 4)
    chroma: int = 1


class TransformWriter:
    """What a slice writes of a coding unit behind its prediction."""

    cabac: Cabac
    options: Options
    random: Random
    qp_coded: bool

    def chance(self, share: float) -> int:
        return int(self.random.random() < share)

    def transforms(self, unit: Unit, x: int, y: int, log2: int, depth: int, part: int, chroma: tuple[int, int]) -> None:
        c, o = self.cabac, self.options
        parts, most = unit.intra and unit.part > 0, o.depth_intra + (unit.part > 0) if unit.intra else o.depth_inter
        if o.transform < log2 <= o.most_transform and depth < most and not (parts and not depth):
            split = c.bit(SPLIT_TRANSFORM + 5 - log2, self.chance(0.4))
        else:
            inferred = not o.depth_inter and not unit.intra and unit.part > 0 and not depth
            split = int(log2 > o.most_transform or (parts and not depth) or inferred)
        if log2 > 2:
            cb = chroma[0] and c.bit(CBF_CHROMA + depth, self.chance(0.5))
            cr = chroma[1] and c.bit(CBF_CHROMA + depth, self.chance(0.5))
            chroma = cb, cr
        if split:
            half = 1 << log2 - 1
            for i in range(4):
                self.transforms(unit, x + (i & 1) * half, y + (i >> 1) * half, log2 - 1, depth + 1, i, chroma)
            return
        luma = c.bit(CBF_LUMA + (not depth), self.chance(0.6)) if unit.intra or depth or any(chroma) else 1
        self.transform_unit(unit, x, y, log2, part, luma, chroma)

    def transform_unit(self, unit: Unit, x: int, y: int, log2: int, part: int, luma: int, chroma: tuple[int, int]) -> None:
        if luma or any(chroma):
            self.qp_delta()
        half = unit.log2 - 1
        mode = unit.modes[(x - unit.x >> half) + 2 * (y - unit.y >> half)] if unit.part == 3 else unit.modes[0]
        if luma:
            self.residual(unit, log2, 0, mode)
        for component in (1, 2):
            if chroma[component - 1] and (log2 > 2 or part == 3):
                self.residual(unit, max(log2 - 1, 2), component, unit.chroma)

    def qp_delta(self) -> None:
        if self.qp_coded:
            return
        self.qp_coded, value, c = True, self.random.choice((0, 0, 1, -1, 3, -4, 7, -8)), self.cabac
        for i in range(min(abs(value) + 1, 5)):
            c.bit(QP_DELTA + (i > 0), int(i < abs(value)))
        if abs(value) >= 5:
            c.exp_golomb(abs(value) - 5, 0)
        if value:
            c.bypass(int(value < 0))

    def residual(self, unit: Unit, log2: int, component: int, mode: int) -> None:
        c, o, random, size = self.cabac, self.options, self.random, 1 << log2
        if o.transform_skip and not unit.bypass and log2 == 2:
            c.bit(TRANSFORM_SKIP + (component > 0), self.chance(0.4))
        by_mode = unit.intra and (log2 == 2 or (log2 == 3 and not component))
        kind = 2 if by_mode and 6 <= mode <= 14 else 1 if by_mode and 22 <= mode <= 30 else 0
        scan = [DIAGONAL[1], [(i & 3, i >> 2) for i in range(16)], [(i >> 2, i & 3) for i in range(16)]][kind]
        blocks = (
            [(0, 0)] if log2 == 2 else [DIAGONAL[log2 - 3], [(i & 1, i >> 1) for i in range(4)], [(i >> 1, i & 1) for i in range(4)]][kind]
        )
        reach, share = random.choice((1, 2, size // 2, size)), random.choice((0.05, 0.3, 0.8))
        levels = {(x, y): random.choice((1, -1, 1, -1, 2, -2, 3, random.randint(-40, 40) or 5, random.choice((300, -700, 1))))
                  for x in range(reach) for y in range(reach) if random.random() < share} or {(0, 0): 1}  # fmt: skip
        path = [(4 * bx + x, 4 * by + y) for bx, by in blocks for x, y in scan]
        last = max(i for i, at in enumerate(path) if at in levels)
        self.last(path[last] if kind != 2 else path[last][::-1], log2, component)
        flags, greater, is_first = set[tuple[int, int]](), 1, True
        for i in range(last >> 4, -1, -1):
            bx, by = blocks[i]
            inside, right, below = 0 < i < last >> 4, (bx + 1, by) in flags, (bx, by + 1) in flags
            places = [j for j in range(15, -1, -1) if path[16 * i + j] in levels]
            if inside:
                c.bit(SUB_BLOCK + (2 if component else 0) + (right or below), int(bool(places)))
            if not inside or places:
                flags.add((bx, by))
            if inside and not places:
                continue
            first = (last & 15) - 1 if i == last >> 4 else 15
            self.significance(log2, component, kind, i, first, scan, right + 2 * below, places, inside)
            if places:
                values = [levels[path[16 * i + j]] for j in places]
                hides = o.sign_hiding and not unit.bypass and places[0] - places[-1] > 3
                greater = self.levels(component, i, is_first, greater, values, bool(hides))
                is_first = False

    def last(self, place: tuple[int, int], log2: int, component: int) -> None:
        """Prefixes of both coordinates, then suffixes; the first is that of x."""
        c, codes = self.cabac, []
        for value in place:
            prefix = value
            if value > 3:
                bits = value.bit_length() - 2
                prefix = 2 * bits + (value >> bits)
            codes.append(prefix)
        for prefix, first in zip(codes, (LAST_X, LAST_Y), strict=True):
            offset, shift = (15, log2 - 2) if component else (3 * (log2 - 2) + (log2 - 1 >> 2), log2 + 1 >> 2)
            for i in range(min(prefix + 1, 2 * log2 - 1)):
                c.bit(first + offset + (i >> shift), int(i < prefix))
        for prefix, value in zip(codes, place, strict=True):
            if prefix > 3:
                bits = (prefix >> 1) - 1
                c.bypass(value & (1 << bits) - 1, bits)

    def significance(self, log2: int, component: int, kind: int, block: int, first: int, scan: list[tuple[int, int]], beside: int,
                     places: list[int], inferred: bool) -> None:  # fmt: skip
        for j in range(first, -1, -1):
            x, y = scan[j]
            value = int(j in places)
            if not j and inferred and not any(place > 0 for place in places):
                return
            if log2 == 2:
                context = (0, 1, 4, 5, 2, 3, 4, 5, 6, 6, 8, 8, 7, 7, 8, 8)[4 * y + x]
            elif not j and not block:
                context = 0
            else:
                context = (2 if not x + y else int(x + y < 3), max(2 - y, 0), max(2 - x, 0), 2)[beside]
                if component:
                    context += 9 if log2 == 3 else 12
                else:
                    context += (3 if block else 0) + ((15 if kind else 9) if log2 == 3 else 21)
            self.cabac.bit(SIGNIFICANT + (27 if component else 0) + context, value)

    def levels(self, component: int, block: int, is_first: bool, greater: int, values: list[int], hides: bool) -> int:
        """Levels of a block of 4x4; the context that the next block goes on from."""
        c, chosen = self.cabac, (2 if block and not component else 0) + (not is_first and not greater)
        greater, above, rice = 1, -1, 0
        bases = [1] * len(values)
        for i, value in enumerate(values[:8]):
            if c.bit(GREATER_1 + (16 if component else 0) + 4 * chosen + greater, int(abs(value) > 1)):
                above = i if above < 0 else above
                bases[i], greater = 2, 0
            elif 0 < greater < 3:
                greater += 1
        if above >= 0:
            bases[above] += c.bit(GREATER_2 + (4 if component else 0) + chosen, int(abs(values[above]) > 2))
        for value in values[: len(values) - hides]:
            c.bypass(int(value < 0))
        for i, value in enumerate(values):
            most = 1 if i >= 8 else 3 if i == above else 2
            if bases[i] != most:
                continue
            self.remaining(abs(value) - bases[i], rice)
            rice = min(rice + (abs(value) > 3 << rice), 4)
        return greater

    def remaining(self, value: int, rice: int) -> None:
        c = self.cabac
        if value >> rice < 4:
            c.bypass((1 << (value >> rice) + 1) - 2, (value >> rice) + 1)
            c.bypass(value & (1 << rice) - 1, rice)
            return
        prefix = 4
        while value >= (1 << prefix - 2) + 2 << rice:
            prefix += 1
        c.bypass((1 << prefix + 1) - 2, prefix + 1)
        c.bypass(value - ((1 << prefix - 3) + 2 << rice), prefix - 3 + rice)
