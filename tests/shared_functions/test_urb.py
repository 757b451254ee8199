"""URB messages: layouts written out by hand, random ones against a plain model, all of them on the interpreter and as compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.bits.generation import generation
from softgen.errors import DecodeError, Unsupported
from softgen.eu.thread.block import ThreadStatus
from softgen.memory.address_space import AddressSpace
from softgen.shared_functions import descriptors
from softgen.shared_functions.unit import DispatchBindings, GroupBindings, handlers
from softgen.shared_functions.urb.memory import COMPLETE, END_OF_THREAD, ENTRY, POOL, REWRITTEN, ROW, USED, UrbMemory
from softgen.shared_functions.urb.unit import UNIT
from tests.conftest import every
from tests.shared_functions.compiled import Compiled
from tests.shared_functions.sending import Sender, Sent, header

Dwords = np.ndarray[Any, np.dtype[np.uint32]]

ROWS = 32
LATER = (7.0, 7.5, 8.0, 9.0, 11.0)
SIMD8 = (8.0, 9.0, 11.0)


class Bench:
    """A URB of 32 rows; messages are executed by the interpreter and, over the same bytes, as compiled code."""

    def __init__(self, gen: float, pools: int = 0) -> None:
        self.gen, self.space = gen, AddressSpace("bench", generation(gen).address_bits)
        self.bytes = (np.arange(ROWS * ROW) % 251).astype(np.uint8)
        self.entries = np.zeros(ROWS, ENTRY) if pools else None
        self.pools = np.zeros(pools, POOL) if pools else None
        self.memory = UrbMemory(self.bytes, self.entries, self.pools)
        bound = DispatchBindings(generation(gen), self.space, {}, unit_states=(("urb", self.memory),))
        self.remarks: list[str] = []
        bound.warn = lambda sender, what: self.remarks.append(what)
        self.bound = bound.state(UNIT.bind) if UNIT.bind else None
        self.handlers = handlers([UNIT], GroupBindings(bound))
        self.escaped = 0

    @property
    def dwords(self) -> Dwords:
        return self.bytes.view(np.uint32)

    def row(self, number: int) -> Dwords:
        """The dwords from a row on."""
        return self.dwords[number * ROW // 4 :]

    def _held(self) -> list[Any]:
        return [item for item in (self.bytes, self.entries, self.pools) if item is not None]

    def send(self, name: str, *parts: Any, mask: int = 0xFF, answer: int = 0, split: Any = None, width: int = 8, **fields: Any) -> Dwords:
        payload = np.concatenate([np.ascontiguousarray(part, np.uint32).reshape(-1).view(np.uint8) for part in parts])
        second = np.zeros(0, np.uint8) if split is None else np.ascontiguousarray(split, np.uint32).view(np.uint8)
        descriptor = descriptors.encode(name, self.gen, message_length=len(payload) // 32, response_length=answer, **fields)
        sfid = next(number for number, known in descriptors.shared_functions(self.gen).items() if known == "urb")
        sent = Sent(sfid, descriptor, payload, second, np.full(32 * answer, 0xEE, np.uint8), mask, Sender(width))
        before, again = [item.copy() for item in self._held()], sent.response.copy()
        self.handlers[sfid](None, sent)
        after = [item.copy() for item in self._held()]
        for held, was in zip(self._held(), before, strict=True):
            held[:] = was
        twin = Compiled(self.gen, self.space, np.zeros(64, np.uint8), 0)
        assert self.bound is not None
        for field, value in self.bound.fields().items():
            setattr(twin.context, field, value)
        if twin.run(sfid, descriptor, payload, second, again, mask, width) == ThreadStatus.ESCAPE:
            self.escaped += 1
            assert all((held == was).all() for held, was in zip(self._held(), before, strict=True)), "an effect before the side exit"
        else:
            assert again.tolist() == sent.response.tolist(), "the answer differs"
            for held, wanted in zip(self._held(), after, strict=True):
                assert (held == wanted).all(), "memory differs"
        for held, wanted in zip(self._held(), after, strict=True):
            held[:] = wanted
        return sent.response.view(np.uint32)


def data(registers: int, first: int = 1000) -> Dwords:
    return np.arange(first, first + 8 * registers, dtype=np.uint32)


# -- Gen4.5 ------------------------------------------------------------------------------------------------------------


def test_a_whole_write_goes_to_one_entry() -> None:
    urb = Bench(4.5)
    before = urb.dwords.copy()
    urb.send("urb_write", header(d0=3), data(2), swizzle_control="none", global_offset=1)
    assert urb.row(3)[8:24].tolist() == data(2).tolist()
    urb.row(3)[8:24] = before[3 * 16 + 8 : 3 * 16 + 24]
    assert (urb.dwords == before).all(), "nothing else was touched"


@pytest.mark.parametrize("mask", [0xFF, 0x0F, 0xF0])
def test_an_interleaved_write_is_of_two_vertices(mask: int) -> None:
    """A vertex shader's last message: header, then a slot of both vertices in each register."""
    urb = Bench(4.5)
    before, sent = urb.dwords.copy(), data(4).reshape(4, 2, 4)
    urb.send("urb_write", header(d0=2, d1=9), sent, mask=mask, swizzle_control="interleave", complete=1, used=1, end_of_thread=1)
    for vertex, (row, channels) in enumerate(((2, 0x0F), (9, 0xF0))):
        wanted = sent[:, vertex].reshape(-1) if mask & channels else before[row * 16 : row * 16 + 16]
        assert urb.row(row)[:16].tolist() == wanted.tolist()


