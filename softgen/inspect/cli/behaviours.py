"""`softgen behaviours`: which of the numbered behaviours of the manuals are covered by tests."""

from __future__ import annotations

import argparse
from pathlib import Path

from softgen.errors import SoftgenError, UsageError
from softgen.inspect import behaviours as book
from softgen.inspect.cli.output import paint, print_json, table

EXAMPLE = """examples:
  softgen behaviours                             covered and total per manual and unit
  softgen behaviours --manual BDW --unit VF      the behaviours of one unit, each with its tests
  softgen behaviours --uncovered --manual KBL    what is still open

exit codes: 0 fine, 1 tests cite behaviours that do not exist, or there are no tests, 2 usage error
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "behaviours", help="covered behaviours", description="Which of the numbered behaviours of the manuals are covered by tests.",
        epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manual", choices=list(book.MANUALS), type=str.upper, help="only this manual")
    parser.add_argument("--unit", help="only this unit, as in the table (the manual's prefix may be left out)")
    parser.add_argument("--uncovered", action="store_true", help="list the behaviours no test shows yet")
    parser.add_argument("--tests", type=Path, metavar="DIR", help="where the tests are (default: those of this checkout)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one object, for machines")
    form.add_argument("--markdown", action="store_true", help="the page docs/behaviours.md")


def chosen(args: argparse.Namespace) -> list[book.Behaviour]:
    """The rows the options ask for; a unit that does not exist is a mistake, not an empty answer."""
    rows = [row for row in book.behaviours().values() if args.manual in (None, row.manual)]
    if args.unit is None:
        return rows
    wanted = args.unit.upper()
    picked = [row for row in rows if wanted in (row.unit, row.unit.removeprefix(f"{row.manual}-"))]
    if not picked:
        units = ", ".join(dict.fromkeys(row.unit for row in rows))
        raise UsageError(f"no unit {args.unit!r}; units: {units}")
    return picked


def covered_by(args: argparse.Namespace) -> dict[str, list[book.Mark]]:
    folder = args.tests or book.tests_folder()
    if folder is None:
        raise SoftgenError("no tests beside this installation, so coverage is unknown; run from a checkout or name one with --tests DIR")
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder of tests")
    return book.covered(folder)


def run(args: argparse.Namespace) -> int:
    rows, found = chosen(args), covered_by(args)
    if args.json:
        show_json(rows, found, args.uncovered)
    elif args.markdown:
        print(book.markdown(book.count(rows, found)), end="")
    elif args.uncovered or args.unit:
        show_rows([row for row in rows if not (args.uncovered and row.id in found)], found)
    else:
        show_counts(book.count(rows, found))
    unknown = sorted(set(found) - set(book.behaviours()))
    if unknown:
        places = ", ".join(f"{number} ({found[number][0].place})" for number in unknown)
        raise SoftgenError(f"tests name behaviours that do not exist: {places}")
    return 0


def show_json(rows: list[book.Behaviour], found: dict[str, list[book.Mark]], uncovered: bool) -> None:
    counts = book.count(rows, found)
    listed = [{"id": row.id, "manual": row.manual, "unit": row.unit, "behaviour": row.text, "covered": row.id in found,
               "tests": [mark.place for mark in found.get(row.id, [])]}
              for row in rows if not (uncovered and row.id in found)]
    print_json({
        "covered": sum(c.covered for c in counts), "total": len(rows),
        "units": [{"manual": c.manual, "unit": c.unit, "covered": c.covered, "total": c.total} for c in counts],
        "behaviours": listed,
    })


def show_rows(rows: list[book.Behaviour], found: dict[str, list[book.Mark]]) -> None:
    colour = paint()
    for row in rows:
        seen = found.get(row.id)
        print(f"{colour(row.id, 'good' if seen else 'warn')}  {row.text}")
        if seen:
            print(colour(f"    {', '.join(f'{mark.place} {mark.test}'.strip() for mark in seen)}", "note"))
    print(f"{len(rows):,} behaviours")


def show_counts(counts: list[book.Count]) -> None:
    colour = paint()
    rows: list[tuple[object, ...]] = []
    for manual in dict.fromkeys(c.manual for c in counts):
        mine = [c for c in counts if c.manual == manual]
        rows.append((colour(manual, "heading"), colour(book.MANUALS[manual], "note"), *figures(mine)))
        rows += [("", c.unit, *figures([c])) for c in mine]
    rows.append((colour("all", "heading"), "", *figures(counts)))
    print("\n".join(table(rows, ("manual", "unit", "covered", "of", ""), right=(2, 3, 4))))


def figures(counts: list[book.Count]) -> tuple[str, str, str]:
    have, total = sum(c.covered for c in counts), sum(c.total for c in counts)
    return f"{have:,}", f"{total:,}", f"{100 * have / total:.0f} %"
