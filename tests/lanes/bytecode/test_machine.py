"""The bytecode machine beside the NumPy machine: random programs, frames, loops, graphics memory, and what it refuses."""

from __future__ import annotations

import ctypes
import gc
import itertools
import random
import weakref
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.errors import SoftgenError, Unsupported
from softgen.lanes.bytecode import program as bytecode_program
from softgen.lanes.bytecode.machine import BytecodeMachine
from softgen.lanes.bytecode.program import CONSTANT, BytecodeAssembly, codes
from softgen.lanes.compile.signature import Bytes, Lanes, Signature
from softgen.lanes.machine import Machine
from softgen.lanes.numpy.machine import DTYPES, NumpyMachine
from softgen.lanes.types import TYPES, bool_, f16, f32, i32, u8, u16, u32, u64
from softgen.lanes.value import Region, Value
from tests.lanes.both import agree, on_numpy
from tests.lanes.both import random_lanes as lanes_of
from tests.lanes.numbers import specials
from tests.lanes.programs import KINDS, ROOM, SIGNATURE, WIDTH, Kind, Step, runner
from tests.lanes.test_region import Held

PROGRAMS, LENGTH, TURNS = 40, 60, 4
POINTER, FIRST = 8, 1  # bytes; the argument with pointers to inputs and outputs


class Interpreted:
    """A lane program as bytecode, called with arrays: a Routine."""

    def __init__(self, program: Callable[..., Any], signature: Signature) -> None:
        self.signature, m = signature, BytecodeMachine()
        table = m.memory_of(FIRST)

        def memory(number: int) -> Any:
            return m.memory_at(m.load_block(u64, 1, table, POINTER * number), 1 << 20)

        given: list[Any] = []
        for number, shape in enumerate(signature.inputs):
            if isinstance(shape, Bytes):
                given.append(memory(number))
                continue
            held = m.load_block(u8 if shape.type is bool_ else shape.type, shape.lanes, memory(number), 0)
            given.append(held != 0 if shape.type is bool_ else held)
        found = program(m, *given)
        for number, value in enumerate(found if isinstance(found, tuple) else (found,), len(given)):
            stored = m.select(value, m.constant(u8, 1, value.lanes), m.constant(u8, 0, value.lanes)) if value.type is bool_ else value
            m.store_block(stored, memory(number), 0)
        self.program = m.program(0, 0)

    def __call__(self, *inputs: Any) -> list[Any]:
        outputs = [np.zeros(output.lanes, DTYPES[output.type]) for output in self.signature.outputs]
        pointers = np.array([array.ctypes.data for array in (*inputs, *outputs)], np.uint64)
        call(self.program.address, np.zeros(64, np.uint64).ctypes.data, pointers.ctypes.data)
        return outputs


def call(address: int, *arguments: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_uint64, *(ctypes.c_uint64 for _ in arguments))(address)(*arguments))


def steps_of(kinds: list[Kind], rng: random.Random) -> list[Step]:
    return [Step(kind, rng.getrandbits(32)) for kind in kinds]


def supported(kind: Kind) -> bool:
    """Whether the machine has the operations of a step."""
    try:
        Interpreted(runner(steps_of([kind], random.Random(1))), SIGNATURE)
    except Unsupported:
        return False
    return True


def test_random_programs() -> None:
    """Every kind of step that is not refused, several times, among others."""
    rng, numbers = random.Random(4), np.random.default_rng(4)
    kinds = [kind for kind in KINDS if not refused(kind)]
    used: Counter[Kind] = Counter()
    for _ in range(PROGRAMS):
        chosen = sorted(kinds, key=lambda kind: (used[kind], rng.random()))[:LENGTH]
        used.update(chosen)
        program = runner(steps_of(rng.sample(chosen, len(chosen)), rng))
        routine: Any = Interpreted(program, SIGNATURE)
        for _ in range(TURNS):
            inputs = [lanes_of(type, WIDTH, numbers, specials(type)) for type in TYPES]
            agree(program, SIGNATURE, [*inputs, numbers.integers(0, 256, ROOM, np.uint8)], routine, any_nan=False)
    assert set(used) == set(kinds)


