"""The tables of spec/trace, read once."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from softgen.bits.generation import SPEC


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((SPEC / "trace" / name).read_text("utf-8"))


@cache
def aub(table: str) -> dict[int, str]:
    """A table of aub.toml: number -> name."""
    return {int(number, 0): name for number, name in _read("aub.toml")[table].items()}


@cache
def hints() -> dict[str, int]:
    return dict(_read("aub.toml")["hint"])


@cache
def records() -> dict[tuple[int, int], str]:
    """(opcode, subopcode) -> the record's page."""
    return {
        (int(opcode, 0), int(subopcode, 0)): name
        for opcode, table in _read("aub.toml")["opcode"].items()
        for subopcode, name in table["record"].items()
    }


@cache
def biases() -> dict[int, int]:
    """opcode -> what a record's length field leaves out."""
    return {int(opcode, 0): table["bias"] for opcode, table in _read("aub.toml")["opcode"].items()}


@cache
def error_state() -> dict[str, Any]:
    """Names of engines, memory and registers in the i915 driver."""
    return _read("error_state.toml")
