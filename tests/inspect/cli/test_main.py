"""The command line as people and scripts meet it: verbs, exit codes, one-line failures."""

import functools
import importlib.util
import json
import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from softgen import __version__
from softgen.errors import DecodeError, UsageError
from softgen.inspect.cli import main as cli
from softgen.inspect.spec import citations
from tests.conftest import ROOT

BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}     # as people run it
BUILT = [verb for verb in cli.VERBS if importlib.util.find_spec(f"softgen.inspect.cli.{verb}")]


def softgen(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "softgen", *arguments], capture_output=True, text=True, cwd=ROOT, check=False, **options)   # type: ignore[call-overload, no-any-return]


def plant(monkeypatch: pytest.MonkeyPatch, run: object) -> None:
    """A verb named `planted` that does what the test wants."""
    verb = types.ModuleType("softgen.inspect.cli.planted")
    verb.add = lambda subparsers: subparsers.add_parser("planted")    # type: ignore[attr-defined]
    verb.run = run                                                    # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, verb.__name__, verb)
    monkeypatch.setitem(cli.VERBS, "planted", "for this test")


@pytest.mark.parametrize("error, text", [
    (OSError(28, "No space left on device"), "No space left on device"), (OSError(28, "No space left", "file"), "file: No space left"),
    (OSError("odd"), "odd"),
])  # fmt: skip
def test_errors_of_the_system_are_one_line_without_numbers(error: OSError, text: str, monkeypatch: pytest.MonkeyPatch,
                                                           capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    def fail(args: object) -> int:
        raise error

    plant(monkeypatch, fail)
    assert cli.main(["planted"]) == 1 and capsys.readouterr().err == f"softgen: {text}\n"


@pytest.mark.parametrize("arguments, code, said", [(["run", "--", "sh", "-c", "exit 7"], 7, ""), (["asm", "no such file"], 2, "late\n"),
                                                   (["run"], 2, "")])  # fmt: skip
def test_a_launcher_ends_with_its_program(arguments: list[str], code: int, said: str) -> None:
    """What Python does at the end of a process is for other verbs, which may have threads that finish their work."""
    text = (f"import atexit, sys; sys.argv = ['softgen', *{arguments}]; from softgen.inspect.cli.main import command\n"
            "atexit.register(print, 'late'); command()")  # fmt: skip
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (found.returncode, found.stdout) == (code, said) and "Traceback" not in found.stderr


def test_what_a_launcher_says_is_not_lost_in_a_pipe() -> None:
    assert "usage: softgen run" in softgen("run", "--help").stdout and "no program" in softgen("run").stderr


def test_every_listed_verb_is_built() -> None:
    assert list(cli.VERBS) == BUILT


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(verb in shown for verb in cli.VERBS) and "examples:" in shown
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"softgen {__version__}\n"


def test_no_verb_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "usage: softgen VERB" in captured.err


@pytest.mark.parametrize("verb", BUILT)
def test_every_verb_has_help_with_an_example_and_json(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "example" in shown and f"softgen {verb}" in shown and "--json" in shown
    assert cli.main(["help", verb]) == 0
    assert capsys.readouterr().out == shown
    assert cli.main([verb, "--no-such-option"]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("verb", BUILT)
def test_help_starts_at_once(verb: str) -> None:
    """A verb loads what simulates when it has work."""
    text = (f"import sys; from softgen.inspect.cli.main import main; main([{verb!r}, '--help'])\n"
            "print(sorted({'numpy', 'rich', 'softgen.device.gpu', 'softgen.threads'} & set(sys.modules)), file=sys.stderr)")  # fmt: skip
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT, check=False)
    assert found.stderr == "[]\n"


def test_a_misspelt_verb_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decod"]) == 2
    assert capsys.readouterr().err == "softgen: no verb 'decod'; did you mean 'decode'?\n"
    assert cli.main(["--gpu", "kbl"]) == 2


@pytest.mark.parametrize("arguments, told", [
    (("decode", "x", "--gpu", "voodoo"), "no GPU is called 'voodoo'"), (("spec", "--gpu", "voodoo"), "no GPU is called 'voodoo'"),
    (("spec", "--gpu", ""), "no GPU is called ''"), (("decode", ""), "which file?"),
    (("asm", "x", "--gpu", "voodoo", "-o", "y"), "no GPU is called 'voodoo'"),
    (("eu", "x", "--gpu", "voodoo"), "no GPU is called 'voodoo'"), (("disasm", "x", "--gpu", "voodoo"), "no GPU is called 'voodoo'"),
    (("serve", "--tbx", "0", "--gpu", "0x1"), "has PCI id 0x0001"),
    (("run", "--compare", "t0,t1", "--engine", "t1", "--", "true"), "--compare names both engines; leave out --engine"),
    (("decode", "x", "--gpu", "g45", "--engine", "video_enhance"), "g45 has no video_enhance engine; it has render, video"),
    (("spec", "NO_SUCH_THING"), "no page describes 'NO_SUCH_THING'"),
    (("spec", "3DSTATE_VS", "--kind", "register"), "no register is called '3DSTATE_VS'"),
    (("spec", "3DSTATE_PIPELINED_POINTERS", "--gpu", "kbl"), "does not exist on generation 9, only on 4, 4.5"),
])
def test_what_does_not_exist_is_misuse(arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and told in captured.err and captured.err.count("\n") == 1


def test_one_argument_too_many_shows_the_usage_of_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "now"]) == 2
    assert capsys.readouterr().err == "usage: softgen doctor [-h] [--json]\nsoftgen doctor: error: unrecognized arguments: now\n"


def test_options_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    """A beginning of an option would mean another one some day."""
    assert cli.main(["doctor", "--js"]) == 2
    assert capsys.readouterr().err.endswith("error: unrecognized arguments: --js\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_closed_before_the_start_are_no_failure(closed: str) -> None:
    command = f"{sys.executable} -m softgen decode tests/data/g45-gles-tri {closed}"
    found = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("error, code", [
    (DecodeError("bad\nfile"), 1), (UsageError("no such thing"), 2), (FileNotFoundError(2, "No such file or directory", "x.aub"), 1),
    (KeyboardInterrupt(), 130), (SystemExit(2), 2),
])
def test_failures_become_one_line_and_a_code(error: BaseException, code: int, capsys: pytest.CaptureFixture[str],
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: object) -> int:
        raise error
    plant(monkeypatch, run)
    assert cli.main(["planted"]) == code
    told = capsys.readouterr().err
    if isinstance(error, Exception):
        assert told.startswith("softgen: ") and told.count("\n") == 1 and "Errno" not in told


def test_a_bug_is_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: object) -> int:
        raise ZeroDivisionError
    plant(monkeypatch, run)
    with pytest.raises(ZeroDivisionError):
        cli.main(["planted"])


def test_the_exit_code_is_the_verbs(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, lambda _: 1)
    assert cli.main(["planted"]) == 1


def hear_ctrl_c() -> None:
    """Programs in the background of a shell ignore it, and so do those they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A verb stuck while writing more than a pipe holds, line by line: no test cites anything, so every behaviour is uncovered."""
    (tmp_path / "test_nothing.py").touch()
    command = [sys.executable, "-m", "softgen", "behaviours", "--uncovered", "--tests", str(tmp_path)]
    verb = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=BUFFERED, preexec_fn=hear_ctrl_c)
    assert verb.stdout and verb.stdout.read(1) == b"G"
    yield verb
    verb.kill()
    verb.communicate()


