"""`softgen farm`: many tests or captures, on all processors of this machine, in shards on several, or on a Dask cluster."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgen.errors import UsageError
from softgen.inspect.cli.output import complain, counted, paint, print_json

if TYPE_CHECKING:
    from softgen.inspect.farm.expectations import Expectations
    from softgen.inspect.farm.merge import FarmFolders
    from softgen.inspect.farm.plans import UnitPlan, UnitSettings
    from softgen.inspect.farm.session import FarmSession
    from softgen.inspect.farm.unit import UnitResult

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

EXAMPLE = """examples:
  softgen farm run --tests list.txt --out results              one command a line, each as softgen run -- LINE
  softgen farm run --tests list.txt --gpu kbl,icl --out results --junit junit.xml

  softgen farm run --tests list.txt --out results --shard 3/40 the third of forty parts; or --shard auto in a job array
  softgen farm merge part1 part2 part3 --out results
  softgen farm status results

The same command again runs what is missing. DIR/results.jsonl has a line of JSON for each unit: name, gpu, result (pass, fail, crash,
timeout, skip), seconds, message. Every command has --help, and --json for machines.

exit codes: 0 all passed, were skipped or failed as expected; 1 otherwise; 2 usage error; 130 interrupted (what is done is kept)"""

RUN_EXAMPLE = """A list has a command on each line, split as a shell splits words and run as softgen run --gpu G -- LINE;
lines with # in front are comments.
pass: exit code 0 and nothing failed on the GPU; skip: the suite says so, or exit code 77; crash: ended by a signal; timeout: --time-limit;
fail: all else.

examples:
  softgen farm run --tests list.txt --out results
  softgen farm run --tests list.txt --out results --gpu kbl,icl --workers 8 --junit junit.xml
  softgen farm run --tests list.txt --out results --again     run all of them, and say which results differ from those before"""
MERGE_EXAMPLE = """Results of one hash must be equal in all but seconds; where they are not, that is a finding.

examples:
  softgen farm merge part1 part2 part3 --out results --junit junit.xml
  softgen farm merge shared --out results         of shards that wrote into one folder

exit codes: 0 all units of all shards passed, were skipped or failed as expected; 1 otherwise; 2 usage error"""
STATUS_EXAMPLE = """examples:
  softgen farm status results
  softgen farm status part1 part2 --json

