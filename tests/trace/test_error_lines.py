"""Every form of line that kernels 4.10 to 6.12 print into an error state, whatever it is about: none is strange, and none is mistaken.

The forms were collected from each version of the driver's printing code between the two; the values are invented.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from softgen.errors import DecodeError
from softgen.inspect.decode import error_report
from softgen.trace.error_state import ErrorStateTrace
from softgen.trace.error_text import ErrorText, LabelledValue, Reader, read_text
from softgen.trace.file import open_trace

START = "GPU HANG: ecode 9:1:0x85dffffb, in triangle [4711]\nKernel: 5.4.0 x86_64\nTime: 1 s 2 us\nPCI ID: 0x5916\n"
GPU = """
Driver: 20200114
Uptime: 108 s 773733 us
Epoch: 4295000000 jiffies (250 HZ)
Capture: 4296771072 jiffies; 737258 ms ago
Capture: 4296771072 jiffies; 737258 ms ago, 12 ms after epoch
Active process (on ring render): triangle [4711], context bans 2
Active process (on ring render): triangle [4711], score 0 (unbannable)
Suspend count: 0
Subplatform: 0x1
DMC initialized: yes
DMC loaded: yes
DMC fw version: 1.26
GT awake: yes
RPM wakelock: yes
PM suspended: no
IER: 0x08000000
GTIER gt 0: 0x01010101
GTIER: 0x01010101
GTIER[5]: 0x01010101
CS timestamp frequency: 12000000 Hz, 83 ns
PGTBL_ER: 0x00000000
FORCEWAKE: 0xffff0001
DERRMR: 0x2077efef
CCID: 0x00000000
Missed interrupts: 0x00000000
GTT_CACHE_EN: 0x00000000
ERR_INT: 0x00000000
  SFC_DONE[0]: 0x00000000
  GAM_DONE: 0x00000000
"""
FIRMWARE = """
GuC firmware: i915/icl_guc_33.0.0.bin
GuC firmware wanted: i915/icl_guc_33.0.0.bin
\tstatus: RUNNING
\tversion: wanted 33.0, found 33.0
\tuCode: 181888 bytes
\tRSA: 256 bytes
GuC timestamp: 0x00000000
GuC CTB fence: 0
GuC Send CTB: raw: 0x00000000, 0x00000000/00000000, cached: 0x00000000/00000000, desc = 0x00000000, buf = 0x00000000 x 0x00001000
"""
CAPABILITIES = """
available engines: 4001
slice total: 1, mask=0001
subslice total: 3
slice0: 3 subslices, mask=00000007
slice0: 3 subslice(s) (0x00000007):
\tsubslice0: 8 EUs (0xff)
EU per subslice: 8
has slice power gating: no
CS timestamp frequency: 12000 kHz
Unavailable
graphics version: 9
graphics stepping: **
memory-regions: 0x41
page-sizes: 211000
dma_mask_size: 39
is_mobile: no
rawclk rate: 24000 kHz
Has logical contexts? yes
scheduler: 1f
i915.vbt_firmware=(null)
i915.modeset=-1
i915.dmc_firmware_path=
i915.force_probe=*
"""
DISPLAY = """
Num Pipes: 3
PWR_WELL_CTL2: 00000000
Pipe [0]:
  Power: on
  SRC: 077f0437
Plane [0]:
  CNTR: 00000000
Cursor [0]:
CPU transcoder: A
  CONF: 00000000
Overlay, status: 0x00000000, interrupt: 0x00000000
 Register file at 0x00001000:
    OBUF_0Y: 0x00000000
