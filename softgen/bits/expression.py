"""Derived values: checks of the expressions that pages compute from fields."""

from __future__ import annotations

import ast
from collections.abc import Mapping

ALLOWED = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv,
           ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.USub)  # fmt: skip


def check_expression(expression: str, known: Mapping[str, int]) -> str:
    """'' when a derived expression is sound; otherwise what is wrong with it. `known`: how many bits each name may have."""
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"cannot read expression {expression!r}"
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED) or isinstance(node, ast.Constant) and type(node.value) is not int:
            return f"expression {expression!r} may use + - * // << >> & | ( ), whole numbers and fields"
        if isinstance(node, ast.Name) and node.id not in known:
            return f"expression names no field: {node.id!r}"
        if isinstance(node, ast.BinOp) and not _amount(node, known):
            return f"expression {expression!r} may shift by numbers below 64 and fields of at most 6 bits, and divide by numbers above 0"
    return ""


def _amount(node: ast.BinOp, known: Mapping[str, int]) -> bool:
    """Whether any value on the right keeps the result small and the division possible."""
    match node.op, node.right:
        case ast.FloorDiv(), right:
            return isinstance(right, ast.Constant) and right.value != 0
        case ast.LShift() | ast.RShift(), ast.Constant(value=int(amount)):
            return 0 <= amount < 64
        case ast.LShift() | ast.RShift(), right:
            return isinstance(right, ast.Name) and (right.id not in known or known[right.id] <= 6)
    return True
