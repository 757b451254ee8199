"""Physical memory: sparse, bounded, and it knows what was written."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.errors import DriverError, GpuFault, SoftgenError
from softgen.memory.physical import PhysicalMemory

PAGE = 4096


def test_far_apart_writes_take_little_room() -> None:
    memory = PhysicalMemory(bits=46)
    memory.write(0, b"low")
    memory.write((1 << 46) - 4, b"high")
    memory.write64(0x2B_ACE6_4100, 0x17007)
    assert memory.read(0, 4) == b"low\0" and memory.read((1 << 46) - 4, 4) == b"high" and memory.read64(0x2B_ACE6_4100) == 0x17007
    assert memory.read(0x123456789000, 16) == bytes(16)
    assert [(r.start, r.size) for r in memory.regions()] == [(0, PAGE), (0x2B_ACE6_4000, PAGE), ((1 << 46) - PAGE, PAGE)]
    assert os.fstat(memory.fd).st_blocks * 512 == 3 * PAGE


def test_written_pages_beside_each_other_are_one_region() -> None:
    memory = PhysicalMemory()
    for page in (7, 3, 0, 4, 8, 5):
        memory.write(page * PAGE, b"1")
    assert [(r.start // PAGE, r.size // PAGE) for r in memory.regions()] == [(0, 1), (3, 3), (7, 2)]


def test_pages_nobody_wrote_are_zero_or_a_fault_by_choice() -> None:
    memory = PhysicalMemory("ram", unwritten="fault")
    memory.write(0x1FFE, b"1234")
    assert memory.read(0x1000, 2 * PAGE)[0xFFE:0x1002] == b"1234" and memory.extent(0x1800, 1 << 30) == 0x1800
    assert memory.written(0x2FFF) and not memory.written(0x3000)
    with pytest.raises(GpuFault, match=r"^read at 0x3000 in ram: never written$"):
        memory.read(0x2FFC, 8)
    assert memory.extent(0x1000, 0) == PhysicalMemory().extent(0x1000, 0) == 0
    small = PhysicalMemory(bits=40)
    assert small.extent(0x1000, 1 << 50) == (1 << 40) - 0x1000 and small.extent(1 << 40, 4) == small.extent(-1, 4) == 0


@pytest.mark.parametrize("unwritten", ["zero", "fault"])
def test_of_no_bytes_none_are_readable(unwritten: str) -> None:
    memory = PhysicalMemory(bits=20, unwritten=unwritten)
    memory.write(0x1000, b"abc")
    assert [memory.extent(0x1000, limit) for limit in (-5, 0, 2)] == [0, 0, 2] and memory.read_mapped(0x1000, -5) == b""


def test_a_write_that_the_host_ends_early_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux writes at most 2 GiB less a page at once."""
    memory, data, whole = PhysicalMemory(), bytes(range(256)) * 10, os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, part, offset: whole(fd, part[:1000], offset))
    memory.write(0x1F00, data)
    assert memory.read(0x1EFF, len(data) + 2) == b"\0" + data + b"\0"


def test_dwords_and_qwords_have_four_and_eight_bytes() -> None:
    """Bits of a value above them are dropped."""
    memory = PhysicalMemory(bits=12)
    memory.write(0xFF0, bytes(range(1, 17)))
    assert (memory.read32(0xFF0), memory.read64(0xFF0), memory.read32(0xFFC)) == (0x04030201, 0x0807060504030201, 0x100F0E0D)
    memory.write32(0xFF4, 0x1_2345_6789)
    memory.write64(0xFF8, -2)
    assert memory.read(0xFF0, 16) == bytes.fromhex("01020304 89674523 feffffff ffffffff")


def test_what_lies_beyond_is_a_fault() -> None:
    memory = PhysicalMemory("ram", bits=40)
    for act in (lambda: memory.read((1 << 40) - 2, 4), lambda: memory.write((1 << 40) - 2, b"1234")):
        with pytest.raises(GpuFault, match=r"at 0x10000000000 in ram: beyond the 40-bit space$"):
            act()
    with pytest.raises(GpuFault, match="at -0x1 in ram"):
        memory.read(-1, 1)
    with pytest.raises(SoftgenError, match="0x10000000000 bytes at once; the most is 0x40000000"):
        memory.read(0, 1 << 40)
    for wrong in ({"bits": 60}, {"unwritten": "maybe"}):
        with pytest.raises(DriverError):
            PhysicalMemory(**wrong)


def test_compiled_code_does_not_reach_it() -> None:
    """Nothing is known of host addresses, nor of what is mapped for certain, also where it was written."""
    memory = PhysicalMemory("m")
    memory.write(0x1000, bytes(64))
    assert memory.contiguous(0x1000, 16) is None and memory.mapped(0x1000, 16) == 0
    with pytest.raises(SoftgenError, match=r"^m has no host addresses: compiled code cannot reach it$"):
        _ = memory.table


def test_memory_is_bounded() -> None:
    memory = PhysicalMemory("ram", limit=8 * PAGE)
    memory.write(0, bytes(8 * PAGE))
    memory.write(0, b"the same page again")
    with pytest.raises(SoftgenError, match=r"^ram: more than 0x8000 bytes written \(at 0x100000\)$"):
        memory.write(0x100000, b"1")


def test_without_a_choice_it_has_46_bits_and_keeps_16_gib() -> None:
    memory = PhysicalMemory()
    assert (memory.bits, memory.capacity, memory.limit, memory.zero) == (46, 1 << 46, 16 << 30, True)


def test_watched_pages_move_the_epoch_once() -> None:
    memory = PhysicalMemory()
    memory.watch(0x5008)
    memory.write(0x4000, bytes(PAGE))
    assert memory.epoch == 0
    memory.write(0x4FFF, b"12")
    memory.write(0x5000, b"12")
    assert memory.epoch == 1


@given(st.lists(st.tuples(st.integers(0, 6 * PAGE), st.binary(min_size=1, max_size=2 * PAGE)), max_size=8))
def test_it_behaves_like_a_dictionary_of_bytes(writes: list[tuple[int, bytes]]) -> None:
    zero, strict, model = PhysicalMemory(bits=15), PhysicalMemory(bits=15, unwritten="fault"), bytearray(8 * PAGE)
    written = set()
    for address, data in writes:
        model[address : address + len(data)] = data
        written |= set(range(address // PAGE, (address + len(data) - 1) // PAGE + 1))
        zero.write(address, data)
        strict.write(address, data)
    assert zero.read(0, 8 * PAGE) == bytes(model)
    for page in range(8):
        assert strict.extent(page * PAGE, PAGE) == (PAGE if page in written else 0)
        if page in written:
            assert strict.read(page * PAGE, PAGE) == bytes(model[page * PAGE : (page + 1) * PAGE])
    assert sum(r.size for r in strict.regions()) == len(written) * PAGE
