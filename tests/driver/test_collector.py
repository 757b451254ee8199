"""The garbage collector of the server: full collections leave out what earlier ones have looked at."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from softgen.driver import collector as module
from softgen.driver.collector import COUNTED_AFTER, SETTLED, Collector


@pytest.fixture(autouse=True)
def usual_collections() -> Iterator[None]:
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.unfreeze()


def test_what_the_first_submissions_leave_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    collector, frozen = Collector(), []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(collector.submissions))
    gc.disable()
    try:
        for _ in range(2 * SETTLED[-1]):
            collector.executed()
    finally:
        gc.enable()
    assert tuple(frozen) == SETTLED


def test_full_collections_do_not_look_at_it() -> None:
    """The objects that the collector looks at are those made since."""
    Collector().executed()
    assert gc.get_freeze_count() > 1000 and len(gc.get_objects()) < gc.get_freeze_count()


def test_what_survives_a_full_collection_is_frozen() -> None:
    Collector().executed()
    kept = [[number] for number in range(5000)]
    gc.collect()
    assert len(gc.get_objects()) < len(kept), "the next one looks at fewer objects"


class Cycle:
    """An object that reference counts do not free."""

    def __init__(self) -> None:
        self.itself = self


def test_frozen_garbage_is_collected_when_there_are_many_frozen_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FROZEN", 2000)
    Collector().executed()
    cycle = Cycle()
    found = weakref.ref(cycle)
    gc.collect()
    del cycle
    for _ in range(COUNTED_AFTER):
        gc.collect()
    assert found() is not None, "it is frozen, and few objects are"
    kept = [[number] for number in range(5000)]
    for _ in range(COUNTED_AFTER):
        gc.collect()
    assert found() is None and len(kept) == 5000
