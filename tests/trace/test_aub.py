"""AUB files: every kind of record, every address space, every way to start work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from softgen.errors import GpuFault
from softgen.trace import aub
from softgen.trace.aub import AubTrace
from softgen.trace.work import Expectation, Work
from tests.conftest import SHARED, needs_shared
from tests.trace import aub_bytes as a
from tests.trace.aub_bytes import BATCH, dwords
from tests.trace.aub_files import RING, Open, complaint, first

# -- starting work -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "submit"), [("bdw", a.submit_ports), ("skl", a.submit_ports), ("kbl", a.submit_ports), ("icl", a.submit_queue)]
)
def test_a_context_is_started(opened: Open, gpu: str, submit: Callable[..., bytes]) -> None:
    trace = opened(a.machine(gpu) + submit())
    work = first(trace)
    assert trace.device.name == gpu
    assert (work.kind, work.engine, work.sequence, work.context) == ("ring", "render", 0, 7)
    assert (work.batch, work.head, work.tail, work.size) == (a.RING_AT, 0, 16, 0x4000)
    assert work.ring() == RING
    assert work.space.read(BATCH, 8) == dwords(0x05000000, 0)
    assert [(r.start, r.size) for r in work.space.regions()] == [(BATCH, 4096)]
    with pytest.raises(GpuFault, match="page table entry"):
        work.space.read(BATCH + 4096, 4)
    assert not trace.notes


ENGINES = [
    ("skl", 0x2000, "render"), ("skl", 0x12000, "video"), ("skl", 0x1C000, "video"), ("skl", 0x22000, "blitter"),
    ("skl", 0x1A000, "video_enhance"),
    ("icl", 0x2000, "render"), ("icl", 0x1C0000, "video"), ("icl", 0x22000, "blitter"), ("icl", 0x1C8000, "video_enhance"),
]  # fmt: skip


@pytest.mark.parametrize(("gpu", "base", "engine"), ENGINES)
def test_engines_are_known_by_their_registers(opened: Open, gpu: str, base: int, engine: str) -> None:
    submit = a.submit_queue if gpu == "icl" else a.submit_ports
    assert first(opened(a.machine(gpu) + submit(base=base))).engine == engine


def test_both_elements_of_a_port_are_started_the_first_first(opened: Open) -> None:
    second = a.memory_write(0x6000 + 0x8000, a.image(8)) + a.global_entries(0xE000, 2, 0xE000)
    writes = b"".join(a.register_write(0x2230, v) for v in (2, 0xE119, 1, 0x6119))
    works = list(opened(a.machine() + second + writes).work())
    assert [(w.context, w.tail) for w in works] == [(1, 16), (2, 8)]


def test_slots_of_a_queue_are_started_in_order_and_once(opened: Open) -> None:
    second = a.memory_write(0x6000 + 0x8000, a.image(8)) + a.global_entries(0xE000, 2, 0xE000)
    slots = a.register_write(0x2518, 0xE119) + a.register_write(0x251C, 2)
    again = a.memory_write(0x701C, dwords(24)) + a.register_write(0x2550, 1)  # more in the ring, but no slot names its context
    works = list(opened(a.machine("icl") + second + slots + a.submit_queue() + again).work())
    assert [(w.context, w.tail) for w in works] == [(7, 16), (2, 8)]


def test_the_head_moves_on_unless_the_trace_writes_it(opened: Open) -> None:
    more = a.memory_write(0x2010, dwords(0, 0)) + a.memory_write(0x701C, dwords(24)) + a.submit_ports()
    again = a.memory_write(0x7014, dwords(0)) + a.submit_ports()
    works = [(w.head, w.tail) for w in opened(a.machine() + a.submit_ports() + more + again).work()]
    assert works == [(0, 16), (16, 24), (0, 24)]


def test_a_ring_wraps(opened: Open) -> None:
    ring = a.memory_write(0x5FF8, dwords(1, 2)) + a.memory_write(0x2000, dwords(3, 4)) + a.memory_write(0x6000, a.image(8, head=0x3FF8))
    assert first(opened(a.machine() + ring + a.submit_ports())).ring() == dwords(1, 2, 3, 4)


def test_a_register_write_changes_the_bits_of_its_mask(opened: Open) -> None:
    """The others stay as the write before left them."""
    writes = b"".join(a.register_write(0x2230, value) for value in (0, 0, 7))
    work = first(opened(a.machine() + writes + a.register_write(0x2230, 0xDEAD_6119, mask=0xFFFF)))
    assert (work.context, work.tail) == (7, 16)


def test_nothing_new_is_noted(opened: Open) -> None:
    trace = opened(a.machine() + a.submit_ports() + a.submit_ports())
    assert len(list(trace.work())) == 1
    assert trace.notes == ["a ring was started that holds nothing new"]


def test_a_32_bit_context_has_four_directories(opened: Open) -> None:
    """PDP1 at dwords 45 and 47: addresses from 1 GiB on."""
    image = bytearray(a.image(16, root=0))
    image[4096 + 47 * 4 : 4096 + 48 * 4] = dwords(0x200000)
    tables = a.memory_write(0x200000, dwords(0x201007, 0), a.DIRECTORY) + a.memory_write(0x201008, dwords(0x51007, 0), a.TABLE)
    content = (
        a.machine()
        + tables
        + a.memory_write(0x51000, b"here")
        + a.memory_write(0x6000, bytes(image))
        + a.submit_ports(a.CONTEXT_AT | 0x109)
    )
    work = first(opened(content))
    assert work.space.read(0x40001000, 4) == b"here"


def test_work_sees_memory_as_it_was_then(opened: Open) -> None:
    trace = opened(a.machine() + a.submit_ports() + a.memory_write(0x50000, b"next") + a.memory_write(0x7014, dwords(0)) + a.submit_ports())
    assert [w.space.read(BATCH, 4) for w in trace.work()] == [dwords(0x05000000), b"next"]
    assert [w.space.read(BATCH, 4) for w in trace.work()] == [dwords(0x05000000), b"next"]  # each run begins anew


def test_a_ring_driven_by_registers(opened: Open) -> None:
    """Gen7: start, control and head, then the tail starts it; global entries are 4 bytes wide."""
    entries = a.memory_write(4 * 2, dwords(0x2001), a.GLOBAL_ENTRY)
    ring = b"".join(a.register_write(0x2000 + at, v) for at, v in ((0x38, 0x2000), (0x34, 0), (0x3C, 0x1), (0x30, 8)))
    content = a.version("ivb") + entries + a.memory_write(0x2000, dwords(1, 2, 3, 4)) + ring + a.register_write(0x2030, 16)
    works = [(w.kind, w.batch, w.head, w.tail, w.size, w.ring()) for w in opened(content).work()]
    assert works == [("ring", 0x2000, 0, 8, 4096, dwords(1, 2)), ("ring", 0x2000, 8, 16, 4096, dwords(3, 4))]


# -- memory --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [a.LOCAL, a.PHYSICAL, a.TABLE, a.POINTERS, a.DIRECTORY, a.PML4, 11])
def test_physical_memory_has_many_names(opened: Open, space: int) -> None:
    assert first(opened(a.machine() + a.memory_write(0x50004, b"here", space) + a.submit_ports())).space.read(BATCH + 4, 4) == b"here"


def test_global_addresses_go_through_the_table(opened: Open) -> None:
    content = a.machine() + a.global_entries(0x90000, 1, 0x50000) + a.memory_write(0x90008, b"here", a.GLOBAL) + a.submit_ports()
    work = first(opened(content))
    assert work.space.read(BATCH + 8, 4) == work.ring_space.read(0x90008, 4) == b"here"


def test_what_no_table_maps_waits_for_its_table(opened: Open) -> None:
    """Written first, mapped later; and never mapped."""
    early = a.memory_write(0x90FFE, b"here", a.GLOBAL) + a.global_entries(0x90000, 1, 0x52000)
    trace = opened(a.machine() + early + a.submit_ports() + a.memory_compare(0x52FFE, b"he"))
    work, expectation = trace.events()
    assert isinstance(work, Work) and isinstance(expectation, Expectation)
    assert work.ring_space.read(0x90FFE, 4) == b"here" and expectation.check() == ""
    assert work.ring_space.extent(0x90FF0, 1 << 20) == 0x1010
    assert len(trace.notes) == 1 and "no entry in the global table" in trace.notes[0]


def test_context_addresses(opened: Open) -> None:
    content = (
        a.machine() + a.memory_write(BATCH + 16, b"here", a.CONTEXT) + a.memory_write(0x1234_5000, b"there", a.CONTEXT) + a.submit_ports()
    )
    work = first(opened(content))
    assert work.space.read(BATCH + 16, 4) == b"here" and work.space.read(0x1234_5000, 5) == b"there"
    assert work.space.read(BATCH, 4) == dwords(0x05000000)  # only what was written is moved
    assert [(r.start, r.size) for r in work.space.regions()] == [(0x1234_5000, 4096), (BATCH, 4096)]
    with pytest.raises(GpuFault):
        work.space.read(0x1234_5000, 5000)


def test_pieces(opened: Open) -> None:
    content = a.machine() + a.memory_write_pieces([(0x50010, b"first"), (0x50020, b"second!")]) + a.submit_ports()
    work = first(opened(content))
    assert work.space.read(BATCH + 0x10, 5) == b"first" and work.space.read(BATCH + 0x20, 7) == b"second!"


def test_repeated_data(opened: Open) -> None:
    content = a.machine() + a.memory_write(0x50010, b"abc!", flags=2, size=10) + a.submit_ports()
    assert first(opened(content)).space.read(BATCH + 0x10, 12) == b"abc!abc!ab\0\0"
    assert " repeats its data to 0xffffffff bytes; at most 0x40000000 are repeated" in complaint(
        opened, a.machine() + a.memory_write(0, b"abc!", flags=2, size=0xFFFFFFFF)
    )


def test_all_repeated_data_of_a_trace_has_one_limit(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aub, "MAX_REPEAT", 24)
    twice = a.machine() + a.memory_write(0x50010, b"abc!", flags=2, size=12) + a.memory_write(0x50020, b"xyz!", flags=2, size=12)
    assert first(opened(twice + a.submit_ports())).space.read(BATCH + 0x20, 12) == b"xyz!xyz!xyz!"
    assert "repeats its data to 0x5 bytes; at most 0x18" in complaint(opened, twice + a.memory_write(0, b"abc!", flags=2, size=5))


def test_tiled_writes_are_taken_as_they_stand(opened: Open) -> None:
    trace = opened(a.machine() + a.memory_write(0x50010, b"tile", flags=2 << 2) + a.submit_ports())
    assert first(trace).space.read(BATCH + 0x10, 4) == b"tile"
    assert trace.notes == ["some memory is marked as tiled; records give no pitch, so bytes are taken as they stand"]


# -- expectations --------------------------------------------------------------------------------------------------


def test_expectations_come_in_order_with_what_they_expect(opened: Open) -> None:
    content = (
        a.machine() + a.memory_compare(0x50000, dwords(0x05000000)) + a.submit_ports()
        + a.memory_compare(BATCH, b"wrong", a.CONTEXT) + a.memory_compare(0x50000, b"what", flags=0x80)
        + a.register_compare(0x2358, 0x1234, 0xFFFF)
    )  # fmt: skip
    trace = opened(content)
    checks = [(e.after, e.check()) for e in trace.events() if isinstance(e, Expectation)]
    assert [after for after, _ in checks] == [-1, 0, 0, 0]
    assert checks[0][1] == "" and checks[2][1] == ""
    assert checks[1][1].endswith(f"at {BATCH:#x} expected 0x77, found 0x00")
    memory, _, _, register = trace.expectations
    assert (memory.kind, memory.expected.read(), memory.equal) == ("memory", dwords(0x05000000), True)
    assert (register.kind, register.address, register.mask, register.expected.read()) == ("register", 0x2358, 0xFFFF, dwords(0x1234))
    assert len(list(trace.events())) == 5 and [e.kind for e in trace.expectations] == ["memory", "memory", "memory", "register"], "again"


def test_a_register_has_no_more_bits_than_its_mask_may_say(opened: Open) -> None:
    (expectation,) = opened(a.version() + a.register_compare(0x2358, 0x1234, (1 << 64) - 1)).events()
    assert isinstance(expectation, Expectation) and expectation.mask == 0xFFFFFFFF


def test_must_not_be_equal(opened: Open) -> None:
    (expectation,) = opened(a.version() + a.memory_write(0, b"same") + a.memory_compare(0, b"same", flags=0x80)).events()
    assert isinstance(expectation, Expectation) and "holds what it must not hold" in expectation.check()


def test_so_many_expectations_are_listed_and_all_are_given(opened: Open) -> None:
    """A MiB of them."""
    trace = opened(a.version() + a.memory_compare(0, b"a") + a.memory_compare(0, b"b") + a.memory_compare(0, b"c"))
    trace.expectations = Counted()
    trace.expectations.before = (1 << 20) - 1
    assert len(list(trace.events())) == 3 and [e.expected.read() for e in trace.expectations] == [b"a"]
    assert trace.notes == ["more than 1048576 expectations; later ones are not listed"]


class Counted(list[Expectation]):
    """A list that others were in before."""

    before = 0

    def __len__(self) -> int:
        return self.before + super().__len__()


def test_reads_without_expectation_and_checksums_are_no_expectations(opened: Open) -> None:
    trace = opened(
        a.version() + a.memory_compare(0, b"x", flags=1) + a.register_compare(0, 1, flags=1) + a.memory_compare(0, b"1234", flags=0x40)
    )
    assert not list(trace.events())
    assert trace.notes == ["AUB_MEMORY_COMPARE with a checksum is not checked"]


def test_an_expectation_of_unmapped_memory_fails_with_its_cause(opened: Open) -> None:
    *_, expectation = opened(a.machine() + a.submit_ports() + a.memory_compare(0x1000, b"x", a.CONTEXT)).events()
    assert isinstance(expectation, Expectation) and "not mapped" in expectation.check()


# -- what else a file may hold -------------------------------------------------------------------------------------


def test_records_for_people_and_other_tools_are_passed_over(opened: Open) -> None:
    others = (
        a.trace(0x07, 1) + a.trace(0x08, 0, data=b"a comment\0") + a.trace(0x09, 100) + a.trace(0x0A, 0, 0, 64, 64, 64, 0, data=b"name")
        + a.trace(0x0C, 4) + a.trace(0x0D, 0, 0, 4096, 0) + a.trace(0x10, *[0] * 24) + a.trace(0x05, 0, 0, 0x20, 0xF, 0, 1)
        + a.register_poll(0x2234, 0x100, 0x100) + a.register_write(0x2230, 1, space=2)
    )  # fmt: skip
    trace = opened(a.machine() + others + a.submit_ports())
    assert first(trace).tail == 16 and not trace.notes


def test_unknown_records_are_passed_over_with_a_note(opened: Open) -> None:
    trace = opened(a.machine() + a.trace(0x55, 1, 2, 3) + a.submit_ports())
    assert first(trace).tail == 16
    assert trace.notes == ["records with opcode 0x2e, subopcode 0x55 are unknown and were skipped"]


def test_predicates(opened: Open) -> None:
    silicon = a.predicate(1, 4) + a.memory_write(0x50000, b"chip") + a.predicate(0, 4)
    simulator = a.predicate(1, 0) + a.memory_write(0x50004, b"soft") + a.predicate(0, 0)
    trace = opened(a.machine() + silicon + simulator + a.submit_ports())
    assert first(trace).space.read(BATCH, 8) == dwords(0x05000000) + b"soft"
    assert trace.notes == ["records for silicon only were skipped"]


def test_masked_and_narrow_registers(opened: Open) -> None:
    """The descriptor's low word through a mask; a qword write."""
    port = a.register_write(0x2230, 0) * 2 + a.register_write(0x2230, 7, size=3)
    assert first(opened(a.machine() + port + a.register_write(0x2230, 0xFFFF0000 | 0x6119, mask=0xFFFF))).context == 7


