"""`softgen decode` as text: commands, registers and data line by line, and what --brief leaves out."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from softgen.bits import describe
from softgen.bits.catalogue import layout
from softgen.inspect.cli.decode import Tally, Text, as_json, heading, json_object
from softgen.inspect.cli.main import main
from softgen.inspect.cli.output import Paint
from softgen.inspect.decode.decoding import Item
from softgen.inspect.decode.indirect_state import CommandRegister, Found, IndirectData, IndirectKernel, IndirectState
from softgen.inspect.decode.stopped import Stopped
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


def test_a_summary_is_for_people(batch: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json it is no line of the output; where something is wrong it is said on standard error."""
    counts = "1 submission, 2 commands, 0 structures, 0 kernels, 1 unknown command, 1 broken place"
    assert decoded(capsys, batch, "--gpu", "kbl", code=1)[-1] == counts
    assert main(["decode", batch, "--gpu", "kbl"]) == 1 and capsys.readouterr().err == ""
    assert main(["decode", batch, "--gpu", "kbl", "--json"]) == 1
    told = capsys.readouterr()
    assert [next(iter(json.loads(line))) for line in told.out.splitlines()] == ["batch", "register", "batch", "remark"]
    assert told.err == f"softgen: {counts}\n"
    Path(batch).write_bytes(struct.pack("<2I", 0x05000000, 0))
    assert main(["decode", batch, "--gpu", "kbl", "--json"]) == 0 and capsys.readouterr().err == ""


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


def test_marks_of_a_command_as_json() -> None:
    """The registers that point to it, without what that means."""
    where = Stopped({(False, 8): ["ACTHD: the engine had read up to here", "IPEHR: the command that was executing"], (True, 8): ["HEAD"]})
    commands = [Command(4, 8, 1, layout("MI_NOOP", 9), [0]), Command(4, 8, 0, layout("MI_NOOP", 9), [0]), Command(4, 12, 1, None, [0])]
    found = [json.loads(line) for command in commands for line in as_json(item(command), Tally(), where)]
    assert [entry.get("marks") for entry in found] == [["ACTHD", "IPEHR"], ["HEAD"], None]


def shown(what: Command | Remark | Found, where: Stopped | None = None, brief: bool = False, colour: bool = False) -> tuple[list[str], int]:
    """Lines of an item, and how many had reserved bits set."""
    tally = Tally()
    return list(Text(Paint(colour), brief).lines(item(what), tally, where or Stopped())), tally.reserved


def test_each_item_as_text() -> None:
    """Fields of state have eight columns before them, those of commands four; what a wrong pointer leads to has no fields."""
    table, mode = layout("BINDING_TABLE_STATE", 9), layout("CS_DEBUG_MODE2", 9)
    wrong, guess, lost = "! reserved: dword 0 bit 1 = 0x1", "  (the count is a guess)", "       ! lost"
    fields = ["        surface_state_pointer                      0x40"]
    head = "    -> 0x10 BINDING_TABLE_STATE [3]"
    disabled = f"        {'constant_buffer_address_offset_disable_mask':42} false"
    expected: list[tuple[Found | Remark, list[str], int]] = [
        (IndirectState(table, 16, 8, [64], 3), [head, *fields], 0),
        (IndirectState(table, 16, 8, [64], 3, certain=False), [head + guess, *fields], 0),
        (IndirectState(table, 16, 8, [66], 3), [head, *fields, f"        {wrong}"], 1),
        (IndirectState(table, 16, 8, [66], 3, certain=False), [head + guess, *fields], 0),
        (IndirectState(table, 16, 8, [66], 3, problem="lost"), [head, lost], 0),
        (IndirectKernel(64, 8, "vs"), ["    -> 0x40 kernel of the vs stage"], 0),
        (IndirectKernel(64, 8, "vs", "lost"), ["    -> 0x40 kernel of the vs stage", lost], 0),
        (IndirectData("d", 64, 8, 0, [], "lost"), ["    -> 0x40 d, 0 bytes", lost], 0),
        (CommandRegister("R", 0x20D8, 8, mode, []), ["    -> 0x20d8 register R"], 0),
        (Remark(4, 0x1000, "loop", "again"), ["0x000000001000  ! again"], 0),
    ]  # fmt: skip
    for what, lines, reserved in expected:
        assert shown(what) == (lines, reserved)
        assert shown(what, brief=True) == (lines if isinstance(what, Remark) else [], 0), "state is left out, remarks are not"
    lines, _ = shown(CommandRegister("R", 0x20D8, 8, mode, [0]))
    assert lines[:2] == ["    -> 0x20d8 register R", disabled]


