"""Damaged sources, tables and state of encoders: encoding ends, touches nothing that is not mapped, and does the same each time."""

from __future__ import annotations

import pytest

from tests.codec.pak.record import DATA, clips
from tests.codec.test_hostile import outcome

ROUNDS = 2


@pytest.mark.parametrize("name", clips())
@pytest.mark.parametrize("is_state", [False, True])
def test_damaged_pictures_are_refused_or_encoded_alike(name: str, is_state: bool) -> None:
    """Each submission ends, or is refused in words: any other exception, or a crash, fails here."""
    for seed in range(ROUNDS):
        first = outcome(str(DATA / name), seed, (0.002, 0.03)[seed % 2], is_state)
        assert outcome(str(DATA / name), seed, (0.002, 0.03)[seed % 2], is_state) == first
