"""How time grows with the work, 1x to 64x: buffers (up to 1,024), threads (10 million) and instructions of a kernel (3,000).

Each row is the time of one unit beside that of the smallest size: 1.0 is linear growth, more is cheaper, and a cliff would be far below.
PLOT=FILE in the environment also draws them: docs/growth.svg was made so.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import Measurement
from bench._plot import plot
from bench.driver import Programs, lacking
from softgen.errors import SoftgenError

SOURCE = Path(__file__).parent / "programs" / "growth.c"
TIMES = (1, 4, 16, 64)
ROUNDS = 2
SMALLEST = {"buffers": 16, "threads": 156_250, "instructions": 47}
UNITS = {"buffers": "an enqueue with its own buffer", "threads": "a thread", "instructions": "an instruction of 32,768 work items"}


def unit_time(programs: Programs, what: str, number: int) -> float:
    """Seconds of one unit."""
    text = programs.run(what, str(number))
    found = re.fullmatch(r"([\d.]+) ns\n", text)
    if found is None:
        raise SoftgenError(f"growth said nothing about {what}: {text!r}")
    return float(found[1]) * 1e-9


def measure() -> Iterator[Measurement]:
    if missing := lacking():
        yield Measurement("growth", 1, "", 1.0, note=f"not measured: {missing} is not installed")
        return
    lines: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="softgen-bench-") as folder:
        programs = Programs(Path(folder), SOURCE)
        for what, smallest in SMALLEST.items():
            found = lines[f"{what}, from {smallest:,}"] = list[float]()
            for times in TIMES:
                seconds = min(unit_time(programs, what, smallest * times) for _ in range(ROUNDS))
                found.append(seconds)
                note = f"{seconds * 1e9:,.1f} ns {UNITS[what]}"
                yield Measurement(f"{smallest * times:,} {what}", 1, "", seconds, "1x", found[0], note)
    if where := os.environ.get("PLOT"):
        relative = {name: [value / values[0] for value in values] for name, values in lines.items()}
        Path(where).write_text(plot(relative, TIMES, "time of a unit, over that at 1x"), "utf-8")