"""
ENGINE = """
rcs0 command stream:
  IDLE?: no
  HEAD:  0x00000114 [0x00000100]
  SC_INSTDONE_EXTRA2: 0xffffffff
  GEOM_SVGUNIT_INSTDONE[0][3]: 0xffffffff
  SYNC_2: 0x00000000
  CSCMDOP: 0x00000000
  PP_DIR_BASE: 0x00000000
  waiting: yes
  last_seqno: 0x00000001
  ring->head: 0x00000000
  hangcheck stall: yes
  hangcheck action: dead
  hangcheck action timestamp: 4294967295, 8000 ms ago
  hangcheck timestamp: 32ms (4294967295; epoch)
  ELSP[0]:  pid 4711, ban score 0, seqno       1f:00000006, emitted 8000ms ago, head 00000100, tail 00000120
  ELSP[1]:  pid 4711, seqno       1f:00000006!+, prio 0, emitted 8000ms, start 00100000, head 00000100, tail 00000120
  Active context: triangle[4711] user_handle 1 hw_id 4, prio 0, ban score 0 (unbannable) guilty 0 active 0
  Active context: triangle[4711] prio 0, guilty 0 active 0, runtime total 0ns, avg 0ns
  context timeline seqno 6
Active (render ring) [2]:
    00000000_00200000     4096 3e 00 [ c9559 00 00 ] 00 dirty purgeable uncached (fence: 2)
    00000000_00201000     4096 3e 00 0c X dirty userptr rcs0 LLC (name: 1)
rcs0 --- 2 requests
  pid 4711, ban score 0, seqno       1f:00000006, prio 0, emitted 8000ms ago, head 00000100, tail 00000120
rcs0 --- ? waiters [unable to acquire spinlock]
rcs0 --- 1 waiters
 seqno 0x00000001 for triangle [4711]
"""
CAPTURED = """
global --- GuC Error Capture on rcs0 command stream:
Coverage:  full-capture
  RegListType: Global
    Owner-Id: 0
    NumRegs: 3
      ERROR_GEN6:  0x00000001
      GEN8_FAULT_TLB_DATA0:  0x34567890
      GEN8_FAULT_TLB_DATA1:  0x00000002
  RegListType: Engine-Class
    Owner-Id: 0
    GuC-Eng-Class: 0
    NumRegs: 1
      GEN8_SAMPLER_INSTDONE[0][1]:  0x00000007
  RegListType: Engine-Instance
    i915-Eng-Name: rcs0 command stream
    i915-Eng-Lookup Fail!
    LRCA: 0xfedf0000
    NumRegs: 6
      ACTHD_LDW:  0x00200010
      ACTHD_UDW:  0x00000012
      IPEHR:  0x7a000004
      HEAD:  0x00000114
      TAIL:  0x00000120
      REG-0x00002244:  0x00000009
  hung: 1
