"""`softgen replay FILE…`: executes captures, AUB files, error states and raw batches, and checks their expectations."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgen.inspect.cli.engine import (
    add_engine_options,
    add_images_option,
    add_report_options,
    add_trace_option,
    check,
    check_report,
    runner,
    traced,
)
from softgen.inspect.cli.output import Paint, Progress, complain, counted, paint, print_json

if TYPE_CHECKING:
    from softgen.inspect.report.pictures import TargetPictures
    from softgen.threads.compare.compare import ComparingDispatcher
    from softgen.threads.dispatcher import EngineDispatcher
    from softgen.trace.replay import Report
    from softgen.trace.work import Work, WorkTrace

EXAMPLE = """examples:
  softgen replay vadd.aub                             run it, check every MEM_CMP
  softgen replay tests/data/kbl-vk-compute --json     one JSON object
  softgen replay *.aub --time-limit 60                stop after a minute
  softgen replay vadd.aub --engine t1 --threads 1     compiled kernels, one host thread
  softgen replay vadd.aub --compare reference,t1      both engines; the first difference is named
  softgen replay kmscube --compare t1,reference --compare-tiles 2   two tiles of each draw
  softgen replay vadd.aub --trace dispatches          every dispatch, on standard error
  softgen replay kbl-gles-tri --images out            what was drawn, as PNG files in a new folder
  softgen replay vadd.aub --report -                  what was exact, hot kernels
  softgen replay error.txt                            the memory that the kernel saved after a hang
  softgen replay kbl-vk-tri --set 2:124.vertex_count_per_instance=0 --images out    without that triangle
  softgen replay kbl-vk-tri --replace ps=mine.asm --images out                      with another pixel shader

