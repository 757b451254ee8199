"""POSITION: its string, both ways, and which events it names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import UsageError
from softgen.position import STAGES, Position, parse

NUMBERS = st.integers(0, 1 << 40)


@st.composite
def positions(draw: st.DrawFn) -> Position:
    submission = draw(st.none() | NUMBERS)
    command = None if submission is None else draw(st.none() | NUMBERS)
    if not draw(st.booleans()):
        return Position(submission if submission is not None else 0, command)
    group = draw(st.none() | NUMBERS)
    thread = None if group is None else draw(st.none() | NUMBERS)
    return Position(submission, command, draw(st.sampled_from(STAGES)), group, thread, draw(st.none() | NUMBERS), draw(st.none() | NUMBERS))


@given(positions())
def test_text_and_position_are_the_same(position: Position) -> None:
    assert parse(str(position)) == position


@pytest.mark.parametrize(("text", "position"), [
    ("2:57/ps/g0.t54+0x20#412", Position(2, 57, "ps", 0, 54, 0x20, 412)),
    ("2", Position(2)),
    ("2:57/ps+0x20", Position(2, 57, "ps", offset=0x20)),
    ("/cs/g1.t0", Position(None, None, "cs", 1, 0)),
])  # fmt: skip
def test_examples(text: str, position: Position) -> None:
    assert parse(text) == position and str(position) == text


@pytest.mark.parametrize("text", ["", "x", "2:", "2:57/", "2:57/xs", "2:57/ps/t4", "2:57/ps/g", "2/ps/g0+20", "2 ", "2:57#3", "-1", "²"])
def test_other_strings_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="a position looks like"):
        parse(text)


def test_a_position_names_all_events_that_agree_with_it() -> None:
    event = Position(2, 57, "ps", 0, 54, 0x20, 412)
    assert event in event and event in Position(2) and event in Position(2, 57, "ps", offset=0x20) and event in Position(None, None, "ps")
    assert event not in Position(2, 57, "vs") and event not in Position(2, 57, "ps", 0, 53) and Position(2) not in event


def test_outer_parts_are_added_where_there_are_none() -> None:
    inner = Position(None, None, "cs", 3, 1, 0x40)
    assert str(inner.within(Position(2, 57))) == "2:57/cs/g3.t1+0x40"
    assert inner.within(None) is inner and Position(1, 2).within(Position(3, 4)) == Position(1, 2)
