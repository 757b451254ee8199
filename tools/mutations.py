"""Small faults that a piece of Python can have, found in its syntax tree: a list of edits, each of a few characters.

What is said to people (raise, assert, messages, documentation) and what says types is left alone.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from types import CodeType

COMPARISONS: dict[type[ast.cmpop], str] = {ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
                                           ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is"}  # fmt: skip
OPERATORS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.FloorDiv: "*", ast.Mod: "//", ast.LShift: ">>",
                                            ast.RShift: "<<", ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "|", ast.Pow: "*",
                                            ast.Div: "*"}  # fmt: skip
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&",
         ast.BitOr: "|", ast.BitXor: "^", ast.Pow: "**", ast.Div: "/"}  # fmt: skip
NAMES = {"floor": "ceil", "ceil": "floor", "trunc": "floor", "round_even": "floor", "any": "all", "all": "any", "min": "max", "max": "min",
         "add": "sub", "sub": "add", "leading_zeros": "trailing_zeros", "trailing_zeros": "leading_zeros", "jip": "uip", "uip": "jip",
         "is_nan": "is_inf", "is_inf": "is_nan", "divide_int": "remainder_int", "i8": "u8", "u8": "i8", "i16": "u16", "u16": "i16",
         "i32": "u32", "u32": "i32", "i64": "u64", "u64": "i64", "f16": "f32", "Z": "NZ", "NZ": "Z", "G": "GE", "GE": "G", "L": "LE",
         "LE": "L"}  # fmt: skip
WORDS = {"rne": "rtz", "rtz": "rne", "ru": "rd", "rd": "ru", "any": "all", "all": "any", "d": "w", "w": "d", "ud": "d", "f": "hf", "q": "d",
         "sext": "zext", "zext": "sext", "ashr": "lshr", "lshr": "ashr", "sdiv": "udiv", "udiv": "sdiv", "slt": "sle", "sgt": "sge",
         "ult": "ule", "add": "sub", "sub": "add", "and": "or", "or": "and", "min": "max", "max": "min"}  # fmt: skip
IR = {"sext": "zext", "zext": "sext", "ashr": "lshr", "lshr": "ashr", "sdiv": "udiv", "udiv": "sdiv", "srem": "urem", "urem": "srem",
      "slt": "sle", "sle": "slt", "sgt": "sge", "sge": "sgt", "ult": "ule", "ule": "ult", "ugt": "uge", "uge": "ugt", "eq": "ne",
      "ne": "eq", "oeq": "ueq", "une": "one", "olt": "ole", "ole": "olt", "ogt": "oge", "oge": "ogt", "add": "sub", "sub": "add",
      "fadd": "fsub", "fsub": "fadd", "fmul": "fadd", "and": "or", "or": "and", "xor": "or", "true": "false", "false": "true",
      "fptosi": "fptoui", "fptoui": "fptosi", "sitofp": "uitofp", "uitofp": "sitofp", "ctlz": "cttz", "cttz": "ctlz",
      "shl": "lshr"}  # fmt: skip
SWAPPED = frozenset({"select", "sub", "div", "shift_left", "shift_right", "copysign", "divide_int", "remainder_int", "concat", "where"})
QUIET = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.AnnAssign)


@dataclass(frozen=True)
class Mutation:
    """An edit: the characters of a file from `start` to `end` become `text`."""

    path: str
    line: int
    column: int
    start: int
    end: int
    text: str
    what: str
    key: str  # the line before and after, which stays the same when other lines move
    whole: str = field(repr=False, compare=False)  # the file it was found in
    turn: int = 0  # of those with the same key in a file

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.key} :: {self.turn}" if self.turn else self.key

    def applied(self) -> str:
        return self.whole[: self.start] + self.text + self.whole[self.end :]


class Finder:
    """Collects the edits of one file."""

    def __init__(self, whole: str, path: str) -> None:
        self.whole, self.path, self.found = whole, path, list[Mutation]()
        self.starts = [0]
        for line in whole.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = whole.splitlines()

    def offset(self, line: int, column: int) -> int:
        """Columns of a tree count bytes."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return self.starts[line - 1] + len(text.encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def source(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.whole[start:end]

    def add(self, line: int, start: int, end: int, text: str, what: str) -> None:
        first, last = self.starts[line - 1], self.whole.find("\n", end)
        begin = self.whole.rfind("\n", 0, start) + 1
        last = len(self.whole) if last < 0 else last
        before, after = self.whole[begin:last], self.whole[begin:start] + text + self.whole[end:last]
        key = f"{self.path} :: {' '.join(before.split())} :: {' '.join(after.split())}"
        self.found.append(Mutation(self.path, line, start - first, start, end, text, what, key, self.whole))

    def replace(self, node: ast.expr | ast.stmt, text: str, what: str) -> None:
        self.add(node.lineno, *self.span(node), text, what)

    def between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """The operator that stands between two operands."""
        start, end = self.span(left)[1], self.span(right)[0]
        at = self.whole.find(old, start, end)
        if at >= 0:
            line = self.whole.count("\n", 0, at) + 1
            self.add(line, at, at + len(old), new, f"{old} becomes {new}")

    # -- the tree --------------------------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, QUIET) or self._is_said(node):
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                self.visit(node.value)
            return
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is not None:
            method(node)
        for child in _children(node):
            self.visit(child)

    def _is_said(self, node: ast.AST) -> bool:
        """Documentation, calls that only make an error, and what a protocol describes."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return True
        if isinstance(node, ast.ClassDef):
            return any("Protocol" in self.source(base) for base in node.bases)
        if isinstance(node, ast.Assign):
            return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
        return isinstance(node, ast.FunctionDef) and node.name in ("__repr__", "__str__")

    def _Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for index, op in enumerate(node.ops):
            old = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in", ast.NotIn: "not in",
                   ast.Is: "is", ast.IsNot: "is not"}[type(op)]  # fmt: skip
            self.between(operands[index], operands[index + 1], old, COMPARISONS[type(op)])

    def _BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return
        if type(node.op) in OPERATORS:
            self.between(node.left, node.right, SIGNS[type(node.op)], OPERATORS[type(node.op)])

    def _AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATORS and isinstance(node.target, ast.Name | ast.Attribute | ast.Subscript):
            self.between(node.target, node.value, f"{SIGNS[type(node.op)]}=", f"{OPERATORS[type(node.op)]}=")

    def _BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self.between(node.values[0], node.values[1], old, new)

    def _UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.Invert | ast.USub) and not isinstance(node.operand, ast.Constant):
            inner = self.source(node.operand)
            self.replace(node, f"({inner})", f"{self.source(node)[:20]} without its {type(node.op).__name__}")

    def _Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.replace(node, str(not value), f"{value} becomes {not value}")
        elif isinstance(value, int):
            self.replace(node, str(value + 1), f"{value} becomes {value + 1}")
            if value > 1:
                self.replace(node, str(value - 1), f"{value} becomes {value - 1}")
        elif isinstance(value, float):
            self.replace(node, repr(value + 1.0), f"{value} becomes {value + 1.0}")
        elif isinstance(value, str) and self.source(node)[0] in "\"'":
            known = {**WORDS, **IR} if "llvm" in self.path else WORDS
            if value in known:
                self.replace(node, f'"{known[value]}"', f"{value} becomes {known[value]}")

    def _JoinedStr(self, node: ast.JoinedStr) -> None:
        """Text of the other machine's language has faults too; other text is for people."""
        if "llvm" not in self.path:
            return
        start, end = self.span(node)
        for found in re.finditer(rf"\b({'|'.join(IR)})\b", self.whole[start:end]):
            word = found[0]
            line = self.whole.count("\n", 0, start + found.start()) + 1
            self.add(line, start + found.start(), start + found.end(), IR[word], f"{word} becomes {IR[word]}")

    def _Name(self, node: ast.Name) -> None:
        if node.id in NAMES and isinstance(node.ctx, ast.Load):
            self.replace(node, NAMES[node.id], f"{node.id} becomes {NAMES[node.id]}")

    def _Attribute(self, node: ast.Attribute) -> None:
        if node.attr in NAMES and isinstance(node.ctx, ast.Load):
            end = self.span(node)[1]
            self.add(node.lineno, end - len(node.attr), end, NAMES[node.attr], f"{node.attr} becomes {NAMES[node.attr]}")

    def _Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        if name in SWAPPED and len(node.args) >= 2 and not any(isinstance(arg, ast.Starred) for arg in node.args):
            a, b = node.args[-2:]
            (start, middle), (later, end) = self.span(a), self.span(b)
            text = self.source(b) + self.whole[middle:later] + self.source(a)
            if self.source(a) != self.source(b):
                self.add(a.lineno, start, end, text, f"{name}: the last two operands change places")

    def _If(self, node: ast.If) -> None:
        if self._only_raises(node.body) or self.source(node.test) == "TYPE_CHECKING":  # never true when it runs
            return
        self.replace(node.test, f"not ({self.source(node.test)})", "the condition is inverted")
        self.replace(node.test, "False", "the branch is dropped")

    def _IfExp(self, node: ast.IfExp) -> None:
        self.replace(node.test, f"not ({self.source(node.test)})", "the condition is inverted")

    def _Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.replace(node, "pass", f"{self.source(node)[:40]} is dropped")

    def _Assign(self, node: ast.Assign) -> None:
        """A name that gets a new value keeps its old one."""
        target = node.targets[0]
        if isinstance(target, ast.Name) and any(isinstance(part, ast.Name) and part.id == target.id for part in ast.walk(node.value)):
            self.replace(node, "pass", f"{target.id} keeps its value")

    def _only_raises(self, body: list[ast.stmt]) -> bool:
        return all(isinstance(statement, ast.Raise) for statement in body)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What is below a node, without annotations, without decorators that only remember, and without the strict=True of a zip."""
    if isinstance(node, ast.FunctionDef):
        yield from (decorator for decorator in node.decorator_list if not _remembers(decorator))
        yield from node.args.defaults
        yield from node.body
    elif isinstance(node, ast.If) and all(isinstance(statement, ast.Raise) for statement in node.body):
        yield from node.orelse
    elif isinstance(node, ast.ClassDef):
        yield from node.body
    elif isinstance(node, ast.Call):
        yield from (child for child in ast.iter_child_nodes(node) if not (_is_strict(child) and _calls_zip(node)))
    elif isinstance(node, ast.JoinedStr):  # in Python 3.11 what is inside does not know where it stands
        return
    else:
        yield from ast.iter_child_nodes(node)


def _calls_zip(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "zip"


def _is_strict(node: ast.AST) -> bool:
    """strict=True of a zip: both sides have one length by construction, so that strict=False would change nothing."""
    return isinstance(node, ast.keyword) and node.arg == "strict" and isinstance(node.value, ast.Constant) and node.value.value is True


def _remembers(node: ast.expr) -> bool:
    found = node.func if isinstance(node, ast.Call) else node
    return isinstance(found, ast.Name) and found.id in ("lru_cache", "cache", "cached_property", "dataclass", "property")


@cache
def mutations(whole: str, path: str) -> list[Mutation]:
    """Every fault there is, in the order of the file. A few leave no program behind, or the same: see `changes`."""
    finder = Finder(whole, path)
    finder.visit(ast.parse(whole))
    found: dict[tuple[int, int, str], Mutation] = {}
    for mutation in finder.found:
        found.setdefault((mutation.start, mutation.end, mutation.text), mutation)
    seen, numbered = Counter[str](), list[Mutation]()
    for mutation in sorted(found.values(), key=lambda mutation: (mutation.start, mutation.end)):
        numbered.append(replace(mutation, turn=seen[mutation.key]))
        seen[mutation.key] += 1
    return numbered


def changes(mutation: Mutation) -> bool:
    """Whether a fault leaves a program behind, and another one than without it: 1 << 0 and 1 >> 0 are the same number."""
    try:
        return _compiled(mutation.applied()) != _compiled(mutation.whole)
    except SyntaxError:
        return False


@lru_cache(64)
def _compiled(text: str) -> CodeType:
    return compile(text, "", "exec", dont_inherit=True)
