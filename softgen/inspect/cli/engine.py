"""Options that all executing verbs share: engine, host threads, reproducibility, time limit, report."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from softgen.errors import UsageError
from softgen.inspect.cli.output import say

if TYPE_CHECKING:
    from softgen.threads.compare.compare import ComparingDispatcher
    from softgen.threads.dispatcher import EngineDispatcher

NAMES = ("reference", "t0", "t1", "auto")  # those of softgen.eu.engine, which takes longer to import
MOST_THREADS = 1024
TOPICS = ("commands", "dispatches", "flushes")


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=NAMES, default="auto",
                        help="how kernels run: reference is plain and slow, t0 and t1 compile, auto (default) is t0, then t1")
    parser.add_argument("--threads", type=int, metavar="N", help="host threads that run thread groups (default: one per processor)")
    parser.add_argument("--deterministic", action="store_true", help="one host thread, and timestamps that count instead of measuring time")
    parser.add_argument("--compare", metavar="A,B", help="run every dispatch and draw on two engines and stop at the first difference")
    parser.add_argument("--compare-tiles", type=int, metavar="N",
                        help="with --compare: compare N random tiles of 64x64 pixels of each draw, not the whole picture")
    parser.add_argument("--time-limit", type=float, metavar="S", help="stop after so many seconds")


def add_report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--report", metavar="FILE", help="what ran, how exactly, what failed, hot kernels: JSON into FILE, a table for -")
    parser.add_argument("--kernels", action="append", default=[], metavar="FILE",
                        help="an OpenCL binary, or a folder of them, with the names of kernels for the report")  # fmt: skip


def add_images_option(parser: argparse.ArgumentParser, more: str = "") -> None:
    parser.add_argument("--images", metavar="DIR", help=f"write the render targets of each submission as PNG files to a new folder{more}")


def add_trace_option(parser: argparse.ArgumentParser, *more: str) -> None:
    topics = (*more, *TOPICS)
    parser.add_argument("--trace", metavar="TOPIC,…", help=f"log on standard error: {' '.join(topics)}")


def traced(args: argparse.Namespace, *more: str) -> Callable[[str, str], None] | None:
    """The function that logs the topics asked for; None if there are none."""
    topics, known = set(filter(None, (args.trace or "").split(","))), (*more, *TOPICS)
    if unknown := sorted(topics - set(known)):
        raise UsageError(f"no trace topic is called {', '.join(unknown)}; topics are {' '.join(known)}")
    if not topics & set(TOPICS):
        return None

    def log(topic: str, text: str) -> None:
        if topic in topics:
            say(f"{topic}: {text}")

    return log


def check(args: argparse.Namespace) -> None:
    """Refuse options that make no sense."""
    if args.time_limit is not None and not args.time_limit > 0:
        raise UsageError(f"a time limit is a number of seconds above zero, not {args.time_limit:g}")
    if args.threads is not None and not 0 < args.threads <= MOST_THREADS:
        raise UsageError(f"host threads are 1 to {MOST_THREADS}, not {args.threads}")
    names = [] if args.compare is None else args.compare.split(",")
    if args.compare is not None and (len(names) != 2 or not set(names) <= set(NAMES)):
        raise UsageError(f"two engines are compared: two of {' '.join(NAMES)} with a comma between them, not {args.compare!r}")
    if args.compare is not None and args.engine != "auto":
        raise UsageError("--compare names both engines; leave out --engine")
    if args.compare_tiles is not None and args.compare is None:
        raise UsageError("--compare-tiles says how much of a draw --compare compares; give both")
    if args.compare_tiles is not None and args.compare_tiles < 1:
        raise UsageError(f"at least one tile is compared, not {args.compare_tiles}")


def check_report(args: argparse.Namespace) -> None:
    """Refuse a report that could not be written, and kernels that could not be read, before anything runs."""
    if args.report == "":
        raise UsageError("--report needs the name of a file, or - for a table")
    if args.report and args.report != "-" and not Path(args.report).parent.is_dir():
        raise UsageError(f"--report {args.report}: no such folder: {Path(args.report).parent}")
    if args.report and Path(args.report).is_dir():
        raise UsageError(f"--report {args.report}: is a folder; a report is a file")
    for place in args.kernels:
        if not place or not Path(place).exists():
            raise UsageError(f"--kernels {place}: no such file or folder")


def host_threads(args: argparse.Namespace) -> int | None:
    """Host threads that run thread groups; None: one per processor."""
    threads: int | None = 1 if args.deterministic else args.threads
    return threads


def spare_processor(args: argparse.Namespace) -> bool:
    """Whether a processor is left while all host threads are busy."""
    return 0 < (host_threads(args) or 0) < len(os.sched_getaffinity(0))


def runner(args: argparse.Namespace) -> EngineDispatcher | ComparingDispatcher:
    """The runner of thread groups that the options select."""
    from softgen.threads.dispatcher import EngineDispatcher

    check(args)
    threads = host_threads(args)
    if args.compare is None:
        return EngineDispatcher(args.engine, threads)
    from softgen.threads.compare.compare import ComparingDispatcher

    first, second = args.compare.split(",")
    return ComparingDispatcher(EngineDispatcher(first, threads), EngineDispatcher(second, threads), args.compare_tiles or 0)
