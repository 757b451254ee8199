"""`softgen VERB …`: finds the verb's file, runs it, and turns what happens into one line and an exit code.

A verb is softgen/inspect/cli/<verb>.py with `add(subparsers)` and `run(args) -> int`. Only the file of the verb that was
asked for is imported, so that `softgen --help` starts at once.

Exit codes: 0 fine, 1 the work failed, 2 used wrongly, 130 interrupted, 141 nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TextIO, cast

from softgen import __version__
from softgen.errors import SoftgenError
from softgen.inspect.cli.output import Misuse, complain, paint

VERBS = {
    "run": "run an unmodified program on the software GPU",
    "decode": "name every command, field and pointed-to state in a capture, AUB file, error state or raw batch",
    "replay": "execute a capture, AUB file, error state or raw batch, and check what it expects",
    "serve": "be the simulator that Intel's OpenCL runtime connects to",
    "disasm": "EU machine code to text: raw code, OpenCL binaries, the kernels of captures",
    "asm": "text to EU machine code",
    "eu": "run a piece of EU assembly, and show the registers it changed",
    "spec": "look up a command, structure, register or message: its bits, per GPU, and what changed between GPUs",
    "gpus": "the graphics processors softgen knows",
    "behaviours": "which of the numbered behaviours of the manuals are covered by tests",
    "doctor": "what this machine has, what is missing, and what to do about it",
    "cache": "the compiled objects on disk: where, how many, and how to be rid of them",
}
EXAMPLES = """examples:
  softgen gpus
  softgen doctor
  softgen spec 3DSTATE_VS --gpu kbl
  softgen decode tests/data/g45-gles-tri | less
  softgen run -- clinfo
"""


class Verb(Protocol):
    """What a verb's file offers."""

    def add(self, subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None: ...
    def run(self, args: argparse.Namespace) -> int: ...


def top_help() -> str:
    """`softgen --help`, written from the table so that no verb's file is opened."""
    bold = paint()
    verbs = "\n".join(f"  {bold(f'{name:11}', 'name')} {text}" for name, text in VERBS.items())
    return (f"usage: softgen VERB …\n\nIntel's Gen graphics processor as software.\n\n{bold('verbs', 'heading')} "
            f"(softgen VERB --help tells more)\n{verbs}\n\n{EXAMPLES}\n"
            "exit codes: 0 fine, 1 the work failed, 2 used wrongly\n")


def usage_error(message: str) -> int:
    complain(message)
    return 2


def missing_verb(name: str) -> int:
    """Says plainly what is not there."""
    import difflib  # only here: a cost that right commands should not pay
    close = difflib.get_close_matches(name, VERBS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"verbs that exist: {', '.join(VERBS)}"
    return usage_error(f"no verb '{name}'; {hint}")


def run_verb(name: str, arguments: Sequence[str]) -> int:
    verb = cast(Verb, importlib.import_module(f"softgen.inspect.cli.{name}"))
    parser = argparse.ArgumentParser(prog="softgen", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, prog="softgen")
    verb.add(verbs)
    args, rest = parser.parse_known_args([name, *arguments])
    if rest:  # told by the verb's own parser, which shows the verb's usage
        verbs.choices[name].error(f"unrecognized arguments: {' '.join(rest)}")
    return verb.run(args)


def dispatch(argv: Sequence[str]) -> int:
    if not argv:
        print(top_help(), end="", file=sys.stderr)
        return 2
    first, *rest = argv
    if first in ("-h", "--help", "help") and not rest:
        print(top_help(), end="")
        return 0
    if first == "help":
        first, rest = rest[0], ["--help"]
    if first == "--version":
        print(f"softgen {__version__}")
        return 0
    if first.startswith("-"):
        return usage_error(f"unknown option '{first}' before the verb; softgen --help lists the verbs")
    return run_verb(first, rest) if first in VERBS else missing_verb(first)


def guarded(work: Callable[[], int]) -> int:
    """Runs a verb; what softgen says on purpose and what the system refuses become one line, never a traceback."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except SystemExit as leaving:               # argparse: 0 after --help, 2 after a mistake
        return leaving.code if isinstance(leaving.code, int) else 2
    except (BrokenPipeError, KeyboardInterrupt) as end:
        quiet_stdout()
        return 130 if isinstance(end, KeyboardInterrupt) else 141
    except (SoftgenError, OSError) as error:
        complain(error)
        return 2 if isinstance(error, Misuse) else 1


def quiet_stdout() -> None:
    """What is still buffered has no reader: the interpreter's own last flush must neither complain nor wait."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, io.UnsupportedOperation):
        pass


def nowhere() -> TextIO:
    """In place of a stream that was closed before softgen started (`>&-`), which Python hands over as None."""
    return open(os.devnull, "w", encoding="utf-8")  # kept open for as long as the program runs


def main(argv: Sequence[str] | None = None) -> int:
    sys.stdout, sys.stderr = sys.stdout or nowhere(), sys.stderr or nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")       # a terminal without UTF-8 shows '?' rather than a failure
    arguments = sys.argv[1:] if argv is None else list(argv)
    return guarded(lambda: dispatch(arguments))


if __name__ == "__main__":
    sys.exit(main())
