"""Docstrings are contracts: every module has one, a package says what goes in and out, and what a module *Reads* exists on a spec page."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from softgen.bits import catalogue
from tests.conftest import ROOT

PACKAGE = ROOT / "softgen"
DIVIDED = ("three_d", "threads", "lanes", "driver", "inspect")  # packages whose modules are in rooms
READS = re.compile(r"^Reads {2,}(?P<names>.*(?:\n {2,}\S.*)*)", re.MULTILINE)
NAME = re.compile(r"^[A-Z0-9][A-Z0-9_]+$")


def reads(docstring: str) -> list[str]:
    """The names after `Reads`, also on indented lines below it; the manual's names are in capitals, other words are prose."""
    found = READS.search(docstring)
    return [word for word in found["names"].split() if NAME.match(word)] if found else []


def contracts(package: Path = PACKAGE) -> Iterator[tuple[str, str]]:
    for path in sorted(package.rglob("*.py")):
        for name in reads(ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""):
            yield f"{path.relative_to(package.parent)}", name


def test_what_modules_read_exists_in_spec() -> None:
    known = set(catalogue.names())
    assert [f"{path}: Reads {name}, which no page describes" for path, name in contracts() if name not in known] == []


def test_every_module_opens_with_its_contract() -> None:
    bare = [path for path in PACKAGE.rglob("*.py") if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert bare == []


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""


def test_every_package_says_what_goes_in_and_out() -> None:
    for path in PACKAGE.glob("*/__init__.py"):
        text = docstring(path)
        assert re.search(r"^In:? ", text, re.MULTILINE) and re.search(r"(^|\. )Out:? ", text, re.MULTILINE), path


def test_packages_and_their_rooms_name_their_files() -> None:
    rooms = [path for package in DIVIDED for path in PACKAGE.glob(f"{package}/*/__init__.py")]
    for path in [*PACKAGE.glob("*/__init__.py"), *rooms]:
        if path.parent.name == "cli":
            continue  # one module per verb
        text = docstring(path)
        here = [re.sub(r"_h\.py$", ".h", file.name) for file in path.parent.glob("*.py") if file.name != "__init__.py"]
        here += [f"{room.name}/" for room in path.parent.iterdir() if path.parent.name in DIVIDED and (room / "__init__.py").exists()]
        assert [name for name in here if name not in text] == [], f"{path} does not say what these are"
        gone = [name for name in re.findall(r"^([\w/]+(?:\.py|\.c|/))\s", text, re.MULTILINE) if not (path.parent / name).exists()]
        assert gone == [], f"{path} names files that do not exist"


def test_names_are_found_in_a_docstring(tmp_path: Path) -> None:
    text = '"""Vertex fetch.\n\nReads   3DSTATE_VF and 3DPRIMITIVE\n        MI_NOOP\nWrites  one URB entry\n"""\n'
    (tmp_path / "softgen").mkdir()
    (tmp_path / "softgen" / "vertex_fetch.py").write_text(text)
    assert list(contracts(tmp_path / "softgen")) == [("softgen/vertex_fetch.py", name) for name in ("3DSTATE_VF", "3DPRIMITIVE", "MI_NOOP")]


def test_prose_that_begins_with_reads_is_no_list() -> None:
    assert reads("A page.\n\nReads the URB, then stops.") == []
