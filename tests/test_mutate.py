"""The tool that puts faults into the semantics: what it changes, what it leaves alone, what it notices; and the tree stays as it is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import mutate
from mutations import compiles, mutations

PIECE = '''"""Says 5 things."""

from __future__ import annotations


def cut(a: int, b: int = 3) -> int:
    """Not 7."""
    if a < b and a:
        return a + 1
    if b == 2:
        raise ValueError(f"{b} is 2")
    assert b != 9
    a = max(a, b)
    return ~a if a >> 2 else floor(a)
'''


def edits(text: str, path: str = "x.py") -> list[str]:
    """What each fault makes of the line it is in."""
    return [mutation.applied().splitlines()[mutation.line - 1].strip() for mutation in mutations(text, path)]


def test_the_faults_of_a_piece() -> None:
    assert edits(PIECE) == [
        "def cut(a: int, b: int = 4) -> int:", "def cut(a: int, b: int = 2) -> int:",
        "if not (a < b and a):", "if False:", "if a <= b and a:", "if a < b or a:",
        "return a - 1", "return a + 2",
        "pass", "a = min(a, b)",
        "return (a) if a >> 2 else floor(a)", "return ~a if not (a >> 2) else floor(a)", "return ~a if a << 2 else floor(a)",
        "return ~a if a >> 3 else floor(a)", "return ~a if a >> 1 else floor(a)", "return ~a if a >> 2 else ceil(a)",
    ]  # fmt: skip


def test_operands_change_places() -> None:
    assert "x = m.select(c, b, a)" in edits("x = m.select(c, a, b)\n")


def test_imports_for_types_are_left_alone() -> None:
    assert edits("if TYPE_CHECKING:\n    import x\n") == []


def test_truth_words_and_comparisons() -> None:
    assert edits('x = op(modular=True, mode="rne")\n') == ["x = op(modular=False, mode=\"rne\")", 'x = op(modular=True, mode="rtz")']
    assert edits("x = a not in b\n") == ["x = a in b"]
    assert edits("x = a is not b\n") == ["x = a is b"]


def test_text_of_the_other_machine_has_faults_and_other_text_has_none() -> None:
    text = 'x = f"{a} = sext i8 {b} to i32"\n'
    assert edits(text, "softgen/lanes/llvm.py") == ['x = f"{a} = zext i8 {b} to i32"']
    assert edits(text, "softgen/eu/semantics/step.py") == []


def test_a_key_does_not_move_with_its_line() -> None:
    first, moved = (mutations(text, "x.py")[-1] for text in ("y = a + b\n", "# more\n\ny = a + b\n"))
    assert first.key == moved.key == "x.py :: y = a + b :: y = a - b" and first.line != moved.line


def test_two_hundred_faults_of_all_files() -> None:
    picked = mutate.chosen(200, 1)
    assert len(picked) == 200 == len({(item.path, item.start, item.end, item.text) for item in picked})
    assert mutate.chosen(9, 1) == mutate.chosen(9, 1) != mutate.chosen(9, 2)
    wanted = {"softgen/eu/semantics/step.py", "softgen/eu/thread/regions.py", "softgen/eu/thread/predicate.py", "softgen/lanes/numpy.py",
              "softgen/lanes/llvm.py", "softgen/eu/semantics/alu.py", "softgen/eu/semantics/control.py"}  # fmt: skip
    assert wanted <= {item.path for item in picked}
    for item in picked[::20]:
        assert compiles(item.applied()) and ast.dump(ast.parse(item.applied())) != ast.dump(ast.parse(item.whole)), item.key


def test_what_changes_nothing_is_still_there() -> None:
    """Every line of equivalent_mutants.txt is about a fault the tool can make today."""
    known = {mutation.key for path in {key.split(" :: ")[0] for key in mutate.equivalents()}
             for mutation in mutations((ROOT / path).read_text("utf-8"), path)}  # fmt: skip
    assert set(mutate.equivalents()) - known == set()


@pytest.mark.parametrize("line", ["x.py :: a :: b", "x.py :: a ## why", "x.py :: a :: b ## "])
def test_a_line_without_its_reason_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "list.txt").write_text(f"# comment\n\n{line}\n")
    with pytest.raises(SystemExit, match=r"list.txt:3: expected"):
        mutate.equivalents(tmp_path / "list.txt")


# -- a whole sweep, of a package of one function -------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "tree"
    (root / "softgen" / "eu" / "semantics").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "tools").mkdir()
    (root / "softgen" / "__init__.py").write_text("")
    (root / "softgen" / "eu" / "__init__.py").write_text("")
    (root / "softgen" / "eu" / "semantics" / "__init__.py").write_text("")
    step = "def step(a, b):\n    return a + b\n\n\ndef other(a, b):\n    return a * b\n"
    (root / "softgen" / "eu" / "semantics" / "step.py").write_text(step)
    test = "from softgen.eu.semantics.step import step\n\n\ndef test_step():\n    assert step(2, 1) == 3\n"
    (root / "tests" / "test_step.py").write_text(test)
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    monkeypatch.setattr(mutate, "ROOT", root)
    monkeypatch.setattr(mutate, "EXECUTION", ("tests/test_step.py",))
    monkeypatch.setattr(mutate, "MACHINES", ())
    monkeypatch.setattr(mutate, "REGIONS", ())
    monkeypatch.setattr(mutate, "AFFINE", ())
    monkeypatch.setattr(mutate, "EQUIVALENT", root / "tools" / "equivalent_mutants.txt")
    return root


def test_a_sweep_tells_caught_from_survived(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in small.rglob("*") if path.is_file()}
    picked, results = mutate.chosen(10, 1), tmp_path / "results.jsonl"
    assert [item.what for item in picked] == ["+ becomes -", "* becomes +"]
    mutate.sweep(picked, results, 2, tmp_path / "benches")
    found = mutate.kept(results)
    assert [found[item.key].caught for item in picked] == [True, False]
    assert found[picked[0].key].how == "FAILED tests/test_step.py::test_step"
    assert mutate.summary(picked, found) == 1
    said = capsys.readouterr().out
    assert "survived: softgen/eu/semantics/step.py:6  * becomes +" in said and "+    return a + b" in said
    assert "2 of 2 faults tried: 1 caught, 0 survived that change nothing, 1 survived; caught 50.0%" in said
    assert {path: path.read_bytes() for path in small.rglob("*") if path.is_file()} == before
    mutate.sweep(picked, results, 2, tmp_path / "never")  # nothing is left to do
    assert not (tmp_path / "never").exists()


def test_a_fault_that_changes_nothing_does_not_count(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                     monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    picked = mutate.chosen(10, 1)
    path = small / "tools" / "equivalent_mutants.txt"
    path.write_text(f"{picked[1].key} ## nobody calls it\n")
    known = mutate.equivalents(path)
    monkeypatch.setattr(mutate, "equivalents", lambda: known)
    results = {item.key: mutate.Result(item.key, item is picked[0], 0.1, "") for item in picked}
    assert mutate.summary(picked, results) == 0 and "caught 100.0%" in capsys.readouterr().out


def test_a_package_is_judged_by_its_own_tests(small: Path, tmp_path: Path) -> None:
    """What tests of another package would notice counts as survived."""
    (small / "softgen" / "memory").mkdir()
    (small / "softgen" / "memory" / "add.py").write_text("def add(a, b):\n    return a + b\n\n\ndef more(a):\n    return a * 2\n")
    (small / "tests" / "memory").mkdir()
    own = "from softgen.memory.add import add\n\n\ndef test():\n    assert add(2, 1) == 3\n"
    (small / "tests" / "memory" / "test_add.py").write_text(own)
    (small / "tests" / "test_other.py").write_text("from softgen.memory.add import more\n\n\ndef test():\n    assert more(2) == 4\n")
    assert mutate.packages() == ["memory"]
    picked, results = mutate.chosen(10, 1, package="memory"), tmp_path / "results.jsonl"
    assert {item.path for item in picked} == {"softgen/memory/add.py"} and len(picked) > 2
    mutate.sweep(picked, results, 1, tmp_path / "benches", "memory")
    found = mutate.kept(results)
    assert {item.line: found[item.key].caught for item in picked} == {2: True, 6: False}
    assert mutate.order("softgen/memory/add.py", "memory") == [("tests/memory/test_add.py",), ("tests/memory",)]
    assert mutate.order("softgen/memory/none.py", "memory") == [("tests/memory",)]


def test_every_package_with_tests_can_be_chosen() -> None:
    assert {"bits", "memory", "surface", "streamer", "eu", "lanes", "trace", "driver", "inspect", "gpgpu"} <= set(mutate.packages())


def test_tests_that_fail_anyway_are_no_witness(small: Path, tmp_path: Path) -> None:
    (small / "tests" / "test_step.py").write_text("def test_step():\n    assert False\n")
    with pytest.raises(SystemExit, match="the tests fail without a fault"):
        mutate.sweep(mutate.chosen(1, 1), tmp_path / "results.jsonl", 1, tmp_path / "benches")


def test_a_fault_that_hangs_is_caught(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate, "SECONDS", 3)
    text = "def step(a, b):\n    while a == 0:\n        pass\n    return a + b\n"
    (small / "softgen" / "eu" / "semantics" / "step.py").write_text(text)
    fault = next(fault for fault in mutations(text, "softgen/eu/semantics/step.py") if "!=" in fault.text)
    result, _ = mutate.Bench(tmp_path / "bench").test(fault)
    assert result.caught and result.how == "timeout"


def test_the_command_lists_faults() -> None:
    command = [sys.executable, str(ROOT / "tools" / "mutate.py"), "--list", "--count", "3", "--file", "softgen/eu/thread/predicate.py"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(found) == 3 and all("softgen/eu/thread/predicate.py:" in line for line in found)
