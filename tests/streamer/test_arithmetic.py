"""The streamer's ALU, predicates and atomics."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softgen.bits.catalogue import enumeration
from softgen.errors import DecodeError, Unsupported
from softgen.streamer.arithmetic import KNOWN
from tests.streamer.bench import DATA, GPR, Bench

ONES = (1 << 64) - 1
QWORDS = st.integers(0, ONES) | st.sampled_from([0, 1, ONES, 1 << 63, (1 << 63) - 1])
OPCODES = {name: number for number, name in enumeration("MI_Math_Opcode", 9).items()}
OPERANDS = {name: number for number, name in enumeration("MI_Math_Operand", 9).items()}


def alu(*text: str) -> list[int]:
    """MI_MATH of instructions such as 'load srca reg0'."""
    found = []
    for line in text:
        opcode, first, second = (*line.split(), "reg0", "reg0")[:3]
        found.append(OPCODES[opcode] << 20 | OPERANDS[first] << 10 | OPERANDS[second])
    return [0x1A << 23 | len(found) - 1, *found]


def computed(operation: str, a: int, b: int, gpu: str = "kbl") -> tuple[int, int, int]:
    """Result, zero and carry flag of one operation."""
    bench = Bench(gpu)
    bench.run(
        bench.load64(GPR, a, b), alu("load srca reg0", "load srcb reg1", operation, "store reg2 accu", "store reg3 zf", "store reg4 cf")
    )
    return bench.qword(GPR + 16), bench.qword(GPR + 24), bench.qword(GPR + 32)


@given(QWORDS, QWORDS)
def test_what_the_alu_computes(a: int, b: int) -> None:
    """64 bits; the zero flag is of the result, the carry flag is a carry or a borrow; flags read as all ones."""
    assert computed("add", a, b) == ((a + b) & ONES, 0 if (a + b) & ONES else ONES, ONES if a + b > ONES else 0)
    assert computed("sub", a, b) == ((a - b) & ONES, ONES if a == b else 0, ONES if a < b else 0)
    for name, value in (("and", a & b), ("or", a | b), ("xor", a ^ b)):
        assert computed(name, a, b) == (value, 0 if value else ONES, 0)


@pytest.mark.parametrize("gpu", ["hsw", "bdw", "skl", "icl"])
def test_loads_and_stores_of_the_alu(gpu: str) -> None:
    bench = Bench(gpu)
    bench.run(
        bench.load64(GPR, 0x1234_5678_9ABC_DEF0),
        alu("loadinv srca reg0", "load0 srcb", "or", "store reg1 accu", "storeinv reg2 accu"),
        alu("load1 srca", "load0 srcb", "add", "store reg3 accu", "noop", "store reg15 accu"),
    )
    assert bench.qword(GPR + 8) == 0x1234_5678_9ABC_DEF0 ^ ONES and bench.qword(GPR + 16) == 0x1234_5678_9ABC_DEF0
    assert bench.qword(GPR + 24) == bench.qword(GPR + 15 * 8) == ONES


def test_an_engine_computes_with_its_own_registers() -> None:
    bench = Bench("icl")
    bench.run(bench.load64(0x22600, 5), alu("load srca reg0", "load srcb reg0", "add", "store reg1 accu"), engine="blitter")
    assert bench.qword(0x22608) == 10 and bench.qword(GPR + 8) == 0


@pytest.mark.parametrize(
    "dword, why",
    [
        (0x7FF << 20, "value 2047"),
        (OPCODES["load"] << 20 | OPERANDS["accu"] << 10, "load accu, reg0"),
        (OPCODES["store"] << 20 | OPERANDS["reg0"] << 10 | OPERANDS["reg1"], "store reg0, reg1"),
    ],
)
def test_what_is_no_instruction_of_the_alu_is_refused(dword: int, why: str) -> None:
    with pytest.raises(DecodeError, match=f"MI_MATH at 0x10000 .*instruction 0, {dword:#010x}, is none of the ALU's: {why}"):
        Bench().run([0x1A << 23, dword])


# -- predicates ----------------------------------------------------------------------------------------------------

SRC0, SRC1, PREDICATE_DATA, RESULT, RESULT_1, RESULT_2 = 0x2400, 0x2408, 0x2410, 0x2418, 0x241C, 0x23BC


@pytest.mark.parametrize("gpu", ["ivb", "bdw", "icl"])
@pytest.mark.parametrize(
    "compare, sources, holds",
    [
        (0, (1, 2, 3), True),
        (1, (1, 1, 0), False),
        (2, (1 << 40, 1 << 40, 9), True),
        (2, (1, 2, 0), False),
        (3, (7, 2, 5), True),
        (3, (2, 7, ONES - 4), True),
        (3, (7, 2, 4), False),
    ],
)
def test_what_mi_predicate_compares(gpu: str, compare: int, sources: tuple[int, int, int], holds: bool) -> None:
    bench = Bench(gpu)
    for load in (2, 3):  # load, loadinv
        bench.run(bench.load64(SRC0, *sources), bench.pack("MI_PREDICATE", load_operation=load, compare_operation=compare))
        assert bench.gpu.read_register(RESULT) == holds ^ (load == 3)


@pytest.mark.parametrize("combine, results", [(0, (0, 0, 1, 1)), (1, (0, 0, 0, 1)), (2, (0, 1, 1, 1)), (3, (0, 1, 1, 0))])
def test_how_mi_predicate_combines_with_what_was_decided_before(combine: int, results: tuple[int, ...]) -> None:
    found = []
    for compared in (0, 1):
        for before in (0, 1):
            bench = Bench()
            bench.run(
                bench.load({RESULT: before}),
                bench.pack("MI_PREDICATE", load_operation=2, combine_operation=combine, compare_operation=1 - compared),
            )
            found.append(bench.gpu.read_register(RESULT))
    assert tuple(found) == results


def test_mi_predicate_may_keep_what_was_decided() -> None:
    bench = Bench()
    bench.run(bench.load({RESULT: 1}), bench.pack("MI_PREDICATE", load_operation=0, compare_operation=1))
    assert bench.gpu.read_register(RESULT) == 1


@pytest.mark.parametrize("gpu", ["hsw", "bdw", "icl"])
def test_a_predicated_store_of_a_register(gpu: str) -> None:
    bench = Bench(gpu)
    store = bench.pack("MI_STORE_REGISTER_MEM", predicate_enable=1, register_address=GPR, memory_address=DATA)
    bench.run(bench.load({GPR: 5, RESULT: 0}), store)
    assert bench.data(1) == [0]
    bench.run(bench.load({RESULT: 1}), store)
    assert bench.data(1) == [5]


@pytest.mark.parametrize(
    "gpu, enable, result, result_2, skips",
    [
        ("skl", 0, 0, 0, False),
        ("skl", 15, 1, 1, True),
        ("skl", 1, 0, 0, True),
        ("skl", 1, 0, 1, False),
        ("skl", 2, 0, 1, True),
        ("skl", 3, 0, 0, True),
        ("skl", 3, 1, 0, False),
        ("icl", 4, 1, 0, True),
        ("icl", 4, 0, 0, False),
        ("hsw", 1, 0, 0, True),
        ("skl", 5, 0, 0, False),
        ("skl", 6, 0, 0, True),
        ("skl", 7, 0, 0, True),
    ],
)
def test_set_predicate_turns_commands_into_noops(gpu: str, enable: int, result: int, result_2: int, skips: bool) -> None:
    """Until it is set again; batches are called and end as ever."""
    bench = Bench(gpu)
    second = RESULT_2 if gpu != "hsw" else 0x2214
    bench.put(0x11000, bench.store(8, 3), bench.pack("MI_BATCH_BUFFER_END"))
    bench.run(
        bench.load({RESULT: result, second: result_2}),
        bench.pack("MI_SET_PREDICATE", predicate_enable=enable),
        bench.store(0, 1),
        bench.start(0x11000, second_level_batch_buffer=1),
        bench.pack("MI_SET_PREDICATE", predicate_enable=0),
        bench.store(4, 2),
    )
    assert bench.data(3) == [0 if skips else 1, 2, 0 if skips else 3]


@pytest.mark.behaviour("KBL-CTX-09", shows="action")
@pytest.mark.parametrize(("state", "kept", "slices"), [
    (0x00048088, 0x00048088, 1), (0x00050088, 0x00050088, 2), (0x00010088, 0x00010088, 3), (0x00070088, 0x00070088, 3),
    (0x00050079, 0x00050068, 2), (0x00058033, 0x00058022, 3),
])  # fmt: skip
def test_a_context_asks_for_slices_and_eus(state: int, kept: int, slices: int) -> None:
    """As many slices as the device has at most, and only where the request is enabled; odd numbers of EUs become even (KBL 17917-17996)."""
    bench = Bench("kbl")
    bench.gpu.interface = replace(bench.gpu.interface, slices=3)
    commands = (bench.pack("MI_SET_PREDICATE", predicate_enable=4 + count) + bench.store(4 * count - 4, 1) for count in (1, 2, 3))
    bench.run(bench.load({0x20C8: state}), *commands, bench.pack("MI_SET_PREDICATE"),
              bench.pack("MI_STORE_REGISTER_MEM", register_address=0x20C8, memory_address=DATA + 12))  # fmt: skip
    assert bench.data(4) == [*(int(slices == count) for count in (1, 2, 3)), kept]


@pytest.mark.parametrize("slices", [1, 2, 3])
def test_commands_may_be_for_devices_with_one_two_or_three_slices(slices: int) -> None:
    bench = Bench("skl")
    bench.gpu.interface = replace(bench.gpu.interface, slices=slices)
    bench.run(*(command for enable in (5, 6, 7) for command in (
        bench.pack("MI_SET_PREDICATE", predicate_enable=enable), bench.store(4 * (enable - 5), 1))))  # fmt: skip
    assert bench.data(3) == [int(slices == count) for count in (1, 2, 3)]


# -- atomics -------------------------------------------------------------------------------------------------------

ATOMICS = {name: number for number, name in enumeration("Atomic_OPCODE", 9).items()}


def signed(value: int, bits: int) -> int:
    return value - (value >> bits - 1 << bits)


def expected(name: str, old: int, a: int, b: int, bits: int) -> int:
    """What memory holds afterwards, said once more."""
    new = {
        "and": old & a,
        "or": old | a,
        "xor": old ^ a,
        "move": a,
        "inc": old + 1,
        "dec": old - 1,
        "predec": old - 1,
        "add": old + a,
        "sub": old - a,
        "rsub": a - old,
        "umax": max(old, a),
        "umin": min(old, a),
        "cmp_wr": b if old == a else old,
        "imax": old if signed(old, bits) > signed(a, bits) else a,
        "imin": old if signed(old, bits) < signed(a, bits) else a,
    }[name]
    return new & (1 << bits) - 1


@pytest.mark.parametrize("gen", [8.0, 9.0, 11.0])
def test_atomic_operations_are_those_of_the_manual(gen: float) -> None:
    """Of four and eight bytes; of sixteen there is only the comparison."""
    assert set(KNOWN) == set(enumeration("Atomic_OPCODE", gen).values())


@pytest.mark.covering(2)
@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
@pytest.mark.parametrize("inline", [0, 1])
@pytest.mark.parametrize("opcode", ATOMICS)
def test_every_atomic_operation(gpu: str, inline: int, opcode: str) -> None:
    """Memory changes as the operation says; what it held is returned on request: only a pre-decrement returns the new value."""
    size = 16 if opcode.endswith("16b") else 8 if opcode.endswith("8b") else 4
    name, bits = opcode.removesuffix("16b").removesuffix("8b"), 8 * size
    ones = (1 << bits) - 1
    for old, a in ((0xF0F0, 0x0FF0), (ones, 1), (0, ones), (1 << bits - 1, 5), (77, 77), (ones - 2, ones - 2), (ones - 2, ones - 9)):
        bench, b = Bench(gpu), 0x99AABBCCDDEEFF001122334455667788 & ones
        bench.space.write(DATA, old.to_bytes(16, "little"))
        dwords = [value >> 32 * i & 0xFFFFFFFF for i in range(size // 4) for value in (a, b)]
        wanted = {"atomic_opcode": ATOMICS[opcode], "data_size": {4: 0, 8: 1, 16: 2}[size], "memory_address": DATA}
        whole = bench.pack("MI_ATOMIC", inline_data=inline, return_data_control=1, **wanted)
        atomic = [whole[0] & ~0xFF | 1 + inline * len(dwords), *whole[1:3], *(dwords if inline else [])]
        operands = bench.load64(GPR, *(value >> shift & ONES for value in (a, b) for shift in (0, 64)))
        bench.run(*([] if inline else [operands]), bench.load64(GPR + 32, ONES, ONES), atomic)
        after = expected(name, old, a, b, bits)
        assert int.from_bytes(bench.space.read(DATA, 16), "little") == after
        returned = bench.qword(GPR + 32) | bench.qword(GPR + 40) << 64
        assert returned & ones == (after if name == "predec" else old) and returned >> bits == (1 << 128 - bits) - 1


def test_an_atomic_takes_as_much_of_a_register_as_its_size() -> None:
    """A dword operation leaves the upper halves of its operands alone: 3 is less than 5, whatever is above it."""
    bench = Bench()
    bench.put(DATA, [5, 6])
    whole = bench.pack("MI_ATOMIC", atomic_opcode=ATOMICS["umax"], memory_address=DATA)
    bench.run(bench.load64(GPR, 1 << 32 | 3), [whole[0] & ~0xFF | 1, *whole[1:3]])
    assert bench.data(2) == [5, 6]


@pytest.mark.parametrize("opcode, size, held", [("umax", 4, 5), ("umax8b", 8, 5 << 32)])
def test_an_atomic_takes_as_many_dwords_of_its_command_as_its_size(opcode: str, size: int, held: int) -> None:
    """A command may have all its dwords, whatever the size."""
    bench = Bench()
    bench.put(DATA, [held & 0xFFFFFFFF, held >> 32])
    more = {f"operand{number}_data_dword_{dword}": 0xFFFFFFFF for number in (1, 2) for dword in range(size // 4, 4)}
    wanted = {"atomic_opcode": ATOMICS[opcode], "data_size": size // 8, "memory_address": DATA, "inline_data": 1}
    bench.run(bench.pack("MI_ATOMIC", **wanted, operand1_data_dword_0=3, **more))
    assert bench.data(2) == [held & 0xFFFFFFFF, held >> 32]


def test_an_atomic_that_returns_nothing_leaves_registers_alone() -> None:
    bench = Bench()
    whole = bench.pack("MI_ATOMIC", atomic_opcode=ATOMICS["inc"], memory_address=DATA)
    bench.run(bench.load({GPR + 32: 9}), [whole[0] & ~0xFF | 1, *whole[1:3]])
    assert bench.data(1) == [1] and bench.gpu.read_register(GPR + 32) == 9


def test_an_atomic_of_the_wrong_size_or_length_is_refused() -> None:
    bench = Bench()
    whole = bench.pack("MI_ATOMIC", atomic_opcode=ATOMICS["add8b"], data_size=0, memory_address=DATA)
    with pytest.raises(Unsupported, match="atomic_opcode add8b with data_size dword"):
        bench.run([whole[0] & ~0xFF | 1, *whole[1:3]])
    for opcode, data_size in ((0xFF, 0), (0xFF, 3), (ATOMICS["add"], 3)):  # what no table has
        whole = bench.pack("MI_ATOMIC", atomic_opcode=opcode, data_size=data_size, memory_address=DATA)
        with pytest.raises(Unsupported, match="is not known"):
            bench.run([whole[0] & ~0xFF | 1, *whole[1:3]])
    whole = bench.pack("MI_ATOMIC", atomic_opcode=ATOMICS["add8b"], data_size=1, memory_address=DATA, inline_data=1)
    with pytest.raises(DecodeError, match="has 5 dwords, too few for two operands of 8 bytes"):
        bench.run([whole[0] & ~0xFF | 3, *whole[1:3], 1, 2])
