"""The code in the documents runs, and prints what they say."""

from __future__ import annotations

import doctest
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from softgen.bits import page
from softgen.bits.field_type import BASES, TYPES
from softgen.bits.page.lines import EFFECTS, OPTIONS
from tests import notebooks
from tests.conftest import ROOT

DOCS = ROOT / "docs"


@pytest.fixture
def at_root() -> Iterator[None]:
    """Documents name files from the root of the repository."""
    before = os.getcwd()
    os.chdir(ROOT)
    yield
    os.chdir(before)


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize("name, least", [("lanes.md", 25), ("python.md", 20), ("pages.md", 4)])
def test_examples_run(name: str, least: int) -> None:
    found = doctest.testfile(str(DOCS / name), module_relative=False)
    assert found.failed == 0 and found.attempted >= least


@pytest.mark.usefixtures("at_root")
def test_the_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[  0   1   7   2   5   8")


def shown(book: Any) -> list[str]:
    """The text of every output; HTML and pictures say the same."""
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    return ["".join(output.get("text") or output["data"]["text/plain"]) for output in outputs]


@pytest.mark.parametrize("path", notebooks.notebooks(), ids=lambda path: path.stem)
def test_notebooks_run_and_show_what_they_did(path: Path) -> None:
    """`python -m tests.notebooks` saves new outputs."""
    saved, fresh = nbformat.read(path, as_version=4), notebooks.execute(path)
    assert shown(fresh) == shown(saved) and len(shown(saved)) > 5


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in notebooks.notebooks()] == ["capture", "debugger", "kernel"]


def layouts(text: str) -> list[str]:
    return re.findall(r"```layout\n(.*?)```", text, re.DOTALL)


def test_pages_of_the_grammar_are_read() -> None:
    blocks = layouts((DOCS / "pages.md").read_text("utf-8"))
    read = [page.read(f"example {number}", block) for number, block in enumerate(blocks)]
    assert len(blocks) == 4
    command = read[0]["3DSTATE_EXAMPLE", 9.0]
    assert (command.dwords, command.field("kernel_start_pointer").high) == (5, 95) and read[0]["3DSTATE_EXAMPLE", 7.0].dwords == 4
    state = read[1]["EXAMPLE_STATE", 8.0]
    assert state.field("split_value").pieces == ((79, 76), (67, 64)) and dict(state.field("mode").type.values) == {0: "fast", 1: "slow"}
    assert "color_as_u8" not in {field.name for field in read[1]["EXAMPLE_STATE", 7.0].fields}
    listed = read[3]["EXAMPLE_LIST", 11.0]
    assert listed.groups[0].count is None and listed.derived == (("size", "end - start + 1"),)
    assert read[3]["EXAMPLE_RING_HEAD", 9.0].relative


def test_an_enumeration_of_the_grammar_is_read() -> None:
    block = layouts((DOCS / "pages.md").read_text("utf-8"))[2]
    (section,) = page.sections("example", block)
    assert page.enumeration(section)[7.0] == {0: "always", 1: "never"} and page.enumeration(section)[8.0][5] == "greater"


def test_the_grammar_names_every_type_base_kind_engine_and_option() -> None:
    text = (DOCS / "pages.md").read_text("utf-8")
    words = set(re.findall(r"[a-z_0-9]+", text))
    for name in {*TYPES, *BASES, *page.KINDS, *page.ENGINES, *OPTIONS, *EFFECTS, "fixed"} - {"uint", "-"}:
        assert name in words, f"docs/pages.md does not name {name}"
