"""Register values as text, and the types that bytes of registers have."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.errors import DecodeError
from softgen.eu.interpreter import Interpreter, KernelProgram
from softgen.eu.thread.state import ThreadState
from softgen.inspect import registers
from softgen.inspect.registers import Kinds, Register, RegisterLanes, Setting


@pytest.fixture
def thread() -> ThreadState:
    return ThreadState(9.0)


@pytest.mark.parametrize("name, number, found", [
    ("r", "5", Register("r5", "grf", 160, 32)), ("g", "127", Register("r127", "grf", 4064, 32)), ("f", "1", Register("f1", "f", 4, 4)),
    ("f", "", Register("f0", "f", 0, 4)), ("acc", "", Register("acc0", "acc", 0, 32)), ("acc", "1", Register("acc1", "acc", 32, 32)),
    ("a", "0", Register("a0", "a", 0, 32)), ("cr", "", Register("cr0", "cr", 0, 12)),
])  # fmt: skip
def test_registers_by_name_and_number(thread: ThreadState, name: str, number: str, found: Register) -> None:
    assert registers.find(name, number, 9.0, thread) == found


@pytest.mark.parametrize("name, number", [("r", "128"), ("r", ""), ("m", "0"), ("f", "2"), ("acc", "2"), ("ip", ""), ("null", ""),
                                          ("x", "1")])  # fmt: skip
def test_registers_that_cannot_be_set(thread: ThreadState, name: str, number: str) -> None:
    expected = "expected r0 to r127, or a number after one of a acc"
    with pytest.raises(DecodeError, match=f"gen 9 has no register {name}{number} to set; {expected}"):
        registers.find(name, number, 9.0, thread)


def test_message_registers_where_there_are_any() -> None:
    thread = ThreadState(4.5)
    assert registers.find("m", "3", 4.5, thread) == Register("m3", "mrf", 96, 32)
    with pytest.raises(DecodeError, match="expected r0 to r127, m0 to m15, or a number after one of"):
        registers.find("m", "16", 4.5, thread)


@pytest.mark.parametrize("text, found", [
    ("r2:f=1.5,2.5", Setting("grf", 64, "f", bytes.fromhex("0000c03f00002040"))), ("r2.3:uw=0x1234", Setting("grf", 70, "uw", b"\x34\x12")),
    ("r2=7", Setting("grf", 64, "ud", b"\7\0\0\0")), ("a0=7", Setting("a", 0, "uw", b"\7\0")), ("a0.2=7", Setting("a", 4, "uw", b"\7\0")),
    ("f0=7", Setting("f", 0, "ud", b"\7\0\0\0")), ("f1.1=7", Setting("f", 6, "uw", b"\7\0")), ("f.1=7", Setting("f", 2, "uw", b"\7\0")),
    ("r2:b=-1*3, 0b11", Setting("grf", 64, "b", b"\xff\xff\xff\3")), ("r2:f=0x3f800000", Setting("grf", 64, "f", b"\0\0\x80\x3f")),
    ("r2:hf=inf", Setting("grf", 64, "hf", b"\0\x7c")), ("r2:q=-2", Setting("grf", 64, "q", b"\xfe" + b"\xff" * 7)),
    ("r2:d=0", Setting("grf", 64, "d", bytes(4))), ("r2:b=-128,127", Setting("grf", 64, "b", b"\x80\x7f")),
    ("r2:uw=65535,+1", Setting("grf", 64, "uw", b"\xff\xff\1\0")), ("r2:w=-0x1", Setting("grf", 64, "w", b"\xff\xff")),
    ("r127.7=1", Setting("grf", 4092, "ud", b"\1\0\0\0")),
])  # fmt: skip
def test_settings(thread: ThreadState, text: str, found: Setting) -> None:
    assert registers.setting(text, 9.0, thread) == found


@pytest.mark.parametrize("text, why", [
    ("r2", "expected REGISTER"), ("r2.8=1", "r2 has 8 elements of type ud; expected a number below that, not 8"),
    ("r2:zz=1", "gen 9 has no type 'zz'; expected one of"), ("r2:b=128", "128 is outside type b; expected -128 to 127"),
    ("r2:b=-129", "-129 is outside type b"), ("r2=1.5", "expected an integer for type ud, not '1.5'; floats need a type, such as :f"),
    ("r2:f=one", "expected a float for type f, or its bits as 0x…, not 'one'"), ("r2:f=0x100000000", "expected a float for type f"),
    ("r2=1*0", "expected a number of lanes after the '*', not '0'"), ("r2=1*4097", "expected a number of lanes after the '*', not '4097'"),
    ("r127.7=1,2", "2 values of type ud are too many; expected 1 or fewer"),
])  # fmt: skip
def test_settings_that_cannot_be(thread: ThreadState, text: str, why: str) -> None:
    with pytest.raises(DecodeError) as error:
        registers.setting(text, 9.0, thread)
    assert why in str(error.value)


@pytest.mark.parametrize("text, place, start, held", [
    ("r2.1:uw=0x1234,5", "grf", 66, b"\x34\x12\5\0"), ("f1.1=7", "f", 6, b"\7\0"), ("a0.3=9", "a", 6, b"\x09\0"),
    ("acc0.1:f=1.5", "acc", 4, b"\0\0\xc0\x3f")])  # fmt: skip
def test_a_setting_writes_its_bytes_and_no_others(thread: ThreadState, text: str, place: str, start: int, held: bytes) -> None:
    before = registers.snapshot(thread)
    registers.apply(registers.setting(text, 9.0, thread), Interpreter(thread, KernelProgram(9.0, b"")).state)
    after = registers.snapshot(thread)
    assert bytes(after[place][start : start + len(held)]) == held
    changed = registers.changed_bytes(before, after)
    assert set(changed) == {place} and set(changed[place]) <= set(range(start, start + len(held)))


@pytest.mark.parametrize("text, sums", [("acc0:d=-5,7", [-5, 7]), ("acc0.2:ud=0xffffffff", [0, 0, 0xFFFFFFFF])])
def test_an_accumulator_is_set_with_all_the_bits_of_its_integers(thread: ThreadState, text: str, sums: list[int]) -> None:
    """Accumulators are wider than 32 bits."""
    registers.apply(registers.setting(text, 9.0, thread), Interpreter(thread, KernelProgram(9.0, b"")).state)
    assert thread.arf["acc_d"].view(np.int64)[: len(sums)].tolist() == sums


def lanes(kinds: Kinds, data: bytes, number: int = 2) -> list[tuple[str, tuple[float, ...]]]:
    now = {"grf": bytes(32 * number) + data.ljust(4096 - 32 * number, b"\0")}
    return [(found.name, found.after) for found in kinds.lanes(Register(f"r{number}", "grf", 32 * number, 32), {"grf": bytes(4096)}, now)]


def test_elements_have_the_type_they_were_last_written_with(thread: ThreadState) -> None:
    """An element that is partly overwritten loses its type; what has none is read as its register was last written."""
    kinds, data = Kinds(thread), bytes(range(1, 33))
    dwords = tuple(int.from_bytes(data[at : at + 4], "little") for at in range(0, 32, 4))
    assert lanes(kinds, data) == [("r2:ud", dwords)], "nothing was written yet"
    kinds.write("grf", 64 + 5, "uw")  # a byte inside the element from 4 to 5
    assert kinds.held["grf"][64:72] == ["", "", "", "", "uw", "uw", "", ""]
    words = tuple(int.from_bytes(data[at : at + 2], "little") for at in range(0, 32, 2))
    assert lanes(kinds, data) == [("r2:uw", words)]
    kinds.write("grf", 64 + 4, "d")
    assert kinds.held["grf"][64:72] == ["", "", "", "", "d", "d", "d", "d"] and lanes(kinds, data) == [("r2:d", dwords)]
    kinds.write("grf", 64 + 6, "ub")
    assert kinds.held["grf"][64:72] == ["", "", "", "", "", "", "ub", ""]
    assert lanes(kinds, data, 3) == [("r3:ud", dwords)], "another register is not concerned"


def test_a_register_of_several_types_is_shown_in_runs(thread: ThreadState) -> None:
    kinds, data = Kinds(thread), bytes(range(1, 33))
    for at in (0, 4):
        kinds.write("grf", 64 + at, "d")
    kinds.write("grf", 64 + 8, "uq")
    for at in range(16, 32, 2):
        kinds.write("grf", 64 + at, "w")
    shown = lanes(kinds, data)
    assert [(name, len(values)) for name, values in shown] == [("r2.0:d", 2), ("r2.1:uq", 1), ("r2.8:w", 8)]
    assert shown[1][1] == (int.from_bytes(data[8:16], "little"),) and shown[2][1][0] == 0x1211


@pytest.mark.parametrize("lanes, name", [
    (RegisterLanes("r5", 0, "d", (0,), (1,), True), "r5:d"), (RegisterLanes("r5", 3, "d", (0,), (1,), False), "r5.3:d"),
    (RegisterLanes("f0", 1, "uw", (0,), (1,), False), "f0.1"), (RegisterLanes("fc3", 0, "ud", (0,), (1,), True), "fc3:ud"),
])  # fmt: skip
def test_names_of_lanes(lanes: RegisterLanes, name: str) -> None:
    assert lanes.name == name


def test_flags_change_by_words_and_others_by_registers(thread: ThreadState) -> None:
    kinds, before = Kinds(thread), registers.snapshot(thread)
    thread.arf["f"][3], thread.arf["f"][4], thread.grf[65], thread.grf[160] = 1, 2, 3, 4
    after = registers.snapshot(thread)
    assert registers.changed_bytes(before, after) == {"grf": [65, 160], "f": [3, 4]}
    assert [(found.name, found.before[:1], found.after[:1]) for found in registers.changes(before, after, kinds)] == [
        ("r2:ud", (0,), (0x300,)), ("r5:ud", (0,), (4,)), ("f0.1", (0,), (0x100,)), ("f1.0", (0,), (2,))]  # fmt: skip
    assert registers.changes(after, after, kinds) == []
