"""`softgen farm`: many tests or captures, on all processors of this machine, in shards on several, or on a Dask cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

EXAMPLE = """examples:
  softgen farm run --tests list.txt --out results                       one command a line, each as softgen run -- LINE
  softgen farm run --tests list.txt --out results --gpu kbl,icl --junit junit.xml
  softgen farm deqp --program ./deqp-gles2 --cases list.txt --out results --baseline fails.csv
  softgen farm piglit --profile quick_shader --out results
  softgen farm replay captures/ --out results
  softgen farm run --tests list.txt --out part3 --shard 3/40            the third of forty parts; --shard auto in a job array
  softgen farm merge part1 part2 part3 --out results
  softgen farm run --tests list.txt --out results --on dask://head:8786  on the workers of a Dask cluster
  softgen farm status results                                           how far it is

The same command again runs what is missing. DIR/results.jsonl has a line of JSON for each unit: name, gpu, result (pass, fail, crash,
timeout, skip), seconds, message; DIR/index.html shows what went wrong. Every command has --help, and --json for machines.

exit codes: 0 all passed, were skipped or failed as expected; 1 otherwise; 2 usage error; 130 interrupted (what is done is kept)"""

RUN_EXAMPLE = """A list has a command on each line, split as a shell splits words and run as softgen run --gpu G -- LINE;
lines with # in front are comments.
pass: exit code 0 and nothing failed on the GPU; skip: the suite says so, or exit code 77; crash: ended by a signal; timeout: --time-limit;
fail: all else.

examples:
  softgen farm run --tests list.txt --out results
  softgen farm run --tests list.txt --out results --gpu kbl,icl --workers 8 --junit junit.xml
  softgen farm run --tests list.txt --out results --again     run all of them, and say which results differ from those before"""
REPLAY_EXAMPLE = """pass: everything ran and every expectation in the capture was met; fail: all else but crash and timeout.

examples:
  softgen farm replay captures/ --out results            every capture below the folder, as its own GPU
  softgen farm replay a b.aub --gpu kbl,icl --out results --images"""
DEQP_EXAMPLE = """Cases run in groups. Where the program dies, one case pays: the rest runs in a new group. What goes wrong in a group runs
again alone, and that result counts. Baselines, flakes and skips are deqp-runner's files.

examples:
  softgen farm deqp --program ./deqp-gles2 --cases mustpass.txt --out results --baseline fails.csv --flakes flakes.txt
  softgen farm deqp --program ./deqp-gles31 --cases list.txt --out results -- --deqp-surface-width=128"""
PIGLIT_EXAMPLE = """examples:
  softgen farm piglit --profile quick_shader --out results
  softgen farm piglit --profile quick_gl --include fbo --out results --gpu kbl,icl"""
MERGE_EXAMPLE = """Results of one hash must be equal in all but seconds; where they are not, that is a finding.

examples:
  softgen farm merge part1 part2 part3 --out results --junit junit.xml
  softgen farm merge shared --out results         of shards that wrote into one folder

exit codes: 0 all units of all shards passed, were skipped or failed as expected; 1 otherwise; 2 usage error"""
STATUS_EXAMPLE = """examples:
  softgen farm status results
  softgen farm status part1 part2 --json

exit codes: 0 all is done, and all units passed, were skipped or failed as expected; 1 otherwise; 2 usage error"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("farm", description="Many tests or captures, on one machine or on many.", epilog=EXAMPLE,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    commands = parser.add_subparsers(dest="farm", required=True, metavar="COMMAND")
    add_run(commands)
    add_replay(commands)
    add_deqp(commands)
    add_piglit(commands)
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
    parser.set_defaults(work="run_tests")


def add_replay(commands: Commands) -> None:
    parser = add_command(commands, "replay", "replay captures", REPLAY_EXAMPLE)
    parser.add_argument("captures", nargs="+", metavar="CAPTURE", help="captures, and folders with captures in them")
    parser.add_argument("--gpu", metavar="G,…", help="replay each capture as each of these GPUs, whatever it says; default: its own")
    parser.add_argument("--check", metavar="WORLD,…", help="softgen check in these worlds, in place of a plain replay")
    add_common(parser, 600)
    parser.set_defaults(work="replay_captures")


def add_deqp(commands: Commands) -> None:
    parser = add_command(commands, "deqp", "run cases of dEQP", DEQP_EXAMPLE)
    parser.add_argument("--program", required=True, metavar="PROGRAM", help="deqp-gles2 or another of dEQP's programs")
    parser.add_argument("--cases", required=True, action="append", metavar="LIST", help="a file with names of cases")
    parser.add_argument("--gpu", default="kbl", metavar="G,…", help="which GPUs (default %(default)s)")
    add_group(parser)
    add_common(parser, 120, "case")
    parser.add_argument("arguments", nargs="*", metavar="-- ARGUMENT", help="further arguments of the program")
    parser.set_defaults(work="run_deqp")


def add_piglit(commands: Commands) -> None:
    parser = add_command(commands, "piglit", "run tests of piglit", PIGLIT_EXAMPLE)
    parser.add_argument("--profile", action="append", metavar="NAME", help="a profile of piglit's (default quick_gl and quick_shader)")
    parser.add_argument("--piglit", metavar="DIR", help="the folder of piglit's tests and programs (default: where it is installed)")
    parser.add_argument("--include", action="append", default=[], metavar="REGEX", help="only tests with this in their name")
    parser.add_argument("--gpu", default="kbl", metavar="G,…", help="which GPUs (default %(default)s)")
    add_group(parser)
    add_common(parser, 120, "test")
    parser.set_defaults(work="run_piglit")


def add_group(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", type=int, metavar="N", help="cases that share a start of a program (default: depends on their number)")


def add_common(parser: argparse.ArgumentParser, seconds: float, of: str = "unit") -> None:
    """Options of all commands that run units."""
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder of results; what is there already is not run again")
    parser.add_argument("--shard", metavar="I/N", help="only this part of the list; auto: from variables of Slurm, Kubernetes, GitLab …")
    parser.add_argument("--again", action="store_true", help="run units that have a result too; a different result is a finding")
    parser.add_argument("--on", metavar="WHERE", help="local (default), or the scheduler of a Dask cluster: dask://HOST:PORT")
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
    parser.set_defaults(work="merge_folders")


def add_status(commands: Commands) -> None:
    parser = add_command(commands, "status", "show how far a farm is", STATUS_EXAMPLE)
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folders with results, of one farm or of its shards")
    parser.add_argument("--json", action="store_true", help="the summary as one JSON object")
    parser.set_defaults(work="show_status")


def run(args: argparse.Namespace) -> int:
    from softgen.inspect.farm import commands  # --help need not load it

    work: Callable[[argparse.Namespace], int] = getattr(commands, args.work)
    return work(args)
