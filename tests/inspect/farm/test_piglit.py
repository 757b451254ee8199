"""piglit: profiles as it writes them, shader tests in groups, and its own words. A stand-in does what its tests' names say."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from softgen.errors import UsageError
from softgen.inspect.cli.main import main
from softgen.inspect.farm.piglit import PiglitTest, find_piglit, read_profile
from tests.conftest import ROOT
from tests.driver.running import needs_shim
from tests.inspect.farm.farming import by_name, farm

PROGRAM = ROOT / "tests" / "inspect" / "farm" / "programs" / "piglit"


def element(kind: str, name: str, **options: object) -> str:
    inside = "".join(f'<option name="{key}" value={quoteattr(repr(value))} />' for key, value in options.items())
    return f'<Test type="{kind}" name={quoteattr(name)}>{inside}</Test>'


def shader(name: str, folder: str = "spec") -> str:
    return element("shader", f"{folder}@{name}", command=["shader_runner", f"tests/{folder}/{name}.shader_test"], run_concurrent=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "piglit"
    for part in ("tests", "bin"):
        (place / part).mkdir(parents=True)
    for name in ("shader_runner", "fbo-pass", "fbo-fail", "fbo-crash", "fbo-skip", "glx-pass"):
        shutil.copy(PROGRAM, place / "bin" / name)
    return place


def write_profile(root: Path, name: str, *tests: str) -> None:
    text = f'<?xml version="1.0" encoding="utf-8"?>\n<PiglitTestList count="{len(tests)}" name="{name}">{"".join(tests)}</PiglitTestList>'
    (root / "tests" / f"{name}.xml.gz").write_bytes(gzip.compress(text.encode()))


def run(root: Path, *more: object) -> dict[str, tuple[str, str]]:
    farm("piglit", "--piglit", root, "--profile", "own", "--out", root / "out", "--workers", "1", *more)
    return {name: (line["result"], line["message"]) for name, line in by_name(root / "out").items()}


@needs_shim
def test_programs_run_alone_and_say_what_they_are(root: Path) -> None:
    tests = [element("gl", f"gl@{name}", command=[f"fbo-{name}"], run_concurrent=True) for name in ("pass", "fail", "crash", "skip")]
    tests.append(element("gl", "gl@window", command=["fbo-pass", "-x"], run_concurrent=False))
    tests.append(element("gl", "gl@glx", command=["glx-pass"], require_platforms=["glx", "mixed_glx_egl"]))
    write_profile(root, "own", *tests, element("gl", "gl@not gbm", command=["fbo-pass"], exclude_platforms=["gbm"]))
    found = run(root)
    assert found == {"gl@pass": ("pass", ""), "gl@fail": ("fail", ""), "gl@crash": ("crash", "ended by SIGSEGV"), "gl@skip": ("skip", ""),
                     "gl@window": ("pass", ""), "gl@glx": ("skip", "not for the platform gbm"),
                     "gl@not gbm": ("skip", "not for the platform gbm")}  # fmt: skip
    assert (root / "starts").read_text().splitlines() == ["fbo-pass -auto -fbo", "fbo-fail -auto -fbo", "fbo-crash -auto -fbo",
                                                          "fbo-skip -auto -fbo", "fbo-pass -x -auto"]  # fmt: skip


@needs_shim
def test_shader_tests_share_a_start(root: Path) -> None:
    """Two have files of one name; one dies; one finds no context, which ends the program."""
    names = ["pass1", "crash", "fail", "skip", "warn", "none", "pass2", "pass3"]
    write_profile(root, "own", *map(shader, names), shader("pass1", "other"))
    found = run(root)
    assert found == {"spec@pass1": ("pass", ""), "other@pass1": ("pass", ""), "spec@pass2": ("pass", ""), "spec@pass3": ("pass", ""),
                     "spec@crash": ("crash", "ended by SIGSEGV"), "spec@fail": ("fail", ""),
                     "spec@skip": ("skip", ""), "spec@warn": ("pass", "warn"), "spec@none": ("skip", "")}  # fmt: skip
    starts = (root / "starts").read_text().splitlines()
    assert len(starts) < 8 and starts[0].count(".shader_test") == 9


@needs_shim
def test_groups_do_not_change_results(root: Path) -> None:
    write_profile(root, "own", *map(shader, ["pass1", "crash", "none", "pass2", "fail"]))
    found = run(root)
    shutil.rmtree(root / "out")
    alone = run(root, "--group", 1)
    assert {name: result for name, (result, _) in alone.items()} == {name: result for name, (result, _) in found.items()}


def test_kinds_of_tests(root: Path) -> None:
    write_profile(root, "own", element("gl", "a", command=["x"]), element("gl_builtin", "b", command=["c_gles2", "spec/m.txt"]),
                  element("glsl_parser", "c", command=["glslparsertest", "tests/a.vert", "pass", "1.10"], run_concurrent=True),
                  element("asm_parser", "d", type_="ARBvp1.0", filename="tests/d.txt"), element("cl", "e", command=["cl-x", "-a"]),
                  element("cl_prog", "f", filename="tests/f.cl"), element("vkrunner", "g", filename="tests/g.vk_shader_test"))  # fmt: skip
    assert [(test.name, " ".join(test.command)) for test in read_profile(str(root), "own")] == [
        ("a", "x -auto -fbo"), ("b", "c_gles2 tests/spec/m.txt"), ("c", "glslparsertest tests/a.vert pass 1.10"),
        ("d", "asmparsertest ARBvp1.0 tests/d.txt"), ("e", "cl-x -a"), ("f", "cl-program-tester tests/f.cl"),
        ("g", "vkrunner tests/g.vk_shader_test")]  # fmt: skip
    test = PiglitTest("a", ("x",), ("glx", "x11_egl"), ("gbm",))
    assert test.applies("glx") and not test.applies("gbm") and not test.applies("wayland") and PiglitTest("a", ("x",)).applies("gbm")


def test_what_is_no_profile(root: Path) -> None:
    write_profile(root, "own", shader("a"))
    with pytest.raises(UsageError, match=r"piglit has no profile 'x' in .*; profiles are own"):
        read_profile(str(root), "x")
    for text, told in ((b"not gzip", "own.xml.gz: is no profile that can be read"), (gzip.compress(b"<a><Test></a>"), "mismatched tag"),
                       (gzip.compress(element("odd", "a").encode()), "a test of kind 'odd', without a command"),
                       (gzip.compress(b'<Test type="gl" name="a"><option name="command" value="os.x()"/></Test>'), "malformed"),
                       (gzip.compress(element("multi_shader", "a").encode()), "take the profile without no_isolation")):  # fmt: skip
        (root / "tests" / "own.xml.gz").write_bytes(text)
        with pytest.raises(UsageError, match=told):
            read_profile(str(root), "own")


def test_where_piglit_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIGLIT_BUILD_DIR", raising=False)
    assert find_piglit(str(root)) == str(root)
    with pytest.raises(UsageError, match="is no folder of piglit's: it needs tests/ and bin/"):
        find_piglit(str(root / "tests"))
    monkeypatch.setenv("PIGLIT_BUILD_DIR", str(root))
    assert find_piglit(None) == str(root)
    monkeypatch.setenv("PIGLIT_BUILD_DIR", "/nowhere")
    with pytest.raises(UsageError, match="piglit is not found: install it"):
        find_piglit(None)


def test_names_choose_tests(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_profile(root, "own", shader("a"))
    command = ["farm", "piglit", "--piglit", str(root), "--profile", "own", "--out", str(root / "out")]
    assert main([*command, "--include", "b$"]) == 2 and "no test of these profiles has a name" in capsys.readouterr().err
    assert main([*command, "--include", "*"]) == 2 and "--include: is no regular expression" in capsys.readouterr().err
