"""The list of behaviours and the marks that cover it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from softgen.errors import SpecError
from softgen.inspect import behaviours as book
from tests.conftest import ROOT

HEADER = "id\tmanual\tunit\tbehaviour\n"


def test_the_list_is_whole() -> None:
    counts = book.count(book.behaviours().values(), [])
    per_manual = {manual: sum(c.total for c in counts if c.manual == manual) for manual in book.MANUALS}
    assert per_manual == {"G45": 517, "IVB": 236, "BDW": 300, "KBL": 213, "ICL": 181}
    assert all(row.text.strip() and row.unit for row in book.behaviours().values())


@pytest.mark.parametrize("text, complaint", [
    ("", "b.tsv:1: the columns must be id manual unit behaviour"),
    ("id\tmanual\n", "b.tsv:1: the columns must be id manual unit behaviour"),
    (HEADER + "X-1\tBDW\tX\n", "b.tsv:2: must have 4 columns, not 3"),
    (HEADER + "X-1\tXYZ\tX\ttext\n", "b.tsv:2: manual must be one of G45 IVB BDW KBL ICL, not 'XYZ'"),
    (HEADER + "X-1\tBDW\tX\ttext\nX-1\tBDW\tX\tother\n", "b.tsv:3: X-1 is listed twice"),
])
def test_a_bad_list_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as caught:
        book.read(text, "b.tsv")
    assert str(caught.value) == complaint


MARKED = '''
import pytest
from pytest import mark
pytestmark = [pytest.mark.slow, pytest.mark.behaviour("A-1")]

@pytest.mark.behaviour("A-2", "A-3")
def test_two(): pass

class TestRoom:
    @mark.behaviour("A-4")
    def test_inside(self): pass

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.behaviour("A-5"))])
def test_parameter(x): pass

@pytest.mark.behaviour("A-6")
def helper(): pass

@other.behaviour("A-7")
def test_not_a_mark(): pass

@pytest.mark.xfail
@pytest.mark.behaviour("A-8")
def test_fails(): pass

@pytest.mark.skipif(True, reason="x")
@pytest.mark.behaviour("A-9")
def test_sometimes(): pass
'''


def test_marks_are_found_without_running(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    (tests / "room").mkdir(parents=True)
    (tests / "room" / "test_unit.py").write_text(MARKED)
    (tests / "room" / "helper.py").write_text('@pytest.mark.behaviour("B-1")\ndef test_x(): pass')
    (tests / "test_broken.py").write_text("def (")
    found = book.covered(tests)
    assert sorted(found) == ["A-1", "A-2", "A-3", "A-4", "A-5", "A-9"]
    assert found["A-2"] == [book.Mark("A-2", "tests/room/test_unit.py:6", "test_two")]


def test_counts_and_page() -> None:
    rows = [book.Behaviour("A-1", "BDW", "VF", ""), book.Behaviour("A-2", "BDW", "VF", ""), book.Behaviour("A-3", "KBL", "DP", "")]
    counts = book.count(rows, ["A-2", "Z-9"])
    assert counts == [book.Count("BDW", "VF", 1, 2), book.Count("KBL", "DP", 0, 1)]
    page = book.markdown(counts)
    assert "| VF | 1 | 2 |" in page and "| all | 1 | 3 |" in page


def test_every_mark_names_a_behaviour() -> None:
    unknown = {number: marks for number, marks in book.covered(ROOT / "tests").items() if number not in book.behaviours()}
    assert unknown == {}


def test_the_page_in_docs_is_up_to_date() -> None:
    page = book.markdown(book.count(book.behaviours().values(), book.covered(ROOT / "tests")))
    assert (ROOT / "docs" / "behaviours.md").read_text("utf-8") == page, "run: make docs"


def pytest_on(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest on one test file with this repository's conftest and settings."""
    (folder / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests" / "test_one.py").write_text("import pytest\n" + text)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "SOFTGEN_SHARED": str(folder / "none")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("mark, complaint", [
    ('behaviour("BDW-VF-999")', "there is no behaviour BDW-VF-999"),
    ("behaviour()", "behaviour takes one or more numbers"),
    ("behaviour(1)", "behaviour takes one or more numbers"),
    ("behavior('BDW-VF-01')", "'behavior' not found in `markers`"),
])
def test_a_wrong_mark_fails_collection(tmp_path: Path, mark: str, complaint: str) -> None:
    found = pytest_on(tmp_path, f"@pytest.mark.{mark}\ndef test_x(): pass")
    assert found.returncode not in (0, 1, 5) and complaint in found.stdout + found.stderr


def test_with_several_workers_the_complaint_is_still_one_line(tmp_path: Path) -> None:
    found = pytest_on(tmp_path, '@pytest.mark.behaviour("BDW-VF-999")\ndef test_x(): pass', "-n", "1")
    assert found.returncode == 4 and found.stderr == "ERROR: tests/test_one.py:2: there is no behaviour BDW-VF-999\n\n"


def test_right_marks_pass_and_skips_are_told(tmp_path: Path) -> None:
    text = '''from tests.conftest import needs_shared
@pytest.mark.behaviour("BDW-VF-01")
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
