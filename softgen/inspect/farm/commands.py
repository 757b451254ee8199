"""The commands of `softgen farm`: inputs are checked, units are run, and people are told what became of them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.cli.output import complain, counted, paint, print_json
from softgen.inspect.cli.run import size
from softgen.inspect.farm.backends import from_address
from softgen.inspect.farm.deqp import DeqpPlan, read_cases
from softgen.inspect.farm.expectations import Expectations, read_expectations, read_patterns
from softgen.inspect.farm.lists import find_captures, gpu_names, read_tests
from softgen.inspect.farm.merge import FarmFolders, progress_lines, read_folders, write_merged
from softgen.inspect.farm.piglit import PiglitPlan, find_piglit, read_profile
from softgen.inspect.farm.plans import CommandPlan, UnitPlan, UnitSettings
from softgen.inspect.farm.progress import FarmProgress
from softgen.inspect.farm.replays import ReplayPlan, check_worlds
from softgen.inspect.farm.reports import check_junit, chosen, write_reports
from softgen.inspect.farm.session import FarmSession, ending_on_sigterm
from softgen.inspect.farm.shards import parse_shard
from softgen.inspect.farm.store import ResultStore, suffix
from softgen.inspect.farm.unit import UnitResult

SHOWN = 50  # units that went wrong and are printed one by one; the folder has them all


def run_tests(args: argparse.Namespace) -> int:
    lines, gpus = kept(read_tests(args.tests), args.skips), gpu_names(args.gpu)
    return farm(args, lambda settings: CommandPlan(lines, gpus, settings))


def replay_captures(args: argparse.Namespace) -> int:
    worlds = check_worlds(args.check)
    captures, gpus = kept(find_captures(args.captures), args.skips), gpu_names(args.gpu) if args.gpu is not None else []
    return farm(args, lambda settings: ReplayPlan(captures, gpus, worlds, settings))


def run_deqp(args: argparse.Namespace) -> int:
    check_group(args)
    if not os.access(args.program, os.X_OK) or os.path.isdir(args.program):
        raise UsageError(f"--program {args.program}: not found, or not executable")
    cases, gpus = kept(read_cases(args.cases), args.skips), gpu_names(args.gpu)
    return farm(args, lambda settings: DeqpPlan(args.program, args.arguments, cases, gpus, settings, args.group))


def run_piglit(args: argparse.Namespace) -> int:
    check_group(args)
    root, gpus = find_piglit(args.piglit), gpu_names(args.gpu)
    tests = [test for profile in args.profile or ("quick_gl", "quick_shader") for test in read_profile(root, profile)]
    wanted = set(kept([test.name for test in tests], args.skips))
    try:
        patterns = [re.compile(pattern) for pattern in args.include]
    except re.error as error:
        raise UsageError(f"--include: is no regular expression: {error}") from None
    tests = [test for test in tests if test.name in wanted and (not patterns or any(pattern.search(test.name) for pattern in patterns))]
    if not tests:
        raise UsageError("no test of these profiles has a name that --include and --skips leave")
    return farm(args, lambda settings: PiglitPlan(root, tests, gpus, settings, args.group))


def check_group(args: argparse.Namespace) -> None:
    if args.group is not None and not 1 <= args.group <= 10_000:
        raise UsageError(f"a group has 1 to 10,000 cases, not {args.group}")


def kept(names: list[str], skips: list[str]) -> list[str]:
    """The units that no pattern of --skips leaves out."""
    patterns = [re.compile(pattern) for pattern in read_patterns(skips)]
    return [name for name in names if not any(pattern.search(name) for pattern in patterns)]


def settings(args: argparse.Namespace) -> UnitSettings:
    if not args.time_limit > 0:
        raise UsageError(f"a time limit is a number of seconds above zero, not {args.time_limit:g}")
    if args.workers is not None and not 1 <= args.workers <= 4096:
        raise UsageError(f"workers are 1 to 4096, not {args.workers}")
    if args.threads is not None and not 1 <= args.threads <= 1024:
        raise UsageError(f"host threads are 1 to 1024, not {args.threads}")
    memory = size(args.memory_limit)
    assert memory is not None
    return UnitSettings(args.time_limit, memory, options(args), args.images, parse_shard(args.shard, os.environ))


def options(args: argparse.Namespace) -> tuple[str, ...]:
    """Options that are handed on to `softgen run` or `replay`."""
    found = ["--deterministic"] if args.deterministic else []
    found += ["--engine", args.engine] if args.engine else []
    return tuple(found + (["--threads", str(args.threads)] if args.threads else []))


def farm(args: argparse.Namespace, plan: Callable[[UnitSettings], UnitPlan]) -> int:
    """Run a plan with the options that all commands share."""
    check_junit(args.junit)
    if not args.out:
        raise UsageError("--out needs the name of a folder")
    given, expected = settings(args), read_expectations(args.baseline, args.flakes)
    planned = plan(given)
    session = FarmSession(planned, ResultStore(Path(args.out), given.shard), from_address(args.on, args.workers), expected, args.again)
    try:
        session.open()
        run_session(args, session)
        return report(args, session, expected)
    finally:
        session.close()


def run_session(args: argparse.Namespace, session: FarmSession) -> None:
    shown = 0
    progress = FarmProgress(len(session.missing), quiet=args.json)
    try:
        with ending_on_sigterm():
            for result in session.results():
                verdict = session.expected.verdict(result.name, result.gpu, result.result)
                progress.step(verdict != "unexpected")
                if verdict == "unexpected" and not args.json and (shown := shown + 1) <= SHOWN:
                    progress.show(bad_line(result))
    except KeyboardInterrupt:
        progress.close()
        complain(f"interrupted: {kept_line(session)}")
        raise
    except SoftgenError as error:  # such as a full disk, or a scheduler that is gone
        raise SoftgenError(f"{error}; {kept_line(session)}") from None
    finally:
        progress.close()
    if shown > SHOWN and not args.json:
        print(f"and {shown - SHOWN:,} more; {args.out} has them all (failures.csv)")


def kept_line(session: FarmSession) -> str:
    done = sum(unit.key in session.store.known for unit in session.units)
    return f"{done:,} of {counted(len(session.units), 'unit')} are done and kept in {session.store.folder}; the same command goes on"


def bad_line(result: UnitResult) -> str:
    colour = paint()
    what = result.result if result.result != "pass" else "pass, though the baseline has a failure"
    return f"{colour(what, 'bad')}  {result.gpu}  {result.name}" + (f": {result.message}" if result.message else "")


def report(args: argparse.Namespace, session: FarmSession, expected: Expectations) -> int:
    """Write the reports, print the summary; the exit code."""
    results = list(chosen(session.store.folder, (unit.key for unit in session.units)))
    summary = session.summary()
    notes = [finding_line(finding) for finding in session.store.findings]
    write_reports(session.store.folder, results, expected, summary, notes, args.junit, session.store.shard)
    say(notes)
    say([f"{unit.gpu} {unit.name}: no result: {why}" for unit, why in session.lost])
    if args.json:
        print_json(summary.as_json())
    else:
        there = len(session.units) - len(session.missing)
        already = [f"{there:,} of them were there already (--again runs them too)"] if there else []
        page = session.store.folder / f"index{suffix(session.store.shard)}.html"
        print("\n".join([*summary.lines(), *already, f"{page} shows them"]))
    return 0 if summary.fine else 1


def merge_folders(args: argparse.Namespace) -> int:
    check_junit(args.junit)
    folders, out = [Path(folder) for folder in args.folders], Path(args.out)
    if not args.out or out.resolve() in [folder.resolve() for folder in folders]:
        raise UsageError("--out must be another folder than those that are merged")
    found = read_folders(folders)
    write_merged(found, out)
    lines = [] if found.fine else progress_lines(found, folders)
    write_reports(out, found.results, found.expected, found.summary(), [*map(finding_line, found.findings), *lines], args.junit)
    return told(args, found, lines)


def show_status(args: argparse.Namespace) -> int:
    folders = [Path(folder) for folder in args.folders]
    found = read_folders(folders)
    return told(args, found, progress_lines(found, folders))


def told(args: argparse.Namespace, found: FarmFolders, lines: list[str]) -> int:
    """Print what is in folders; the exit code."""
    summary = found.summary()
    if args.json:
        print_json(summary.as_json() | {"fine": found.fine, "missing": found.missing, "missing_shards": found.missing_shards,
                                        "findings": found.findings})  # fmt: skip
    else:
        print("\n".join([*summary.lines(), *lines]))
        say([finding_line(finding) for finding in found.findings])
    return 0 if found.fine else 1


def finding_line(finding: dict[str, Any]) -> str:
    return f"{finding['gpu']} {finding['name']}: {finding['finding']}: {finding['first']} and {finding['second']}"


def say(lines: list[str]) -> None:
    """Print the first lines of many on standard error."""
    for line in lines[:SHOWN]:
        complain(line)
    if len(lines) > SHOWN:
        complain(f"and {len(lines) - SHOWN:,} more")
