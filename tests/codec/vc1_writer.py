"""VC-1 streams whose picture headers are written field by field and whose macroblocks are random bits: no coder at hand writes VC-1.

Nearly all strings of bits are macroblocks, as the standard's codes leave none unused. A stream is right if ffmpeg decodes it without
complaint (record.py).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

SIMPLE, MAIN, ADVANCED = 0, 1, 3
MACROBLOCK_BYTES = 420  # more than a macroblock takes
# MVMODE by PQUANT above 12, and not: one vector, mixed, half samples, bilinear; "intensity" comes before MVMODE2
MODES = {True: ["bilinear", "one", "half", "intensity", "mixed"], False: ["one", "mixed", "half", "intensity", "bilinear"]}
MODES2 = {high: [mode for mode in modes if mode != "intensity"] for high, modes in MODES.items()}
CONDOVER = {None: "0", "all": "10", "selected": "11"}
SET = ("0", "10", "11")
BFRACTION = {"1/2": "000", "1/3": "001", "3/4": "100", "2/5": "110", "7/8": "1111101", "BI": "1111111"}


@dataclass
class Vc1Writer:
    """A stream of one size. `syntax`: what the sequence header and pictures have, by name."""

    width: int
    height: int
    seed: int
    profile: int
    syntax: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random, self.bits = random.Random(self.seed), ""
        self.frames = list[tuple[bool, bytes]]()  # whether it is an I picture, its data
        self.columns, self.rows = -(-self.width // 16), -(-self.height // 16)

    def has(self, name: str) -> int:
        return int(self.syntax.get(name, 0))

    def put(self, *fields: tuple[int, int] | str) -> None:
        for item in fields:
            self.bits += item if isinstance(item, str) else f"{item[0]:0{item[1]}b}"

    def taken(self, stop: bool = False) -> bytes:
        """The bits so far, as bytes; `stop`: with a one behind them."""
        bits, self.bits = self.bits + "1" * stop, ""
        bits += "0" * (-len(bits) % 8)
        return int("1" + bits, 2).to_bytes(len(bits) // 8 + 1, "big")[1:]

    # -- sequences ---------------------------------------------------------------------------------------------------------

    def sequence(self) -> bytes:
        """The header of a sequence, of simple and main profile."""
        fast = self.has("fast") or self.profile == SIMPLE
        self.put((self.profile, 2), "00", (0, 8), (self.has("loop"), 1), "0", "0", "1", (fast, 1), (self.has("extended"), 1))
        self.put((self.has("dquant"), 2), (self.has("sizes"), 1), "0", (self.has("overlap"), 1), "0", "0", (self.has("b_pictures"), 3))
        self.put((self.has("quantiser"), 2), "0", "1")
        return self.taken()

    def sequence_of_advanced(self) -> bytes:
        self.put("11", (1, 3), "01", (0, 8), "0", (self.width // 2 - 1, 12), (self.height // 2 - 1, 12), "0000", "1", "0", "0", "0")
        header = b"\0\0\1\x0f" + escaped(self.taken(stop=True))
        widths = {"loop": 1, "fast": 1, "extended": 1, "dquant": 2, "sizes": 1, "overlap": 1, "quantiser": 2}
        self.put("0100", *((self.has(name), width) for name, width in widths.items()), "0", "0" * self.has("extended"), "00")
        return header + b"\0\0\1\x0e" + escaped(self.taken(stop=True))

    def file(self) -> bytes:
        """An .rcv file (annex L), or an elementary stream of advanced profile."""
        if self.profile == ADVANCED:
            return self.sequence_of_advanced() + b"".join(data for _, data in self.frames) + b"\0\0\1\x0a"
        parts = [words(len(self.frames) | 0xC5 << 24, 4), self.sequence(), words(self.height, self.width, 12, 0, 0, 25)]
        for number, (intra, data) in enumerate(self.frames):
            parts += [words(len(data) | intra << 31, number * 40), data]
        return b"".join(parts)

    # -- pictures ----------------------------------------------------------------------------------------------------------

    def picture(self, kind: str, index: int, **more: Any) -> None:
        """A picture of a kind: I, P, B, BI, or skipped; `index`: PQINDEX."""
        self.now = {**self.syntax, **more}
        self.put(*self.beginning(kind))
        if kind == "skipped":
            self.frames.append((False, b"\0\0\1\x0d" + escaped(self.taken(stop=True))))
            return
        self.quantiser(index)
        high = self.pquant(index) > 12
        advanced = self.profile == ADVANCED
        if kind in ("I", "BI"):
            if advanced:
                self.plane("ac_prediction")
                self.conditional_overlap(index)
        else:
            if advanced:
                self.put(*["0"] * self.has("extended"))
            self.inter(kind, high)
        for _ in range(2 if kind in ("I", "BI") else 1):  # set 2 leaves a code unused, so random bits may have it
            self.put(SET[self.now.get("set", self.random.getrandbits(1))])
        self.put((self.random.getrandbits(1), 1))
        if kind in ("I", "BI") and advanced:
            self.differing_quantisers()
        self.slices(kind)

    def beginning(self, kind: str) -> list[str]:
        fraction = BFRACTION["BI" if kind == "BI" else self.now.get("fraction", "1/2")]
        if self.profile == ADVANCED:
            code = {"P": "0", "B": "10", "I": "110", "BI": "1110", "skipped": "1111"}[kind]
            return [code, *[str(self.random.getrandbits(1))] * (kind != "skipped"), *[fraction] * (kind == "B")]
        code = "1" if kind == "P" else "0" + ("" if not self.has("b_pictures") else "1" if kind == "I" else "0")
        return ["00", code, *[fraction] * (kind in ("B", "BI")), *["0" * 7] * (kind in ("I", "BI"))]

    def pquant(self, index: int) -> int:
        """Of implicit quantisers by table 36."""
        if self.has("quantiser"):
            return index
        return index if index < 9 else index - 3 if index < 29 else 2 * index - 31

    def quantiser(self, index: int) -> None:
        choices = (index < 9) + (self.has("quantiser") == 1)  # HALFQP, PQUANTIZER
        self.put((index, 5), *[str(self.random.getrandbits(1)) for _ in range(choices)])
        if self.profile != ADVANCED:
            self.put(*["0"] * self.has("extended"))

    def plane(self, name: str) -> None:
        """A bit plane: raw, or rows of bits of which so many are set."""
        share = self.now.get(name, 0.3)
        if share == "raw":
            self.put("0", "0000")
            return
        self.put("0", "010")
        for _ in range(self.rows):
            self.put("1", "".join(str(int(self.random.random() < share)) for _ in range(self.columns)))

    def conditional_overlap(self, index: int) -> None:
        if self.has("overlap") and self.pquant(index) < 9:
            chosen = self.now.get("smoothed")
            self.put(CONDOVER[chosen])
            if chosen == "selected":
                self.plane("overlap_flags")

    def differing_quantisers(self) -> None:
        """VOPDQUANT."""
        if self.has("dquant") != 1:
            return
        profile = self.now.get("profile_of_quantisers")
        if profile is None:
            self.put("0")
            return
        self.put("1", (("edges", "two edges", "one edge", "all").index(profile), 2))
        if profile in ("two edges", "one edge"):
            self.put((self.random.getrandbits(2), 2))
        elif profile == "all":
            two = int(self.now.get("two", 0))
            self.put((two, 1))
            if not two:
                return
        self.put((self.random.randrange(5), 3))

    def inter(self, kind: str, high: bool) -> None:
        mode = self.now.get("mode", "one")
        if kind == "B":
            self.put(str(int(mode == "one")))
            self.plane("direct")
        else:
            intensity = self.now.get("intensity")
            modes = MODES[high]
            number = modes.index("intensity" if intensity else mode)
            self.put("0" * number, "1" * (number < 4))
            if intensity:
                number = MODES2[high].index(mode)
                self.put("0" * number, "1" * (number < 3), (intensity[0], 6), (intensity[1], 6))
            if mode == "mixed":
                self.plane("mixed")
        self.plane("skip")
        self.put((self.random.getrandbits(2), 2), (self.random.getrandbits(2), 2))
        self.differing_quantisers()
        if self.has("sizes"):
            size = self.now.get("size")
            self.put("0" if size is None else f"1{size:02b}")

    def slices(self, kind: str) -> None:
        """Random macroblocks, of advanced profile in slices if the picture has some."""
        ones = self.now.get("ones", 0.5)
        starts = self.now.get("slices", [])

        def macroblocks(rows: int) -> str:
            return "".join("1" if self.random.random() < ones else "0" for _ in range(rows * self.columns * MACROBLOCK_BYTES * 8))

        if self.profile != ADVANCED:
            self.put(macroblocks(self.rows))
            self.frames.append((kind == "I", self.taken()))
            return
        ends = [*starts, self.rows]
        self.put(macroblocks(ends[0]))
        data = b"\0\0\1\x0d" + escaped(self.taken(stop=True))
        for start, end in pairwise(ends):
            self.put((start, 9), "0", macroblocks(end - start))
            data += b"\0\0\1\x0b" + escaped(self.taken(stop=True))
        self.frames.append((kind == "I", data))


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


def escaped(data: bytes) -> bytes:
    """Without start codes (annex E)."""
    made, zeros = bytearray(), 0
    for byte in data:
        if zeros >= 2 and byte < 4:
            made.append(3)
            zeros = 0
        made.append(byte)
        zeros = zeros + 1 if not byte else 0
    return bytes(made)


def clip(width: int, height: int, seed: int, profile: int, pictures: list[dict[str, Any]], **syntax: Any) -> bytes:
    """A stream of pictures: their kind, index and what else they have of their own."""
    writer = Vc1Writer(width, height, seed, profile, syntax)
    for picture in pictures:
        writer.picture(**picture)
    return writer.file()
