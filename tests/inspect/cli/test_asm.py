"""`softgen asm`: text in either dialect becomes bytes; errors name line and column; OUT is replaced whole or not at all."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from softgen.eu.encoding import program
from softgen.eu.text import dialect
from softgen.inspect.cli import main as cli
from tests.conftest import ROOT

KERNELS = ROOT / "tests" / "data" / "kernels"
MESA = "add(8) g2<1>D g3<8,8,1>D g4<8,8,1>D { align1 1Q };\nnop;\n"
IGA = "add (8|M0) r2.0<1>:d r3.0<8;8,1>:d r4.0<8;8,1>:d\nnop\n"

Capture = pytest.CaptureFixture[str]


def asm(*arguments: object, code: int = 0) -> None:
    assert cli.main(["asm", *map(str, arguments)]) == code


@pytest.mark.parametrize("text", [MESA, IGA], ids=["mesa", "iga"])
def test_both_dialects_are_known_by_their_looks(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.asm").write_text(text)
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "a.dat")
    assert (tmp_path / "a.dat").read_bytes().hex() == "40006000280a402060008d0a80008d007e000000000000000000000000000000"


def test_disasm_and_asm_are_one_round(tmp_path: Path, capsys: Capture) -> None:
    for path in sorted(KERNELS.glob("*.dat")):
        gpu = path.name.split(".")[1]
        for syntax in dialect.dialects_of({"ivb": 7.0, "hsw": 7.5, "bdw": 8.0, "icl": 11.0}[gpu]):
            assert cli.main(["disasm", "--gpu", gpu, str(path), "--syntax", syntax]) == 0
            (tmp_path / "a.asm").write_text(capsys.readouterr().out)
            asm("--gpu", gpu, tmp_path / "a.asm", "-o", tmp_path / "a.dat", "--syntax", syntax)
            assert (tmp_path / "a.dat").read_bytes() == path.read_bytes()


def test_compact(tmp_path: Path, capsys: Capture) -> None:
    """An add of registers has a compact form, a mov of this number has none."""
    add = MESA.splitlines()[0]
    (tmp_path / "a.asm").write_text(f"{add}\n{add}\nmov(8) g2<1>F 0x12345678F {{ align1 1Q }};\n")
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "a.dat", "--compact", "--json")
    code = (tmp_path / "a.dat").read_bytes()
    assert json.loads(capsys.readouterr().out) == {"output": str(tmp_path / "a.dat"), "bytes": 32, "instructions": 3, "compact": 2}
    assert [(size, inst.opcode) for _, size, inst in program.instructions(code, 9.0)] == [(8, "add"), (8, "add"), (16, "mov")]
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "a.dat", "--json")
    assert json.loads(capsys.readouterr().out) == {"output": str(tmp_path / "a.dat"), "bytes": 48, "instructions": 3, "compact": 0}


@pytest.mark.parametrize("text, gpu, message", [
    (MESA.replace("g3", "gg"), "kbl", "a.asm:1:15: expected "),
    ("nop;\n  frobnicate(8) g2<1>D { align1 1Q };\n", "kbl", "a.asm:2:3: expected "),
    (IGA.replace(":d\n", ":d {Nonsense}\n"), "kbl", "a.asm:1:"),
    (IGA, "ivb", "a.asm: iga does not cover gen 7; mesa does"),
    ("nop;\nmov(8) g2<1>F 0x12345678F { align1 1Q compacted };\n", "kbl", "a.asm:2:1: this mov has no compact form"),
    ("endif(8) JIP: NOWHERE { align1 1Q };\n", "kbl", "a.asm:1:"),
])  # fmt: skip
def test_mistakes_say_where(text: str, gpu: str, message: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.asm").write_text(text)
    Path("a.dat").write_bytes(b"before")
    asm("--gpu", gpu, "a.asm", "-o", "a.dat", code=1)
    captured = capsys.readouterr()
    assert captured.err.startswith(f"softgen: {message}") and captured.err.count("\n") == 1 and captured.out == ""
    assert Path("a.dat").read_bytes() == b"before" and sorted(os.listdir()) == ["a.asm", "a.dat"]


def test_what_is_no_text(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.asm").write_bytes(b"nop;\n\xff\xfe")
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "a.dat", code=1)
    assert "is not text: byte 5 is 0xff" in capsys.readouterr().err and not (tmp_path / "a.dat").exists()


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MESA.encode())))
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    asm("--gpu", "kbl", "-", "-o", "-")
    assert out.buffer.getvalue() == dialect.read(MESA, 9.0)  # type: ignore[attr-defined]


def test_code_and_json_do_not_mix(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.asm").write_text(MESA)
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", "-", "--json", code=2)
    assert "cannot both go to standard output" in capsys.readouterr().err


def test_output_and_gpu_are_needed(tmp_path: Path) -> None:
    (tmp_path / "a.asm").write_text(MESA)
    asm("--gpu", "kbl", tmp_path / "a.asm", code=2)
    asm(tmp_path / "a.asm", "-o", tmp_path / "a.dat", code=2)


def test_a_file_is_replaced_whole_with_its_mode_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "a.asm").write_text(MESA)
    (tmp_path / "real.dat").write_bytes(b"x" * 999)
    (tmp_path / "real.dat").chmod(0o640)
    (tmp_path / "link.dat").symlink_to("real.dat")
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "link.dat")
    assert (tmp_path / "link.dat").is_symlink() and len((tmp_path / "real.dat").read_bytes()) == 32
    assert (tmp_path / "real.dat").stat().st_mode & 0o777 == 0o640
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "new.dat")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "new.dat").stat().st_mode & 0o777 == 0o666 & ~mask
    assert sorted(os.listdir(tmp_path)) == ["a.asm", "link.dat", "new.dat", "real.dat"]


def test_output_that_cannot_be_written(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.asm").write_text(MESA)
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "no" / "a.dat", code=1)
    assert "No such file or directory" in capsys.readouterr().err


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.asm").write_text(MESA)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "pipe")
        assert (tmp_path / "pipe").is_fifo() and len(os.read(reader, 4096)) == 32
    finally:
        os.close(reader)


def test_nothing_is_left_behind_when_replacing_fails(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a.asm").write_text(MESA)
    (tmp_path / "a.dat").write_bytes(b"before")
    monkeypatch.setattr(os, "replace", full)
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "a.dat", code=1)
    assert "No space left" in capsys.readouterr().err and (tmp_path / "a.dat").read_bytes() == b"before"
    assert sorted(os.listdir(tmp_path)) == ["a.asm", "a.dat"]


def test_an_empty_text_is_an_empty_program(tmp_path: Path) -> None:
    (tmp_path / "a.asm").write_text("// nothing\n")
    asm("--gpu", "kbl", tmp_path / "a.asm", "-o", tmp_path / "a.dat")
    assert (tmp_path / "a.dat").read_bytes() == b""
