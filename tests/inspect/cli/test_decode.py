"""`softgen decode` as text: commands, registers and data line by line, and what --brief leaves out."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from softgen.inspect.cli.main import main
from tests.conftest import ROOT

TRIANGLE = str(ROOT / "tests" / "data" / "g45-gles-tri")


def decoded(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> list[str]:
    assert main(["decode", *arguments]) == code
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def batch(tmp_path: Path) -> str:
    """MI_LOAD_REGISTER_IMM of CS_DEBUG_MODE2, then what is no command."""
    path = tmp_path / "batch"
    path.write_bytes(struct.pack("<4I", 0x11000001, 0x20D8, 0x00100010, 0xFFFFFFFF))
    return str(path)


def test_a_register_has_its_fields_below_it(batch: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = decoded(capsys, batch, "--gpu", "kbl", code=1)
    at = lines.index("    -> 0x20d8 register CS_DEBUG_MODE2")
    assert lines[at + 1] == "        constant_buffer_address_offset_disable_mask true"
    assert lines[at + 2] == f"        {'media_instruction_disable_mask':42} false"


def test_brief_is_commands_alone(batch: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = decoded(capsys, batch, "--gpu", "kbl", "--brief", code=1)
    assert [line.split("  ")[1] for line in lines if line.startswith("0x")] == [
        "MI_LOAD_REGISTER_IMM", "unknown command 0xffffffff", "! what follows cannot be read as commands"]  # fmt: skip
    assert not [line for line in lines if line.startswith(" ")]


def test_data_is_four_dwords_a_line_with_the_floats_it_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    lines = decoded(capsys, TRIANGLE)
    at = lines.index("    -> 0x109040 buffer_starting_address, 48 bytes")
    assert [line.split() for line in lines[at + 1 : at + 4]] == [
        ["+0", "42800000", "42800000", "00000000", "00000000", "64", "64", "0", "0"],
        ["+16", "42800000", "00000000", "00000000", "00000000", "64", "0", "0", "0"],
        ["+32", "00000000", "00000000", "00000000", "00000000", "0", "0", "0", "0"]]  # fmt: skip
