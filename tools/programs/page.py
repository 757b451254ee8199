"""The page of what came of the programs: written, and read again where it is all that is left of former runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from soak import Sample

INTRODUCTION = (
    "# Programs", "", "Made by `tools/programs`, which runs the programs of `tools/programs/table.toml` on softgen: do not edit.", "",
    "Picture: what the display shows in the end (640x480), by the number of its colours. Frames per second are the program's own, on a",
    "machine with other work; ratio: to those of the same program on llvmpipe (lavapipe, pocl), on the same display.", "")  # fmt: skip
COLUMNS = ("program", "package", "command", "GPU", "verdict", "picture", "frames/s", "ratio", "first error")
SOAKED = ("", "## Two minutes of each", "",
          "The simulator's memory and descriptors, and the processes of the run: when half of the time was over, and in the end.", "")
SOAK_COLUMNS = ("program", "memory, MiB", "descriptors", "processes")


@dataclass
class Result:
    """What came of a program."""

    name: str
    package: str
    command: str
    gpu: str
    verdict: str  # runs, fails, hangs, absent
    picture: str = ""  # colours of the last frame, or "blank"
    frames: int = 0
    rate: float | None = None
    ratio: float | None = None  # to llvmpipe
    error: str = ""  # the first
    soak: dict[str, Any] = field(default_factory=dict)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def lines_of(columns: tuple[str, ...], rows: Iterable[Iterable[str]]) -> list[str]:
    """A table's lines of Markdown."""
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *(f"| {' | '.join(row)} |" for row in rows)]


def cells(row: dict[str, Any]) -> Iterator[str]:
    rate, ratio = (f"{row[key]:.3g}" if row[key] is not None else "" for key in ("rate", "ratio"))
    yield from (row["name"], row["package"], f"`{cell(row['command'])}`", row["gpu"], row["verdict"], row["picture"])
    yield from (rate, ratio, cell(row["error"]))


def soak_cells(row: dict[str, Any]) -> Iterator[str]:
    """How a run of two minutes grew."""
    yield row["name"]
    for key, unit in (("memory", 1 << 20), ("descriptors", 1), ("processes", 1)):
        yield " → ".join(str(row["soak"][when][key] // unit) for when in ("settled", "end"))


def page(rows: list[dict[str, Any]]) -> str:
    """The page as Markdown."""
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("runs", "fails", "hangs", "absent")}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    lines = [*INTRODUCTION, f"{len(rows)} programs: {told}.", "", *lines_of(COLUMNS, map(cells, rows))]
    if soaked := [row for row in rows if row["soak"]]:
        lines += [*SOAKED, *lines_of(SOAK_COLUMNS, map(soak_cells, soaked))]
    return "\n".join(lines) + "\n"


def rows_of(text: str) -> list[dict[str, Any]]:
    """The rows of a page, as they were kept."""
    found = [re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in text.splitlines() if line.startswith("| ")]
    soaks = {row[0]: soak_of(row) for row in found if len(row) == len(SOAK_COLUMNS) and row[0] != "program"}
    return [row_of(row) | {"soak": soaks.get(row[0], {})} for row in found if len(row) == len(COLUMNS) and row[0] != "program"]


def row_of(texts: list[str]) -> dict[str, Any]:
    name, package, command, gpu, verdict, picture, rate, ratio, error = (text.replace("\\|", "|") for text in texts)
    numbers = {"rate": float(rate) if rate else None, "ratio": float(ratio) if ratio else None}
    return asdict(Result(name, package, command.strip("`"), gpu, verdict, picture, error=error)) | numbers


def soak_of(texts: list[str]) -> dict[str, Any]:
    grown = [[int(number) for number in text.split(" → ")] for text in texts[1:]]
    settled, end = zip(*grown, strict=True)
    return {when: asdict(Sample(memory << 20, *others)) for when, (memory, *others) in (("settled", settled), ("end", end))}
