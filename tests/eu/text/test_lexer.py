"""The scanner under the dialects: places, comments, the annotation."""

from __future__ import annotations

import re

import pytest

from softgen.eu.text.lexer import Scanner, annotation_text

WORD = re.compile(r"[a-z]+")


def test_blanks_and_comments_are_passed_over() -> None:
    scan = Scanner(" a // b\n/* c\n * d **/ e /**/ f")
    assert [scan.expect(WORD, "a word")[0] for _ in range(3)] == ["a", "e", "f"]
    assert scan.done()


def test_glued_allows_no_blank() -> None:
    scan = Scanner("a b")
    assert scan.glued(WORD)
    assert scan.glued(WORD) is None
    assert scan.peek(WORD) and scan.take(WORD)
    with pytest.raises(type(scan.wrong("x"))):
        raise scan.wrong("x")


@pytest.mark.parametrize(("text", "at", "place", "found"), [
    ("abc", 0, "t:1:1", "'abc'"),
    ("a\nbc d", 2, "t:2:1", "'bc'"),
    ("a\nbc d", 5, "t:2:4", "'d'"),
    ("a\n", 1, "t:1:2", "the end of the line"),
    ("a", 1, "t:1:2", "the end"),
    ("++", 0, "t:1:1", "'+'"),
    ("/* x", 0, "t:1:1", "a comment that does not end"),
    ("/* bits: 0x1 */", 0, "t:1:1", "an annotation"),
    ("x" * 60, 0, "t:1:1", f"'{'x' * 40}'"),
])  # fmt: skip
def test_complaints(text: str, at: int, place: str, found: str) -> None:
    assert str(Scanner(text, "t").wrong("a word", at)) == f"{place}: expected a word, not {found}"


def test_annotations_are_no_comments() -> None:
    scan = Scanner("a /* bits: 0x1f */ /* bits */ b")
    scan.take(WORD)
    assert scan.annotation() == 0x1F
    assert scan.annotation() == 0
    assert scan.take(WORD)
    assert Scanner("/* bits: 0x1 */ a").take(WORD) is None


def test_annotations_are_read_as_written() -> None:
    assert annotation_text(0) == ""
    for value in (1, 1 << 127, 0xABCDEF):
        assert Scanner(annotation_text(value)).annotation() == value
