"""Restrictions: every example both ways, a strict table, and no false alarm on code that real compilers made."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from softgen.bits.layout import GENERATIONS
from softgen.errors import SpecError
from softgen.eu.check import operand as check_operand
from softgen.eu.check import region as check_region
from softgen.eu.check import restrictions as check
from softgen.eu.check import send as check_send
from softgen.eu.encoding import program
from softgen.eu.encoding.decode import decode
from softgen.eu.isa.table import load
from softgen.eu.text.mesa import format as mesa_format
from softgen.eu.text.mesa import parse as mesa_parse
from tests.conftest import needs_shared
from tests.eu.corpus import Code, bundled, captured, compiled

EXPLAINED = Path(__file__).parent / "explained_violations.txt"
ROWS = [pytest.param(restriction, id=f"{restriction.number}-{restriction.name}") for restriction in check.restrictions()]
# Not rows, though they are asked of an instruction and answer yes or no.
SMALL = 2048  # bytes of the kernels every run tries; `make witness` tries all
HELPERS = {"is_division", "align1", "moves_bytes", "mixes_floats", "computes"}


@pytest.mark.parametrize("row", ROWS)
def test_the_legal_example_breaks_nothing(row: check.Restriction) -> None:
    gen, text = row.legal
    (inst,) = mesa_parse.parse(text, gen)
    assert [str(broken) for broken in check.check(inst)] == []


@pytest.mark.parametrize("row", ROWS)
def test_the_illegal_example_breaks_this_and_nothing_else(row: check.Restriction) -> None:
    gen, text = row.illegal
    (inst,) = mesa_parse.parse(text, gen)
    assert [broken.name for broken in check.check(inst)] == [row.name]


def test_every_kind_has_rows_and_every_row_a_function_of_its_own() -> None:
    rows = check.restrictions()
    assert {row.kind for row in rows} == set(check.KINDS) and len(rows) > 90
    written = set()
    for module in (check_region, check_operand, check_send):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            plain = function.__module__ == module.__name__ and list(inspect.signature(function).parameters) == ["inst"]
            if plain and inspect.signature(function).return_annotation == "bool" and not name.startswith("_"):
                written.add(name)
    assert written - HELPERS == {row.name for row in rows}


def test_rows_apply_to_their_generations_only() -> None:
    row = next(row for row in check.restrictions() if row.name == "even_split")
    text = row.illegal[1]
    assert [broken.name for broken in check.check(mesa_parse.parse(text, 8.0)[0])] == ["even_split"]
    assert check.check(mesa_parse.parse(text, 9.0)[0]) == []


@pytest.mark.parametrize("text, breaks", [
    ("mov(8) g4<2>HF g2<8,8,1>UB { align1 1Q };", True), ("mov(8) g4<2>UB g2<8,8,1>HF { align1 1Q };", True),
    ("mov(8) g4<2>B g2<8,8,1>HF { align1 1Q };", True), ("add(8) g4<2>HF g2<8,8,1>HF g3<8,8,1>B { align1 1Q };", True),
    ("mov(8) g4<1>HF g2<8,8,1>HF { align1 1Q };", False), ("mov(8) g4<1>UB g2<8,8,1>B { align1 1Q };", False),
    ("cmp.z.f0.0(8) null<1>B g2<8,8,1>HF g3<8,8,1>HF { align1 1Q };", False),  # nothing is converted
    ("nop;", False), ("send(8) g4<1>UB g2<8,8,1>HF 0x02110001 sampler MsgDesc: { align1 1Q };", False),
])  # fmt: skip
def test_half_floats_and_bytes_are_not_converted_to_each_other(text: str, breaks: bool) -> None:
    (inst,) = mesa_parse.parse(text, 9.0)
    assert check_operand.half_bytes(inst) == breaks


def test_what_is_no_instruction_breaks_nothing() -> None:
    assert all(check.check(decode(number, gen)) == [] for number in (0, 0x7F, 0x7E) for gen in GENERATIONS)


@given(word=st.integers(0, 2**128 - 1), gen=st.sampled_from(GENERATIONS))
def test_any_word_can_be_checked(word: int, gen: float) -> None:
    check.check(decode(word, gen))


# -- the table -----------------------------------------------------------------------------------------------------

GOOD = """restriction 1 width_fits 9 region
  says      A rule.
  source    KBL 1-2
  legal     9  nop;
  illegal   9  nop;
