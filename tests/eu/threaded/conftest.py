"""Tests of the reference that are imported here run threaded instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from softgen.cache import Cache
from softgen.eu.interpreter import DEFAULT_BRANCH_BUDGET, Interpreter, RunOutcome
from softgen.eu.threaded import engine, library
from softgen.eu.threaded.engine import drive
from tests.eu.semantics import build, test_examples, test_exceptions


class OnHandlers(Interpreter):
    """An interpreter that does only what handlers leave to it."""

    def run(self, limit: int = DEFAULT_BRANCH_BUDGET) -> RunOutcome:
        return drive(self, limit)


@pytest.fixture
def threaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (test_examples, test_exceptions):
        monkeypatch.setattr(module, "Interpreter", OnHandlers)
    build.CHOSEN.append("t0")
    yield
    build.CHOSEN.pop()


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cache]:
    """Engines without handlers, and an empty cache."""
    cache = Cache(tmp_path / "objects")
    monkeypatch.setattr(engine, "shared", lambda gen: library.Library(gen, cache))
    engine.threaded.cache_clear()
    yield cache
    engine.threaded.cache_clear()
