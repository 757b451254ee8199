"""IR is written in lanes/ and nowhere else: other packages say what code does with the operations of a machine."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "softgen"
# Words of LLVM's language that no sentence or other format has.
IR = re.compile(r"getelementptr|insertelement|extractelement|shufflevector|insertvalue|extractvalue|\bicmp\b|\bfcmp\b|\bbr i1\b"
                r"|\bbr label\b|inttoptr|ptrtoint|\balloca\b|musttail|atomicrmw|cmpxchg|\bphi (?:ptr|i\d)|@?llvm\.\w+\."
                r"|\b(?:zext|sext|trunc|bitcast) [<i]|(?:load|store) (?:volatile )?(?:i\d|ptr|<)")
WRITING = {"emit", "line", "intrinsic", "place", "define"}     # methods of LlvmText that take IR


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """String constants, those inside f-strings too, without docstrings."""
    documentation = {id(node.body[0].value) for node in ast.walk(tree)
                     if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body and isinstance(node.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


def calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Calls that write IR text: `ir.emit(…)`, `self.m.ir.line(…)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITING:
            owner = ast.unparse(node.func.value)
            if owner == "ir" or owner.endswith(".ir"):
                yield node.lineno, ast.unparse(node.func)


def written(path: Path) -> list[str]:
    tree = ast.parse(path.read_text("utf-8"), str(path))
    found = [(line, text) for line, text in texts(tree) if IR.search(text)]
    return [f"{path.name}:{line}: {text[:60]!r}" for line, text in [*found, *calls(tree)]]


def test_ir_is_written_in_lanes_alone() -> None:
    others = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "lanes"]
    assert len(others) > 200
    assert [item for path in others for item in written(path)] == []


def test_lanes_do_write_ir() -> None:
    """What the search looks for is there."""
    assert len([item for path in (PACKAGE / "lanes" / "llvm").glob("*.py") for item in written(path)]) > 100


@pytest.mark.parametrize("text", [
    "m.ir.emit('add i32 1, 2')", "x = f'getelementptr i8, ptr {p}, i64 4'", "self.m.ir.line(text)", "y = 'br i1 %a, label %b, label %c'",
    "z = f'load i64, ptr {p}'", "z = 'store <8 x i32> %a, ptr %b'",
])
def test_ir_elsewhere_is_found(tmp_path: Path, text: str) -> None:
    (tmp_path / "one.py").write_text(text)
    assert len(written(tmp_path / "one.py")) == 1


@pytest.mark.parametrize("text", ["'''A load of i32 by getelementptr.'''", "words = 'load the store'", "line(1)", "out.emit(2)"])
def test_other_words_are_fine(tmp_path: Path, text: str) -> None:
    (tmp_path / "one.py").write_text(text)
    assert written(tmp_path / "one.py") == []