def refused(kind: Kind) -> bool:
    """Directed roundings, arithmetic of halves and atomics are."""
    if kind.name == "atomic" or kind.detail in ("ru", "rd", "rtz"):
        return True
    if kind.name == "convert":
        to, mode = kind.detail
        if to is kind.type or kind.type is f16 and to.is_float:
            return False
        halves = {(f32, f16)}
        return mode != "rne" and (kind.type, to, mode) != (f32, f16, "rtz") or f16 in (kind.type, to) and (kind.type, to) not in halves
    plain = ("constant", "select", "shuffle", "broadcast", "concat", "if", "while", "bitcast", "regroup", "load", "store", "load_block",
             "store_block", "absolute", "sign_bit", "flush", "is_nan", "is_inf", "is_denormal", "copysign")  # fmt: skip
    return kind.type is f16 and kind.name not in plain


def test_what_is_not_refused_is_supported() -> None:
    assert [kind for kind in KINDS if supported(kind) is refused(kind)] == []


def test_as_many_lanes_as_one_likes() -> None:
    rng = np.random.default_rng(1)
    for lanes in (1, 2, 3, 8, 16, 17, 32, 256):
        def program(m: Machine, a: Value, b: Value) -> tuple[Value, ...]:
            return a * b + a, m.concat(a, b) if a.lanes < 256 else a, m.shuffle(b, list(range(b.lanes))[::-1])

        signature = Signature((*(item for item in (lanes_signature(lanes), lanes_signature(lanes))),),
                              (lanes_signature(lanes), lanes_signature(2 * lanes if lanes < 256 else lanes), lanes_signature(lanes)))
        routine: Any = Interpreted(program, signature)
        agree(program, signature, [rng.integers(0, 1 << 32, lanes, np.uint32) for _ in range(2)], routine)


def lanes_signature(lanes: int) -> Lanes:
    return Lanes(u32, lanes)


def test_values_from_outside_a_loop_keep_their_places() -> None:
    """Many values are made in the loop after the last use of one that the next turn needs again."""
    def program(m: Machine, a: Value) -> Value:
        outside, count, total = a * 3 + 1, m.variable(m.constant(u32, 0, 16)), m.variable(a)
        for _ in m.While(lambda: m.any(count.value < 5)):
            first = total.value + outside
            for step in range(40):
                first = (first ^ m.like(first, step * 977)) + 1
            total.value, count.value = first, count.value + 1
        return total.value

    signature = Signature((lanes_signature(16),), (lanes_signature(16),))
    routine: Any = Interpreted(program, signature)
    agree(program, signature, [np.arange(16, dtype=np.uint32)], routine)


def test_results_come_back_in_one_lane() -> None:
    m = BytecodeMachine()
    program = m.program(0, 0, m.argument(2, u32) + m.argument(3, u32))
    context = np.zeros(64, np.uint64)
    assert call(program.address, context.ctypes.data, 0, 5 | 9 << 32, 7) == 12 and program.calls == 1


def test_a_constant_is_written_once_and_the_zeros_are_two() -> None:
    m = BytecodeMachine()
    assert m.constant(f32, 0.5, 4) is m.constant(f32, 0.5, 4) and m.constant(f32, 0.5, 4) is not m.constant(f32, 0.5, 8)
    m.constant(f32, 0.0, 1)
    negative = m.bitcast(m.constant(f32, -0.0, 1), u32)
    assert call(m.program(0, 0, negative).address, np.zeros(64, np.uint64).ctypes.data) == 0x80000000
    for _ in range(2):  # a number of which another machine has kept the bytes is checked like the first
        with pytest.raises(ValueError, match="must be an integer"):
            BytecodeMachine().constant(u8, 256, 4)


def test_constants_of_a_program_are_aligned_as_vectors_are() -> None:
    """To 16 bytes, each once."""
    code = BytecodeAssembly()
    slots = [code.constant(bytes(range(size))) for size in (1, 3, 16, 17, 33, 4)]
    assert [slot - CONSTANT for slot in slots] == [0, 16, 32, 48, 80, 128]
    assert code.constant(bytes(range(17))) == slots[3] and code.constant(bytes(5)) == CONSTANT + 144


