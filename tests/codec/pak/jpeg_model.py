"""A model of JPEG encoding in NumPy: the product with the matrix of the DCT, quantisation by reciprocals, Huffman codes (T.81).

Tables come from the headers of the stream; nothing of the code under test is used.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
ZIGZAG = sorted(range(64), key=lambda at: (sum(divmod(at, 8)), (at // 8 if sum(divmod(at, 8)) % 2 else at % 8)))
ANGLES = np.cos((2 * np.arange(8)[None, :] + 1) * np.arange(8)[:, None] * np.pi / 16) / 2
ANGLES[0] /= np.sqrt(2)
MATRIX = np.round(ANGLES * (1 << 13)).astype(np.int64)


class Header:
    """The segments of a JPEG stream up to its entropy-coded data."""

    def __init__(self, data: bytes) -> None:
        self.quantisers: dict[int, Array] = {}
        self.codes: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
        at = 2
        while True:
            marker, length = struct.unpack_from(">HH", data, at)
            self._segment(marker, data[at + 4 : at + 2 + length])
            at += 2 + length
            if marker == 0xFFDA:
                self.size = at
                return

    def _segment(self, marker: int, body: bytes) -> None:
        if marker == 0xFFDB:
            for at in range(0, len(body), 65):
                self.quantisers[body[at]] = np.frombuffer(body[at + 1 : at + 65], np.uint8).astype(np.int64)
        elif marker == 0xFFC0:
            self.height, self.width = struct.unpack_from(">HH", body, 1)
            self.components = [(item[1] >> 4, item[1] & 15, item[2]) for item in zip(*[iter(body[6:])] * 3, strict=True)]
        elif marker == 0xFFC4:
            while body:
                body = self._table(body)
        elif marker == 0xFFDA:
            self.tables = [(body[2 + 2 * i] >> 4, body[2 + 2 * i] & 15) for i in range(body[0])]

    def _table(self, body: bytes) -> bytes:
        kind, counts, at, code = body[0], body[1:17], 17, 0
        found = self.codes.setdefault((kind >> 4, kind & 15), {})
        for length, count in enumerate(counts, 1):
            for value in body[at : at + count]:
                found[value] = (code, length)
                code += 1
            at, code = at + count, code << 1
        return body[at:]


def levels(samples: Array, reciprocals: Array) -> Array:
    """A block of samples as levels in zigzag order."""
    rows = ((samples.astype(np.int64) - 128) @ MATRIX.T + (1 << 8)) >> 9
    coefficients = ((MATRIX @ rows + (1 << 13)) >> 14).reshape(64)[ZIGZAG]
    return np.asarray(np.sign(coefficients) * ((abs(coefficients) * reciprocals + (1 << 18)) >> 19))


def block_bits(block: list[int], before: int, dc: dict[int, tuple[int, int]], ac: dict[int, tuple[int, int]]) -> str:
    """The bits of a block, whose DC level follows `before`."""

    def coded(codes: dict[int, tuple[int, int]], run: int, value: int) -> str:
        size = abs(value).bit_length()
        code, length = codes[run << 4 | size]
        return f"{code:0{length}b}" + (f"{value + (1 << size) - 1 if value < 0 else value:0{size}b}" if size else "")

    bits, run = coded(dc, 0, block[0] - before), 0
    for value in block[1:]:
        if value:
            while run > 15:
                bits, run = bits + coded(ac, 15, 0), run - 16
            bits, run = bits + coded(ac, run, value), 0
        else:
            run += 1
    return bits + (coded(ac, 0, 0) if run else "")


def encode(header: Header, planes: list[Array], one: int) -> bytes:
    """Entropy-coded data of the planes, and the marker at the end of the image; `one`: what reciprocals of quantisers are fractions of."""
    most = max(item[0] for item in header.components), max(item[1] for item in header.components)
    across, down = -(-header.width // (8 * most[0])), -(-header.height // (8 * most[1]))
    padded = [np.pad(plane, ((0, 8 * v * down - plane.shape[0]), (0, 8 * h * across - plane.shape[1])), "edge")
              for plane, (h, v, _) in zip(planes, header.components, strict=True)]  # fmt: skip
    bits, before = [], [0, 0, 0]
    for mcu in range(across * down):
        for index, (h, v, matrix) in enumerate(header.components):
            for block in range(h * v):
                x, y = 8 * (mcu % across * h + block % h), 8 * (mcu // across * v + block // h)
                found = levels(padded[index][y : y + 8, x : x + 8], one // header.quantisers[matrix]).tolist()
                dc, ac = header.tables[index]
                bits.append(block_bits(found, before[index], header.codes[0, dc], header.codes[1, ac]))
                before[index] = found[0]
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\0") + b"\xff\xd9"
