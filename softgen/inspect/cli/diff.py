"""`softgen diff A B`: what differs between two captures: commands, fields, structures, kernels, pictures."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from softgen.inspect.cli.output import Paint, counted, paint, print_json

if TYPE_CHECKING:
    from softgen.inspect.diff.captures import CaptureDifference, CommandDifference

EXAMPLE = """examples:
  softgen diff before after                what differs, as text
  softgen diff before after --no-run       commands, state and kernels only: nothing is executed
  softgen diff before after --json         one JSON object
  softgen diff before after --addresses    also fields that hold addresses

Commands are aligned by name, submission by submission. Addresses differ between any two runs of a driver; what they lead to is compared.
exit codes: 0 no difference, 1 something differs, 2 usage error"""
MOST = 200  # commands that are listed as text


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("diff", description="Compare the commands, state, kernels and pictures of two captures.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("before", help="capture directory, AUB file, error state or raw batch")
    parser.add_argument("after", help="another one")
    parser.add_argument("--gpu", help="the GPU they are for, whatever the files say (softgen gpus lists them)")
    parser.add_argument("--addresses", action="store_true", help="compare fields that hold addresses, too")
    parser.add_argument("--no-run", action="store_true", help="execute nothing: render targets are not compared")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    from softgen.inspect.diff import captures, pictures
    from softgen.inspect.session.session import Session

    sessions = Session(args.before, args.gpu), Session(args.after, args.gpu)
    found = captures.compare(*sessions, args.addresses)
    targets = [] if args.no_run else pictures.drawn(*sessions, found)
    if args.json:
        print_json(as_json(found, targets), 1)
    else:
        for line in lines(found, targets, paint()):
            print(line)
    return 1 if found or targets else 0


def as_json(found: CaptureDifference, targets: list[dict[str, Any]]) -> dict[str, Any]:
    return {"differs": bool(found or targets), "notes": found.notes, "commands": [command.as_json() for command in found.commands],
            "kernels": [asdict(kernel) for kernel in found.kernels], "targets": targets}  # fmt: skip


def lines(found: CaptureDifference, targets: list[dict[str, Any]], colour: Paint) -> Iterator[str]:
    yield from (colour(note, "warn") for note in found.notes)
    for command in found.commands[:MOST]:
        yield from _command(command, colour)
    if len(found.commands) > MOST:
        yield f"and {counted(len(found.commands) - MOST, 'more command')}; --json has them all"
    for kernel in found.kernels:
        yield colour(f"kernel of {kernel.stage}, {kernel.before} and {kernel.after}", "heading")
        for line in kernel.text[2:]:
            yield "  " + (colour(line, "bad") if line[:1] == "-" else colour(line, "good") if line[:1] == "+" else line)
    for target in targets:
        number = "" if target["target"] is None else f", target {target['target']}"
        yield f"{colour('picture', 'heading')} {target['before']} and {target['after']}{number}: {target['text']}"
    if not found and not targets:
        yield f"no difference in {counted(len(found.pairs), 'command')}"


def _command(command: CommandDifference, colour: Paint) -> Iterator[str]:
    name = command.name or "unknown command"
    if command.before is None:
        yield colour(f"+ {command.after}  {name}", "good")
    elif command.after is None:
        yield colour(f"- {command.before}  {name}", "bad")
    else:
        yield f"  {command.before}  {command.after}  {colour(name, 'name')}"
        yield from (f"      {field.field}: {field.before} -> {field.after}" for field in command.fields)
        yield from (f"      kernel of {stage} differs" for stage in command.kernels)
