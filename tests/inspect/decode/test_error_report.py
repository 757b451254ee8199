"""Registers of error states: faults from one line or two, units that are not done, dwords of a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgen.bits import page
from softgen.bits.catalogue import layout
from softgen.inspect.cli import decode_error
from softgen.inspect.cli.output import Paint
from softgen.inspect.decode import error_report
from softgen.inspect.decode.error_report import Shown
from softgen.trace.error_state import ErrorStateTrace

START = "GPU HANG: ecode 9:1:0x85dffffb, in triangle [4711]\nKernel: 5.4.0 x86_64\nTime: 1 s 2 us\nPCI ID: 0x{pci:04x}\n"


def opened(tmp_path: Path, text: str, pci: int = 0x5916) -> ErrorStateTrace:
    (tmp_path / "error.txt").write_text(START.format(pci=pci) + text)
    return ErrorStateTrace(tmp_path / "error.txt")


@pytest.mark.parametrize("text, address, table", [
    ("FAULT_TLB_DATA: 0x00000007 0xfff12345\n", 0x7FFF_1234_5000, "ppgtt"),
    ("FAULT_TLB_DATA: 0x00000010 0x00000001\n", 0x1000, "ggtt"),
    ("FAULT_TLB_DATA1: 0x00000002\nFAULT_TLB_DATA0: 0x34567890\n", 0x2345_6789_0000, "ppgtt"),
    ("FAULT_TLB_DATA0: 0x34567890\nFAULT_TLB_DATA1: 0x00000000\n", 0x0345_6789_0000, "ppgtt"),
    ("FAULT_TLB_DATA0: 0x34567890\n", 0x0345_6789_0000, "ppgtt"),
    ("FAULT_TLB_DATA1: 0x00000012\n", 0x2000_0000_0000, "ggtt"),
    ("FAULT_TLB_DATA1: 0x00000011\nFAULT_TLB_DATA0: 0x00000000\n", 0x1000_0000_0000, "ggtt"),
    ("FAULT_TLB_DATA: 0x00000000 0x00000000\nFAULT_TLB_DATA0: 0x00000005\n", 0x5000, "ppgtt"),
])  # fmt: skip
def test_a_fault_has_an_address_and_a_table(tmp_path: Path, text: str, address: int, table: str) -> None:
    """Bits 43:12 in the lower register, 47:44 in the upper one, and which table above them (KBL FAULT_TLB_RD_DATA1)."""
    trace = opened(tmp_path, text)
    assert error_report.fault(trace) == (address, table)
    first, *_ = error_report.as_json(trace)
    assert first["fault"] == {"address": address, "table": table}


@pytest.mark.parametrize("text", ["", "FAULT_TLB_DATA: 0x00000000 0x00000000\n",
                                  "FAULT_TLB_DATA1: 0x00000000\nFAULT_TLB_DATA0: 0x00000000\n"])  # fmt: skip
def test_no_fault_is_told_where_there_is_none(tmp_path: Path, text: str) -> None:
    trace = opened(tmp_path, text)
    assert error_report.fault(trace) is None and "fault" not in next(error_report.as_json(trace))


def test_a_gpu_without_these_registers_has_no_fault(tmp_path: Path) -> None:
    assert error_report.fault(opened(tmp_path, "FAULT_TLB_DATA: 0x00000007 0xfff12345\n", 0x0166)) is None


def test_the_line_of_a_fault_is_two_registers(tmp_path: Path) -> None:
    shown = [(found.title, found.value, found.engine, found.line)
             for found in error_report.registers(opened(tmp_path, "FAULT_TLB_DATA: 0x00000007 0xfff12345\nEIR: 0x00000003\n"))]  # fmt: skip
    assert shown == [("FAULT_TLB_DATA1", 7, "", 5), ("FAULT_TLB_DATA0", 0xFFF12345, "", 5), ("EIR", 3, "", 6)]


@pytest.mark.parametrize("value, dwords", [(5, [5]), (0xFFFFFFFF, [0xFFFFFFFF]), (1 << 32 | 5, [5, 1]), (0x12 << 32, [0, 0x12])])
def test_a_value_has_as_many_dwords_as_it_needs_or_its_page_says(value: int, dwords: list[int]) -> None:
    assert Shown("rcs0", "X", value, None, 1).dwords == Shown("rcs0", "HEAD", value, layout("RING_BUFFER_HEAD", 9), 1).dwords == dwords
    timestamp = layout("TIMESTAMP", 9)
    assert timestamp.dwords == 2 and Shown("rcs0", "TIMESTAMP", value, timestamp, 1).dwords == [value & 0xFFFFFFFF, value >> 32]


def test_a_field_that_is_the_whole_register_has_no_line_of_its_own() -> None:
    """The value is beside the register's name already."""
    whole, part = layout("IPEHR", 9), layout("RING_BUFFER_START", 9)
    assert len(whole.fields) == len(part.fields) == 1 and whole.fields[0].width == 32
    shown = [list(decode_error._register(Shown("rcs0", "R", 0x1000, found, 1), brief, Paint(False)))
             for found, brief in ((whole, False), (part, False), (part, True), (None, False))]  # fmt: skip
    line = f"  {'R':24} 0x00001000  "
    assert shown == [[f"{line}IPEHR"], [f"{line}RING_BUFFER_START", f"    {'starting_address':40} 0x1000"], [f"{line}RING_BUFFER_START"],
                     [f"{line}(no page)"]]  # fmt: skip


def flags(*names: str) -> Shown:
    """A register of flags, none of which is set but the second."""
    bits = "\n".join(f"    {'0 ' if number == 0 else '  '} {number}  {name}  bool" for number, name in enumerate(names))
    return Shown("rcs0", "R", 2, page.read("p", f"source KBL 1\nregister R 0x2000\n  gen 9  1 dwords\n{bits}\n")["R", 9.0], 1)


def test_units_that_are_not_done_are_named() -> None:
    """Of a register that has at least two such bits, and no more others than those; switches are no units."""
    assert flags("vs_done", "gs_done", "ps_done").busy() == ["vs", "ps"]
    assert flags("vs_done", "gs_done").busy() == ["vs"]
    assert flags("vs_done", "gs_done", "ring_idle", "sampler_enable").busy() == ["vs", "ring_idle"]
    assert flags("vs_done", "gs_done", "a", "b", "c").busy() is None
    assert flags("vs_done", "other").busy() is None
    assert Shown("rcs0", "R", 2, None, 1).busy() is None