def test_bits_outside_the_mask_stay(opened: Open) -> None:
    """Two writes make the descriptor's low dword: the second must leave what the first wrote."""
    parts = a.register_write(0x2510, 0x6100) + a.register_write(0x2510, 0xFFFFFF19, mask=0xFF)
    work = first(opened(a.machine("icl") + parts + a.register_write(0x2514, 7) + a.register_write(0x2550, 1)))
    assert (work.context, work.tail) == (7, 16)


# -- classic -------------------------------------------------------------------------------------------------------


def test_classic_blocks(opened: Open) -> None:
    """The default table, a batch, and a ring whose writing is "execute now"."""
    entries = dwords(*[0x200003 + 0x1000 * i for i in range(256)])
    content = (
        a.header() + a.block(a.DATA, 0, entries, space=4) + a.block(a.DATA, 0x10000, dwords(0x05000000, 0), kind=1)
        + a.block(a.COMMENT, 0, b"hello") + a.block(a.MMIO, 0x2080, dwords(0x1000))
        + a.block(a.COMMAND, 0x20000, dwords(0x18800080, 0x10000), kind=2)
        + a.block(a.COMMAND, 0x20000, dwords(0, 0), kind=4) + a.block(a.COMMAND, 0x20000, dwords(0, 0), kind=3)
    )  # fmt: skip
    trace = opened(content)
    assert trace.device.name == "g45"
    works = [(w.kind, w.engine, w.batch, w.head, w.tail, w.ring(), w.space.read(0x10000, 4)) for w in trace.work()]
    assert works[0] == ("ring", "render", 0x20000, 0, 8, dwords(0x18800080, 0x10000), dwords(0x05000000))
    assert [w[1] for w in works] == ["render", "blitter", "video"]
    assert not trace.notes
    work = first(trace)
    assert work.space.tables.memory.read(0x200000 + 0x10000, 4) == dwords(0x05000000)  # type: ignore[attr-defined]


