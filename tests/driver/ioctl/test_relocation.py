"""Relocations as arrays: which buffer an entry names, addresses as commands have them, and values that are written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.driver.errors import Errno
from softgen.driver.ioctl import relocation
from softgen.driver.ioctl.relocation import Relocator, canonical, sign_extended, store
from softgen.driver.run.protocol import Call
from softgen.driver.uapi import i915_drm as i915
from tests.driver.execbuffer import LUT, NO_RELOC, buffer, relocations, row, submit
from tests.driver.ioctl.test_execbuffer import content_now
from tests.driver.program import Gpu, Held

HANDLES = (7, 3, 9)
NODE: Any = SimpleNamespace(gpu=SimpleNamespace(kernel=SimpleNamespace(address_size=8)))


def named(handles: tuple[int, ...], targets: list[int], flags: int = 0) -> list[int]:
    """Numbers in the list of the buffers that entries name."""
    rows = [SimpleNamespace(handle=handle) for handle in handles]
    entries = np.array([(target,) for target in targets], [("target", "<u4")])
    return Relocator(NODE, None, flags, rows, [], [0] * len(rows)).targets(entries).tolist()  # type: ignore[arg-type, no-any-return]


@pytest.mark.parametrize("handles, targets, found", [
    (HANDLES, [7, 3, 9, 9, 3], [0, 1, 2, 2, 1]), (HANDLES, [0, 1, 2, 4, 8, 10, 0xFFFFFFFF], [3] * 7), ((5,), [5, 4, 6], [0, 1, 1]),
    ((1, 2), [2, 1, 0, 3], [1, 0, 2, 2]),
])  # fmt: skip
def test_entries_name_buffers_by_their_handles(handles: tuple[int, ...], targets: list[int], found: list[int]) -> None:
    """The number after the last of the list: there is none."""
    assert named(handles, targets) == found


def test_entries_name_buffers_by_their_numbers() -> None:
    assert named(HANDLES, [0, 2, 1, 3, 7, 0xFFFFFFFF], i915.I915_EXEC_HANDLE_LUT) == [0, 2, 1, 3, 3, 3]


@pytest.mark.parametrize("address, width, found", [
    (0x1234, 8, 0x1234), (0x7FFF_FFFF_FFFF, 8, 0x7FFF_FFFF_FFFF), (0x8000_0000_0000, 8, 0xFFFF_8000_0000_0000),
    (0x1_0000_0000_0010, 8, 0x10), (0xFFFF_FFFF_F000, 8, 0xFFFF_FFFF_FFFF_F000), (0x1234, 4, 0x1234), (0x1_8000_0001, 4, 0x8000_0001),
])  # fmt: skip
def test_bits_above_47_repeat_it(address: int, width: int, found: int) -> None:
    """Addresses of 32 bits have none."""
    assert canonical(np.array([address], np.uint64), width).tolist() == [found]


def test_deltas_have_a_sign() -> None:
    deltas = np.array([0, 16, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0], np.uint32)
    found = [0, 16, 0x7FFFFFFF, -0x80000000 % (1 << 64), -16 % (1 << 64)]
    assert sign_extended(deltas).tolist() == found and sign_extended(np.repeat(deltas, 2)[::2]).tolist() == found


class Memory:
    def __init__(self, size: int) -> None:
        self.data = bytearray(size)

    def window(self, offset: int, size: int) -> memoryview:
        return memoryview(self.data)[offset : offset + size]


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("sizes", [(32,), (8, 24), (12, 4, 16)])
def test_values_are_written_across_pieces_of_memory(sizes: tuple[int, ...], width: int) -> None:
    """Of two that overlap the later one counts. A piece begins somewhere in its buffer."""
    pieces: list[Any] = [SimpleNamespace(buffer=Memory(4 + size), offset=4, size=size) for size in sizes]
    bo: Any = SimpleNamespace(pieces=pieces)
    store(bo, np.array([8, 24, 20], np.uint64), np.array([0x1111111122222222, 0x3333333344444444, 0x5555555566666666], np.uint64), width)
    whole = b"".join(bytes(piece.buffer.data[4:]) for piece in pieces)
    wanted = {8: [0, 0, 0x22222222, 0x11111111, 0, 0x66666666, 0x55555555, 0x33333333],
              4: [0, 0, 0x22222222, 0, 0, 0x66666666, 0x44444444, 0]}  # fmt: skip
    assert np.frombuffer(whole, "<u4").tolist() == wanted[width]
    assert all(piece.buffer.data[:4] == bytes(4) for piece in pieces)


def test_an_entry_that_is_refused_is_named() -> None:
    relocation.refuse(SimpleNamespace(handle=7), np.array([False, False]), 2, "is wrong")
    with pytest.raises(Errno, match="relocation 1 of buffer 7 is wrong") as error:
        relocation.refuse(SimpleNamespace(handle=7), np.array([False, True, True]), 2, "is wrong")
    assert error.value.number == 2


@pytest.mark.parametrize("flags, written", [(0, [True, True]), (NO_RELOC, [True, False])])
def test_addresses_that_are_right_are_written_unless_the_driver_says_not_to(gpu: Gpu, held: Held, flags: int, written: list[bool]) -> None:
    """I915_EXEC_NO_RELOC: what the driver presumes stands in the buffer already. Of two entries the first presumes another address."""
    program = gpu.program()
    target, batch = buffer(program), buffer(program)
    address = submit(program, [row(target), row(batch)])[0].offset
    held.finish()
    wrong = {"target": target, "offset": 8, "delta": 4, "presumed": address + 4096}
    right = {"target": target, "offset": 16, "delta": 8, "presumed": address}
    entries = relocations(program, wrong, right)
    table = program.kept[-1]
    submit(program, [row(target), row(batch, **entries)], flags=flags)
    found = np.frombuffer(content_now(gpu, program, batch, 32), np.uint64).tolist()
    assert found == [0, address + 4 if written[0] else 0, address + 8 if written[1] else 0, 0]
    presumed = np.frombuffer(bytes(table), np.uint64).reshape(2, 4)[:, 2]
    assert presumed.tolist() == [address, address], "the program learns of it"
    submission = held.submissions[0]
    assert submission.relocations == 2


def test_each_buffer_has_a_list_of_its_own(gpu: Gpu, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other lengths, one of them empty. What the entries presume is brought up to date in each; where all was right, nothing is
    written."""
    program, writes = gpu.program(), list[int]()
    write_now = Call.write_now
    monkeypatch.setattr(Call, "write_now", lambda call, address, view: writes.append(address) or write_now(call, address, view))
    target, *users = (buffer(program) for _ in range(5))
    counts, rows, tables = (1, 3, 0, 2), [row(target)], []
    for user, count in zip(users, counts, strict=True):
        entries = [{"target": target, "offset": 8 * number, "delta": 100 * user + number} for number in range(count)]
        rows.append(row(user, **relocations(program, *entries)))
        tables.append(program.kept[-1])
    address = submit(program, rows)[0].offset
    for user, count, table in zip(users, counts, tables, strict=True):
        wanted = [address + 100 * user + number for number in range(count)]
        assert np.frombuffer(content_now(gpu, program, user, 32), np.uint64).tolist() == wanted + [0] * (4 - count)
        assert np.frombuffer(bytes(table), np.uint64).reshape(-1, 4)[:, 2].tolist() == [address] * count
    assert writes == [table.address for table, count in zip(tables, counts, strict=True) if count]
    assert held.submissions[0].relocations == sum(counts)
    submit(program, rows, flags=NO_RELOC)
    assert len(writes) == 3


