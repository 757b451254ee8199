"""The end-of-run report: what ran, how exactly, what did not, and which kernels took the time.

In:  a replay's Report and what the engines counted. Out: one dictionary for machines, or lines for people.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from softgen.eu.encoding.program import instructions
from softgen.eu.encoding.program import kernel_end as extent
from softgen.eu.interpreter import KernelProgram
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.gpgpu.engines import Groups, Ran
from softgen.inspect.cli.output import Paint, counted, table
from softgen.trace.replay import Report

COUNTS = ("dispatches", "threads", "instructions")
HOT = 10  # kernels that are listed
# docs/accuracy.md states the bounds; what is not named there is exact.
BOUNDS = {
    "inv": "correctly rounded", "fdiv": "correctly rounded", "sqrt": "correctly rounded", "rsq": "0.501 ULP",
    "exp": "0.51 ULP", "log": "0.51 ULP", "sin": "0.51 ULP up to 2^20", "cos": "0.51 ULP up to 2^20", "pow": "as its parts, in doubles",
}  # fmt: skip


def gathered(report: Report, engines: Iterable[Groups]) -> dict[str, Any]:
    """Everything a report says, most expensive kernels first."""
    groups = list(engines)
    ran = sorted((one for each in groups for one in each.ran.values()), key=lambda one: -one.seconds)
    inexact = approximations(one.program for one in ran)
    return {
        "exact": report.fine and not inexact,
        "approximate": inexact,
        "unsupported": [asdict(one) for one in report.unsupported],
        "faults": [asdict(one) for one in report.faults],
        "remarks": report.remarks,
        "expectations": {"passed": report.passed, "failed": report.failed},
        "counters": asdict(report.counters),
        "engines": [{"name": each.name, "threads": each.threads, "notes": each.notes} for each in groups],
        "kernels": [kernel(one) for one in ran],
    }


def kernel(one: Ran) -> dict[str, Any]:
    return {"kernel": one.program.title, "engine": one.engine, "dispatches": one.dispatches, "threads": one.threads,
            "instructions": one.instructions, "seconds": round(one.seconds, 6)}  # fmt: skip


def approximations(programs: Iterable[KernelProgram]) -> dict[str, str]:
    """Functions that the hardware itself only approximates and that a kernel which ran has, with the largest error."""
    ones = (one for program in programs for one in decoded(program) if one.opcode == "math")
    used = {found.name for one in ones if (found := opcodes.math_function(one.function, one.gen)) is not None}
    return {name: BOUNDS[name] for name in sorted(used) if name in BOUNDS}


def decoded(program: KernelProgram) -> Iterator[Instruction]:
    """All of a kernel: an engine that kept a translation has decoded nothing."""
    end, _ = extent(program.code, program.gen)
    return (one for *_, one in instructions(program.code[:end], program.gen))


def lines(found: dict[str, Any], colour: Paint) -> list[str]:
    """The same for people."""
    done = found["counters"]
    shown = [colour("report", "heading"), "  " + ", ".join(counted(done[name], name.removesuffix("s")) for name in
             ("commands", "draws", "threads", "instructions"))]  # fmt: skip
    for engine in found["engines"]:
        shown.append(f"  engine {engine['name']} on {counted(engine['threads'], 'host thread')}")
        shown += [f"    {colour('note', 'warn')} {note}" for note in engine["notes"]]
    if found["approximate"]:
        shown.append("  approximate (error at most): " + ", ".join(f"{name} {bound}" for name, bound in found["approximate"].items()))
    elif found["exact"]:
        shown.append("  exact: nothing that the hardware only approximates was used")
    for kind in ("faults", "unsupported"):
        shown += [f"  {colour(kind, 'bad')} {one['submission']}: {one['what']}" for one in found[kind]]
    hot = found["kernels"][:HOT]
    rows = [(one["kernel"], one["engine"], *(f"{one[name]:,}" for name in COUNTS), f"{one['seconds']:.3f}") for one in hot]
    if rows:
        shown += [f"  {line}" for line in table(rows, ("kernel", "engine", *COUNTS, "seconds"), right=(2, 3, 4, 5))]
    return shown
