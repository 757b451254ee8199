"""`softgen run -- PROGRAM …`: an unmodified program on the software GPU."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from softgen.errors import UsageError
from softgen.inspect.cli.engine import (
    add_engine_options,
    add_images_option,
    add_report_options,
    add_trace_option,
    check,
    check_report,
    runner,
    spare_processor,
    traced,
)
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import complain
from softgen.inspect.loading import load

if TYPE_CHECKING:
    from softgen.bits.generation import Device
    from softgen.driver.objects.submission import Submission
    from softgen.driver.run.launcher import Outcome
    from softgen.driver.run.service import Service
    from softgen.driver.run.simulator import Observers
    from softgen.inspect.report.pictures import Room, SubmissionPictures
    from softgen.inspect.report.recording import Recorder
    from softgen.threads.compare.compare import ComparingDispatcher
    from softgen.threads.dispatcher import EngineDispatcher

EXAMPLE = """examples:
  softgen run -- clinfo                                  what OpenCL sees
  softgen run --gpu icl -- python3 my_opencl_script.py   on another GPU
  softgen run --gpu hsw -- vulkaninfo --summary
  softgen run --record dir -- ./program                  every submission, for softgen replay and decode
  softgen run --images dir -- ./program                  what it draws, as PNG files in a new folder
  softgen run --report - -- ./program                    what ran, hottest kernels first, what failed

exit codes: the program's own; 128 and a signal's number if one ended it; 1 if its work could not be done; 2 usage error"""

CACHE_VARIABLE = "cl_cache_dir"  # of Intel's OpenCL runtime: an existing folder into which it writes compiled programs
SMALLEST_LIMIT = 64 << 20  # bytes; less is a forgotten unit
LARGEST_MODE = 8192  # pixels across and down, on every GPU
CRASHES = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}  # not asked for by a person


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("run", description="Run an unmodified program on the software GPU.", epilog=EXAMPLE,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--gpu", default="kbl", help="which GPU the program finds (default %(default)s; softgen gpus lists them)")
    parser.add_argument("--record", metavar="DIR", help="write every submission to a new capture directory")
    add_images_option(parser, "; also the frames that the program presents: the first ten, then every 60th")
    parser.add_argument("--display", metavar="WxH", default="640x480",
                        help="the mode of the display that KMS programs find (default %(default)s)")  # fmt: skip
    add_report_options(parser)
    add_trace_option(parser, "ioctls")
    parser.add_argument("--keep-going", action="store_true", help="do not end the program when some of its work fails")
    parser.add_argument("--memory-limit", metavar="SIZE",
                        help="memory the simulator may take for all programs, such as 8G; the default is three quarters of the host's. "
                             "A request that would go beyond is answered with ENOMEM")  # fmt: skip
    add_engine_options(parser)
    parser.add_argument("--json", action="store_true", help="the report as one line of JSON on standard error, when the program has ended")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM …", help="the program and its arguments")


def size(text: str | None) -> int | None:
    """The value of --memory-limit in bytes."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?)([KMGT]?)(?:i?B)?", text, re.IGNORECASE | re.ASCII)
    found = int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ")) if match else 0
    if found < SMALLEST_LIMIT:
        raise UsageError(f"a memory limit is a size of at least {SMALLEST_LIMIT >> 20}M, such as 512M or 8G, not {text!r}")
    return found


def mode_size(text: str) -> tuple[int, int]:
    """The value of --display: width and height in pixels."""
    match = re.fullmatch(r"(\d{1,4})x(\d{1,4})", text)
    width, height = (int(match[1]), int(match[2])) if match else (0, 0)
    if not (16 <= width <= LARGEST_MODE and 16 <= height <= LARGEST_MODE):
        raise UsageError(f"a display's mode is WIDTHxHEIGHT, 16 to {LARGEST_MODE} pixels each, such as 1024x768, not {text!r}")
    return width, height


