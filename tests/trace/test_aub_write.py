"""AUB files written: reading back gives the same memory and the same work, byte for byte and submission by submission."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.generation import device
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.aub import AubTrace
from softgen.trace.aub_write import AubWriter, Mapped, changes, write_aub
from softgen.trace.capture import CaptureTrace
from softgen.trace.capture_json import Batch, BufferObject, Exec
from softgen.trace.capture_write import CaptureWriter
from softgen.trace.work import Expectation, Work
from tests.conftest import SHARED, needs_shared
from tests.trace.test_capture import RELOCATED, SOFTPIN, Made

GPUS = ("bdw", "skl", "kbl", "icl")
ENGINES = ("render", "blitter", "video", "video_enhance")


def called(work: Work, gpu: str) -> int:
    """The address a ring's only command starts at."""
    ring = memoryview(work.ring()).cast("I")
    found = catalogue.find_command(ring[0], device(gpu).generation.number, work.engine)
    assert found is not None and found.name == "MI_BATCH_BUFFER_START"
    start = found.unpack(ring)
    assert start.address_space_indicator == 1  # in the context's own space
    assert ring[3:].tolist() == [0]  # MI_NOOP, to a whole qword
    return int(start.batch_buffer_start_address)


# -- the property --------------------------------------------------------------------------------------------------


class Submission(NamedTuple):
    engine: str
    space: str
    batch: int
    memory: dict[int, tuple[str, bytes]]  # address -> key, content


content = st.builds(
    lambda head, pages, at: bytes(at) + head + bytes(pages * 4096 - at - len(head)),
    st.binary(max_size=64),
    st.integers(1, 3),
    st.integers(0, 4000),
)
# Few places, so that addresses are used again; some at the borders of tables.
places = st.sampled_from([0, 0x1000, 0x1FE000, 0x200000, 0x3FFFE000, 0x7FFFFFF000, 0x7FFFFFFFE000, 0x123456789000, 0xFFFFFFFFC000])


@st.composite
def submissions(draw: st.DrawFn) -> list[Submission]:
    made, sizes = [], {}  # type: ignore[var-annotated]
    for _ in range(draw(st.integers(1, 4))):
        memory: dict[int, tuple[str, bytes]] = {}
        for address in sorted(draw(st.sets(places, min_size=1, max_size=4))):
            key, data = draw(st.sampled_from("abcdef")), draw(content)
            data = data.ljust(sizes.setdefault(key, len(data)), b"\0")[: sizes[key]]
            taken = any(at < address + len(data) and address < at + len(d) for at, (_, d) in memory.items())
            if not taken and key not in [k for k, _ in memory.values()] and address + len(data) <= 1 << 48:
                memory[address] = key, data
        if memory:
            batch = draw(st.sampled_from(sorted(memory))) + 4 * draw(st.integers(0, 1000))
            made.append(Submission(draw(st.sampled_from(ENGINES)), draw(st.sampled_from(["one", "two"])), batch, memory))
    return made


@given(st.sampled_from(GPUS), submissions())
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, gpu: str, made: list[Submission]) -> None:
    path = tmp_path_factory.mktemp("write") / "t.aub"
    with AubWriter(path, device(gpu)) as writer:
        for submission in made:
            writer.submit(submission.engine, submission.space, submission.batch,
                          [Mapped(at, key, memoryview(data)) for at, (key, data) in submission.memory.items()])
            for at, (_, data) in submission.memory.items():
                writer.expect(submission.space, at, data)
    trace = AubTrace(path)
    assert trace.device.name == gpu
    at, work = -1, None
    for event in trace.events():
        if isinstance(event, Expectation):
            assert event.after == at and event.check() == ""
            continue
        at, work = at + 1, event
        submission = made[at]
        assert (work.engine, called(work, gpu)) == (submission.engine, submission.batch)
        assert all(work.space.read(address, len(data)) == data for address, (_, data) in submission.memory.items())
        mapped = {page for address, (_, data) in submission.memory.items() for page in range(address, address + len(data), 4096)}
        assert {page for r in work.space.regions() for page in range(r.start, r.start + r.size, 4096)} == mapped
    assert at == len(made) - 1 and not trace.notes
    assert len(trace.expectations) == sum(len(submission.memory) for submission in made)


# -- the parts -----------------------------------------------------------------------------------------------------


