"""The garbage collector of the server: full collections leave out what the first submissions left."""

from __future__ import annotations

import gc

import pytest

from softgen.driver.collector import SETTLED, Collector


def test_what_the_first_submissions_leave_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    collector, frozen = Collector(), []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(collector.submissions))
    for _ in range(2 * SETTLED[-1]):
        collector.executed()
    assert tuple(frozen) == SETTLED


def test_full_collections_do_not_look_at_it() -> None:
    """The objects that the collector looks at are those made since."""
    try:
        Collector().executed()
        assert gc.get_freeze_count() > 1000 and len(gc.get_objects()) < gc.get_freeze_count()
    finally:
        gc.unfreeze()
