"""Types of fields, as pages write them."""

from __future__ import annotations

import pytest

from softgen.bits.field import FieldType
from softgen.bits.field_type import read_type
from softgen.errors import SpecError


@pytest.mark.parametrize("text, width, expected", [
    ("", 5, FieldType()), ("int", 5, FieldType("int")), ("bool", 1, FieldType("bool")), ("float", 32, FieldType("float")),
    ("half", 16, FieldType("half")), ("double", 64, FieldType("double")), ("minus1", 3, FieldType("minus1")),
    ("enum Compare", 3, FieldType("enum", target="Compare")), ("struct ELEMENT", 64, FieldType("struct", target="ELEMENT")),
    ("u4.8", 12, FieldType("fixed", fraction=8)), ("s4.8", 13, FieldType("fixed", fraction=8, signed=True)),
    ("address", 26, FieldType("address")), ("address dynamic", 26, FieldType("address", base="dynamic")),
    ("address -", 26, FieldType("address")), ("address - data", 26, FieldType("address", target="data")),
    ("address surface STATE", 26, FieldType("address", base="surface", target="STATE")),
    ("a | b | - | 7=c | d e", 4, FieldType("enum", values=((0, "a"), (1, "b"), (7, "c"), (8, "d e")))),
    ("3=x", 2, FieldType("enum", values=((3, "x"),))), ("0x10=a | b", 5, FieldType("enum", values=((16, "a"), (17, "b")))),
])  # fmt: skip
def test_types(text: str, width: int, expected: FieldType) -> None:
    assert read_type(SpecError, text, width) == expected


@pytest.mark.parametrize("text, width, complaint", [
    ("colour", 5, "'colour' is no type"), ("fixed", 5, "'fixed' is no type"), ("int 5", 5, "'int 5' is no type"),
    ("enum", 5, "'enum' is no type"), ("enum A B", 5, "'enum A B' is no type"), ("struct", 5, "'struct' is no type"),
    ("struct A B", 5, "'struct A B' is no type"), ("address surface STATE more", 26, "'address surface STATE more' is no type"),
    ("address moon", 26, "an address counts from general, surface, dynamic, instruction, indirect, bindless, -, not 'moon'"),
    ("bool", 2, "a bool is 1 bits wide, not 2"), ("float", 31, "a float is 32 bits wide, not 31"),
    ("half", 17, "a half is 16 bits wide, not 17"),
    ("double", 32, "a double is 64 bits wide, not 32"), ("u4.8", 13, "u4.8 is 12 bits wide, the field 13"),
    ("s4.8", 12, "s4.8 is 13 bits wide, the field 12"), ("a | | b", 4, "an empty name in 'a | | b'"),
    ("a | 0=b", 4, "'b' has value 0, which is taken or does not fit 4 bits"), ("3=a | b", 2, "'b' has value 4, which is taken"),
])  # fmt: skip
def test_what_is_no_type_is_refused(text: str, width: int, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_type(SpecError, text, width)
    assert str(caught.value).startswith(complaint)