@pytest.mark.behaviour("G45-SF-54", shows="action")
@pytest.mark.behaviour("EU-121", shows="action")
def test_a_transposing_write_makes_groups_of_coefficients() -> None:
    urb = Bench(4.5)
    before = urb.row(1)[:64].copy()
    urb.send("urb_write", header(d0=1), data(3, 100), mask=0x7F, swizzle_control="transpose", global_offset=2, used=1)
    for k in range(7):
        assert urb.row(1)[16 + 4 * k : 20 + 4 * k].tolist() == [100 + k, 108 + k, 0, 116 + k]
    assert urb.row(1)[44:48].tolist() == before[44:48].tolist(), "the last channel is off"
    urb.send("urb_write", header(d0=ROWS - 2), data(3), swizzle_control="transpose")
    assert urb.remarks == [] and urb.escaped == 0, "eight groups fill two rows"
    urb.send("urb_write", header(d0=ROWS - 1), data(3), swizzle_control="transpose")
    assert "out of bounds: URB access at offset 0x7c0, 128 bytes" in urb.remarks[0] and urb.escaped == 1
    with pytest.raises(DecodeError, match="transposition must have 3 registers of data, not 2"):
        urb.send("urb_write", header(d0=1), data(2), swizzle_control="transpose")


@pytest.mark.parametrize("mask", [0xFF, 0x01, 0x80, 0x00])
def test_a_transposing_write_beyond_the_urb_is_reported_for_any_of_its_channels(mask: int) -> None:
    """Groups that are inside are written, by the interpreter; a write of no channel goes nowhere."""
    urb = Bench(4.5)
    before = urb.row(ROWS - 1)[:16].copy()
    urb.send("urb_write", header(d0=ROWS - 1), data(3, 100), mask=mask, swizzle_control="transpose")
    assert len(urb.remarks) == urb.escaped == (1 if mask else 0)
    for k in range(4):
        wanted = [100 + k, 108 + k, 0, 116 + k] if mask >> k & 1 else before[4 * k : 4 * k + 4].tolist()
        assert urb.row(ROWS - 1)[4 * k : 4 * k + 4].tolist() == wanted


def pool_bench() -> Bench:
    urb = Bench(4.5, pools=2)
    assert urb.entries is not None and urb.pools is not None
    urb.entries["pool"][3] = 1
    urb.pools[0], urb.pools[1] = (20, 32, 2, 0), (10, 16, 2, 0)
    return urb


