"""`softgen run -- PROGRAM …`: an unmodified program on the software GPU."""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgen.errors import SoftgenError, SpecError
from softgen.inspect.cli.engine import add_engine_options, add_trace_option, check, runner, traced
from softgen.inspect.cli.output import Misuse, complain

if TYPE_CHECKING:
    from softgen.bits.generation import Device
    from softgen.driver.execute import Executor
    from softgen.driver.launcher import Outcome
    from softgen.driver.service import Service
    from softgen.driver.submission import Submission
    from softgen.inspect.recording import Recorder
    from softgen.threads.compare import ComparingDispatcher
    from softgen.threads.dispatcher import EngineDispatcher

EXAMPLE = """examples:
  softgen run -- clinfo                                  what OpenCL sees
  softgen run --gpu icl -- python3 my_opencl_script.py   on another GPU
  softgen run --gpu hsw -- vulkaninfo --summary
  softgen run --record dir -- ./program                  every submission, for softgen replay and decode
  softgen run --report report.json -- ./program          what ran, how often, and what failed

exit codes: the program's own; 128 and a signal's number if one ended it; 1 if its work could not be done; 2 used wrongly"""

PATIENCE = 0.5  # seconds
HURRY = 5  # threads take turns so many times as often while one of them only loads
CRASHES = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE}  # not asked for by a person


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("run", description="Run an unmodified program on the software GPU.", epilog=EXAMPLE,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--gpu", default="kbl", help="which GPU it finds (softgen gpus lists them; kbl unless told)")
    parser.add_argument("--record", metavar="DIR", help="write every submission to a new capture directory")
    parser.add_argument("--report", metavar="FILE", help="write what ran and what failed, as JSON")
    add_trace_option(parser, "ioctls")
    parser.add_argument("--keep-going", action="store_true", help="let the program live when some of its work failed")
    add_engine_options(parser)
    parser.add_argument("--json", action="store_true", help="the report as one line on standard error, when the program has ended")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM …", help="the program and its arguments")


def run(args: argparse.Namespace) -> int:
    from softgen.bits.generation import device
    from softgen.driver.environment import unreachable
    from softgen.driver.launcher import launch

    command = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not command:
        raise Misuse("no program; say: softgen run -- PROGRAM …")
    program = shutil.which(command[0])
    if program is None:
        raise Misuse(f"no program {command[0]!r}: not found, or not executable")
    if why := unreachable(program):
        complain(f"{command[0]} {why}: it will not find the GPU")
    traced(args, "ioctls")
    check(args)
    try:
        gpu = device(args.gpu)
    except SpecError as error:
        raise Misuse(str(error)) from None
    recorder = recording(args.record, gpu)
    try:
        outcome = launch(command, gpu, partial(serve, args, gpu, recorder), partial(orphaned, recorder), args.keep_going, args.time_limit)
    finally:
        if recorder and (cut_short := recorder.close()):
            complain(cut_short)
    if outcome.trouble:
        complain(outcome.trouble)
    elif outcome.signal in CRASHES:
        complain(f"{command[0]} was ended by {signal.Signals(outcome.signal).name}")
    hint(gpu, outcome)
    tell(args, outcome.report | {"exit_code": outcome.code, "trouble": outcome.trouble})
    return outcome.code


def recording(path: str | None, gpu: Device) -> Recorder | None:
    if path is None:
        return None
    from softgen.inspect.recording import Recorder

    return Recorder(path, gpu)


def orphaned(recorder: Recorder | None) -> None:
    """In the server's process, when the launcher is gone."""
    complain("the launcher has ended; so do the simulator and the program")
    if recorder and (cut_short := recorder.close()):
        complain(cut_short)


def load(gpu: Device, engine: str, answering: threading.Event) -> None:
    """First what answers the program's questions; then, while it finds its way, what its first work would wait for."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / HURRY)  # questions come first
    try:
        import softgen.driver.server  # noqa: F401

        answering.set()
        warm(gpu.generation.number, engine)
    except Exception:
        pass  # who needs what could not be loaded meets the same and tells it
    finally:
        answering.set()
        sys.setswitchinterval(usual)


def warm(gen: float, engine: str) -> None:
    """What executes, and the tables that are read once."""
    import softgen.driver.execute
    from softgen.bits import catalogue, registers

    registers.place(0, gen)  # reads all pages of registers
    catalogue.find_command(0, gen, "render")
    if engine != "reference":
        import softgen.eu.promotion
        import softgen.threads.pool  # noqa: F401
        from softgen.eu.threaded.engine import threaded
        from softgen.lanes import jit

        threaded(gen)
        jit.host()


def wanted(args: argparse.Namespace) -> bool:
    """Will anybody read the report?"""
    return bool(args.report or args.json)


def serve(args: argparse.Namespace, gpu: Device, recorder: Recorder | None, service: Service) -> dict[str, Any]:
    """The server's process, until the launcher says that it is over."""
    answering = threading.Event()
    threading.Thread(target=load, args=(gpu, args.engine, answering), name="load", daemon=True).start()
    if service.quiet() and not (wanted(args) or recorder):
        return {}  # the program never looked for a GPU
    answering.wait()
    return Simulator(args, gpu, recorder, service).run()


class Simulator:
    """The parts of a server, put together as the options say."""

    def __init__(self, args: argparse.Namespace, gpu: Device, recorder: Recorder | None, service: Service) -> None:
        from softgen.driver.node import Shared
        from softgen.driver.queue import Queues
        from softgen.driver.server import Server

        self.args, self.gpu, self.recorder, self.service = args, gpu, recorder, service
        self.clock = itertools.count(1).__next__ if args.deterministic else None
        self.ran: list[EngineDispatcher | ComparingDispatcher] = []
        self.made: Executor | None = None
        self.making = threading.Lock()
        self.queues: Queues[Submission] = Queues(lambda *work: self.executor().execute(*work), lambda *work: self.executor().failed(*work))
        self.shared = Shared(gpu, self.queues, complain)
        self.server = Server(self.shared, service, complain if "ioctls" in (args.trace or "").split(",") else None)
        service.orphaned.append(self.leave)

    def executor(self) -> Executor:
        """Made when the first work comes: questions need not wait until all of it is loaded."""
        with self.making:
            if self.made is None:
                from softgen.device.gpu import GpuDevice
                from softgen.driver.execute import Executor

                hardware = GpuDevice(self.gpu, self.clock, trace=traced(self.args, "ioctls"))
                self.made = Executor(self.gpu, [self.recorder] if self.recorder else [], self.keep, self.failed, hardware, self.dispatcher)
            return self.made

    def keep(self, submission: Submission, message: str) -> str:
        from softgen.inspect.recording import keep_failure

        with self.service.reserve.lent():
            return keep_failure(submission, message, self.gpu)

    def failed(self, text: str) -> None:
        complain(text)
        self.service.tell({"failed": text})

    def dispatcher(self) -> EngineDispatcher | ComparingDispatcher:
        """A dispatcher for a context on an engine; `run` reports on all of them at the end."""
        self.ran.append(runner(self.args))
        return self.ran[-1]

    def leave(self) -> None:
        """Nobody wants the work that still runs, nor to be told about it; a recorder may end its sentence."""
        if self.made:
            self.made.ending = True
            self.made.running.acquire(timeout=PATIENCE)

    def run(self) -> dict[str, Any]:
        from softgen.driver.server import DRAIN

        if self.server.run() == b"end":
            self.queues.drain(DRAIN)
        executor = self.executor()
        executor.ending = True
        if self.recorder:
            with executor.running, self.recorder:
                pass
        counted = {"opened": self.shared.opened, "unknown_ioctls": self.shared.unknown}
        if not wanted(self.args):
            return counted
        return executor.as_json() | kernels(executor.report.fine, self.ran) | counted


def kernels(fine: bool, ran: list[EngineDispatcher | ComparingDispatcher]) -> dict[str, Any]:
    """What the kernels came to, most expensive first."""
    from softgen.inspect.report import approximations, kernel
    from softgen.threads.dispatcher import EngineDispatcher

    groups = [each for one in ran for each in ([one] if isinstance(one, EngineDispatcher) else one.both)]
    found = sorted((one for each in groups for one in each.ran.values()), key=lambda one: -one.seconds)
    inexact = approximations(one.program for one in found)
    notes = list(dict.fromkeys(note for each in groups for note in each.notes))
    return {"exact": fine and not inexact, "approximate": inexact, "notes": notes, "kernels": [kernel(one) for one in found]}


def hint(gpu: Device, outcome: Outcome) -> None:
    """Which driver is missing: where a program looked for one and none could be named to it, and where it failed."""
    from softgen.driver.environment import missing

    failed = bool(outcome.code) and not outcome.trouble and not outcome.failed
    apis = set(outcome.seeks) | set(outcome.loads if failed else ())
    if apis or outcome.signal in CRASHES and not outcome.report.get("opened"):  # who crashes does not tell what it had loaded
        for line in missing(gpu, apis or None):
            complain(line)


def tell(args: argparse.Namespace, report: dict[str, Any]) -> None:
    if args.json:
        print(json.dumps(report), file=sys.stderr)
    if args.report:
        try:
            Path(args.report).write_text(json.dumps(report, indent=2) + "\n", "utf-8")
        except OSError as error:
            raise SoftgenError(f"{args.report}: cannot be written: {error.strerror}") from None
