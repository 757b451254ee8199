"""Registers by offset: absolute, counted from an engine, in rows, in halves."""

from __future__ import annotations

import pytest

from softgen.bits import registers
from softgen.bits.catalogue import catalogue
from softgen.bits.layout import GENERATIONS
from softgen.bits.page import read
from softgen.errors import SpecError

# What drivers load, store and read, with the names the drivers' own headers give (Linux i915, Mesa, media-driver, compute-runtime).
# generation, engine, offset ('+' where the command adds the streamer's start), name
USED = """
7    render  0x2400   MI_PREDICATE_SRC0
7    render  0x2404   MI_PREDICATE_SRC0+4
7    render  0x2408   MI_PREDICATE_SRC1
7    render  0x240c   MI_PREDICATE_SRC1+4
7    render  0x20c0   INSTPM
7    render  0xb010   L3SQCREG1
7    render  0xb020   L3CNTLREG2
7    render  0xb024   L3CNTLREG3
7    render  0x2440   3DPRIM_BASE_VERTEX
7.5  render  0x243c   3DPRIM_START_INSTANCE
7.5  render  0xb038   SCRATCH1
7.5  render  0xe49c   CHICKEN3
7.5  render  0x2600   CS_GPR[0]
7.5  video_enhance  0x1a034  RING_BUFFER_HEAD
8    render  0x2248   CTXT_PREMP_DBG
8    render  0x23a8   CTX_TIMESTAMP
8    render  0x7034   L3CNTLREG
8    video   0x12800  MFX_ERROR_FLAGS
8    video   0x12850  MFX_FRAME_CRC
8    video   0x12868  MFX_MB_COUNT
8    video   0x1c600  CS_GPR[0]
9    render  0x20d8   CS_DEBUG_MODE2
9    render  0x2580   CS_CHICKEN1
9    render  0x2608   CS_GPR[1]
9    render  0x2614   CS_GPR[2]+4
9    render  0x267c   CS_GPR[15]+4
9    render  0x7004   CACHE_MODE_1
9    render  0x7008   GT_MODE
9    render  0xe404   DEBUG_CONTROL_2
9    render  0xb09c   LNCFCMOCS[31]
9    render  0xc8fc   GFX_MOCS[63]
9    video   0x1e900  HCP_DEC_STATUS
9    video   0x1e904  HCP_CABAC_STATUS
9    blitter 0x22230  EXECLIST_SUBMITPORT
9    render  0x2358   TIMESTAMP
9    render  0x235c   TIMESTAMP+4
11   render  +0x408   MI_PREDICATE_SRC1
11   render  +0x610   CS_GPR[2]
11   render  +0x604   CS_GPR[0]+4
11   render  +0x90    3D_CHICKEN3
11   render  0x2090   3D_CHICKEN3
11   render  0x7034   L3CNTLREG
11   render  0xb0a4   TCCNTLREG
11   render  0xe18c   SAMPLER_MODE
11   render  0xe194   HALF_SLICE_CHICKEN7
11   render  0xe48c   ROW_CHICKEN4
11   render  0xe5f4   HDC_MODE
11   render  0x2550   EXECLIST_CONTROL
11   render  0x2518   EXECLIST_SQ_CONTENTS[1]
11   video   +0x178   PR_CTR_CTL
11   video   +0x17c   PR_CTR_THRSH
11   video   +0x800   MFX_ERROR_FLAGS
11   video   +0x868   MFX_MB_COUNT
11   video   +0x2800  HCP_DEC_STATUS
11   video   +0x2804  HCP_CABAC_STATUS
11   video   0x1c0600  CS_GPR[0]
11   video   0x1d4600  CS_GPR[0]
11   video_enhance  0x1d8074  ACTHD
11   position_only  0x18600   CS_GPR[0]
4.5  render  0x2350   PS_DEPTH_COUNT
4.5  render  0x2358   TIMESTAMP
4.5  render  0x2034   RING_BUFFER_HEAD
4.5  video   0x4030   RING_BUFFER_TAIL
"""


