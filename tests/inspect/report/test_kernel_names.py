"""Executed code is named by OpenCL binaries, and a report has one row per kernel."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from softgen.eu import binary
from softgen.eu.interpreter import KernelProgram
from softgen.inspect.cli.main import main
from softgen.inspect.report.kernel_names import KernelNames
from softgen.inspect.report.report import kernels, show
from tests.conftest import ROOT, SHARED, needs_shared

FOLDER = ROOT / "tests" / "data" / "kernels"
COLLATZ = FOLDER / "cf_collatz.kbl.bin"


@dataclass
class Ran:
    """What an engine counts for a program."""

    program: KernelProgram
    engine: str = "auto"
    dispatches: int = 1
    threads: int = 4
    instructions: int = 100
    seconds: float = 0.5
    stages: set[str] = field(default_factory=set)


def code() -> bytes:
    return binary.kernels(COLLATZ.read_bytes())[0].code


def test_code_is_named_by_a_file_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "half written.bin").write_bytes(COLLATZ.read_bytes()[:700])
    for places in ([COLLATZ], [FOLDER], [tmp_path, FOLDER]):
        assert KernelNames(places).find(code() + bytes(64), 9.0) == "cf_collatz"
    assert KernelNames([FOLDER]).find(code(), 11.0) is None
    assert KernelNames([tmp_path, tmp_path / "absent"]).find(code(), 9.0) is None
    changed = code()[:200] + bytes([code()[200] ^ 1]) + code()[201:]
    assert KernelNames([FOLDER]).find(changed, 9.0) is None


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert list(KernelNames([tmp_path / "pipe", tmp_path])._files()) == []


def test_files_above_a_quarter_gibibyte_are_not_read(tmp_path: Path) -> None:
    """They are other programs' output; this one is a binary with a hole at its end."""
    large = tmp_path / "large.bin"
    large.write_bytes(COLLATZ.read_bytes())
    assert KernelNames([tmp_path]).find(code(), 9.0) == "cf_collatz"
    os.truncate(large, (1 << 28) + 1)
    assert KernelNames([tmp_path]).find(code(), 9.0) is None


@needs_shared("kernels")
def test_relocated_bytes_do_not_count() -> None:
    file = SHARED / "kernels" / "const_table" / "kbl" / "const_table.zebin.bin"
    kernel = next(kernel for kernel in binary.kernels(file.read_bytes()) if kernel.name == "const_table")
    patched = bytearray(kernel.code)
    for relocation in kernel.launch().relocations:
        patched[relocation.offset : relocation.offset + relocation.size] = b"\xab" * relocation.size
    assert bytes(patched) != kernel.code and KernelNames([file]).find(bytes(patched), 9.0) == "const_table"


def test_one_row_per_kernel_hottest_first() -> None:
    first, second = KernelProgram(9.0, code(), 0, "kernel 0x1000"), KernelProgram(9.0, code() + bytes(32), 0, "kernel 0x9000")
    other = KernelProgram(9.0, binary.kernels((FOLDER / "cf_calls_stack.kbl.zebin.bin").read_bytes())[0].code, 0, "kernel 0x5000")
    rows = kernels([Ran(first), Ran(other, seconds=0.75), Ran(second)], KernelNames([COLLATZ]))
    assert [(row["kernel"], row["named"], row["dispatches"], row["seconds"]) for row in rows] == [
        ("cf_collatz", True, 2, 1.0), ("kernel 0x5000", False, 1, 0.75)]  # fmt: skip
    assert rows[0]["threads"] == 8 and rows[0]["instructions"] == 200 and rows[0]["code"] != rows[1]["code"]


def test_the_table_shows_the_hottest_kernels() -> None:
    rows = (
        kernels([Ran(KernelProgram(9.0, code() + bytes(number), 0, "kernel 0x1000")) for number in range(1)], KernelNames([COLLATZ])) * 12
    )
    found = {"commands": 1, "draws": 0, "dispatches": 1, "threads": 1, "instructions": 2000, "exact": False,
             "approximate": {"cos": "0.51 ULP"}, "faults": ["read at 0x1000"], "unsupported": [], "notes": [], "kernels": rows}  # fmt: skip
    shown = io.StringIO()
    show(found, shown)
    lines = shown.getvalue().splitlines()
    assert lines[0] == "report" and "  1 command, 0 draws, 1 dispatch, 1 thread, 2,000 instructions" in lines
    assert "  fault read at 0x1000" in lines and "  approximate (error at most): cos 0.51 ULP" in lines
    assert sum("cf_collatz" in line for line in lines) == 10 and lines[-1] == "  and 2 more kernels"
    assert "\x1b" not in shown.getvalue()


def test_replay_reports_the_same_kernel_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two replays of a capture: one row with both dispatches."""
    file, kept = str(ROOT / "tests" / "data" / "kbl-vk-compute"), tmp_path / "report.json"
    assert main(["replay", file, file, "--report", str(kept), "--threads", "1"]) == 0
    (row,) = json.loads(kept.read_text("utf-8"))["kernels"]
    assert row["dispatches"] == 2 and row["threads"] == 8 and not row["named"]


def test_messages_have_names_for_addresses_of_known_kernels(tmp_path: Path) -> None:
    """A kernel of a recording's own programs; others keep their addresses."""
    program = KernelProgram(9, code(), 0x40000)
    names = KernelNames([COLLATZ])
    assert names.renamed("at kernel 0x40000+0x20, kernel 0x50000", [program]) == "at kernel cf_collatz (0x40000)+0x20, kernel 0x50000"
    assert KernelNames([tmp_path]).renamed("kernel 0x40000", [program]) == "kernel 0x40000"
    assert KernelNames().renamed("kernel 0x40000", [program]) == "kernel 0x40000"