def test_only_changed_bytes_are_written_again() -> None:
    before = bytearray(3 * 4096)
    now = bytearray(before)
    now[5:8], now[4096], now[-1] = b"abc", 1, 2
    assert list(changes(memoryview(before), memoryview(now))) == [(5, 8), (4096, 4097), (12287, 12288)]
    assert list(changes(memoryview(b""), memoryview(now))) == [(0, 12288)]
    assert list(changes(memoryview(b""), memoryview(bytes(8192) + now))) == [(8192, 20480)]
    assert list(changes(memoryview(now), memoryview(now))) == []


def test_what_the_gpu_made_survives_the_next_submission(tmp_path: Path) -> None:
    """The rule of replay: only bytes the program changed are written between submissions."""
    first, second = bytearray(4096), bytearray(4096)
    second[100] = 7
    with AubWriter(tmp_path / "t.aub", device("skl")) as writer:
        writer.submit("render", 0, 0x1000, [Mapped(0x1000, "b", memoryview(first))])
        writer.submit("render", 0, 0x1000, [Mapped(0x1000, "b", memoryview(second))])
    works = AubTrace(tmp_path / "t.aub").work()
    next(works).space.write(0x1000 + 200, b"drawn")
    assert next(works).space.read(0x1000 + 96, 112) == bytes(4) + b"\7" + bytes(99) + b"drawn" + bytes(3)


def test_tables_are_written_once_and_begin_empty(tmp_path: Path) -> None:
    """A simulator's memory need not be zero: every table's page is cleared before its first entry. What is mapped stays mapped."""
    page = memoryview(b"x" * 4096)
    with AubWriter(tmp_path / "t.aub", device("skl")) as writer:
        writer.submit("render", 0, 0x1000, [Mapped(0x1000, "b", page)])
        writer.comment("again")
        writer.submit("render", 0, 0x1000, [Mapped(0x1000, "b", page)])
    records = list(AubTrace(tmp_path / "t.aub").file.records())
    again = next(number for number, record in enumerate(records) if record.name == "AUB_COMMENT")
    writes = [[(record.fields.address, record.data.read()) for record in part if record.name == "AUB_MEMORY_WRITE"]
              for part in (records[:again], records[again:])]  # fmt: skip
    cleared = {address for address, data in writes[0] if data == bytes(4096)}
    entries = {address & ~0xFFF for address, data in writes[0] if len(data) == 8 and any(data)}
    assert len(cleared) == 4 and entries <= cleared
    assert not cleared & {address & ~0xFFF for address, _ in writes[1]}


def test_an_alias_is_the_same_memory(tmp_path: Path) -> None:
    with AubWriter(tmp_path / "t.aub", device("icl")) as writer:
        page = memoryview(b"x" * 4096)
        writer.submit("render", 0, 0x1000, [Mapped(0x1000, "b", page), Mapped(0x9000, "b", page)])
    work = next(AubTrace(tmp_path / "t.aub").work())
    work.space.write(0x1000, b"once")
    assert work.space.read(0x9000, 4) == b"once"


def test_physical_memory_beyond_4_gib_is_mapped(tmp_path: Path) -> None:
    """Entries of every level have the upper bits of an address in their second dword."""
    with AubWriter(tmp_path / "t.aub", device("skl")) as writer:
        writer._physical = 0x12_3456_7000  # as if that much had been written
        writer.submit("render", 0, 0x1000, [Mapped(0x1000, "b", memoryview(b"x" * 4096 + b"y" * 4096))])
    trace = AubTrace(tmp_path / "t.aub")
    (work,) = trace.work()
    assert work.space.read(0x1FFC, 8) == b"xxxxyyyy" and called(work, "skl") == 0x1000
    first = next(r for r in trace.file.records() if r.name == "AUB_MEMORY_WRITE" and r.data.read(0, 1) == b"x")
    assert first.fields.address == 0x12_3456_7000


@pytest.mark.parametrize("gpu, engine, base", [("skl", "render", 0x2000), ("skl", "blitter", 0x22000), ("skl", "video", 0x12000),
                                               ("icl", "render", 0x2000), ("icl", "video_enhance", 0x1C8000)])  # fmt: skip
