"""The furniture: versions that agree, documents that match the tree, commands that exist."""

import argparse
import importlib
import os
import re
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from softgen.inspect.cli.main import EXAMPLES, VERBS
from softgen.inspect.machine import LIBRARIES
from tests.conftest import ROOT
from tests.test_packages import PACKAGES

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def pins() -> dict[str, str]:
    lines = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+", line) for line in lines if line), "constraints.txt has exact versions only"
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def wanted() -> list[Requirement]:
    project = PROJECT["project"]
    optional = project["optional-dependencies"]
    extras = [text for name in ("dev", "farm", "fuzz", "mutate") for text in optional[name]]
    texts = [*project["dependencies"], *extras, *PROJECT["build-system"]["requires"]]
    return [Requirement(text) for text in texts]


def test_pins_are_inside_the_ranges() -> None:
    for item in wanted():
        assert item.specifier.contains(pins()[canonicalize_name(item.name)]), item


def test_doctor_looks_for_every_library_softgen_needs() -> None:
    assert list(LIBRARIES) == [Requirement(text).name for text in PROJECT["project"]["dependencies"]]


def test_each_dependency_has_its_reason() -> None:
    lines = (ROOT / "pyproject.toml").read_text("utf-8").splitlines()
    for item in wanted():
        line = next(line for line in lines if f'"{item.name}>' in line)
        assert re.search(r"# \w.{10,}", line), f"{item.name}: why?"


def test_everything_that_comes_in_through_others_is_pinned() -> None:
    seen: set[str] = set()
    queue = [item.name for item in wanted()]
    while queue:
        name = canonicalize_name(queue.pop())
        if name in seen:
            continue
        seen.add(name)
        try:
            needs = [Requirement(text) for text in metadata.requires(name) or []]
        except metadata.PackageNotFoundError:
            continue                                    # not installed here, so nothing to follow
        queue += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    assert seen == set(pins())


def test_architecture_names_every_package_and_whether_it_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    said = dict(re.findall(r"^\*\*`(\w+)`\*\* \((exists|not yet)", page, re.MULTILINE))
    assert list(said) == PACKAGES
    package = ROOT / "softgen"
    there = {name for name in PACKAGES if (package / f"{name}.py").is_file() or name == "spec" or any((package / name).rglob("*.py"))}
    assert {name for name, state in said.items() if state == "exists"} == there


def test_architecture_names_every_verb_and_no_module_that_is_gone() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    inspect = page[page.index("**`inspect`**") : page.index("**`api`**")]
    assert [name for name in re.findall(r"`(\w+)`", inspect) if name != "inspect"] == list(VERBS)
    for name in re.findall(r"`(?:[\w/]+/)?(\w+\.(?:py|c|toml|md))`", page):
        assert any(ROOT.rglob(name)), f"architecture.md names {name}"


def test_architecture_draws_every_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    picture = page.split("```")[1]
    assert set(PACKAGES) - {"inspect", "api", "command"} <= set(re.findall(r"(\w+)(?:/|\.py)", picture))


def test_readme_marks_the_packages_that_do_not_exist() -> None:
    picture = next(block for block in (ROOT / "README.md").read_text("utf-8").split("```") if "inspect/" in block)
    marked = set(re.findall(r"· (\w+)/", picture))
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert marked == set(re.findall(r"^\*\*`(\w+)`\*\* \(not yet", page, re.MULTILINE))
    assert set(re.findall(r"(\w+)/", picture)) == set(PACKAGES) - {"errors", "cache", "library", "command", "position"}


def test_documents_show_only_verbs_that_exist() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), ROOT / "examples" / "tour.py"]:
        for verb in re.findall(r"(?:^ {2,}|`|bin/)softgen (\w+)", page.read_text("utf-8"), re.MULTILINE):
            assert verb in VERBS, f"{page.name} shows softgen {verb}"


def options(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a verb and of its commands."""
    found = set()
    for action in parser._actions:
        found |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            found |= {option for command in action.choices.values() for option in options(command)}
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_documents_show_only_options_that_exist(verb: str) -> None:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    importlib.import_module(f"softgen.inspect.cli.{verb}").add(subparsers)
    known = options(subparsers.choices[verb])
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for shown in re.findall(rf"softgen {verb} ([^|`\n]*?)(?: -- |   |[|`\n]|$)", document.read_text("utf-8")):
            assert set(re.findall(r"(?<!\S)--[a-z][a-z-]+", shown)) <= known, f"{document.name}: softgen {verb} {shown}"


def test_links_between_documents_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
    for target in re.findall(r"tests/data/[\w-]+", (ROOT / "README.md").read_text("utf-8") + EXAMPLES):
        assert (ROOT / target).exists(), target


@pytest.mark.skipif(not shutil.which("make"), reason="make is absent")
@pytest.mark.parametrize("target", ["demo", "test", "lint", "bench", "witness", "fuzz", "mutate", "docs", "clean", "setup"])
def test_make_knows_its_targets(target: str) -> None:
    """A dry run parses the Makefile and finds the target; nothing is executed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    found = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert found.returncode == 0, found.stderr


def test_continuous_integration_calls_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK) and "\nmake test\n" in script.read_text("utf-8") and "set -euo pipefail" in script.read_text("utf-8")


def set_up_with(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    """Runs tools/setup with nothing on the PATH but a python of our making and the few tools it calls before it installs something."""
    (folder / "python3").write_text(f"#!/bin/bash\n{python}\n")
    (folder / "python3").chmod(0o755)
    for tool in ("bash", "id"):
        (folder / tool).symlink_to(str(shutil.which(tool)))
    return subprocess.run([ROOT / "tools" / "setup", "python3", str(folder / "venv")], capture_output=True, text=True, check=False,
                          env={"PATH": str(folder), "DRIVERS": "skip"})


def test_setup_names_the_missing_package_and_leaves_the_system_alone(tmp_path: Path) -> None:
    found = set_up_with(tmp_path, 'case "$*" in *ensurepip*) exit 1;; esac; exit 0')
    assert found.returncode == 1 and "install yourself: python3-venv" in found.stderr
    assert not (tmp_path / "venv").exists()


def test_setup_refuses_an_old_python(tmp_path: Path) -> None:
    found = set_up_with(tmp_path, 'if [ "$1" = -V ]; then echo Python 3.9.2; exit 0; fi; exit 1')
    assert found.returncode == 1 and "Python 3.9.2; softgen needs Python 3.11 or later" in found.stderr
