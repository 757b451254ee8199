"""Deletes each bit of each PIPE_CONTROL of a capture in turn, and counts the deletions that `softgen check --worlds stale` sees.

    .venv/bin/python tools/pipe_controls.py CAPTURE …

Prints, by bit, how often it is set and how many deletions are seen. The deletion of a bit that `stale` does not model changes nothing in
its world: it is counted and not run. Each other deletion replays the capture.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from softgen.inspect.check.stale import ALL, check_stale  # noqa: E402
from softgen.inspect.session.events import submissions  # noqa: E402
from softgen.inspect.session.execution import CaptureExecution  # noqa: E402
from softgen.position import Position  # noqa: E402
from softgen.trace.file import open_trace  # noqa: E402

WORDS = ("invalidat", "flush", "stall")  # in the names of the bits


def bits(capture: str) -> Iterator[tuple[str, Position, bool]]:
    """Each such bit that a PIPE_CONTROL sets, where, and whether the world `stale` models it."""
    for submission in submissions(open_trace(capture)):
        for event in submission.events:
            on = [name for name, value in event.fields.items() if value in (1, True) and any(word in name for word in WORDS)]
            for name in on if event.name == "PIPE_CONTROL" else ():
                yield name, event.position, name in ALL


def seen(capture: str, position: Position, bit: str) -> bool:
    """Whether a flush is missing where a bit is deleted."""
    return bool(check_stale(lambda: open_trace(capture), "auto", deleted=lambda at, name: (at, name) == (position, bit)))


def table(capture: str) -> dict[str, tuple[int, int]]:
    """Of each bit: how often it is set, and how many deletions are seen."""
    plain = CaptureExecution(open_trace(capture))
    plain.run_to_end()
    for _, error in plain.errors:
        raise SystemExit(f"{capture}: {error}")  # draws that fail read nothing: no deletion would be seen
    found: dict[str, tuple[int, int]] = {}
    for bit, position, modelled in bits(capture):
        count, missed = found.get(bit, (0, 0))
        found[bit] = count + 1, missed + (modelled and seen(capture, position, bit))
    return found


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(Path(path).name)
        for bit, (count, missed) in sorted(table(path).items()):
            print(f"  {bit}: set {count}, deletions seen {missed}", flush=True)
