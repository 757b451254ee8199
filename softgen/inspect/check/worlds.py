"""The worlds of a check: `--worlds order,fill --runs N` as a list."""

from __future__ import annotations

from softgen.errors import UsageError
from softgen.inspect.check.stale import STALE
from softgen.threads.world import World

AXES = ("order", "fill", "stale", "unspecified")
DEFAULT = ("order", "fill")
RUNS = 8
MOST_RUNS = 256
FILLS = (0xFF, 0xAA, 0x55, 0x7F, 0x80, 0x01, 0x3C, 0xC3)  # negative, alternating, small and large as integers; NaN and ordinary as floats


def axes(text: str | None) -> tuple[str, ...]:
    """The axes of `--worlds`."""
    found = tuple(dict.fromkeys((text or ",".join(DEFAULT)).split(",")))
    if unknown := [axis for axis in found if axis not in AXES]:
        raise UsageError(f"--worlds are {','.join(AXES)}; not {','.join(unknown)!r}")
    return found


def worlds(chosen: tuple[str, ...], runs: int) -> list[World]:
    """So many worlds, each axis in turn. There is one `stale` world, which is not among these (stale.py)."""
    if not 0 < runs <= MOST_RUNS:
        raise UsageError(f"--runs is 1 to {MOST_RUNS}, not {runs}")
    several = [axis for axis in chosen if axis != STALE]
    return [_world(several[number % len(several)], number // len(several)) for number in range(max(runs, len(several)) if several else 0)]


def _world(axis: str, number: int) -> World:
    if axis == "order":
        return World(f"order {number + 1}", axis, seed=number + 1)
    value = FILLS[number] if number < len(FILLS) else (number * 37 & 0xFF) or 0x99
    if axis == "unspecified":
        return World(f"unspecified {value:#04x}", axis, reserved=value)
    return World(f"fill {value:#04x}", axis, fill=value)
