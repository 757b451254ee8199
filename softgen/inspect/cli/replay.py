"""`softgen replay FILE…`: executes captures, AUB files and raw batches, and checks what they expect."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from softgen.inspect.cli.output import Misuse, Paint, Progress, complain, paint, print_json
from softgen.trace.replay import Report, replay

EXAMPLE = """examples:
  softgen replay vadd.aub                             run it, check every MEM_CMP
  softgen replay tests/data/kbl-vk-compute --json     one JSON object
  softgen replay *.aub --time-limit 60                stop after a minute

exit codes: 0 everything ran and every expectation was met, 1 something did not, 2 used wrongly"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("replay", description="Execute what a driver submitted, and check what the file expects of it.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("file", nargs="+", help="capture directory, AUB file or raw batch")
    parser.add_argument("--gpu", help="which GPU it is for; needed for a raw batch only (softgen gpus lists them)")
    parser.add_argument("--engine", choices=("reference",), default="reference", help="how kernels run: the reference is plain and slow")
    parser.add_argument("--deterministic", action="store_true", help="timestamps count up instead of telling the time")
    parser.add_argument("--time-limit", type=float, metavar="S", help="stop after so many seconds")
    parser.add_argument("--json", action="store_true", help="one JSON object for all files together")


def run(args: argparse.Namespace) -> int:
    from softgen.inspect.cli.decode import opened

    if args.time_limit is not None and not args.time_limit > 0:
        raise Misuse(f"a time limit is a number of seconds above zero, not {args.time_limit:g}")
    whole = Report()
    with Progress("commands and thread groups executed") as progress:
        spent = limit(args.time_limit, progress)
        for file in args.file:
            trace, began = opened(file, args.gpu, "render"), time.monotonic()
            report = replay(trace, itertools.count(1).__next__ if args.deterministic else None, spent)
            whole.add(report)
            if not args.json:
                for line in lines(file, trace.device.name, report, time.monotonic() - began, paint()):
                    print(line)
                for note in trace.notes:
                    print(f"  note: {note}")
    if args.json:
        print_json(as_json(whole))
        for wrong in whole.failed:
            complain(wrong)
    return 0 if whole.fine else 1


def limit(seconds: float | None, progress: Progress) -> Callable[[], bool]:
    """Asked at every command and thread group: is time up?"""
    end = None if seconds is None else time.monotonic() + seconds

    def spent() -> bool:
        progress.step()
        return end is not None and time.monotonic() >= end

    return spent


def as_json(report: Report) -> dict[str, Any]:
    return asdict(report.counters) | {
        "expectations": {"passed": report.passed, "failed": len(report.failed)},
        "faults": [asdict(one) for one in report.faults],
        "unsupported": [asdict(one) for one in report.unsupported],
        "images": [],
    }


def lines(file: str, gpu: str, report: Report, seconds: float, colour: Paint) -> list[str]:
    """What ran, and what is to be said about it."""
    done = report.counters
    ran = [count(report.submissions, "submission"), count(done.batches, "batch"), count(done.commands, "command")]
    worked = [count(done.dispatches, "dispatch"), count(done.threads, "thread"), count(done.instructions, "instruction")]
    found = [colour(f"{file}: {gpu}", "heading"), f"  {', '.join(ran)}", f"  {', '.join(worked)} in {seconds:.1f} s"]
    if report.passed or report.failed:
        said = f"expectations: {report.passed} met, {len(report.failed)} not met"
        found.append(f"  {colour(said, 'bad' if report.failed else 'good')}")
    found += [f"  {colour('not met', 'bad')} {wrong}" for wrong in report.failed]
    found += [f"  {colour('fault', 'bad')} {one}" for one in report.faults]
    found += [f"  {colour('unsupported', 'warn')} {one}" for one in report.unsupported]
    return found


def count(number: int, what: str) -> str:
    plural = what if number == 1 else f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{number:,} {plural}"
