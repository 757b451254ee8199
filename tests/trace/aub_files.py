"""AUB files that tests write: opened, their first work, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from softgen.errors import DecodeError
from softgen.trace.aub import AubTrace
from softgen.trace.work import Work
from tests.trace import aub_bytes as a
from tests.trace.aub_bytes import BATCH, dwords

RING = dwords(0x18800101, *a.address(BATCH), 0)
Open = Callable[..., AubTrace]


def first(trace: AubTrace) -> Work:
    return next(trace.work())


def complaint(opened: Open, content: bytes, gpu: str | None = None) -> str:
    with pytest.raises(DecodeError) as error:
        list(opened(content, gpu).events())
    return str(error.value).partition("t.aub")[2]
