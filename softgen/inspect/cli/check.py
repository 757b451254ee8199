"""`softgen check CAPTURE | -- PROGRAM …`: the same work in several worlds that the manuals allow; what differs is a bug, with a witness."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.cli.engine import NAMES
from softgen.inspect.cli.output import Progress, paint, print_json
from softgen.inspect.cli.recorded import add_program, recorded

if TYPE_CHECKING:
    from softgen.inspect.check.finding import Allowed, CheckReport
    from softgen.threads.world import World

EXAMPLE = """examples:
  softgen check kbl-ocl-vadd                          8 worlds: the order of threads, what was never written
  softgen check --gpu kbl -- ./program                run it first, then check what it submitted
  softgen check --debug-info -- ./program             with lines of OpenCL sources, where the program compiles with -g
  softgen check capture --worlds fill --runs 16       only contents of registers, local memory and scratch space
  softgen check capture --worlds stale                flushes that are missing between draws
  softgen check capture --allow order:sum*            sums of floats may depend on the order of threads
  softgen check capture --junit out.xml --sarif out.sarif --annotate
                                                      for CI: JUnit, code scanning, annotations

A difference between two worlds is a bug for certain: both are worlds that the hardware may be. That there is none says only that these
worlds do not differ.

exit codes: 0 nothing was found, 1 findings, or the work failed (--json says which), 2 usage error"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("check", usage="softgen check [OPTION …] CAPTURE | -- PROGRAM …",
                                   description="Find races, values that nothing has written, and accesses outside of buffers.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("capture", nargs="?", help="capture directory or AUB file; or -- and a program with its arguments")
    parser.add_argument("--gpu", help="the GPU it is for, whatever the file says; of a program, the one it finds (default: kbl)")
    parser.add_argument("--worlds", metavar="AXIS,…",
                        help="what varies: order (of threads), fill (of what nothing has written), stale (memory without what the "
                             "render cache holds), unspecified (reserved bits, lanes that store to the same byte); default: order,fill")
    parser.add_argument("--runs", type=int, default=8, metavar="N", help="how many worlds, each axis in turn (default: 8)")
    parser.add_argument("--allow", action="append", default=[], metavar="CLASS:KERNEL",
                        help="findings that are meant to be; both may have wildcards")
    parser.add_argument("--kernels", action="append", default=[], metavar="FILE",
                        help="an OpenCL binary, or a folder of them, with the names of kernels")
    parser.add_argument("--source", action="append", default=[], metavar="FILE",
                        help="an OpenCL binary with debug information, or the source (.cl) of kernels that were compiled from a text")
    parser.add_argument("--engine", choices=NAMES, default="auto", help="how kernels run (default: auto)")
    parser.add_argument("--time-limit", type=float, metavar="S", help="stop after so many seconds; a program that is recorded has as many")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML: a test case for each class of findings")
    parser.add_argument("--sarif", metavar="FILE", help="write SARIF 2.1.0")
    parser.add_argument("--annotate", action="store_true", help="print lines that GitHub shows at the source")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_program(parser)


def run(args: argparse.Namespace) -> int:
    from softgen.inspect.check.finding import CheckReport, allowed
    from softgen.inspect.check.worlds import axes, worlds

    varied, meant = axes(args.worlds), allowed(args.allow)
    chosen = worlds(varied, args.runs)
    _check_options(args)
    try:
        title, report = _checked(args, varied, chosen, meant)
    except UsageError:
        raise
    except SoftgenError as error:
        _write(args, args.capture or args.program[0], CheckReport(args.gpu or "", failures=[str(error)]))
        raise
    if not args.json:
        from softgen.inspect.check.outputs import lines

        for line in lines(title, report, paint()):
            print(line)
    _write(args, title, report)
    return 1 if report.found or report.failures else 0


def _checked(args: argparse.Namespace, varied: tuple[str, ...], chosen: list[World], meant: Allowed) -> tuple[str, CheckReport]:
    """What messages call the capture, and the report."""
    from softgen.inspect.check.check import Check
    from softgen.inspect.cli.decode import opened
    from softgen.inspect.report.kernel_names import KernelNames

    with recorded(args, "check") as capture, Progress("commands and thread groups executed") as progress:
        end = None if args.time_limit is None else time.monotonic() + args.time_limit  # a program has had as much

        def timed_out() -> bool:
            progress.step()
            return end is not None and time.monotonic() >= end

        gpu = args.gpu if args.capture else None
        names = KernelNames([*args.kernels, capture.programs])
        check = Check(lambda: opened(capture.path, gpu, "render"), chosen, args.engine, meant, names, timed_out, "stale" in varied,
                      [*args.source, *capture.binaries()])  # fmt: skip
        return capture.title, check.run()


def _check_options(args: argparse.Namespace) -> None:
    if args.time_limit is not None and not args.time_limit > 0:
        raise UsageError(f"a time limit is a number of seconds above zero, not {args.time_limit:g}")
    for option in ("junit", "sarif"):
        if (name := getattr(args, option)) is not None and (not name or not Path(name).parent.is_dir() or Path(name).is_dir()):
            raise UsageError(f"--{option} {name}: cannot be written: no such folder, or no file")
    for option in ("kernels", "source"):
        for name in getattr(args, option):
            if not Path(name).exists():
                raise UsageError(f"--{option} {name}: no such file{' or folder' if option == 'kernels' else ''}")


def _write(args: argparse.Namespace, shown: str, report: CheckReport) -> None:
    """The report as files and lines for machines, as far as they are asked for."""
    from softgen.inspect.check import outputs
    from softgen.inspect.output_file import write_file

    if args.junit:
        write_file(args.junit, outputs.junit(shown, report))
    if args.sarif:
        write_file(args.sarif, f"{json.dumps(outputs.sarif(shown, report), indent=1)}\n".encode())
    if args.json:
        print_json(report.as_json())
    if args.annotate:
        for line in outputs.github_annotations(shown, report):
            print(line, file=sys.stderr if args.json else sys.stdout)
