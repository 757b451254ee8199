"""Error states as every kernel version writes them (error_bytes.py): what is read, and how damage is reported."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import device, devices
from softgen.errors import DecodeError, SoftgenError
from softgen.memory.store import MemfdBuffer
from softgen.streamer.parser import Command, CommandParser
from softgen.trace import error_state, tables
from softgen.trace.error_data import base85
from softgen.trace.error_state import ErrorStateTrace
from softgen.trace.error_text import engine_of
from softgen.trace.file import open_trace
from softgen.trace.work import Mark, Work
from tests.conftest import ROOT
from tests.trace import error_bytes as e
from tests.trace.error_bytes import KERNELS, PAGE, Hang, Kernel

NEW = KERNELS["6.12"]
BATCH_END, NOOP, INTERRUPT = 0x05000000, 0, 0x01000000
RING = 0x00100000


def dwords(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


@cache
def compute() -> tuple[Work, Hang]:
    """A job of a real driver that hung in its walker, as if the kernel had saved all its buffers; and the job as it was captured."""
    work = list(open_trace(ROOT / "tests" / "data" / "kbl-vk-compute").work())[1]
    saved = {region.start: work.space.read(region.start, region.size) for region in work.space.regions()}
    ring = bytearray(4 * PAGE)
    struct.pack_into("<5I", ring, 0x108, 0x18800101, work.batch & 0xFFFFFFFF, work.batch >> 32, INTERRUPT, NOOP)
    commands = walked(work)
    walker = next(i for i, command in enumerate(commands) if command.name == "GPGPU_WALKER")
    hang = Hang(0x5916, (work.batch, saved.pop(work.batch)), (RING, bytes(ring)), 0x114, 0x120, (0x100, 0x120), user=sorted(saved.items()),
                acthd=commands[walker + 2].address, bbaddr=commands[walker + 1].address, ipehr=commands[walker].dwords[0])  # fmt: skip
    return work, hang


def walked(work: Work) -> list[Command]:
    generation = open_trace(ROOT / "tests" / "data" / "kbl-vk-compute").device.generation
    parser = CommandParser(generation, work.engine, work.space, work.global_space)
    road = parser.ring(work.batch, work.head, work.tail, work.size) if work.kind == "ring" else parser.batch(work.batch)
    return [step for step in road if isinstance(step, Command)]


def written(tmp_path: Path, kernel: Kernel = NEW, hang: Hang | None = None, finish: bool = True) -> Path:
    path = tmp_path / "error.txt"
    path.write_text(e.state(kernel, hang or compute()[1], finish))
    return path


@pytest.mark.parametrize("gpu, label, engine, name", [
    ("ivb", "PP_DIR_BASE", "render", "PP_DIR_BASE"), ("ivb", "PP_DIR_BASE", "blitter", None), ("ivb", "PP_DIR_BASE", "", "PP_DIR_BASE"),
    ("ivb", "PP_DIR_BASE", None, None), ("skl", "PP_DIR_BASE", "render", None),
    ("ivb", "EIR", None, "EIR"), ("skl", "CCID", None, "CCID"), ("skl", "CCID", "blitter", "CCID"),
    ("skl", "FAULT_TLB_DATA0", None, "FAULT_TLB_DATA0"),
    ("ivb", "HWS", "video", "VCS_HWS_PGA"), ("ivb", "HWS", "", None), ("skl", "HWS", "video", "HWS_PGA"), ("skl", "HWS", "", "HWS_PGA"),
    ("skl", "INSTDONE", "render", "INSTDONE_1"), ("skl", "INSTDONE", "blitter", "BCS_INSTDONE"), ("skl", "INSTDONE", "", None),
    ("ivb", "INSTDONE", "video_enhance", None), ("skl", "SC_INSTDONE", "video", "SC_INSTDONE"), ("skl", "UNHEARD_OF", "render", None),
])  # fmt: skip
def test_registers_by_what_a_line_calls_them(gpu: str, label: str, engine: str | None, name: str | None) -> None:
    """An engine's own name comes before that of all engines, and only registers count that the engine has. An engine that is not known has
    no kind; without one it is a register of the GPU."""
    trace = object.__new__(ErrorStateTrace)
    trace.generation = device(gpu).generation
    found = trace.register(label, engine)
    assert (found and found.name) == name


# -- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_gives_the_same_commands(tmp_path: Path, name: str) -> None:
    captured, hang = compute()
    kernel = KERNELS[name]
    trace = open_trace(written(tmp_path, kernel))
    assert trace.device.name == "kbl"
    works = list(trace.work())
    assert trace.notes == [error_state.INCOMPLETE] and "other memory is missing" in trace.notes[0]
    batch = [command for work in works for command in walked(work) if command.level == 1]
    assert [(item.address, item.dwords) for item in batch] == [(command.address, command.dwords) for command in walked(captured)]
    if kernel.requests:  # the ring leads to the batch; without its part of the ring, the head is already past it
        assert [(work.kind, work.head, work.tail) for work in works] == [("ring", 0x100, 0x120)]
    else:
        assert [(work.kind, work.head, work.tail) for work in works] == [("ring", 0x114, 0x120), ("batch", 0, 0)]
    assert all(work.engine == "render" and work.global_space is not None for work in works)
    space = works[-1].global_space
    assert space and space.read(RING, 4 * PAGE) == hang.ring[1]
    status = bytes(range(256)) * 16  # the kernels that wrote dwords wrote a quarter of it
    assert space.read(0x7FDFD000, PAGE) == (status[:1024].ljust(PAGE, b"\0") if kernel.memory == "x" else status)
    for address, data in hang.user if kernel.user else ():
        assert works[-1].space.read(address, len(data)) == data
    assert not [note for note in trace.notes if "left out" in note or "unknown" in note or "no known kind" in note]


@pytest.mark.parametrize("name", KERNELS)
def test_registers(tmp_path: Path, name: str) -> None:
    hang = replace(compute()[1], fault=0x7FFF12345000)
    trace = ErrorStateTrace(written(tmp_path, KERNELS[name], hang))
    (engine,) = trace.text.engines
    assert (engine.kind, engine.instance) == ("render", 0)
    assert engine.number("START") == RING and engine.number("IPEHR") == hang.ipehr and engine.number("ACTHD") == hang.acthd
    assert engine.number("BBADDR") == hang.bbaddr | 1 and engine.number("PDP2") == 2 << 32 | 0x1000
    sampler = [value.title for value in engine.values if value.label == "SAMPLER_INSTDONE"]
    assert sampler == [f"SAMPLER_INSTDONE[0][{n}]" for n in range(3)]
    fault = trace.text.value("FAULT_TLB_DATA")
    assert fault and fault.number == 7 << 32 | 0xFFF12345
    assert [value.text for value in trace.text.values if value.label == "fence"] == ["00000000", "9c5307707440001"]


def test_where_the_engine_stopped(tmp_path: Path) -> None:
    hang = compute()[1]
    (work,) = open_trace(written(tmp_path)).work()
    assert work.stop and work.stop.header == hang.ipehr
    assert work.stop.marks == (Mark("HEAD", RING + 0x114, True), Mark("ACTHD", hang.acthd), Mark("BBADDR", hang.bbaddr))
    # An engine that stood in its ring has an offset there, below the count of wraps.
    (work,) = open_trace(written(tmp_path, hang=replace(hang, head=0x06200114, acthd=0x06200114, bbaddr=0))).work()
    assert work.stop and work.stop.marks[:2] == (Mark("HEAD", RING + 0x114, True), Mark("ACTHD", RING + 0x114, True))


def test_registers_have_the_sign_of_an_address_above_it(tmp_path: Path) -> None:
    """An address of 48 bits is canonical in registers: its bit 47 is repeated above it."""
    low, sign = 0x8000_0020_0000, 0xFFFF << 48
    hang = Hang(0x5916, (low, dwords(NOOP, NOOP, BATCH_END)), acthd=sign | low + 4, bbaddr=sign | low + 8)
    (work,) = open_trace(written(tmp_path, hang=hang)).work()
    assert work.stop and work.stop.marks[-2:] == (Mark("ACTHD", low + 4), Mark("BBADDR", low + 8))


def test_a_ring_that_does_not_lead_to_its_batch_has_its_own_marks(tmp_path: Path) -> None:
    hang = compute()[1]
    ring, batch = open_trace(written(tmp_path, KERNELS["4.4"])).work()
    assert ring.stop and ring.stop.marks == (Mark("HEAD", RING + 0x114, True),) and ring.stop.header is None
    assert batch.stop and batch.stop.marks == (Mark("ACTHD", hang.acthd), Mark("BBADDR", hang.bbaddr)) and batch.stop.header == hang.ipehr


def test_requests_that_wait_behind_it_are_left_out(tmp_path: Path) -> None:
    """Their batches are not in the file. Older kernels list where each request ends."""
    for name in ("3.14", "4.4", "5.6"):
        work = next(iter(open_trace(written(tmp_path, KERNELS[name], replace(compute()[1], tail=0x0F00))).work()))
        assert (work.kind, work.tail) == ("ring", 0x120), name


def test_a_ring_that_wraps(tmp_path: Path) -> None:
    hang = compute()[1]
    ring = dwords(NOOP, INTERRUPT).ljust(2 * PAGE - 8, b"\0") + hang.ring[1][0x108:0x110]
    ring = hang.ring[1][0x110:0x11C] + ring[12:]
    (work,) = open_trace(written(tmp_path, hang=replace(hang, ring=(RING, ring), request=(2 * PAGE - 8, 0x10)))).work()
    assert [command.name
            for command in walked(work) if command.level == 0] == ["MI_BATCH_BUFFER_START", "MI_USER_INTERRUPT", "MI_NOOP", "MI_NOOP"]


@pytest.mark.parametrize("name", [gpu.name for gpu in devices().values()])
def test_every_gpu(tmp_path: Path, name: str) -> None:
    gpu = device(name)
    batch = dwords(NOOP, NOOP, BATCH_END).ljust(PAGE, b"\0")
    hang = Hang(gpu.pci_id, (0x40000, batch), acthd=0x40004, ipehr=NOOP, many=gpu.generation.address_bits > 32)
    (work,) = open_trace(written(tmp_path, KERNELS["4.15"], hang)).work()
    assert (work.kind, work.batch, work.engine) == ("batch", 0x40000, "render")
    assert work.stop and Mark("ACTHD", 0x40004) in work.stop.marks


def test_each_engine_has_memory_of_its_own(tmp_path: Path) -> None:
    """Two contexts may use the same address; the kernel names the engine before each block."""
    hang = replace(compute()[1], user=[], request=(0, 0), head=0, tail=0)
    first = e.state(NEW, hang)
    other = replace(hang, batch=(hang.batch[0], dwords(BATCH_END, NOOP)), ring=(0x300000, bytes(PAGE)))
    second = e.state(replace(NEW, owner="vcs1", engine="vcs1"), other)
    path = tmp_path / "error.txt"
    path.write_text(first + second[second.index("vcs1 command stream") :])
    render, video = open_trace(path).work()
    assert (render.engine, video.engine, render.context, video.context) == ("render", "video", 0, 1)
    assert (render.sequence, video.sequence) == (0, 1)
    assert render.space.read(hang.batch[0], 8) == hang.batch[1][:8] and video.space.read(hang.batch[0], 8) == dwords(BATCH_END, NOOP)


def test_all_blocks_of_a_space_share_one_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins with a page of it, and has as many bytes as were saved: kernels that wrote dwords saved parts of pages."""
    sizes: list[tuple[str, int]] = []
    monkeypatch.setattr(error_state, "MemfdBuffer", lambda size, name: sizes.append((name, size)) or MemfdBuffer(size, name))
    hang = replace(compute()[1], batch=(0x40000, b"b" * 3 * PAGE), ring=(RING, b"r" * PAGE))
    work = list(open_trace(written(tmp_path, KERNELS["4.4"], hang)).work())[-1]
    assert sizes == [("global", 4 * PAGE), ("render ring context", 3 * PAGE)]  # ring, status page and two pages of the context's image
    assert work.global_space and work.global_space.read(RING, PAGE) == b"r" * PAGE and work.space.read(0x40000, 3 * PAGE) == b"b" * 3 * PAGE
    assert work.global_space.read(0x7FDF0000, 2 * PAGE) == bytes(2 * PAGE)


