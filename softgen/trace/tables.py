"""The tables of spec/trace, read once."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from softgen.bits.generation import Device


@dataclass(frozen=True)
class Submission:
    """How work reaches the engines of a device: a table of submission.toml."""

    kind: str
    registers: dict[str, int]  # offsets from an engine's base
    go: str  # the register whose writing starts work
    slots: int
    engines: dict[int, str]  # base -> engine
    done: dict[str, int]  # register, mask and value that say an engine has finished

    def base(self, engine: str) -> int:
        """Where the first engine of this name stands."""
        return next(base for base, name in self.engines.items() if name == engine)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("softgen") / "spec" / "trace" / name).read_text("utf-8"))


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
def submissions() -> dict[str, Submission]:
    return {
        kind: Submission(kind, table["registers"], table["go"], table.get("slots", 1),
                         {int(base, 0): name for base, name in table["engine"].items()}, table.get("done", {}))
        for kind, table in _read("submission.toml").items() if "go" in table
    }  # fmt: skip


@cache
def context_image() -> dict[str, int]:
    """What a context image is written with: commands and register offsets."""
    return dict(_read("submission.toml")["context_image"])


def submission(device: Device) -> Submission:
    return submissions()[device.generation.submission]