@pytest.mark.behaviour("G45-URB-11", shows="action")
@pytest.mark.behaviour("G45-URB-13", shows="action")
@pytest.mark.behaviour("G45-FF-19", shows="action")
def test_a_thread_allocates_its_next_entry() -> None:
    """The answer is the header with a new handle; the records say what the thread completed, in the order of allocation."""
    urb = pool_bench()
    assert urb.entries is not None and urb.pools is not None
    sent = header(d0=3, d2=0x1A, d5=0x77, d7=5)
    found = urb.send("urb_write", sent, data(2), answer=1, swizzle_control="none", complete=1, used=1, allocate=1)
    assert found.tolist() == [10, 0, 0x1A, 0, 0, 0x77, 0, 5]
    assert urb.entries[3].tolist() == (COMPLETE | USED, 0x1A, 10, 1) and urb.entries[10].tolist() == (0, 0, 0, 1)
    assert urb.pools[1].tolist() == (12, 16, 2, 1) and urb.pools[0]["next"] == 20, "the thread keeps the new handle only"
    assert urb.row(3)[:16].tolist() == data(2).tolist()
    urb.send("urb_write", header(d0=10, d2=0x19), data(2), swizzle_control="none", complete=1, used=1, end_of_thread=1)
    assert urb.entries[10].tolist() == (COMPLETE | USED | END_OF_THREAD, 0x19, 0, 1)
    assert not urb.escaped


@pytest.mark.behaviour("G45-URB-12", shows="action")
@pytest.mark.behaviour("G45-FF-15", shows="action")
def test_an_entry_can_be_given_back_unwritten() -> None:
    urb = pool_bench()
    assert urb.entries is not None
    before = urb.bytes.copy()
    urb.send("urb_write", header(d0=3, d2=1), mask=0, complete=1, end_of_thread=1)
    assert urb.entries[3].tolist() == (COMPLETE | END_OF_THREAD, 1, 0, 1) and (urb.bytes == before).all()


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_any_channel_completes_an_entry_allocates_another_and_notes_later_writes(mask: int) -> None:
    """Channels decide about the data that is written; what happens to the entry takes one of them."""
    urb = pool_bench()
    assert urb.entries is not None
    found = urb.send("urb_write", header(d0=3, d2=0x1A), mask=mask, answer=1, complete=1, used=1, allocate=1)
    assert urb.entries[3].tolist() == (COMPLETE | USED, 0x1A, 10, 1) and found[0] == 10
    urb.send("urb_write", header(d0=3), mask=0)
    assert urb.entries["flags"][3] == COMPLETE | USED, "no channel is on: nothing happens"
    urb.send("urb_write", header(d0=3), mask=mask)
    assert urb.entries["flags"][3] == COMPLETE | USED | REWRITTEN


@pytest.mark.behaviour("G45-URB-14", shows="action")
@pytest.mark.behaviour("G45-URB-16", shows="action")
def test_entries_are_linked_in_the_order_of_allocation() -> None:
    """A thread that allocates twice from its first entry, before it completes any."""
    urb = pool_bench()
    assert urb.entries is not None and urb.pools is not None
    for fresh, retained in ((10, 2), (12, 3)):
        found = urb.send("urb_write", header(d0=3), answer=1, allocate=1)
        assert found[0] == fresh and urb.pools[1]["retained"] == retained
    assert [int(urb.entries["next"][handle]) for handle in (3, 10, 12)] == [10, 12, 0]
    urb.send("urb_write", header(d0=12), complete=1, used=1)
    assert [int(urb.entries["flags"][handle]) for handle in (3, 10, 12)] == [0, 0, COMPLETE | USED]


def test_a_pool_that_is_used_up_is_an_error() -> None:
    urb = pool_bench()
    for _ in range(3):
        urb.send("urb_write", header(d0=3), answer=1, allocate=1)
    with pytest.raises(Unsupported, match="allocates a URB entry, but the stage's URB pool is used up"):
        urb.send("urb_write", header(d0=3), answer=1, allocate=1)
    with pytest.raises(Unsupported, match="its dispatch has no URB pool"):
        Bench(4.5).send("urb_write", header(d0=3), answer=1, allocate=1)
    found = urb.send("urb_write", header(d0=3), mask=0, answer=1, allocate=1)
    assert (found.view(np.uint8) == 0xEE).all(), "no channel is on: nothing happens"


def test_an_allocation_without_room_for_its_answer_takes_no_entry() -> None:
    urb = pool_bench()
    assert urb.pools is not None
    with pytest.raises(DecodeError, match="urb_write has 0 registers for its answer, too few; 1 are needed"):
        urb.send("urb_write", header(d0=3), allocate=1)
    assert urb.pools[1].tolist() == (10, 16, 2, 0)


