"""`-- PROGRAM …` in place of a capture: the program runs on softgen, and its recording is what a verb looks at."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.cli.output import complain
from softgen.inspect.report.recorded_programs import FOLDER, compiled_programs
from softgen.trace.capture import is_capture

USAGE_ERROR = 2  # exit code of softgen run


@dataclass(frozen=True)
class RecordedCapture:
    """A capture, what messages call it, and the folder with the OpenCL programs that were compiled meanwhile."""

    path: str
    title: str

    @property
    def programs(self) -> str:
        return os.path.join(self.path, FOLDER)

    def binaries(self) -> list[str]:
        """Files of the OpenCL programs, which may have debug information."""
        return compiled_programs(self.path)


def add_program(parser: argparse.ArgumentParser) -> None:
    """Take what stands after `--` as a program with its arguments, whatever they look like."""
    parser.add_argument("--debug-info", action="store_true",
                        help="of a program: OpenCL kernels that it compiles with -g name their source lines (softgen run --debug-info)")
    parse = parser.parse_known_args

    def known(args: Sequence[str], namespace: argparse.Namespace | None = None) -> tuple[argparse.Namespace, list[str]]:
        words = list(args)
        at = words.index("--") if "--" in words else len(words)
        found, rest = parse(words[:at], namespace)
        found.program = words[at + 1 :]
        return found, rest

    setattr(parser, "parse_known_args", known)  # noqa: B010


@contextmanager
def recorded(args: argparse.Namespace, verb: str) -> Iterator[RecordedCapture]:
    """The capture that the arguments name, or a temporary recording of their program."""
    if bool(args.capture) == bool(args.program):
        raise UsageError(f"{verb} what? say: softgen {verb} CAPTURE, or softgen {verb} -- PROGRAM …")
    if args.capture:
        yield RecordedCapture(args.capture, args.capture)
        return
    with tempfile.TemporaryDirectory(prefix=f"softgen-{verb}-", ignore_cleanup_errors=True) as folder:
        made = os.path.join(folder, "capture")
        record(args, made)
        yield RecordedCapture(made, args.program[0])


def record(args: argparse.Namespace, into: str) -> None:
    """Run a program on softgen, and keep what it submits and the OpenCL programs it compiles."""
    command, limit = args.program, getattr(args, "time_limit", None)
    if shutil.which(command[0]) is None:
        raise UsageError(f"no program {command[0]!r}: not found, or not executable")
    options = [*(["--gpu", args.gpu] if args.gpu else []), *(["--time-limit", str(limit)] if limit else []),
               *(["--debug-info"] if args.debug_info else [])]  # fmt: skip
    whole = [sys.executable, "-m", "softgen", "run", *options, "--record", into, "--", *command]
    done = subprocess.run(whole, check=False, stdout=sys.stderr if args.json else None)
    if not os.path.isdir(into) or not is_capture(Path(into)):
        if done.returncode == USAGE_ERROR:
            raise UsageError("the program could not be run")
        raise SoftgenError(f"{command[0]} has submitted nothing to the GPU{f', exit code {done.returncode}' if done.returncode else ''}: "
                           "there is nothing to look at")  # fmt: skip
    if done.returncode:
        complain(f"{command[0]} ended with exit code {done.returncode}; what it submitted is looked at all the same")
