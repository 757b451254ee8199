"""Statements of IGA's dialect part by part: first channels, operands that may be left out, and those that may not."""

from __future__ import annotations

import pytest

from softgen.errors import DecodeError
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.iga import format as iga_format
from softgen.eu.text.iga.parse import parse
from tests.eu.semantics.build import NULL


def read(said: str, gen: float = 9.0) -> Instruction:
    (inst,) = parse(said, gen)
    return inst


def written(inst: Instruction) -> str:
    return " ".join(iga_format.text(inst).split())


@pytest.mark.parametrize("channel", range(0, 32, 4))
def test_the_first_channel_is_a_quarter_and_a_nibble(channel: int) -> None:
    said = f"add (4|M{channel}) r1.0<1>:f r2.0<4;4,1>:f r3.0<4;4,1>:f"
    inst = read(said)
    assert (inst.exec_size, inst.quarter, inst.nibble) == (4, channel // 8, int(channel in (4, 12, 20, 28)))
    assert written(inst) == said


@pytest.mark.parametrize("function", ["inv", "log", "exp", "sqt", "rsqt", "sin", "cos"])
def test_math_of_one_source_may_leave_the_second_out(function: str) -> None:
    inst = read(f"math.{function} (8|M0) r1.0<1>:f r2.0<8;8,1>:f")
    assert len(inst.sources) == 2 and (inst.sources[1].file, inst.sources[1].number) == (NULL.file, NULL.number)
    assert read(f"math.{function} (8|M0) r1.0<1>:f r2.0<8;8,1>:f r3.0<8;8,1>:f").sources[1].number == 3


@pytest.mark.parametrize("said, column", [("math.pow (8|M0) r1.0<1>:f r2.0<8;8,1>:f", 40), ("math.fdiv (8|M0) r1.0<1>:f r2.0<8;8,1>:f", 41),
                                          ("add (8|M0) r1.0<1>:f r2.0<8;8,1>:f", 35)])  # fmt: skip
def test_a_second_source_that_is_read_is_not_left_out(said: str, column: int) -> None:
    with pytest.raises(DecodeError, match=f"^text:1:{column}: expected a source, not the end$"):
        parse(said, 9.0)


@pytest.mark.parametrize("gen", [7.5, 8.0, 9.0, 11.0])
def test_a_wait_says_its_register_once_or_each_time(gen: float) -> None:
    once = read("wait (1|M0) n0.0<0;1,0>:ud", gen)
    assert once == read("wait n0.0<0;1,0>:ud", gen) == read("wait (1|M0) n0.0<1>:ud n0.0<0;1,0>:ud null<0;1,0>:ud", gen)
    saturated = read("wait (1|M0) (sat)n0.0<1>:ud n0.0<0;1,0>:ud null<0;1,0>:ud", gen)
    assert saturated.saturate and not once.saturate and (saturated.dst, saturated.sources) == (once.dst, once.sources)


@pytest.mark.parametrize("said, complaint", [
    ("wait (1|M0) n0.0:ud", "1:20: expected a region, as <8;8,1>, not the end"),
    ("wait (1|M0) n0.0<1>:ud 0x0:ud", "1:30: expected a source, not the end"),
    ("wait (1|M0) (sat)n0.0<0;1,0>:ud", "1:22: expected a destination's region, as <1>, not '<'"),
])  # fmt: skip
def test_a_wait_that_is_neither(said: str, complaint: str) -> None:
    with pytest.raises(DecodeError) as caught:
        parse(said, 9.0)
    assert str(caught.value) == f"text:{complaint}"


@pytest.mark.parametrize("kind, digits", [("q", 16), ("uq", 16), ("df", 16), ("d", 8), ("ud", 8), ("f", 8)])
def test_an_immediate_has_as_many_bits_as_its_type(kind: str, digits: int) -> None:
    value = int("1" * digits, 16)
    assert read(f"mov (1|M0) r1.0<1>:{kind} {value:#x}:{kind}").sources[0].immediate == value
    with pytest.raises(DecodeError, match=r"1:2[0-9]: expected "):
        parse(f"mov (1|M0) r1.0<1>:{kind} {value << 4:#x}:{kind}", 9.0)


@pytest.mark.parametrize("element", range(4))
def test_one_double_of_three_sources_is_a_pair_of_channels(element: int) -> None:
    """Align16 numbers halves of a register; a double is its channels xy or zw."""
    said = f"mad (1|M0) r1.{element}<1>:df r2.{element}<0;0>:df r3.{element}<0;0>:df r4.{element}<0>:df"
    inst = read(said)
    assert inst.dst is not None and written(inst) == said and inst.exec_size == 2
    assert (inst.dst.sub, inst.dst.write_mask) == (element // 2 * 16, 0b1100 if element in (1, 3) else 0b0011)
    assert {(source.sub, source.swizzle) for source in inst.sources} == {(element // 2 * 16, 0xEE if element in (1, 3) else 0x44)}


@pytest.mark.parametrize("element", range(8))
def test_one_float_of_three_sources_is_a_channel(element: int) -> None:
    said = f"mad (1|M0) r1.{element}<1>:f r2.{element}<0;0>:f r3.{element}<0;0>:f r4.{element}<0>:f"
    inst = read(said)
    assert inst.dst is not None and written(inst) == said and inst.exec_size == 4
    assert (inst.dst.sub, inst.dst.write_mask) == (element // 4 * 16, 1 << element % 4)
    assert {(source.sub, source.replicate) for source in inst.sources} == {(element * 4, True)}
