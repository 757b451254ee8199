"""Files that verbs read as a whole: without an end, not text, larger than code is."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgen.inspect.cli import main as cli
from softgen.inspect.cli import source
from tests.conftest import ROOT

CODE = ROOT / "tests" / "data" / "kernels" / "app_nqueens.icl.dat"
Capture = pytest.CaptureFixture[str]


def refused(capsys: Capture, *arguments: object) -> str:
    assert cli.main([*map(str, arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("arguments", [("disasm", "/dev/zero"), ("asm", "/dev/zero", "-o", "-"), ("eu", "/dev/zero")])
def test_a_file_without_end_is_refused(arguments: tuple[str, ...], capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LARGEST", 1 << 20)
    monkeypatch.setattr(source, "STEP", 1 << 19)
    assert "/dev/zero: has more than 1 MiB" in refused(capsys, *arguments, "--gpu", "icl")


def test_a_trace_may_be_larger_than_code(capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its beginning shows what it is; here it is one without an end."""
    monkeypatch.setattr(source, "LARGEST", 1 << 12)
    error = tmp_path / "error"
    error.write_bytes(b"GPU HANG: ecode 9:0:0\nTime: 1 s 1 us\nPCI ID: 0x5916\n" + b"\n" * 8192)
    cli.main(["disasm", str(error)])
    assert "has more than" not in capsys.readouterr().err
    code = tmp_path / "code"
    code.write_bytes(CODE.read_bytes() + bytes(4096))
    assert "has more than" in refused(capsys, "disasm", code, "--gpu", "icl")


def test_no_memory_is_one_line(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_bytes(file: str) -> tuple[str, bytes]:
        raise MemoryError

    monkeypatch.setattr("softgen.inspect.cli.disasm.read_bytes", read_bytes)
    assert "not enough memory" in refused(capsys, "disasm", CODE, "--gpu", "icl")


@pytest.mark.parametrize("verb", [("disasm",), ("asm", "-o", "-"), ("eu",)])
@pytest.mark.parametrize("file, why", [("/proc/self/mem", "Input/output error"), ("no such file", "No such file or directory")])
def test_a_file_that_cannot_be_read_is_named(verb: tuple[str, ...], file: str, why: str, capsys: Capture) -> None:
    assert refused(capsys, *verb, file, "--gpu", "icl") == f"softgen: {file}: cannot be read: {why}\n"
