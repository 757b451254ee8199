"""Where slice headers of H.264 end: headers written by hand, with ones behind them as programs align data of CABAC."""

from __future__ import annotations

import itertools
import random

import pytest

from softgen.codec.pak.avc.headers import ParameterSets, to_text
from tests.codec.pak.bit_writer import BitWriter, escaped

START = b"\0\0\0\1"


def sequence(profile: int, order: int) -> bytes:
    bits = BitWriter().u(8, profile).u(16, 31).ue(0)
    if profile == 100:
        bits.ue(1).ue(0).ue(0).u(2, 0)
    bits.ue(3).ue(order)  # frame_num of 7 bits
    if order == 0:
        bits.ue(2)  # 6 bits
    elif order == 1:
        bits.u(1, 0).se(-3).se(5).ue(2).se(1).se(-1)
    bits.ue(2).u(1, 0).ue(4).ue(2).u(1, 1)
    return START + b"\x67" + escaped(bits.trailing().data())


def picture(cabac: bool, order: bool, filter: bool) -> bytes:
    bits = BitWriter().ue(0).ue(0).u(1, cabac).u(1, order).ue(0).ue(2).ue(1).u(1, 0).u(2, 2).se(-4).se(3).se(2).u(1, filter).u(2, 0)
    return START + b"\x68" + escaped(bits.trailing().data())


def header(intra: bool, idr: bool, order: int, bottom: bool, filter: bool) -> BitWriter:
    """A slice header up to its last element; references are renamed, and three of them marked."""
    bits = BitWriter().u(32, 1).u(1, 0).u(2, 2).u(5, 5 if idr else 1).ue(0).ue(7 if intra else 5).ue(0).u(7, 93)
    if idr:
        bits.ue(6)
    if order == 0:
        bits.u(6, 45)
    elif order == 1:
        bits.se(-7)
    if bottom and order != 2:
        bits.se(9)
    if not intra:
        bits.u(1, 1).ue(4).u(1, 1).ue(0).ue(11).ue(1).ue(2).ue(3)
    if idr:
        bits.u(2, 1)
    else:
        bits.u(1, 1).ue(1).ue(8).ue(3).ue(2).ue(5).ue(5).ue(0)
    if not intra:
        bits.ue(2)
    bits.se(-1)
    if filter:
        bits.ue(0).se(3).se(-2)
    return bits


@pytest.mark.parametrize(("profile", "order"), list(itertools.product((77, 100), (0, 1, 2))))
def test_ones_behind_a_header_are_no_part_of_it(profile: int, order: int) -> None:
    for intra, idr, bottom, filter in itertools.product((False, True), repeat=4):
        sets = ParameterSets()
        sets.read(sequence(profile, order) + picture(True, bottom, filter))
        written = header(intra, idr and intra, order, bottom, filter).text
        for ones in (0, 1, -len(written) % 8):
            assert sets.header(written + "1" * ones) == written


def test_headers_stay_whole_where_the_sets_say_too_little() -> None:
    written = header(True, True, 0, False, False).text + "111"
    sets = ParameterSets()
    assert sets.header(written) == written
    sets.read(sequence(100, 0))
    assert sets.header(written) == written
    sets.read(picture(False, False, False))  # CAVLC is not aligned
    assert sets.header(written) == written
    sets.read(picture(True, False, False))
    assert sets.header(written) == written[:-3]
    assert sets.header(written[:40]) == written[:40]  # it ends amid its elements


def test_any_bits_are_read() -> None:
    chance = random.Random(5)
    for _ in range(300):
        sets = ParameterSets()
        sets.read(START + bytes([0x67]) + chance.randbytes(9) + START + bytes([0x68]) + chance.randbytes(6))
        text = to_text(START + b"\x41" + chance.randbytes(12), 8 * 17 - 3)
        assert text.startswith(sets.header(text))
