"""Pages against the command volumes: every structure of the Kaby Lake volume and every section of the Broadwell one is accounted for.

An entry is answered by the page or enumeration of its name, by what manual_pages.txt says (a page of another name, a part of one, a row of
a table), or by a reason there. Where a page answers, each row of the manual stands on it at the same bits; what does not is in
manual_differences.txt with its reason. Neither file has a line in vain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from softgen.bits.catalogue import catalogue
from softgen.eu.isa import opcodes
from softgen.shared_functions import descriptors
from tests.conftest import needs_shared
from tests.oracles import manual
from tests.oracles.manual import GENERATION, Entry, Row, spelled
from tests.oracles.places import positions, tiled

HERE = Path(__file__).parent
ANSWER = re.compile(r"(KBL|BDW)\s+(\d+)\s+(?:(page)\s+(\S+)(?:\s+at\s+(\d+))?|(enum|opcode|types)\s+(\S+)|(none)\s+(\S.*))$")
DIFFERENCE = re.compile(r"(\S+)\s+(KBL|BDW)\s+(\d+)(?:-(\d+))?\s{2,}(\S.*)$")

pytestmark = needs_shared("manuals")


class Answer(NamedTuple):
    kind: str  # page, enum, opcode, types or none
    name: str  # of the page, enumeration, instruction or shared function; of `none` the reason
    at: int = 0  # the bit of the page where the entry begins


class Reason(NamedTuple):
    pattern: str
    manual: str
    first: int
    last: int

    def fits(self, name: str, volume: str, line: int) -> bool:
        return self.manual == volume and self.first <= line <= self.last and fnmatchcase(name, self.pattern)


class Unanswered(NamedTuple):
    """A row that does not stand on the page that answers for its entry."""

    page: str
    manual: str
    row: Row
    place: tuple[int, int]

    def __str__(self) -> str:
        high, low = self.place
        at = f"dword {low // 32} {high - low // 32 * 32}:{low % 32}"
        return f"{self.page}  {self.manual} {self.row.line}  {self.row.name!r} at {at}"


# -- who answers -------------------------------------------------------------------------------------------------------


@cache
def answers() -> dict[tuple[str, int], Answer]:
    found: dict[tuple[str, int], Answer] = {}
    for number, line in enumerate((HERE / "manual_pages.txt").read_text("utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        m = ANSWER.match(text)
        assert m, f"manual_pages.txt:{number}: expected 'KBL n  page NAME [at BIT]', enum, opcode, types or none, not {text!r}"
        key = m[1], int(m[2])
        assert key not in found, f"manual_pages.txt:{number}: {m[1]} {m[2]} is answered twice"
        found[key] = Answer(m[3] or m[6] or m[8], m[4] or m[7] or m[9], int(m[5] or 0))
    return found


@cache
def pages() -> dict[str, Answer]:
    """Pages and enumerations by name; also without what a scan loses."""
    names = {name: Answer("page", name) for name in catalogue().sections} | {name: Answer("enum", name) for name in catalogue().enums}
    return {name.replace("_", ""): value for name, value in names.items()} | names


def by_name(entry: Entry) -> Answer | None:
    found = (pages().get(name) for name in entry.names)
    return next((item for item in found if item and (item.kind == "enum" or catalogue().get(item.name, GENERATION[entry.manual]))), None)


def answer(entry: Entry) -> Answer | None:
    return answers().get((entry.manual, entry.line)) or by_name(entry)


# -- row by row --------------------------------------------------------------------------------------------------------


def unanswered(entry: Entry, by: Answer) -> Iterator[Unanswered]:
    """Rows that are neither a field, nor several fields, nor with their neighbours one field."""
    theirs = {place for row in entry.rows for place in row.places}
    bits_needed = by.at + 1 + max(high for high, _ in theirs)
    ours: set[tuple[int, int]] = set()
    key = 0
    for name in by.name.split("+"):
        layout = catalogue().layout(name, GENERATION[entry.manual])
        ours |= positions(layout.fields, layout.groups, layout.gen, max(32 * layout.dwords, bits_needed))
        key |= layout.header.claimed if layout.header else 0
    for row in entry.rows:
        for high, low in manual.parts(row, structures()) if not row.reserved else ():
            place = high + by.at, low + by.at
            bits = (1 << place[0] + 1) - (1 << place[1])
            merged = (field for field in ours if field[1] <= place[1] and place[0] <= field[0])
            if bits & ~key and not tiled(place, ours) and not any(tiled((h - by.at, at - by.at), theirs) for h, at in merged):
                yield Unanswered(by.name, entry.manual, row, place)


@cache
def structures() -> dict[str, Entry]:
    return {name: entry for entry in manual.entries("KBL") for name in entry.names}


@cache
def differences() -> tuple[Reason, ...]:
    found = []
    for number, line in enumerate((HERE / "manual_differences.txt").read_text("utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            m = DIFFERENCE.match(line)
            assert m, f"manual_differences.txt:{number}: expected 'PAGE  KBL n[-m]  reason', not {line!r}"
            found.append(Reason(m[1], m[2], int(m[3]), int(m[4] or m[3])))
    return tuple(found)


@cache
def all_unanswered(volume: str) -> tuple[Unanswered, ...]:
    told = ((entry, answer(entry)) for entry in manual.entries(volume))
    return tuple(row for entry, by in told if by and by.kind == "page" for row in unanswered(entry, by))


@pytest.mark.parametrize("volume, count", [("KBL", 405), ("BDW", 231)])
def test_every_entry_is_accounted_for(volume: str, count: int) -> None:
    assert len(manual.entries(volume)) == count
    lost = [f"{volume} {entry.line}  {entry.names[-1]}" for entry in manual.entries(volume) if answer(entry) is None]
    assert not lost, f"{len(lost)} of {len(manual.entries(volume))} entries have neither page nor reason:\n" + "\n".join(lost)


@pytest.mark.parametrize("volume", ["KBL", "BDW"])
def test_every_row_stands_on_its_page(volume: str) -> None:
    reasons = differences()
    lost = [row for row in all_unanswered(volume) if not any(reason.fits(row.page, volume, row.row.line) for reason in reasons)]
    assert not lost, f"{len(lost)} rows of {volume} are not on their pages:\n" + "\n".join(map(str, lost))


def test_no_answer_and_no_reason_stands_in_vain() -> None:
    known = {(entry.manual, entry.line): entry for volume in GENERATION for entry in manual.entries(volume)}
    idle = [place for place, by in answers().items() if place not in known or by_name(known[place]) == by]
    assert not idle, f"manual_pages.txt has lines that nothing needs: {idle}"
    rows = [*all_unanswered("KBL"), *all_unanswered("BDW")]
    vain = [difference for difference in differences() if not any(difference.fits(row.page, row.manual, row.row.line) for row in rows)]
    assert not vain, f"manual_differences.txt has lines that nothing needs: {vain}"


def test_a_page_is_as_long_as_the_structure() -> None:
    wrong = []
    for entry, by in told("page"):
        if entry.size and not by.at and "+" not in by.name:
            layout, needed = catalogue().layout(by.name, GENERATION["KBL"]), -(-entry.size // 32)
            part = layout.kind == "instruction" or layout.variable and layout.dwords <= needed
            if layout.dwords != needed and not part:
                wrong.append(f"{by.name} has {layout.dwords} dwords, KBL {entry.line} says {needed}")
    assert not wrong, "\n".join(wrong)


# -- values --------------------------------------------------------------------------------------------------------------


def told(kind: str) -> list[tuple[Entry, Answer]]:
    found = ((entry, answer(entry)) for volume in GENERATION for entry in manual.entries(volume))
    return [(entry, by) for entry, by in found if by and by.kind == kind]


def test_enumerations_have_the_values_of_the_manual() -> None:
    """An entry with a name of its own has all the enumeration's values, one of several that share a field has some."""
    for entry, by in told("enum"):
        ours, theirs = set(catalogue().enumeration(by.name, GENERATION[entry.manual])), set(entry.rows[0].values)
        ranges = {0xEF, 0xFB}  # the ends of "00h-0EFh" and of "F0h-0FBh"
        assert theirs - ranges <= ours, (entry.manual, entry.line, by.name)
        assert by_name(entry) != by or theirs == ours, (entry.manual, entry.line, by.name)


