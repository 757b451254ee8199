"""Bytecode programs: what the assembler and the interpreter are told, frames, results, and libraries of other versions."""

from __future__ import annotations

import ctypes
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softgen.lanes.bytecode import program as bytecode_program
from softgen.lanes.bytecode.machine import BytecodeMachine
from softgen.lanes.bytecode.program import JUMPS, NO_OPERAND, PLACE, PURE, READS_RESULT, BytecodeAssembly, BytecodeProgram, codes
from softgen.lanes.types import u64
from tests.lanes.bytecode.test_machine import call

LINE, WORD = 64, 8  # bytes
OPERATION, WRITTEN = 32, 72  # bytes of structures of bytecode.h and assembly.h
COUNTS = ("operations", "places", "kept_places", "label_count", "loop_count")


def words_at(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(address))


def test_the_assembler_gets_every_list_and_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """And room for all operations."""
    seen: list[Any] = []

    def assemble(reference: Any) -> int:
        given = reference._obj
        lengths = given.operations * WRITTEN // WORD, given.places, given.kept_places, given.label_count, 2 * given.loop_count
        lists = given.written, given.sizes, given.kept, given.labels, given.loops
        seen.extend(words_at(address, length) for address, length in zip(lists, lengths, strict=True))
        seen.append([getattr(given, name) for name in COUNTS])
        given.used, given.frame = given.operations, 5 * LINE
        return 0

    native = SimpleNamespace(bytecode_assemble=assemble, bytecode_function=lambda number, record: 1)
    code, known = BytecodeAssembly(), codes()
    monkeypatch.setattr(bytecode_program, "library", lambda: native)
    monkeypatch.setitem(bytecode_program._numbers, True, itertools.count())
    monkeypatch.setattr(bytecode_program, "_kept", [])
    kept, value, result = code.keep(24), code.place(20), code.keep(WORD)
    labels = [code.label() for _ in range(3)]
    for number, label in enumerate(labels):
        label.before = number + 1
    code.loops += (0, 2, 1, 3)
    code.add("add_u32", 5, value, kept, kept + 4, how=PURE)
    code.add("jump", immediate=labels[1].number, how=JUMPS)
    code.add("copy", 0, result, value, immediate=WORD)
    code.add("region_store_u8", 1, value, kept, result, code.constant(b"\1"), 1, 9, READS_RESULT)
    program = code.finished(result, 40, 48, 36)
    none = NO_OPERAND
    assert (kept, value, result) == (PLACE, 2 * PLACE, 3 * PLACE)
    assert seen == [
        [known["add_u32"], 5, 1, value, kept, kept + 4, none, 0, 0, known["jump"], 0, 4, none, none, none, none, 0, 1,
         known["copy"], 0, 0, result, value, none, none, 0, 8, known["region_store_u8"], 1, 2, value, kept, result, 1 << 31, 1, 9,
         known["end"], 0, 2, result, none, none, none, 0, 0],
        [0, 24, 20, 8], [1, 3], [1, 2, 3], [0, 2, 1, 3], [5, 4, 2, 3, 2]]  # fmt: skip
    record = program.record
    assert program.size == 5 and (record.frame, record.result, record.table_at, record.note_at) == (5 * LINE, 24, 40, 48)
    assert record.address_mask == 0xF_FFFF_FFFF and (record.context, record.calls, record.hot, record.compiled) == (0, 0, 0, 0)


def test_a_host_without_memory_for_the_assembler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    code = BytecodeAssembly()
    result = code.keep(WORD)
    monkeypatch.setattr(bytecode_program, "library", lambda: SimpleNamespace(bytecode_assemble=lambda record: 1))
    with pytest.raises(MemoryError, match=r"^a bytecode program$"):
        code.finished(result, 0, 0, 48)


@pytest.mark.parametrize("sizes, at", [((), 0), ((5,), 8), ((8,), 8), ((9, 16, 1), 40)])
@pytest.mark.parametrize("inside", [0, 8, 13])
def test_a_result_is_where_it_was_kept(sizes: tuple[int, ...], at: int, inside: int) -> None:
    """What is kept takes whole words, after the arguments; a result may be a part of it."""
    code = BytecodeAssembly()
    for size in (6 * WORD, *sizes):
        code.keep(size)
    slot = code.keep(24)
    code.keep(100)
    data = bytes(range(1, 25))
    code.add("copy", 0, slot, code.constant(data), immediate=len(data))
    program, context = code.finished(slot + inside, 0, 0, 48), np.zeros(8, np.uint64)
    assert program.record.result == 6 * WORD + at + inside
    assert call(program.address, context.ctypes.data).to_bytes(WORD, "little") == data[inside : inside + WORD]


def test_six_arguments_stay_while_a_program_runs() -> None:
    """They, a variable and the result are eight words, one cache line; values in between come after them."""
    m = BytecodeMachine()
    total = m.variable(m.constant(u64, 0, 1))
    for number in range(1, 6):
        total.value = total.value * 10 + m.argument(number)
    program, context = m.program(0, 0, total.value), np.zeros(8, np.uint64)
    assert call(program.address, context.ctypes.data, 1, 2, 3, 4, 5) == 12345
    assert program.record.result == 7 * WORD and LINE < program.record.frame < 2 * LINE


def test_calls_go_to_compiled_code_once_it_is_there() -> None:
    m = BytecodeMachine()
    program, context = m.program(0, 0, m.argument(1)), np.zeros(8, np.uint64)
    compiled = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)(lambda context, number: number + 1000)
    assert [call(program.address, context.ctypes.data, number) for number in (5, 6)] == [5, 6] and program.calls == 2
    program.become(ctypes.cast(compiled, ctypes.c_void_p).value or 0)
    assert call(program.address, context.ctypes.data, 7) == 1007 and program.calls == 2


@pytest.mark.parametrize("handler, context", [(False, 0), (True, 2)])
def test_a_program_is_known_by_its_number_among_functions_or_among_handlers(handler: bool, context: int,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """Each kind counts for itself. A function's context is its first argument, a handler's the third."""
    seen: list[tuple[str, int, int]] = []
    native = SimpleNamespace(bytecode_function=lambda number, record: seen.append(("function", number, record.number)) or 7,
                             bytecode_handler=lambda number, record: seen.append(("handler", number, record.number)) or 9)  # fmt: skip
    monkeypatch.setattr(bytecode_program, "library", lambda: native)
    monkeypatch.setattr(bytecode_program, "_numbers", {False: itertools.count(20), True: itertools.count(30)})
    monkeypatch.setattr(bytecode_program, "_kept", [])
    programs = [BytecodeProgram(bytes(3 * OPERATION), b"", 64, 8, 16, 24, 0xFF, handler) for _ in range(2)]
    assert seen == ([("handler", 20, 20), ("handler", 21, 21)] if handler else [("function", 30, 30), ("function", 31, 31)])
    assert [(program.size, program.address, program.record.context) for program in programs] == [(3, 9 if handler else 7, context)] * 2


def test_functions_of_the_interpreter_take_numbers_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    native = SimpleNamespace(**{f"bytecode_{name}": SimpleNamespace() for name in ("name", "function", "handler")})
    monkeypatch.setattr(ctypes, "CDLL", lambda path: native)
    assert bytecode_program.library.__wrapped__() is native
    assert native.bytecode_name.argtypes == (ctypes.c_uint64,) and native.bytecode_name.restype is ctypes.c_char_p
    for function in (native.bytecode_function, native.bytecode_handler):
        assert function.restype is ctypes.c_uint64 and function.argtypes[0] is ctypes.c_uint64
