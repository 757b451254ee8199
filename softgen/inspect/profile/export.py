"""Profiles for other programs: CSV with a row for each instruction, and speedscope's format with stacks of draw, kernel and instruction."""

from __future__ import annotations

import csv
import io
from typing import Any

from softgen import __version__
from softgen.inspect.profile.counts import Profile

COLUMNS = ("kernel", "stage", "code", "offset", "line", "text", "executed", "lanes", "accesses", "bytes_read", "bytes_written",
           "lines_touched")  # fmt: skip
SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def as_csv(profile: Profile) -> str:
    """A row for each instruction of each kernel."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for kernel in profile.kernels:
        for row in kernel.instructions:
            values = {"kernel": kernel.name, "stage": kernel.stage, "code": kernel.code} | vars(row)
            writer.writerow(["" if values[name] is None else values[name] for name in COLUMNS])
    return text.getvalue()


def speedscope(profile: Profile) -> dict[str, Any]:
    """Two profiles for https://www.speedscope.app: instructions by draw and kernel, and by kernel, source line and instruction."""
    frames: dict[tuple[str, str], int] = {}
    names = {kernel.code: f"{kernel.name} {kernel.stage}".rstrip() for kernel in profile.kernels}

    def frame(name: str, file: str = "") -> int:
        return frames.setdefault((name, file), len(frames))

    by_draw = [([frame(f"{draw.position} {draw.name}"), frame(names[code])], count)
               for draw in profile.draws for code, count in draw.kernels.items()]  # fmt: skip
    by_line = []
    for kernel in profile.kernels:
        for row in kernel.instructions:
            source = [frame(row.line, row.line.rpartition(":")[0])] if row.line else []
            by_line.append(([frame(names[kernel.code]), *source, frame(f"{row.offset:#06x} {row.text}")], row.executed))
    made = [_sampled("instructions by draw", by_draw), _sampled("instructions by kernel and line", by_line)]
    shared = [{"name": name} | ({"file": file} if file else {}) for name, file in frames]
    return {"$schema": SCHEMA, "exporter": f"softgen {__version__}", "name": f"{profile.capture} ({profile.gpu})",
            "shared": {"frames": shared}, "profiles": made}  # fmt: skip


def _sampled(name: str, stacks: list[tuple[list[int], int]]) -> dict[str, Any]:
    total = sum(count for _, count in stacks)
    return {"type": "sampled", "name": name, "unit": "none", "startValue": 0, "endValue": total,
            "samples": [stack for stack, _ in stacks], "weights": [count for _, count in stacks]}  # fmt: skip