exit codes: 0 all is done, and all units passed, were skipped or failed as expected; 1 otherwise; 2 usage error"""
SHOWN = 50  # units that went wrong and are printed one by one; the folder has them all
OPTIONS = ("engine", "deterministic", "threads")  # of `softgen run` and `replay`


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("farm", description="Many tests or captures, on one machine or on many.", epilog=EXAMPLE,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    commands = parser.add_subparsers(dest="farm", required=True, metavar="COMMAND")
    add_run(commands)
    add_merge(commands)
    add_status(commands)
    for command in commands.choices.values():
        command.allow_abbrev = False


def add_command(commands: Commands, name: str, text: str, epilog: str) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=epilog,
                               formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip


def add_run(commands: Commands) -> None:
    parser = add_command(commands, "run", "run the commands of a list, each on the software GPU", RUN_EXAMPLE)
    parser.add_argument("--tests", required=True, metavar="LIST", help="a file with a command on each line")
    parser.add_argument("--gpu", default="kbl", metavar="G,…", help="which GPUs; each command runs on each (default %(default)s)")
    add_common(parser, 600)
    parser.set_defaults(work=run_tests)


def add_common(parser: argparse.ArgumentParser, seconds: float, of: str = "unit") -> None:
    """Options of all commands that run units."""
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder of results; what is there already is not run again")
    parser.add_argument("--shard", metavar="I/N", help="only this part of the list; auto: from variables of Slurm, Kubernetes, GitLab …")
    parser.add_argument("--again", action="store_true", help="run units that have a result too; a different result is a finding")
    parser.add_argument("--workers", type=int, metavar="N", help="units that run at once (default: one per processor)")
    parser.add_argument("--time-limit", type=float, default=seconds, metavar="S", help=f"seconds for each {of} (default %(default)g)")
    parser.add_argument("--memory-limit", default="8G", metavar="SIZE", help="memory of a unit's processes (default %(default)s)")
    parser.add_argument("--baseline", action="append", default=[], metavar="[GPU=]CSV", help="expected results: lines such as NAME,Fail")
    parser.add_argument("--flakes", action="append", default=[], metavar="FILE", help="regular expressions of units that may fail")
    parser.add_argument("--skips", action="append", default=[], metavar="FILE", help="regular expressions of units that are left out")
    parser.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument("--images", action="store_true", help="keep the pictures that units draw")
    parser.add_argument("--engine", choices=("reference", "t0", "t1", "auto"), help="as of softgen run")
    parser.add_argument("--threads", type=int, metavar="N", help="host threads of each unit (default: one per processor)")
    parser.add_argument("--deterministic", action="store_true", help="as of softgen run: timestamps count instead of measuring time")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object, and nothing else on standard output")


def add_merge(commands: Commands) -> None:
    parser = add_command(commands, "merge", "join the results of shards", MERGE_EXAMPLE)
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folders with results")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder for all of them")
    parser.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")
    parser.set_defaults(work=merge_folders)


def add_status(commands: Commands) -> None:
    parser = add_command(commands, "status", "show how far a farm is", STATUS_EXAMPLE)
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folders with results, of one farm or of its shards")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")
    parser.set_defaults(work=show_status)


def run(args: argparse.Namespace) -> int:
    work: Callable[[argparse.Namespace], int] = args.work
    return work(args)


def run_tests(args: argparse.Namespace) -> int:
    from softgen.inspect.farm.lists import gpu_names, read_tests
    from softgen.inspect.farm.plans import CommandPlan

    lines, gpus = kept(read_tests(args.tests), args.skips), gpu_names(args.gpu)
    return farm(args, lambda settings: CommandPlan(lines, gpus, settings))


def kept(names: list[str], skips: list[str]) -> list[str]:
    """The units that no pattern of --skips leaves out."""
    import re

    from softgen.inspect.farm.expectations import read_patterns

    patterns = [re.compile(pattern) for pattern in read_patterns(skips)]
    return [name for name in names if not any(pattern.search(name) for pattern in patterns)]


def settings(args: argparse.Namespace) -> UnitSettings:
    from softgen.inspect.cli.run import size
    from softgen.inspect.farm.plans import UnitSettings
    from softgen.inspect.farm.shards import parse_shard

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
    from softgen.inspect.farm.executors import backend
    from softgen.inspect.farm.expectations import read_expectations
    from softgen.inspect.farm.reports import check_junit
    from softgen.inspect.farm.session import FarmSession
    from softgen.inspect.farm.store import ResultStore

    check_junit(args.junit)
    if not args.out:
        raise UsageError("--out needs the name of a folder")
    given, expected = settings(args), read_expectations(args.baseline, args.flakes)
    session = FarmSession(plan(given), ResultStore(Path(args.out), given.shard), backend(None, args.workers), expected, args.again)
    try:
        session.open()
        run_session(args, session)
        return report(args, session, expected)
    finally:
        session.close()


def run_session(args: argparse.Namespace, session: FarmSession) -> None:
    from softgen.inspect.farm.progress import FarmProgress
    from softgen.inspect.farm.session import ending_on_sigterm

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
        done = sum(unit.key in session.store.known for unit in session.units)
        complain(f"interrupted: {done:,} of {counted(len(session.units), 'unit')} are done and kept in {args.out}; "
                 "the same command goes on from there")  # fmt: skip
        raise
    finally:
        progress.close()
    if shown > SHOWN and not args.json:
        print(f"and {shown - SHOWN:,} more; {args.out} has them all (failures.csv)")


def bad_line(result: UnitResult) -> str:
    colour = paint()
    what = result.result if result.result != "pass" else "pass, though the baseline has a failure"
    return f"{colour(what, 'bad')}  {result.gpu}  {result.name}" + (f": {result.message}" if result.message else "")


def report(args: argparse.Namespace, session: FarmSession, expected: Expectations) -> int:
    """Write the reports, print the summary; the exit code."""
    from softgen.inspect.farm.reports import chosen, write_reports

    results = list(chosen(session.store.folder, (unit.key for unit in session.units)))
    write_reports(session.store.folder, results, expected, args.junit, session.store.shard)
    summary = session.summary()
    say_findings(session.store.findings)
    for unit, why in session.lost[:SHOWN]:
        complain(f"{unit.gpu} {unit.name}: no result: {why}")
    if args.json:
        print_json(summary.as_json())
    else:
        there = len(session.units) - len(session.missing)
        print("\n".join(summary.lines()) + (f"\n{there:,} of them were there already (--again runs them too)" if there else ""))
    return 0 if summary.fine else 1


def merge_folders(args: argparse.Namespace) -> int:
    from softgen.inspect.farm.merge import progress_lines, read_folders, write_merged
    from softgen.inspect.farm.reports import check_junit, write_reports

    check_junit(args.junit)
    folders, out = [Path(folder) for folder in args.folders], Path(args.out)
    if not args.out or out.resolve() in [folder.resolve() for folder in folders]:
        raise UsageError("--out must be another folder than those that are merged")
    found = read_folders(folders)
    write_merged(found, out)
    write_reports(out, found.results, found.expected, args.junit)
    return told(args, found, [] if found.fine else progress_lines(found, folders))


def show_status(args: argparse.Namespace) -> int:
    from softgen.inspect.farm.merge import progress_lines, read_folders

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
        say_findings(found.findings)
    return 0 if found.fine else 1


def say_findings(findings: list[dict[str, Any]]) -> None:
    for finding in findings[:SHOWN]:
        complain(f"{finding['gpu']} {finding['name']}: two runs differ: {finding['first']} and {finding['second']}")
