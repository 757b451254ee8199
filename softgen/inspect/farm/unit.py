"""Units and their results: what a farm runs, and one line of JSON about each.

A unit is an input on a GPU. A job is what one process does: a single unit, or a group of cases that share a program's start. Both travel
to workers on other machines, so they hold plain values only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from softgen.errors import DecodeError

RESULTS = ("pass", "fail", "crash", "timeout", "skip")
GOOD = ("pass", "skip")
UnitOutcome = tuple[str, str, tuple[str, ...]]  # result, message and findings: what another run of the same unit repeats


@dataclass(frozen=True, slots=True)
class FarmUnit:
    """An input on a GPU. `name` is the line of a list, the path of a capture, or a case of a suite; `key` is its hash."""

    name: str
    gpu: str
    key: str


@dataclass(frozen=True, slots=True)
class UnitResult:
    """What became of a unit. Two results of one key are equal in all but `seconds`."""

    name: str
    gpu: str
    result: str
    seconds: float
    message: str
    key: str
    findings: tuple[str, ...] = ()  # of `softgen check`

    @property
    def good(self) -> bool:
        return self.result in GOOD

    @property
    def outcome(self) -> UnitOutcome:
        return self.result, self.message, self.findings

    def line(self) -> str:
        found = {"name": self.name, "gpu": self.gpu, "result": self.result, "seconds": round(self.seconds, 3), "message": self.message,
                 "hash": self.key}  # fmt: skip
        return json.dumps(found | ({"findings": list(self.findings)} if self.findings else {}), ensure_ascii=False)


def parse_result(line: str | bytes) -> UnitResult:
    """The result in a line of JSON; DecodeError says what is wrong with it."""
    try:
        found: dict[str, Any] = json.loads(line)
        result = UnitResult(found["name"], found["gpu"], found["result"], float(found["seconds"]), found["message"], found["hash"],
                            tuple(found.get("findings", ())))  # fmt: skip
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DecodeError(f"is no result: {error}") from None
    except KeyError as missing:
        raise DecodeError(f"is no result: it has no {missing}") from None
    texts = (result.name, result.gpu, result.message, result.key, *result.findings)
    if result.result not in RESULTS or not all(isinstance(text, str) for text in texts):
        raise DecodeError(f"is no result: {found}"[:200])
    return result


@dataclass(frozen=True)
class Job:
    """What one process does: units of one suite on one GPU, and how."""

    suite: str  # its name in suites.py
    gpu: str
    units: tuple[FarmUnit, ...]
    seconds: float  # limit: of a unit, or of each case of a group
    memory: int  # limit, in bytes, of the process and all it starts
    folder: str  # the working folder
    options: tuple[str, ...] = ()  # of `softgen run` or `replay`
    environment: Mapping[str, str] = field(default_factory=dict)  # what drivers read
    program: tuple[str, ...] = ()  # of suites whose cases one program runs: the program and its arguments
    commands: tuple[tuple[str, ...], ...] = ()  # of suites whose units have a command each that is not their name
    pictures: bool = False
    host: str = ""  # a sum of the softgen and the drivers that a worker must have; "" for those of this process
    inputs: tuple[tuple[str, str], ...] = ()  # path and sum of captures: a worker that has no such path is sent them
    payload: bytes = b""  # the inputs, packed, for a worker that has asked for them


@dataclass
class JobOutcome:
    """What came out of a job: results, and what units left behind. `stopped`: the rest was not run."""

    results: list[UnitResult] = field(default_factory=list)
    logs: dict[str, str] = field(default_factory=dict)  # by key
    pictures: dict[str, dict[str, bytes]] = field(default_factory=dict)  # by key: PNG files by name
    captures: dict[str, dict[str, bytes]] = field(default_factory=dict)  # by key: files of the submission that failed
    findings: list[dict[str, Any]] = field(default_factory=list)  # about several runs of one unit
    stopped: bool = False


def difference(what: str, result: UnitResult, before: UnitOutcome) -> dict[str, Any]:
    """The finding that two runs of a unit differ."""
    return {"name": result.name, "gpu": result.gpu, "hash": result.key, "finding": what,
            "first": {"result": before[0], "message": before[1]},
            "second": {"result": result.result, "message": result.message}}  # fmt: skip
