"""native.c: the loop over the handlers of a threaded program."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import pytest

from softgen.eu import native
from softgen.eu.native_h import NOWHERE, STEP, NativeOp, NativeProgram
from softgen.eu.thread.block import BLOCK_OFFSETS, BLOCK_SIZE, Context, ControlBlock, ThreadStatus
from softgen.lanes.compile import jit

CONTROL = BLOCK_OFFSETS["control"]

# -- the loop over handlers --------------------------------------------------------------------------------------------

# r1.0 is a number that handlers add to; an op's bytes from 16 on are theirs.
CALL = "(ptr %block, ptr %op, ptr %context, i64 %executed)"
HANDLERS = f"""
define i64 @add{CALL} {{
  %from = getelementptr i8, ptr %op, i64 16
  %by = load i32, ptr %from
  %to = getelementptr i8, ptr %block, i64 32
  %old = load i32, ptr %to
  %new = add i32 %old, %by
  store i32 %new, ptr %to
  %next = getelementptr i8, ptr %op, i64 64
  %then = load ptr, ptr %next
  %count = add i64 %executed, 1
  %answer = musttail call i64 %then(ptr %block, ptr %next, ptr %context, i64 %count)
  ret i64 %answer
}}
define i64 @next{CALL} {{
  %from = getelementptr i8, ptr %op, i64 16
  %next = load ptr, ptr %from
  %then = load ptr, ptr %next
  %answer = musttail call i64 %then(ptr %block, ptr %next, ptr %context, i64 %executed)
  ret i64 %answer
}}
define i64 @status{CALL} {{
  %from = getelementptr i8, ptr %op, i64 16
  %status = load i64, ptr %from
  %count = getelementptr i8, ptr %block, i64 {CONTROL + ControlBlock.executed.offset}
  store i64 %executed, ptr %count
  ret i64 %status
}}
"""


@cache
def handlers() -> jit.LoadedCode:
    return jit.load(HANDLERS, ("add", "next", "status"))


KEPT: list[Any] = []  # what programs point at


def op(name: str, ip: int, value: int = 0) -> NativeOp:
    made = NativeOp(handlers().address(name) if name else native.address(native.library().native_escape), ip)
    made.dst, made.src0 = value & 0xFFFFFFFF, value >> 32
    return made


def loop(ops: list[NativeOp], start: int = 0) -> NativeProgram:
    held = (NativeOp * len(ops))(*ops)
    highest = max(op.ip for op in ops)
    index = (ctypes.c_uint32 * ((highest - start) // STEP + 1))(*[NOWHERE] * ((highest - start) // STEP + 1))
    for number in reversed(range(len(ops))):
        index[(ops[number].ip - start) // STEP] = number
    KEPT.append((held, index))
    return NativeProgram(ctypes.addressof(held), ctypes.addressof(index), start, len(index))


def turn(program: NativeProgram, ip: int = 0) -> tuple[int | None, int, int, int]:
    """Status, ip, instructions, and the number in r1."""
    held = np.zeros(BLOCK_SIZE, np.uint8)
    control = ControlBlock.from_buffer(held, CONTROL)  # type: ignore[arg-type]
    control.ip = ip
    context = Context(program=ctypes.addressof(program), blocks=held.ctypes.data, threads=1)
    status = native.single(native.single_call(), native.imports()["native_threaded"], held.ctypes.data, context)
    return status, control.ip, control.executed, int(held.view(np.uint32)[8])


def test_handlers_run_one_after_another_until_one_leaves() -> None:
    program = loop([op("add", 0, 5), op("add", 16, 7), op("add", 16, 11), op("status", 32, ThreadStatus.ENDED)])
    assert turn(program) == (ThreadStatus.ENDED, 0, 3, 23)
    assert turn(program, 16) == (ThreadStatus.ENDED, 16, 2, 18)  # the first op of an address is the one that is gone to


def test_an_op_may_lead_elsewhere() -> None:
    program = loop([op("next", 0x100), op("add", 0x110, 1), op("add", 0x118, 2), op("status", 0x120, ThreadStatus.OUT_OF_BUDGET)], 0x100)
    held, _ = KEPT[-1]
    there = ctypes.addressof(held) + 2 * 64
    held[0].dst, held[0].src0 = there & 0xFFFFFFFF, there >> 32
    assert turn(program, 0x100) == (ThreadStatus.OUT_OF_BUDGET, 0x100, 1, 2)


@pytest.mark.parametrize("ip", [0x10, 0x4, 0x8000, 0xFFFFFFF8])
def test_where_no_instruction_is_the_reference_has_to_look(ip: int) -> None:
    program = loop([op("add", 0, 1), op("status", 8, 1), op("add", 0x18, 1)])
    assert turn(program, ip) == (ThreadStatus.ESCAPE, ip, 0, 0)


def test_an_op_for_the_reference_was_not_executed_and_is_where_the_thread_stands() -> None:
    assert turn(loop([op("add", 0, 1), op("", 8)])) == (ThreadStatus.ESCAPE, 8, 1, 1)


def test_a_structure_on_its_own_cache_lines_shares_none() -> None:
    """Whatever place the host finds for it, and whatever its size."""
    made, lines = [], set[int]()
    for size in [*range(1, 200, 3)] * 4:
        kind = type("Sized", (ctypes.Structure,), {"_fields_": [("bytes", ctypes.c_uint8 * size)]})
        made.append(native.on_own_lines(kind))
        at = ctypes.addressof(made[-1])
        assert at % native.LINES == 0
        used = set(range(at // native.LINES, (at + size - 1) // native.LINES + 1))
        assert not used & lines
        lines |= used
