"""Affine payloads, and addresses that kernels make of them: every engine leaves the memory and the errors of the reference."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from softgen.eu.engine_protocol import AffineRange
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.payload import PayloadList, TemplatePayload
from softgen.threads.workers.affine import affine_rows
from tests.gpgpu.job import END, Job, words
from tests.gpgpu.shaped import FLAT, HEAD, HELD, READS, SHOW, Placed, Shape, agree, dwords_of

# -- rows of payloads ------------------------------------------------------------------------------------------------


def rows(own: list[bytes], shared: bytes = b"", own_first: bool = True) -> tuple[AffineRange, ...]:
    payload = TemplatePayload(bytes(32), len(shared), len(own[0]) if own else 0, own_first, shared + b"".join(own))
    return affine_rows(ThreadDispatch(0, (0,), 16, len(own), 1, payload))


def ids(first: int, step: int = 1, count: int = 16) -> bytes:
    return words(*(first + step * lane & 0xFFFF for lane in range(count))).ljust(32, b"\0")


@pytest.mark.parametrize("threads, found", [
    ([ids(0), ids(16), ids(32)], (16, 1, 1023)), ([ids(5, 0), ids(9, 0)], (16, 0, 1023)), ([ids(15, -1)], (16, -1, 1023)),
    ([ids(0, 1, 8), ids(8, 1, 8)], (8, 1, 1023)), ([ids(0, 1000), ids(7, 1000)], (16, 1000, 0xFFFF)),
    ([ids(1020), ids(1023 - 15)], (16, 1, 0xFFFF)), ([ids(0), ids(1009)], (16, 1, 0xFFFF)),
    ([ids(0), ids(0, 2)], None), ([ids(0), words(*range(8), *range(8))], (8, 1, 1023)), ([words(*range(7), 9, *range(8))], None),
    ([ids(0xFFF8)], (8, 1, 0xFFFF)), ([ids(0xFFFC)], None), ([ids(3, -1)], None), ([ids(0), ids(0, 1, 8)], (8, 1, 1023)),
    ([words(0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1)], None), ([words(*[0] * 7, *[1] * 9)], None),
])  # fmt: skip
def test_rows_of_a_register(threads: list[bytes], found: tuple[int, int, int] | None) -> None:
    expected = () if found is None else (AffineRange(32, 2, found[0], found[1], found[2]),)
    assert rows(threads) == expected
    for thread, row in itertools.product(threads, expected):
        held = np.frombuffer(thread, np.uint16)[: row.count].astype(int)
        assert (np.diff(held) == row.stride).all() and max(held) <= (row.highest or 0)


def test_rows_stand_where_the_payload_has_them() -> None:
    own = [ids(0) + ids(7, 0) + words(*[5, 1] * 8), ids(16) + ids(8, 0) + words(*[1, 5] * 8)]
    assert rows(own) == (AffineRange(32, 2, 16, 1, 1023), AffineRange(64, 2, 16, 0, 1023))
    assert rows(own, bytes(64)) == (AffineRange(32, 2, 16, 1, 1023), AffineRange(64, 2, 16, 0, 1023))
    assert rows(own, bytes(64), own_first=False) == (AffineRange(96, 2, 16, 1, 1023), AffineRange(128, 2, 16, 0, 1023))
    assert rows([ids(0) + ids(16)]) == (AffineRange(32, 2, 16, 1, 1023), AffineRange(64, 2, 16, 1, 1023))  # SIMD32
    assert rows([], ids(0)) == () == affine_rows(ThreadDispatch(0, (0,), 16, 2, 1, PayloadList(tuple(own))))


# -- dispatches ------------------------------------------------------------------------------------------------------


# How items find their address in r10. Parameters: r4.0 an offset, r4.1 a row's length.
ADDRESSES = {
    "linear": FLAT,
    "moved": FLAT + "     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d r4.0<0;1,0>:d\n",
    "by group": FLAT + "(W)  shl (1|M0) r7.0<1>:d r0.1<0;1,0>:d 8:w\n     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d r7.0<0;1,0>:d\n",
    "two axes": "     mul (16|M0) r10.0<1>:d r2.0<16;16,1>:uw r4.1<0;1,0>:d\n"
                "     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d r1.0<16;16,1>:uw\n     shl (16|M0) r10.0<1>:d r10.0<8;8,1>:d 2:w\n",
    "left of the edge": "     add (16|M0) r10.0<1>:d r1.0<16;16,1>:uw -5:w\n     shl (16|M0) r10.0<1>:d r10.0<8;8,1>:d 2:w\n",
    "down": FLAT + "     add (16|M0) r10.0<1>:d -r10.0<8;8,1>:d r4.0<0;1,0>:d\n",
    "uniform": "     mov (16|M0) r10.0<1>:d r4.0<0;1,0>:d\n",
    "group of eight": "     and (16|M0) r10.0<1>:d r3.0<16;16,1>:uw 7:uw\n     shl (16|M0) r10.0<1>:d r10.0<8;8,1>:d 2:w\n",
    "few bits": FLAT + "     and (16|M0) r10.0<1>:d r10.0<8;8,1>:d 0xFC:uw\n",
    "aligned": FLAT + "     and (16|M0) r10.0<1>:d r10.0<8;8,1>:d -8:d\n",
    "words": "     shl (16|M0) r9.0<1>:uw r3.0<16;16,1>:uw 2:w\n     add (16|M0) r9.0<1>:uw r9.0<16;16,1>:uw r4.0<0;1,0>:uw\n"
             "     mov (16|M0) r10.0<1>:ud r9.0<16;16,1>:uw\n",
    "signed words": "     add (16|M0) r9.0<1>:w r3.0<16;16,1>:w -20:w\n     shl (16|M0) r10.0<1>:d r9.0<16;16,1>:w 2:w\n",
    "saturated": "     add (16|M0) r9.0<1>:w r3.0<16;16,1>:w -20:w\n     add (16|M0) (sat)r10.0<1>:ud r9.0<16;16,1>:uw 0:uw\n"
                 "     shl (16|M0) r10.0<1>:d r10.0<8;8,1>:d 2:w\n",
    "halves": "     shl (8|M0) r10.0<1>:d r3.0<8;8,1>:uw 2:w\n     shl (8|M8) r11.0<1>:d r3.8<8;8,1>:uw 2:w\n",
    "parts": FLAT + "(W)  mov (1|M0) r10.5<1>:d 64:d\n",
    "lanes of the group's first": "     mov (16|M0) r10.0<1>:d r3.1<0;1,0>:uw\n     shl (16|M0) r10.0<1>:d r10.0<8;8,1>:d 2:w\n",
    "every other": "     mov (16|M0) r40.0<1>:d r3.0<16;16,1>:uw\n     mov (16|M0) r42.0<1>:d 0:d\n"
                   "     mov (8|M0) r42.0<1>:d r40.0<16;8,2>:d\n"
                   "     shl (16|M0) r10.0<1>:d r42.0<8;8,1>:d 2:w\n",
}  # fmt: skip
@pytest.mark.covering(1)
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("size", [4096, 150], ids=["whole", "short"])
def test_reads(address: str, size: int) -> None:
    shape = Shape((64, 1))
    job = shape.job(HEAD + ADDRESSES[address] + READS["surface"] + SHOW, [HELD[:size], bytes(512)], (8, 16, 0, 0, 0, 0, 0, 64))
    said = agree(job)
    assert not said[0] and (address == "uniform" or size == 150 or len(set(dwords_of(said[1][1]))) > 3)


@pytest.mark.parametrize("signed", ["w", "uw"])
@pytest.mark.parametrize("start", [0x7FE0, 0x7FC0, 0xFFC0, 0xFFE4])
def test_words_that_overflow_on_the_way(signed: str, start: int) -> None:
    """Of a row that begins inside a large buffer, some lanes are outside or back at its beginning."""
    address = "     shl (16|M0) r9.0<1>:uw r1.0<16;16,1>:uw 2:w\n     add (16|M0) r9.0<1>:uw r9.0<16;16,1>:uw r4.0<0;1,0>:uw\n"
    address += f"     mov (16|M0) r10.0<1>:d r9.0<16;16,1>:{signed}\n"
    for read in ("surface", "stateless"):
        buffers, parameters, below = [HELD * 20, bytes(64)], (start, 0, 0, 0, 0, 0, 0, 16), {0xF8000: HELD[::-1] * 8}
        said = agree(Shape((16, 1), groups=1).job(HEAD + address + READS[read] + SHOW, buffers, parameters, more=below))
        assert not said[0] and bool(said[2]) == (signed == "w" and start != 0x7FC0 and read == "surface")


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("shape", [Shape((24, 3), groups=3), Shape((7, 5)), Shape((16, 4))], ids=lambda item: "x".join(map(str, item.size)))
def test_messages_and_groups_of_odd_sizes(read: str, shape: Shape) -> None:
    address = "linear" if shape.size[0] == 16 else "two axes"
    items = shape.size[0] * shape.size[1]
    buffers, parameters = [HELD, bytes(4 * items * shape.groups)], (12, shape.size[0], 0, 0, 0, 0, 0, items)
    job = shape.job(HEAD + ADDRESSES[address] + READS[read] + SHOW, buffers, parameters)
    said = agree(job)
    assert not said[0] and any(said[1][1])


WRITES = {
    "surface": "     send (16|M0) null:w r10 0xC 0x08025E00\n", "byte": "     send (16|M0) null:w r10 0xA 0x08030100\n",
    "word": "     send (16|M0) null:w r10 0xA 0x08030500\n",
    "stateless": "     add (16|M0) r10.0<1>:d r10.0<8;8,1>:d 0x100000:d\n     send (16|M0) null:w r10 0xC 0x08025EFF\n",
}  # fmt: skip


@pytest.mark.parametrize("write, address", [("surface", address) for address in ADDRESSES] + [
    *itertools.product(("byte", "word", "stateless"), ("linear", "two axes", "uniform")),
])  # fmt: skip
def test_writes(write: str, address: str) -> None:
    data = "     add (16|M0) r12.0<1>:d r3.0<16;16,1>:uw 0x3000:d\n"
    size = 4096 if write == "stateless" else 204
    job = Shape((24, 3)).job(HEAD + ADDRESSES[address] + data + WRITES[write] + END, [bytes(size)], (8, 24))
    said = agree(job)
    assert not said[0] and (any(said[1][0]) or address in ("signed words",))


# -- under masks -----------------------------------------------------------------------------------------------------


COMPARE = "     cmp (16|M0) (ge)f0.0 null<1>:d r3.0<16;16,1>:uw r4.2<0;1,0>:d\n"
FILL = "     mov (16|M0) r20.0<1>:d 0x77:d\n"


@pytest.mark.covering(2)
@pytest.mark.parametrize("read", ["surface", "stateless", "local"])
@pytest.mark.parametrize("address", ["linear", "uniform", "left of the edge"])
@pytest.mark.parametrize("from_", [3, 21, 1000])
def test_lanes_that_are_off(read: str, address: str, from_: int) -> None:
    """Items from one on read: by a predicate, and once more in an if where addresses are computed, too."""
    if (read, address) == ("stateless", "left of the edge"):
        return
    predicated = READS[read].replace("     send (16|M0) r20", "(f0.0) send (16|M0) r20")
    inside = f"(f0.0) if (16|M0) off off\n{ADDRESSES[address]}{READS[read]}off:\n     endif (16|M0) next\nnext:\n"
    for body in (ADDRESSES[address] + predicated, inside):
        job = Shape((40, 1)).job(HEAD + COMPARE + FILL + body + SHOW, [HELD[:400], bytes(320)], (8, 40, from_, 0, 0, 0, 0, 40))
        assert not agree(job)[0]


NOWHERE = 0x7000000


@pytest.mark.parametrize("width", ["uniform", "linear"])
@pytest.mark.parametrize("wide", [False, True, None], ids=["stateless", "a64", "bytes"])
@pytest.mark.parametrize("from_", [0, 20, 1000])
def test_what_nobody_reaches_is_no_fault(width: str, wide: bool | None, from_: int) -> None:
    """Addresses where nothing is mapped, in threads all of whose lanes are off; where one is on, the fault is the same."""
    address = "     mov (16|M0) r10.0<1>:d r4.0<0;1,0>:d\n" if width == "uniform" else ADDRESSES["moved"]
    if wide:
        read = "".join(f"     mov (8|M{8 * half}) r{60 + 2 * half}.0<1>:uq r{10 + half}.0<8;8,1>:ud\n" for half in range(2))
        read += "".join(f"(f0.0) send (8|M{8 * half}) r{20 + half}:w r{60 + 2 * half} 0xC 0x04146EFF\n" for half in range(2))
    else:
        read = f"(f0.0) send (16|M0) r20:w r10 {'0xA 0x042101FF' if wide is None else '0xC 0x04205EFF'}\n"
    job = Shape((48, 1)).job(HEAD + COMPARE + FILL + address + read + SHOW, [bytes(4), bytes(400)], (NOWHERE, 0, from_, 0, 0, 0, 0, 48))
    said = agree(job)
    assert ("not mapped (lane" in said[0]) == (from_ < 48)


def test_a_write_under_a_mask_is_not_believed_by_instructions_without_one() -> None:
    """r10 is a row where lanes are on and something else where they are off; a message without a mask takes all of it."""
    masked = "     mov (16|M0) r10.0<1>:d 28:d\n" + COMPARE + FLAT.replace("     shl", "(f0.0) shl")
    read = "(W)  send (16|M0) r20:w r10 0xC 0x04205E00\n"
    for from_ in (0, 5, 1000):
        job = Shape((48, 1)).job(HEAD + masked + read + SHOW, [HELD, bytes(400)], (0, 0, from_, 0, 0, 0, 0, 48))
        assert not agree(job)[0]


# -- addresses of 64 bits, and the ends of memory --------------------------------------------------------------------


A64 = """
(W)  mov (1|M0) r8.0<1>:ud r4.0<0;1,0>:ud
(W)  mov (1|M0) r8.1<1>:ud r4.1<0;1,0>:ud
     shl (8|M0) r10.0<1>:d r1.0<8;8,1>:uw 2:w
     mov (8|M0) r60.0<1>:uq r10.0<8;8,1>:ud
     add (8|M0) r60.0<1>:uq r60.0<4;4,1>:uq r8.0<0;1,0>:uq
