"""Worked examples, written down as data, on both machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softgen.lanes.compile.signature import Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import DTYPES
from softgen.lanes.operations import OPERATIONS
from softgen.lanes.types import BY_NAME, ROUNDINGS, LaneType, bool_
from softgen.lanes.value import Value
from tests.lanes.both import agree

FOLDER = Path(__file__).parent / "examples"
TRUTH = ("is_nan", "is_inf", "is_denormal", "sign_bit")


def examples(file: str) -> Iterator[tuple[str, list[str], str]]:
    """The line, what stands before the arrow, and what after."""
    for number, line in enumerate((FOLDER / file).read_text("utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if text:
            before, _, after = text.partition("->")
            yield f"{file}:{number}: {text}", before.split(), after.strip()


def lane(type: LaneType, text: str) -> Any:
    if type.is_bool or not type.is_float:
        return np.array([int(text)], DTYPES[type])
    return np.array([int(text, 16)], DTYPES[type.unsigned]).view(DTYPES[type])


def compare(line: str, type: LaneType, found: Any, text: str) -> None:
    if text == "nan":
        assert np.isnan(found[0]), line
    else:
        assert found.tobytes() == lane(type, text).tobytes(), f"{line}: got {found}, {found.view(f'u{found.itemsize}')[0]:#x}"


def check(lines: list[tuple[str, LaneType, str]], program: Any, inputs: tuple[Lanes, ...], given: list[Any]) -> None:
    """All lines of a group as one program, an output each."""
    found = agree(program, Signature(inputs, tuple(Lanes(type, 1) for _, type, _ in lines)), given)
    for (line, type, text), item in zip(lines, found, strict=True):
        compare(line, type, item, text)


@pytest.mark.parametrize("file", ["float.txt", "integer.txt"])
def test_operations(file: str) -> None:
    calls: list[tuple[str, dict[str, str], int]] = []
    lines, inputs, given = [], [], []
    for line, (name, type_name, *rest), after in examples(file):
        type = BY_NAME[type_name]
        options = {"rounding": rest.pop(0)} if rest[0] in ROUNDINGS else {}
        truth = name in TRUTH or name in OPERATIONS and OPERATIONS[name].gives_bool
        calls.append((name, options, len(rest)))
        lines.append((line, bool_ if truth else type, after))
        inputs += [Lanes(type, 1)] * len(rest)
        given += [lane(type, text) for text in rest]

    def program(m: Machine, *values: Value) -> tuple[Value, ...]:
        left = list(values)
        return tuple(getattr(m, name)(*(left.pop(0) for _ in range(count)), **options) for name, options, count in calls)

    check(lines, program, tuple(inputs), given)


def test_conversions() -> None:
    lines, modes, inputs, given = [], [], [], []
    for line, (source, type, *rest), after in examples("convert.txt"):
        modes.append(rest[0] if len(rest) > 1 else "rne")
        lines.append((line, BY_NAME[type], after))
        inputs.append(Lanes(BY_NAME[source], 1))
        given.append(lane(BY_NAME[source], rest[-1]))

    def program(m: Machine, *values: Value) -> tuple[Value, ...]:
        return tuple(m.convert(value, type, mode) for value, (_, type, _), mode in zip(values, lines, modes, strict=True))

    check(lines, program, tuple(inputs), given)


def test_every_row_has_an_example() -> None:
    named = {before[0] for file in ("float.txt", "integer.txt") for _, before, _ in examples(file)}
    assert set(OPERATIONS) - named == set()
