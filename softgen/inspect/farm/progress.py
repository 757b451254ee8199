"""How far a farm is: a bar with rate and time left on a terminal and in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

from softgen.inspect.cli.output import say

INTERVAL = 0.2  # seconds between two updates of the bar
LINES = 30.0  # seconds between two lines where there is no terminal


def duration(seconds: float) -> str:
    """'3:05', '2:10:00'."""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class FarmProgress:
    """Counts units that are done, of a total."""

    def __init__(self, total: int, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.total, self.done, self.bad = total, 0, 0
        self.stream = stream or sys.stderr
        self.quiet, self.bar = quiet, self.stream.isatty() and not quiet
        self.began = time.monotonic()
        self.next = self.began + (INTERVAL if self.bar else LINES)
        self.live: Any = None

    def step(self, good: bool) -> None:
        self.done += 1
        self.bad += not good
        if not self.quiet and (now := time.monotonic()) >= self.next:
            self.next = now + (INTERVAL if self.bar else LINES)
            self._draw() if self.bar else say(f"softgen: {self.text()}")

    def text(self) -> str:
        """'120 of 1,000 units, 3 not passed, 4.2 a second, 3:30 left'."""
        rate = self.done / max(time.monotonic() - self.began, 1e-3)
        left = duration((self.total - self.done) / rate) if rate else "?"
        bad = f", {self.bad:,} not passed" if self.bad else ""
        return f"{self.done:,} of {self.total:,} units{bad}, {rate:,.1f} a second, {left} left"

    def _draw(self) -> None:
        from rich.console import Console  # takes time that short runs need not spend
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        if self.live is None:
            console = Console(file=self.stream, force_terminal=True, highlight=False)
            self.live = Live(console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
            self.live.start()
        line = Table.grid(padding=(0, 1))
        line.add_row(ProgressBar(self.total, self.done, width=24), self.text())
        self.live.update(line, refresh=True)

    def show(self, line: str) -> None:
        """Print a line on standard output, above the bar."""
        if self.live is not None:
            self.live.stop()
            self.live = None
        print(line, flush=True)

    def close(self) -> None:
        if self.live is not None:
            self.live.stop()
            self.live = None


class NotebookProgress(FarmProgress):
    """The bar in the output of a notebook's cell."""

    def __init__(self, total: int, display: Any) -> None:
        super().__init__(total)
        self.bar, self.next = True, self.began
        self.handle = display({"text/plain": self.text()}, raw=True, display_id=True)

    def _draw(self) -> None:
        html = f'<progress max="{self.total}" value="{self.done}"></progress> {self.text()}'
        self.handle.update({"text/plain": self.text(), "text/html": html}, raw=True)

    def close(self) -> None:
        self._draw()


def farm_progress(total: int, wanted: bool | None) -> FarmProgress:
    """The progress of a farm that a program runs: in its notebook, on its terminal, or none."""
    if wanted is not False and total and (display := notebook()):
        return NotebookProgress(total, display)
    return FarmProgress(total, quiet=not wanted if wanted is not None else not sys.stderr.isatty())


def notebook() -> Any:
    """IPython's display function, if this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.modules["IPython"].display.display if shell is not None and hasattr(shell, "kernel") else None