"""
NONE = "\n  Missing GuC capture node for rcs0\n  No matching ee-node\n"


def read(tmp_path: Path, text: str) -> ErrorText:
    path = tmp_path / "error.txt"
    path.write_text(START + text.strip("\n") + "\n")
    return read_text(path)


@pytest.mark.parametrize("text", [GPU, FIRMWARE, CAPABILITIES, DISPLAY, ENGINE, CAPTURED, NONE],
                         ids=["gpu", "firmware", "capabilities", "display", "engine", "captured", "none"])  # fmt: skip
def test_no_line_of_any_kernel_is_strange(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).strange == []
    assert read(tmp_path, text + "this is no line of a kernel\n").strange == [4 + len(text.strip("\n").split("\n")) + 1]


def test_what_stands_behind_an_engine_is_not_its_own(tmp_path: Path) -> None:
    found = read(tmp_path, ENGINE + DISPLAY.lstrip("\n"))
    (engine,) = found.engines
    assert not {"SRC", "CNTR", "CONF", "OBUF_0Y"} & {value.label for value in engine.values}
    assert found.tails == {"rcs0": 0x120}


def test_numbers_of_the_driver_are_no_registers(tmp_path: Path) -> None:
    read(tmp_path, GPU + ENGINE.lstrip("\n") + CAPABILITIES.lstrip("\n"))
    trace = ErrorStateTrace(tmp_path / "error.txt")
    shown = {register.title for register in error_report.registers(trace)}
    assert {"IER", "GTIER[5]", "CCID", "HEAD", "PP_DIR_BASE", "GEOM_SVGUNIT_INSTDONE[0][3]"} <= shown
    assert not {"Subplatform", "Missed interrupts", "ring->head", "last_seqno", "memory-regions", "PCI ID"} & shown
    assert ("ring->head", "0x00000000") in [(word.title, word.text) for word in error_report.words(trace, "rcs0")]


def test_a_file_may_begin_with_an_empty_line(tmp_path: Path) -> None:
    (tmp_path / "error.txt").write_text("\n" + START)
    found = read_text(tmp_path / "error.txt")
    pci_id = found.value("PCI ID")
    assert found.heading.startswith("GPU HANG") and pci_id and (pci_id.line, pci_id.number) == (5, 0x5916) and found.strange == []


def test_an_empty_port_has_no_line_of_its_own(tmp_path: Path) -> None:
    (engine,) = read(tmp_path, "rcs0 command stream:\n  HEAD:  0x00000010\n  ELSP[0]:  ELSP[1]:  hung: 1\n").engines
    assert [(value.title, value.text) for value in engine.values][1:] == [("hung", "1")]


@pytest.mark.parametrize("after", ["", ", bans 0", ", ctx 1 [4]", ", ctx 1 [4], score 0", ", ctx -1 [4], score 40 (unbannable)"])
@pytest.mark.parametrize("process", ["triangle", "a (b) [1], c", "x [2]"])
def test_who_submitted_a_batch(tmp_path: Path, process: str, after: str) -> None:
    (block,) = read(tmp_path, f"rcs0 (submitted by {process} [4711]{after}) --- gtt_offset = 0x00000001 00200000\n~z").blocks
    assert (block.owner, block.by, block.name, block.address) == ("rcs0", process, "gtt_offset", 0x1_0020_0000)


def test_what_has_no_address_is_shown_and_left_alone(tmp_path: Path) -> None:
    read(tmp_path, "rcs0 --- NULL context = 0xffffffff ffffffff\n~z")
    trace = ErrorStateTrace(tmp_path / "error.txt")
    assert list(trace.work()) == []
    *_, memory = error_report.as_json(trace)
    assert (memory["memory"], memory["address"]) == ("NULL context", None)
    (tmp_path / "error.txt").write_text(START + "rcs0 --- user = 0xffffffff fffff000\n~z\n")
    with pytest.raises(DecodeError, match=r"error\.txt:5: 0xfffffffffffff000 is no address of a GPU"):
        open_trace(tmp_path / "error.txt")


@pytest.mark.parametrize("marker", [":", "~"])
def test_memory_the_kernel_had_no_room_for(tmp_path: Path, marker: str) -> None:
    read(tmp_path, f"rcs0 --- batch = 0x00000000 00200000\n{marker}")
    trace = ErrorStateTrace(tmp_path / "error.txt")
    assert list(trace.work()) == []
    assert "line 5: rcs0 batch holds no bytes" in trace.notes


def test_tables_of_buffers_are_neither_values_nor_strange(tmp_path: Path) -> None:
    rows = "  00200000     4096 3e 00 [ c9559 00 00 ] 00 dirty\n    00000000_00201000     4096 3e 00 0c X dirty\n"
    tables = f"Active (render ring) [2]:\n{rows}Pinned [1]:\n{rows}"
    found = read(tmp_path, f"rcs0 command stream:\n  HEAD:  0x00000010\n{tables}  HEAD: 0x00000020")
    assert found.strange == [] and not [value.title for value in found.values if value.label.startswith(("Active (", "Pinned", "002"))]
    assert [(value.label, value.number) for value in found.engines[0].values] == [("HEAD", 0x10)]


@pytest.mark.parametrize("next", ["rcs0 command stream:", "rcs0 (submitted by x [1]) --- batch = 0x00002000"])
def test_memory_stands_right_behind_the_line_that_says_whose_it_is(tmp_path: Path, next: str) -> None:
    """Memory behind an engine's line is nobody's, and dwords end where something else begins."""
    with pytest.raises(DecodeError, match=r"error\.txt:5: no memory follows rcs0 --- user; the file may be cut off"):
        read(tmp_path, f"rcs0 --- user = 0x00001000\n{next}\n~z\n")
    with pytest.raises(DecodeError, match=r"error\.txt:8: memory without a line before it"):
        read(tmp_path, "rcs0 --- user = 0x00001000\n[0000] 00000001\nrcs0 command stream:\n~z\n")
    found = read(tmp_path, f"rcs0 --- user = 0x00001000\n[0000] 00000001\n{next}\n[0000] 00000002\n")
    assert [block.address for block in found.blocks] == [0x1000, 0x2000][: 1 + ("batch" in next)]


def test_how_memory_is_written_is_told(tmp_path: Path) -> None:
    lines = ["rcs0 --- batch = 0x00001000", ":z", "rcs0 --- user = 0x00002000", "~z", "rcs0 --- user = 0x00003000", "00000000 :  00000001",
             "[0004] 00000002", "rcs0 --- 0 requests"]  # fmt: skip
    blocks = read(tmp_path, "\n".join(lines)).blocks
    assert [(block.encoding, block.line, block.address) for block in blocks] == [
        ("deflated, base 85", 5, 0x1000), ("base 85", 7, 0x2000), ("dwords", 9, 0x3000)]  # fmt: skip


def test_values_and_blocks_have_a_largest_number(tmp_path: Path) -> None:
    """More are no file of a kernel: the values of an engine are counted apart from those of the GPU."""
    reader, line = Reader(tmp_path / "error.txt"), b"EIR: 0x00000000"
    reader.found.values = [LabelledValue(1, "EIR", "", "0")] * 65535
    reader.line(1, line, 0, len(line))
    reader.line(2, b"rcs0 command stream:", 0, 20)
    reader.line(3, b"  HEAD: 0x00000000", 0, 18)
    with pytest.raises(DecodeError, match=r"error\.txt:4: more than 65536 values"):
        reader.line(4, line, 0, len(line))
    block = "rcs0 --- user = 0x00001000\n~z\n"
    assert len(read(tmp_path, 4096 * block).blocks) == 4096
    with pytest.raises(DecodeError, match=r"error\.txt:8197: more than 4096 blocks of memory"):
        read(tmp_path, 4097 * block)


def test_a_line_of_words_has_4096_characters_at_most(tmp_path: Path) -> None:
    assert read(tmp_path, "Name: " + "x" * 4090).values[-1].text == "x" * 4090
    with pytest.raises(DecodeError, match=r"error\.txt:5: a line of 4097 characters that is no memory"):
        read(tmp_path, "Name: " + "x" * 4091)


def test_registers_the_firmware_read_go_by_the_same_names(tmp_path: Path) -> None:
    found = read(tmp_path, CAPTURED)
    (engine,) = found.engines
    assert (engine.name, engine.kind) == ("rcs0", "render")
    assert {value.title: value.number for value in engine.values if value.number is not None} == {
        "SAMPLER_INSTDONE[0][1]": 7, "ACTHD": 0x12_0020_0010, "IPEHR": 0x7A000004, "HEAD": 0x114, "TAIL": 0x120, "REG-0x00002244": 9,
    }  # fmt: skip
    assert [(value.title, value.text) for value in engine.values if value.number is None] == [("hung", "1")]  # no heading of a list
    trace = ErrorStateTrace(tmp_path / "error.txt")
    assert error_report.fault(trace) == (0x2 << 44 | 0x34567890 << 12, "ppgtt")
    assert [register.name for register in error_report.registers(trace) if register.title == "ERROR"] == ["GFX_ARB_ERROR_RPT"]


@pytest.mark.parametrize("line", [" (submitted by x [1]) --- y" * 150, " (submitted by x [1]) --- b = 0x1 " * 110 + "z", " --- " * 800])
def test_a_line_that_is_nearly_a_block_over_and_over_costs_little(tmp_path: Path, line: str) -> None:
    before = time.process_time()
    assert len(read(tmp_path, f"a{line}\n" * 40).strange) == 40
    assert time.process_time() - before < 5  # 14 s when such lines were searched for every way to read them
