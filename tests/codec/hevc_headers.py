"""Parameter sets and slice headers of the HEVC streams that hevc_writer.py makes (7.3.2, 7.3.6 of H.265)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.codec.hevc_writer import Slices

B_SLICE, P_SLICE, I_SLICE = range(3)
POC_BITS = 8


@dataclass
class Options:
    """What a stream uses. Sizes are log2."""

    width: int = 72
    height: int = 56
    ctb: int = 4
    block: int = 3
    transform: int = 2
    most_transform: int = 4
    depth: int = 8
    depth_intra: int = 2
    depth_inter: int = 1
    pcm: tuple[int, int] | None = (3, 4)
    pcm_bits: tuple[int, int] = (7, 5)
    pcm_unfiltered: int = 1
    amp: int = 1
    sao: int = 1
    long_term: int = 0
    columns: list[int] = field(default_factory=lambda: [0])
    rows: list[int] = field(default_factory=lambda: [0])
    across_tiles: int = 1
    wavefront: int = 0
    dependent: int = 0
    split: float = 0.0  # how often a slice segment ends
    sign_hiding: int = 1
    constrained: int = 0
    transform_skip: int = 1
    qp_depth: int = 1
    bypass: int = 1
    across_slices: int = 1
    merge: int = 2  # log2 of the parallel merge level
    b_slices: int = 0
    references: int = 2
    deblocking: int = 1
    tc: int | None = None  # slice_tc_offset_div2 of all slices

    @property
    def across(self) -> int:
        return -(-self.width >> self.ctb)

    @property
    def down(self) -> int:
        return -(-self.height >> self.ctb)


class Stream:
    """Bits, most significant first."""

    def __init__(self) -> None:
        self._bits: list[int] = []

    def u(self, count: int, value: int) -> None:
        self._bits += [value >> at & 1 for at in reversed(range(count))]

    def ue(self, value: int) -> None:
        count = (value + 1).bit_length()
        self.u(2 * count - 1, value + 1)

    def se(self, value: int) -> None:
        self.ue(2 * value - 1 if value > 0 else -2 * value)

    def align(self) -> None:
        self._bits += [0] * (-len(self._bits) % 8)

    def trail(self) -> None:
        self.u(1, 1)
        self.align()

    def bytes(self) -> bytes:
        self.align()
        text = "".join(map(str, self._bits))
        return int(text, 2).to_bytes(len(text) // 8, "big") if text else b""


def _profile(s: Stream, depth: int) -> None:
    profile = 1 if depth == 8 else 2
    s.u(8, profile)
    s.u(32, 1 << 31 - profile)
    s.u(4, 0b1001)
    s.u(44, 0)
    s.u(8, 120)


def _video(o: Options) -> bytes:
    s = Stream()
    for count, value in ((4, 0), (2, 3), (6, 0), (3, 0), (1, 1), (16, 0xFFFF)):
        s.u(count, value)
    _profile(s, o.depth)
    s.u(1, 1)
    for value in (4, 0, 0):
        s.ue(value)
    s.u(6, 0)
    s.ue(0)
    s.u(2, 0)
    s.trail()
    return s.bytes()


def _sequence(o: Options) -> bytes:
    s = Stream()
    for count, value in ((4, 0), (3, 0), (1, 1)):
        s.u(count, value)
    _profile(s, o.depth)
    for value in (0, 1, o.width, o.height):
        s.ue(value)
    s.u(1, 0)
    for value in (o.depth - 8, o.depth - 8, POC_BITS - 4):
        s.ue(value)
    s.u(1, 1)
    for value in (4, 0, 0, o.block - 3, o.ctb - o.block, o.transform - 2, o.most_transform - o.transform, o.depth_inter, o.depth_intra):
        s.ue(value)
    for value in (0, o.amp, o.sao, int(o.pcm is not None)):
        s.u(1, value)
    if o.pcm:
        s.u(4, o.pcm_bits[0] - 1)
        s.u(4, o.pcm_bits[1] - 1)
        s.ue(o.pcm[0] - 3)
        s.ue(o.pcm[1] - o.pcm[0])
        s.u(1, o.pcm_unfiltered)
    s.ue(0)
    s.u(1, o.long_term)
    if o.long_term:
        s.ue(0)
    s.u(4, 0b1100)  # temporal vectors, strong smoothing, no VUI, no extension
    s.trail()
    return s.bytes()


def _picture(o: Options) -> bytes:
    s = Stream()
    s.ue(0)
    s.ue(0)
    for count, value in ((1, o.dependent), (4, 0), (1, o.sign_hiding), (1, 1)):
        s.u(count, value)
    for value in (0, 0):
        s.ue(value)
    s.se(0)
    s.u(3, o.constrained << 2 | o.transform_skip << 1 | 1)
    s.ue(o.qp_depth)
    s.se(3)
    s.se(-4)
    tiled = len(o.columns) > 1 or len(o.rows) > 1
    for value in (1, 0, 0, o.bypass, int(tiled), o.wavefront):
        s.u(1, value)
    if tiled:
        s.ue(len(o.columns) - 1)
        s.ue(len(o.rows) - 1)
        s.u(1, 0)
        for starts in (o.columns, o.rows):
            for first, end in pairwise(starts):
                s.ue(end - first - 1)
        s.u(1, o.across_tiles)
    s.u(1, o.across_slices)
    s.u(3, 0b110)  # deblocking: controlled, may be overridden, on
    s.se(1)
    s.se(-1)
    s.u(2, 0)
    s.ue(o.merge - 2)
    s.u(2, 0)
    s.trail()
    return s.bytes()


def parameter_sets(o: Options) -> bytes:
    from tests.codec.hevc_writer import nal

    return nal(32, _video(o)) + nal(33, _sequence(o)) + nal(34, _picture(o))


def slice_header(o: Options, slices: Slices, header: dict[str, int], address: int, dependent: bool, sizes: list[int]) -> bytes:
    """`sizes`: where the substreams of the data end, but for the last one."""
    s, number = Stream(), header["number"]
    s.u(1, int(address == 0))
    if not number:
        s.u(1, 0)
    s.ue(0)
    if address:
        if o.dependent:
            s.u(1, int(dependent))
        s.u((o.across * o.down - 1).bit_length(), address)
    if not dependent:
        _independent(s, o, slices, number)
    if len(o.columns) * len(o.rows) > 1 or o.wavefront:
        s.ue(len(sizes))
        if sizes:
            s.ue(31)
            for first, end in zip([0, *sizes], sizes, strict=False):
                s.u(32, end - first - 1)
    s.trail()
    return s.bytes()


def _references(s: Stream, o: Options, number: int) -> None:
    """The pictures before, nearest first; the first picture is a long-term one where there are such."""
    s.u(POC_BITS, number)
    s.u(1, 0)
    nearest = [other for other in range(number - 1, max(number - 1 - o.references, -1), -1) if other or not o.long_term]
    s.ue(len(nearest))
    s.ue(0)
    for _ in nearest:
        s.ue(0)
        s.u(1, 1)
    if o.long_term:
        s.ue(1)
        s.u(POC_BITS, 0)
        s.u(2, 0b10)
    s.u(1, 1)


def _independent(s: Stream, o: Options, slices: Slices, number: int) -> None:
    random = slices.random
    s.ue(slices.type)
    if number:
        _references(s, o, number)
    if o.sao:
        s.u(1, int(slices.sao[0]))
        s.u(1, int(slices.sao[1]))
    if slices.type != I_SLICE:
        s.u(1, 1)
        s.ue(slices.counts[0] - 1)
        if slices.type == B_SLICE:
            s.ue(slices.counts[1] - 1)
            s.u(1, slices.zero_1)
        s.u(1, int(slices.swapped))
        if slices.type == B_SLICE:
            s.u(1, 1)
        if slices.counts[0] > 1:
            s.ue(0)
        s.ue(5 - slices.merge_count)
    s.se(slices.qp - 26)
    s.se(random.randint(-3, 3))
    s.se(random.randint(-3, 3))
    disabled = int(not o.deblocking or random.random() < 0.2)
    s.u(1, 1)
    s.u(1, disabled)
    if not disabled:
        s.se(random.randint(-3, 3))
        s.se(o.tc if o.tc is not None else random.randint(-3, 3))
    if o.across_slices and (not disabled or any(slices.sao)):
        s.u(1, int(random.random() < 0.5))
