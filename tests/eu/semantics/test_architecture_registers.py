"""Architecture registers of Ivy Bridge: what each keeps of a write, and what reading or the end of another thread changes."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.bits.layout import GENERATIONS
from softgen.eu.interpreter import RunOutcome
from softgen.eu.isa.instruction import Operand
from softgen.eu.thread.state import ThreadState
from tests.eu.semantics.build import NULL, arf, dst, end, engine, imm, instr, reg, run, scalar, thread  # noqa: F401

A0, ACC0, F0, SR0, CR0, TDR, TM = 0x10, 0x20, 0x30, 0x70, 0x80, 0xB0, 0xC0
WORDS = np.array([0x1234, 0xFEDC, 0xABCD, 0x89AB, 0x0FFF, 0x1000, 0xFFFF, 0x7654] * 2, np.uint16)


def to(code: int, kind: str = "ud", sub: int = 0) -> Operand:
    return Operand("arf", kind, code, sub, horizontal=1)


def words(made: ThreadState, number: int, count: int = 8) -> list[int]:
    return [int(word) for word in made.register(number).view(np.uint16)[:count]]


# -- a0 --------------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-147", shows="action")
@pytest.mark.parametrize(("kind", "region"), [("uw", "8;8,1"), ("w", "8;8,1"), ("ud", "4;4,1"), ("d", "4;4,1"), ("f", "4;4,1")])
def test_addresses_from_the_third_on_have_twelve_bits(kind: str, region: str) -> None:
    """IVB 1916-1921: written as words or dwords, and read again; a0.0 and a0.1 keep all sixteen."""
    made = thread(7, r4=WORDS)
    count = int(region.split(";")[0])
    run(made, instr(7, "mov", to(A0, kind), reg(4, kind, region), size=count),
        instr(7, "mov", dst(6, "uw"), arf(A0, "uw")))  # fmt: skip
    expected = [0x1234, 0xFEDC, 0xBCD, 0x9AB, 0xFFF, 0, 0xFFF, 0x654]
    assert words(made, 6) == expected == made.arf["a"].view(np.uint16).tolist()


@pytest.mark.behaviour("EU-147", shows="action")
@pytest.mark.parametrize(("sub", "expected"), [(0, 0xF5C3), (2, 0xF5C3), (4, 0x05C3), (14, 0x05C3)])
@pytest.mark.parametrize("kind", ["uw", "ub"])
def test_one_address_is_cut_where_it_stands(sub: int, expected: int, kind: str) -> None:
    made = thread(7, 1, r4=np.full(8, 0xF5C3, np.uint16))
    if kind == "uw":
        run(made, instr(7, "add", to(A0, "uw", sub), scalar(4, "uw"), imm(0, "uw"), size=1))
    else:
        run(made, *(instr(7, "mov", to(A0, "ub", sub + byte), scalar(4, "ub", byte), size=1) for byte in (0, 1)))
    assert made.arf["a"].view(np.uint16)[sub // 2] == expected


@pytest.mark.behaviour("EU-145", "EU-147", shows="action")
def test_an_index_register_is_an_unsigned_word_of_twelve_bits() -> None:
    """IVB 1775-1777: a0.3 as an index is the word at byte 6, whatever the types of the instruction; 0xF084 leads to r4.4."""
    made = thread(7, r4=np.arange(100, 108, dtype=np.int32), r5=np.full(16, 0xF084, np.uint16))
    source = Operand("grf", "d", indirect=True, address_sub=3, vertical=4, width=4, horizontal=1)
    run(made, instr(7, "mov", to(A0, "uw", 6), scalar(5, "uw"), size=1), instr(7, "mov", dst(8, "d"), source, size=4))
    assert made.register(8)[:4].tolist() == [101, 102, 103, 104]


@pytest.mark.parametrize("gen", [gen for gen in GENERATIONS if gen != 7])
def test_other_generations_keep_whole_addresses(gen: float) -> None:
    made = thread(gen, r4=WORDS)
    run(made, instr(gen, "mov", to(A0, "uw"), reg(4, "uw")), instr(gen, "mov", dst(6, "uw"), arf(A0, "uw")))
    assert words(made, 6) == WORDS[:8].tolist()


@pytest.mark.behaviour("EU-146", shows="action")
@pytest.mark.parametrize(("kind", "dtype", "size"), [("d", np.int32, 4), ("ud", np.uint32, 4), ("f", np.float32, 4), ("w", np.int16, 8),
                                                     ("uw", np.uint16, 8), ("ub", np.uint8, 16), ("b", np.int8, 16)])  # fmt: skip
def test_any_type_reads_and_writes_the_address_register(kind: str, dtype: type, size: int) -> None:
    """IVB 1799-1800, 128 bits of every type; words have no upper four bits here."""
    held: np.ndarray = np.frombuffer((WORDS[:8] & 0x0FFF).tobytes(), dtype)
    made = thread(7, 0xFFFF, r4=held)
    region = f"{size};{size},1"
    run(made, instr(7, "mov", to(A0, kind), reg(4, kind, region), size=size),
        instr(7, "mov", dst(6, kind), arf(A0, kind, 0, region), size=size))  # fmt: skip
    assert made.grf[6 * 32 : 6 * 32 + 16].tobytes() == held.tobytes() == made.arf["a"].tobytes()


# -- parts of registers that are not there ---------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-138", "EU-207", shows="action")
@pytest.mark.parametrize(("code", "sub"), [(CR0, 12), (CR0, 16), (F0, 4), (F0 + 1, 4), (A0, 16), (SR0, 16), (TDR, 16)])
def test_writes_to_parts_that_are_not_populated_are_dropped(code: int, sub: int) -> None:
    """IVB 1709-1711, 2273-2274: cr0.3 and its like. Reads, which are unpredictable, find zeros on every engine."""
    made = thread(7, 1, r4=np.full(8, 0x5A5A5A5A, np.uint32), r6=np.full(8, 77, np.uint32))
    before = {name: array.tobytes() for name, array in made.arf.items() if name not in ("ip", "n")}
    if code == F0:  # behind f0 is f1, a register of its own
        before.pop("f")
    run(made, instr(7, "mov", to(code, "ud", sub), scalar(4, "ud"), size=1, thread_control=2))
    assert all(made.arf[name].tobytes() == held for name, held in before.items())
    made = thread(7, 1, r6=np.full(8, 77, np.uint32))
    run(made, instr(7, "mov", dst(6, "ud"), arf(code, "ud", sub, "0;1,0"), size=1, thread_control=2))
    assert made.register(6)[:2].tolist() == [0, 77]


# -- threads that this one depends on --------------------------------------------------------------------------------------

READ_TDR = instr(7, "mov", dst(20, "uw"), arf(TDR, "uw"))


@pytest.mark.behaviour("EU-218", shows="action")
def test_a_dispatch_sets_dependencies_and_the_end_of_their_threads_clears_them() -> None:
    """IVB 2699-2704: three threads; that of number 0x21 ends, and one of another number."""
    made = thread(7)
    made.depend_on([0x21, 0x80, 0xFF])
    made.thread_ended(0x21)
    made.thread_ended(0x22)
    run(made, READ_TDR)
    assert words(made, 20) == [0x0021, 0x8080, 0x80FF, 0, 0, 0, 0, 0]
    made.depend_on([0x22])  # the next thread
    assert made.arf["tdr"].view(np.uint16).tolist() == [0x8022, *[0] * 7]


@pytest.mark.behaviour("EU-218", shows="action")
def test_writes_change_no_number_of_a_thread_that_has_ended() -> None:
    """Nothing is valid here, so compiled code runs."""
    made = thread(7)
    made.arf["tdr"].view(np.uint16)[:2] = 0x21, 0x80
    run(made, instr(7, "mov", to(TDR, "uw"), imm(0x80FE80FE, "uw")), READ_TDR)
    assert words(made, 20) == [0x21, 0x80, 0, 0, 0, 0, 0, 0]


@pytest.mark.behaviour("EU-218", shows="action")
@pytest.mark.parametrize(("kind", "sub", "size", "cleared"), [("uw", 2, 1, {1}), ("uw", 0, 4, {0, 1, 2, 3}), ("ud", 4, 1, {2, 3}),
                                                          ("uw", 14, 1, {7})])  # fmt: skip
def test_any_write_clears_valid_bits_and_sets_nothing(kind: str, sub: int, size: int, cleared: set[int]) -> None:
    """IVB 2702-2704: FFTIDs are read-only, and no write sets a valid bit."""
    made = thread(7, r4=np.full(8, 0xFFFFFFFF, np.uint32))
    made.depend_on(list(range(0x11, 0x19)))
    run(made, instr(7, "mov", to(TDR, kind, sub), reg(4, kind, f"{size};{size},{int(size > 1)}"), size=size), READ_TDR)
    assert words(made, 20) == [0x11 + n + 0x8000 * (n not in cleared) for n in range(8)]


@pytest.mark.behaviour("EU-218", shows="action")
def test_a_write_whose_channel_is_off_clears_nothing() -> None:
    made = thread(7, 0b0101)
    made.depend_on([0x11, 0x12, 0x13, 0x14])
    run(made, instr(7, "mov", to(TDR, "uw"), imm(0, "uw"), size=4))
    assert made.arf["tdr"].view(np.uint16).tolist() == [0x11, 0x8012, 0x13, 0x8014, 0, 0, 0, 0]


@pytest.mark.behaviour("EU-219", shows="action")
@pytest.mark.parametrize("last", [0, 1])
def test_sendc_waits_until_no_dependency_is_left(last: int) -> None:
    """IVB 2692. Before it the thread runs, and a plain send does not wait."""
    heard = []
    made = ThreadState(7, {7: lambda thread, sent: heard.append(sent.instruction.opcode)})
    made.depend_on([0x31, 0x32])
    plain = instr(7, "send", NULL, reg(9, "ud"), sfid=7, descriptor=1 << 25, no_mask=True)
    program = plain, instr(7, "mov", dst(20, "ud"), imm(5, "ud")), instr(7, "sendc", NULL, reg(9, "ud"), sfid=7, descriptor=1 << 25)
    assert run(made, *program) is RunOutcome.WAITING
    assert heard == ["send"] and made.register(20)[0] == 5 and not made.ended
    made.thread_ended((0x31, 0x32)[last])
    assert run(made, *program) is RunOutcome.WAITING and heard == ["send"]
    made.thread_ended((0x32, 0x31)[last])
    assert run(made, *program) is RunOutcome.ENDED and heard == ["send", "sendc", "send"] and made.ended


# -- time ------------------------------------------------------------------------------------------------------------------


@pytest.mark.behaviour("EU-220", "EU-223", shows="action")
@pytest.mark.parametrize(("ticks", "low", "high"), [(0xFFFFFFFF, 0xFFFFFFFF, 0), (0x1_0000_0000, 0, 1), (0x7_89AB_CDEF, 0x89ABCDEF, 7),
                                                    ((1 << 64) + 5, 5, 0)])  # fmt: skip
def test_the_timestamp_is_a_counter_of_64_bits_in_two_dwords(ticks: int, low: int, high: int) -> None:
    """IVB 2832-2889: the lower half rolls over into the upper one, which rolls over to zero."""
    made = thread(7, 1)
    made.clock = lambda: ticks
    run(made, instr(7, "mov", dst(20, "ud"), arf(TM, "ud", 0, "0;1,0"), size=1),
        instr(7, "mov", dst(21, "ud"), arf(TM, "ud", 4, "0;1,0"), size=1))  # fmt: skip
    assert (made.register(20)[0], made.register(21)[0]) == (low, high)


@pytest.mark.behaviour("EU-220", shows="action")
@pytest.mark.parametrize("read", [0, 4, 8])
def test_the_time_event_is_bit_0_of_the_third_dword_and_any_read_clears_it(read: int) -> None:
    made = thread(7, 0xF)
    made.arf["tm"].view(np.uint32)[2] = 1
    run(made, instr(7, "mov", dst(19, "ud"), arf(TM, "ud", read, "0;1,0"), size=1),
        instr(7, "mov", dst(20, "ud"), arf(TM, "ud", 0, "4;4,1"), size=4))  # fmt: skip
    assert made.register(20)[2] == 0 and (read != 8 or made.register(19)[0] == 1)
