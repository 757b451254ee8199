"""`place` puts fields where `pack` puts them."""

from __future__ import annotations

from random import Random

import pytest

from softgen.bits.catalogue import catalogue
from softgen.bits.page import read
from softgen.bits.record import join

INSTRUCTIONS = [layout for layout in catalogue().layouts() if layout.kind == "instruction"]
TINY = read("t", "source public test\ninstruction T\n  gen 9  1 dwords\n    0  31:24,3:0  offset  int\n       23:16  number\n")["T", 9.0]


def test_place_agrees_with_pack() -> None:
    """The least and the greatest value of each field, and some between."""
    random = Random(1)
    for layout in INSTRUCTIONS:
        for field in layout.fields:
            low = -(1 << field.width - 1) if field.type.name == "int" else 0
            high = low + (1 << field.width) - 1
            for value in (low, high, random.randint(low, high), random.randint(low, high)):
                assert layout.place({field.name: value}) == join(layout.pack(**{field.name: value})), (layout.name, layout.gen, field.name)


def test_pieces_and_signs() -> None:
    assert TINY.place({"offset": -1}) == 0xFF00000F
    assert TINY.place({"offset": 0x7FF, "number": 3}) == 0x7F03000F


@pytest.mark.parametrize(("name", "value", "complaint"), [
    ("number", 256, "T.number must fit 8 bits, not 0x100"), ("number", -1, "T.number must fit 8 bits"),
    ("offset", 2048, "T.offset must fit 12 bits with its sign, not 2048"), ("offset", -2049, "T.offset must fit 12 bits with its sign"),
])
def test_what_does_not_fit_is_refused(name: str, value: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        TINY.place({name: value})
