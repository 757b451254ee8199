"""Address spaces of many mappings: what each costs, and readers while others map."""

from __future__ import annotations

import ctypes
import random
import threading
import time
from collections.abc import Callable

import pytest

from softgen.errors import GpuFault
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer

PAGE, GIB4 = 4096, 1 << 32


def seconds(each: Callable[[int], None], count: int, pieces: int = 4) -> list[float]:
    """Processor time of each quarter of so many calls."""
    times = []
    for piece in range(pieces):
        began = time.thread_time()
        for number in range(piece * count // pieces, (piece + 1) * count // pieces):
            each(number)
        times.append(time.thread_time() - began)
    return times


@pytest.mark.parametrize("backwards", [False, True])
def test_a_mapping_costs_the_same_however_many_there_are(backwards: bool) -> None:
    """24,000 took 25 seconds when each change copied the list of all others."""
    space, buffer, count = AddressSpace("many"), MemfdBuffer(PAGE), 24_000

    def place(number: int) -> int:
        return 16 * PAGE * (count - number if backwards else number)

    times = seconds(lambda number: space.map(place(number), buffer), count)
    assert times[-1] < 4 * times[0] + 0.1, times
    times = seconds(lambda number: space.unmap(place(number), PAGE), count)
    assert times[-1] < 4 * times[0] + 0.1, times
    assert not list(space.regions())


def test_a_part_costs_the_same_however_many_there_are() -> None:
    """4,000 parts of 4 GiB took 8 seconds, 8,000 took 40: the tail of each looked at the mappings of all."""
    space, buffer = AddressSpace("parts"), MemfdBuffer(PAGE)
    assert space.table
    times = seconds(lambda number: space.map(number * GIB4, buffer), 2400)
    assert times[-1] < 4 * times[0] + 0.1, times
    space.close()


def test_tails_show_what_is_mapped_at_both_of_their_ends() -> None:
    """The mappings of a tail are found, whatever lies before and behind it."""
    space, buffer = AddressSpace("tails"), MemfdBuffer(8 * PAGE)
    buffer.view[:] = b"".join(bytes([65 + page]) * PAGE for page in range(8))
    border = GIB4
    for page, address in enumerate((border - PAGE, border, border + 0xF000, border + 0x10000, border + 0x20000)):
        space.map(address, buffer, page * PAGE, PAGE)
    assert space.table
    tail = (space.contiguous(border - PAGE, 2 * PAGE), space.contiguous(border - PAGE, 0x22000))
    assert tail[0] == tail[1] and tail[0] is not None
    shown = [ctypes.string_at(tail[0] + PAGE + offset, 1) for offset in (-PAGE, 0, 0xF000, 0x10000, 0x20000)]
    assert shown == [b"A", b"B", b"C", b"D", b"E"]
    space.close()


def test_readers_find_what_is_there_while_others_map() -> None:
    """Without waiting for them; what is unmapped meanwhile is there or is a fault."""
    space, buffer, rng = AddressSpace("busy"), MemfdBuffer(64 * PAGE), random.Random(5)
    stays = [16 * PAGE * (2 * number + 1) for number in range(200)]
    for number, address in enumerate(stays):
        space.map(address, buffer, number % 64 * PAGE, PAGE)
        space.write(address, number.to_bytes(4, "little"))
    over, wrong = threading.Event(), list[str]()

    def read() -> None:
        while not over.is_set():
            number = rng.randrange(len(stays))
            try:
                if space.read(stays[number], 4) != space.read(stays[number], 4) or space.extent(stays[number], PAGE) != PAGE:
                    wrong.append(f"{number}")
                if space.view(stays[number], PAGE) is None:
                    wrong.append(f"no view of {number}")
            except GpuFault as fault:
                wrong.append(str(fault))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(30):
            gone = [16 * PAGE * 2 * number for number in range(200)]
            for address in rng.sample(gone, len(gone)):
                space.map(address, buffer, 0, 3 * PAGE)
            for address in rng.sample(gone, len(gone)):
                space.unmap(address + PAGE, PAGE)  # splits it
            space.unmap(0, 16 * PAGE)
            for address in rng.sample(gone, len(gone)):
                space.unmap(address, 3 * PAGE)
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert not wrong, wrong[:3]
    assert [region.start for region in space.regions()] == stays