def test_records_of_handles_outside_are_not_touched() -> None:
    urb = pool_bench()
    assert urb.entries is not None
    before = urb.entries.copy()
    for handle in (ROWS, ROWS + 1, (1 << 27) - 1):
        urb.send("urb_write", header(d0=handle), complete=1, used=1)
    assert (urb.entries == before).all()


# -- HWORD and OWORD ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", every(3, LATER))
def test_register_wise_messages(gen: float) -> None:
    """Random writes and reads against a model of one dword at a time."""
    rng = np.random.default_rng(int(gen * 10))
    for turn in range(40):
        urb = Bench(gen)
        kind, registers = ("hword", "oword")[turn % 2], int(rng.integers(1, 5))
        handles, per_slot, bits = rng.integers(0, 12, 2), rng.integers(0, 4, 2), int(rng.integers(0, 256))
        swizzle, offset, mask = ("none", "interleave")[turn // 2 % 2], int(rng.integers(0, 6)), int(rng.choice([0xFF, 0x0F, 0xF0, 0x5A]))
        slots = bool(rng.integers(0, 2))
        first = header(d0=int(handles[0]), d1=int(handles[1]), d3=int(per_slot[0]), d4=int(per_slot[1]), d5=bits << 8)
        fields = {"swizzle_control": swizzle, "global_offset": offset, "per_slot_offset_present": int(slots)}
        places: dict[int, int] = {}  # dword of the message -> dword of the URB
        for dword in range(registers * 8):
            half, slot = dword // 4 % 2, dword // 4 % 2 if swizzle == "interleave" else 0
            run = dword // 8 * 4 + dword % 4 if swizzle == "interleave" or kind == "oword" else dword
            if (kind == "hword" or swizzle == "interleave" or not half) and (mask & bits) >> dword % 8 & 1:
                unit = 8 if kind == "hword" else 4
                places[dword] = int(handles[slot]) * 16 + (offset + (int(per_slot[slot]) if slots else 0)) * unit + run
        wanted, sent = urb.dwords.copy(), data(registers)
        found = urb.send(f"urb_read_{kind}", first, mask=mask, answer=registers, **fields)
        assert found.tolist() == [int(wanted[places[d]]) if d in places else 0xEEEEEEEE for d in range(registers * 8)]
        urb.send(f"urb_write_{kind}", first, sent, mask=mask, **fields)
        interleaved = sorted(places, key=lambda d: d // 4 % 2) if swizzle == "interleave" else sorted(places)
        for dword in interleaved:
            wanted[places[dword]] = sent[dword]
        assert (urb.dwords == wanted).all()
        assert not urb.escaped and not urb.remarks


@pytest.mark.parametrize("gen", [7.0, 9.0])
def test_a_read_without_an_answer_releases_entries(gen: float) -> None:
    urb = Bench(gen)
    before = urb.bytes.copy()
    urb.send("urb_read_oword", header(d0=1, d1=2))
    assert (urb.bytes == before).all()


# -- SIMD8 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gen", SIMD8)
def test_simd8_messages(gen: float) -> None:
    rng = np.random.default_rng(int(gen))
    for turn in range(30):
        urb, count = Bench(gen), int(rng.integers(1, 9))
        handles, slots, masks = rng.permutation(24)[:8], rng.integers(0, 3, 8), rng.integers(0, 256, 8)
        offset, mask, optional = int(rng.integers(0, 3)), int(rng.choice([0xFF, 0x3F, 0xA5])), turn % 4
        more = [slots] * (optional & 1) + [masks << 16] * (optional >> 1)
        fields = {"global_offset": offset, "per_slot_offset_present": optional & 1, "channel_mask_present": optional >> 1}
        places = {(dword, channel): int(handles[channel]) * 16 + (offset + (optional & 1) * int(slots[channel])) * 4 + dword
                  for dword in range(count) for channel in range(8)
                  if mask >> channel & 1 and (not optional >> 1 or masks[channel] >> dword & 1)}  # fmt: skip
        wanted, sent = urb.dwords.copy(), data(count)
        found = urb.send("urb_simd8_read", handles, *more, mask=mask, answer=count, **fields).reshape(count, 8)
        for (dword, channel), value in np.ndenumerate(found):
            assert value == (wanted[places[dword, channel]] if (dword, channel) in places else 0xEEEEEEEE)
        split = gen != 8 and turn % 2  # header and data of a split send
        urb.send("urb_simd8_write", handles, *more, *([] if split else [sent]), split=sent if split else None, mask=mask, **fields)
        for channel in range(8):
            for dword in range(count):
                if (dword, channel) in places:
                    wanted[places[dword, channel]] = sent[dword * 8 + channel]
        assert (urb.dwords == wanted).all() and not urb.escaped


def test_simd8_messages_have_at_most_eight_registers_of_data() -> None:
    with pytest.raises(DecodeError, match="1 to 8 registers of data, not 9"):
        Bench(9.0).send("urb_simd8_write", np.zeros(8), data(9))
    with pytest.raises(DecodeError, match="1 to 8 registers of data, not 0"):  # nor is it the end of a thread
        Bench(9.0).send("urb_simd8_write", np.zeros(8))
    with pytest.raises(DecodeError, match="1 to 8 registers of response, not 0"):
        Bench(9.0).send("urb_simd8_read", np.zeros(8))


# -- bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gen", "name"), [(4.5, "urb_write"), (7.0, "urb_write_hword"), (9.0, "urb_write_oword")])
def test_writes_outside_are_dropped_with_one_remark(gen: float, name: str) -> None:
    urb = Bench(gen)
    before = urb.dwords.copy()
    swizzle = {"swizzle_control": "interleave"}
    for handle in (ROWS, (1 << 27) - 1, 0xFFFFFFFF):
        urb.send(name, header(d0=handle, d1=4, d5=0xFF00), data(1), **swizzle)
    assert urb.row(4)[:4].tolist() == data(1)[4:].tolist(), "the other slot is written"
    urb.row(4)[:4] = before[64:68]
    assert (urb.dwords == before).all()
    assert urb.escaped == 3 and len(urb.remarks) == 1 and "out of bounds: URB access at offset 0x800, 16 bytes" in urb.remarks[0]
    assert urb.bound is not None
    urb.bound.renew()
    urb.send(name, header(d0=ROWS, d5=0xFF00), data(1), **swizzle)
    assert len(urb.remarks) == 2, "another dispatch is remarked upon again"


def test_reads_outside_give_zero() -> None:
    urb = Bench(9.0)
    handles = np.array([1, 2, ROWS, 3, 4, 5, 6, 0x7FFFFFF])
    found = urb.send("urb_simd8_read", handles, answer=1)
    assert found.tolist() == [int(urb.row(handle)[0]) if handle < ROWS else 0 for handle in handles]
    assert urb.escaped == 1
    urb.send("urb_simd8_read", handles, mask=0x7B, answer=1)
    assert urb.escaped == 1, "lanes that are off do not count"


def test_upper_bits_of_a_handle_dword_are_ignored() -> None:
    """A geometry shader's instance ID is there."""
    urb = Bench(7.0)
    urb.send("urb_write_oword", header(d0=0xF8000003, d5=0xFF00), data(1))
    assert urb.row(3)[:4].tolist() == data(1)[:4].tolist()


def test_a_thread_without_a_urb_is_refused() -> None:
    bound = DispatchBindings(generation(9.0), AddressSpace("bench", 48), {})
    sfid = next(number for number, known in descriptors.shared_functions(9.0).items() if known == "urb")
    descriptor = descriptors.encode("urb_simd8_read", 9.0, message_length=1, response_length=1)
    sent = Sent(sfid, descriptor, np.zeros(32, np.uint8), np.zeros(0, np.uint8), np.zeros(32, np.uint8), 0xFF, Sender(8))
    with pytest.raises(Unsupported, match="dispatch has no URB"):
        handlers([UNIT], GroupBindings(bound))[sfid](None, sent)


def test_records_come_with_pools() -> None:
    with pytest.raises(ValueError, match="entry record for each row"):
        UrbMemory(np.zeros(128, np.uint8), np.zeros(1, ENTRY), np.zeros(1, POOL))
