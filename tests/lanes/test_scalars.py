"""Scalars, pointers and basic blocks: functions written once, as bytecode and as compiled code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from softgen.cache import Cache
from softgen.errors import Unsupported
from softgen.lanes.bytecode import program as bytecode_program
from softgen.lanes.bytecode.scalar import ScalarBytecode
from softgen.lanes.code_machine import CodeMachine
from softgen.lanes.compile import jit
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.scalar import Parameter
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import LaneType, bool_, i16, i32, i64, u8, u32, u64

HANDLER = ctypes.CFUNCTYPE(ctypes.c_uint64, *(ctypes.c_uint64 for _ in range(4)))
PARAMETERS = [Parameter("block"), Parameter("op"), Parameter("context"), Parameter("executed", u64)]
WORDS = 32
# Numbers of handlers are not given back, and tests of engines may take them all: these are taken before any test runs.
RESERVED = iter([next(bytecode_program._numbers[False]) for _ in range(64)])
Write = Callable[[Any, Any], None]  # a machine, and the pointer to words that the function reads and writes


def as_bytecode(write: Write) -> tuple[Any, int]:
    m = ScalarBytecode()
    write(m, m.pointer("block"))
    m.give(m.argument(u64, "executed"))
    with patch.dict(bytecode_program._numbers, {False: RESERVED}):
        program = m.finished()
    return program, program.address


def as_compiled_code(write: Write) -> tuple[Any, int]:
    m = LlvmMachine()
    write(m, m.pointer("block"))
    m.give(m.argument(u64, "executed"))
    m.code.frame("f", u64, PARAMETERS)
    code = jit.load(m.ir.module.text(), ("f",), Cache(None))
    return code, code.address("f")


@pytest.fixture(params=[as_bytecode, as_compiled_code])
def run(request: pytest.FixtureRequest) -> Callable[..., list[int]]:
    made: dict[Write, tuple[Any, int]] = {}

    def called(write: Write, *words: int) -> list[int]:
        """The words after a call that began with these."""
        if write not in made:
            made[write] = request.param(write)
        _kept, address = made[write]
        block, context = np.zeros(WORDS, np.uint64), np.zeros(64, np.uint64)
        block[: len(words)] = [word % (1 << 64) for word in words]
        assert HANDLER(address)(block.ctypes.data, 0, context.ctypes.data, 7) == 7
        return [int(word) for word in block]

    return called


def word(block: Any, number: int, type: LaneType = u64) -> Any:
    return block.at(8 * number).load(type)


@pytest.mark.parametrize("type", [u32, i32, u64], ids=str)
def test_comparisons_go_by_the_sign_of_the_type(run: Callable[..., list[int]], type: LaneType) -> None:
    def write(m: Any, block: Any) -> None:
        a, b = word(block, 0, type), word(block, 1, type)
        for number, found in enumerate((a < b, a <= b, a > b, a >= b, a == b, a != b, a >= 5, a < 6)):
            block.at(8 * (2 + number)).store(m.choose(found, m.number(u64, 1), m.number(u64, 0)))

    for a, b in ((5, 6), (6, 5), (5, 5), (-1, 5), (5, -1)):
        x, y = (number if type.is_signed else number % (1 << type.bits) for number in (a, b))
        assert run(write, a, b)[2:10] == [x < y, x <= y, x > y, x >= y, x == y, x != y, x >= 5, x < 6]


def test_arithmetic_and_pointers(run: Callable[..., list[int]]) -> None:
    def write(m: Any, block: Any) -> None:
        a, b = word(block, 0), word(block, 1)
        results = [a + b, a - b, a * b, a & b, a | b, a << 4, a >> b, ~a, a.min(9), a.rotate_left(b), a.rotate_right(b),
                   a.convert(u32).convert(u64), m.choose(a == b, a, b),
                   *(m.choose(m.number(bool_, bit), a, b) for bit in (0, 1))]  # fmt: skip
        for number, found in enumerate(results):
            block.at(b * 8).at(8 * number).store(found)

    a, b, whole = 0x123456789ABCDEF0, 3, (1 << 64) - 1
    assert run(write, a, b)[b : b + 15] == [
        a + b, a - b, a * b & whole, a & b, a | b, a << 4 & whole, a >> b, a ^ whole, 9, (a << b | a >> 61) & whole,
        (a >> b | a << 61) & whole, a & 0xFFFFFFFF, b, b, a]  # fmt: skip


def in_type(type: LaneType, number: int) -> int:
    """A number cut to a type's bits, with its sign."""
    number %= 1 << type.bits
    return number - (1 << type.bits) if type.is_signed and number > type.highest else number


def rotated(type: LaneType, number: int, count: int) -> int:
    bits, number = type.bits, number % (1 << type.bits)
    return in_type(type, number << count % bits | number >> -count % bits if count % bits else number)


