"""Every layout that comes with softgen packs what it unpacks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.catalogue import catalogue
from softgen.bits.layout import GENERATIONS, BitField, Group, Layout
from softgen.bits.page import read
from softgen.bits.record import join, split, to_float


def values(random: Random, fields: tuple[BitField, ...], groups: tuple[Group, ...], claimed: int = 0) -> dict[str, Any]:
    """Values for every field that does not read bits an earlier one has."""
    parts: dict[str, Any] = {}
    for f in fields:
        if not f.mask & claimed:
            parts[f.name] = value(random, f)
            claimed |= f.mask
    for g in groups:
        count = g.count if g.count is not None else 3
        mask = sum(g.claimed << g.start + i * g.size for i in range(count))
        if not mask & claimed:
            parts[g.name] = [values(random, g.fields, g.groups) for _ in range(min(count, 4))]
            claimed |= mask
    return parts


def value(random: Random, f: BitField) -> int:
    low = -(1 << f.width - 1) if f.type.name == "int" else 0
    high = low + (1 << f.width) - 1
    return random.choice((low, high, random.randint(low, high))) << (0 if f.type.name == "int" else f.alignment)


def plain(f: BitField) -> bool:
    return f.type.name not in ("fixed", "float", "half", "double")


def same(given_: dict[str, Any], got: Any, fields: tuple[BitField, ...], groups: tuple[Group, ...]) -> bool:
    kinds = {f.name: f for f in fields}
    inner = {g.name: g for g in groups}
    for name, wanted in given_.items():
        found = getattr(got, name)
        if name in inner:
            if not all(same(w, e, inner[name].fields, inner[name].groups) for w, e in zip(wanted, found, strict=False)):
                return False
        elif plain(kinds[name]) and found != wanted:
            return False
    return True


@pytest.mark.parametrize("gen", GENERATIONS)
def test_pack_then_unpack_is_identity(gen: float) -> None:
    random = Random(gen)
    for layout in (layout for layout in catalogue().layouts() if layout.gen == gen):
        for _ in range(3):
            claimed = layout.header.claimed if layout.header else 0
            chosen = values(random, layout.fields, layout.groups, claimed)
            numbers = {n: v for n, v in chosen.items() if n not in {f.name for f in layout.fields if not plain(f)} and _packable(layout, n)}
            dwords = layout.pack(**numbers)
            assert same(numbers, layout.raw(dwords + [0] * 4), layout.fields, layout.groups), (layout.name, numbers)
            assert not layout.header or dwords[0] & layout.header.mask == layout.header.value, layout.name


def _packable(layout: Layout, name: str) -> bool:
    """Groups that hold fixed point or floats take natural values, which are tested by example."""
    group = next((g for g in layout.groups if g.name == name), None)
    return group is None or all(plain(f) for g in (group, *group.groups) for f in g.fields)


TEXT = """
source public x
structure S
  gen 9  3 dwords
    0  31:20  fixed   s3.8
       19:8   ufixed  u4.8
       7:0    signed  int
    1  31:0   real    float
    2  31:16  small   half
       15:6   where   address