def test_message_types_are_in_the_table_of_messages() -> None:
    for entry, by in told("types"):
        known = {condition.values for row in descriptors.rows(GENERATION[entry.manual]) if row.function == by.name
                 for condition in row.conditions if condition.field == "message_type"}  # fmt: skip
        theirs = {value for row in entry.rows if row.name == "Message Type" for value in row.values}
        assert theirs == set().union(*known), (entry.line, by.name)


NO_VALUE = {  # numbers a manual lists in a field that its page's enumeration leaves out
    ("KBL", 12165): "7 ends a range of reserved values",
    ("KBL", 12219): "7 ends a range of reserved values",
    ("KBL", 13138): "3 is not allowed",
    ("BDW", 2998): "3 has neither name nor description",
    ("BDW", 10997): "1 is reserved, in letters of its own",
    ("BDW", 13598): "10 is 1 and 0, run together by the scan",
}


def enumerated(page: str, gen: float, place: tuple[int, int]) -> set[int] | None:
    """The values a page names at a place; None where it has no enumeration there."""
    found: set[int] | None = None
    for field in catalogue().layout(page, gen).fields:
        values = set(dict(field.type.values)) or (set(catalogue().enumeration(field.type.target, gen))
            if field.type.name == "enum" else set())
        if (field.high, field.low) == place and values:
            found = (found or set()) | values
    return found