def test_classic_without_a_table(opened: Open) -> None:
    content = a.header() + a.block(a.DATA, 0x1FFE, b"across") + a.block(a.COMMAND, 0x20000, dwords(0, 0), kind=2)
    trace = opened(content)
    assert first(trace).space.read(0x1FFE, 6) == b"across"
    assert "no entry in the global table" in trace.notes[0]


def test_classic_with_wide_addresses(opened: Open) -> None:
    content = (
        a.header(b"PCI-ID=0x1616")
        + a.block(a.DATA, 0x12_3456_7000, b"far", wide=True)
        + a.block(a.COMMAND, 0x1000, dwords(0, 0), kind=2, wide=True)
    )
    trace = opened(content)
    assert trace.device.name == "bdw" and first(trace).space.read(0x12_3456_7000, 3) == b"far"


def test_classic_pictures_and_contexts(opened: Open) -> None:
    bmp = dwords(7 << 29 | 1 << 23 | 0x9E << 16 | 9, *[0] * 10)
    create = dwords(7 << 29 | 1 << 23 | 0x14 << 16 | 9, 1, 2, *[0] * 8)
    trace = opened(a.header() + bmp + create + a.block(a.COMMAND, 0x1000, dwords(0, 0), kind=2))
    assert len(list(trace.work())) == 1 and "page directories of its own" in trace.notes[0]


