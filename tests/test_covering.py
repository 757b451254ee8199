"""Cases of parametrised tests that have every value, or every pair of values."""

from __future__ import annotations

import itertools

import pytest

from tests.conftest import covering


@pytest.mark.parametrize(("axes", "strength", "least", "most"), [
    ((5, 3), 1, 5, 6), ((5, 3), 2, 15, 15), ((4, 3, 3), 2, 12, 15), ((7,), 1, 7, 7)])  # fmt: skip
def test_few_cases_have_every_value_or_pair(axes: tuple[int, ...], strength: int, least: int, most: int) -> None:
    cases = list(itertools.product(*map(range, axes)))
    chosen = [cases[number] for number in covering(cases, strength)]
    assert least <= len(chosen) <= most
    for places in itertools.combinations(range(len(axes)), strength if len(axes) > 1 else 1):
        assert {tuple(case[at] for at in places) for case in chosen} == set(itertools.product(*(range(axes[at]) for at in places)))
