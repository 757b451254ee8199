"""Batches that were executed as prepared ones, for tests."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.streamer.execute import Streamer


@pytest.fixture
def prepared_runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batches that were executed as prepared ones, by their addresses."""
    found: list[int] = []
    run = Streamer._run_prepared

    def counted(self: Streamer, place: Any, batch: Any) -> None:
        found.append(place.start)
        run(self, place, batch)

    monkeypatch.setattr(Streamer, "_run_prepared", counted)
    return found
