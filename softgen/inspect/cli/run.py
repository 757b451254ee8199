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
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
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
from softgen.inspect.cli.run_observers import frame_sink, live_sink, observers, page
from softgen.inspect.frames.options import add_frame_options, chosen
from softgen.inspect.loading import load
from softgen.inspect.report.recorded_programs import FOLDER

if TYPE_CHECKING:
    from softgen.bits.generation import Device
    from softgen.driver.run.launcher import Outcome
    from softgen.driver.run.service import Service
    from softgen.driver.run.simulator import Simulator
    from softgen.inspect.report.pictures import SubmissionPictures
    from softgen.inspect.report.recording import Recorder
    from softgen.threads.compare.compare import ComparingDispatcher
    from softgen.threads.dispatcher import EngineDispatcher

EXAMPLE = """examples:
  softgen run -- clinfo                                  what OpenCL sees
  softgen run --gpu icl -- python3 my_opencl_script.py   on another GPU
  softgen run --gpu hsw -- vulkaninfo --summary
  softgen run --record dir -- ./program                  every submission, for softgen replay and decode
  softgen run --images dir -- ./program                  what it draws, as PNG files in a new folder
  softgen run --frames dir --every 10 -- kmscube         every tenth frame that it presents (--last, --video film.mp4)
  softgen run --report - -- ./program                    what ran, hottest kernels first, what failed

exit codes: the program's own; 128 and a signal's number if one ended it; 1 if its work could not be done; 2 usage error"""

