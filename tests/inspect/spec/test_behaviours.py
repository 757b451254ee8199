"""The list of behaviours and the marks that cover it."""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from softgen.errors import SpecError
from softgen.inspect.cli import behaviours as verb
from softgen.inspect.cli.main import main
from softgen.inspect.spec import behaviours as book
from softgen.inspect.spec import citations
from softgen.inspect.spec.citations import Citation
from tests.conftest import ROOT

HEADER = "id\tmanual\tunit\tkind\tbehaviour\n"


def test_the_list_is_whole() -> None:
    counts = book.count(book.behaviours().values(), {})
    per_manual = {manual: sum(c.total for c in counts if c.manual == manual) for manual in book.MANUALS}
    assert per_manual == {"G45": 517, "IVB": 236, "BDW": 300, "KBL": 213, "ICL": 181}
    assert all(row.text.strip() and row.unit for row in book.behaviours().values())


@pytest.mark.parametrize("text, complaint", [
    ("", "b.tsv:1: the columns must be id manual unit kind behaviour"),
    ("id\tmanual\n", "b.tsv:1: the columns must be id manual unit kind behaviour"),
    (HEADER + "X-1\tBDW\tX\n", "b.tsv:2: must have 5 columns, not 3"),
    (HEADER + "X-1\tXYZ\tX\taction\ttext\n", "b.tsv:2: manual must be one of G45 IVB BDW KBL ICL, not 'XYZ'"),
    (HEADER + "X-1\tBDW\tX\tboth\ttext\n", "b.tsv:2: kind must be action or layout, not 'both'"),
    (HEADER + "X-1\tBDW\tX\taction\ttext\nX-1\tBDW\tX\taction\tother\n", "b.tsv:3: X-1 is listed twice"),
])
def test_a_bad_list_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        book.read(text, "b.tsv")
    assert str(caught.value) == complaint


def test_the_tests_of_a_checkout_are_found() -> None:
    assert book.tests_folder() == ROOT / "tests"


def cited(shows: str, needs_shared: bool = False) -> Citation:
    return Citation("", "tests/test_x.py:1", "test_x", shows, needs_shared)


@pytest.mark.parametrize(("kind", "citations", "status"), [
    ("action", [cited("layout"), cited("action")], book.COVERED),
    ("action", [cited("layout")], book.DECODED),
    ("action", [cited("layout"), cited("action", needs_shared=True)], book.SHARED),
    ("action", [], book.OPEN),
    ("layout", [cited("layout")], book.COVERED),
    ("layout", [cited("action")], book.COVERED),
    ("layout", [cited("layout", needs_shared=True)], book.SHARED),
])
def test_what_citations_prove(kind: str, citations: list[Citation], status: str) -> None:
    assert book.status(book.Behaviour("A-1", "BDW", "VF", kind, ""), citations) == status


def test_counts_and_page() -> None:
    rows = [book.Behaviour(f"A-{n}", "BDW", "VF", kind, "") for n, kind in enumerate(("action", "action", "action", "layout", "layout"))]
    rows.append(book.Behaviour("B-1", "KBL", "DP", "action", ""))
    found = {"A-0": [cited("action")], "A-1": [cited("layout")], "A-2": [cited("action", needs_shared=True)], "A-3": [cited("layout")]}
    counts = book.count(rows, found)
    assert counts == [book.Count("BDW", "VF", 1, 3, 1, 2, 1, 1), book.Count("KBL", "DP", 0, 1, 0, 0, 0, 0)]
    assert (counts[0].covered, counts[0].total) == (2, 5)
    page = book.markdown(counts)
    assert "| VF | 1 | 3 | 1 | 2 | 1 | 1 | 2 | 5 |" in page and "| all | 1 | 4 | 1 | 2 | 1 | 1 | 2 | 6 |" in page


def test_reasons_why_behaviours_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "old_not_shown.txt").write_text("# tabs\nA-1\tundefined: nobody knows\nA-2\tspeed: it is timing\n")
    assert book.reasons(tmp_path) == {"A-1": "undefined: nobody knows", "A-2": "speed: it is timing"}
    found = book.reasons(ROOT / "tests")
    assert set(found) <= set(book.behaviours()) and "WM-42" in found["G45-WM-43"]


def test_the_page_in_docs_is_up_to_date() -> None:
    page = book.markdown(book.count(book.behaviours().values(), citations.read(ROOT / "tests")))
    assert (ROOT / "docs" / "behaviours.md").read_text("utf-8") == page, "run: make docs"


