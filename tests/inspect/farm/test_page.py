"""The page of results: every file it names is there, nothing is fetched from elsewhere, any text can stand in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from softgen.inspect.farm import page as pages
from softgen.inspect.farm.expectations import Expectations
from softgen.inspect.farm.page import page
from softgen.inspect.farm.store import MOST_CAPTURES, ResultStore
from softgen.inspect.farm.summary import summarise
from softgen.inspect.farm.unit import FarmUnit, JobOutcome, UnitResult
from tests.conftest import ROOT
from tests.driver.running import needs_shim
from tests.inspect.farm.farming import farm, lines, result, write_list


class Reader(HTMLParser):
    """Links, pictures and text of a page, whose elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links, self.pictures, self.texts, self.open = list[str](), list[str](), list[str](), list[str]()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if tag == "a" and name == "href"]
        self.pictures += [value or "" for name, value in attrs if tag == "img" and name == "src"]
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def written(folder: Path, outcomes: list[JobOutcome], expected: Expectations | None = None, notes: tuple[str, ...] = ()) -> Reader:
    store = ResultStore(folder)
    store.open((), False)
    for outcome in outcomes:
        store.attach(outcome)
    store.close()
    results = [found for outcome in outcomes for found in outcome.results]
    units = [FarmUnit(found.name, found.gpu, found.key) for found in results]
    expected = expected or Expectations()
    text = page(folder, results, expected, summarise(units, {found.key: found.outcome for found in results}, expected), notes)
    assert not re.search(r"(?:src|href)=\"(?:https?:|//)|@import|url\(", text)
    found = Reader(text)
    for target in (*found.links, *found.pictures):
        assert (folder / unquote(target)).exists() or target == "data:,", target
    return found


def bad(name: str, message: str, word: str = "fail") -> JobOutcome:
    found = result(name, word, message)
    return JobOutcome([found], {found.key: f"log of {name}"}, {found.key: {"000-Result.png": b"1", "001-Reference.png": b"2"}},
                      {found.key: {"exec-000001.json": b"{}", "bo/1.zst": b""}})  # fmt: skip


def test_failures_stand_together_by_their_first_error(tmp_path: Path) -> None:
    outcomes = [bad("a", "hull shader"), bad("b", "hull shader"), bad("c", "hull shader", "crash"), JobOutcome([result("d")])]
    found = written(tmp_path, outcomes, notes=("a note",))
    text = " ".join("".join(found.texts).split())
    assert "3 went wrong, in 2 ways" in text and "fail 2 × hull shader" in text and "crash 1 × hull shader" in text and "a note" in text
    assert "logs/kbl-a.txt" in found.links and "captures/kbl-a/" in found.links
    assert found.pictures[:2] == ["pictures/kbl-a/000-Result.png", "pictures/kbl-a/001-Reference.png"] and len(found.pictures) == 6
    assert f"softgen replay {tmp_path}/captures/kbl-a" in text and "Not all units are as expected" in text
    assert (tmp_path / "captures" / "kbl-a" / "bo" / "1.zst").read_bytes() == b""


def test_expected_failures_are_none(tmp_path: Path) -> None:
    found = written(tmp_path, [bad("a", "x")], Expectations({"": {"a": "Fail"}}))
    assert "All units are as expected." in found.texts and not any("went wrong" in text for text in found.texts)


def test_pictures_of_several_gpus_are_beside_each_other(tmp_path: Path) -> None:
    outcomes = []
    for gpu in ("kbl", "icl"):
        one = result("tri", gpu=gpu)
        outcomes.append(JobOutcome([one], {}, {one.key: {"frame 1.png": b"x"}}))
    found = written(tmp_path, outcomes)
    assert found.pictures == ["pictures/kbl-tri/frame%201.png", "pictures/icl-tri/frame%201.png"]
    assert "kbl: frame 1" in found.texts and "icl: frame 1" in found.texts


def test_a_page_of_the_debugger_is_linked(tmp_path: Path) -> None:
    (tmp_path / "view" / "kbl-a").mkdir(parents=True)
    (tmp_path / "view" / "kbl-a" / "index.html").write_text("")
    assert "view/kbl-a/index.html" in written(tmp_path, [bad("a", "x")]).links


def test_any_text_can_stand_in_it(tmp_path: Path) -> None:
    odd = "<script>alert('x')</script> & \"quotes\" ü"
    one = UnitResult(odd, "kbl", "fail", 1.0, odd, "k")
    found = written(tmp_path, [JobOutcome([one])], notes=(odd,))
    assert "script" not in found.open and sum(odd in text for text in found.texts) == 4


def test_a_large_page_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "GROUPS", 2)
    monkeypatch.setattr(pages, "MEMBERS", 3)
    found = written(tmp_path, [JobOutcome([result(f"{n}", "fail", f"way {n % 5 if n else 0}")]) for n in range(40)])
    text = " ".join("".join(found.texts).split())
    assert "40 went wrong, in 5 ways" in text and text.count("and 5 more") == 2 and "and 3 more ways" in text


def test_captures_of_the_first_failures_are_kept(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.open((), False)
    for number in range(MOST_CAPTURES + 5):
        store.attach(bad(f"{number}", "x"))
    assert len(list((tmp_path / "captures").iterdir())) == MOST_CAPTURES


@needs_shim
def test_the_submission_that_failed_is_kept(tmp_path: Path) -> None:
    """And no longer among those of the user."""
    listed = write_list(tmp_path / "list", [str(ROOT / "tests" / "inspect" / "farm" / "programs" / "faulty")])
    farm("run", "--tests", listed, "--out", tmp_path / "out", XDG_STATE_HOME=str(tmp_path / "state"))
    [line] = lines(tmp_path / "out")
    kept = tmp_path / "out" / "captures" / line["hash"]
    assert line["result"] == "fail" and "0x7f0000" in line["message"] and "kept in" not in line["message"]
    assert (kept / "exec-000001.json").exists() and not (tmp_path / "state").exists()
    assert f"kept in captures/{line['hash']}" in (tmp_path / "out" / "logs" / f"{line['hash']}.txt").read_text()
    page_text = (tmp_path / "out" / "index.html").read_text()
    assert f'href="captures/{line["hash"]}/"' in page_text
