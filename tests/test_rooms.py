"""The rooms are a one-way street: a room may import only rooms below it, however the import is written."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "softgen"
ROOMS = ["errors", "spec", "bits", "lanes", "memory", "surface", "shared_functions", "eu", "threads", "command",
         "media", "three_d", "gpgpu", "codec", "blitter",
         "streamer", "device", "driver", "trace", "inspect", "api"]        # lowest first
PEERS = [{"three_d", "media", "codec", "blitter"}, {"three_d", "gpgpu", "codec", "blitter"}, {"driver", "trace"}]    # no imports between
DOORS = {"__init__": {"api", "errors"}, "__main__": {"inspect"}}                # files beside the rooms, and what they may open


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


def allowed(room: str, other: str) -> bool:
    if room in DOORS:
        return other in DOORS[room]
    return other == room or other in ROOMS[:ROOMS.index(room)] and not any({room, other} <= peers for peers in PEERS)


def street(package: Path = PACKAGE) -> Iterator[str]:
    """A line for every import that goes up or sideways, and for every file that stands in no room."""
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package.parent)
        room = inside.parts[1].removesuffix(".py")
        if room not in ROOMS and room not in DOORS:
            yield f"{inside}: {room} is not a room"
            continue
        for line, name in imported(ast.parse(path.read_text("utf-8"), str(path)), list(inside.parts[:-1])):
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            if top == package.name and other and not other.startswith("__") and not allowed(room, other):
                yield f"{inside}:{line}: {room} may not import {other}"


def test_rooms_import_downwards() -> None:
    assert PACKAGE.is_dir()
    assert list(street()) == []


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
    room = tmp_path / "softgen" / "shared_functions"
    room.mkdir(parents=True)
    (room / "spawner.py").write_text(text)
    line = text.count("\n") + 1
    assert list(street(tmp_path / "softgen")) == [f"softgen/shared_functions/spawner.py:{line}: shared_functions may not import eu"]


def test_peers_may_not_know_each_other(tmp_path: Path) -> None:
    (tmp_path / "softgen" / "media").mkdir(parents=True)
    (tmp_path / "softgen" / "media" / "walker.py").write_text("from softgen.three_d import clip")
    (tmp_path / "softgen" / "trace.py").write_text("import softgen.driver")
    assert list(street(tmp_path / "softgen")) == ["softgen/media/walker.py:1: media may not import three_d",
                                                  "softgen/trace.py:1: trace may not import driver"]


def test_a_file_outside_the_rooms_is_reported(tmp_path: Path) -> None:
    (tmp_path / "softgen").mkdir()
    (tmp_path / "softgen" / "helpers.py").write_text("")
    (tmp_path / "softgen" / "__init__.py").write_text("from softgen.bits import layout")
    assert list(street(tmp_path / "softgen")) == ["softgen/__init__.py:1: __init__ may not import bits",
                                                  "softgen/helpers.py: helpers is not a room"]


@pytest.mark.parametrize("text", ["from softgen.bits import layout", "from . import urb", "from .urb import Urb", "import numpy",
                                  "from softgen import __version__", "from ..memory import store", "import softgen"])
def test_an_import_downwards_is_fine(tmp_path: Path, text: str) -> None:
    (tmp_path / "softgen" / "shared_functions").mkdir(parents=True)
    (tmp_path / "softgen" / "shared_functions" / "spawner.py").write_text(text)
    assert list(street(tmp_path / "softgen")) == []