def run(args: argparse.Namespace) -> int:
    from softgen.driver.run.environment import unreachable
    from softgen.driver.run.launcher import launch
    from softgen.driver.run.service import CANNOT_GO_ON

    command = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not command:
        raise UsageError("no program; say: softgen run -- PROGRAM …")
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(f"no program {command[0]!r}: not found, or not executable")
    if why := unreachable(program):
        complain(f"{command[0]} {why}: it will not find the GPU")
    traced(args, "ioctls")
    check(args)
    check_report(args)
    args.memory_limit, args.display = size(args.memory_limit), mode_size(args.display)
    gpu = find(args.gpu)
    recorder, pictures = recording(args.record, gpu), collected(args.images)
    with compiled_programs(args) as (folder, temporary):
        try:
            serving = partial(serve, args, gpu, recorder, pictures, folder)
            alone = partial(orphaned, recorder, folder if temporary else None)
            outcome = launch(command, gpu, serving, alone, args.keep_going, args.time_limit)
        finally:
            if recorder and (cut_short := recorder.close()):
                complain(cut_short)
    for text in outcome.failed:
        if text.startswith(CANNOT_GO_ON):  # other failures, the simulator has reported
            complain(text)
    if outcome.trouble:
        complain(outcome.trouble)
    if outcome.signal in CRASHES:
        complain(f"{command[0]} was ended by {signal.Signals(outcome.signal).name}")
    hint(gpu, outcome)
    if pictures and (files := outcome.report.get("images")):
        complain(f"{len(files)} picture{'s' if len(files) > 1 else ''} in {args.images}")
    elif pictures:
        complain(f"{args.images}: no pictures, because nothing was drawn")
    write_report(args, outcome.report | {"exit_code": outcome.code, "trouble": outcome.trouble})
    return outcome.code


@contextmanager
def compiled_programs(args: argparse.Namespace) -> Iterator[tuple[str | None, bool]]:
    """The folder into which Intel's OpenCL runtime writes the programs it compiles, so that a report can name kernels; and whether it is
    removed at the end: one that the user has chosen stays."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen or not wanted(args):
        yield chosen, False
        return
    import tempfile  # takes time that other runs need not spend

    with tempfile.TemporaryDirectory(prefix="softgen-programs-", ignore_cleanup_errors=True) as folder:
        os.environ[CACHE_VARIABLE] = folder
        try:
            yield folder, True
        finally:
            del os.environ[CACHE_VARIABLE]


def recording(path: str | None, gpu: Device) -> Recorder | None:
    if path is None:
        return None
    from softgen.inspect.report.recording import Recorder

    return Recorder(path, gpu)


def collected(folder: str | None) -> SubmissionPictures | None:
    if folder is None:
        return None
    from softgen.inspect.report.pictures import SubmissionPictures

    return SubmissionPictures(folder, complain)


def orphaned(recorder: Recorder | None, folder: str | None) -> None:
    """Called in the server's process when the launcher has ended; `folder` is a temporary one."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    complain("the launcher has ended: the simulator and the program end too")
    if recorder and (cut_short := recorder.close()):
        complain(cut_short)


def wanted(args: argparse.Namespace) -> bool:
    """Whether a report was asked for."""
    return bool(args.report or args.json)


def serve(args: argparse.Namespace, gpu: Device, recorder: Recorder | None, pictures: SubmissionPictures | None, folder: str | None,
          service: Service) -> dict[str, Any]:  # fmt: skip
    """The server's process, until the launcher ends it. Compiled programs appear in `folder`."""
    answering = threading.Event()
    service.loaded.clear()
    threading.Thread(target=load, args=(gpu, args.engine, answering, service), name="load", daemon=True).start()
    if not service.wait_for_program() and not (wanted(args) or recorder or pictures):
        return {}  # the program never looked for a GPU
    answering.wait()
    from softgen.driver.run.simulator import Simulator, SimulatorOptions

    options = SimulatorOptions(args.display, args.memory_limit, args.deterministic, spare_processor(args))
    dispatchers = Dispatchers(args)
    simulator = Simulator(gpu, service, options, observers(args, gpu, recorder, pictures), dispatchers.new)
    if args.engine == "auto" and len(os.sched_getaffinity(0)) > 1:  # else the program would wait for it
        threading.Thread(target=simulator.compile_ahead, name="compiling ahead", daemon=True).start()
    report = simulator.run() | {"images": pictures.files if pictures else []}
    if wanted(args):
        executor, places = simulator.executor(), [*args.kernels, *([folder] if folder else [])]
        report = executor.as_json() | kernels(executor.report.fine, dispatchers.made, places) | report
    keep(gpu, args.engine if service.loaded.is_set() else "reference")
    return report


