"""`softgen decode` as text: commands, registers and data line by line, and what --brief leaves out."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from softgen.bits import describe
from softgen.bits.catalogue import layout
from softgen.inspect.cli.decode import Tally, json_object
from softgen.inspect.cli.main import main
from softgen.inspect.decoding import Item
from softgen.inspect.indirect_state import CommandRegister, Found, IndirectData, IndirectKernel, IndirectState
from softgen.memory.address_space import AddressSpace
from softgen.streamer.parser import Command, Remark
from softgen.trace.work import Work
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


def item(what: Command | Remark | Found) -> Item:
    return Item(Work("render", AddressSpace("none"), 0), what)


def test_each_item_as_json() -> None:
    """Problems, reserved bits and doubts are told where there are any, and only there."""
    table, mode, nop = layout("BINDING_TABLE_STATE", 9), layout("CS_DEBUG_MODE2", 9), layout("MI_NOOP", 9)
    entry = {"state": "BINDING_TABLE_STATE", "address": 16, "by": 8, "dwords": [64], "fields": {"surface_state_pointer": 64}}
    wrong = {"reserved": [{"high": 1, "low": 1, "value": 1}]}
    lost = {"problems": ["lost"]}
    command = {"batch": 4, "address": 8, "name": None, "dwords": [0xFFFFFFFF], "fields": {}}
    expected: list[tuple[Command | Remark | Found, dict[str, object], int]] = [
        (Command(4, 8, 1, None, [0xFFFFFFFF]), command, 0), (Command(4, 8, 1, None, [0xFFFFFFFF], ("lost",)), command | lost, 0),
        (Command(4, 8, 1, nop, [0]), command | {"name": "MI_NOOP", "dwords": [0], "fields": describe.to_json(nop, [0])}, 0),
        (IndirectState(table, 16, 8, [64]), entry, 0), (IndirectState(table, 16, 8, [64], certain=False), entry | {"certain": False}, 0),
        (IndirectState(table, 16, 8, [66]), entry | {"dwords": [66]} | wrong, 1),
        (IndirectState(table, 16, 8, [66], certain=False), entry | {"dwords": [66], "certain": False}, 0),
        (IndirectState(table, 16, 8, [], problem="lost"), entry | {"dwords": [], "fields": {}} | lost, 0),
        (IndirectKernel(64, 8, "vs"), {"kernel": 64, "by": 8, "stage": "vs"}, 0),
        (IndirectKernel(64, 8, "vs", "lost"), {"kernel": 64, "by": 8, "stage": "vs"} | lost, 0),
        (IndirectData("d", 64, 8, 12, [1, 2, 3]), {"data": "d", "address": 64, "by": 8, "bytes": 12, "dwords": [1, 2, 3]}, 0),
        (IndirectData("d", 64, 8, 0, [], "lost"), {"data": "d", "address": 64, "by": 8, "bytes": 0, "dwords": []} | lost, 0),
        (CommandRegister("R", 0x20D8, 8, mode, []), {"register": "R", "offset": 0x20D8, "by": 8, "dwords": []}, 0),
        (CommandRegister("R", 0x20D8, 8, mode, [1]),
         {"register": "R", "offset": 0x20D8, "by": 8, "dwords": [1], "fields": describe.to_json(mode, [1])}, 0),
        (Remark(4, 8, "loop", "again"), {"remark": "loop", "batch": 4, "address": 8, "text": "again"}, 0),
    ]  # fmt: skip
    for what, told, reserved in expected:
        tally = Tally()
        assert (json_object(item(what), tally), tally.reserved) == (told, reserved)


def test_counts_of_a_whole_decode() -> None:
    """What is not there is not counted in the summary."""
    tally, noop = Tally(), layout("MI_NOOP", 9)
    assert tally.summary() == "0 submissions, 0 commands, 0 structures, 0 kernels"
    tally.submissions += 1
    state = IndirectState(layout("BINDING_TABLE_STATE", 9), 0, 0, [0])
    commands = [Command(0, 0, 1, noop, [0]), Command(0, 4, 1, noop, [0], ("short",)), Command(0, 8, 1, noop, [0], ("short", "odd")),
                Command(0, 12, 1, None, [0xFFFFFFFF])]  # fmt: skip
    remarks = [Remark(0, 0, kind, "") for kind in ("unmapped", "no_batch", "limit", "gpu_written", "gpu_written", "loop")]
    for what in (*commands, state, state, state, IndirectKernel(0, 0, "vs"), IndirectData("d", 0, 0, 0, []), *remarks):
        tally.count(item(what))
    assert tally.summary() == ("1 submission, 4 commands, 3 structures, 1 kernel, 1 unknown command, 3 broken places, "
                               "2 of unexpected length, 2 jumps to memory that the GPU was to write")  # fmt: skip
