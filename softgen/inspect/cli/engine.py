"""The options that all verbs which execute share: which engine, how many host threads, reproducible or not, for how long."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from softgen.inspect.cli.output import Misuse

if TYPE_CHECKING:
    from softgen.threads.compare import ComparingDispatcher
    from softgen.threads.dispatcher import EngineDispatcher

NAMES = ("reference", "t0", "t1", "auto")  # softgen.eu.engine has the same; it loads what the command line alone does not need
MOST_THREADS = 1024
TOPICS = ("commands", "dispatches")  # of what the GPU does


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--engine", choices=NAMES, default="auto",
                        help="how kernels run: the reference is plain and slow, t0 and t1 are compiled, auto is t0, then t1")  # fmt: skip
    parser.add_argument("--threads", type=int, metavar="N", help="host threads that run thread groups; one per processor unless told")
    parser.add_argument("--deterministic", action="store_true", help="one host thread, and timestamps count up instead of telling the time")
    parser.add_argument("--compare", metavar="A,B", help="run every dispatch on two engines and stop at the first difference")
    parser.add_argument("--time-limit", type=float, metavar="S", help="stop after so many seconds")


def add_trace_option(parser: argparse.ArgumentParser, *more: str) -> None:
    topics = (*more, *TOPICS)
    parser.add_argument("--trace", metavar="TOPIC,…", help=f"say what happens, on standard error: {' '.join(topics)}")


def traced(args: argparse.Namespace, *more: str) -> Callable[[str, str], None] | None:
    """Who tells people what happens, as far as they asked."""
    topics, known = set(filter(None, (args.trace or "").split(","))), (*more, *TOPICS)
    if unknown := sorted(topics - set(known)):
        raise Misuse(f"nothing is known to trace about {', '.join(unknown)}; there is: {' '.join(known)}")
    if not topics & set(TOPICS):
        return None

    def tell(topic: str, text: str) -> None:
        if topic in topics:
            print(f"{topic}: {text}", file=sys.stderr)

    return tell


def check(args: argparse.Namespace) -> None:
    """Refuses options that make no sense."""
    if args.time_limit is not None and not args.time_limit > 0:
        raise Misuse(f"a time limit is a number of seconds above zero, not {args.time_limit:g}")
    if args.threads is not None and not 0 < args.threads <= MOST_THREADS:
        raise Misuse(f"host threads are 1 to {MOST_THREADS}, not {args.threads}")
    names = [] if args.compare is None else args.compare.split(",")
    if args.compare is not None and (len(names) != 2 or not set(names) <= set(NAMES)):
        raise Misuse(f"two engines are compared: two of {' '.join(NAMES)} with a comma between them, not {args.compare!r}")


def runner(args: argparse.Namespace) -> EngineDispatcher | ComparingDispatcher:
    """What runs thread groups, as the options say."""
    from softgen.threads.dispatcher import EngineDispatcher

    check(args)
    threads = 1 if args.deterministic else args.threads
    if args.compare is None:
        return EngineDispatcher(args.engine, threads)
    from softgen.threads.compare import ComparingDispatcher

    first, second = args.compare.split(",")
    return ComparingDispatcher(EngineDispatcher(first, threads), EngineDispatcher(second, threads))
