"""The shared look of all verbs: colour by role, aligned tables, JSON, complaints, progress.

Colour appears on a terminal only; NO_COLOR (set and not empty) and TERM=dumb switch it off. What is piped is plain text.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from softgen.errors import SoftgenError

ROLES = {                   # role -> SGR parameters; verbs say what a text is, never which colour it has
    "heading": "1",
    "name": "1",
    "address": "36",
    "value": "33",
    "note": "2",
    "good": "32",
    "warn": "33",
    "bad": "31",
}
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Misuse(SoftgenError):
    """The command line asks for something that does not exist: exit code 2, where other failures have 1."""


def wants_colour(stream: TextIO) -> bool:
    """Whether escape codes are welcome on this stream."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Paint:
    """`paint("3DSTATE_VS", "name")` is the text in the role's colour, or the text itself where colour is not wanted."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def __call__(self, text: object, role: str) -> str:
        code = ROLES[role]
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled else str(text)


def paint(stream: TextIO | None = None) -> Paint:
    """The paint for a stream, standard output unless told."""
    return Paint(wants_colour(stream or sys.stdout))


def width(text: str) -> int:
    """Columns a text takes; escape codes take none."""
    return len(ESCAPE.sub("", text))


def table(rows: Iterable[Sequence[object]], header: Sequence[str] = (), right: Sequence[int] = ()) -> Iterator[str]:
    """Lines of aligned columns; columns whose number is in `right` hold numbers. No trailing blanks."""
    lines = [[str(cell) for cell in row] for row in ([header, *rows] if header else rows)]
    if not lines:
        return
    columns = max(map(len, lines))
    widths = [max(width(line[c]) for line in lines if c < len(line)) for c in range(columns)]
    for line in lines:
        cells = []
        for column, cell in enumerate(line):
            padding = " " * (widths[column] - width(cell))
            cells.append(padding + cell if column in right else cell + padding)
        yield "  ".join(cells).rstrip()


def counted(number: int, thing: str) -> str:
    """'1 command', '2 commands'."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def print_json(value: Any, indent: int | None = None) -> None:
    """One JSON value on one line (or indented), never with NaN, which is no JSON."""
    print(json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False))


def complain(message: object) -> None:
    """One line on standard error, the way every failure is told."""
    text = " ".join(str(message).split())
    print(f"{paint(sys.stderr)('softgen:', 'bad')} {text}", file=sys.stderr)


class Progress:
    """A line on a terminal's standard error that appears after a second and is wiped at the end; silent in a pipe.

    with Progress("decoding", total) as progress: … progress.step()
    """

    PATIENCE = 1.0          # seconds before anything is shown
    INTERVAL = 0.1          # seconds between two updates

    def __init__(self, label: str, total: int | None = None, stream: TextIO | None = None, printing: bool = False) -> None:
        """`printing`: lines are printed meanwhile; where they go to a terminal they are progress enough, and must not be mixed with."""
        self.label, self.total, self.done = label, total, 0
        self.stream = stream or sys.stderr
        self.visible = self.stream.isatty() and not (printing and sys.stdout.isatty())
        self.shown = False
        self.next = time.monotonic() + self.PATIENCE

    def step(self, count: int = 1) -> None:
        self.done += count
        if self.visible and (now := time.monotonic()) >= self.next:
            self.next = now + self.INTERVAL
            self.shown = True
            goal = f" of {self.total:,}" if self.total is not None else ""
            self.stream.write(f"\r\x1b[K{self.label} {self.done:,}{goal}")
            self.stream.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
