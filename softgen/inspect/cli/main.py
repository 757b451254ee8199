"""`softgen VERB …`: imports the verb's module, runs it, and turns errors into one line and an exit code.

A verb is softgen/inspect/cli/<verb>.py with `add(subparsers)` and `run(args) -> int`. Only the module of the requested verb is imported, so
that `softgen --help` starts at once.

Exit codes: 0 fine, 1 the work failed, 2 usage error, 130 interrupted, 141 the reader of the output has closed it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn, Protocol, TextIO, cast

from softgen import __version__
from softgen.errors import SoftgenError, UsageError
from softgen.inspect.cli.output import complain, paint, silence

VERBS = {
    "run": "run an unmodified program on the software GPU",
    "decode": "name every command, field and pointed-to state in a capture, AUB file, error state or raw batch",
    "replay": "execute a capture, AUB file, error state or raw batch, and check its expectations",
    "profile": "count what every draw, kernel and instruction of a capture does; compare two captures",
    "check": "find races, values that nothing has written, and accesses outside of buffers, by replays in several worlds",
    "view": "a page of a capture: every draw with state, targets, pixel history, vertices, shaders",
    "debug": "step the threads of dispatches and draws, forwards and back, in a terminal or an editor",
    "diff": "what differs between two captures: commands, state, kernels, pictures",
    "compare": "two pictures, or two folders of them, pixel by pixel",
    "serve": "simulate a GPU for Intel's OpenCL runtime over a TBX socket",
    "disasm": "disassemble EU machine code: raw code, OpenCL binaries, the kernels of captures",
    "asm": "assemble EU text to machine code",
    "eu": "run a piece of EU assembly and show the registers it changed",
    "spec": "look up a command, structure, register or message: its bits, per GPU, and what changed between GPUs",
    "gpus": "list the graphics processors softgen knows",
    "behaviours": "list which numbered behaviours of the manuals are covered by tests",
    "farm": "run many tests or captures, on one machine or on many, and keep their results",
    "doctor": "check this machine: drivers, libraries, limits, and what to do about what is missing",
    "cache": "show or clear the cache of compiled objects",
}
EXAMPLES = """examples:
  softgen doctor                                        check drivers and libraries
  softgen run --gpu kbl -- clinfo                       run a program
  softgen run --images out -- kmscube -c 4              the same, with what it draws as PNG files
  softgen decode tests/data/g45-gles-tri | less         read a capture
  softgen replay tests/data/kbl-vk-tri --images out     execute it
  softgen decode /sys/class/drm/card0/error             where a GPU hung
  softgen spec 3DSTATE_VS --gpu kbl                     the bits of a command
"""


class Verb(Protocol):
    """The functions of a verb's module."""

    def add(self, subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None: ...
    def run(self, args: argparse.Namespace) -> int: ...


def top_help() -> str:
    """The text of `softgen --help`, made from the table so that no verb is imported."""
    bold = paint()
    verbs = "\n".join(f"  {bold(f'{name:11}', 'name')} {text}" for name, text in VERBS.items())
    return (f"usage: softgen VERB …\n\nIntel's Gen graphics processor as software.\n\n{bold('verbs', 'heading')} "
            f"(softgen VERB --help has options and examples)\n{verbs}\n\n{EXAMPLES}\n"
            "exit codes: 0 fine, 1 the work failed, 2 usage error\n")


def usage_error(message: str) -> int:
    complain(message)
    return 2


def missing_verb(name: str) -> int:
    """Report an unknown verb, with the nearest one."""
    import difflib  # takes time that valid commands need not spend
    close = difflib.get_close_matches(name, VERBS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"verbs that exist: {', '.join(VERBS)}"
    return usage_error(f"no verb '{name}'; {hint}")


def run_verb(name: str, arguments: Sequence[str]) -> int:
    verb = cast(Verb, importlib.import_module(f"softgen.inspect.cli.{name}"))
    parser = argparse.ArgumentParser(prog="softgen")
    verbs = parser.add_subparsers(dest="verb", required=True, prog="softgen")
    verb.add(verbs)
    verbs.choices[name].allow_abbrev = False  # a script with `--js` would break when the verb gets another option
    args, rest = parser.parse_known_args([name, *arguments])
    if rest:  # the verb's own parser shows the verb's usage
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
    """Run a verb; softgen's errors and the system's become one line, never a traceback."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except SystemExit as leaving:               # argparse: 0 after --help, 2 after a mistake
        return leaving.code if isinstance(leaving.code, int) else 2
    except (BrokenPipeError, KeyboardInterrupt) as end:
        silence(sys.stdout)
        return 130 if isinstance(end, KeyboardInterrupt) else 141
    except (SoftgenError, OSError) as error:
        complain(system_error(error) if isinstance(error, OSError) else error)
        return 2 if isinstance(error, UsageError) else 1
    except MemoryError:
        complain("not enough memory")
        return 1
    except ModuleNotFoundError as error:
        if not str(error.name).endswith("_h"):
            raise
        complain(f"{error.name} is not built; run `make` or `python setup.py build_ext --inplace` at the repository's root")
        return 1


def system_error(error: OSError) -> object:
    """An error of the system as people read it, with the file where it is known."""
    if not error.strerror:
        return error
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def nowhere() -> TextIO:
    """A stand-in for a stream that was closed before softgen started (`>&-`), which Python gives as None."""
    return open(os.devnull, "w", encoding="utf-8")  # kept open for as long as the program runs


def main(argv: Sequence[str] | None = None) -> int:
    sys.stdout, sys.stderr = sys.stdout or nowhere(), sys.stderr or nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")       # a terminal without UTF-8 shows '?' rather than a failure
    arguments = sys.argv[1:] if argv is None else list(argv)
    return guarded(lambda: keep_pages(dispatch(arguments)))


def command() -> NoReturn:
    """The process `softgen …`. A launcher has nothing left to do when its program has ended, and ends at once: Python would take another 10
    ms to take its modules down."""
    code = main()
    if sys.argv[1:2] != ["run"]:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def keep_pages(code: int) -> int:
    """Keep what a verb has read from spec pages for verbs to come; `code` is the verb's exit code."""
    if pages := sys.modules.get("softgen.bits.catalogue"):  # otherwise none was read
        pages.save()
    return code
