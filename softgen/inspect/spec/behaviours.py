"""The numbered behaviours of the manuals, and which of them a test shows.

The list spec/behaviours.tsv has a row for each: id, manual, unit, kind, text. The kind says what the row states: an `action`, which has to
be carried out, or a `layout`, where it suffices that bits, codes, names and sizes are known. A layout is covered by any citation, an
action only by a test that shows the action; and no citation counts whose test skips where `../shared` is absent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from softgen.bits.generation import SPEC
from softgen.errors import SpecError
from softgen.inspect.spec.citations import SHOWS, Citation

COLUMNS = ["id", "manual", "unit", "kind", "behaviour"]
MANUALS = {
    "G45": "G45, volume 2: 3D and media",
    "IVB": "Ivy Bridge: EU instruction set",
    "BDW": "Broadwell: command reference, instructions",
    "KBL": "Kaby Lake: command reference, structures",
    "ICL": "Ice Lake: render engine",
}
COVERED, SHARED, DECODED, OPEN = "covered", "needs shared material", "decoded only", "open"      # what the tests say of a behaviour


class Behaviour(NamedTuple):
    id: str
    manual: str
    unit: str
    kind: str
    text: str


@dataclass(frozen=True)
class Count:
    """One row of the table: a unit of a manual."""

    manual: str
    unit: str
    actions: int            # covered
    of_actions: int
    layouts: int            # covered
    of_layouts: int
    decoded: int            # actions of which only the layout is shown
    shared: int             # shown where ../shared is, and not without it

    @property
    def covered(self) -> int:
        return self.actions + self.layouts

    @property
    def total(self) -> int:
        return self.of_actions + self.of_layouts


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
        if row.kind not in SHOWS:
            raise SpecError(f"{name}:{number}: kind must be {' or '.join(SHOWS)}, not {row.kind!r}")
        if row.id in listed:
            raise SpecError(f"{name}:{number}: {row.id} is listed twice")
        listed[row.id] = row
    return listed


@cache
def behaviours() -> dict[str, Behaviour]:
    """The list that comes with softgen."""
    return read((SPEC / "behaviours.tsv").read_text("utf-8"))


def tests_folder() -> Path | None:
    """The tests of the checkout softgen runs from; None where softgen was installed without them."""
    folder = Path(__file__).resolve().parents[3] / "tests"
    return folder if (folder / "conftest.py").is_file() else None


def reasons(folder: Path) -> dict[str, str]:
    """Why no test shows some behaviours, by id: the lists `*_not_shown.txt` of a folder of tests, an id and a reason on each line."""
    lines = [line for path in sorted(folder.rglob("*_not_shown.txt")) for line in path.read_text("utf-8").splitlines()]
    return dict(line.split("\t", 1) for line in lines if "\t" in line and not line.startswith("#"))


def status(row: Behaviour, citations: Sequence[Citation]) -> str:
    """What the citations of a behaviour prove: COVERED, SHARED, DECODED or OPEN."""
    proofs = [citation for citation in citations if row.kind == "layout" or citation.shows == "action"]
    if any(not citation.needs_shared for citation in proofs):
        return COVERED
    return SHARED if proofs else DECODED if citations else OPEN


def count(rows: Iterable[Behaviour], citations: Mapping[str, Sequence[Citation]]) -> list[Count]:
    """Counts per manual and unit, in the list's order."""
    units: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for row in rows:
        units.setdefault((row.manual, row.unit), Counter())[row.kind, status(row, citations.get(row.id, ()))] += 1
    return [tally(manual, unit, cell) for (manual, unit), cell in units.items()]


def tally(manual: str, unit: str, cell: Counter[tuple[str, str]]) -> Count:
    """A row of the table from the numbers of behaviours by kind and status."""
    actions, layouts = (sum(number for (what, _), number in cell.items() if what == kind) for kind in ("action", "layout"))
    shared = cell["action", SHARED] + cell["layout", SHARED]
    return Count(manual, unit, cell["action", COVERED], actions, cell["layout", COVERED], layouts, cell["action", DECODED], shared)


def total(counts: Iterable[Count], manual: str, unit: str = "") -> Count:
    """The sum of some rows."""
    own = list(counts)
    return Count(manual, unit, *(sum(getattr(count, field) for count in own) for field in list(Count.__dataclass_fields__)[2:]))


def markdown(counts: list[Count]) -> str:
    """docs/behaviours.md: a summary, then a table per manual."""
    lines = ["# Behaviours covered by tests", "",
             "Generated by `make docs` from the marks in `tests/`; a test fails when this page is out of date.",
             "`softgen behaviours --uncovered` lists what is open, with the text of each.", "",
             "An action is covered when a test shows softgen carrying it out, a layout (bits, codes, names, sizes) when a test shows that",
             "it is known. *decoded*: actions of which a test shows the fields alone; they are not covered. *shared*: what is shown only",
             "by tests that skip where `../shared` is absent; not counted as covered either.", "",
             "| manual |" + HEADER, "|---|" + RULE]
    manuals = list(dict.fromkeys(c.manual for c in counts))
    sums = {manual: total((c for c in counts if c.manual == manual), manual) for manual in manuals}
    lines += [f"| {MANUALS[manual]} (`{manual}`) |" + cells(sums[manual]) for manual in manuals]
    lines.append("| all |" + cells(total(counts, "")))
    for manual in manuals:
        lines += ["", f"## {MANUALS[manual]}", "", "| unit |" + HEADER, "|---|" + RULE]
        lines += [f"| {c.unit} |" + cells(c) for c in counts if c.manual == manual]
    return "\n".join(lines) + "\n"


HEADER = " actions | of | layouts | of | decoded | shared | covered | of |"
RULE = "---:|" * 8


def cells(count: Count) -> str:
    numbers = (count.actions, count.of_actions, count.layouts, count.of_layouts, count.decoded, count.shared, count.covered, count.total)
    return "".join(f" {number} |" for number in numbers)