@pytest.mark.parametrize("offset, fits", [(0, True), (4088, True), (4092, False), (4096, False), (4086, False), (4087, False), (4, True)])
def test_places_of_addresses(gpu: Gpu, offset: int, fits: bool) -> None:
    """All of an address is in the buffer, at a whole dword."""
    program = gpu.program()
    target, batch = buffer(program), buffer(program)
    rows = [row(target), row(batch, **relocations(program, {"target": target, "offset": offset}))]
    if fits:
        submit(program, rows)
        return
    with pytest.raises(OSError, match="Invalid"):
        submit(program, rows)


@pytest.mark.parametrize("flags", [0, NO_RELOC, LUT])
def test_a_relocation_with_a_write_domain_says_that_its_target_is_written(gpu: Gpu, held: Held, flags: int) -> None:
    """Drivers of libdrm name what they write in no other way; other engines' work waits for it (public: i915, eb_relocate_entry)."""
    program = gpu.program()
    target, other, batch = (buffer(program) for _ in range(3))
    named = (0, 1) if flags == LUT else (target, other)
    writes = {"target": named[0], "offset": 8, "read_domains": 16, "write_domain": 16}
    entries = writes, {"target": named[1], "offset": 16, "read_domains": 16}
    submit(program, [row(target), row(other), row(batch, **relocations(program, *entries))], flags=flags)
    assert [written for _, written, _ in held.submissions[0].bound.accesses] == [True, False, False]
