"""Flush effects: which caches a PIPE_CONTROL flushes and invalidates, and what it sends down the pipe.

Reads   PIPE_CONTROL
Writes  nothing

No cache here holds anything back, so that these are what the trace topic `flushes` lists, and what tests of drivers can compare. The table
is spec/streamer/flush.toml.
"""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any, NamedTuple

from softgen.bits.generation import SPEC
from softgen.bits.record import Record

DEPTH_STALL = "depth_stall_enable"
NOTIFIES = ("notify_enable", "post_sync_operation")
ANY = "-"


class FlushEffects(NamedTuple):
    """What one PIPE_CONTROL does. `marker`, `enabled`, `awaited` and `pulse` are None where the table has nothing to say."""

    flushed: tuple[str, ...]  # write caches
    invalidated: tuple[str, ...]  # read-only caches, at the top of the pipe, when the command is parsed
    marker: bool | None  # goes down the pipe
    enabled: bool | None  # as a pipeline marker
    awaited: bool | None  # its completion
    pulse: bool | None  # the streamer invalidates at the top

    def __str__(self) -> str:
        parts = [f"{what} {', '.join(names)}" for what, names in (("invalidates", self.invalidated), ("flushes", self.flushed)) if names]
        asked = ("marker", "enabled", "awaited", "pulse")
        return "; ".join([*parts, " ".join(name for name in asked if getattr(self, name)) or "nothing goes down the pipe"])


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads((SPEC / "streamer" / "flush.toml").read_text("utf-8"))


@cache
def _rows(rules: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split()) for line in _tables()[rules]["table"].strip().splitlines())


def known(rules: str) -> bool:
    """Whether a generation has a table."""
    return rules in _tables()


def flush_effects(cmd: Record, rules: str) -> FlushEffects:
    """The effects of a command's bits."""
    table = _tables()[rules]
    write, read_only, vertex = ([cache for field, cache in table[kind].items() if getattr(cmd, field, 0)]
                                for kind in ("write", "read_only", "vertex"))  # fmt: skip
    if getattr(cmd, DEPTH_STALL, 0):
        kept = table["with_depth_stall"]
        write, read_only, vertex = ([cache for cache in caches if cache in kept] for caches in (write, read_only, vertex))
    notifies = any(getattr(cmd, name, 0) for name in NOTIFIES)
    asked = [str(int(bool(bits))) for bits in (write, notifies, read_only, vertex)]
    row = next(row for row in _rows(rules) if all(said in (ANY, bit) for said, bit in zip(row, asked, strict=False)))
    return FlushEffects(tuple(write), (*read_only, *vertex), *(None if said == ANY else said == "1" for said in row[len(asked) :]))