def test_engines_by_all_their_names() -> None:
    assert [engine_of(name) for name in ("rcs0", "render", "render ring", "blitter ring", "bsd2", "vcs3", "vebox", "vecs1")] == [
        ("render", 0), ("render", 0), ("render", 0), ("blitter", 0), ("video", 1), ("video", 3), ("video_enhance", 0), ("video_enhance", 1),
    ]  # fmt: skip
    assert engine_of("ccs0") == engine_of("") == ("", 0)


def test_every_register_of_the_table_has_a_page() -> None:
    for kind, named in tables.error_state()["register"].items():
        assert [name for name in named.values() if name not in catalogue().sections] == [], kind


def test_memory_without_registers(tmp_path: Path) -> None:
    """A file somebody cut by hand: the batch alone is still a batch."""
    path = tmp_path / "error.txt"
    path.write_text("\n".join(["Time: 1 s 2 us", *e.block(NEW, "batch", 0x10000, dwords(NOOP, BATCH_END))]) + "\n")
    (work,) = open_trace(path, "icl").work()
    assert (work.kind, work.batch, work.engine) == ("batch", 0x10000, "render")
    with pytest.raises(DecodeError, match=r"for which GPU\? it has no line 'PCI ID'; name one with --gpu"):
        open_trace(path)