def test_a_closed_pipe_is_quiet(writing: subprocess.Popen[bytes]) -> None:
    assert writing.stdout and writing.stderr
    writing.stdout.close()
    assert (writing.stderr.read(), writing.wait(20)) == (b"", 141)


def test_a_pipe_nobody_ever_read_is_quiet() -> None:
    """Little output fails only when it is flushed at the end, and the interpreter would flush once more."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "softgen", "--help"]
    found = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=ROOT, env=BUFFERED, check=False)
    os.close(writer)
    assert (found.stderr, found.returncode) == (b"", 141)


def test_ctrl_c_is_quiet(writing: subprocess.Popen[bytes]) -> None:
    writing.send_signal(signal.SIGINT)
    assert writing.wait(20) == 130
    assert writing.stderr and writing.stderr.read() == b""


def test_help_opens_no_verb_and_no_numpy() -> None:
    code = ("import sys; from softgen.inspect.cli.main import main; main(['--help'])\n"
            "print([m for m in sys.modules if m == 'numpy' or m.startswith('softgen.inspect.cli.') and not m.endswith(('main','output'))])")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_a_terminal_without_unicode_is_served() -> None:
    found = softgen("--help", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert found.returncode == 0 and "softgen VERB ?" in found.stdout


def test_behaviours_as_json_and_filters(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(citations, "read", functools.cache(citations.read))  # the tests of this checkout, once

    def said(*arguments: str) -> str:
        cli.main(["behaviours", *arguments])
        return capsys.readouterr().out

    everything = json.loads(said("--json"))
    assert everything["total"] == 1447 == len(everything["behaviours"])
    assert everything["covered"] == sum(item["covered"] for item in everything["behaviours"])
    assert everything["covered"] == sum(unit["covered"] for unit in everything["units"])
    for kind in ("action", "layout"):
        mine = [item for item in everything["behaviours"] if item["kind"] == kind]
        assert everything[f"{kind}s"] == {"covered": sum(behaviour["covered"] for behaviour in mine), "total": len(mine)}
    assert everything["decoded_only"] == sum(item["status"] == "decoded only" for item in everything["behaviours"])
    some = json.loads(said("--json", "--manual", "bdw", "--unit", "vf", "--uncovered"))
    assert some["total"] == 23 and [u["unit"] for u in some["units"]] == ["BDW-VF"]
    assert not any(behaviour["covered"] for behaviour in some["behaviours"])
    known = [behaviour for behaviour in everything["behaviours"] if behaviour["reason"]]
    assert known and not any(behaviour["covered"] for behaviour in known)
    listed = said("--uncovered", "--manual", "g45", "--unit", "wm")
    assert "    not shown: " in listed and "of them on a list with the reason" in listed


def test_behaviours_used_wrongly_or_without_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli.main(["behaviours", "--unit", "nonsense"]) == 2
    assert cli.main(["behaviours", "--manual", "nonsense"]) == 2
    assert cli.main(["behaviours", "--tests", str(tmp_path / "none")]) == 2
    capsys.readouterr()
    monkeypatch.setattr("softgen.inspect.spec.behaviours.tests_folder", lambda: None)
    assert cli.main(["behaviours"]) == 1
    assert "no tests beside this installation" in capsys.readouterr().err
    (tmp_path / "test_x.py").write_text('@pytest.mark.behaviour("X-1", shows="action")\ndef test_x(): pass')
    assert cli.main(["behaviours", "--tests", str(tmp_path)]) == 1
    assert "do not exist: X-1" in capsys.readouterr().err


def test_behaviours_in_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marks = '@pytest.mark.behaviour("BDW-VF-01", shows="action")\n@pytest.mark.behaviour("BDW-VF-02", shows="layout")\n'
    (tmp_path / "test_x.py").write_text(marks + "def test_x(): pass")
    assert cli.main(["behaviours", "--tests", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[-2][0] == "all"
    own = lines[[line[0] for line in lines].index("BDW") + 1 :][:10]  # its units come after the manual
    assert all(line[0].startswith("BDW-") for line in own) and ["BDW-VF", "1", "23", "0", "0", "1", "0", "1", "23", "4", "%"] in own
    assert cli.main(["behaviours", "--tests", str(tmp_path), "--manual", "BDW", "--unit", "VF"]) == 0
    shown = capsys.readouterr().out
    assert "test_x.py:1 test_x (action)" in shown and shown.endswith("23 behaviours\n")
    assert cli.main(["behaviours", "--tests", str(tmp_path), "--unit", "BDW-VF", "--uncovered"]) == 0
    shown = capsys.readouterr().out
    assert "BDW-VF-01" not in shown and "BDW-VF-02" in shown and "(decoded only)" in shown


def test_decoding_needs_no_numpy_and_nothing_that_executes() -> None:
    """They take longer to import than a small capture to decode."""
    code = ("import sys; from softgen.inspect.cli.main import main; main(['decode', 'tests/data/g45-gles-tri', '--brief'])\n"
            "late = ('numpy', 'softgen.threads', 'softgen.surface', 'softgen.lanes.machine', 'softgen.memory.guard')\n"
            "print([name for name in sys.modules if name.startswith(late)])")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert found.stdout.splitlines()[-1] == "[]"
