"""Executes notebooks in this process, without a Jupyter kernel: `python -m tests.notebooks` runs those of docs/notebooks and saves outputs.

A cell's output is what it prints and, as in Jupyter, the value of its last expression: text, and HTML or PNG where the object has it.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import nbformat

from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "notebooks"


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: Path) -> Any:
    """The notebook with fresh outputs. An exception in a cell is raised here."""
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    names: dict[str, Any] = {"__name__": "__main__"}
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        for number, cell in enumerate((cell for cell in book.cells if cell.cell_type == "code"), 1):
            cell.execution_count, cell.outputs = number, list(run_cell(cell.source, names, f"{path.name}, cell {number}", number))
    finally:
        os.chdir(before)
    return book


def run_cell(source: str, names: dict[str, Any], place: str, number: int) -> list[Any]:
    tree = ast.parse(source, place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, place, "exec"), names)
        value = eval(compile(ast.Expression(last.value), place, "eval"), names) if isinstance(last, ast.Expr) else None
    outputs = [nbformat.v4.new_output("stream", name="stdout", text=printed.getvalue())] if printed.getvalue() else []
    if value is not None:
        outputs.append(nbformat.v4.new_output("execute_result", data=display(value), execution_count=number))
    return outputs


def display(value: Any) -> dict[str, str]:
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(value._repr_png_()).decode("ascii")
    return data


def main() -> int:
    for path in notebooks():
        nbformat.write(execute(path), path)
        print(f"{path.relative_to(ROOT)}: executed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