@pytest.mark.parametrize("size, frame", [((1 << 18) - 8, 0), ((1 << 18) - 7, (1 << 18) + 64)])
def test_a_frame_that_a_stack_may_have_no_room_for_is_refused(size: int, frame: int) -> None:
    """Frames are whole cache lines; the result is behind all else."""
    code = BytecodeAssembly()
    code.keep(size)
    result = code.keep(8)
    if not frame:
        assert code.finished(result, 0, 0, 48).record.result == size
        return
    with pytest.raises(Unsupported, match=f"a bytecode program with a frame of {frame} bytes: at most {1 << 18}$"):
        code.finished(result, 0, 0, 48)


@pytest.mark.parametrize("handler, count", [(False, 7), (True, 3)])
def test_a_process_has_so_many_programs(handler: bool, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions and handlers have addresses of their own: 0 says that there is none left."""
    full = {"bytecode_function": lambda number, record: number < 7, "bytecode_handler": lambda number, record: number < 3}
    monkeypatch.setattr(bytecode_program, "library", lambda: SimpleNamespace(**full))
    monkeypatch.setattr(bytecode_program, "_numbers", {False: itertools.count(), True: itertools.count()})
    monkeypatch.setattr(bytecode_program, "_kept", [])
    for _ in range(count):
        bytecode_program.BytecodeProgram(b"", b"", 0, 0, 0, 0, 0, handler)
    with pytest.raises(Unsupported, match=f"more than {count} bytecode programs in one process"):
        bytecode_program.BytecodeProgram(b"", b"", 0, 0, 0, 0, 0, handler)
    assert len(bytecode_program._kept) == count


def test_an_interpreter_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    find = bytecode_program.library.__wrapped__
    for spec, complaint in ((None, r"^softgen.lanes._bytecode is not built"), (SimpleNamespace(origin=None), "is not built"),
                            (SimpleNamespace(origin="/no/such.so"), r"^/no/such.so cannot be used: .*")):  # fmt: skip
        monkeypatch.setattr("importlib.util.find_spec", lambda name, spec=spec: spec)
        with pytest.raises(SoftgenError, match=rf"{complaint}; .*`python setup.py build_ext --inplace`"):
            find()


def test_a_machine_is_freed_when_its_program_is_written() -> None:
    """Without the garbage collector, which would look at all objects of the process."""
    m = BytecodeMachine()
    m.program(0, 0, m.argument(1, u32) * 3 + 1)
    machine = weakref.ref(m)
    gc.disable()
    try:
        del m
        assert machine() is None
    finally:
        gc.enable()


def test_what_nobody_reads_is_left_out() -> None:
    m = BytecodeMachine()
    unused = m.argument(1) + 1
    for _ in range(50):
        unused = unused * 3
    assert m.program(0, 0, m.argument(2)).size < 5


def region_program(m: Machine, memory: Region) -> None:
    offsets = m.constant(u32, [0, 4, 8, 12, 36, 37, 20, 3])
    found = m.load(u32, memory, offsets)
    m.store(found + 1, memory, offsets, m.constant(bool_, [1, 0, 1, 0, 1, 1, 1, 0]))
    m.store(m.load(u8, memory.moved(3), offsets), memory.moved(20), m.constant(u64, [5, 1, 7, 3, 2, 9, 1, 0]))
    block = m.load_block(u16, 8, memory, m.constant(u64, 16, 1), m.mask_from_bits(0b1101_1011, 8))
    m.store_block(block ^ 0xFF, memory.moved(2), m.constant(u32, 20, 1), m.mask_from_bits(0b0111_0111, 8))


def test_graphics_memory_is_reached_through_its_table() -> None:
    """In two parts of 4 GiB, and with the note of the last access."""
    first, second = np.arange(64, dtype=np.uint8), np.arange(64, dtype=np.uint8)
    m = NumpyMachine()
    region_program(m, Region(m, Held(first)))
    machine = BytecodeMachine(bits=40)
    region_program(machine, machine.graphics_memory(machine.argument(1)))
    program = machine.program(0, 8)
    table, part = np.zeros(8, np.uint64), 3
    table[part] = second.ctypes.data - 0x100
    context = np.zeros(64, np.uint64)
    context[0] = table.ctypes.data
    call(program.address, context.ctypes.data, part << 32 | 0x100 | 1 << 40)  # bits above the width of addresses do not count
    assert first.tolist() == second.tolist() and first.tolist() != list(range(64))
    assert int(context[2]) == (part << 32) + 0x100 + 22 and int(context[1]) >> 40 == 16


@pytest.mark.parametrize("lanes", [32, 33, 64])
@pytest.mark.parametrize("act", [
    lambda m, memory, lanes: m.load(u32, memory, m.lane_index(lanes) * 4), lambda m, memory, lanes: m.load_block(u8, lanes, memory, 0),
    lambda m, memory, lanes: m.store(m.lane_index(lanes), memory, m.lane_index(lanes) * 4),
    lambda m, memory, lanes: m.store_block(m.lane_index(lanes), memory, 0),
], ids=["load", "load_block", "store", "store_block"])  # fmt: skip
def test_lanes_of_graphics_memory_are_as_many_as_a_note_has_room_for(act: Callable[..., Any], lanes: int) -> None:
    m = BytecodeMachine()
    memory = m.graphics_memory(m.argument(1))
    if lanes == 32:
        act(m, memory, lanes)
        return
    with pytest.raises(Unsupported, match=f"^bytecode: {lanes} lanes of graphics memory at a time$"):
        act(m, memory, lanes)
    act(m, m.memory_of(1), lanes)  # other memory has no notes


def test_python_cannot_decide_what_is_known_later() -> None:
    m = BytecodeMachine()
    with pytest.raises(TypeError, match="Python cannot decide"):
        bool(m.argument(0) == 0)


@pytest.mark.parametrize("wrong, complaint", [
    (lambda m, a: a + m.constant(i32, 1, 4), "must be u32, not i32"), (lambda m, a: a + m.constant(u32, 1, 8), "must have 4 lanes, not 8"),
    (lambda m, a: a + BytecodeMachine().constant(u32, 1, 4), "machine"),
    (lambda m, a: BytecodeMachine().constant(u32, 1, 4) < a, "machine"),
    (lambda m, a: m.bit_and(a, NumpyMachine().constant(u32, 1, 4)), "machine"),
])  # fmt: skip
def test_operands_that_do_not_belong_together_are_refused(wrong: Callable[[Any, Value], Value], complaint: str) -> None:
    m = BytecodeMachine()
    with pytest.raises(TypeError, match=complaint):
        wrong(m, m.constant(u32, 7, 4))


@pytest.mark.parametrize("wrong", [lambda m: m.constant(bool_, 1, 4), lambda m: m.constant(u32, 1, 1)])
def test_decisions_are_on_one_lane_of_bool(wrong: Callable[[Any], Value]) -> None:
    m = BytecodeMachine()
    for begin in (lambda: m.If(wrong(m)), lambda: m.While(lambda: wrong(m))):
        with pytest.raises(TypeError, match="a decision must be on one lane of bool"):
            next(iter(begin()))


def test_else_must_follow_an_if() -> None:
    m = BytecodeMachine()
    with pytest.raises(TypeError, match="must follow"):
        for _ in m.Else():
            pass


def test_every_operation_has_a_name_of_its_own() -> None:
    found = codes()
    assert len(found) > 300 and {"add_u32", "convert_f64_i8", "region_store_u64", "end"} <= set(found)


def test_floats_become_halves_toward_zero() -> None:
    """All values that lie between two halves."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)].astype(np.float32)
    values = np.concatenate([halves, np.nextafter(halves, np.float32(np.inf)), np.nextafter(halves, np.float32(-np.inf))])
    values = np.ascontiguousarray(values[~np.isnan(values)][::7])

    def program(m: Machine, a: Value) -> Value:
        return m.bitcast(m.convert(a, f16, "rtz"), u16)

    signature = Signature((Lanes(f32, 256),), (Lanes(u16, 256),))
    routine: Any = Interpreted(program, signature)
    for start in range(0, len(values) - 256, 256):
        given = [values[start : start + 256]]
        assert routine(*given)[0].tolist() == on_numpy(program, signature, given)[0].tolist()


def test_shifts_of_signed_lanes() -> None:
    m = BytecodeMachine()
    program, context = m.program(0, 0, m.bitcast(m.argument(1, i32) >> 4, u32)), np.zeros(9, np.uint64)
    assert call(program.address, context.ctypes.data, 0x80000000) == 0xF8000000