class Dispatchers:
    """The dispatchers of a run's contexts; they are kept for a report alone, because a run may have thousands, one after another."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.made: list[EngineDispatcher | ComparingDispatcher] = []

    def new(self) -> EngineDispatcher | ComparingDispatcher:
        made = runner(self.args)
        if wanted(self.args):
            self.made.append(made)
        return made


def observers(args: argparse.Namespace, gpu: Device, recorder: Recorder | None, pictures: SubmissionPictures | None) -> Observers:
    """What a run is recorded, drawn and traced with."""
    from softgen.driver.run.simulator import Observers

    found = Observers(complain, partial(save_failure, gpu), trace=traced(args, "ioctls"))
    found.ioctls = complain if "ioctls" in (args.trace or "").split(",") else None
    found.recorders = [item for item in (recorder, pictures) if item]
    if recorder:
        found.close = recorder.complete
    if pictures:
        from softgen.inspect.report.frames import FramePictures

        frames = FramePictures(pictures.folder, pictures.files, complain)
        found.drawn, found.presented = pictures.drawn, frames.presented

        def use_room(room: Room) -> None:
            pictures.room = frames.room = room

        found.use_room = use_room
    return found


def save_failure(gpu: Device, submission: Submission, message: str) -> str:
    from softgen.inspect.report.recording import keep_failure

    return keep_failure(submission, message, gpu)


def keep(gpu: Device, engine: str) -> None:
    """Keep what was read and what kernels had, for runs to come."""
    from softgen.bits import catalogue

    catalogue.save()
    if engine != "reference":
        from softgen.eu.threaded.library import library

        library(gpu.generation.number).keep_recent()


def kernels(fine: bool, ran: list[EngineDispatcher | ComparingDispatcher], places: list[str]) -> dict[str, Any]:
    """How exactly kernels ran, and how long each took. Binaries in `places` give them names."""
    from softgen.inspect.report import report
    from softgen.inspect.report.kernel_names import KernelNames
    from softgen.threads.dispatcher import EngineDispatcher

    groups = [dispatcher for engine in ran for dispatcher in ([engine] if isinstance(engine, EngineDispatcher) else engine.both)]
    found = [kernel for dispatcher in groups for kernel in dispatcher.ran.values()]
    inexact = report.approximations(kernel.program for kernel in found)
    notes = list(dict.fromkeys(note for dispatcher in groups for note in dispatcher.notes))
    rows = report.kernels(found, KernelNames(places))
    return {"exact": fine and not inexact, "approximate": inexact, "notes": notes, "fallbacks": report.fallbacks(found), "kernels": rows}


def hint(gpu: Device, outcome: Outcome) -> None:
    """Say which driver is missing, if the program looked for one that is not installed, or failed."""
    from softgen.driver.run.environment import missing

    failed = bool(outcome.code) and not outcome.trouble and not outcome.failed
    apis = set(outcome.seeks) | set(outcome.loads if failed else ())
    if apis or outcome.signal in CRASHES and not outcome.report.get("opened"):  # a crashed program has not said what it had loaded
        for line in missing(gpu, apis or None):
            complain(line)


def write_report(args: argparse.Namespace, report: dict[str, Any]) -> None:
    """The report as JSON, or as text on standard error (`-`): standard output is the program's."""
    if args.json:
        print(json.dumps(report), file=sys.stderr)
    if args.report == "-" and "kernels" in report:
        from softgen.inspect.report.report import show

        show(report, sys.stderr)
    elif args.report and args.report != "-":
        from softgen.inspect.output_file import write_file

        write_file(args.report, f"{json.dumps(report, indent=2)}\n".encode())