def pytest_on(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest on one test file with this repository's conftest and settings."""
    (folder / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests" / "test_one.py").write_text("import pytest\n" + text)
    return run_pytest(folder, *options)


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "SOFTGEN_SHARED": str(folder / "none")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mark, complaint", [
    ('behaviour("BDW-VF-999", shows="action")', "there is no behaviour BDW-VF-999"),
    ("behaviour()", "behaviour takes one or more numbers"),
    ("behaviour(1)", "behaviour takes one or more numbers"),
    ('behaviour("BDW-VF-01")', 'behaviour must say shows="action" or shows="layout"'),
    ('behaviour("BDW-VF-01", shows="bits")', "shows=\"layout\", not 'bits'"),
    ('behaviour("BDW-VF-01", show="action")', "behaviour takes one or more numbers"),
    ("behavior('BDW-VF-01')", "'behavior' not found in `markers`"),
])
def test_a_wrong_mark_fails_collection(tmp_path: Path, mark: str, complaint: str) -> None:
    found = pytest_on(tmp_path, f"@pytest.mark.{mark}\ndef test_x(): pass")
    assert found.returncode not in (0, 1, 5) and complaint in found.stdout + found.stderr


def test_with_several_workers_the_complaint_is_still_one_line(tmp_path: Path) -> None:
    found = pytest_on(tmp_path, '@pytest.mark.behaviour("BDW-VF-999", shows="action")\ndef test_x(): pass', "-n", "1")
    assert found.returncode == 4 and found.stderr == "ERROR: tests/test_one.py:2: there is no behaviour BDW-VF-999\n\n"
    (tmp_path / "tests" / "test_one.py").write_text('import pytest\n@pytest.mark.behaviour("BDW-VF-01")\ndef test_x(): pass')
    found = run_pytest(tmp_path, "-n", "1")
    assert found.stderr == 'ERROR: tests/test_one.py:2: behaviour must say shows="action" or shows="layout"\n\n'


def test_right_marks_pass_and_skips_are_told(tmp_path: Path) -> None:
    text = '''from tests.conftest import needs_shared
@pytest.mark.behaviour("BDW-VF-01", shows="layout")
def test_x(): pass
@needs_shared("traces")
def test_y(): assert False
def test_z(shared): assert False
@pytest.mark.witness
def test_w(): assert False
'''
    found = pytest_on(tmp_path, text)
    assert found.returncode == 0, found.stdout
    assert "outside material is absent: shared/traces" in found.stdout and "1 passed, 2 skipped, 1 deselected" in found.stdout


def test_rows_with_what_shows_them_or_why_nothing_does(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [book.Behaviour(f"A-{number}", "BDW", "VF", "action", f"text {number}") for number in range(4)]
    verb.show_rows(rows, {"A-0": [cited("action"), cited("layout")], "A-1": [cited("layout")]}, {"A-2": "no such unit"})
    assert capsys.readouterr().out.splitlines() == [
        "A-0  text 0", "    tests/test_x.py:1 test_x (action), tests/test_x.py:1 test_x (layout)", f"A-1  text 1 ({book.DECODED})",
        "    tests/test_x.py:1 test_x (layout)", "A-2  text 2", "    not shown: no such unit", "A-3  text 3",
        "4 behaviours, 1 of them on a list with the reason"]  # fmt: skip
    verb.show_rows(rows[3:], {}, {})
    assert capsys.readouterr().out == "A-3  text 3\n1 behaviour\n"


def test_every_form_says_what_is_covered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a unit and of what is not covered single behaviours are listed, otherwise units are counted."""
    (tmp_path / "test_x.py").write_text('import pytest\n@pytest.mark.behaviour("BDW-VF-01", shows="action")\ndef test_x(): pass\n')
    rows = [row for row in book.behaviours().values() if row.manual == "BDW"]
    found, unit = citations.read(tmp_path), {row.id for row in rows if row.unit == "BDW-VF"}
    assert set(found) == {"BDW-VF-01"} and len(unit) > 1

    def said(**options: object) -> str:
        given = {"manual": "BDW", "unit": None, "uncovered": False, "tests": tmp_path, "json": False, "markdown": False} | options
        assert verb.run(argparse.Namespace(**given)) == 0
        return capsys.readouterr().out

    assert said(markdown=True) == book.markdown(book.count(rows, found))
    assert said(unit="vf").splitlines()[-1].startswith(f"{len(unit):,} behaviours")
    assert said(unit="BDW-VF", uncovered=True).splitlines()[-1].startswith(f"{len(unit) - 1:,} behaviours")
    assert said(uncovered=True).splitlines()[-1].startswith(f"{len(rows) - 1:,} behaviours")
    assert said().splitlines()[0].split()[:3] == ["manual", "unit", "actions"]
    answer = json.loads(said(json=True, unit="VF"))
    assert (answer["covered"], answer["total"]) == (1, len(unit)) and {row["id"] for row in answer["behaviours"]} == unit


def test_a_folder_without_tests_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "helper.py").write_text("def test_x(): pass\n")
    assert main(["behaviours", "--tests", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"softgen: {tmp_path}: has no tests (test_*.py)\n")
