"""Prints what random programs cover, or runs two engines on them.

    python -m tests.eu.random_programs                              every generation, 335 programs each
    python -m tests.eu.random_programs --gen 9 --programs 1000 --missed
    python -m tests.eu.random_programs --compare reference,t1       stops at the first difference and makes it small
    python -m tests.eu.random_programs --gen 9 --show 17            one program as text
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from softgen.bits.layout import GENERATIONS
from tests.eu.random_programs.cases import generate
from tests.eu.random_programs.coverage import Report, measure
from tests.eu.random_programs.engines import ENGINES, compare, left_to_reference, shrink

PROGRAMS = 335  # of each generation: about 2,000


def arguments() -> argparse.Namespace:
    what = "coverage of random EU programs, or engines compared"
    parser = argparse.ArgumentParser(prog="python -m tests.eu.random_programs", description=what)
    parser.add_argument("--gen", type=float, action="append", choices=GENERATIONS, help="a generation; all where none is given")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help="how many of each generation")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--missed", action="store_true", help="name every cell that was not reached")
    parser.add_argument("--compare", metavar="A,B", help=f"two engines out of {', '.join(ENGINES)}")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print a program")
    return parser.parse_args()


def show(report: Report, missed: bool) -> None:
    print(report.row())
    for title, groups in (("ruled out by", report.ruled_out), ("", report.refused)):
        for why, found in sorted(groups.items(), key=lambda pair: -len(pair[1])) if missed else ():
            named = ", ".join(f"{cell.opcode} {cell.what}" for cell in found)
            print(f"    {title} {why}: {named}".replace("     ", "    ", 1))
    out, refused = (sum(map(len, groups.values())) for groups in (report.ruled_out, report.refused))
    print(f"    ruled out by restrictions {out}, not simulated by the reference {refused}, missed {len(report.missed)}")
    for cell in report.missed if missed else ():
        print(f"    missed: {cell}")


def agree(names: list[str], gen: float, numbers: range) -> bool:
    start, left, all_of_them = time.monotonic(), Counter[str](), Counter[str]()
    for number in numbers:
        found = compare(names[0], names[1], generate(gen, number))
        if found is not None:
            small = shrink(found.case, lambda case: compare(names[0], names[1], case) is not None)
            print(f"gen {gen:g}, program {number}, made small:\n{compare(names[0], names[1], small)}")
            return False
        left += left_to_reference(ENGINES[names[1]], generate(gen, number))
        all_of_them += left_to_reference(ENGINES["reference"], generate(gen, number))
        if sys.stderr.isatty():
            print(f"\rgen {gen:g}: {number - numbers.start + 1} of {len(numbers)}", end="", file=sys.stderr)
    print(f"gen {gen:<4g} {len(numbers):5} programs agree on {names[0]} and {names[1]}, {time.monotonic() - start:.0f} s; "
          f"of {all_of_them.total()} instructions {names[1]} left {left.total()} to the reference: {dict(left.most_common(6))}")
    return True


def main() -> int:
    given = arguments()
    numbers, gens = range(given.first, given.first + given.programs), given.gen or GENERATIONS
    if given.show is not None:
        print("\n\n".join(generate(gen, given.show).text() for gen in gens))
        return 0
    if given.compare:
        names = given.compare.split(",")
        if len(names) != 2 or not set(names) <= set(ENGINES):
            print(f"--compare takes two engines out of {', '.join(ENGINES)}, not {given.compare}", file=sys.stderr)
            return 2
        agreed = [agree(names, gen, numbers) for gen in gens]
        return 0 if all(agreed) else 1
    for gen in gens:
        show(measure(gen, numbers), given.missed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
