"""Records as text and as JSON."""

from __future__ import annotations

import pytest

from softgen.bits import describe
from softgen.bits.page import read

PAGE = """source public x
structure CELL
  gen 9  1 dwords
    0  7:0    red
       15:8   green
    derive both  red + green
command C  3.3.0.08  render
  gen 9  2+ dwords
    0  9:8    mode   plain | other
       15     flag   bool
    1  31:0   value          when mode=plain & flag!=0
    or 31:0   number float   when mode=other
    derive twice  mode * 2
    group cell  at 2  size 32  times *  of CELL
structure T
  gen 9  3 dwords
    0  15:0   small
       31:16  size    bytes
    1  31:12  where   address
       3:0    count   minus1
       7:4    step    s1.2
       8      on      bool
    2  2:0    kind    none | - | third
"""
LAYOUTS = read("p", PAGE)
C, T = LAYOUTS["C", 9.0], LAYOUTS["T", 9.0]


def texts(dwords: list[int]) -> dict[str, str]:
    return {line.name: line.text for line in describe.lines(T, dwords)}


def test_values_as_people_read_them() -> None:
    dwords = T.pack(small=4095, size=64, where=0x5000, count=6, step=-0.25, on=1, kind=2)
    assert texts(dwords) == {"small": "4095", "size": "64 bytes", "where": "0x5000", "count": "6 (means 7)", "step": "-0.25", "on": "true",
                             "kind": "third (2)"}  # fmt: skip
    assert texts(T.pack(small=4096))["small"] == "4096 (0x1000)"
    assert texts(T.pack(kind=1))["kind"] == "1 (no name)" and texts(T.pack())["on"] == "false"


def test_json_has_enumerated_fields_by_value_and_name_and_derived_attributes_last() -> None:
    found = describe.to_json(T, T.pack(small=7, kind=2, where=0x3000))
    assert found == {"small": 7, "size": 0, "where": 0x3000, "count": 0, "step": 0, "on": 0, "kind": {"value": 2, "name": "third"}}
    assert describe.to_json(T, T.pack(kind=5))["kind"] == {"value": 5, "name": None}
    assert list(describe.to_json(C, C.pack(mode=1, number=1.5)))[-1] == "twice"


def test_elements_of_groups_have_their_derived_attributes() -> None:
    found = describe.to_json(C, C.pack(mode=1, cell=[{"red": 1, "green": 2}, {"red": 3}]))
    assert found["cell"] == [{"red": 1, "green": 2, "both": 3}, {"red": 3, "green": 0, "both": 3}] and found["twice"] == 2
    lines = [(line.name, line.text, line.zero, line.depth) for line in describe.lines(C, C.pack(mode=1, cell=[{"red": 1}, {}]))]
    assert lines[-9:] == [("cell[0]", "", False, 0), ("red", "1", False, 1), ("green", "0", True, 1), ("both", "1", False, 1),
                          ("cell[1]", "", True, 0), ("red", "0", True, 1), ("green", "0", True, 1), ("both", "0", False, 1),
                          ("twice", "2", False, 0)]  # fmt: skip


@pytest.mark.parametrize(("mode", "flag", "shown"), [(0, 0, set()), (0, 1, {"value"}), (1, 0, {"number"}), (1, 1, {"number"})])
def test_a_reading_is_shown_where_all_of_its_conditions_hold(mode: int, flag: int, shown: set[str]) -> None:
    dwords = C.pack(mode=mode, flag=flag, value=0x3FC00000)
    assert {"value", "number"} & {line.name for line in describe.lines(C, dwords)} == shown
    assert {"value", "number"} & set(describe.to_json(C, dwords)) == shown


def test_a_shorter_form_has_fewer_fields() -> None:
    assert list(describe.to_json(T, [0])) == ["small", "size"] == [line.name for line in describe.lines(T, [0])]


def test_a_shorter_form_has_fewer_elements_of_a_group() -> None:
    text = "source public x\nstructure S\n  gen 9  2..6 dwords\n    group cell  at 2  size 32  times 4\n      7:0  red\n"
    layout = read("p", text)["S", 9.0]
    for dwords in range(2, 7):
        assert len(describe.to_json(layout, [1] * dwords)["cell"]) == dwords - 2
        assert sum(line.depth == 0 for line in describe.lines(layout, [1] * dwords)) == dwords - 2


def test_a_form_that_ends_before_a_group_has_no_element_of_it() -> None:
    """Not even of one bit, which is the least that an element has."""
    text = "source public x\nstructure S\n  gen 9  1..3 dwords\n    0  7:0  red\n    group on  at 2  size 1  times 32\n      0  bit\n"
    layout = read("p", text)["S", 9.0]
    for dwords, count in ((1, 0), (2, 0), (3, 32)):
        assert len(describe.to_json(layout, [1] * dwords)["on"]) == layout.groups[0].times(32 * dwords) == count


def test_an_element_is_zero_where_all_groups_in_it_are() -> None:
    text = "source public x\nstructure S\n  gen 9  3 dwords\n    group row  at 0  size 32  times 3\n      31:24  number\n"
    text += "      group cell  at 0  size 8  times 3\n        7:0  red\n"
    layout = read("p", text)["S", 9.0]
    rows = [(line.name, line.zero) for line in describe.lines(layout, [0, 1 << 16, 1 << 24]) if not line.depth]
    assert rows == [("row[0]", True), ("row[1]", False), ("row[2]", False)]
    cells = [(line.name, line.text, line.zero) for line in describe.lines(layout, [0, 1 << 16, 0]) if line.depth and not line.zero]
    assert cells == [("cell[2]", "", False), ("red", "1", False)]


def test_a_structure_within_a_field_is_indented() -> None:
    text = "source public x\nstructure OUTER\n  gen 9  1 dwords\n    0  6:0  cache  struct MEMORY_OBJECT_CONTROL_STATE\n"
    layout = read("p", text)["OUTER", 9.0]
    (first, *inner) = describe.lines(layout, [2])
    assert (first.name, first.text, first.depth) == ("cache", "0x2", 0) and inner and {line.depth for line in inner} == {1}
    assert len(list(describe.lines(layout, [0]))) == 1


def test_the_name_of_a_value() -> None:
    assert describe.value_name(T, T.unpack(T.pack(kind=2)), "kind") == "third"
    assert describe.value_name(T, T.unpack(T.pack(kind=1)), "kind") == "value 1"
