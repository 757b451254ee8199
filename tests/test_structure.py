"""The structure of the package: no import cycles, one meaning to a class name, files of a readable length."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from softgen.bits import units
from tests.conftest import ROOT
from tests.test_packages import ROOT_PACKAGE, imported

LONGEST_FILE = 400  # lines; STYLE: a file fits in the head


def modules(package: Path) -> dict[str, Path]:
    """Python files by module name."""
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_graph(package: Path) -> dict[str, set[str]]:
    """Modules that each module imports, wherever the import stands: lazy and type-checking ones count too."""
    known, graph = modules(package), defaultdict[str, set[str]](set)
    for name, path in known.items():
        parent = list(path.relative_to(package.parent).parts[:-1])
        for _, target in imported(ast.parse(path.read_text("utf-8")), parent):
            while target and target not in known:
                target = target.rpartition(".")[0]
            if target and target not in (name, package.name):
                graph[name].add(target)
    return graph


def cycles(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """Strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for successor in graph.get(node, ()):
            if successor not in index:
                visit(successor)
            if successor in stack:
                low[node] = min(low[node], low[successor])
        if low[node] == index[node]:
            at = stack.index(node)
            component, stack[at:] = stack[at:], []
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    yield from found


def class_names(package: Path) -> dict[str, list[str]]:
    """Modules that define each class name."""
    found = defaultdict[str, list[str]](list)
    for name, path in sorted(modules(package).items()):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name)
    return found


def test_modules_import_each_other_in_one_direction() -> None:
    assert list(cycles(import_graph(ROOT_PACKAGE))) == []


def test_a_class_name_means_one_thing() -> None:
    assert {name: where for name, where in class_names(ROOT_PACKAGE).items() if len(where) > 1} == {}


def test_files_are_of_a_readable_length() -> None:
    folders = [ROOT / name for name in ("softgen", "bench", "examples", "tools")]
    sources = [path for folder in folders for suffix in ("*.py", "*.c", "*.h") for path in folder.rglob(suffix)]
    written = [path for path in sources if not path.name.endswith("_h.py")]  # those are made of headers
    long = {str(path.relative_to(ROOT)): length for path in written if (length := len(path.read_text("utf-8").splitlines())) > LONGEST_FILE}
    assert long == {}


def test_a_cycle_is_found(tmp_path: Path) -> None:
    package = tmp_path / "softgen"
    (package / "eu").mkdir(parents=True)
    (package / "eu" / "a.py").write_text("from softgen.eu import b")
    (package / "eu" / "b.py").write_text("def late():\n    from softgen.eu.c import d")
    (package / "eu" / "c.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from softgen.eu.a import x")
    (package / "eu" / "e.py").write_text("from softgen.eu import a")
    assert list(cycles(import_graph(package))) == [["softgen.eu.a", "softgen.eu.b", "softgen.eu.c"]]


def test_a_class_name_used_twice_is_found(tmp_path: Path) -> None:
    package = tmp_path / "softgen"
    package.mkdir()
    (package / "a.py").write_text("class Row: ...")
    (package / "b.py").write_text("class Row: ...\nclass Place: ...")
    assert class_names(package) == {"Row": ["softgen.a", "softgen.b"], "Place": ["softgen.b"]}


def test_sizes_that_packages_share_have_one_home() -> None:
    """A second `DWORD` or `GRF_BYTES` would be free to mean another number."""
    shared = {name for name in vars(units) if name.isupper()}
    again = []
    for path in (ROOT / "softgen").rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            again += [f"{path.relative_to(ROOT)}:{node.lineno}: {name}" for name in sorted(names & shared)]
    assert [place for place in again if not place.startswith("softgen/bits/units.py")] == []
