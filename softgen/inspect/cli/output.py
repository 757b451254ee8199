"""The shared look of all verbs: colour by role, aligned tables, JSON, error messages, progress.

Colour appears on a terminal only; NO_COLOR (set and not empty) and TERM=dumb switch it off. Piped output is plain text. Tables and colour
are a few lines here because rich takes 70 ms to import, more than most verbs run; what is slow anyway (progress, reports) uses rich.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

ROLES = {                   # role -> SGR parameters; verbs name the role of a text, never its colour
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


def wants_colour(stream: TextIO) -> bool:
    """Whether this stream takes escape codes."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


class Paint:
    """`paint("3DSTATE_VS", "name")` is the text in the role's colour, or the text itself where there is no colour."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled

    def __call__(self, text: object, role: str) -> str:
        code = ROLES[role]
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled else str(text)


def paint(stream: TextIO | None = None) -> Paint:
    """The Paint of a stream (default: standard output)."""
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


def counted(number: int, noun: str) -> str:
    """'1 command', '1,200 batches'."""
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def print_json(value: Any, indent: int | None = None) -> None:
    """Print one JSON value on one line (or indented); NaN, which JSON lacks, raises."""
    print(json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False))


def complain(message: object) -> None:
    """Print a message as one line on standard error."""
    text = " ".join(str(message).split())
    say(f"{paint(sys.stderr)('softgen:', 'bad')} {text}")


def say(line: str) -> None:
    """Print a line on standard error. Where nobody can read it (a closed pipe, a full disk) it is dropped, as are all later ones: the
    work that it is about goes on."""
    try:
        print(line, file=sys.stderr)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Send what a stream has buffered, and all that follows, to /dev/null: the interpreter's last flush neither fails nor blocks then."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nothing, stream.fileno())
        finally:
            os.close(nothing)
    except OSError:  # or io.UnsupportedOperation, which is one: a stream without a descriptor
        pass


class Progress:
    """A counter on a terminal's standard error that appears after a second and is wiped at the end; silent in a pipe.

    with Progress("decoding", total) as progress: … progress.step()
    """

    DELAY = 1.0             # seconds before anything is shown
    INTERVAL = 0.1          # seconds between two updates

    def __init__(self, label: str, total: int | None = None, stream: TextIO | None = None, printing: bool = False) -> None:
        """`printing`: lines are printed meanwhile; if they go to a terminal, the counter is left out and does not mix with them."""
        self.label, self.total, self.done = label, total, 0
        self.stream = stream or sys.stderr
        self.visible = self.stream.isatty() and not (printing and sys.stdout.isatty())
        self.live: Any = None
        self.next = time.monotonic() + self.DELAY

    def step(self, count: int = 1) -> None:
        self.done += count
        if self.visible and (now := time.monotonic()) >= self.next:
            self.next = now + self.INTERVAL
            self._show()

    def _show(self) -> None:
        from rich.console import Console  # only work that takes a second needs it
        from rich.live import Live

        goal = f" of {self.total:,}" if self.total is not None else ""
        if self.live is None:
            console = Console(file=self.stream, force_terminal=True, highlight=False)
            self.live = Live(console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
            self.live.start()
        self.live.update(f"{self.label} {self.done:,}{goal}", refresh=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()