@pytest.mark.parametrize("type", [u8, u32, u64, i16, i32, i64], ids=str)
def test_results_are_cut_to_their_type_and_extended_by_its_sign(run: Callable[..., list[int]], type: LaneType) -> None:
    """Also beside negative numbers of Python; a count of a rotation may be larger than the type has bits."""
    def write(m: Any, block: Any) -> None:
        a, b = word(block, 0, type), word(block, 1, type)
        results = [a + -1, a - -3, a * -5, a & -4, a | b, a + b, a - b, ~b, a >> 3, a << 3, a.rotate_left(b), a.rotate_right(b)]
        for number, found in enumerate(results):
            block.at(8 * (2 + number)).store(found.convert(u64))
        for number, found in enumerate((a == -1, a != -1, a.convert(bool_), ~(a == b), a > 3, a <= 3)):
            block.at(8 * (14 + number)).store(m.choose(found, m.number(u64, 1), m.number(u64, 0)))

    for a, b in ((5, 100), (-7, 1), (1 << type.bits - 1, -1), (-1, 0), (1 << type.bits - 2, 3), (3, 3)):
        x, y, all_ones = in_type(type, a), in_type(type, b), in_type(type, -1)
        found = run(write, a, b)
        results = [x - 1, x + 3, x * -5, x & -4, x | y, x + y, x - y, ~y, x >> 3, x << 3, rotated(type, x, y), rotated(type, x, -y)]
        assert found[2:14] == [in_type(type, number) % (1 << 64) for number in results]
        assert found[14:20] == [x == all_ones, x != all_ones, x & 1, x != y, x > 3, x <= 3]


@pytest.mark.parametrize("limit", [0, 1, 9, 0xFFFFFFFF])
def test_the_smaller_of_two_unsigned_numbers(run: Callable[..., list[int]], limit: int) -> None:
    def write(m: Any, block: Any) -> None:
        block.at(8).store(word(block, 0, u32).min(limit).convert(u64))

    for number in (0, 1, 8, 9, 10, 0x80000000, 0xFFFFFFFF):
        assert run(write, number)[1] == min(number, limit)


def test_fields_of_records_are_where_their_layout_says(run: Callable[..., list[int]]) -> None:
    layout = RecordLayout.packed(first=u32, second=u64, third=u8)

    def write(m: Any, block: Any) -> None:
        for name in ("third", "second", "first"):
            field = block.at(24).field(layout, name)
            block.at(48).field(layout, name).store(field.load(layout.field(name).type))
        block.at(80).at(-8).store(block.at(32).load_lanes(u32, 2, align=8), align=8)
        block.at(80).store(m.load_block(u8, 4, block.at(24).memory(), 1), align=4)

    found = run(write, 0, 0, 0, 0x1122334455667788, 0x99AABBCCDDEEFF00, 0x0102030405060708)
    assert found[6:11] == [0x55667788, 0x99AABBCCDDEEFF00, 0x08, 0x99AABBCCDDEEFF00, 0x44556677]


@pytest.mark.parametrize("way", [as_bytecode, as_compiled_code])
def test_a_function_continues_with_the_record_that_it_found(way: Callable[[Write], tuple[Any, int]]) -> None:
    """Its first word is the function to run in place of this one, with what is passed on; its result is the result."""
    seen: list[tuple[int, ...]] = []
    next_one = HANDLER(lambda *given: seen.append(given) or 99)
    record = np.array([0, 0, ctypes.cast(next_one, ctypes.c_void_p).value or 0], np.uint64)
    block, context = np.array([record.ctypes.data, 0], np.uint64), np.zeros(4, np.uint64)

    def write(m: Any, block: Any) -> None:
        further, here = m.labels("further", "here")
        m.branch(word(block, 1) == 0, further, here)
        m.start(further)
        record = block.load_pointer().at(16)
        executed = m.argument(u64, "executed") + 5
        m.tail_call(record.load_pointer(), u64, m.pointer("block"), record, m.pointer("context"), executed)
        m.start(here)

    _kept, address = way(write)
    assert HANDLER(address)(block.ctypes.data, 0, context.ctypes.data, 1 << 40) == 99
    assert seen == [(block.ctypes.data, record.ctypes.data + 16, context.ctypes.data, (1 << 40) + 5)]
    block[1] = 1
    assert HANDLER(address)(block.ctypes.data, 0, context.ctypes.data, 1 << 40) == 1 << 40 and len(seen) == 1


@pytest.mark.parametrize("type, found", [(u32, 0x80000005), (i32, 0xFFFFFFFF80000005), (u8, 5)])
def test_a_result_of_bytecode_is_extended_by_its_sign(type: LaneType, found: int) -> None:
    m, words = ScalarBytecode(), np.array([0x1_8000_0005, 0, 0], np.uint64)
    m.give(word(m.pointer("op"), 0, type))
    with patch.dict(bytecode_program._numbers, {False: RESERVED}):
        program = m.finished()
    assert HANDLER(program.address)(0, words.ctypes.data, words.ctypes.data, 0) == found


