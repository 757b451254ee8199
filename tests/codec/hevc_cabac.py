"""The arithmetic coder of the HEVC streams that hevc_writer.py makes, with the tables of the C code: ffmpeg judges both."""

from __future__ import annotations

import re
from pathlib import Path

from tests.codec.hevc_headers import Stream
from tests.conftest import ROOT

CODEC = Path(ROOT) / "softgen/codec"
B_SLICE, P_SLICE, I_SLICE = range(3)  # slice_type


def numbers(path: str, name: str) -> list[int]:
    """The numbers of a table of the C code."""
    text = (CODEC / path).read_text("utf-8").partition(f" {name}[")[2].partition("= {")[2].partition("};")[0]
    return [int(number, 0) for number in re.findall(r"0x[0-9A-Fa-f]+|\d+", text)]


LPS = numbers("bits/cabac_avc.c", "avc_lps_range")
NEXT = numbers("bits/cabac_avc.c", "avc_next_state")
INIT = numbers("hcp/hevc/tables.c", "hevc_context_init")
CONTEXTS = len(INIT) // 3
DIAGONAL = [[(at & 15, at >> 4) for at in numbers("hcp/hevc/tables.c", "hevc_diagonal")[first:last]] for first, last in
            ((0, 4), (4, 20), (20, 84))]  # fmt: skip
(SAO_MERGE, SAO_TYPE, SPLIT_CU, BYPASS, SKIP, QP_DELTA, PRED_MODE, PART_MODE, MPM, CHROMA_MODE, MERGE_FLAG, MERGE_INDEX, LISTS, REFERENCE,
 VECTOR_0, VECTOR_1, PREDICTOR, ROOT_CBF, SPLIT_TRANSFORM, CBF_LUMA, CBF_CHROMA, TRANSFORM_SKIP, LAST_X, LAST_Y, SUB_BLOCK, SIGNIFICANT,
 GREATER_1, GREATER_2) = (0, 1, 2, 5, 6, 9, 11, 12, 16, 17, 18, 19, 20, 25, 27, 28, 29, 30, 31, 34, 36, 40, 42, 60, 78, 82, 124,
                          148)  # fmt: skip


class Cabac:
    """The arithmetic coder (9.3.5 of H.264, which HEVC shares), with the contexts of a slice."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.states = stream, [0] * CONTEXTS
        self.start()

    def start(self) -> None:
        self.low, self.range, self.first, self.outstanding = 0, 510, True, 0

    def reset(self, slice_type: int, qp: int, swapped: bool) -> None:
        kind = 0 if slice_type == I_SLICE else 1 if (slice_type == P_SLICE) != swapped else 2
        for i, value in enumerate(INIT[kind * CONTEXTS : (kind + 1) * CONTEXTS]):
            state = min(max((((value >> 4) * 5 - 45) * qp >> 4) + ((value & 15) << 3) - 16, 1), 126)
            self.states[i] = 2 * (63 - state) if state <= 63 else 2 * (state - 64) + 1

    def _put(self, bit: int) -> None:
        if self.first:
            self.first = False
        else:
            self.stream.u(1, bit)
        for _ in range(self.outstanding):
            self.stream.u(1, 1 - bit)
        self.outstanding = 0

    def _renormalise(self) -> None:
        while self.range < 256:
            if self.low < 256:
                self._put(0)
            elif self.low >= 512:
                self.low -= 512
                self._put(1)
            else:
                self.low -= 256
                self.outstanding += 1
            self.range <<= 1
            self.low <<= 1

    def bit(self, context: int, value: int) -> int:
        state = self.states[context]
        lps = LPS[4 * (state >> 1) + (self.range >> 6 & 3)]
        self.range -= lps
        same = value == (state & 1)
        if not same:
            self.low += self.range
            self.range = lps
        self.states[context] = NEXT[128 * same + state]
        self._renormalise()
        return value

    def bypass(self, value: int, count: int = 1) -> None:
        for at in reversed(range(count)):
            self.low = 2 * self.low + (self.range if value >> at & 1 else 0)
            if self.low >= 1024:
                self._put(1)
                self.low -= 1024
            elif self.low < 512:
                self._put(0)
            else:
                self.low -= 512
                self.outstanding += 1

    def terminate(self, value: int) -> int:
        """A bin that may end the data: what follows begins at the next byte."""
        self.range -= 2
        if value:
            self.low += self.range
            self.range = 2
            self._renormalise()
            self._put(self.low >> 9 & 1)
            self.stream.u(2, self.low >> 7 & 3 | 1)
            self.stream.align()
            self.start()
        else:
            self._renormalise()
        return value

    def ones(self, value: int, most: int) -> None:
        for i in range(min(value + 1, most)):
            self.bypass(int(i < value))

    def exp_golomb(self, value: int, k: int) -> None:
        while value >= 1 << k:
            self.bypass(1)
            value -= 1 << k
            k += 1
        self.bypass(0)
        self.bypass(value, k)
