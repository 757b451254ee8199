"""Generation numbers live in spec/ and bits/: elsewhere code asks for a capability or is chosen from a named table.

Found by reading the syntax tree, not by running: comparisons (also `in` and `match`) of a generation or of a GPU's name with
something written out, and dictionaries keyed by generation numbers that are not a table with a name of its own (STAGES).
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "softgen"
EXEMPT = ("spec", "bits")
GENERATION = re.compile(r"^(gen|generation|number|gfx_?ver|ver|verx10|gfx_?verx10|gen_?number|generation_number|gen_?x10)$", re.IGNORECASE)
NAMED_NUMBER = re.compile(r"^(GEN|GFX)_?\d")                # a constant that is a generation in disguise
GPUS = {"gm965", "g45", "g41", "ivb", "hsw", "bdw", "skl", "kbl", "icl", "icllp"}
HALVES = {4.5, 7.5}                                         # numbers that are nothing but generations
TABLE = re.compile(r"^[A-Z][A-Z0-9_]*$")


def is_generation(node: ast.expr) -> bool:
    """gen, self.gen, device.generation.number; also int(gen), float(gen), gen * 10."""
    if isinstance(node, ast.Name):
        return bool(GENERATION.match(node.id)) and node.id not in ("number", "NUMBER")      # a bare `number` is any number
    if isinstance(node, ast.Attribute):
        return bool(GENERATION.match(node.attr))
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in ("int", "float", "str", "round") and any(is_generation(arg) for arg in node.args)
    if isinstance(node, ast.BinOp):
        return is_generation(node.left) or is_generation(node.right)
    return isinstance(node, ast.NamedExpr) and is_generation(node.value)


def is_written_out(node: ast.AST) -> bool:
    """A number, a string that is one, or a constant named after a generation, anywhere inside."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and not isinstance(part.value, bool):
            if isinstance(part.value, int | float) or isinstance(part.value, str) and re.fullmatch(r"(gen)?\d+(\.\d+)?\+?", part.value):
                return True
        if isinstance(part, ast.Name | ast.Attribute) and NAMED_NUMBER.match(part.id if isinstance(part, ast.Name) else part.attr):
            return True
    return False


def names_a_gpu(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Constant) and part.value in GPUS for part in ast.walk(node) if isinstance(part, ast.Constant))


def compares(node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    if any(names_a_gpu(side) for side in sides):
        return True
    return any(map(is_generation, sides)) and any(is_written_out(side) for side in sides if not is_generation(side))


def matches(node: ast.Match) -> bool:
    patterns = [case.pattern for case in node.cases]
    if any(names_a_gpu(pattern) for pattern in patterns):
        return True
    return is_generation(node.subject) and any(is_written_out(pattern) for pattern in patterns)


def keyed(node: ast.Dict) -> bool:
    """All keys numbers, and among them one that can only be a generation."""
    keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, int | float)]
    return len(keys) == len(node.keys) and bool(HALVES & set(keys))


def picks(node: ast.AST) -> bool:
    """{…}[gen], (…)[gen >= …], {…}.get(gen): a choice by number written in place."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Dict) and is_generation(node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return isinstance(node.func.value, ast.Dict) and bool(node.args) and is_generation(node.args[0])
    return False


def tables(tree: ast.Module) -> set[int]:
    """The dictionaries that are tables: assigned to a capital name at the top of a module or class."""
    found: set[int] = set()
    for body in [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef))]:
        for node in body:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            if any(isinstance(target, ast.Name) and TABLE.match(target.id) for target in targets):
                found |= {id(part) for part in ast.walk(node) if isinstance(part, ast.Dict)}
    return found


def offences(text: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(text)
    marked = tables(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and compares(node) or isinstance(node, ast.Match) and matches(node):
            yield node.lineno, "a generation is compared; ask for a capability"
        elif isinstance(node, ast.Dict) and id(node) not in marked and keyed(node):
            yield node.lineno, "a dictionary is keyed by generation; make it a table with a capital name, or a capability"
        elif picks(node):
            yield getattr(node, "lineno", 0), "something is picked by generation in place; make it a table with a capital name"


def found_in(package: Path = PACKAGE) -> list[str]:
    return [f"{path.relative_to(package.parent)}:{line}: {what}"
            for path in sorted(package.rglob("*.py")) if path.relative_to(package).parts[0] not in EXEMPT
            for line, what in offences(path.read_text("utf-8"))]


def test_no_generation_is_compared_outside_spec_tables() -> None:
    assert PACKAGE.is_dir()
    assert found_in() == []


@pytest.mark.parametrize("text", [
    "if gen >= 8: pass",
    "if self.gen == 7.5: pass",
    "x = device.generation.number < 9",
    "x = 7 <= gen <= 9",
    "x = gen in (7, 7.5)",
    "x = generation not in {8}",
    "x = gen in range(7, 9)",
    "x = 'old' if dev.gfx_ver < 6 else 'new'",
    "x = ver == '7.5'",
    "x = int(gen) == 7",
    "x = gen * 10 >= 75",
    "x = (g := device.gen) > 8",
    "x = gen >= GEN8",
    "x = device.name == 'g45'",
    "x = name in ('skl', 'kbl')",
    "match gen:\n    case 8: pass",
    "match device.generation.number:\n    case 7 | 7.5: pass",
    "match device.name:\n    case 'icl': pass",
    "x = {7: 1, 7.5: 2, 8: 3}",
    "def f(gen):\n    return {7: 1, 8: 2}[gen]",
    "def f(gen):\n    return {7: 1, 8: 2}.get(gen, 0)",
    "def f():\n    SIZES = {4.5: 1, 7: 2}",
])
def test_a_planted_comparison_is_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "softgen" / "streamer").mkdir(parents=True)
    (tmp_path / "softgen" / "streamer" / "ring.py").write_text(text)
    assert len(found_in(tmp_path / "softgen")) >= 1
    for package in EXEMPT:
        (tmp_path / "softgen" / "streamer").rename(tmp_path / "softgen" / package)
        assert found_in(tmp_path / "softgen") == []
        (tmp_path / "softgen" / package).rename(tmp_path / "softgen" / "streamer")


@pytest.mark.parametrize("text", [
    "STAGES = {'4.5': 1, '7+': 2}",
    "SIZES: dict[float, int] = {4.5: 1, 7: 2}",
    "x = device.generation.address_bits == 48",
    "x = layout.gen == record.gen",
    "x = round(found.generation.number * 10) != record.gen",
    "x = {0: 'a', 1: 'b'}",
    "x = catalogue.layout(name, gen)",
    "x = length > 8",
    "x = SIZES[gen]",
    "for number in lines:\n    if number == 3: pass",
    "x = gen is None",
])
def test_what_is_allowed_stays_allowed(text: str) -> None:
    assert list(offences(text)) == []