"""
A64_READ = A64 + "     send (8|M0) r11:w r60 0xC 0x04146EFF\n     send (8|M0) null:w r10 0xC 0x04026E00\n"
A64_WRITE = A64 + "     add (8|M0) r62.0<1>:d r1.0<8;8,1>:uw 0x55:uw\n     send (8|M0) null:w r60 0xC 0x06066EFF\n"
PAGE = bytes(range(256)) * 16


@pytest.mark.parametrize("start, faults", [
    (0x100000, ""), (0xFFFFFFF0, ""), (0x7FFFFFFFFFE0, ""), (0x7FFFFFFFFFF0, "not a canonical"), (0x7FFFFFFFFFFE, "not a canonical"),
    ((1 << 64) - 16, ""), ((1 << 64) - 32, ""), (0x8000_0000_0000, "not a canonical"), ((1 << 64) - (1 << 47), "not mapped"),
    (0x200FF0, "not mapped"),
])  # fmt: skip
@pytest.mark.parametrize("kernel", [A64_READ, A64_WRITE], ids=["read", "write"])
def test_addresses_of_64_bits(start: int, faults: str, kernel: str) -> None:
    more = {0xFFFFF000: PAGE, 0x100000000: PAGE[::-1], 0x7FFFFFFFF000: PAGE, 0xFFFFFFFFF000: PAGE, 0: PAGE[::-1], 0x200000: PAGE}
    job = Shape((8, 1), simd=8, groups=1).job(HEAD + kernel + END, [PAGE[:256]], (start & 0xFFFFFFFF, start >> 32), more=more)
    assert faults in agree(job)[0] and bool(faults) == bool(agree(job)[0])


@pytest.mark.parametrize("start", [0xFFFFFFC0, 0xFFFFFFD0, 0xFFFFFFFC])
def test_offsets_that_begin_again_at_zero(start: int) -> None:
    """A row of 32-bit offsets goes on at the beginning, not behind 4 GiB."""
    more = {0xFFFFF000: PAGE, 0: PAGE[::-1], 0x100000000: bytes(4096)}
    for read in ("     send (16|M0) r20:w r10 0xC 0x04205EFF\n", READS["surface"], READS["local"]):
        job = Shape((16, 1), groups=1).job(HEAD + ADDRESSES["moved"] + read + SHOW, [HELD, bytes(64)], (start,), more=more)
        assert not agree(job)[0]


BLOCKS = """
(W)  mov (8|M0) r10.0<1>:ud 0:ud
(W)  shl (1|M0) r10.2<1>:ud r3.0<0;1,0>:uw 1:w
(W)  send (8|M0) r21:w r10 0xA 0x02180200
(W)  mov (8|M0) r20.0<1>:ud r10.0<8;8,1>:ud
(W)  shr (1|M0) r20.2<1>:ud r3.0<0;1,0>:uw 3:w
(W)  send (8|M0) null:w r20 0xA 0x040A0201
"""


@pytest.mark.parametrize("size", [4096, 300, 64])
def test_blocks(size: int) -> None:
    assert not agree(Shape((64, 1)).job(HEAD + BLOCKS + END, [HELD[:size], bytes(256)]))[0]


@dataclass
class Fixed(Placed):
    """Buffer 0 is mapped read-only, and followed by a page that is not mapped."""

    def memory(self) -> AddressSpace:
        space = super().memory()
        space.unmap(self.address(0), 4096)
        space.map(self.address(0), MemfdBuffer(4096, "fixed"), writable=False)
        return space

    def surface(self, number: int, data: bytes) -> bytes:
        return super().surface(number, bytes(8192))


@pytest.mark.parametrize("start", [0, 4096 - 32])
@pytest.mark.parametrize("access", ["surface", "byte", "atomic"])
def test_memory_that_is_mapped_read_only(access: str, start: int) -> None:
    """The lowest lane is at fault, and the reason is its own."""
    send = {**WRITES, "atomic": "     send (16|M0) r20:w r10 0xC 0x0820A700\n"}[access]
    job = Shape((16, 1), groups=1).job(HEAD + ADDRESSES["moved"] + "     mov (16|M0) r12.0<1>:d 5:d\n" + send + END, [PAGE], (start,))
    said = agree(Fixed(**vars(job)))[0]
    assert "'fixed' is mapped read-only (lane 0)" in said and f"at {job.address(0) + start:#x} in" in said


@pytest.mark.parametrize("order", [[*range(15, -1, -1)], [*range(8), *range(8)], [*range(0, 32, 2)], [3, 1, 2, 0] * 4])
def test_ids_in_another_order(order: list[int]) -> None:
    """A driver may number items as it likes."""
    kernel = HEAD + "     shl (16|M0) r10.0<1>:d r1.0<16;16,1>:uw 2:w\n" + READS["surface"]
    kernel += "     mov (16|M0) r12.0<1>:d r20.0<8;8,1>:d\n     send (16|M0) null:w r10 0xC 0x08025E01\n" + END
    own = [words(*order), words(*(item + 5 for item in order))]
    assert not agree(Job(kernel, [HELD[:128], bytes(128)], shape=(2, 1, 1), own=own))[0]
