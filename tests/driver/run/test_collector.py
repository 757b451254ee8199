"""The garbage collector of the server: full collections leave out what earlier ones have looked at."""

from __future__ import annotations

import gc
import mmap
import weakref
from collections.abc import Iterator

import pytest

from softgen.driver.run import collector as module
from softgen.driver.run.collector import COUNTED_AFTER, SETTLED, Collector


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


@pytest.mark.parametrize("generation", [0, 1])
def test_collections_of_new_objects_freeze_nothing(generation: int) -> None:
    """What survives them may still be garbage soon."""
    Collector().executed()
    gc.collect()
    before, kept = gc.get_freeze_count(), [[number] for number in range(1000)]
    gc.collect(generation)
    assert gc.get_freeze_count() <= before and len(kept) == 1000  # threads of other tests may end


def test_full_collections_are_more_frequent() -> None:
    """And those of new objects as frequent as before."""
    usual = gc.get_threshold()
    Collector().executed()
    new, middle, full = gc.get_threshold()
    assert (new, middle) == usual[:2] and 0 < full < usual[2]


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


def test_frozen_objects_are_counted_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes as long as a collection."""
    counted, count = [], gc.get_freeze_count
    monkeypatch.setattr(module, "resident", lambda: 1 << 30)
    Collector().executed()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or count())  # type: ignore[func-returns-value]
    for _ in range(4 * COUNTED_AFTER):
        gc.collect()
    assert len(counted) == 4


@pytest.mark.parametrize("more, looked_at", [(10_000, False), (1_000_000, True)])
def test_a_few_more_frozen_objects_are_not_looked_at(more: int, looked_at: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """To look at all of them takes as long as a draw: that is done when there are a hundred thousand more, not ten thousand."""
    frozen = gc.get_freeze_count()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen)
    monkeypatch.setattr(module, "resident", lambda: 1 << 30)
    Collector().executed()
    cycle = Cycle()
    found = weakref.ref(cycle)
    for _ in range(COUNTED_AFTER):  # of which the last counts for the first time
        gc.collect()
    del cycle
    frozen += more
    for _ in range(COUNTED_AFTER):
        gc.collect()
    assert (found() is None) is looked_at


@pytest.mark.parametrize("more, looked_at", [(-200 << 20, False), (200 << 20, False), (320 << 20, True)])
def test_a_process_that_has_grown_a_little_is_not_looked_at(more: int, looked_at: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1 << 30
    monkeypatch.setattr(module, "resident", lambda: size)
    Collector().executed()
    cycle = Cycle()
    found = weakref.ref(cycle)
    gc.collect()
    del cycle
    size += more
    gc.collect()
    assert (found() is None) is looked_at


def test_frozen_garbage_is_collected_when_the_process_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draw that was prepared is a few objects, and a megabyte."""
    size = 1 << 30
    trimmed = []
    monkeypatch.setattr(module, "resident", lambda: size)
    monkeypatch.setattr(module, "trim_heap", lambda: trimmed.append(size))
    Collector().executed()
    cycle = Cycle()
    found = weakref.ref(cycle)
    gc.collect()
    del cycle
    gc.collect()
    assert found() is not None, "it is frozen"
    size += module.MOST_GROWN
    gc.collect()
    assert found() is not None and not trimmed, "so much is not too much"
    size += 1
    gc.collect()
    assert found() is None and trimmed == [size]
    looked = [Cycle()]
    found = weakref.ref(looked[0])
    gc.collect()
    looked.clear()
    gc.collect()
    assert found() is not None, "the process has not grown since"


def test_memory_of_the_process_is_counted() -> None:
    before = module.resident()
    held = bytearray(b"x") * (64 << 20)
    assert 60 << 20 < module.resident() - before < 80 << 20 and len(held) == 64 << 20
    del held
    with mmap.mmap(-1, 64 << 20) as shared:  # with others: buffers are, and the budget counts them
        before = module.resident()
        shared[::4096] = b"x" * (len(shared) // 4096)
        assert abs(module.resident() - before) < 16 << 20


def test_freed_memory_is_given_back() -> None:
    """Small pieces, so that the C library does not map each by itself; one of them stays at the end of the heap."""
    held = [bytearray(b"x") * 4096 for _ in range(16384)]
    before = module.resident()
    del held[:-1]
    module.trim_heap()
    assert before - module.resident() > 48 << 20 and len(held) == 1