ZEBIN = "InjectInternalBuildOptions", "-cl-intel-allow-zebin"  # of the same: only this kind of binary has debug information
CACHE_VARIABLE = "cl_cache_dir"  # of Intel's OpenCL runtime: an existing folder into which it writes compiled programs
SMALLEST_LIMIT = 64 << 20  # bytes; less is a forgotten unit
LARGEST_MODE = 8192  # pixels across and down, on every GPU
MOST_SHOWN = 8  # kernels and faults on the page of a running program
CRASHES = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}  # not asked for by a person


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("run", description="Run an unmodified program on the software GPU.", epilog=EXAMPLE,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--gpu", default="kbl", help="which GPU the program finds (default %(default)s; softgen gpus lists them)")
    parser.add_argument("--record", metavar="DIR", help="write every submission to a new capture directory")
    parser.add_argument("--profile", metavar="FILE", help="write exact counts of every draw, kernel and instruction as JSON, from a "
                                                          "recording, which stays if --record names it (softgen profile)")  # fmt: skip
    parser.add_argument("--debug-info", action="store_true",
                        help="let Intel's OpenCL runtime keep debug information of kernels that the program compiles with -g, for source "
                             "lines in softgen check and debug; their code may be another than without")  # fmt: skip
    add_images_option(parser, "; also the frames that the program presents: the first ten, then every 60th")
    add_frame_options(parser)
    parser.add_argument("--show", action="store_true", help="show presented frames, hottest kernels and faults live in a browser of this "
                                                            "machine, at an address that is printed")  # fmt: skip
    parser.add_argument("--port", type=int, help="of --show on 127.0.0.1 (default: any)")
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
    args.memory_limit, args.display, args.kept_frames = size(args.memory_limit), mode_size(args.display), chosen(args)
    gpu, args.page = find(args.gpu), page(args)
    with profiled(args), debug_information(args.debug_info):
        return run_program(args, command, gpu)


def run_program(args: argparse.Namespace, command: list[str], gpu: Device) -> int:
    """Run the program and report; its exit code."""
    from softgen.driver.run.launcher import launch
    from softgen.driver.run.service import CANNOT_GO_ON

    recorder, pictures = recording(args.record, gpu), collected(args.images)
    with compiled_programs(args) as (folder, temporary):
        try:
            serving = partial(serve, args, gpu, recorder, pictures, folder)
            alone = partial(orphaned, recorder, folder if temporary else None)
            outcome = launch(command, gpu, serving, alone, args.keep_going, args.time_limit, args.show)
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
    if kept := outcome.report.get("frames_kept"):
        complain(kept["summary"])
    if pictures and (files := outcome.report.get("images")):
        complain(f"{len(files)} picture{'s' if len(files) > 1 else ''} in {args.images}")
    elif pictures:
        complain(f"{args.images}: no pictures, because nothing was drawn")
    write_report(args, outcome.report | {"exit_code": outcome.code, "trouble": outcome.trouble})
    return outcome.code


@contextmanager
def profiled(args: argparse.Namespace) -> Iterator[None]:
    """Records the program, and writes the profile of the recording at the end."""
    if args.profile is None:
        yield
        return
    if not args.profile or not Path(args.profile).absolute().parent.is_dir() or Path(args.profile).is_dir():
        raise UsageError(f"--profile {args.profile}: a profile is a file in a folder that exists")
    import tempfile  # takes time that other runs need not spend

    from softgen.inspect.output_file import write_file
    from softgen.inspect.profile.measure import measure
    from softgen.trace.capture import is_capture

    with tempfile.TemporaryDirectory(prefix="softgen-profile-", ignore_cleanup_errors=True) as folder:
        args.record = args.record or f"{folder}/capture"
        yield
        if not Path(args.record).is_dir() or not is_capture(Path(args.record)):
            complain(f"--profile {args.profile}: not written, because nothing was submitted")
            return
        found = measure(args.record, names=args.kernels, engine=args.engine)
        found.capture = args.record if args.record != f"{folder}/capture" else " ".join(args.program)
        write_file(args.profile, json.dumps(found.as_json(), indent=1).encode())


@contextmanager
def debug_information(wanted: bool) -> Iterator[None]:
    """While open, the OpenCL runtime compiles to binaries that keep the debug information of `-g`."""
    name, option = ZEBIN
    before = os.environ.get(name)
    if wanted:
        os.environ[name] = f"{before or ''} {option}".strip()
    try:
        yield
    finally:
        if wanted and before is None:
            del os.environ[name]
        elif before is not None:
            os.environ[name] = before


@contextmanager
def compiled_programs(args: argparse.Namespace) -> Iterator[tuple[str | None, bool]]:
    """The folder into which Intel's OpenCL runtime writes the programs it compiles, so that a report can name kernels; and whether it is
    removed at the end: one that the user has chosen stays, and one in a recording."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if not chosen and args.record:
        chosen = os.path.join(args.record, FOLDER)
        os.makedirs(chosen, exist_ok=True)
        os.environ[CACHE_VARIABLE] = chosen
        try:
            yield chosen, False
        finally:
            del os.environ[CACHE_VARIABLE]
            with suppress(OSError):
                os.rmdir(chosen)  # where nothing was compiled
        return
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
    return bool(args.report or args.json or args.show)


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
    sink, live = frame_sink(args.kept_frames), live_sink(args.page)
    shown = [item for item in (sink, live) if item]
    watching = observers(args, gpu, recorder, pictures, shown, folder)
    if live:
        watching.log = live.log
    simulator = Simulator(gpu, service, options, watching, dispatchers.new)
    if live:
        live.status, live.send = partial(live_status, args, simulator, dispatchers, folder), simulator.server.inputs.send
        live.start()
    if args.engine == "auto" and len(os.sched_getaffinity(0)) > 1:  # else the program would wait for it
        threading.Thread(target=simulator.compile_ahead, name="compiling ahead", daemon=True).start()
    report = simulator.run() | {"images": pictures.files if pictures else []} | ({"frames_kept": sink.close()} if sink else {})
    if live:
        live.close()
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


def live_status(args: argparse.Namespace, simulator: Simulator, dispatchers: Dispatchers, folder: str | None) -> dict[str, Any]:
    """What the page of a running program says beside its frames."""
    found: dict[str, Any] = {"program": args.program[-1] if len(args.program) < 2 else args.program[1], "gpu": simulator.gpu.title,
                             "frames": simulator.shared.display.rate()}  # fmt: skip
    if simulator.made is None:
        return found
    report = simulator.made.report
    troubles = [*report.faults[-MOST_SHOWN:], *report.unsupported[-MOST_SHOWN:]]
    rows = kernels(report.fine, list(dispatchers.made), [*args.kernels, *([folder] if folder else [])])["kernels"][:MOST_SHOWN]
    return found | {"faults": [str(trouble) for trouble in troubles], "kernels": rows}


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
