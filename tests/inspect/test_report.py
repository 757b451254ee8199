"""The report of a run as text: what ran, what failed, and the hottest kernels."""

from __future__ import annotations

import io
from typing import Any

import pytest

from softgen.inspect import report


def made(kernels: int = 0, **more: Any) -> dict[str, Any]:
    row = {"kernel": "k", "code": "c0de", "engine": "t0", "dispatches": 1, "threads": 2000, "instructions": 3, "seconds": 0.5}
    counts = {"commands": 1, "draws": 2, "threads": 1000, "instructions": 0}
    empty: dict[str, Any] = {"approximate": {}, "exact": True, "faults": [], "unsupported": []}
    return counts | empty | {"kernels": [row | {"kernel": f"k{number}"} for number in range(kernels)]} | more


def shown(found: dict[str, Any]) -> list[str]:
    stream = io.StringIO()
    report.show(found, stream)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("kernels, rows, more", [(1, 1, []), (9, 9, []), (10, 10, []), (11, 10, ["  and 1 more kernels"]),
                                                 (25, 10, ["  and 15 more kernels"])])  # fmt: skip
def test_the_ten_hottest_kernels_are_shown(kernels: int, rows: int, more: list[str]) -> None:
    lines = shown(made(kernels))
    head = next(number for number, line in enumerate(lines) if line.split()[:3] == ["kernel", "code", "engine"])
    assert [line.split() for line in lines[head + 1 : head + 1 + rows]] == [
        [f"k{number}", "c0de", "t0", "1", "2,000", "3", "0.500"] for number in range(rows)]  # fmt: skip
    assert lines[head + 1 + rows :] == more


def test_without_kernels_there_is_no_table() -> None:
    assert shown(made()) == ["report", "  1 command, 2 draws, 1,000 threads, 0 instructions",
                             "  exact: no function was used that the hardware only approximates"]  # fmt: skip


def test_lines_of_a_summary() -> None:
    more = {"frames": {"presented": 1200, "per_second": 59.94}, "notes": ["slow"], "fallbacks": {"math": 2, "send": 1000},
            "engines": [{"name": "t0", "threads": 1, "notes": ["no compiler"]}, {"name": "t1", "threads": 2, "notes": []}],
            "approximate": {"sin": "0.51 ULP", "rsq": "0.501 ULP"}, "exact": False, "unsupported": ["text"],
            "faults": [{"submission": "submission 3", "what": "write at 0x0"}]}  # fmt: skip
    assert [line for _, line in report.summary(made(**more))][1:] == [
        "1,200 frames presented, the last ones 59.9 per second", "engine t0 on 1 host thread", "  note: no compiler",
        "engine t1 on 2 host threads", "note: slow", "approximate (error at most): sin 0.51 ULP, rsq 0.501 ULP",
        "left to the reference: math 2 times, send 1,000 times", "fault submission 3: write at 0x0", "unsupported text",
    ]  # fmt: skip
    assert len(list(report.summary(made(exact=False, frames={"presented": 0})))) == 1
