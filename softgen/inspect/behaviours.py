"""The numbered behaviours of the manuals, and which of them a test shows.

Reads the list spec/behaviours.tsv (id, manual, unit, text) and, without running anything, the tests: a behaviour is covered
when some test, test class or test module carries `pytest.mark.behaviour("ID", …)`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from softgen.errors import SpecError

IDLE = re.compile(r"\bmark\.(xfail|skip)\b")      # a test that fails or never runs shows nothing
COLUMNS = ["id", "manual", "unit", "behaviour"]
MANUALS = {
    "G45": "G45, volume 2: 3D and media",
    "IVB": "Ivy Bridge: EU instruction set",
    "BDW": "Broadwell: command reference, instructions",
    "KBL": "Kaby Lake: command reference, structures",
    "ICL": "Ice Lake: render engine",
}


class Behaviour(NamedTuple):
    id: str
    manual: str
    unit: str
    text: str


class Mark(NamedTuple):
    """One mention of a behaviour in the tests."""

    id: str
    place: str              # file:line
    test: str


@dataclass(frozen=True)
class Count:
    """One row of the table: a unit of a manual."""

    manual: str
    unit: str
    covered: int
    total: int


def read(text: str, name: str = "behaviours.tsv") -> dict[str, Behaviour]:
    """The list by id, in its order."""
    lines = text.splitlines()
    if not lines or lines[0].split("\t") != COLUMNS:
        raise SpecError(f"{name}:1: the columns must be {' '.join(COLUMNS)}")
    listed: dict[str, Behaviour] = {}
    for number, line in enumerate(lines[1:], 2):
        cells = line.split("\t")
        if len(cells) != len(COLUMNS):
            raise SpecError(f"{name}:{number}: must have {len(COLUMNS)} columns, not {len(cells)}")
        row = Behaviour(*cells)
        if row.manual not in MANUALS:
            raise SpecError(f"{name}:{number}: manual must be one of {' '.join(MANUALS)}, not {row.manual!r}")
        if row.id in listed:
            raise SpecError(f"{name}:{number}: {row.id} is listed twice")
        listed[row.id] = row
    return listed


@cache
def behaviours() -> dict[str, Behaviour]:
    """The list that comes with softgen."""
    return read(resources.files("softgen").joinpath("spec/behaviours.tsv").read_text("utf-8"))


def tests_folder() -> Path | None:
    """The tests of the checkout softgen runs from; None where softgen was installed without them."""
    folder = Path(__file__).resolve().parents[2] / "tests"
    return folder if (folder / "conftest.py").is_file() else None


def marks(folder: Path) -> Iterator[Mark]:
    """Every behaviour named by a mark under the folder. A file that does not parse is pytest's to report, not ours."""
    for path in sorted(folder.rglob("test_*.py")):
        try:
            tree = ast.parse(path.read_text("utf-8"), str(path))
        except (SyntaxError, ValueError):
            continue
        place = path.relative_to(folder.parent).as_posix()
        yield from marks_in(tree, place)


def marks_in(tree: ast.Module, place: str) -> Iterator[Mark]:
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in statement.targets):
            yield from named([statement.value], place, "")
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or not node.name.lower().startswith("test"):
            continue
        if not any(IDLE.search(ast.unparse(decorator)) for decorator in node.decorator_list):
            yield from named(node.decorator_list, place, node.name)


def named(expressions: Iterable[ast.expr], place: str, test: str) -> Iterator[Mark]:
    """Ids in calls of `….mark.behaviour` anywhere inside: decorators, lists of marks, `pytest.param(…, marks=…)`."""
    for call in (node for expression in expressions for node in ast.walk(expression)):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "behaviour"):
            continue
        if isinstance(call.func.value, ast.Attribute | ast.Name) and ast.unparse(call.func.value).split(".")[-1] == "mark":
            for argument in call.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield Mark(argument.value, f"{place}:{call.lineno}", test)


def covered(folder: Path) -> dict[str, list[Mark]]:
    """Id -> the marks that name it, also ids no list has."""
    found: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks(folder):
        found[mark.id].append(mark)
    return dict(found)


def count(rows: Iterable[Behaviour], ids: Iterable[str]) -> list[Count]:
    """Covered and total per manual and unit, in the list's order."""
    shown = set(ids)
    totals: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        cell = totals.setdefault((row.manual, row.unit), [0, 0])
        cell[0] += row.id in shown
        cell[1] += 1
    return [Count(manual, unit, have, total) for (manual, unit), (have, total) in totals.items()]


def markdown(counts: list[Count]) -> str:
    """docs/behaviours.md: a summary, then a table per manual."""
    have, total = sum(c.covered for c in counts), sum(c.total for c in counts)
    lines = ["# Behaviours covered by tests", "",
             "Generated by `make docs` from the marks in `tests/`; a test fails when this page is out of date.",
             "`softgen behaviours --uncovered` lists what is open, with the text of each.", "",
             "| manual | covered | of |", "|---|---:|---:|"]
    manuals = list(dict.fromkeys(c.manual for c in counts))
    for manual in manuals:
        mine = [c for c in counts if c.manual == manual]
        lines.append(f"| {MANUALS[manual]} (`{manual}`) | {sum(c.covered for c in mine)} | {sum(c.total for c in mine)} |")
    lines.append(f"| all | {have} | {total} |")
    for manual in manuals:
        lines += ["", f"## {MANUALS[manual]}", "", "| unit | covered | of |", "|---|---:|---:|"]
        lines += [f"| {c.unit} | {c.covered} | {c.total} |" for c in counts if c.manual == manual]
    return "\n".join(lines) + "\n"
