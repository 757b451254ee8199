"""The shared look: plain in a pipe, colour on a terminal, tables that line up."""

import io
import os
import subprocess
import sys

import pytest

from softgen.inspect.cli import output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_colour_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output.paint(Terminal())("x", "bad") == "\x1b[31mx\x1b[0m"
    assert output.paint(io.StringIO())("x", "bad") == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.paint(Terminal())("x", "bad") == "x"


def test_no_color_counts_when_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert output.wants_colour(Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not output.wants_colour(Terminal())


def test_a_role_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        output.Paint(False)("x", "pink")


def test_tables_line_up_also_with_colour() -> None:
    red = output.Paint(True)("ab", "bad")
    lines = list(output.table([(red, 5, "x"), ("c", 1234, "")], ("name", "n", ""), right=(1,)))
    assert [output.ESCAPE.sub("", line) for line in lines] == ["name     n", "ab       5  x", "c     1234"]
    assert list(output.table([])) == []
    assert list(output.table([("a",), ("b", "c")])) == ["a", "b  c"]


def test_json_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"a": [1, "é"]})
    assert capsys.readouterr().out == '{"a": [1, "é"]}\n'
    with pytest.raises(ValueError):
        output.print_json(float("nan"))


def test_a_complaint_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.complain("first\nsecond")
    captured = capsys.readouterr()
    assert captured.err == "softgen: first second\n" and captured.out == ""


def test_progress_waits_a_second_and_cleans_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    terminal = Terminal()
    with output.Progress("decoding", 10, terminal) as progress:
        progress.step()
        assert terminal.getvalue() == ""
        clock[0] = 1.5
        progress.step(2)
        assert "decoding 3 of 10" in terminal.getvalue()
        progress.step()
        assert terminal.getvalue().count("decoding") == 1
        shown = len(terminal.getvalue())
    wiped = terminal.getvalue()[shown:]
    assert wiped.endswith("\x1b[1A\x1b[2K") and "\x1b[?25h" in wiped  # the line is gone, the cursor is back


def test_progress_is_silent_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.Progress, "DELAY", 0.0)
    pipe = io.StringIO()
    with output.Progress("decoding", None, pipe) as progress:
        progress.step()
    assert pipe.getvalue() == ""


def test_progress_does_not_mix_with_lines_on_the_same_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output.Progress, "DELAY", 0.0)
    for stdout, shown in ((Terminal(), False), (io.StringIO(), True)):
        monkeypatch.setattr("sys.stdout", stdout)
        terminal = Terminal()
        with output.Progress("decoding", None, terminal, printing=True) as progress:
            progress.step()
        assert bool(terminal.getvalue()) == shown


def test_what_nobody_can_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", buffering=1) as stream:
        os.close(reading)
        monkeypatch.setattr(sys, "stderr", stream)
        for _ in range(2):
            output.complain("something")
        assert os.path.samestat(os.fstat(writing), os.stat(os.devnull))


def test_exit_codes_are_the_same_where_messages_cannot_be_written() -> None:
    with open("/dev/full", "w") as full:
        for arguments, code in ((("no_verb",), 2), (("decode", "/no/such/file"), 1), (("run", "--", "no-such-program"), 2)):
            assert subprocess.run([sys.executable, "-m", "softgen", *arguments], stderr=full, check=False).returncode == code, arguments


@pytest.mark.parametrize("number, noun, text", [(1, "batch", "1 batch"), (0, "batch", "0 batches"), (1, "thread", "1 thread"),
                                                (1200, "thread", "1,200 threads")])  # fmt: skip
def test_counts_have_their_nouns(number: int, noun: str, text: str) -> None:
    assert output.counted(number, noun) == text
