"""What all tests share: where outside material is, the behaviour marks, how hard properties are tried.

`SHARED` holds captures, AUB files and oracles that are too large for the repository: the folder `shared` beside the checkout, or
$SOFTGEN_SHARED. Tests that need it say why they were skipped when it is absent:

    from tests.conftest import SHARED, needs_shared
    @needs_shared("traces")
    def test_captures(): … SHARED / "traces" …
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from softgen.inspect.spec import citations
from softgen.inspect.spec.behaviours import behaviours
from softgen.lanes.compile.compile_policy import compile_in_background

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


def witness(case: Any) -> Any:
    """A case of a parametrised test that `make witness` runs, and `make test` does not."""
    if hasattr(case, "marks"):
        return case._replace(marks=(*case.marks, pytest.mark.witness))
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.witness)


def in_ci(cases: Iterable[Any], *named: Any) -> list[Any]:
    """All cases; those that are not named are witnesses."""
    return [case if case in named else witness(case) for case in cases]


def every(step: int, cases: Iterable[Any]) -> list[Any]:
    """All cases; those beside the first and each `step`-th after it are witnesses."""
    return [witness(case) if number % step else case for number, case in enumerate(cases)]


def rows(item: Any) -> list[Any]:
    """What each parametrisation of a test gives to this case: a row of a table is one value. Objects are compared as such."""
    named = [mark.args[0] for mark in item.iter_markers("parametrize")]
    axes = [tuple(names.replace(",", " ").split()) if isinstance(names, str) else tuple(names) for names in named]
    given = {name: value if isinstance(value, str | int | float) else id(value) for name, value in item.callspec.params.items()}
    return [*(tuple(given.pop(name) for name in names) for names in axes), *given.values()]


def covering(cases: Sequence[Sequence[Any]], strength: int) -> list[int]:
    """Numbers of a few cases that have every value of each parameter (strength 1), or every pair of values of two (strength 2)."""
    shows = [set(itertools.combinations(enumerate(case), min(strength, len(case)))) for case in cases]
    chosen: list[int] = []
    left = set().union(*shows)
    while left:
        chosen.append(max(range(len(cases)), key=lambda number: (len(shows[number] & left), -number)))
        left -= shows[chosen[-1]]
    return sorted(chosen)


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
    marked: dict[tuple[Any, ...], list[Any]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and (mark := item.get_closest_marker("covering")):
            marked.setdefault((item.path, item.cls, item.originalname, *mark.args), []).append(item)
    for (*_, strength), cases in marked.items():
        chosen = covering([rows(case) for case in cases], strength)
        for number in set(range(len(cases))) - set(chosen):
            cases[number].add_marker(pytest.mark.witness)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The engine that a test before has chosen decides when functions are compiled, for the whole process."""
    compile_in_background(False)