"""


@pytest.mark.parametrize("old, new, message", [
    ("restriction 1", "rule 1", "t:1: expected 'restriction', a number"),
    ("width_fits", "no_such_rule", "t:1: no function is called 'no_such_rule'"),
    ("9 region", "9 colour", "t:1: a kind is one of region"),
    ("width_fits 9", "width_fits 99", "t:1: no generations in '99'"),
    ("  says      A rule.", "  says", "t:2: expected 'says' and its text, not 'says'"),
    ("  says", "  tells", "t:2: expected 'says' and its text"),
    ("KBL 1-2", "hearsay", "t:1: a source is BDW"),
    ("  legal     9 ", "  legal     8 ", "t:1: legal: an example is one of the generations and an instruction"),
    ("  illegal   9  nop;\n", "", "t:1: a restriction has says, source, legal, illegal"),
])  # fmt: skip
def test_a_bad_row_is_refused_with_its_line(old: str, new: str, message: str) -> None:
    assert len(check.read(GOOD, "t")) == 1
    with pytest.raises(SpecError, match=re.escape(message)):
        check.read(GOOD.replace(old, new), "t")


def test_numbers_rise_and_names_are_used_once() -> None:
    with pytest.raises(SpecError, match="number 1 comes after 1"):
        check.read(GOOD + GOOD, "t")
    with pytest.raises(SpecError, match="a name is given twice"):
        check.read(GOOD + GOOD.replace("restriction 1", "restriction 2"), "t")
    assert len(check.read(load("restrictions.table"))) == len(check.restrictions())


# -- real code -----------------------------------------------------------------------------------------------------


@cache
def explained() -> dict[tuple[str, str], str]:
    """(restriction, capture) -> reason."""
    found = {}
    for line in EXPLAINED.read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, captures, reason = line.split(maxsplit=2)
            found.update({(name, capture): reason for capture in captures.split(",")})
    return found


def violations(codes: Iterable[Code]) -> Counter[tuple[str, str, str]]:
    """(restriction, where, text) -> how often."""
    found: Counter[tuple[str, str, str]] = Counter()
    for name, gen, data in codes:
        for _, _, inst in program.instructions(data, gen):
            for broken in check.check(inst):
                found[broken.name, name.split()[0], mesa_format.text(inst)] += 1
    return found


def test_bundled_code_breaks_nothing() -> None:
    assert violations(bundled()) == {}


@pytest.mark.witness
@needs_shared("kernels")
def test_small_compiled_code_breaks_nothing() -> None:
    codes = [code for code in compiled() if len(code[2]) <= SMALL]
    assert len(codes) > 100 and violations(codes) == {}


@pytest.mark.witness
@needs_shared("kernels")
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icllp"])
def test_compiled_code_breaks_nothing(gpu: str) -> None:
    codes = [code for code in compiled() if code[0].startswith(gpu)]
    assert len(codes) > 100 and violations(codes) == {}


@pytest.mark.witness
@needs_shared("traces")
def test_captured_code_breaks_only_what_is_explained() -> None:
    found = violations(captured())
    assert [key for key in found if (key[0], key[1]) not in explained()] == []
    unused = set(explained()) - {(name, where) for name, where, _ in found}
    # the same code stands in several captures, and is read once
    assert {key for key in unused if key[1] not in ("skl-ocl-vadd", "vadd_selfcheck_skl.aub")} == set()