exit codes: 0 everything ran and every expectation was met, 1 something failed, 2 usage error"""


REMARKS = 20  # shown for a file


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("replay", description="Execute what a driver submitted, and check the expectations in the file.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("file", nargs="+", help="capture directory, AUB file, i915 error state, hang dump or raw batch")
    parser.add_argument("--gpu", help="the GPU it is for, whatever the file says; needed for raw batches and hang dumps only "
                                      "(softgen gpus lists them)")  # fmt: skip
    add_engine_options(parser)
    add_trace_option(parser)
    add_images_option(parser)
    add_report_options(parser)
    parser.add_argument("--set", metavar="POSITION.FIELD=VALUE", action="append", default=[],
                        help="change a field of a command before it is executed, such as 2:57.vertex_count_per_instance=3")
    parser.add_argument("--replace", metavar="KERNEL=FILE", action="append", default=[],
                        help="replace a kernel by assembly; KERNEL is its address, its stage (ps), or its code as softgen profile names it")
    parser.add_argument("--json", action="store_true", help="one JSON object for all files together")


def run(args: argparse.Namespace) -> int:
    check(args)
    check_report(args)
    from softgen.inspect.cli.decode import opened  # these are not for --help, or options that are wrong
    from softgen.trace.replay import Report

    groups, whole, log, pictures = runner(args), Report(), traced(args), collected(args.images)
    with Progress("commands and thread groups executed") as progress:
        timed_out = limit(args.time_limit, progress)
        for file in args.file:
            trace, began = opened(file, args.gpu, "render"), time.monotonic()
            report, files = executed(args, trace, pictures, timed_out, groups, log)
            whole.add(report)
            if not args.json:
                for line in lines(file, trace.device.name, report, files, time.monotonic() - began, paint()):
                    print(line)
            for note in trace.notes:
                complain(f"{file}: note: {note}") if args.json else print(f"  note: {note}")
    if args.report:
        write_report(args.report, report_of(whole, groups, args.kernels))
    if args.json:
        print_json(as_json(whole, pictures.files if pictures else []))
        for wrong in [*whole.failed, *whole.remarks]:
            complain(wrong)
    return 0 if whole.fine else 1


def report_of(whole: Report, groups: EngineDispatcher | ComparingDispatcher, places: list[str]) -> dict[str, Any]:
    """The report of --report; OpenCL binaries in `places` give kernels their names."""
    from softgen.inspect.report.kernel_names import KernelNames
    from softgen.inspect.report.report import gathered
    from softgen.threads.dispatcher import EngineDispatcher

    return gathered(whole, [groups] if isinstance(groups, EngineDispatcher) else groups.both, KernelNames(places))


def collected(folder: str | None) -> TargetPictures | None:
    if folder is None:
        return None
    from softgen.inspect.report.pictures import TargetPictures

    return TargetPictures(folder, complain)


def executed(args: argparse.Namespace, trace: WorkTrace, pictures: TargetPictures | None, timed_out: Callable[[], bool],
             groups: EngineDispatcher | ComparingDispatcher,
             log: Callable[[str, str], None] | None) -> tuple[Report, list[str]]:  # fmt: skip
    """Execute a trace; its report, and the pictures it drew. Pictures of several traces are distinguished by their file names."""
    from softgen.trace.replay import replay

    clock = itertools.count(1).__next__ if args.deterministic else None
    edit = edited(args, trace)
    if pictures is None:
        return replay(trace, clock, timed_out, groups, log, edit=edit), []
    files: list[str] = []
    prefix = f"{Path(trace.name).name}-" if len(args.file) > 1 else ""
    drawn = partial(pictures.drawn, trace.name)

    def ended(work: Work) -> None:
        files.extend(pictures.write(trace.name, f"{prefix}submission-{work.sequence}"))

    return replay(trace, clock, timed_out, groups, log, drawn, ended, edit), files


def edited(args: argparse.Namespace, trace: WorkTrace) -> Callable[[Work], None]:
    """What changes a submission before it is executed."""
    if not args.set and not args.replace:
        return lambda work: None
    from softgen.inspect.session.edit import CaptureEdits
    from softgen.inspect.session.events import submissions

    return CaptureEdits(list(submissions(trace)), trace.device, args.set, args.replace).apply


def write_report(file: str, report: dict[str, Any]) -> None:
    """The report as JSON into a file, or as text on standard output (`-`)."""
    if file == "-":
        from softgen.inspect.report.report import show

        show(report, sys.stdout)
    else:
        from softgen.inspect.output_file import write_file

        write_file(file, f"{json.dumps(report, indent=1)}\n".encode())


def limit(seconds: float | None, progress: Progress) -> Callable[[], bool]:
    """A function, called at every command and thread group, that says whether time is up."""
    end = None if seconds is None else time.monotonic() + seconds

    def timed_out() -> bool:
        progress.step()
        return end is not None and time.monotonic() >= end

    return timed_out


def as_json(report: Report, images: list[str]) -> dict[str, Any]:
    return asdict(report.counters) | {
        "expectations": {"passed": report.passed, "failed": len(report.failed)},
        "faults": [asdict(fault) for fault in report.faults],
        "unsupported": [asdict(problem) for problem in report.unsupported],
        "images": images,
    }


def lines(file: str, gpu: str, report: Report, images: list[str], seconds: float, colour: Paint) -> list[str]:
    """What ran, problems and remarks."""
    done = report.counters
    ran = [counted(report.submissions, "submission"), counted(done.batches, "batch"), counted(done.commands, "command")]
    worked = [counted(done.draws, "draw"), counted(done.dispatches, "dispatch"), counted(done.threads, "thread"),
              counted(done.instructions, "instruction")]  # fmt: skip
    found = [colour(f"{file}: {gpu}", "heading"), f"  {', '.join(ran)}", f"  {', '.join(worked)} in {seconds:.1f} s"]
    if report.passed or report.failed:
        expectations = f"expectations: {report.passed} met, {len(report.failed)} not met"
        found.append(f"  {colour(expectations, 'bad' if report.failed else 'good')}")
    found += [f"  picture {colour(path, 'name')}" for path in images]
    found += [f"  {colour('not met', 'bad')} {wrong}" for wrong in report.failed]
    found += [f"  {colour('fault', 'bad')} {fault}" for fault in report.faults]
    found += [f"  {colour('unsupported', 'warn')} {problem}" for problem in report.unsupported]
    found += [f"  {colour('remark', 'warn')} {remark}" for remark in report.remarks[:REMARKS]]
    if len(report.remarks) > REMARKS:
        found.append(f"  and {len(report.remarks) - REMARKS} more; --report has them all")
    return found
