"""The end-of-run report: what ran, how exactly, what did not, and which kernels took the time.

In:  a replay's Report and what the engines counted. Out: one dictionary for machines, or text for people.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from softgen.eu.encoding.program import instructions
from softgen.eu.interpreter import KernelProgram
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.inspect.cli.output import counted
from softgen.inspect.report.kernel_names import KernelNames
from softgen.inspect.report.software_rules import rule_of
from softgen.shared_functions import descriptors
from softgen.threads.dispatcher import REFERENCE, EngineDispatcher
from softgen.threads.statistics import KernelStatistics, own_code

if TYPE_CHECKING:
    from softgen.trace.replay import Report

COUNTS = ("dispatches", "threads", "instructions")
NOUNS = {"commands": "command", "draws": "draw", "dispatches": "dispatch", "threads": "thread", "instructions": "instruction"}
HOT = 10  # kernels in the table
WIDE = 200  # columns where the output is no terminal
# docs/accuracy.md states the bounds; functions that are not named there are exact.
BOUNDS = {
    "inv": "correctly rounded", "fdiv": "correctly rounded", "sqrt": "correctly rounded", "rsq": "correctly rounded",
    "exp": "0.51 ULP", "log": "0.51 ULP", "sin": "0.51 ULP up to 2^20", "cos": "0.51 ULP up to 2^20", "pow": "as its parts, in doubles",
}  # fmt: skip


def gathered(report: Report, engines: Iterable[EngineDispatcher], names: KernelNames) -> dict[str, Any]:
    """The report as a dictionary: what was exact, what failed, counters, engines, kernels."""
    groups = list(engines)
    ran = [kernel for dispatcher in groups for kernel in dispatcher.ran.values()]
    inexact = approximations(kernel.program for kernel in ran)
    return {
        "exact": report.fine and not inexact,
        "approximate": inexact,
        "unsupported": [asdict(item) for item in report.unsupported],
        "faults": [asdict(fault) for fault in report.faults],
        "remarks": report.remarks,
        "rules": [{"remark": remark, **rule._asdict()} for remark in report.remarks if (rule := rule_of(remark)) is not None],
        "expectations": {"passed": report.passed, "failed": report.failed},
        "counters": asdict(report.counters),
        "engines": [{"name": dispatcher.name, "threads": dispatcher.threads, "notes": dispatcher.notes} for dispatcher in groups],
        "fallbacks": fallbacks(ran),
        "kernels": kernels(ran, names),
    }


def kernels(ran: Iterable[KernelStatistics], names: KernelNames) -> list[dict[str, Any]]:
    """A row per kernel and engine, whatever the addresses it ran at; the one that took most time first."""
    rows: dict[tuple[bytes, float, str], dict[str, Any]] = {}
    for kernel in ran:
        code = own_code(kernel.program)
        key = code, kernel.program.gen, kernel.engine
        if key not in rows:
            name = names.find(kernel.program.code, kernel.program.gen)
            rows[key] = {"kernel": name or kernel.program.title, "named": name is not None, "code": hashlib.sha256(code).hexdigest()[:12],
                         "bytes": len(code), "stage": "", "engine": kernel.engine, **dict.fromkeys(COUNTS, 0), "seconds": 0.0}  # fmt: skip
        rows[key]["stage"] = "+".join(sorted({*filter(None, rows[key]["stage"].split("+")), *kernel.stages}))
        for count in COUNTS:
            rows[key][count] += getattr(kernel, count)
        rows[key]["seconds"] += kernel.seconds
    for row in rows.values():
        row["seconds"] = round(row["seconds"], 6)
    return sorted(rows.values(), key=lambda row: -row["seconds"])


def fallbacks(ran: Iterable[KernelStatistics]) -> dict[str, int]:
    """How often the interpreter executed an instruction that compiled code left to it: by message, or by opcode."""
    found: Counter[str] = Counter()
    for program in {dispatch.program for dispatch in ran if dispatch.engine != REFERENCE}:
        for ip, count in program.fallbacks.items():
            found[what(program.line(ip).instruction)] += count
    return dict(found.most_common())


def what(inst: Instruction) -> str:
    """An instruction in a word: its message if it sends one that is known, else its opcode."""
    bits = inst.descriptor if isinstance(inst.descriptor, int) else None
    message = descriptors.identify(inst.sfid, bits, inst.gen) if bits is not None else None
    return inst.opcode if message is None else f"{message.function} {message.name}"


def approximations(programs: Iterable[KernelProgram]) -> dict[str, str]:
    """Functions that the hardware itself only approximates and that an executed kernel contains, with the largest error."""
    insts = (inst for program in programs for inst in decoded(program) if inst.opcode == "math")
    used = {found.name for inst in insts if (found := opcodes.math_function(inst.function, inst.gen)) is not None}
    return {name: BOUNDS[name] for name in sorted(used) if name in BOUNDS}


def decoded(program: KernelProgram) -> Iterator[Instruction]:
    """All instructions of a kernel; engines that load a cached translation decode none."""
    code = own_code(program)
    return (inst for *_, inst in instructions(code, program.gen))


# -- text ----------------------------------------------------------------------------------------------------------


def show(report: dict[str, Any], stream: TextIO) -> None:
    """The report for people: a summary, problems, and the hottest kernels as a table."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True, width=None if stream.isatty() else WIDE)
    console.print(Text("report", style="bold"))
    for style, line in summary(report):
        console.print(Text(f"  {line}", style=style))
    hot = report["kernels"][:HOT]
    if not hot:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("  kernel", "code", "stage", "engine"):
        table.add_column(name, overflow="fold")
    for name in (*COUNTS, "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in hot:
        counts = (f"{row[name]:,}" for name in COUNTS)
        table.add_row(Text(f"  {row['kernel']}"), row["code"], row["stage"], row["engine"], *counts, f"{row['seconds']:.3f}")
    console.print(table)
    if len(report["kernels"]) > HOT:
        console.print(Text(f"  and {counted(len(report['kernels']) - HOT, 'more kernel')}"))


def summary(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Style and text of the lines above the table."""
    done = report.get("counters", report)
    yield "", ", ".join(counted(done[name], noun) for name, noun in NOUNS.items())
    if (video := done.get("video", {})).get("pictures"):
        pictures = ", ".join(f"{count:,} {name}" for name, count in video["pictures"].items())
        yield "", f"video: pictures {pictures}; {counted(video['concealed'], 'block')} concealed; {video['seconds']:.3f} s in the engine"
    if (frames := report.get("frames", {})).get("presented"):
        yield "", f"{counted(frames['presented'], 'frame')} presented, the last ones {frames['per_second']:,.1f} per second"
    for engine in report.get("engines", ()):
        yield "", f"engine {engine['name']} on {counted(engine['threads'], 'host thread')}"
        yield from (("yellow", f"  note: {note}") for note in engine["notes"])
    yield from (("yellow", f"note: {note}") for note in report.get("notes", ()))
    if report["approximate"]:
        yield "", "approximate (error at most): " + ", ".join(f"{name} {bound}" for name, bound in report["approximate"].items())
    elif report["exact"]:
        yield "", "exact: no function was used that the hardware only approximates"
    if report.get("fallbacks"):
        yield "", "left to the reference: " + ", ".join(f"{name} {count:,} times" for name, count in report["fallbacks"].items())
    for kind in ("faults", "unsupported"):
        yield from (("red", f"{kind.removesuffix('s')} {problem(item)}") for item in report[kind])


def problem(trouble: Any) -> str:
    """A fault or something unsupported; `run` reports text, `replay` records."""
    return f"{trouble['submission']}: {trouble['what']}" if isinstance(trouble, dict) else str(trouble)
