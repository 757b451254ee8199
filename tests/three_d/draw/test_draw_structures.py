"""Numbers that draw.c and Python give each other: the enumerations of draw.h have the same members in both languages."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path

import pytest

from softgen import three_d
from softgen.threads.native.scheduler import ReturnReason
from softgen.three_d.draw.draw_structures import Base, DrawReason, Phase

HEADER = (Path(three_d.__file__).parent / "draw" / "draw.h").read_text("utf-8")


def members(name: str, prefix: str) -> dict[str, int]:
    """An enumeration of the header, as C counts."""
    match = re.search(rf"enum {name} \{{(.*?)\}};", HEADER, re.DOTALL)
    assert match
    found, number = {}, 0
    for item in re.sub(r"/\*.*?\*/", "", match[1], flags=re.DOTALL).split(","):
        word, given, value = (part.strip() for part in item.partition("="))
        if given:
            number = int(value) if value.isdecimal() else ReturnReason[value.removeprefix("THREADS_")]
        if word.startswith(prefix):
            found[word.removeprefix(prefix)] = number
        number += 1
    return found


@pytest.mark.parametrize("kind, name, prefix", [(Phase, "draw_phase", "DRAW_"), (Base, "draw_base", "BASE_"),
                                                (DrawReason, "draw_reason", "DRAW_")])  # fmt: skip
def test_enumerations_are_the_same_in_both_languages(kind: type[IntEnum], name: str, prefix: str) -> None:
    assert {member.name: member.value for member in kind} == members(name, prefix)
