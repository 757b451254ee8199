"""Layering: a package under softgen/ imports only packages below it, however the import is written."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

ROOT_PACKAGE = ROOT / "softgen"
PACKAGES = ["errors", "position", "cache", "library", "spec", "bits", "lanes", "memory", "surface", "shared_functions", "eu", "threads",
            "command", "media", "three_d", "gpgpu", "codec", "enhance", "blitter",
            "streamer", "device", "driver", "trace", "inspect", "api"]        # lowest first
PEERS = [{"three_d", "media", "codec", "blitter"}, {"three_d", "gpgpu", "codec", "blitter"},
         {"three_d", "media", "enhance", "blitter"}, {"gpgpu", "enhance"}, {"driver", "trace"}]    # no imports between
TOP_LEVEL = {"__init__": {"api", "errors"}, "__main__": {"inspect"}}  # files beside the packages, and what they may import
MADE = {"latches_h", "walk_h"}  # made of a header beside the packages; anybody may import it


def absolute(node: ast.ImportFrom, package: list[str]) -> str:
    """The full name of the module a `from` names; `package` is where the file stands."""
    if not node.level:
        return node.module or ""
    base = package[:len(package) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def imported(tree: ast.Module, package: list[str]) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported: statements, and importlib with a name written out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node, package)
            yield from ((node.lineno, f"{module}.{alias.name}" if module else alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            yield from ((node.lineno, arg.value) for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str))


def allowed(package: str, other: str) -> bool:
    if package in TOP_LEVEL:
        return other in TOP_LEVEL[package]
    if other in {package, *MADE}:
        return True
    return other in PACKAGES[:PACKAGES.index(package)] and not any({package, other} <= peers for peers in PEERS)


def violations(root: Path = ROOT_PACKAGE) -> Iterator[str]:
    """A line for every import upwards or sideways, and for every file that is in none of the packages."""
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root.parent)
        package = inside.parts[1].removesuffix(".py")
        if package in MADE:
            continue
        if package not in PACKAGES and package not in TOP_LEVEL:
            yield f"{inside}: {package} is not a package"
            continue
        for line, name in imported(ast.parse(path.read_text("utf-8"), str(path)), list(inside.parts[:-1])):
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            if top == root.name and other and not other.startswith("__") and not allowed(package, other):
                yield f"{inside}:{line}: {package} may not import {other}"


def test_packages_import_downwards() -> None:
    assert ROOT_PACKAGE.is_dir()
    assert list(violations()) == []


UPWARDS = [
    "from softgen.eu import thread",
    "from softgen import eu",
    "import softgen.eu",
    "import softgen.eu.thread as t",
    "from ..eu import thread",
    "from .. import eu",
    "from ..eu.thread import run",
    "import importlib\nimportlib.import_module('softgen.eu.thread.state')",
    "def late():\n    from softgen.eu import thread",
]


@pytest.mark.parametrize("text", UPWARDS)
def test_an_import_upwards_is_reported(tmp_path: Path, text: str) -> None:
    package = tmp_path / "softgen" / "shared_functions"
    package.mkdir(parents=True)
    (package / "spawner.py").write_text(text)
    line = text.count("\n") + 1
    assert list(violations(tmp_path / "softgen")) == [f"softgen/shared_functions/spawner.py:{line}: shared_functions may not import eu"]


def test_peers_may_not_know_each_other(tmp_path: Path) -> None:
    (tmp_path / "softgen" / "media").mkdir(parents=True)
    (tmp_path / "softgen" / "media" / "walker.py").write_text("from softgen.three_d import clip")
    (tmp_path / "softgen" / "trace.py").write_text("import softgen.driver")
    assert list(violations(tmp_path / "softgen")) == ["softgen/media/walker.py:1: media may not import three_d",
                                                  "softgen/trace.py:1: trace may not import driver"]


def test_a_file_outside_the_packages_is_reported(tmp_path: Path) -> None:
    (tmp_path / "softgen").mkdir()
    (tmp_path / "softgen" / "helpers.py").write_text("")
    (tmp_path / "softgen" / "__init__.py").write_text("from softgen.bits import layout")
    assert list(violations(tmp_path / "softgen")) == ["softgen/__init__.py:1: __init__ may not import bits",
                                                  "softgen/helpers.py: helpers is not a package"]


@pytest.mark.parametrize("text", ["from softgen.bits import layout", "from . import urb", "from .urb import Urb", "import numpy",
                                  "from softgen import __version__", "from ..memory import store", "import softgen"])
def test_an_import_downwards_is_fine(tmp_path: Path, text: str) -> None:
    (tmp_path / "softgen" / "shared_functions").mkdir(parents=True)
    (tmp_path / "softgen" / "shared_functions" / "spawner.py").write_text(text)
    assert list(violations(tmp_path / "softgen")) == []
