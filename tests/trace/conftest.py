"""An AUB file of some bytes, opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgen.trace.aub import AubTrace
from tests.trace.aub_files import Open


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def open_(content: bytes, gpu: str | None = None) -> AubTrace:
        (tmp_path / "t.aub").write_bytes(content)
        return AubTrace(tmp_path / "t.aub", gpu)

    return open_
