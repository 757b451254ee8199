"""`softgen behaviours`: which of the numbered behaviours of the manuals are covered by tests."""

from __future__ import annotations

import argparse
from pathlib import Path

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.cli.output import counted, paint, print_json, table
from softgen.inspect.spec import behaviours as book
from softgen.inspect.spec import citations
from softgen.inspect.spec.citations import Citation

EXAMPLE = """examples:
  softgen behaviours                             covered actions and layouts per manual and unit
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
    parser.add_argument("--uncovered", action="store_true", help="list the behaviours that are not covered")
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


def tests(args: argparse.Namespace) -> Path:
    """The folder of tests to read."""
    folder: Path | None = args.tests or book.tests_folder()
    if folder is None:
        raise SoftgenError("no tests beside this installation, so coverage is unknown; run from a checkout or name one with --tests DIR")
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder of tests")
    if not any(folder.rglob("test_*.py")):
        raise SoftgenError(f"{folder}: has no tests (test_*.py)")
    return folder


def run(args: argparse.Namespace) -> int:
    rows, folder = chosen(args), tests(args)
    found, reasons = citations.read(folder), book.reasons(folder)
    listed = [row for row in rows if not (args.uncovered and state(row, found) == book.COVERED)]
    if args.json:
        show_json(rows, listed, found, reasons)
    elif args.markdown:
        print(book.markdown(book.count(rows, found)), end="")
    elif args.uncovered or args.unit:
        show_rows(listed, found, reasons)
    else:
        show_counts(book.count(rows, found))
    unknown = sorted(set(found) - set(book.behaviours()))
    if unknown:
        places = ", ".join(f"{number} ({found[number][0].place})" for number in unknown)
        raise SoftgenError(f"tests name behaviours that do not exist: {places}")
    return 0


def state(row: book.Behaviour, citations: dict[str, list[Citation]]) -> str:
    return book.status(row, citations.get(row.id, []))


def show_json(rows: list[book.Behaviour], listed: list[book.Behaviour], citations: dict[str, list[Citation]],
              reasons: dict[str, str]) -> None:  # fmt: skip
    counts = book.count(rows, citations)
    behaviours = [{"id": row.id, "manual": row.manual, "unit": row.unit, "kind": row.kind, "behaviour": row.text,
                   "status": state(row, citations), "covered": state(row, citations) == book.COVERED,
                   "reason": reasons.get(row.id),
                   "tests": [{"place": witness.place, "test": witness.test, "shows": witness.shows, "needs_shared": witness.needs_shared}
                             for witness in citations.get(row.id, [])]} for row in listed]  # fmt: skip
    print_json(numbers(book.total(counts, "")) | {
        "units": [{"manual": count.manual, "unit": count.unit} | numbers(count) for count in counts],
        "behaviours": behaviours,
    })


def numbers(count: book.Count) -> dict[str, object]:
    """The JSON object of a row of the table, or of the totals."""
    return {"covered": count.covered, "total": count.total,
            "actions": {"covered": count.actions, "total": count.of_actions},
            "layouts": {"covered": count.layouts, "total": count.of_layouts},
            "decoded_only": count.decoded, "needs_shared": count.shared}  # fmt: skip


def show_rows(rows: list[book.Behaviour], citations: dict[str, list[Citation]], reasons: dict[str, str]) -> None:
    colour = paint()
    for row in rows:
        status = state(row, citations)
        note = "" if status in (book.COVERED, book.OPEN) else f" ({status})"
        print(f"{colour(row.id, 'good' if status == book.COVERED else 'warn')}  {row.text}{colour(note, 'warn')}")
        if row.id in citations:
            print(colour(f"    {', '.join(f'{witness.place} {witness.test} ({witness.shows})' for witness in citations[row.id])}", "note"))
        if row.id in reasons:
            print(colour(f"    not shown: {reasons[row.id]}", "note"))
    known = sum(row.id in reasons for row in rows)
    print(counted(len(rows), "behaviour") + (f", {known:,} of them on a list with the reason" if known else ""))


def show_counts(counts: list[book.Count]) -> None:
    colour = paint()
    rows: list[tuple[object, ...]] = []
    for manual in dict.fromkeys(count.manual for count in counts):
        own = [count for count in counts if count.manual == manual]
        rows.append((colour(manual, "heading"), colour(book.MANUALS[manual], "note"), *figures(book.total(own, manual))))
        rows += [("", count.unit, *figures(count)) for count in own]
    rows.append((colour("all", "heading"), "", *figures(book.total(counts, ""))))
    header = ("manual", "unit", "actions", "of", "layouts", "of", "decoded", "shared", "covered", "of", "")
    print("\n".join(table(rows, header, right=range(2, 11))))
    print(colour("decoded: actions of which only fields are shown. shared: shown only where ../shared is. Neither is covered.", "note"))


def figures(count: book.Count) -> tuple[str, ...]:
    shown = (count.actions, count.of_actions, count.layouts, count.of_layouts, count.decoded, count.shared, count.covered, count.total)
    return *(f"{number:,}" for number in shown), f"{100 * count.covered / count.total:.0f} %"
