"""Spare descriptors: how many are held, lent and taken again."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from softgen.driver import descriptors
from softgen.driver.descriptors import Reserve


class Files:
    """A process that has so many descriptors."""

    def __init__(self, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most, self.held = most, set[int]()
        monkeypatch.setattr(descriptors, "os", SimpleNamespace(**{**vars(os), "open": self.open, "close": self.held.remove}))

    def open(self, path: str, flags: int) -> int:
        assert path == os.devnull and flags == os.O_RDONLY | os.O_CLOEXEC, "a program that is started must not inherit it"
        if len(self.held) >= self.most:
            raise OSError(24, "too many open files")
        number = next(number for number in range(self.most) if number not in self.held)
        self.held.add(number)
        return number


@pytest.mark.parametrize("most, count, held", [(100, 3, 3), (100, 1, 1), (3, 3, 3), (2, 3, 2), (0, 3, 0)])
def test_as_many_are_held_as_can_be_had(most: int, count: int, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(most, monkeypatch)
    reserve = Reserve(count)
    assert len(files.held) == held and sorted(reserve.spare) == sorted(files.held)
    assert reserve.refill() is bool(held) and len(files.held) == held, "those that are there are not taken again"
    reserve.close()
    assert not files.held and not reserve.spare
    reserve.close()


def test_sixteen_are_held_without_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(1000, monkeypatch)
    Reserve()
    assert len(files.held) == 16


@pytest.mark.parametrize("left, again", [(0, 3), (2, 1), (3, 0)])
def test_they_are_lent_and_taken_again(left: int, again: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are free then; the next time perhaps more. An error inside does not lose them."""
    files = Files(3, monkeypatch)
    reserve = Reserve(3)
    with pytest.raises(KeyError), reserve.lent():
        assert not files.held
        kept = [files.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(left)]
        raise KeyError
    assert len(reserve.spare) == again and len(files.held) == 3
    files.held -= set(kept)
    assert reserve.refill() and len(reserve.spare) == 3


@pytest.mark.parametrize("most, few", [(0, True), (10, False)])
def test_a_process_without_a_descriptor_has_few(most: int, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one with which it finds out is closed again."""
    files = Files(most, monkeypatch)
    assert descriptors.few_left() is few and not files.held
