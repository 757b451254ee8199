"""The report of a run as text: what ran, what failed, and the hottest kernels."""

from __future__ import annotations

import io
from typing import Any

import pytest

from softgen import assemble
from softgen.eu.interpreter import KernelProgram
from softgen.inspect.report import report
from softgen.inspect.report.kernel_names import KernelNames
from tests.inspect.report.test_kernel_names import Ran


def made(kernels: int = 0, **more: Any) -> dict[str, Any]:
    row = {"kernel": "k", "code": "c0de", "stage": "vs", "engine": "t0", "dispatches": 1, "threads": 2000, "instructions": 3,
           "seconds": 0.5}  # fmt: skip
    counts = {"commands": 1, "draws": 2, "dispatches": 0, "threads": 1000, "instructions": 0}
    empty: dict[str, Any] = {"approximate": {}, "exact": True, "faults": [], "unsupported": []}
    return counts | empty | {"kernels": [row | {"kernel": f"k{number}"} for number in range(kernels)]} | more


def shown(found: dict[str, Any]) -> list[str]:
    stream = io.StringIO()
    report.show(found, stream)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("kernels, rows, more", [(1, 1, []), (9, 9, []), (10, 10, []), (11, 10, ["  and 1 more kernel"]),
                                                 (25, 10, ["  and 15 more kernels"])])  # fmt: skip
def test_the_ten_hottest_kernels_are_shown(kernels: int, rows: int, more: list[str]) -> None:
    lines = shown(made(kernels))
    head = next(number for number, line in enumerate(lines) if line.split()[:4] == ["kernel", "code", "stage", "engine"])
    assert [line.split() for line in lines[head + 1 : head + 1 + rows]] == [
        [f"k{number}", "c0de", "vs", "t0", "1", "2,000", "3", "0.500"] for number in range(rows)]  # fmt: skip
    assert lines[head + 1 + rows :] == more


def test_long_names_are_folded_and_numbers_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "WIDE", 83)
    found = made(1)
    found["kernels"][0] |= {"kernel": "a" * 40, **dict.fromkeys(report.COUNTS, 123456789012)}
    lines = shown(found)
    table = lines[next(number for number, line in enumerate(lines) if "seconds" in line) + 1 :]
    assert table[0].split()[1:] == ["c0de", "vs", "t0", *["123,456,789,012"] * 3, "0.500"] and "".join(table).count("a") == 40


def test_without_kernels_there_is_no_table() -> None:
    assert shown(made()) == ["report", "  1 command, 2 draws, 0 dispatches, 1,000 threads, 0 instructions",
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


# -- kernels ---------------------------------------------------------------------------------------------------------


def counted(program: KernelProgram, engine: str = "t0", seconds: float = 0.25, **counts: int) -> Ran:
    return Ran(program, engine, seconds=seconds, **counts)


END = "(W) send (8|M0) null r127 0x27 0x02000010 {EOT}\n"
SIN = "math.sin (8|M0) r4.0<1>:f r2.0<8;8,1>:f\n"


def program(text: str = END, name: str = "k") -> KernelProgram:
    return KernelProgram(9.0, assemble(text, "kbl"), name=name)


def test_kernels_are_counted_together_by_code_and_engine() -> None:
    """Whatever their addresses; the one that took most time first. What follows a kernel in memory is not part of it."""
    ran = [counted(program()), counted(program(SIN + END, "sine"), seconds=0.4),
           counted(program(END + SIN), threads=6, instructions=150, seconds=0.5),
           counted(program(), engine="t1", dispatches=7, seconds=0.1234567)]  # fmt: skip
    rows = report.kernels(ran, KernelNames([]))  # type: ignore[arg-type]
    names = ("kernel", "named", "bytes", "engine", "dispatches", "threads", "instructions", "seconds")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (ran[0].program.title, False, 16, "t0", 2, 10, 250, 0.75), (ran[1].program.title, False, 32, "t0", 1, 4, 100, 0.4),
        (ran[0].program.title, False, 16, "t1", 7, 4, 100, 0.123457)]  # fmt: skip
    assert rows[0]["code"] == rows[2]["code"] != rows[1]["code"] and len(rows[0]["code"]) == 12


def test_a_kernel_names_the_stages_it_was_a_shader_of() -> None:
    ran = [counted(program()), counted(program()), counted(program(SIN + END))]
    for kernel, stage in zip(ran, ("vs", "ds", "ps"), strict=True):
        kernel.stages.add(stage)
    rows = report.kernels(ran, KernelNames([]))  # type: ignore[arg-type]
    assert sorted(row["stage"] for row in rows) == ["ds+vs", "ps"]


def test_functions_that_the_hardware_approximates_are_named_with_their_bounds() -> None:
    assert report.approximations([program(), program(SIN + END), program(SIN.replace("sin", "inv") + END)]) == {
        "inv": "correctly rounded", "sin": "0.51 ULP up to 2^20"}  # fmt: skip
    assert report.approximations([program(END + SIN)]) == {}, "behind the end"


def test_what_compiled_code_left_to_the_interpreter_is_counted() -> None:
    """By message or opcode, the most frequent first; the reference leaves nothing to anybody."""
    first, second, plain = program(SIN + END), program(SIN + SIN + END), program(SIN + END)
    first.fallbacks.update({0: 2, 16: 5})
    second.fallbacks.update({16: 7, 0: 1})
    plain.fallbacks[0] = 100
    ran = [counted(first), counted(second), counted(second, engine="t1"), counted(plain, engine="reference")]
    found = report.fallbacks(ran)  # type: ignore[arg-type]
    message = report.what(first.line(16).instruction)
    assert list(found.items()) == [("math", 10), (message, 5)] and message != "send"
