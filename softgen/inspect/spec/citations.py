"""Citations of behaviours in the tests, read from the source without running anything.

A citation is `pytest.mark.behaviour("ID", …, shows="action")` on a test, a test class, a test module or a parameter. `shows` says what
the test proves: an action that softgen carries out, or only the layout in which bits stand. Tests that skip where `../shared` is absent
are distinguished: what they reach, through fixtures and helpers of their own and of other test modules, is followed to `SHARED`,
`needs_shared` or the fixture `shared` of tests/conftest.py.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SHOWS = ("action", "layout")
IDLE = re.compile(r"\bmark\.(xfail|skip|witness)\b")      # a test that fails, or does not run unless asked for, shows nothing
OUTSIDE = {"SHARED", "needs_shared", "shared"}    # names of tests/conftest.py behind which the outside material is
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Citation(NamedTuple):
    """One mention of a behaviour in the tests."""

    id: str
    place: str              # file:line
    test: str
    shows: str              # "action" or "layout"; anything else is a mistake
    needs_shared: bool


def wrong(shows: object) -> str | None:
    """What is wrong with the value of `shows`; None if nothing is."""
    if shows in SHOWS:
        return None
    return 'behaviour must say shows="action" or shows="layout"' + (f", not {shows!r}" if shows else "")


def read(folder: Path) -> dict[str, list[Citation]]:
    """Id -> its citations under the folder, also ids that no list has. A file that does not parse is left to pytest to report."""
    found: dict[str, list[Citation]] = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        tree = parsed(path) if b"behaviour" in path.read_bytes() else None      # most cite nothing
        if tree is not None:
            for citation in Module(path, folder).citations(tree):
                found[citation.id].append(citation)
    return dict(found)


@cache
def parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text("utf-8"), str(path))
    except (SyntaxError, ValueError, OSError):
        return None


class Module:
    """One module of tests: its definitions, and which of them need outside material."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path, folder
        self.place = path.relative_to(folder.parent).as_posix()
        self.definitions, self.imports = definitions(path)

    def citations(self, tree: ast.Module) -> Iterator[Citation]:
        marks = [statement.value for statement in tree.body if isinstance(statement, ast.Assign) and "pytestmark" in targets(statement)]
        everywhere = any(self.reaches(mark, set()) for mark in marks)
        yield from (Citation(*rest, everywhere) for rest in self.named(marks, ""))
        for node in ast.walk(tree):
            if not isinstance(node, Function) or not node.name.lower().startswith("test"):
                continue
            cited = list(self.named(node.decorator_list, node.name))
            if cited and not any(IDLE.search(ast.unparse(decorator)) for decorator in node.decorator_list):
                needs_shared = everywhere or self.reaches(node, {node.name})
                yield from (Citation(*rest, needs_shared) for rest in cited)

    def named(self, expressions: Iterable[ast.expr], test: str) -> Iterator[tuple[str, str, str, str]]:
        """Id, place, test and `shows` of `….mark.behaviour` anywhere inside: decorators, lists of marks, `pytest.param(…, marks=…)`."""
        for call in (node for expression in expressions for node in ast.walk(expression)):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "behaviour"):
                continue
            if ast.unparse(call.func.value).split(".")[-1] != "mark":
                continue
            shows = next((ast.unparse(word.value).strip("'\"") for word in call.keywords if word.arg == "shows"), "")
            for argument in call.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value, f"{self.place}:{call.lineno}", test, shows

    def reaches(self, node: ast.AST, seen: set[str]) -> bool:
        """Whether the node, or a definition that it uses, names the outside material."""
        for name in names(node) - seen:
            seen.add(name)
            if name in OUTSIDE and name not in self.definitions:
                return True
            if any(self.reaches(definition, seen) for definition in self.definitions.get(name, ())):
                return True
            if name in self.imports and self.imported(*self.imports[name]):
                return True
        return False

    def imported(self, module: str, name: str) -> bool:
        path = self.folder.parent.joinpath(*module.split(".")).with_suffix(".py")
        return path != self.path and path.stem != "conftest" and needs_shared(path, self.folder, name)


@cache
def needs_shared(path: Path, folder: Path, name: str) -> bool:
    """Whether a definition of a module of helpers reaches the outside material."""
    module = Module(path, folder)
    return any(module.reaches(definition, {name}) for definition in module.definitions.get(name, ()))


@cache
def definitions(path: Path) -> tuple[dict[str, list[ast.AST]], dict[str, tuple[str, str]]]:
    """Top-level names -> what defines them, and names imported from tests -> module and name there."""
    found: dict[str, list[ast.AST]] = defaultdict(list)
    imports: dict[str, tuple[str, str]] = {}
    tree = parsed(path)
    for statement in tree.body if tree else ():
        if isinstance(statement, Function):
            found[statement.name].append(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            for name in targets(statement):
                found[name].append(statement)
        elif isinstance(statement, ast.ImportFrom) and (statement.module or "").split(".")[0] == "tests":
            imports |= {alias.asname or alias.name: (statement.module or "", alias.name) for alias in statement.names}
    return dict(found), imports


def targets(statement: ast.Assign | ast.AnnAssign) -> set[str]:
    assigned = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {node.id for target in assigned for node in ast.walk(target) if isinstance(node, ast.Name)}


def names(node: ast.AST) -> set[str]:
    """Names a definition uses: what it reads, and its parameters, which may be fixtures. Names that it sets itself are its own."""
    used: set[str] = set()
    own: set[str] = set()
    parameters: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            (used if isinstance(inner.ctx, ast.Load) else own).add(inner.id)
        elif isinstance(inner, ast.arg):
            parameters.add(inner.arg)
    return used - own | parameters if isinstance(node, Function) else used