def test_a_context_image_loads_the_registers_of_its_engine(tmp_path: Path, gpu: str, engine: str, base: int) -> None:
    """Positions and offsets are the hardware's (KBL 5, execution list context; public i915 intel_lrc.c): a number before each value."""
    with AubWriter(tmp_path / "t.aub", device(gpu)) as writer:
        writer.submit(engine, 0, 0x1000, [Mapped(0x1000, "b", memoryview(bytes(4096)))])
    records = [r for r in AubTrace(tmp_path / "t.aub").file.records() if r.name == "AUB_MEMORY_WRITE"]
    (made,) = (r.data.read() for r in records if len(r.data) > 4096 and r.data.read(4100, 4) == b"\x09\x10\x00\x11")
    image = memoryview(made)[4096:].cast("I")
    assert [image[at] - base for at in (2, 4, 6, 8, 10, 34)] == [0x244, 0x34, 0x30, 0x38, 0x3C, 0x3A8]
    assert [image[at] - base for at in range(36, 52, 2)] == [0x28C, 0x288, 0x284, 0x280, 0x27C, 0x278, 0x274, 0x270]
    assert (image[1], image[3], image[33], image[65], image[66] - base) == (0x11001009, 0x10001, 0x11001011, 0x11000001, 0xC8)
    assert image[11] == 0x3001, "a ring of four pages, enabled"


