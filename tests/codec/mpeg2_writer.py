"""MPEG-2 streams of random macroblocks: field pictures, 16x8 and dual prime vectors, concealment vectors, which ffmpeg never writes.

Codes come from mpeg2_codes.c; a stream is right if ffmpeg decodes it without complaint (record.py).
"""

from __future__ import annotations

import random
import re

from tests.conftest import ROOT

TABLES = (ROOT / "softgen/codec/bits/mpeg2_codes.c").read_text("utf-8")
INTRA, P, B = 1, 2, 3
TOP, BOTTOM, FRAME = 1, 2, 3
TYPES = {  # quant, forward, backward, pattern, intra -> code
    INTRA: {(0, 0, 0, 0, 1): "1", (1, 0, 0, 0, 1): "01"},
    P: {(0, 1, 0, 1, 0): "1", (0, 0, 0, 1, 0): "01", (0, 1, 0, 0, 0): "001", (0, 0, 0, 0, 1): "00011", (1, 1, 0, 1, 0): "00010"},
    B: {(0, 1, 1, 0, 0): "10", (0, 1, 1, 1, 0): "11", (0, 0, 1, 0, 0): "010", (0, 0, 1, 1, 0): "011", (0, 1, 0, 0, 0): "0010",
        (0, 1, 0, 1, 0): "0011", (0, 0, 0, 0, 1): "00011"},
}  # fmt: skip


def table(name: str) -> dict[str, str]:
    """Codes by value or name."""
    found = re.search(rf"\b{name}\[\d+\] = {{(.*?)\n}};", TABLES, re.DOTALL)
    assert found
    rows = re.findall(r"{(0x[0-9a-f]+), (\d+), (\w+)}", found.group(1))
    return {value: f"{int(code, 16):0{length}b}" for code, length, value in rows}


INCREMENT, PATTERN, MOTION, DC_LUMA, DC_CHROMA, COEFFICIENTS = map(table, (
    "mpeg2_address_increment", "mpeg2_pattern", "mpeg2_motion", "mpeg2_dc_luma", "mpeg2_dc_chroma", "mpeg2_coefficients"))  # fmt: skip
END = COEFFICIENTS["END_OF_BLOCK"]
F_CODE = 2


