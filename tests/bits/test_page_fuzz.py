"""Any text as a page: layouts, or a complaint that names page and line. Never anything else, and soon."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits import page
from softgen.bits.catalogue import Catalogue, spec_files
from softgen.errors import SpecError

HEAD = "source BDW\n"
WORDS = (
    "gen", "group", "times", "*", "at", "size", "of", "derive", "or", "when", "@", "8+", "..", "0", "99999999999999999999", "-1", "63:0",
    "31:32", "enum", "struct", "|", "a | b", "0=", "address", "u4.8", "dwords", "fixed", "length", "7:-", "key", "3.3.0.zz", "bias", "x",
    "engines", "all", "with", "1:0=9", "source", "KBL", ";", "a=b", "&", "1 << 99999", "// 0", "\t", "\0", "é", "٣", "command", "(", "name",
)  # fmt: skip


def read(text: str) -> None:
    """Everything that happens to a page until a value is unpacked."""
    try:
        for record in page.read("p", text).values():
            record.unpack([0xFFFFFFFF] * record.dwords)
            record.raw([0] * record.dwords)
        made = Catalogue([("p", text)])
        for name in made.enums:
            made.enumeration(name, 9.0)
        made.find_command(0x78100000, 9.0, "render")
    except SpecError as error:
        assert re.match(r"p(:\d+)?: |.*no page", str(error)), error


@cache
def pages() -> list[list[str]]:
    return [file.read_text("utf-8").splitlines() for _, file in spec_files(".layout")]


@given(st.data())
def test_any_change_to_a_real_page(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from(pages()))
    first = data.draw(st.integers(0, len(lines) - 1))
    part = [HEAD.strip(), *lines[first : first + 40]]
    for at in data.draw(st.lists(st.integers(0, len(part) - 1), min_size=1, max_size=4)):
        words = part[at].split(" ")
        words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from(WORDS))
        part[at] = " ".join(words)
    read("\n".join(part))


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    read(text)
    read(f"{HEAD}structure S\n  gen 8+  2 dwords\n    {text}")


@pytest.mark.parametrize("line, complaint", [
    ("message ٠", "no plain ASCII"),
    ("message \0", "no plain ASCII"),
    ("structure S\n  gen 8  99999999999 dwords", "cannot read"),
    ("structure S\n  gen 8  1 dwords\n    99999999999999999999  15:8  x", "cannot read"),
    ("structure S\n  gen 8  1+ dwords\n    group g  at 0  size 99999  times 99999\n      0  31:0  x", "end before bit"),
    ("structure S\n  gen 8  1 dwords\n    0  31:0  a\n    derive b  1 << a", "may shift by"),
    ("structure S\n  gen 8  1 dwords\n    0  31:0  a\n    derive b  1 // a", "divide by numbers above 0"),
    ("structure S\n  gen 8  1 dwords\n    ; KBL 5", "cannot read"),
    ("command C\n  gen 8  1 dwords", "needs a key and engines"),
    ("command C 0.22 all\n  gen 8  1 dwords  length 7:-", "is no option of a gen line"),
    ("command C 0.22 all\n  gen 8  1 dwords  length 40:33", "must fit dword 0"),
    ("command C 0.22 all\n  gen 8  1 dwords  with 1:0=9", "must fit dword 0"),
])  # fmt: skip
def test_what_once_went_wrong(line: str, complaint: str) -> None:
    with pytest.raises(SpecError, match=complaint):
        page.read("p", HEAD + line)


@pytest.mark.parametrize("number", ["0027", "0x", "99999999999999999999", "-1"])
def test_numbers_of_an_enumeration(number: str) -> None:
    with pytest.raises(SpecError, match="p:3: an enumeration's line is a number and a name"):
        Catalogue([("p", f"{HEAD}enum E\n  {number}  name\n")]).enumeration("E", 9.0)
