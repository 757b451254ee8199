"""Page tables of every generation, written here bit by bit and walked by softgen."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.generation import generation
from softgen.errors import DriverError, GpuFault, SoftgenError, SpecError
from softgen.memory.page_table import PageTableSpace
from softgen.memory.physical import PhysicalMemory
from softgen.memory.walk import GlobalWalk, Unmapped
from tests.conftest import SHARED, needs_shared
from tests.memory.page_tables import G1, K64, M2, PAGE, PML4, Builder, four_level, of


def test_pages_of_four_sizes_in_one_space() -> None:
    build, space = four_level()
    build.map(0x0000_0000_5000, 0x12_3456_7000, PAGE)
    build.map(0x0000_4003_0000, 0x20_0001_0000, K64)
    build.map(0x8000_0020_0000, 0x30_0060_0000, M2)
    build.map(0xFFFF_C000_0000, 0x20_4000_0000, G1)
    for address, size, physical in [
        (0x5FFF, PAGE, 0x12_3456_7FFF),
        (0x4003_ABCD, K64, 0x20_0001_ABCD),
        (0x8000_0034_5678, M2, 0x30_0074_5678),
        (0xFFFF_DEAD_BEEF, G1, 0x20_5EAD_BEEF),
    ]:
        page = space.translate(address)
        assert (page.size, page.physical + address - page.start) == (size, physical)
        space.write(address, b"x")
        assert space.memory.read(physical, 1) == b"x" == space.read(address, 1)
    assert [(r.start, r.size) for r in space.regions()] == [
        (0x5000, PAGE), (0x4003_0000, K64), (0x8000_0020_0000, M2), (0xFFFF_C000_0000, G1),
    ]  # fmt: skip


def test_pages_between_two_addresses() -> None:
    """Pages beside each other are one where physical memory is contiguous as well; an end beyond the space is its last page."""
    build, space = four_level()
    for address, physical in ((0, 0x9000), (0x1000, 0xA000), (0x2000, 0x5000), (0x5000, 0x6000), ((1 << 48) - PAGE, 0x7000)):
        build.map(address, physical, PAGE)
    whole = [(0, 2 * PAGE, 0x9000), (0x2000, PAGE, 0x5000), (0x5000, PAGE, 0x6000), ((1 << 48) - PAGE, PAGE, 0x7000)]
    for start, end, expected in ((0, None, whole), (0, 1 << 48, whole), (0, 1 << 49, whole), (0, 0x6000, whole[:3]), (0, 0x5000, whole[:2]),
                                 (0x1000, 0x1001, [(0x1000, PAGE, 0xA000)]), (0x2000, 0x2000, []), (1 << 48, None, [])):  # fmt: skip
        assert [page[:3] for page in space.pages(start, end)] == expected, (start, end)
    assert [(region.start, region.size) for region in space.regions()] == [(0, 0x3000), (0x5000, PAGE), ((1 << 48) - PAGE, PAGE)]


def test_in_a_64k_table_only_every_sixteenth_entry_counts() -> None:
    build, space = four_level("skl")
    build.map(0x20_0000, 0x50_0000, K64)
    table = build.next_table - PAGE
    for i in range(1, 16):
        build.memory.write64(table + i * 8, 0x6666_0000 | 3)
    build.memory.write64(table, 0x50_F000 | 3)  # address bits 15:12 do not count either
    assert space.translate(0x20_8123)[1:3] == (K64, 0x50_0000)


def test_gen8_knows_no_64k_tables() -> None:
    build, space = four_level("bdw")
    build.map(0x20_0000, 0x50_0000, K64)
    assert space.translate(0x20_0000).size == PAGE
    with pytest.raises(GpuFault, match="is 0x0, not present"):
        space.read(0x20_1000, 1)


def test_read_only_at_any_level() -> None:
    build, space = four_level()
    build.map(0x1000, 0x9000, PAGE, flags=1)
    build.map(0x2000, 0xA000, PAGE)
    assert space.read(0x1FFF, 2) == bytes(2)
    with pytest.raises(GpuFault, match=r"^write at 0x1000 in ppgtt: the page tables map it read-only$"):
        space.write(0x1000, b"1")
    with pytest.raises(GpuFault):
        space.write(0x2FFF, b"12")
    assert build.memory.read(0xAFFF, 1) == b"\0", "all or nothing"
    build.memory.write64(PML4, build.memory.read64(PML4) & ~2)
    with pytest.raises(GpuFault):
        space.write(0x2000, b"1")


def test_faults_name_the_level_at_which_the_walk_stopped() -> None:
    build, space = four_level()
    build.map(0x5000, 0x9000, PAGE)
    cases = {
        0x6000: "page table entry at ram 0x70003030 is 0x0, not present",
        0x20_0000: "page directory entry at ram 0x70002008 is 0x0, not present",
        0x4000_0000: "page directory pointer entry at ram 0x70001008 is 0x0, not present",
        0x80_0000_0000: "PML4 entry at ram 0x70000008 is 0x0, not present",
    }
    for address, why in cases.items():
        with pytest.raises(GpuFault) as fault:
            space.read32(address)
        assert str(fault.value) == f"read at {address:#x} in ppgtt: not mapped: {why}"
    build.memory.write64(PML4 + 16, 0xDEAD_F000 | 3)
    with pytest.raises(GpuFault, match="page directory pointer entry at ram 0xdeadf000 was never written"):
        space.read32(0x100_0000_0000)
    with pytest.raises(GpuFault, match=r"^read at 0x1000000000000 in ppgtt: beyond the 48-bit space$"):
        space.read32(1 << 48)
    with pytest.raises(GpuFault, match="beyond the 48-bit space"):
        space.read32(-4)
    with pytest.raises(GpuFault, match=r"^read at 0x6000 "):
        space.read(0x5FFE, 4)


@pytest.mark.parametrize("levels, size", [(1, 1 << 39), (2, G1), (3, M2)])
def test_a_table_that_was_never_written_is_a_hole_of_its_own_size(levels: int, size: int) -> None:
    """The next entry of the table above maps a page, which is found."""
    build, space = four_level()
    address = 5 * size + 0x3000
    build.map(6 * size, 0x9000, PAGE)
    build.map(5 * size, 0x9000, PAGE)
    table = PML4
    for shift in (39, 30, 21)[: levels - 1]:
        table = build.memory.read64(table + (address >> shift & 511) * 8) & 0x3FFF_FFFF_F000
    build.memory.write64(table + (address // size & 511) * 8, 0xDEAD_F000 | 3)
    found = space.walk.translate(address)
    assert (found.start, found.size) == (5 * size, size) and isinstance(found, Unmapped)
    assert [page.start for page in space.pages()] == [6 * size]


def test_the_last_byte_of_a_page_that_was_mapped_late_is_explained() -> None:
    build, space = four_level()
    assert space.table
    build.map(0x5000, 0x9000, PAGE)
    assert space._mirror is not None
    assert space._mirror.why(0x5FFF, "read") == "the page tables map it now, but did not when the work began"
    assert "not present" in space._mirror.why(0x6000, "read")


@pytest.mark.parametrize("size", [PAGE, K64, M2, G1])
def test_a_page_beyond_physical_memory_is_a_fault(size: int) -> None:
    """The last page of memory is not; what is wrong with one that begins behind it or far away is said."""
    memory = PhysicalMemory("ram", bits=40)
    build = Builder(memory)
    for number, physical in enumerate([(1 << 40) - size, 1 << 40, 1 << 41]):
        build.map(number * G1, physical, size)
    space = PageTableSpace.four_level("ppgtt", generation(9), memory, PML4)
    assert space.translate(0) == (0, size, (1 << 40) - size, True)
    for start, where in ((G1, "0x10000000000"), (2 * G1, "0x20000000000")):
        with pytest.raises(GpuFault, match=rf"not mapped: its page at {where} is beyond the 40 bits of ram$"):
            space.read32(start + 4)
        assert space.walk.translate(start + 4)[:2] == (start, size)


def test_tables_are_read_again_when_they_change() -> None:
    build, space = four_level()
    build.map(0x5000, 0x9000, PAGE)
    space.write32(0x5000, 1)
    assert space.translate(0x5000).physical == 0x9000
    build.map(0x5000, 0xB000, PAGE)
    assert space.read32(0x5000) == 0 and space.translate(0x5000).physical == 0xB000
    build.map(0x5000, 0xB000, PAGE, flags=0)
    with pytest.raises(GpuFault):
        space.read32(0x5000)
    build.memory.write(0x9000, b"data, not a table")
    build.map(0x5000, 0x9000, PAGE)
    window = build.memory.window(build.next_table - PAGE, PAGE)  # as compiled code would write it: nobody notices …
    assert space.read(0x5000, 4) == b"data"
    window[5 * 8 : 6 * 8] = struct.pack("<Q", 0xC000 | 3)
    assert space.read(0x5000, 4) == b"data"
    space.invalidate()  # … until told
    assert space.read(0x5000, 4) == bytes(4)


def test_garbage_tables_cannot_hang() -> None:
    memory = PhysicalMemory("ram")
    memory.write(PML4, struct.pack("<Q", PML4 | 3) * 512)  # every entry of every level leads to the same table
    space = PageTableSpace.four_level("loop", generation(11), memory, PML4)
    assert space.translate(0x1234_5678_9ABC).physical == PML4
    assert space.read64(0xFFFF_FFFF_F008) == PML4 | 3
    assert space.extent(0x1000, K64) == K64
    with pytest.raises(SoftgenError, match=r"^loop: the page tables have more than 4096 entries; 0x1000000 was reached$"):
        list(space.pages(limit=4096))
    with pytest.raises(SoftgenError, match="bytes at once"):
        space.read(0, 1 << 45)


@given(st.binary(min_size=64, max_size=64), st.integers(0, (1 << 48) - 1))
def test_any_bytes_are_a_page_or_a_fault(noise: bytes, address: int) -> None:
    memory = PhysicalMemory("ram", unwritten="fault")
    memory.write(0, noise * 256)
    for space in (
        PageTableSpace.four_level("48", generation(9), memory, 0),
        PageTableSpace.four_level("32", generation(8), memory, (0x1000, 0, 0x2000, 0x3000)),
        PageTableSpace.two_level("gen7", generation(7), memory, memory, int.from_bytes(noise[:4], "little")),
        PageTableSpace.global_table("ggtt", generation(4.5), memory, memory),
    ):
        try:
            assert len(space.read(address % (1 << space.bits), 4)) == 4
        except GpuFault as fault:
            assert fault.space == space.name


def test_a_32_bit_space_has_four_directories() -> None:
    memory = PhysicalMemory("ram")
    roots = (0x10000, 0x20000, 0, 0x40000 | 1)
    for i, root in enumerate(roots):
        if root:
            memory.write64((root & ~0xFFF) + 8 * 3, 0x50000 + i * PAGE | 3)
            memory.write64(0x50000 + i * PAGE + 8 * 5, 0x90_0000 + i * PAGE | 3)
            memory.write64((root & ~0xFFF) + 8 * 4, 0x4000_0000 | 0x83)
    space = PageTableSpace.four_level("ppgtt32", of("bdw"), memory, roots)
    for i in (0, 1, 3):
        assert space.translate(i * G1 + 3 * M2 + 5 * PAGE).physical == 0x90_0000 + i * PAGE
        assert space.translate(i * G1 + 4 * M2 + 7) == (i * G1 + 4 * M2, M2, 0x4000_0000, True)
    with pytest.raises(GpuFault, match="not mapped: page directory pointer 2 is zero"):
        space.read32(2 * G1)
    with pytest.raises(GpuFault, match="beyond the 32-bit space"):
        space.read32(1 << 32)
    with pytest.raises(DriverError, match="four page directories, not 3"):
        PageTableSpace.four_level("x", generation(8), memory, (0, 0, 0))
    found = [(region.start, region.size) for region in space.regions()]
    assert found == [place for i in (0, 1, 3) for place in ((i * G1 + 3 * M2 + 5 * PAGE, PAGE), (i * G1 + 4 * M2, M2))]


# The 32-bit entries: physical bits above 31 stand below the page number, where each generation puts them.
ENTRY32: dict[float, tuple[int, Callable[[int], int]]] = {
    4.5: (36, lambda a: a & 0xFFFF_F000 | a >> 28 & 0x0F0),
    7: (40, lambda a: a & 0xFFFF_F000 | a >> 28 & 0xFF0),
    7.5: (39, lambda a: a & 0xFFFF_F000 | a >> 28 & 0x7F0),
}


@pytest.mark.parametrize("gen", ENTRY32)
def test_global_table_with_32_bit_entries(gen: float) -> None:
    bits, encode = ENTRY32[gen]
    memory, entries = PhysicalMemory("ram"), PhysicalMemory("gtt", bits=22)
    space = PageTableSpace.global_table("ggtt", generation(gen), memory, entries)
    highest = (1 << bits) - PAGE
    noise = {4.5: 0x6, 7: 0xE, 7.5: 0x80E}[gen]  # caching bits, which may not leak into the address
    for index, physical in [(0, 0x20_0000), (1, highest), (0xFFFFF, 0xABC << 24 & highest)]:
        entries.write32(index * 4, encode(physical) | noise | 1)
        assert space.translate(index * PAGE + 5)[:3] == (index * PAGE, PAGE, physical)
    with pytest.raises(GpuFault, match="global table entry at gtt 0x8 is 0x0, not present"):
        space.read32(0x2000)
    with pytest.raises(GpuFault, match="global table entry at gtt 0x40000 was never written"):
        space.read32(0x1000_0000)
    assert [(r.start, r.size) for r in space.regions()] == [(0, 2 * PAGE), (0xFFFFF000, PAGE)]


@pytest.mark.parametrize("gpu", ["bdw", "skl", "icl"])
def test_global_table_with_64_bit_entries(gpu: str) -> None:
    memory, entries = PhysicalMemory("ram"), PhysicalMemory("gtt", bits=24)
    space = PageTableSpace.global_table("ggtt", of(gpu), memory, entries, base=0x10000)
    entries.write64(0x10000 + 0xFEDCB * 8, 0x2ABC_DEF0_1000 | 1)
    assert space.translate(0xFEDC_B010)[2:] == (0x2ABC_DEF0_1000, True)
    with pytest.raises(DriverError, match="begins at a page"):
        PageTableSpace.global_table("ggtt", of(gpu), memory, entries, base=8)


def test_a_global_table_begins_with_its_memory_by_default() -> None:
    memory, entries = PhysicalMemory("ram"), PhysicalMemory("gtt", bits=24)
    entries.write64(3 * 8, 0x5000 | 1)
    space = PageTableSpace.global_table("ggtt", of("skl"), memory, entries)
    assert space.translate(3 * PAGE) == GlobalWalk(of("skl"), memory, entries).translate(3 * PAGE) == (3 * PAGE, PAGE, 0x5000, True)


@pytest.mark.parametrize("gpu", ["ivb", "hsw"])
def test_gen7_directories_stand_in_the_global_table(gpu: str) -> None:
    memory, entries = PhysicalMemory("ram"), PhysicalMemory("gtt", bits=22)
    first_entry = 0x3FE00 & ~0xF  # of the 512 directory entries, at the end of a 1 MiB table; the register counts 64 bytes from bit 16
    encode = ENTRY32[of(gpu).number][1]
    entries.write32((first_entry + 300) * 4, 0x7000 | 0xFF0 | 1)  # page table at 0xff_0000_7000: 40 bits in directories
    memory.write32(0xFF_0000_7000 + 700 * 4, encode(0x55_1234_5000) | 1)
    space = PageTableSpace.two_level("ppgtt", of(gpu), memory, entries, first_entry * 4 << 10)
    assert space.bits == 31
    assert space.translate(300 * 4 * 2**20 + 700 * PAGE + 9)[:3] == (300 * 4 * 2**20 + 700 * PAGE, PAGE, 0x55_1234_5000)
    with pytest.raises(GpuFault, match="page table entry at ram 0xff00007af4 is 0x0, not present"):
        space.read32(300 * 4 * 2**20 + 701 * PAGE)
    with pytest.raises(GpuFault, match="page directory entry at gtt 0xff804 is 0x0, not present"):
        space.read32(4 * 2**20)
    closed = PageTableSpace.two_level("ppgtt", of(gpu), memory, entries, first_entry * 4 << 10, ~(1 << 300 // 16) & 0xFFFFFFFF)
    with pytest.raises(GpuFault, match=r"page directory entry 300 is not valid in PP_DIR_DCLV 0xfffbffff"):
        closed.read32(300 * 4 * 2**20 + 700 * PAGE)


def test_formats_belong_to_generations() -> None:
    memory = PhysicalMemory()
    with pytest.raises(SpecError, match="gen 7 has no four-level page tables"):
        PageTableSpace.four_level("x", generation(7), memory, 0)
    with pytest.raises(SpecError, match="gen 9 has no page directory in the global table"):
        PageTableSpace.two_level("x", generation(9), memory, memory, 0)
    with pytest.raises(SpecError):
        PageTableSpace.two_level("x", generation(4.5), memory, memory, 0)


def test_unwritten_pages_are_named_by_graphics_address() -> None:
    memory = PhysicalMemory("ram", unwritten="fault")
    Builder(memory).map(0x5000, 0x9000, PAGE)
    space = PageTableSpace.four_level("ppgtt", generation(9), memory, PML4)
    with pytest.raises(GpuFault, match=r"^read at 0x5004 in ppgtt: physical 0x9004 was never written$"):
        space.read32(0x5004)
    space.write32(0x5004, 9)
    assert space.read32(0x5004) == 9


# The walk against a dictionary.
SIZES = {"kbl": (PAGE, K64, M2, G1), "bdw": (PAGE, M2, G1)}


@pytest.mark.behaviour("KBL-MEM-07", shows="action")
@pytest.mark.parametrize("gpu", SIZES)
@given(data=st.data())
def test_the_walk_agrees_with_a_dictionary(gpu: str, data: st.DataObject) -> None:
    build, space = four_level(gpu)
    model: dict[int, tuple[int, int, bool]] = {}
    parts = data.draw(st.lists(st.integers(0, (1 << 18) - 1), min_size=1, max_size=3, unique=True), "gigabytes")
    for part in parts:
        for _ in range(data.draw(st.integers(1, 4))):
            size = data.draw(st.sampled_from(SIZES[gpu]), "size")
            inside = data.draw(st.integers(0, G1 // size - 1), "place")
            start = part * G1 + inside * size
            block = start // M2 * M2, M2  # a directory entry is one thing: keep sizes apart in blocks of 2 MiB
            if any(s < max(start + size, sum(block)) and min(start, block[0]) < s + max(n, M2) for s, (n, _, _) in model.items()):
                continue
            physical = data.draw(st.integers(2, (1 << 46) // size - 1), "physical") * size
            if physical < PML4 + (1 << 24) and PML4 < physical + size:
                continue
            writable = data.draw(st.booleans(), "writable")
            build.map(start, physical, size, 3 if writable else 1)
            model[start] = size, physical, writable
    for start, (size, physical, writable) in model.items():
        offset = data.draw(st.integers(0, size - 1), "offset")
        page = space.translate(start + offset)
        assert (page.start, page.size, page.physical, page.writable) == (start, size, physical, writable)
        for outside in (start - 1, start + size):
            if 0 <= outside < 1 << 48 and not any(s <= outside < s + n for s, (n, _, _) in model.items()):
                with pytest.raises(GpuFault):
                    space.translate(outside)
    assert sum(r.size for r in space.regions()) == sum(size for size, _, _ in model.values())


# What Intel's OpenCL runtime writes into AUB files: comments say which graphics addresses the pages that follow belong to.


def records(path: Path) -> Iterator[tuple[str, int, bytes]]:
    data, at = path.read_bytes(), 0
    while at < len(data):
        header = struct.unpack_from("<I", data, at)[0]
        size = 4 * ((header & 0xFFFF) + 1)
        if header >> 16 & 0x7F == 8:
            yield "comment", 0, data[at + 8 : at + size].rstrip(b"\0")
        elif header >> 16 & 0x7F == 6:
            low, high, flags, count = struct.unpack_from("<4I", data, at + 4)
            yield {4: "gtt"}.get(flags >> 28, "physical"), low | high << 32, data[at + 20 : at + 20 + count]
        at += size


@needs_shared("aub")
@pytest.mark.parametrize("gpu", ["bdw", "skl", "icllp"])
def test_tables_written_by_intels_opencl_runtime(gpu: str) -> None:
    memory, entries = PhysicalMemory(unwritten="fault"), PhysicalMemory("gtt", unwritten="fault")
    context = PageTableSpace.four_level("context", of(gpu), memory, 1 << 29)
    whole = PageTableSpace.global_table("global", of(gpu), memory, entries)
    expected: list[tuple[PageTableSpace, int, bytes]] = []
    for kind, address, data in records(SHARED / "aub" / f"vadd_selfcheck_{gpu}.aub"):
        if kind == "comment" and data[:5] in (b"ppgtt", b"ggtt:"):
            expected.append((context if data.startswith(b"ppgtt") else whole, int(data.split()[1], 16), b""))
        elif kind == "gtt":
            entries.write(address, data)
        elif kind == "physical":
            memory.write(address, data)
            if len(data) > 8 and expected:  # a page or more of contents, where the last comment said
                space, start, before = expected[-1]
                expected[-1] = space, start, before + data
                assert space.read(start, len(before) + len(data)) == before + data
    assert sum(len(data) for _, _, data in expected) > 200_000 and {space.name for space, _, _ in expected} == {"context", "global"}
    mapped = sum(region.size for region in context.regions())
    assert mapped >= sum(len(data) for space, _, data in expected if space is context)