class Mpeg2Writer:
    """A stream of one size, whose pictures are written one after another."""

    def __init__(self, width: int, height: int, seed: int) -> None:
        self.size, self.random, self.bits = (width, height), random.Random(seed), ""
        self.start(0xB3)
        self.put((width, 12), (height, 12), (1, 4), (3, 4), (10000, 18), (1, 1), (100, 10), (0, 3))
        self.start(0xB5)
        self.put((1, 4), (0x48, 8), (0, 1), (1, 2), (0, 2), (0, 2), (0, 12), (1, 1), (0, 8), (0, 1), (0, 2), (0, 5))

    def put(self, *fields: tuple[int, int]) -> None:
        self.bits += "".join(f"{value:0{width}b}" for value, width in fields)

    def start(self, code: int) -> None:
        self.bits += "0" * (-len(self.bits) % 8)
        self.put((0x100 | code, 32))

    def stream(self) -> bytes:
        self.start(0xB7)
        return int(self.bits, 2).to_bytes(len(self.bits) // 8, "big")

    def picture(self, number: int, type: int, structure: int, dual: bool = False) -> None:
        """A picture; `dual`: its vectors are of dual prime, for P pictures that no B picture comes between."""
        self.type, self.structure, self.dual, self.concealment = type, structure, dual, int(type != B)
        self.start(0)
        self.put((number, 10), (type, 3), (0xFFFF, 16), *[(7, 4)] * (type - 1), (0, 1))
        self.start(0xB5)
        forward, backward = (F_CODE if type != INTRA or self.concealment else 15), F_CODE if type == B else 15
        self.put((8, 4), *[(forward, 4)] * 2, *[(backward, 4)] * 2, (0, 2), (structure, 2), (int(structure == FRAME), 1), (0, 1),
                 (self.concealment, 1), (0, 4), (0, 1), (0, 1), (0, 1))  # fmt: skip
        for row in range(self.size[1] // 16 // (1 if structure == FRAME else 2)):
            self.slice(row)

    def slice(self, row: int) -> None:
        self.start(row + 1)
        self.put((4, 5), (0, 1))
        self.dc, self.skips, columns = [128] * 3, 1, self.size[0] // 16
        self.reset()
        for x in range(columns):
            if x not in (0, columns - 1) and self.type == P and self.random.random() < 0.15:
                self.skips += 1
                self.dc = [128] * 3
                self.reset()
                continue
            self.bits += INCREMENT[str(self.skips)]
            self.skips, self.at = 1, (x, row)
            self.macroblock()

    def reset(self) -> None:
        self.vectors = [[[0, 0], [0, 0]], [[0, 0], [0, 0]]]  # PMV

    def macroblock(self) -> None:
        choices = sorted(TYPES[self.type])
        if self.dual and self.is_at_border():  # its second vectors may go a little further than the first
            choices = [modes for modes in choices if not modes[1]]
        modes = self.random.choice(choices)
        quant, forward, backward, pattern, intra = modes
        self.bits += TYPES[self.type][modes]
        motion = 3 if self.dual and forward else self.random.choice((1, 2))
        if forward or backward:
            self.put((motion, 2))
        if self.structure == FRAME and (intra or pattern):
            self.put((self.random.randrange(2), 1))
        if quant:
            self.put((self.random.randrange(1, 9), 5))
        if forward or intra and self.concealment:
            self.motion(0, motion if forward else 2 if self.structure == FRAME else 1)
        if backward:
            self.motion(1, motion)
        if intra and self.concealment:
            self.put((1, 1))
        elif intra or not (forward or backward):
            self.reset()
        coded = 63 if intra else self.random.randrange(1, 64) if pattern else 0
        if pattern:
            self.bits += PATTERN[str(coded)]
        if not intra:
            self.dc = [128] * 3
        for block in range(6):
            if coded >> (5 - block) & 1:
                self.block(block, bool(intra))

    def motion(self, s: int, type: int) -> None:
        frame = self.structure == FRAME
        two, dual, halved = type == (1 if frame else 2), type == 3, frame and type != 2
        for r in range(1 + two):
            if not dual and not (frame and type == 2):
                self.put((self.random.randrange(2), 1))
            for axis in range(2):
                self.component(r, s, axis, halved and axis == 1)
                if dual:
                    self.bits += self.random.choice(("0", "10", "11"))
        if not two:
            self.vectors[1][s] = list(self.vectors[0][s])

    def is_at_border(self) -> bool:
        rows = self.size[1] // 16 // (1 if self.structure == FRAME else 2)
        return self.at[0] in (0, self.size[0] // 16 - 1) or self.at[1] in (0, rows - 1)

    def component(self, r: int, s: int, axis: int, halved: bool) -> None:
        """A vector's component; it stays in the picture, as others are illegal and ffmpeg predicts nothing from them."""
        before = self.vectors[r][s][axis] >> 1 if halved else self.vectors[r][s][axis]
        side = self.size[axis] // (2 if axis and (halved or self.structure != FRAME) else 1)
        block = 8 if halved else 16
        place = block * self.at[axis] if axis else 16 * self.at[0]
        reach = 6 if self.dual else 13
        target = self.random.randint(max(-reach, -2 * place), min(reach, 2 * (side - (block if axis else 16) - place)))
        change, scale = target - before, 1 << (F_CODE - 1)
        code = (abs(change) + scale - 1) // scale
        self.bits += MOTION[str(code)]
        if code:
            self.put((int(change < 0), 1), ((abs(change) - 1) % scale, F_CODE - 1))
        self.vectors[r][s][axis] = 2 * target if halved else target

    def block(self, block: int, intra: bool) -> None:
        plane, count = max(block - 3, 0), self.random.randrange(4)
        if intra:
            target = self.random.randrange(40, 216)
            change, self.dc[plane] = target - self.dc[plane], target
            size = abs(change).bit_length()
            self.bits += (DC_CHROMA if plane else DC_LUMA)[str(size)]
            if size:
                self.put((change if change > 0 else change + (1 << size) - 1, size))
        else:
            self.bits += "1" + self.random.choice("01")  # run 0, level 1, as the first
        for _ in range(count):
            run, level = self.random.choice(((0, 1), (0, 2), (1, 1), (3, 1), (0, 5), (5, 2)))
            self.bits += COEFFICIENTS[str(64 * run + level)] + self.random.choice("01")
        self.bits += END


def fields(width: int, height: int, seed: int) -> bytes:
    """Field pictures of all types, dual prime in both structures, and a frame picture between."""
    w = Mpeg2Writer(width, height, seed)
    w.picture(0, INTRA, TOP)
    w.picture(0, INTRA, BOTTOM)  # one that is predicted would have nothing but the field before it
    w.picture(1, P, FRAME, dual=True)
    w.picture(2, P, TOP, dual=True)
    w.picture(2, P, BOTTOM, dual=True)
    w.picture(4, P, BOTTOM)
    w.picture(4, P, TOP)
    w.picture(3, B, TOP)
    w.picture(3, B, BOTTOM)
    w.picture(6, P, FRAME)
    w.picture(5, B, FRAME)
    return w.stream()