"""


def test_natural_values() -> None:
    layout = read("p", TEXT)["S", 9]
    dwords = layout.pack(fixed=-0.5, ufixed=1.25, signed=-3, real=1.5, small=0.5, where=0x140)
    got = layout.unpack(dwords)
    assert (got.fixed, got.ufixed, got.signed, got.real, got.small, got.where) == (-0.5, 1.25, -3, 1.5, 0.5, 0x140)
    assert layout.raw(dwords).real == 0x3FC00000 and layout.raw(dwords).fixed == 0xF80


@pytest.mark.parametrize("value, bits", [(-8.0, 0x800), (-0.00390625, 0xFFF), (-0.001, 0), (-0.002, 0xFFF), (0.001, 0)])
def test_fixed_point_numbers_are_rounded(value: float, bits: int) -> None:
    """To 256ths; those that are hardly negative to 0."""
    assert read("p", TEXT)["S", 9].pack(fixed=value) == [bits << 20, 0, 0]


def test_a_double_has_two_dwords() -> None:
    layout = read("p", "source public x\nstructure S\n  gen 9  2 dwords\n    0  63:0  exact  double\n")["S", 9]
    assert layout.unpack([0, 0xC0060000]).exact == -2.75 and layout.raw([0, 0xC0060000]).exact == 0xC006_0000_0000_0000


def test_pack_refuses_what_does_not_fit() -> None:
    layout = read("p", TEXT)["S", 9]
    table = (({"ufixed": 16.0}, "must fit 12 bits"), ({"where": 3}, "must be a multiple of 64"), ({"signed": 256}, "must fit 8 bits"),
             ({"signed": -129}, "S.signed must fit 8 bits with its sign, not -129"), ({"signed": -400}, "its sign, not -400"),
             ({"fixed": -8.25}, "S.fixed must fit 12 bits with its sign, not -8.25"))  # fmt: skip
    for bad, words in table:
        with pytest.raises(ValueError, match=words):
            layout.pack(**bad)
    with pytest.raises(TypeError, match="S has no field 'colour' on gen 9"):
        layout.pack(colour=1)


@pytest.mark.parametrize("option, most, header", [("", 257, 0x780800FF), ("length 3:0", 17, 0x7808000F), ("length 7:4", 17, 0x780800F0),
                                                  ("length 7:4 bias 1", 16, 0x780800F0), ("fixed", 300, 0x78080000)])  # fmt: skip
def test_a_command_is_as_long_as_its_length_can_say(option: str, most: int, header: int) -> None:
    text = f"source public x\ncommand C  3.3.0.08  render\n  gen 9  1+ dwords {option}\n    group it at 1 size 32 times *\n      31:0 n\n"
    layout = read("p", text)["C", 9]
    assert layout.pack(it=[{"n": 7}] * (most - 1)) == [header, *[7] * (most - 1)]
    if option != "fixed":
        with pytest.raises(ValueError, match=r"C\.length must fit"):
            layout.pack(it=[{"n": 7}] * most)


def test_a_value_is_spread_over_the_pieces_of_its_field() -> None:
    layout = read("p", "source public x\nstructure S\n  gen 9  1 dwords\n    0  31:24,3:0  parted\n       11:8,7:4  turned  int\n")["S", 9]
    assert [layout.pack(parted=value) for value in (0xF, 0x1F, 0xFFF, 0x800)] == [[0xF], [0x0100000F], [0xFF00000F], [0x80000000]]
    assert [layout.pack(turned=value) for value in (-1, -128, 127)] == [[0xFF0], [0x800], [0x7F0]]


@pytest.mark.parametrize("given, dwords", [({}, 1), ({"a": 1}, 1), ({"b": 1}, 2), ({"c": 1}, 3), ({"c": 0, "b": 0}, 1), ({"d": 1}, 4)])
def test_a_record_is_as_long_as_its_last_field_that_is_not_zero(given: dict[str, int], dwords: int) -> None:
    text = "source public x\nstructure S\n  gen 9  1+ dwords\n    0  31:0  a\n    1  31  b\n    2  0  c\n    3  31:0  d\n"
    assert len(read("p", text)["S", 9].pack(**given)) == dwords


def test_a_record_names_what_it_has() -> None:
    got = read("p", TEXT)["S", 9].unpack([0, 0, 0])
    with pytest.raises(AttributeError, match="S has no field 'depth'; it has fixed"):
        got.depth  # noqa: B018
    assert "signed=0" in repr(got)


@given(st.lists(st.integers(0, 0xFFFFFFFF), max_size=8))
def test_join_and_split(dwords: list[int]) -> None:
    assert split(join(dwords), len(dwords)) == dwords


@pytest.mark.parametrize("start, size", [("0", 32), ("1", 32), ("1.1", 32), ("2.2", 32), ("1", 16), ("1", 64), ("0.1", 31), ("1.31", 33)])
def test_elements_up_to_the_end_begin_at_any_bit(start: str, size: int) -> None:
    text = f"source public x\nstructure S\n  gen 9  1+ dwords\n    group it  at {start}  size {size}  times *\n      {size - 1}:0  n\n"
    dword, _, bit = start.partition(".")
    first, dwords = 32 * int(dword) + int(bit or 0), [0x01234567, 0x89ABCDEF, 0xFEDCBA98, 0x76543210, 0xDEADBEEF]
    expected = [join(dwords) >> at & (1 << size) - 1 for at in range(first, 160 - size + 1, size)]
    layout = read("p", text)["S", 9]
    assert [item.n for item in layout.unpack(dwords).it] == [item.n for item in layout.raw(dwords).it] == expected


class Sliced(list[int]):
    slices: list[slice]

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            self.slices.append(at)
        return super().__getitem__(at)


def test_inline_data_is_a_slice_of_the_command() -> None:
    """And not shifts of a number as long as the command, whose time grows with the square of its 64 Ki dwords."""
    text = "source public x\nstructure S\n  gen 9  1+ dwords\n    0  31:0  a\n    group it  at {}  size {}  times {}\n      15:0  n\n"
    for at, size, times, found, expected in ((3, 32, "*", [4, 5], [slice(3, 5)]), (2, 64, "*", [3], []), (2, 32, 2, [3, 4], []),
                                             ("2.8", 32, "*", [0, 0], [])):  # fmt: skip
        dwords = Sliced([1, 2, 3, 4, 5])
        dwords.slices = []
        assert [item.n for item in read("p", text.format(at, size, times))["S", 9].raw(dwords).it] == found
        assert dwords.slices == expected, (at, size, times)


class Uncopied(list[int]):
    def __iter__(self) -> Iterator[int]:
        raise AssertionError("copied")


def test_dwords_are_copied_only_where_some_are_missing() -> None:
    layout = read("p", TEXT)["S", 9]
    assert layout.unpack(Uncopied([0x05, 0x3F800000, 0x140])).real == 1.0
    assert layout.unpack([0x05]).signed == 5 and layout.unpack([0x05]).where == 0
    with pytest.raises(AssertionError, match="copied"):
        layout.unpack(Uncopied([0x05, 0x3F800000]))


def test_split_leaves_out_what_the_dwords_do_not_hold() -> None:
    assert split(0x1_8000_0005, 1) == [0x80000005] and split(0x1_8000_0005, 3) == [0x80000005, 1, 0] and split(5, 0) == []


def test_floats_keep_their_kind() -> None:
    assert math.isnan(to_float(0x7FC00001)) and to_float(0x80000000) == 0
