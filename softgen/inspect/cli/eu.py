"""`softgen eu FILE --gpu NAME`: runs a piece of EU assembly and shows the registers it changed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from softgen.errors import DecodeError, UsageError
from softgen.eu.text import dialect
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import Paint, Progress, complain, counted, paint, print_json, table
from softgen.inspect.cli.source import read_text

if TYPE_CHECKING:
    from softgen.inspect.registers import Number, RegisterLanes
    from softgen.inspect.snippet import Ran, Snippet, Step

LIMIT = 1_000_000  # instructions
SECONDS = 60.0
ENGINES = ("reference", "t0", "t1")
WIDTHS = (1, 2, 4, 8, 16, 32)
LONGEST = 2000  # instructions of a snippet that is looked at in two worlds: some three seconds
PLAIN = 0xFFFF  # unsigned numbers above it are easier read in hexadecimal
EXAMPLE = """syntax of --set: REGISTER[.ELEMENT][:TYPE]=VALUE[,VALUE…]
  r1.0:ud=7                one element; without a type dwords (ud), of a0 and f0.1 words (uw)
  r2:f=1.5,2.5             lanes from the first on, into the next registers if there are many
  r3:d=-1*8                eight equal values
  f0.0=0xff  a0.0=64  acc0:f=1.0  cr0=0x4

examples:
  softgen eu examples/collatz.asm --gpu kbl --set r2:d=1,2,3,6,7,9,18,27
  softgen eu examples/collatz.asm --gpu kbl --set r2:d=3*8 --trace | less
  echo 'math sqrt(8) g3<1>F g2<8,8,1>F null<8,8,1>F { align1 1Q };' | softgen eu - --gpu ivb --set r2:f=4.0 --json

A note names the first instruction that depends on a register which neither --set nor the code has written: it reads as zero here.

exit codes: 0 fine, 1 the text is wrong or the code failed (one line says where), 2 usage error"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("eu", description="Run a piece of EU assembly on one thread; show the registers it changed.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("file", help="the text; - for standard input. It ends with an EOT to the thread spawner or where the code does")
    parser.add_argument("--gpu", required=True, help="the GPU that runs it (softgen gpus lists them)")
    parser.add_argument("--set", action="append", default=[], metavar="REGISTER=VALUE", help="set a register; may be repeated (see below)")
    parser.add_argument("--trace", action="store_true", help="show every instruction and the registers it changed")
    parser.add_argument("--syntax", choices=dialect.DIALECTS, help="dialect (default: the one the text is in)")
    parser.add_argument("--simd", type=int, choices=WIDTHS, help="channels of the thread (default: those of the widest instruction)")
    parser.add_argument("--engine", choices=ENGINES, default="reference", help="engine (default %(default)s); t0 and t1 compile")
    parser.add_argument("--limit", type=int, default=LIMIT, metavar="N", help="stop after so many instructions (default %(default)s)")
    parser.add_argument("--time-limit", type=float, default=SECONDS, metavar="S", help="stop after so many seconds (default %(default)g)")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(args: argparse.Namespace) -> int:
    if args.limit < 1 or not args.time_limit > 0:
        raise UsageError("--limit and --time-limit are numbers above zero")
    gpu = find(args.gpu)
    name, text = read_text(args.file)
    from softgen.inspect.snippet import Snippet  # not for --help, or options that are wrong

    snippet = Snippet(text, gpu.generation.number, args.syntax, name, args.simd)
    for setting in args.set:
        try:
            snippet.set(setting)
        except DecodeError as error:
            raise UsageError(f"--set {setting}: {error}") from None
    steps: list[Step] = []
    colour = paint()
    with Progress("instructions executed", printing=args.trace) as progress:
        def seen(step: Step) -> None:
            if args.json:
                steps.append(step)
            else:
                print("\n".join(traced(step, snippet.simd, colour)))

        ran = snippet.run(args.limit, args.time_limit, seen if args.trace else None, progress.step, args.engine)
    unknown = unwritten(args, gpu.generation.number, text, name) if ran.instructions <= LONGEST else ""
    if args.json:
        found = as_json(gpu.name, snippet, ran) | {"unwritten": unknown or None}
        print_json(found | ({"trace": list(map(step_json, steps))} if args.trace else {}))
    else:
        print("\n".join(lines(name, gpu.name, ran, colour)))
    if unknown and not args.json:
        print(f"{colour('note', 'note')} {unknown}")
    if ran.problem:
        complain(ran.problem)
    return 1 if ran.problem else 0


def unwritten(args: argparse.Namespace, gen: float, text: str, name: str) -> str:
    """The first instruction that depends on a register which neither --set nor the snippet has written; '' where there is none."""
    from softgen.inspect import snippet_worlds
    from softgen.inspect.snippet import Snippet

    plain, other = (Snippet(text, gen, args.syntax, name, args.simd) for _ in range(2))
    for setting in args.set:
        plain.set(setting)
    snippet_worlds.fill_registers(other, args.set, seed=1)
    return snippet_worlds.unwritten(plain, other, LONGEST)


# -- for people ----------------------------------------------------------------------------------------------------


def lines(name: str, gpu: str, ran: Ran, colour: Paint) -> Iterator[str]:
    ended = ran.end or "stopped"
    yield colour(f"{name}: {gpu}, {counted(ran.instructions, 'instruction')}, {ended}", "heading")
    yield from table(rows(ran.changes, colour)) if ran.changes else ["no register changed"]


def traced(step: Step, simd: int, colour: Paint) -> Iterator[str]:
    """An instruction, the channels it was executed for where that is not all of them, and its changes."""
    some = colour(f"  channels {step.channels:#x}", "note") if step.channels != (1 << simd) - 1 else ""
    yield f"{colour(f'{step.offset:#06x}', 'address')}  {step.place.text}{some}"
    yield from (f"          {line}" for line in table(rows(step.changes, colour)))


def rows(changes: Iterable[RegisterLanes], colour: Paint) -> Iterator[list[str]]:
    for change in changes:
        yield [colour(change.name, "name"), " ".join(shown(change))]


def shown(lanes: RegisterLanes) -> list[str]:
    """Numbers as their type reads best: flags and large unsigned ones in hexadecimal."""
    if lanes.name.startswith("f") or lanes.type.startswith("u") and any(isinstance(value, int) and value > PLAIN for value in lanes.after):
        digits = 4 if lanes.name.startswith("f") else 0
        return [f"0x{value:0{digits}x}" for value in lanes.after]
    return [str(value) for value in lanes.after]


# -- for machines --------------------------------------------------------------------------------------------------


def as_json(gpu: str, snippet: Snippet, ran: Ran) -> dict[str, Any]:
    return {"gpu": gpu, "syntax": snippet.syntax, "simd": snippet.simd, "instructions": ran.instructions, "end": ran.end or None,
            "problem": ran.problem or None, "changed": list(map(lanes_json, ran.changes))}  # fmt: skip


def step_json(step: Step) -> dict[str, Any]:
    return {"offset": step.offset, "place": step.place.where, "text": step.place.text, "channels": step.channels,
            "changed": list(map(lanes_json, step.changes))}  # fmt: skip


def lanes_json(lanes: RegisterLanes) -> dict[str, Any]:
    was, now = (list(map(plain, values)) for values in (lanes.before, lanes.after))
    return {"register": lanes.register, "sub": lanes.sub, "type": lanes.type, "before": was, "after": now}


def plain(value: Number) -> Number | str:
    """JSON has no infinity and no NaN: they become words."""
    return value if isinstance(value, int) or math.isfinite(value) else str(value)