@pytest.mark.parametrize("wrong, complaint", [
    (lambda m, block: m.jump("further"), "a branch to further, which is nowhere"),
    (lambda m, block: m.branch(word(block, 0) == 0, "near", "far"), "a branch to far, which is nowhere"),
    (lambda m, block: m.call_native("logarithm", block), "a call of logarithm"),
    (lambda m, block: block.text, "an operand of LLVM"), (lambda m, block: word(block, 0).text, "an operand of LLVM"),
    (lambda m, block: m.affine_inside(m.lane_index(4), m.constant(bool_, 1, 4), 64, 4), "bounds of a surface"),
])  # fmt: skip
def test_what_bytecode_has_no_operation_for_is_compiled(wrong: Callable[[Any, Any], Any], complaint: str) -> None:
    m = ScalarBytecode()
    with pytest.raises(Unsupported, match=f"^bytecode: {complaint}$"):
        wrong(m, m.pointer("block"))
        m.finished()


def test_pointers_are_chosen_as_numbers_are(run: Callable[..., list[int]]) -> None:
    def write(m: Any, block: Any) -> None:
        for number in (0, 1):
            m.choose(word(block, number) == 5, block.at(16), block.at(24)).at(16 * number).store(word(block, number))

    assert run(write, 5, 6)[:8] == [5, 6, 5, 0, 0, 6, 0, 0]


def test_places_on_the_stack_do_not_overlap(run: Callable[..., list[int]]) -> None:
    """Vectors, and rows of them."""
    def write(m: Any, block: Any) -> None:
        first, many, last = m.stack(u64, 4), m.stack(u64, 2, 3, align=8), m.stack(u32, 2)
        first.store(m.convert(m.lane_index(4), u64) + 100)
        for row in range(3):
            many.at(16 * row).store(m.convert(m.lane_index(2), u64) + 10 * row, align=8)
        last.store(m.lane_index(2) + 50)
        block.store(first.load_lanes(u64, 4), align=8)
        block.at(32).store(many.load_lanes(u64, 6, align=8), align=8)
        block.at(80).store(last.load_lanes(u32, 2), align=8)

    found = run(write)
    assert found[:11] == [100, 101, 102, 103, 0, 1, 10, 11, 20, 21, 50 | 51 << 32]


def test_branches(run: Callable[..., list[int]]) -> None:
    def write(m: Any, block: Any) -> None:
        """Twice the same labels, which are other ones each time."""
        for number in range(2):
            small, large, end = m.labels("small", "large", "end")
            m.branch(word(block, number) < 10, small, large, likely=True)
            m.start(small)
            block.at(16 + 8 * number).store(word(block, number) + 1)
            m.jump(end)
            m.start(large)
            block.at(16 + 8 * number).store(word(block, number) - 1)
            m.jump(end)
            m.start(end)

    assert run(write, 5, 50)[2:4] == [6, 49] and run(write, 10, 9)[2:4] == [9, 10]


def test_masks_and_bits(run: Callable[..., list[int]]) -> None:
    def write(m: Any, block: Any) -> None:
        mask = word(block, 0).mask(16) & (m.lane_index(16) >= 4)
        block.at(8).store(m.mask_scalar(mask, u64))
        block.at(16).store(m.choose(m.any_scalar(mask), m.number(u64, 3), m.number(u64, 4)))
        block.at(24).store(m.scalar(word(block, 0).lane() * 2))

    assert run(write, 0x1A00F)[1:4] == [0xA000, 3, 0x3401E] and run(write, 0xF)[1:4] == [0, 4, 0x1E]


def test_lanes_are_picked_from_one_vector_or_two(run: Callable[..., list[int]]) -> None:
    """None: any lane will do."""
    def write(m: Any, block: Any) -> None:
        a, b = (block.at(at).load_lanes(u64, 2, align=8) for at in (0, 16))
        block.at(32).store(m.pick(a, [1, 0, 0]), align=8)
        block.at(64).store(m.pick(a, [0, 3, 1, 2], b), align=8)
        block.at(96).store(m.pick(a, [1, None, 0]), align=8)

    found = run(write, 5, 6, 7, 8)
    assert found[4:7] == [6, 5, 5] and found[8:12] == [5, 8, 6, 7] and (found[12], found[14]) == (6, 5)