@pytest.mark.parametrize("gpu", GPUS)
def test_contexts_that_are_submitted_walk_four_levels_of_tables(gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their descriptors say so: valid, addresses of 64 bits in legacy mode, privileged (KBL 5259-5368)."""
    written = list[int]()
    monkeypatch.setattr(AubWriter, "register", lambda writer, offset, value: written.append(value))
    with AubWriter(tmp_path / "t.aub", device(gpu)) as writer:
        before = len(written)
        for space in ("one", "two"):
            writer.submit("render", space, 0x1000, [Mapped(0x1000, "b", memoryview(bytes(4096)))])
    low = [value for value in written[before:] if value >> 12]
    assert len(set(low)) == 2 and {value & 0xFFF for value in low} == {0x119}


def test_what_is_no_longer_mapped_is_gone(tmp_path: Path) -> None:
    page = memoryview(bytes(4096))
    with AubWriter(tmp_path / "t.aub", device("bdw")) as writer:
        writer.submit("render", 0, 0x1000, [Mapped(0x1000, "a", page), Mapped(0x5000, "b", page)])
        writer.submit("render", 0, 0x1000, [Mapped(0x1000, "a", page)])
    works = AubTrace(tmp_path / "t.aub").work()
    assert next(works).space.read(0x5000, 4) == bytes(4)
    with pytest.raises(GpuFault):
        next(works).space.read(0x5000, 4)


def test_a_large_buffer_takes_several_records(tmp_path: Path) -> None:
    data = os.urandom(1 << 20)
    with AubWriter(tmp_path / "t.aub", device("skl")) as writer:
        writer.submit("render", 0, 0x1FF000, [Mapped(0x1FF000, "a", memoryview(data))])
        writer.expect(0, 0x1FF010, data[0x10:0x80000])
        writer.expect(0, 0x1FF000, b"not this", equal=False)
    trace = AubTrace(tmp_path / "t.aub")
    events = list(trace.events())
    assert isinstance(events[0], Work) and events[0].space.read(0x1FF000, len(data)) == data
    assert [e.check() for e in events if isinstance(e, Expectation)] == [""] * 5


# -- whole traces --------------------------------------------------------------------------------------------------


def same(path: Path, capture: CaptureTrace) -> None:
    trace = AubTrace(path)
    assert trace.device is capture.device
    for got, want in zip(trace.work(), capture.work(), strict=True):
        assert (got.engine, called(got, trace.device.name)) == (want.engine, want.batch)
        for region in want.space.regions():
            assert got.space.read(region.start, region.size) == want.space.read(region.start, region.size)
    assert not trace.notes


def test_a_capture_becomes_an_aub_file(tmp_path: Path) -> None:
    capture = CaptureTrace(SOFTPIN)
    write_aub(tmp_path / "t.aub", capture)
    same(tmp_path / "t.aub", capture)


@needs_shared("traces")
@pytest.mark.parametrize("name", ["bdw-iHD-dec-m2", "skl-i965-dec-hevc", "icl-vk-tri", "kbl-ocl-vadd"])
def test_captures_of_other_drivers_become_aub_files(tmp_path: Path, name: str) -> None:
    capture = CaptureTrace(SHARED / "traces" / name)
    write_aub(tmp_path / "t.aub", capture)
    same(tmp_path / "t.aub", capture)


def test_results_of_a_capture_become_expectations(tmp_path: Path) -> None:
    kbl, page = device("kbl"), b"a" * 4096
    with CaptureWriter(tmp_path / "c") as writer:
        after = writer.blob(memoryview(b"b" * 4096))
        bo = BufferObject(0x1000, 4096, "", uid=1, after=after)
        writer.add(Exec(1, "kbl", kbl.pci_id, 90, "rcs0", Batch(0, 0, 0x1000, 0, 8), (bo,)), lambda _: page)
    write_aub(tmp_path / "t.aub", CaptureTrace(tmp_path / "c"))
    _, expectation = AubTrace(tmp_path / "t.aub").events()
    assert isinstance(expectation, Expectation) and expectation.expected.read() == b"b" * 4096


def test_batches_of_any_trace_become_an_aub_file(tmp_path: Path) -> None:
    space, buffer = AddressSpace("made"), MemfdBuffer(8192, "b")
    buffer.view[:4] = b"abcd"
    space.map(0x10000, buffer)
    write_aub(tmp_path / "t.aub", Made(Work("video", space, 0x10008)))
    (work,) = AubTrace(tmp_path / "t.aub").work()
    assert (work.engine, called(work, "kbl"), work.space.read(0x10000, 4)) == ("video", 0x10008, b"abcd")
    with pytest.raises(Unsupported, match="comes from a ring"):
        write_aub(tmp_path / "u.aub", Made(Work("render", space, 0x10000, "ring")))


def test_older_gpus_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="g45: AUB files are written for GPUs that are given contexts"):
        write_aub(tmp_path / "t.aub", CaptureTrace(RELOCATED))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "mapped",
    [[(0x1001, 4096)], [(0x1000, 100)], [(0x1000, 0)], [(0x1000, 8192), (0x2000, 4096)], [((1 << 48) - 4096, 8192)]],
    ids=["address", "size", "empty", "overlap", "end"],
)
def test_impossible_memory_is_refused(tmp_path: Path, mapped: list[tuple[int, int]]) -> None:
    with pytest.raises(SoftgenError, match="whole pages in 48 bits"), AubWriter(tmp_path / "t.aub", device("skl")) as writer:
        writer.submit("render", 0, 0x1000, [Mapped(at, at, memoryview(bytes(size))) for at, size in mapped])


def test_writing_never_destroys(tmp_path: Path) -> None:
    path = tmp_path / "thesis"
    path.write_text("important")
    with pytest.raises(SoftgenError, match="already exists"):
        AubWriter(path, device("skl"))
    with pytest.raises(SoftgenError, match="cannot be written: File exists"), AubWriter(tmp_path / "late", device("skl")):
        (tmp_path / "late").write_text("important")
    with pytest.raises(KeyError), AubWriter(tmp_path / "failed", device("skl")):
        raise KeyError
    with pytest.raises(SoftgenError, match="cannot be written: No such file"):
        AubWriter(tmp_path / "no" / "folder", device("skl"))
    with pytest.raises(SoftgenError, match="nothing is mapped at 0x5"), AubWriter(tmp_path / "nothing", device("skl")) as writer:
        writer.expect("nowhere", 5, b"x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["late", "thesis"]
    assert {p.read_text() for p in tmp_path.iterdir()} == {"important"}


def test_a_written_file_names_its_gpu_for_other_readers(tmp_path: Path) -> None:
    """And the version of its format, and that addresses are physical ones."""
    for gpu in GPUS:
        with AubWriter(tmp_path / gpu, device(gpu)):
            pass
        head: Any = memoryview((tmp_path / gpu).read_bytes())
        layout = catalogue.layout("AUB_VERSION", device(gpu).generation.number)
        version: Any = layout.raw(head[:20].cast("I"))
        assert version.version == 1 and value_name(layout, version, "method") == "physical_addresses"
        assert (head.cast("I")[2] >> 8) & 0xFF == {"bdw": 11, "skl": 12, "kbl": 16, "icl": 19}[gpu]
        assert bytes(head[20:]).startswith(b"PCI-ID=0x")


def test_labels_of_submissions_are_comments_in_the_file(tmp_path: Path) -> None:
    write_aub(tmp_path / "a.aub", CaptureTrace(SOFTPIN))
    comments = [record.data.text() for record in AubTrace(tmp_path / "a.aub").file.records() if record.name == "AUB_COMMENT"]
    assert len(comments) == 3 and all(f"submission {number}" in text for number, text in enumerate(comments, 1))