@pytest.mark.parametrize("level, indent", [(0, ""), (1, ""), (2, "  "), (3, "    ")])
def test_commands_of_inner_batches_are_indented(level: int, indent: str) -> None:
    noop = layout("MI_NOOP", 9)
    ((line, *_), _) = shown(Command(0, 0x1000, level, noop, [0]))
    assert line == f"0x000000001000  {indent}MI_NOOP  (1 dword)"


def test_a_command_as_text() -> None:
    """Its fields, reserved bits, problems, and what the registers of the engine say of it."""
    command = Command(0, 0x1000, 1, layout("PIPELINE_SELECT", 9), [0x69040000 | 1 << 6 | 2, 7], ("too long",))
    marks = Stopped({(False, 0x1000): ["HEAD: here", "IPEHR: this"], (True, 0x1000): ["not this"]})
    lines, reserved = shown(command, marks)
    assert lines[0] == "0x000000001000  PIPELINE_SELECT  (2 dwords)" and reserved == 1
    assert f"    {'pipeline_selection':42} gpgpu (2)" in lines
    assert [line for line in lines if "!" in line or "<" in line] == [
        "    ! reserved: dword 0 bit 6 = 0x1", "    ! too long", "    <== HEAD: here", "    <== IPEHR: this"]  # fmt: skip
    brief, reserved = shown(command, marks, brief=True)
    assert brief == [lines[0], *lines[-4:]] and reserved == 1
    unknown, _ = shown(Command(0, 0x1000, 1, None, [0xFFFFFFFF]))
    assert unknown == ["0x000000001000  unknown command 0xffffffff  (1 dword)"]


def test_colours_of_a_decode() -> None:
    """Values stand out, fields of zero are grey."""
    plain, _ = shown(IndirectState(layout("BINDING_TABLE_STATE", 9), 16, 8, [64]))
    coloured, _ = shown(IndirectState(layout("BINDING_TABLE_STATE", 9), 16, 8, [64]), colour=True)
    zero, _ = shown(IndirectState(layout("BINDING_TABLE_STATE", 9), 16, 8, [0]), colour=True)
    assert plain[1].endswith(" 0x40") and coloured[1] == plain[1].replace("0x40", Paint(True)("0x40", "value"))
    assert zero[1] == Paint(True)(plain[1].replace("0x40", "0x0"), "note")


@pytest.mark.parametrize("dword, text", [(0, "0"), (0x3F800000, "1"), (0xBF800000, "-1"), (0x30000000, "."), (0x30000001, "4.657e-10"),
                                         (0x4EFFFFFF, "2.147e+09"), (0x4F000000, "."), (0x80000000, "."), (7, "."),
                                         (0xFFFFFFFF, ".")])  # fmt: skip
def test_dwords_that_look_like_floats(dword: int, text: str) -> None:
    """Zero, and what is between 2^-31 and 2^31 in size."""
    lines, _ = shown(IndirectData("d", 64, 8, 20, [dword, 1, 2, 3, dword]))
    assert lines[1:] == [f"           +0  {dword:08x} 00000001 00000002 00000003   {text}  .  .  .",
                         f"          +16  {dword:08x}{'':28}  {text}"]  # fmt: skip


@pytest.mark.parametrize("work, text", [
    (Work("render", AddressSpace("none"), 0x1000, sequence=3), "submission 3: kbl, render engine, batch at 0x1000"),
    (Work("video", AddressSpace("none"), 0x2000, kind="ring", label="hang"), "hang: kbl, video engine, ring at 0x2000"),
])  # fmt: skip
def test_the_heading_of_a_submission(work: Work, text: str) -> None:
    trace: Any = SimpleNamespace(device=SimpleNamespace(name="kbl"))
    assert list(heading(work, trace, Paint(False))) == ["", f"== {text}"]


def test_where_an_engine_stopped_is_said_first() -> None:
    work, noop = Work("render", AddressSpace("none"), 0), layout("MI_NOOP", 9)
    for command, name in ((Command(0, 64, 1, noop, [0]), "MI_NOOP"), (Command(0, 64, 1, None, [1]), "an unknown command")):
        assert list(Text(Paint(False), False).where(work, Stopped(command=command))) == [f"   stopped in {name} at 0x40"]
    assert list(Text(Paint(False), False).where(work, Stopped())) == []
    assert list(Text(Paint(False), False).where(work, Stopped(lost=("one", "two")))) == ["   one", "   two"]


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
