"""`import softgen` is cheap, and its lazy names are complete."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import softgen
from softgen import api
from tests.conftest import ROOT

BUDGET = 0.05  # seconds, of DESIGN section 13


def test_import_is_cheap_and_without_numpy() -> None:
    code = ("import sys, time; t = time.process_time(); import softgen; took = time.process_time() - t; "
            "print(took, *(name for name in ('numpy', 'llvmlite', 'PIL', 'rich', 'yaml') if name in sys.modules))")  # fmt: skip
    best, heavy = 1.0, []
    for _ in range(3):
        took, *heavy = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
        best = min(best, float(took))
    assert best < BUDGET and heavy == []


@pytest.mark.parametrize("name", softgen.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(softgen, name) is not None and name in dir(softgen)


def test_no_module_imports_the_spec_folder_as_a_package() -> None:
    """It would take the place of softgen.spec(), the function."""
    named = [path for path in (ROOT / "softgen").rglob("*.py") if '"softgen.spec' in path.read_text("utf-8")]
    assert named == [] and not isinstance(softgen.spec, type(softgen))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Gpus'"):
        _ = softgen.Gpus  # type: ignore[attr-defined]


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((ROOT / "softgen" / "__init__.py").read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(softgen.__all__) - {"__version__"}
    assert set(api.__all__) == set(softgen._API)


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "softgen" / "py.typed").is_file()