def test_fields_have_the_values_of_the_manual() -> None:
    """Where a page enumerates what the manual enumerates, it has all the manual's values."""
    compared, wrong = 0, []
    for entry, by in told("page"):
        for row in entry.rows if "+" not in by.name and by.name != "EU_CONTROL" else ():  # math functions are in opcodes.table
            high, low = row.places[0]
            ours = enumerated(by.name, GENERATION[entry.manual], (high + by.at, low + by.at))
            if row.values and ours:
                compared += 1
                wrong += [(entry.manual, row.line)] if set(row.values) - ours else []
    assert set(wrong) == set(NO_VALUE), f"without all values, or explained in vain: {set(wrong) ^ set(NO_VALUE)}"
    assert compared > 190


def stated(row: Row) -> str:
    """The type a row's format asks for, where it is a number with a point, a sign, a float or a switch; '' otherwise."""
    high, low = row.places[0]
    width, form = high - low + 1, re.sub(r"\s*2's [Cc]ompl.*", "", row.format).strip()
    fixed = re.match(r"([US])(\d+)\.(\d+)\b", form)
    if fixed and int(fixed[2]) + int(fixed[3]) + (fixed[1] == "S") == width:
        return f"{fixed[1].lower()}.{fixed[3]}"
    if form in ("IEEE_Float", "IEEE_FP") and width == 32:
        return "float"
    if form in ("Enable", "Disable") and width == 1:
        return "bool"
    return "int" if re.match(r"S[1-9]\d*$", form) else ""


def test_fields_have_the_formats_of_the_manual() -> None:
    """Fixed point, signed, float and enable of the Kaby Lake volume are the types of its pages' fields."""
    compared, wrong = 0, []
    for entry, by in told("page"):
        fields = catalogue().layout(by.name, GENERATION["KBL"]).fields if entry.manual == "KBL" and "+" not in by.name else ()
        for row in entry.rows if fields else ():
            high, low = row.places[0]
            types = [str(field.type) for field in fields if (field.high, field.low) == (high + by.at, low + by.at)]
            if types and not row.reserved and stated(row):
                compared += 1
                wrong += [f"{by.name}: KBL {row.line} is {row.format}, not {types}"] if stated(row) not in types else []
    assert not wrong, "\n".join(wrong)
    assert compared > 450


def test_a_descriptor_s_message_type_leads_to_its_page() -> None:
    wrong = []
    for entry, by in told("page"):
        if entry.manual == "BDW" and by.name.startswith("MSD_"):
            wanted = next((row.default for row in entry.rows if row.name.endswith("Message Type") and row.default is not None), None)
            conditions = [{condition.field: condition.values for condition in row.conditions}
                          for row in descriptors.rows(8.0) if row.page == by.name]
            if wanted is None or not any(wanted in condition.get("message_type", ()) for condition in conditions):
                wrong.append(f"BDW {entry.line}: message type {wanted} is none of {by.name}")
    assert not wrong, "\n".join(wrong)


def test_instructions_are_in_the_table_of_opcodes() -> None:
    assert [entry.line for entry, by in told("opcode") if opcodes.opcode(by.name, GENERATION[entry.manual]) is None] == []


def test_headers_have_the_fields_of_their_control_dwords() -> None:
    """A row of a header whose format is MHC_… stands on the header's page as on the control's own, field for field."""
    compared = 0
    for entry in manual.entries("KBL"):
        header = catalogue().get(entry.names[0], 9.0) if entry.names[0].startswith("MH") else None
        for row in entry.rows if header else ():
            control = catalogue().get(spelled(row.format), 9.0) if row.format.startswith("MHC_") else None
            for bit_field in control.fields if control else ():
                places = {(low + bit_field.high, low + bit_field.low) for _, low in row.places}
                ours = [field for field in header.fields if (field.high, field.low) in places]  # type: ignore[union-attr]
                assert len(ours) == len(places), (entry.names[0], row.format, bit_field.name)
                assert all(field.type == bit_field.type and bit_field.name in field.name
                           for field in ours), (entry.names[0], bit_field.name)
                compared += 1
    assert compared > 50


def test_a_wrong_position_is_told() -> None:
    """The comparison itself can fail: a row moved by a bit is not answered."""
    entry = next(entry for entry in manual.entries("KBL") if entry.names[0] == "MHC_RT_C0")
    moved = entry._replace(rows=tuple(row._replace(places=tuple((h + 1, low + 1) for h, low in row.places)) for row in entry.rows))
    assert not list(unanswered(entry, Answer("page", "MHC_RT_C0")))
    assert list(unanswered(moved, Answer("page", "MHC_RT_C0")))