# -- which GPU -----------------------------------------------------------------------------------------------------


def test_the_gpu_is_named_by_pci_id_number_or_user(opened: Open) -> None:
    assert opened(a.version("bdw", b"PCI-ID=0x5916 kbl\0")).device.name == "kbl"
    assert opened(a.version("icl")).device.name == "icl"
    assert opened(a.trace(0x08, 0, data=b"first a comment\0") + a.version("icl")).device.name == "icl"
    assert opened(a.version(22), "icl").device.name == "icl"
    assert opened(a.machine(22) + a.submit_ports(), "skl").device.name == "skl"
    assert complaint(opened, a.version(22)) == ": for which GPU? no GPU is called 'tgl'; " + names() + "; name one with --gpu"
    assert complaint(opened, a.version(99)) == ": for which GPU? its device number is 99; name one with --gpu"
    assert complaint(opened, a.header(b"nothing")) == ": for which GPU? its text is 'nothing'; name one with --gpu"
    assert complaint(opened, a.memory_write(0, b"x")) == ": for which GPU? nothing in its first records names a device; name one with --gpu"
    assert "no GPU softgen knows has PCI id 0xffff" in complaint(opened, a.header(b"PCI-ID=0xffff"))


def names() -> str:
    from softgen.bits.generation import devices

    return f"there are {', '.join(devices())}"


# -- real files ----------------------------------------------------------------------------------------------------

FILES = sorted((SHARED / "aub").glob("*.aub"))
ADDRESS = {"bdw": 0x5642AA4E5000, "skl": 0x5559CC8C4000, "icllp": 0x55D279249000}  # of the batch, as their comments say


@needs_shared("aub")
def test_real_files_give_their_work() -> None:
    assert len(FILES) >= 3
    for path in FILES:
        trace = AubTrace(path)
        events = list(trace.events())
        assert trace.device.name == {"icllp": "icl"}.get(gpu := path.stem.split("_")[-1], gpu)
        (work, expectation) = events
        assert isinstance(work, Work) and isinstance(expectation, Expectation)
        assert work.engine == "render" and len(work.ring()) == 24 and not trace.notes
        batch = int.from_bytes(work.ring()[16:24], "little")
        assert batch == ADDRESS[gpu]
        assert work.space.read32(batch) >> 29 == 3
        assert len(expectation.expected) == 4096 and expectation.check() != ""  # nothing has executed