@pytest.mark.parametrize("line", USED.strip().splitlines())
def test_what_drivers_use_has_a_name(line: str) -> None:
    gen, engine, offset, name = line.split()
    found = registers.place(int(offset, 0), float(gen), engine, offset[0] == "+")
    assert found is not None and found.label == name
    assert registers.find(int(offset, 0), float(gen), engine, offset[0] == "+") is found.layout


def test_a_place_says_where_its_register_starts() -> None:
    found = registers.place(0x60C, 11, "video", relative=True)
    assert found is not None
    assert (found.offset, found.number, found.dword) == (0x1C0608, 1, 1)
    assert found.layout.relative and found.layout.key == "+0x600"


def test_engines_have_their_own_registers_at_one_offset() -> None:
    names = {engine: registers.find(0x6C, 9, engine, relative=True) for engine in ("render", "blitter", "video", "video_enhance")}
    assert [name.name for name in names.values() if name] == ["INSTDONE_1", "BCS_INSTDONE", "VCS_INSTDONE", "VECS_INSTDONE"]


def test_nothing_there() -> None:
    assert registers.find(0xFFFFC, 9, "render") is None
    assert registers.find(0x2600, 7, "render") is None, "Ivy Bridge has no general registers"
    assert registers.find(0x2800, 9, "video", relative=True) is None, "HCP moved to where the engine is on Gen11 only"


def test_an_offset_counts_from_an_engine_that_exists() -> None:
    with pytest.raises(SpecError, match="gen 7 has no engine 'video_enhance'"):
        registers.find(0x600, 7, "video_enhance", relative=True)


@pytest.mark.parametrize("gen", GENERATIONS)
def test_no_two_registers_share_a_byte(gen: float) -> None:
    taken: dict[int, str] = {}
    rows = [(0, row) for row in registers._absolute(gen)]
    rows += [(base, row) for engine, starts in registers.bases(gen).items() for base in starts for row in registers._own(gen, engine)]
    for base, (start, end, name) in rows:
        for offset in range(base + start, base + end, 4):
            other = taken.setdefault(offset, name)
            assert other == name, f"gen {gen:g}: {name} and {other} share {offset:#x}"


@pytest.mark.parametrize("gen", GENERATIONS)
def test_every_register_is_found_at_its_first_and_last_byte(gen: float) -> None:
    for name, span in catalogue().registers(gen):
        for engine in span.engines if span.relative else ("",):
            for base in registers.bases(gen).get(engine, ()) if span.relative else (0,):
                first, last = (registers.place(base + span.offset + byte, gen, engine) for byte in (0, span.size - 1))
                assert first and last and first.layout.name == last.layout.name == name
                assert (first.offset, first.number, first.dword) == (base + span.offset, 0, 0)
                assert (last.number, last.dword) == (last.layout.count - 1, last.layout.dwords - 1)


# -- the page ------------------------------------------------------------------------------------------------------


def page(head: str, option: str = "") -> str:
    return f"source public x\nregister {head}\n  gen 9  1 dwords  {option}\n    0  31:0  value\n"


def test_a_page_says_how_a_register_stands() -> None:
    record = read("p", page("R  +0x600  render,video", "times 16"))["R", 9]
    assert (record.offset, record.relative, record.count, record.engines) == (0x600, True, 16, ("render", "video"))
    other = read("p", page("R  0x600", "at 0x1c0000"))["R", 9]
    assert (other.offset, other.relative, other.count, other.engines) == (0x1C0000, False, 1, ())


def test_engines_may_depend_on_the_generation() -> None:
    text = "source public x\ncommand C  2.50  render@4.5,blitter@7+\n  gen 4.5+  2 dwords\n    1  31:0  value\n"
    found = read("p", text)
    assert found["C", 4.5].engines == ("render",) and found["C", 9].engines == ("blitter",)


@pytest.mark.parametrize(("head", "option", "words"), [
    ("R  twelve", "", r"p:3: a register stands at 0x2034"),
    ("R  +0x34", "", r"p:3: R stands at \+0x34 of which engines\?"),
    ("R  0x34", "times 0", r"p:3: a register stands at 0x2034"),
    ("R  0x34  motor", "", r"p:2: register R needs a key and engines"),
])  # fmt: skip
def test_a_page_is_read_strictly(head: str, option: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        read("p", page(head, option))
