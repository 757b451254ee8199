"""The pictures of README.md are what the tools show."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.witness
def test_the_pictures_are_what_the_tools_show(tmp_path: Path) -> None:
    runpy.run_path(str(ROOT / "tools/tool_pictures.py"))["write"](tmp_path)
    pictures = {path.name: path.read_text() for path in (ROOT / "docs/pictures").iterdir()}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == pictures and len(pictures) == 3
