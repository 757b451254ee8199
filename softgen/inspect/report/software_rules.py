"""The manual's rules for software: which one a remark says was broken, as the manual puts it.

Reads   spec/streamer/software.toml
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import Any, NamedTuple

from softgen.bits.generation import SPEC

GENERATION = re.compile(r"\bgen ([0-9.]+)\)")  # in the place of a remark
OF = "11"  # the generation whose manual the rules are from


class SoftwareRule(NamedTuple):
    """A numbered behaviour that asks something of software, with its lines in the manual."""

    behaviour: str
    lines: str
    says: str

    def __str__(self) -> str:
        return f"{self.behaviour} ({self.lines}): {self.says}"


@cache
def table() -> dict[str, dict[str, Any]]:
    return tomllib.loads((SPEC / "streamer" / "software.toml").read_text("utf-8"))


@cache
def _rules() -> tuple[tuple[re.Pattern[str], SoftwareRule], ...]:
    return tuple((re.compile(row["remark"]), SoftwareRule(name, row["lines"], row["says"])) for name, row in table().items()
                 if "remark" in row)  # fmt: skip


def rule_of(remark: str) -> SoftwareRule | None:
    """The rule that a remark is about; None where it is none of these, or of another generation."""
    generation = GENERATION.search(remark)
    if generation is not None and generation[1] != OF:
        return None
    return next((rule for pattern, rule in _rules() if pattern.search(remark)), None)
