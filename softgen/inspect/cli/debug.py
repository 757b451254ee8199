"""`softgen debug CAPTURE`: steps the threads of dispatches and draws, forwards and back, in a terminal or an editor."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from softgen.inspect.cli.output import complain, paint
from softgen.inspect.cli.recorded import add_program, recorded

if TYPE_CHECKING:
    from softgen.inspect.debug.debugger import Debugger

EXAMPLE = """examples:
  softgen debug kbl-vk-tri                                 a prompt; help lists the commands
  softgen debug kbl-vk-tri --at 2:124/ps/g0.t4             in that thread
  softgen debug kbl-vk-tri -c 'break ps if pixel == (32,20)' -c continue -c 'step 5' -c back
  softgen debug saxpy --source saxpy.bin                   with OpenCL's source lines, compiled with -g
  softgen debug --gpu kbl --time-limit 10 -- ./program     run it first, then debug what it submitted
  softgen debug --dap                                      for editors: the Debug Adapter Protocol on standard input and output

exit codes: 0 fine, 1 a command failed, 2 usage error"""
PROMPT = "(sg) "


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("debug", usage="softgen debug [OPTION …] CAPTURE | -- PROGRAM …",
                                   description="Step the EU threads of a capture's dispatches and draws, forwards and back.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("capture", nargs="?", help="capture directory, AUB file, error state or raw batch")
    parser.add_argument("--gpu", help="the GPU it is for, whatever the file says (softgen gpus lists them)")
    parser.add_argument("--at", metavar="POSITION", help="begin in a thread, such as 2:57/ps/g0.t4")
    parser.add_argument("--source", metavar="FILE", action="append", default=[],
                        help="assembly, an OpenCL binary with debug information, or the source (.cl) of OpenCL kernels")  # fmt: skip
    parser.add_argument(
        "-c", "--command", metavar="COMMAND", action="append", default=[], help="execute a command instead of asking for some"
    )
    parser.add_argument("--json", action="store_true", help="with -c: where execution stops, as one JSON object a line")
    parser.add_argument("--time-limit", type=float, metavar="S", help="end a program that is recorded first after so many seconds")
    parser.add_argument("--dap", action="store_true", help="speak the Debug Adapter Protocol on standard input and output")
    add_program(parser)


def run(args: argparse.Namespace) -> int:
    if args.dap:
        from softgen.inspect.debug.dap import serve

        return serve(sys.stdin.buffer, sys.stdout.buffer, args)
    from softgen.errors import UsageError
    from softgen.inspect.debug.debugger import Debugger
    from softgen.inspect.session.session import Session

    if args.json and not args.command:
        raise UsageError("--json is for commands that -c gives")
    with recorded(args, "debug") as capture:
        gpu = args.gpu if args.capture else None
        return debug(Debugger(Session(capture.path, gpu), args.source, capture.binaries()), args)


def debug(debugger: Debugger, args: argparse.Namespace) -> int:
    """Execute commands until they end."""
    from softgen.inspect.debug.commands import ERRORS, Commands, JsonCommands, Quit

    commands, failed = (JsonCommands if args.json else Commands)(debugger, paint()), False
    asked = [*([f"at {args.at}"] if args.at else []), *args.command]
    lines = iter(asked) if args.command else typed(asked, sys.stdin)
    with suppress(Quit):
        for line in lines:
            try:
                for text in commands.run(line):
                    print(text, flush=True)
            except ERRORS as error:
                complain(error)
                failed = bool(args.command)
                if failed:
                    break
    debugger.close()
    return 1 if failed else 0


def typed(first: list[str], stream: TextIO) -> Iterator[str]:
    """Lines that a user types. An empty line repeats the one before."""
    yield from first
    before = ""
    if stream.isatty():
        import readline  # noqa: F401  # the history of the prompt
    while True:
        try:
            line = input(PROMPT if stream.isatty() else "")
        except EOFError:
            return
        except KeyboardInterrupt:
            print()
            continue
        before = line or before
        yield before
