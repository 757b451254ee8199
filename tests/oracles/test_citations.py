"""Citations: a page line that ends in `; KBL n`, `; BDW n` or `; G45 n` was read from line n of that manual, so its bits must be there.

The rows of two manuals were extracted once (`manuals/kbl_fields.json`, `manuals/bdw_fields.json`: line, high bit, low bit). A field's bits
are those of the row on the cited line or a part of them, counted from any dword; where no row was extracted, as for all of G45, the bits
stand in the text within a few lines. What fits neither way is in citation_differences.txt with its reason.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

from softgen.bits.catalogue import catalogue, spec_files
from softgen.bits.layout import BitField
from tests.conftest import SHARED, needs_shared

MANUALS = {"BDW": "000", "KBL": "001", "G45": "002"}
CITE = re.compile(r";\s*(?:(KBL|BDW)\s+(\d+)|(G45)\s+(\d+)(?:-\d+)?)\s*$")
AROUND = 4  # lines
EXPLAINED = Path(__file__).with_name("citation_differences.txt")
LINE = re.compile(r"(\S+)\s+(KBL|BDW|G45)\s+(\d+)(?:-(\d+))?\s{2,}(\S.*)$")


class Citation(NamedTuple):
    name: str  # PAGE_NAME.field
    bits: frozenset[tuple[int, int]]  # (high, low) of the whole and of each piece, as the manual may count them
    manual: str
    line: int
    place: str


class Reason(NamedTuple):
    pattern: str
    manual: str
    first: int
    last: int

    def fits(self, citation: Citation) -> bool:
        return self.manual == citation.manual and self.first <= citation.line <= self.last and fnmatchcase(citation.name, self.pattern)


def citations() -> Iterator[Citation]:
    """Each citing page line once, whatever the number of generations that read it."""
    lines = {name: file.read_text("utf-8").splitlines() for name, file in spec_files(".layout")}
    seen: set[tuple[str, int]] = set()
    for layout in catalogue().layouts():
        for field, groups in layout.walk():
            page = next((g.of for g in groups if g.of), "")  # fields of another structure are cited on its own lines
            cited = None if page else CITE.search(lines[layout.page][field.line - 1].partition("#")[0])
            if cited and (layout.page, field.line) not in seen:
                seen.add((layout.page, field.line))
                bits = positions(field, sum(group.start for group in groups))
                yield Citation(
                    f"{layout.name}.{field.name}", bits, cited[1] or cited[3], int(cited[2] or cited[4]), f"{layout.page}:{field.line}"
                )


def positions(field: BitField, start: int) -> frozenset[tuple[int, int]]:
    """From dword 0, from the field's own dword, and each dword for itself; those of a group in the element and in its first place."""
    found = {(field.high, field.low)}
    for high, low in (*field.pieces, (field.high, field.low), (start + field.high, start + field.low)):
        base = low // 32 * 32
        found |= {(high - base, low - base), (high % 32, low % 32)}
    return frozenset((high, low) for high, low in found if high >= low)


@cache
def rows(manual: str) -> dict[int, list[tuple[int, int]]]:
    """Line -> the bits of the rows there."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    if manual == "G45":
        return found
    for section in json.loads((SHARED / "manuals" / f"{manual.lower()}_fields.json").read_text()):
        for part in ("fields", "fixed", "raw"):
            for row in section.get(part, ()):
                high, low = row["hi"], row["lo"]
                found[row["line"]] += [(high, low), (high - low // 32 * 32, low % 32)]  # a row of two dwords may count from the first
    return found


@cache
def text(manual: str) -> list[str]:
    (file,) = (SHARED / "manuals").glob(f"{MANUALS[manual]}_*.txt")
    return file.read_text("utf-8", "replace").split("\n")


def stands(citation: Citation) -> bool:
    """Whether the cited line, or the text around it, has these bits."""
    there = rows(citation.manual).get(citation.line, [])
    if any(h >= high and low >= lo for h, lo in there for high, low in citation.bits):
        return True
    around = " ".join(text(citation.manual)[max(0, citation.line - AROUND) : citation.line + AROUND])
    bits = (str(high) if high == low else f"{high}[:-]{low}" for high, low in citation.bits)
    return any(re.search(rf"(?<![\d:.]){words}(?![\d:])", around) for words in bits)


def explained(content: str) -> list[Reason]:
    found = []
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            m = LINE.match(line)
            assert m, f"{EXPLAINED.name}:{number}: expected 'NAME.field  KBL n[-m]  reason', not {line!r}"
            found.append(Reason(m[1], m[2], int(m[3]), int(m[4] or m[3])))
    return found


@needs_shared("manuals")
def test_every_citation_leads_to_its_bits() -> None:
    reasons = explained(EXPLAINED.read_text("utf-8"))
    all_of_them = list(citations())
    lost = [citation for citation in all_of_them if not stands(citation)]
    wrong = [f"{citation.place} {citation.name} cites {citation.manual} {citation.line}"
             for citation in lost if not any(reason.fits(citation) for reason in reasons)]
    assert not wrong, f"{len(wrong)} of {len(all_of_them)} citations lead elsewhere:\n" + "\n".join(wrong)
    idle = [reason for reason in reasons if not any(reason.fits(citation) for citation in lost)]
    assert not idle, f"explanations that nothing needs: {idle}"


@needs_shared("manuals")
def test_a_wrong_citation_is_told() -> None:
    """The comparison itself can fail: the right bits one section further on are not found."""
    right = next(citation for citation in citations() if citation.name == "RENDER_SURFACE_STATE.surface_type" and citation.manual == "KBL")
    assert stands(right)
    assert not stands(right._replace(line=right.line + 2000))
    assert not stands(right._replace(bits=frozenset({(30, 7)})))
