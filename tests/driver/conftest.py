"""What tests of one program on a software GPU begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.driver.program import Gpu, Held, served


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def gpu(held: Held) -> Iterator[Gpu]:
    with served("kbl", held) as gpu:
        yield gpu
