"""`softgen profile CAPTURE [OTHER]`: exact counts by draw, kernel and instruction; of two, what differs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from softgen.errors import DecodeError, UsageError
from softgen.inspect.cli.output import Progress, paint, print_json
from softgen.inspect.output_file import write_file

if TYPE_CHECKING:
    from softgen.inspect.profile.counts import Profile

EXAMPLE = """examples:
  softgen profile kbl-vk-tri                          draws, kernels, and the instructions of the hottest kernel
  softgen profile kbl-vk-tri --traffic                memory accesses and cache lines of each instruction, too (slow)
  softgen profile kbl-vk-tri --json > before.json     everything, as one JSON object
  softgen profile before.json kbl-vk-tri              compare: exit code 1 if a count differs
  softgen profile kbl-vk-tri --speedscope p.json      for https://www.speedscope.app
  softgen profile capture --source saxpy.cl           by source lines, where the kernel was compiled with -g (softgen run --debug-info)
  softgen run --profile p.json -- ./program           record a program and profile the recording

Counts are exact and the same in every run. Three times are never mixed: seconds on this host, the cycles that the driver which compiled the
kernel estimates (where it says them), and the cycles that arithmetic takes at least.
exit codes: 0 fine; of two profiles: 0 the same counts, 1 different ones; 2 usage error"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("profile", description="Count exactly what the draws, kernels and instructions of a capture do.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("capture", help="capture directory, AUB file, error state or raw batch; or a profile written with --json")
    parser.add_argument("other", nargs="?", help="another one to compare with")
    parser.add_argument("--gpu", help="the GPU it is for, whatever the file says (softgen gpus lists them)")
    parser.add_argument("--traffic", action="store_true", help="count memory accesses; messages run on the interpreter, which is slow")
    parser.add_argument("--kernels", metavar="PLACE", action="append", default=[], help="OpenCL binary or folder of some: names of kernels")
    parser.add_argument("--source", metavar="FILE", action="append", default=[],
                        help="assembly, an OpenCL binary with debug information, or the source (.cl): counts by line")  # fmt: skip
    parser.add_argument("--engine", default="auto", help="the engine whose seconds are measured (default: auto)")
    parser.add_argument("--top", type=int, default=1, metavar="N", help="show the instructions of the N hottest kernels (default: 1)")
    parser.add_argument("--csv", metavar="FILE", help="write a row for each instruction")
    parser.add_argument("--speedscope", metavar="FILE", help="write stacks for speedscope")
    parser.add_argument("--json", action="store_true", help="one JSON object")


MOST_KERNELS = 20  # in a table


def run(args: argparse.Namespace) -> int:
    from softgen.eu.engine import NAMES

    if args.engine not in NAMES:
        raise UsageError(f"--engine {args.engine}: no such engine; engines are {' '.join(NAMES)}")
    for place in args.kernels:
        if not Path(place).exists():
            raise UsageError(f"--kernels {place}: no such file or folder")
    for source in args.source:
        if not Path(source).is_file():
            raise UsageError(f"--source {source}: no such file")
    if args.top < 0:
        raise UsageError(f"--top {args.top}: a number of kernels")
    for option in ("csv", "speedscope"):
        if (name := getattr(args, option)) is not None and (not name or not Path(name).parent.is_dir() or Path(name).is_dir()):
            raise UsageError(f"--{option} {name}: cannot be written: no such folder, or no file")
    profiles = [read(args, place) for place in (args.capture, args.other) if place is not None]
    write_exports(args, profiles[-1])
    if len(profiles) == 2:
        return compare(args, profiles[0], profiles[1])
    if args.json:
        print_json(profiles[0].as_json(), 1)
        return 0
    from softgen.inspect.profile.text import lines

    for line in lines(profiles[0], paint(), MOST_KERNELS, args.top):
        print(line)
    return 0


def read(args: argparse.Namespace, place: str) -> Profile:
    """A profile from a file, or of a capture."""
    path = Path(place)
    if path.suffix == ".json" and path.is_file():
        from softgen.inspect.profile.compare import from_json

        try:
            return from_json(json.loads(path.read_bytes()), place)
        except ValueError as error:
            raise DecodeError(f"{place}: is no JSON: {error}") from None
    from softgen.inspect.profile.measure import measure

    with Progress("draws and dispatches") as progress:
        return measure(place, args.gpu, args.traffic, args.kernels, args.engine, args.source, step=progress.step)


def write_exports(args: argparse.Namespace, profile: Profile) -> None:
    from softgen.inspect.profile.export import as_csv, speedscope

    if args.csv:
        write_file(args.csv, as_csv(profile).encode())
    if args.speedscope:
        write_file(args.speedscope, json.dumps(speedscope(profile)).encode())


def compare(args: argparse.Namespace, before: Profile, after: Profile) -> int:
    from softgen.inspect.profile.compare import lines, pairs

    found = pairs(before, after)
    differ = any(pair.differs for pair in found)
    if args.json:
        print_json({"differs": differ, "kernels": [pair.as_json() for pair in found]}, 1)
    else:
        for line in lines(before, after, found, paint()):
            print(line)
    return 1 if differ else 0
