"""Citations of behaviours, read out of tests that are never run."""

from pathlib import Path

import pytest

from softgen.inspect.spec import citations
from softgen.inspect.spec.citations import Citation
from tests.conftest import ROOT

MARKED = '''
import pytest
from pytest import mark
pytestmark = [pytest.mark.slow, pytest.mark.behaviour("A-1", shows="action")]

@pytest.mark.behaviour("A-2", "A-3", shows="layout")
def test_two(): pass

class TestRoom:
    @mark.behaviour("A-4", shows="action")
    def test_inside(self): pass

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.behaviour("A-5", shows="action"))])
def test_parameter(x): pass

@pytest.mark.behaviour("A-6", shows="action")
def helper(): pass

@other.behaviour("A-7", shows="action")
def test_not_a_mark(): pass

@pytest.mark.xfail
@pytest.mark.behaviour("A-8", shows="action")
def test_fails(): pass

@pytest.mark.witness
@pytest.mark.behaviour("A-8", shows="action")
def test_long(): pass

@pytest.mark.skipif(True, reason="x")
@pytest.mark.behaviour("A-9")
def test_sometimes(): pass
'''


def test_citations_are_found_without_running(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    (tests / "room").mkdir(parents=True)
    (tests / "room" / "test_unit.py").write_text(MARKED)
    (tests / "room" / "helper.py").write_text('@pytest.mark.behaviour("B-1", shows="action")\ndef test_x(): pass')
    (tests / "test_broken.py").write_text("def (")
    found = citations.read(tests)
    assert sorted(found) == ["A-1", "A-2", "A-3", "A-4", "A-5", "A-9"]
    assert found["A-2"] == [Citation("A-2", "tests/room/test_unit.py:6", "test_two", "layout", False)]
    assert found["A-9"][0].shows == "" and found["A-4"][0].shows == "action"


HEAD = "from tests.conftest import SHARED, needs_shared\nfrom tests.room.helper import capture, number\n"
HELPER = "from tests.conftest import SHARED\nPLACE = SHARED / 'traces'\ndef capture(): return PLACE.read_bytes()\ndef number(): return 5\n"
MARK = '@pytest.mark.behaviour("A-1", shows="action")\n'


@pytest.mark.parametrize(("text", "needs"), [
    (MARK + "def test_x(): assert number() == 5", False),
    (MARK + "@needs_shared('traces')\ndef test_x(): pass", True),
    ("pytestmark = needs_shared('manuals')\n" + MARK + "def test_x(): pass", True),
    (MARK + "def test_x(shared): pass", True),
    (MARK + "def test_x():\n    shared = 1\n    assert shared", False),
    ("def shared(): return 1\n" + MARK + "def test_x(): assert shared()", False),
    ("FILES = sorted(SHARED.glob('*'))\n@pytest.mark.parametrize('file', FILES)\n" + MARK + "def test_x(file): pass", True),
    ("def read(): return open(SHARED / 'x')\n@pytest.fixture\ndef trace(): return read()\n" + MARK + "def test_x(trace): pass", True),
    (MARK + "def test_x(): capture()", True),
    (MARK + "def test_x(): x.capture()", False),
])  # fmt: skip
def test_outside_material_is_noticed_through_helpers_and_fixtures(tmp_path: Path, text: str, needs: bool) -> None:
    tests = tmp_path / "tests"
    (tests / "room").mkdir(parents=True)
    (tests / "room" / "helper.py").write_text(HELPER)
    (tests / "room" / "test_unit.py").write_text(HEAD + text)
    assert [record.needs_shared for record in citations.read(tests)["A-1"]] == [needs]


def test_tests_of_the_manuals_text_need_it() -> None:
    """ICL-CTX-12 is cited by a test of the printed manual, which needs it, and by one of an engine, which does not."""
    needs = {record.place.partition(":")[0]: record.needs_shared for record in citations.read(ROOT / "tests")["ICL-CTX-12"]}
    assert needs == {"tests/oracles/test_contexts.py": True, "tests/device/test_engines.py": False}


def test_every_citation_says_what_it_shows() -> None:
    assert [citation for cited in citations.read(ROOT / "tests").values() for citation in cited if citations.wrong(citation.shows)] == []