@pytest.mark.parametrize("count", [1, 4, 6])
def test_a_function_of_the_host_is_called_with_numbers_and_pointers(run: Callable[..., list[int]], count: int) -> None:
    seen: list[tuple[int, ...]] = []
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_uint64] * count)(lambda *given: seen.append(given))

    def write(m: Any, block: Any) -> None:
        given = (block.at(24), word(block, 1), word(block, 1, u32), block, m.number(u64, 9), block.at(8).at(word(block, 2)))
        m.call_native(block.load_pointer(), *given[:count])
        block.at(24).store(block)

    found = run(write, ctypes.cast(function, ctypes.c_void_p).value or 0, 0x1_8000_0005, 16)
    block = found[3]
    assert seen == [(block + 24, 0x1_8000_0005, 0x8000_0005, block, 9, block + 24)[:count]]


@pytest.mark.parametrize("readable, promise", [(0, ""), (64, ", !dereferenceable !{i64 64}, !align !{i64 8}")])
def test_a_pointer_has_a_name_for_code_that_was_written_before(readable: int, promise: str) -> None:
    """It is loaded from memory that does not change, and may be read ahead through for so many bytes."""
    m = LlvmMachine()
    m.give(word(m.pointer("table"), 1) + word(m.pointer("table"), 2))
    body, m.ir.lines = m.ir.lines, []
    m.pointer("block").at(16).load_pointer_as("table", readable)
    line = m.ir.lines[-1]
    assert line.endswith(promise) and "!invariant.load" in line and ("dereferenceable" in line) is bool(readable)
    m.ir.lines += body
    m.code.frame("f", u64, PARAMETERS)
    code = jit.load(m.ir.module.text(), ("f",), Cache(None))
    table = np.array([5, 60, 700], np.uint64)
    block = np.array([0, 0, table.ctypes.data], np.uint64)
    assert HANDLER(code.address("f"))(block.ctypes.data, 0, 0, 0) == 760


def test_text_that_is_decided_later() -> None:
    """A value is used before it is defined, placeholders are replaced, and what was written since a mark is taken back."""
    m, added, dropped = LlvmMachine(), object(), object()
    later = m.code.promise(u32, 4)
    block = m.pointer("block")
    block.store(later + 1, align=8)
    m.ir.defer(added)
    m.ir.defer(dropped)
    block.at(16).store(later + 2, align=8)
    body = m.ir.detach()
    assert m.ir.lines == [] and added in body and dropped in body
    m.code.keep_promise(later, m.lane_index(4) * 10)
    mark = m.ir.mark()
    block.at(48).store(later, align=8)
    m.ir.rewind(mark)
    for line in body:
        if line is added:
            block.at(32).store(later, align=8)
        elif line is not dropped:
            m.ir.attach(line)
    m.give(m.argument(u64, "executed"))
    m.code.frame("f", u64, PARAMETERS)
    code, words = jit.load(m.ir.module.text(), ("f",), Cache(None)), np.zeros(16, np.uint32)
    HANDLER(code.address("f"))(words.ctypes.data, 0, 0, 0)
    assert words.tolist() == [1, 11, 21, 31, 2, 12, 22, 32, 0, 10, 20, 30, 0, 0, 0, 0]


def test_what_callers_promise_of_parameters() -> None:
    """LLVM may read ahead through a pointer of so many bytes, and of no others."""
    m = LlvmMachine()
    assert Parameter("a", dereferenceable=64).text(m.ir) == "ptr dereferenceable(64) %a"
    assert Parameter("b", noalias=True, align=8).text(m.ir) == "ptr noalias align 8 %b" and Parameter("c", u32).text(m.ir) == "i32 %c"


def test_a_place_in_a_frame_of_bytecode_is_one_address() -> None:
    """Of any number of lanes, and of several vectors."""
    m = ScalarBytecode()
    places = (m.stack(u32, 8), m.stack(u64, 2, 3), m.stack(u32, 1, 0, align=8))
    assert [(place.address.type, place.address.lanes) for place in places] == [(u64, 1)] * 3


@pytest.mark.parametrize("count, size", [(0, 64), (1, 64), (2, 128), (3, 192)])
def test_a_place_in_a_frame_of_bytecode_has_the_bytes_of_its_vectors(count: int, size: int) -> None:
    """One, where their number is not said."""
    m = ScalarBytecode()
    m.stack(u32, 16, count)
    assert m.code.sizes[m.code.kept[-1]] == size


@pytest.mark.parametrize("machine", [LlvmMachine, ScalarBytecode])
def test_code_in_a_body_may_be_skipped(machine: Callable[[], CodeMachine]) -> None:
    m = machine()
    count, found = m.variable(m.constant(u32, 0, 1)), [m.conditional()]
    for _ in m.While(lambda: count.value < 3):
        found.append(m.conditional())
        for _ in m.If(count.value == 1):
            found.append(m.conditional())
        for _ in m.Else():
            found.append(m.conditional())
        found.append(m.conditional())
    assert [*found, m.conditional()] == [False, True, True, True, True, False]
