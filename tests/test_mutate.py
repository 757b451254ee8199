"""The tool that puts faults into the semantics: what it changes, what it leaves alone, what it notices; and the tree stays as it is."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))

import coverage_map
import fault_bench
import mutate
from coverage_map import CoverageMap, Part, TimedTest
from mutations import mutations

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
    assert edits("x = m.select(c, a, a)\n") == []  # nothing would change


def test_imports_for_types_are_left_alone() -> None:
    assert edits("if TYPE_CHECKING:\n    import x\n") == []


def test_a_zip_of_equal_lengths_stays_strict() -> None:
    assert edits("x = zip(a, b + c, strict=True)\n") == ["x = zip(a, b - c, strict=True)"]
    assert edits("x = zip(a, b, strict=False)\n") == ["x = zip(a, b, strict=True)"]
    assert edits("x = unzip(a, strict=True)\ny = zip(a, other=True)\n") == ["x = unzip(a, strict=False)", "y = zip(a, other=False)"]


def test_truth_words_and_comparisons() -> None:
    assert edits('x = op(modular=True, mode="rne")\n') == ["x = op(modular=False, mode=\"rne\")", 'x = op(modular=True, mode="rtz")']
    assert edits("x = a not in b\n") == ["x = a in b"]
    assert edits("x = a is not b\n") == ["x = a is b"]


def test_text_of_the_other_machine_has_faults_and_other_text_has_none() -> None:
    text = 'x = f"{a} = sext i8 {b} to i32"\n'
    assert edits(text, "softgen/lanes/llvm/machine.py") == ['x = f"{a} = zext i8 {b} to i32"']
    assert edits(text, "softgen/eu/semantics/step.py") == []


def test_a_key_does_not_move_with_its_line() -> None:
    first, moved = (mutations(text, "x.py")[-1] for text in ("y = a + b\n", "# more\n\ny = a + b\n"))
    assert first.key == moved.key == "x.py :: y = a + b :: y = a - b" and first.line != moved.line


def test_two_hundred_faults_of_all_files() -> None:
    picked = mutate.chosen(200, 1)
    assert len(picked) == 200 == len({(item.path, item.start, item.end, item.text) for item in picked})
    assert mutate.chosen(9, 1) == mutate.chosen(9, 1) != mutate.chosen(9, 2)
    wanted = {"softgen/eu/semantics/step.py", "softgen/eu/thread/regions.py", "softgen/eu/thread/predicate.py",
              "softgen/lanes/numpy/machine.py", "softgen/lanes/llvm/machine.py", "softgen/eu/semantics/alu.py",
              "softgen/eu/semantics/control.py"}  # fmt: skip
    assert wanted <= {item.path for item in picked}
    for item in picked[::20]:
        assert ast.dump(ast.parse(item.applied())) != ast.dump(ast.parse(item.whole)), item.key


@pytest.mark.parametrize(("text", "drawn"), [("x = 1 << 0", {"x = 2 << 0", "x = 1 << 1"}), ("x = a << 0", {"x = a >> 0", "x = a << 1"})])
def test_what_is_the_same_number_is_no_fault(text: str, drawn: set[str], small: Path) -> None:
    (small / "softgen" / "eu" / "semantics" / "step.py").write_text(f"{text}\n")
    assert {item.applied().strip() for item in mutate.chosen(20, 1)} == drawn


def test_a_changed_line_redraws_only_its_own_faults(small: Path) -> None:
    file = small / "softgen" / "eu" / "semantics" / "step.py"
    lines = [f"def f{number}(a, b):\n    return a + b * {number}\n" for number in range(40)]
    file.write_text("".join(lines))
    before = {item.key for item in mutate.chosen(20, 1)}
    file.write_text("y = 3\n" + "".join(lines).replace("* 7\n", "* 77\n"))
    after = {item.key for item in mutate.chosen(20, 1)}
    assert len(before) == len(after) == 20 and len(after - before) <= 2
    assert before != {item.key for item in mutate.chosen(20, 2)}


def test_equal_lines_are_drawn_apart(small: Path) -> None:
    """At most one fault of a line while there are lines enough, also where lines are equal."""
    (small / "softgen" / "eu" / "semantics" / "step.py").write_text("def f(a, b):\n    return a + 5\n\n\n" * 10)
    assert len({item.line for item in mutate.chosen(10, 1)}) == 10
    assert len({item.what for item in mutate.chosen(10, 1)}) > 1


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
    return root


def test_a_sweep_tells_caught_from_survived(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in small.rglob("*") if path.is_file()}
    picked, results = mutate.chosen(10, 1), tmp_path / "results.jsonl"
    assert [item.what for item in picked] == ["+ becomes -", "* becomes +"]
    mutate.sweep(picked, results, 2, tmp_path / "benches")
    found = mutate.kept(results)
    assert [found[item.name].caught for item in picked] == [True, False]
    assert found[picked[0].name].how == "tests/test_step.py::test_step"
    assert mutate.summary(picked, found) == 1
    said = capsys.readouterr().out
    assert "survived: softgen/eu/semantics/step.py:6  * becomes +" in said and "+    return a + b" in said
    assert "2 of 2 faults tried: 1 caught (50.0%), 1 survived" in said
    assert {path: path.read_bytes() for path in small.rglob("*") if path.is_file()} == before
    mutate.sweep(picked, results, 2, tmp_path / "never")  # nothing is left to do
    assert not (tmp_path / "never").exists()


def test_equal_lines_have_results_of_their_own(small: Path, tmp_path: Path) -> None:
    """A fault that is caught does not hide the same one elsewhere."""
    file = small / "softgen" / "eu" / "semantics" / "step.py"
    file.write_text(file.read_text().replace("a * b", "a + b"))
    picked, results = mutate.chosen(10, 1), tmp_path / "results.jsonl"
    assert len({item.key for item in picked}) == 1 and len({item.name for item in picked}) == 2
    mutate.sweep(picked, results, 1, tmp_path / "benches")
    found = mutate.kept(results)
    assert {item.line: found[item.name].caught for item in picked} == {2: True, 6: False}
    file.write_text("# more\n" + file.read_text())
    assert {item.name for item in mutate.chosen(10, 1)} == set(found)


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
    assert {item.line: found[item.name].caught for item in picked} == {2: True, 6: False}


def test_every_package_with_tests_can_be_chosen() -> None:
    assert {"bits", "memory", "surface", "streamer", "eu", "lanes", "trace", "driver", "inspect", "gpgpu"} <= set(mutate.packages())


def test_tests_that_fail_anyway_are_no_witness(small: Path, tmp_path: Path) -> None:
    (small / "tests" / "test_step.py").write_text("def test_step():\n    assert False\n")
    with pytest.raises(SystemExit, match="the tests fail without a fault"):
        mutate.sweep(mutate.chosen(1, 1), tmp_path / "results.jsonl", 1, tmp_path / "benches")


@pytest.fixture
def bench(small: Path, tmp_path: Path) -> Iterator[fault_bench.Bench]:
    bench = fault_bench.Bench(small, tmp_path / "bench")
    yield bench
    bench.close()


STEP = [TimedTest("tests/test_step.py::test_step", 0.01)]


def plant(bench: fault_bench.Bench, text: str, new: str) -> fault_bench.Result:
    """The first fault that puts `new` into a text, which takes the place of step.py."""
    path = "softgen/eu/semantics/step.py"
    (bench.tree / path).write_text(text)
    fault = next(fault for fault in mutations(text, path) if fault.text == new)
    before = (bench.tree / path).stat()
    result, _ = bench.test(fault, CoverageMap([Part("", STEP, [], {})]))
    after = (bench.tree / path).stat()
    assert (bench.tree / path).read_text() == text and before.st_mtime_ns == after.st_mtime_ns
    return result


def test_a_fault_that_hangs_is_caught(bench: fault_bench.Bench) -> None:
    bench.extra = 1.0
    result = plant(bench, "def step(a, b):\n    while a == 0:\n        pass\n    return a + b\n", "!=")
    assert result.caught and result.how == "timeout tests/test_step.py::test_step"


def test_a_fault_that_ends_the_process_is_caught(bench: fault_bench.Bench) -> None:
    text = "import os\n\n\ndef step(a, b):\n    if a == 1:\n        os.abort()\n    return a + b\n"
    assert plant(bench, text, "!=").how == "ended by SIGABRT tests/test_step.py::test_step"


def test_a_fault_leaves_nothing_in_the_object_cache(bench: fault_bench.Bench) -> None:
    """What a fault compiles must not be found by the next one."""
    text = ("import os\nfrom pathlib import Path\n\n\ndef step(a, b):\n    kept = Path(os.environ['XDG_CACHE_HOME'])\n"
            "    assert (kept / 'warm').exists()\n    (kept / 'made').write_text('')\n    return a + b\n")  # fmt: skip
    bench.cache.mkdir()
    (bench.cache / "warm").write_text("")
    assert plant(bench, text, "-").how == "tests/test_step.py::test_step"
    assert [path.name for path in bench.cache.iterdir()] == ["warm"]


def test_vanished_files_vanish_from_a_bench(small: Path, tmp_path: Path) -> None:
    (small / "tests" / "test_more.py").write_text("")
    fault_bench.Bench(small, tmp_path / "bench")
    (small / "tests" / "test_more.py").unlink()
    (small / "tests" / "test_other.py").write_text("")
    bench = fault_bench.Bench(small, tmp_path / "bench")
    assert sorted(path.name for path in (bench.tree / "tests").iterdir()) == ["test_other.py", "test_step.py"]


def test_a_bench_has_the_documents_that_tests_read(small: Path, tmp_path: Path) -> None:
    for name in ("docs", "examples"):
        (small / name).mkdir()
        (small / name / "page").write_text(name)
    bench = fault_bench.Bench(small, tmp_path / "bench")
    assert [(bench.tree / name / "page").read_text() for name in ("docs", "examples")] == ["docs", "examples"]


# -- which tests a fault runs --------------------------------------------------------------------------------------


def test_tests_that_reach_a_line_come_first_the_quickest_before_the_others() -> None:
    times = {"slow": 9.0, "quick": 0.1, "broad": 0.1}
    slow, quick, broad = (TimedTest(f"tests/x/test_a.py::{name}", seconds) for name, seconds in times.items())
    own, module, far = (TimedTest(f"tests/x/test_{name}.py::test", 0.1) for name in ("piece", "module", "far"))
    piece = {2: 0b111, 3: 0b100}
    parts = [Part("", [slow, quick, broad], [], {"softgen/x/piece.py": piece}), Part("", [far], [], {}),
             Part("", [module], [], {"softgen/x/piece.py": {9: 1}}), Part("", [own], [], {})]  # fmt: skip
    found = CoverageMap(parts).selection("softgen/x/piece.py", "a = 1\nb = 2\n", 2)
    assert found == [quick, broad, slow, own, module, far]


def test_tests_beyond_the_budget_are_left_out() -> None:
    tests = [TimedTest(f"tests/x/test_a.py::t{index}", 25.0) for index in range(5)]
    found = CoverageMap([Part("", tests, [], {"x.py": {1: 0b11111}})]).selection("x.py", "a = 1\n", 1)
    assert found == tests[:2]


def test_a_line_belongs_to_its_statement() -> None:
    text = "def f(\n    a=1,\n):\n    x = [\n        1,\n        2,\n    ]\n    if (a\n            and x):\n        return 3\n"
    lines = {line: coverage_map.lines_of_statement(text, line) for line in range(1, 11)}
    statements = (range(1, 4), range(4, 8), range(8, 10), range(10, 11))
    assert lines == {line: statement for statement in statements for line in statement}


def test_a_map_says_which_test_reaches_which_line(small: Path, tmp_path: Path) -> None:
    pytest.importorskip("coverage")
    text = ("from softgen.eu.semantics.step import other, step\n\n\ndef test_other():\n    assert other(2, 1) == 2\n\n\n"
            "def test_step():\n    assert step(2, 1) == 3\n\n\ndef test_bad():\n    assert 0\n")  # fmt: skip
    (small / "tests" / "test_step.py").write_text(text)
    bench, tests = fault_bench.Bench(small, tmp_path / "bench"), ["tests/test_step.py"]
    sources = ["softgen/eu/semantics/step.py"]
    bench.measure(sources, tests, tmp_path / "map.json")
    (part,) = coverage_map.read(tmp_path / "map.json").values()
    assert [test.name for test in part.tests] == ["tests/test_step.py::test_other", "tests/test_step.py::test_step"]
    assert part.failed == ["tests/test_step.py::test_bad"]
    assert part.reached == {"softgen/eu/semantics/step.py": {6: 0b01, 2: 0b10}}
    assert part.key == coverage_map.keys(small, sources, tests)["tests/test_step.py"]
    (small / "softgen" / "eu" / "semantics" / "step.py").write_text("")
    assert part.key != coverage_map.keys(small, sources, tests)["tests/test_step.py"]


def test_a_map_has_as_many_cases_of_a_test_as_are_quick(small: Path) -> None:
    """The others count neither as failed nor as reaching anything."""
    text = ("import pytest, time\n\n\n@pytest.mark.parametrize('case', range(3))\ndef test_slow(case):\n"
            "    end = time.process_time() + 0.2\n    while time.process_time() < end:\n        pass\n\n\n"
            "@pytest.mark.parametrize('case', range(3))\ndef test_quick(case):\n    pass\n")  # fmt: skip
    (small / "tests" / "test_step.py").write_text(text)
    code = ("import coverage_map\ncoverage_map.LONGEST = 0.3\n"
            "parts, code = coverage_map.measure(['softgen/eu/semantics/step.py'], ['tests/test_step.py'])\n"
            "part = parts['tests/test_step.py']\nprint([test.name[20:] for test in part.tests], part.failed, code)\n")  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(small), str(ROOT / "tools")])}
    ran = subprocess.run([sys.executable, "-c", code], cwd=small, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "['test_slow[0]', 'test_slow[1]', 'test_quick[0]', 'test_quick[1]', 'test_quick[2]'] [] 0"


def test_the_command_lists_faults() -> None:
    command = [sys.executable, str(ROOT / "tools" / "mutate.py"), "--list", "--count", "3", "--file", "softgen/eu/thread/predicate.py"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(found) == 3 and all("softgen/eu/thread/predicate.py:" in line for line in found)
