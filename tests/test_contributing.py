"""The recipes of CONTRIBUTING.md, followed: each is applied to a copy of the package, and its commands are run there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)(?: (append|check))?(?: ?(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPES = dict(re.findall(r"^## (Add an? \w+)\n(.*?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL))


VERBS = {"softgen": f"{sys.executable} -m softgen ", "python": f"{sys.executable} "}
PARTS = ("softgen", "tests/data/kbl-vk-tri", "tools", "setup.py")  # of the tree, that recipes are applied to

BUILT = f"build/lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"  # where setup.py looks for what it need not build again


def apply(folder: Path, language: str, verb: str, name: str, text: str) -> None:
    """Do what a block says: append to a file, replace lines of it, run Python, or run commands and look for their output."""
    if verb == "append":
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(text)
    elif language == "diff":
        old, new = ("".join(f"{line[1:]}\n" for line in text.splitlines() if line[0] == sign) for sign in "-+")
        held = (folder / name).read_text("utf-8")
        assert held.count(old) == 1, f"{name}: {old!r}"
        (folder / name).write_text(held.replace(old, new), "utf-8")
    elif verb == "check":
        run(folder, [sys.executable, "-c", text])
    elif language == "console":
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            shown = run(folder, ["sh", "-c", re.sub(r"(^|\| )(softgen|python) ", lambda verb: verb[1] + VERBS[verb[2]], command)])
            for line in expected.splitlines():
                assert re.search(r"\s+".join(map(re.escape, line.split())), shown), f"{command}: {line!r} is not in\n{shown}"
    else:
        raise AssertionError(f"a block of {language} {verb} {name} has no meaning")


def run(folder: Path, command: list[str]) -> str:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_there_is_a_recipe_for_each() -> None:
    assert list(RECIPES) == ["Add a GPU", "Add a generation", "Add a command", "Add an opcode", "Add a message", "Add a stage"]


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_works(title: str, tmp_path: Path) -> None:
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / part, tmp_path / part)
    for library in (ROOT / "softgen").rglob("*.so"):
        into = tmp_path / BUILT / library.relative_to(ROOT)
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library, into)
    blocks = BLOCK.findall(RECIPES[title])
    assert len(blocks) >= 2 and any(language == "console" or verb == "check" for language, verb, _, _ in blocks)
    for language, verb, name, text in blocks:
        apply(tmp_path, language, verb, name, text)


def test_a_broken_recipe_fails(tmp_path: Path) -> None:
    (tmp_path / "softgen").mkdir()
    with pytest.raises(AssertionError, match="is not in"):
        apply(tmp_path, "console", "", "", "$ echo 1\n2\n")
