"""Random legal macroblocks of H.264, as MFC_AVC_PAK_OBJECT has them."""

from __future__ import annotations

import random
import struct

P_SLICE, B_SLICE, I_SLICE = range(3)
ALL_CODED = 0xFFFF
# Lists of both parts of macroblocks of two parts, for types 4, 6 … (table 7-14): 1 list 0, 2 list 1, 3 both.
PAIRS = ((1, 1), (2, 2), (1, 2), (2, 1), (1, 3), (2, 3), (3, 1), (3, 2), (3, 3))
NEEDS = ("t", "l", "", "t", "ltc", "ltc", "ltc", "t", "l")  # samples that a mode of 4x4 and 8x8 blocks needs


class RandomMacroblocks:
    """Draws macroblocks; `kinds` are the kinds it may draw."""

    def __init__(self, seed: int, transform8: bool, kinds: str = "intra16 intra4 intra8 pcm parts quarters skip direct") -> None:
        self.random, self.transform8, self.kinds = random.Random(seed), transform8, kinds.split()
        self.qp = 26

    def draw(self, type: int, x: int, y: int, first_row: int, counts: tuple[int, ...], last: bool) -> tuple[list[int], bytes]:
        """Inline dwords of a macroblock, and its vectors; `first_row`: of its slice."""
        possible = [kind for kind in self.kinds if kind.startswith("intra") or kind == "pcm" or type != I_SLICE]
        possible = [kind for kind in possible if (kind != "direct" or type == B_SLICE) and (kind != "intra8" or self.transform8)]
        weights = [1 if kind in ("pcm",) else 4 if kind in ("parts", "quarters") else 2 for kind in possible]
        kind = self.random.choices(possible, weights)[0]
        dwords, vectors = [0] * 8, b""
        self._common(dwords, x, y, last)
        edges = {"l": x > 0, "t": y > first_row, "c": x > 0 and y > first_row}
        if kind == "pcm":
            dwords[0] |= 25 << 8 | 1 << 13
        elif kind.startswith("intra"):
            self._intra(dwords, kind, edges)
        elif kind == "skip":
            dwords[0] |= 1 << 2
        else:
            vectors = self._inter(dwords, kind, type, counts)
        return dwords, vectors

    def _common(self, dwords: list[int], x: int, y: int, last: bool) -> None:
        self.qp = min(max(self.qp + self.random.randint(-6, 6), 8), 46)
        coded = self.random.choice((ALL_CODED, ALL_CODED, self.random.getrandbits(16), 0))
        chroma = self.random.choice((0x000F000F, 0, self.random.getrandbits(32) & 0x000F000F))
        dwords[0] = self.random.choice((7, 7, 7, self.random.getrandbits(3))) << 17
        dwords[1], dwords[2] = x | y << 8 | coded << 16, chroma
        dwords[3] = self.qp | self.random.getrandbits(1) << 25 | last << 26

    def _intra(self, dwords: list[int], kind: str, edges: dict[str, bool]) -> None:
        whole = [mode for mode, needs in enumerate(("", "l", "t", "ltc")) if all(edges[name] for name in needs)]
        dwords[6] = self.random.choice(whole)
        dwords[0] |= 1 << 13 | (kind == "intra8") << 15
        if kind == "intra16":
            modes = [mode for mode, needs in enumerate(("t", "l", "", "ltc")) if all(edges[name] for name in needs)]
            dwords[0] |= 1 + self.random.choice(modes) + 4 * self.random.randrange(6) << 8
            return
        for block in range(16):
            at = block & ~3 if kind == "intra8" else block
            bx, by = (at & 1) + (at >> 2 & 1) * 2, (at >> 1 & 1) + (at >> 3) * 2
            inside = {"l": bx > 0 or edges["l"], "t": by > 0 or edges["t"]}
            inside["c"] = edges["c"] if not bx and not by else edges["t"] if not by else edges["l"] if not bx else True
            modes = [mode for mode, needs in enumerate(NEEDS) if all(inside[name] for name in needs)]
            dwords[4 + block // 8] |= self.random.choice(modes) << 4 * (block % 8)

    def _inter(self, dwords: list[int], kind: str, type: int, counts: tuple[int, ...]) -> bytes:
        shape = self.random.randrange(3) if kind == "parts" else 3
        dwords[0] |= shape | self.random.getrandbits(1) << 15
        if kind == "direct":
            dwords[0] |= 22 << 8
            dwords[3] |= 15 << 28
            return b""
        if shape == 3:
            dwords[0] |= 22 << 8
            lists = [0] * 4 if type == P_SLICE else [self.random.randrange(3) for _ in range(4)]
            dwords[4] = self.random.getrandbits(8) | sum(found << 8 + 2 * i for i, found in enumerate(lists))
            dwords[3] |= (self.random.getrandbits(4) if type == B_SLICE else 0) << 28
            indices = [[self.random.randrange(max(count, 1)) for _ in range(4)] for count in counts]
        else:
            pair = self.random.randrange(9) if type == B_SLICE else 0
            dwords[0] |= ((self.random.randint(1, 3) if type == B_SLICE else 1) if shape == 0 else 4 + 2 * pair + shape - 1) << 8
            both = [[self.random.randrange(max(count, 1)) for _ in range(2)] for count in counts]
            part = (lambda i: 0, lambda i: i >> 1, lambda i: i & 1)[shape]
            indices = [[two[part(i)] for i in range(4)] for two in both]
        for list, found in enumerate(indices):
            dwords[5 + list] = sum(index << 8 * i for i, index in enumerate(found))
        pairs = 4 if shape < 3 and self.random.getrandbits(1) else 16
        reach = self.random.choice((3, 40, 200))
        return struct.pack(f"<{4 * pairs}h", *(self.random.randint(-reach, reach) for _ in range(4 * pairs)))
