"""What all tests share: where outside material is, the behaviour marks, how hard properties are tried.

`SHARED` holds captures, AUB files and oracles that are too large for the repository: the folder `shared` beside the checkout, or
$SOFTGEN_SHARED. Tests that need it say why they were skipped when it is absent:

    from tests.conftest import SHARED, needs_shared
    @needs_shared("traces")
    def test_captures(): … SHARED / "traces" …
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from softgen.inspect.spec import citations
from softgen.inspect.spec.behaviours import behaviours
from softgen.lanes.compile.mode import compile_in_background

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("SOFTGEN_SHARED", ROOT.parent / "shared"))

# A busy machine is no failure. Continuous integration tries the same examples each time; people and nights try new ones.
PATIENT: Any = {"deadline": None, "print_blob": True, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("quick", max_examples=30, derandomize="CI" in os.environ, **PATIENT)
hypothesis.settings.register_profile("night", max_examples=2000, **PATIENT)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def needs_shared(part: str = "") -> pytest.MarkDecorator:
    """Skips, with the missing folder's name as the reason, where the outside material is absent."""
    return pytest.mark.skipif(not (SHARED / part).exists(), reason=f"outside material is absent: shared/{part}".rstrip("/"))


@pytest.fixture
def shared() -> Path:
    """The folder of outside material; a test that asks for it is skipped where there is none."""
    if not SHARED.is_dir():
        pytest.skip("outside material is absent: shared")
    return SHARED


def wrong_marks(items: list[pytest.Item]) -> list[str]:
    """A line for each mark that is not a plain list of behaviours and what the test shows of them."""
    known, wrong = behaviours(), []
    for item in items:
        for mark in item.iter_markers("behaviour"):
            ids = [arg for arg in mark.args if isinstance(arg, str)]
            if not ids or len(ids) != len(mark.args) or set(mark.kwargs) - {"shows"}:
                wrong.append(f"{item.nodeid}: behaviour takes one or more numbers such as \"BDW-VF-01\", not {mark.args or mark.kwargs}")
            elif complaint := citations.wrong(mark.kwargs.get("shows")):
                wrong.append(f"{item.nodeid}: {complaint}")
            wrong += [f"{item.nodeid}: there is no behaviour {behaviour}" for behaviour in ids if behaviour not in known]
    return wrong


def pytest_configure(config: pytest.Config) -> None:
    """With several workers only they collect, and what they refuse reads badly; so the marks are checked here, before they start."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        cited = [item for found in citations.read(Path(__file__).parent).values() for item in found]
        wrong = [f"{citation.place}: there is no behaviour {citation.id}" for citation in cited if citation.id not in behaviours()]
        wrong += [f"{citation.place}: {complaint}" for citation in cited if (complaint := citations.wrong(citation.shows))]
        if wrong:
            raise pytest.UsageError(*wrong)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    wrong = wrong_marks(items)
    if wrong:
        raise pytest.UsageError(*wrong)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The engine that a test before has chosen decides when functions are compiled, for the whole process."""
    compile_in_background(False)