def test_a_stream_without_its_end_is_read(tmp_path: Path) -> None:
    """Kernels 4.10 and on sometimes had no room for it."""
    (work,) = open_trace(written(tmp_path, KERNELS["4.10"], finish=False)).work()
    assert len(walked(work)) > 20


def test_line_ends_of_other_systems(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (work,) = open_trace(path).work()
    assert len(walked(work)) > 20


# -- what is wrong ---------------------------------------------------------------------------------------------------


def changed(tmp_path: Path, old: str, new: str, kernel: Kernel = NEW) -> Path:
    path = written(tmp_path, kernel)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


WRONG = {
    "a number": ("IPEHR: 0x7105000d", "IPEHR: 0xnone", r"error\.txt:\d+: IPEHR must be a hexadecimal number, not '0xnone'"),
    "a PCI id": ("PCI ID: 0x5916", "PCI ID: 0x4571", r"error\.txt:8: .*0x4571.*; name a GPU with --gpu"),
    "a character": ("\n:", "\n:\x7f", r"error\.txt:\d+: rcs0 batch: b'\\x7f' at column 2 is no character of base 85"),
    "a z inside": ("\n:", "\n:!z", r"a z at column 3 stands inside a dword"),
    "too large a dword": ("\n:", "\n:uuuuu", r"dword 0 does not fit 32 bits"),
    "no zlib": ("\n:", "\n:5sdq,", r"rcs0 batch: cannot be inflated after 0x0 bytes: .*incorrect header"),
    "memory of nobody": ("EIR: 0x00000000", ":zzzz", r"error\.txt:12: memory without a line before it that says whose it is"),
    "an address": ("HW Status = 0x00000000 7fdfd000", "HW Status = 0x00000000 7fdfd004", r"0x1000 bytes at 0x7fdfd004 are no pages"),
    "a wide address": ("HW Status = 0x00000000", "HW Status = 0x00100000", r"0x1000007fdfd000 is no address of a GPU"),
    "a long line": ("EIR: 0x00000000", "EIR: " + "0" * 5000, r"error\.txt:12: a line of 5005 characters that is no memory"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "why"), WRONG.values(), ids=WRONG)
def test_damage_is_told_with_its_line(tmp_path: Path, old: str, new: str, why: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(DecodeError, match=why) as error:
        list(open_trace(path).events())
    assert str(path) in str(error.value)


@pytest.mark.parametrize("owner", ["rc\0s", "\0", "x" * 3000, "\x1b[2J", "\u00e9" * 200, "\x9b2J"])
def test_names_are_anything(tmp_path: Path, owner: str) -> None:
    """A process chooses its name, and a damaged file any other: what a terminal would obey is replaced."""
    path = written(tmp_path)
    path.write_text(path.read_text().replace("rcs0 (", f"{owner} (").replace("rcs0 ---", f"{owner} ---").replace("EIR", f"{owner}: 1\nEIR"))
    trace = ErrorStateTrace(path)
    assert not list(trace.work())  # registers of rcs0, memory of somebody else
    assert len(trace.text.blocks) > 3 and all(text.isprintable() for block in trace.text.blocks for text in (block.owner, block.by))


def test_a_missing_line_of_dwords(tmp_path: Path) -> None:
    path = changed(tmp_path, "00000010 :  ", "00000014 :  ", KERNELS["4.4"])
    with pytest.raises(DecodeError, match=r"error\.txt:\d+: offset 0x14 follows 0x10 bytes; a line is missing"):
        list(open_trace(path).events())


@pytest.mark.parametrize("name", ["4.10", "4.10 without zlib", "4.4"])
def test_a_file_that_is_cut_off(tmp_path: Path, name: str) -> None:
    """At any place: an answer, or an error that says so; never less memory in silence."""
    path = written(tmp_path, KERNELS[name])
    whole = path.read_bytes()
    start = whole.index(b" --- ") + 50
    for cut in range(start, len(whole), max(1, (len(whole) - start) // 60)):
        path.write_bytes(whole[:cut])
        try:
            trace = open_trace(path)
            list(trace.events())
            assert any("may be cut off" in note for note in trace.notes) or whole[cut - 1 : cut] == b"\n"
        except DecodeError as error:
            assert "cut off" in str(error) or "in the middle" in str(error) or "inflated" in str(error), error
    path.write_bytes(whole[: whole.index(b"\n", whole.index(b" --- ")) + 1])
    with pytest.raises(DecodeError, match="no memory follows render ring --- gtt_offset; the file may be cut off"):
        open_trace(path)


def test_a_bomb_is_refused_before_it_fills_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_state, "MOST_UNFOLDED", 3 << 20)
    hang = replace(compute()[1], user=[(1 << 30, bytes(2 << 20)), (1 << 31, b"\1" * (2 << 20))])
    with pytest.raises(DecodeError, match="the memory in this file unfolds to more than 0x300000 bytes"):
        list(open_trace(written(tmp_path, hang=hang)).events())


def test_overlapping_and_strange_memory_is_noted(tmp_path: Path) -> None:
    hang = replace(compute()[1], user=[(0x40000000, b"\1" * 2 * PAGE), (0x40001000, b"\2" * PAGE)])
    trace = open_trace(written(tmp_path, hang=hang))
    list(trace.events())
    assert any("rcs0 user overlaps rcs0 user and was left out" in note for note in trace.notes)
    trace = open_trace(changed(tmp_path, "--- HW Status", "--- Love letters"))
    list(trace.events())
    assert any("memory called 'Love letters' is unknown and was left out" in note for note in trace.notes)
    trace = open_trace(changed(tmp_path, "rcs0 --- HW Status", "ccs0 --- HW Status"))
    list(trace.events())
    assert any("engine 'ccs0' is unknown" in note for note in trace.notes)


def test_rings_that_make_no_sense_are_noted(tmp_path: Path) -> None:
    hang = replace(compute()[1], request=(0x9000, 0x9010))
    trace = open_trace(written(tmp_path, hang=hang))
    assert [work.kind for work in trace.work()] == ["batch"]
    assert any("from 0x9000 to 0x9010 is no part of it" in note for note in trace.notes)


@pytest.mark.parametrize("label", ["HEAD", "TAIL"])
def test_a_ring_whose_head_or_tail_is_not_there_is_noted(tmp_path: Path, label: str) -> None:
    trace = open_trace(changed(tmp_path, f"  {label}: ", "  LOST: "))
    assert [work.kind for work in trace.work()] == ["batch"]
    assert "rcs0: its registers do not say which part of the ring was to run" in trace.notes


def test_a_ring_that_has_run_dry_is_noted(tmp_path: Path) -> None:
    trace = open_trace(written(tmp_path, hang=replace(compute()[1], head=0x120, tail=0x120, request=(0x120, 0x120))))
    assert [work.kind for work in trace.work()] == ["batch"]
    assert "rcs0: nothing was left to do in its ring" in trace.notes


@pytest.mark.parametrize("start, end", [(0x4000, 0x10), (0x10, 0x4000), (0x12, 0x20), (0x10, 0x22)])
def test_a_part_of_a_ring_is_inside_it_and_whole_dwords(tmp_path: Path, start: int, end: int) -> None:
    trace = open_trace(written(tmp_path, hang=replace(compute()[1], request=(start, end))))
    assert [work.kind for work in trace.work()] == ["batch"]
    assert f"rcs0: its ring has 0x4000 bytes; from {start:#x} to {end:#x} is no part of it" in trace.notes


def test_a_request_has_two_numbers_behind_the_tail(tmp_path: Path) -> None:
    """With one alone, which is another one, all that was left to do is taken."""
    path = changed(tmp_path, "TAIL:  0x00000120 [0x00000120, 0x00000120]", "TAIL:  0x00000120 [0x00000118]")
    ring = next(iter(open_trace(path).work()))
    assert (ring.head, ring.tail, ring.label) == (0x114, 0x120, "ring of rcs0, all that was left to do")


def test_what_is_wrong_in_memory_is_told_with_the_line_of_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "error.txt"
    path.write_text("Kernel: 6.12\nPCI ID: 0x5916\nrcs0 --- batch = 0x00000000 00010000\n:\x7f\n")
    with pytest.raises(DecodeError, match=r"error\.txt:4: rcs0 batch: b'\\x7f' at column 2 is no character of base 85"):
        list(ErrorStateTrace(path).work())
    path.write_text("Kernel: 6.12\nPCI ID: 0x5916\nrcs0 --- batch = 0x00000000 00010004\n~!!!!!\n")
    with pytest.raises(DecodeError, match=r"error\.txt:3: 0x4 bytes at 0x10004 are no pages"):
        list(ErrorStateTrace(path).work())


@given(st.lists(st.integers(0, 0xFFFFFFFF), max_size=50))
def test_base_85(values: list[int]) -> None:
    assert b"".join(base85(e.base85(dwords(*values)).encode(), DecodeError)) == dwords(*values)


@given(st.data())
def test_any_damage(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged"
    hang = replace(compute()[1], user=[])
    content = bytearray(e.state(data.draw(st.sampled_from(list(KERNELS.values()))), hang).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4) | st.sampled_from([b"\n", b"0x", b" --- ", b"z"]))
    path.write_bytes(content)
    try:
        for work in open_trace(path, "kbl").work():
            walked(work)
    except SoftgenError as error:
        assert str(path) in str(error)
