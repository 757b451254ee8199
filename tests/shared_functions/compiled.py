"""Messages as compiled code: a function around one send, run under the guard over the same memory as the interpreter's."""

from __future__ import annotations

import ctypes
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from softgen.bits.units import GRF_BYTES
from softgen.cache import Cache
from softgen.errors import GpuFault
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import rules
from softgen.eu.semantics.send import execute_message
from softgen.eu.thread.block import BLOCK_OFFSETS, BLOCK_SIZE, Context, ControlBlock, ThreadStatus, offset
from softgen.eu.thread.state import FloatMode
from softgen.lanes.compile import jit
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.record import RecordLayout
from softgen.lanes.types import LaneType, bool_, u32, u64
from softgen.lanes.value import Value
from softgen.memory import arena, guard
from softgen.memory.address_space import AddressSpace
from softgen.shared_functions.access_fault import explain
from softgen.shared_functions.bindings import TOLD, Bindings, Surface
from softgen.shared_functions.compiled import MessageCode
from softgen.shared_functions.gateway import BARRIER
from softgen.shared_functions.texture.functions import Pictures

IP = 0x1230
ACTIVE = BLOCK_OFFSETS["control"] + offset(ControlBlock, "active")
RESPONSE, PAYLOAD, SECOND = 10, 40, 80  # registers
FROM_CODE = 1
RECORD = offset(Context, "record")
PIXEL = BLOCK_OFFSETS["pixel"]


class BlockState:
    """A State whose registers are bytes behind %block; only what messages need."""

    def __init__(self, m: LlvmMachine, gen: float) -> None:
        self.m, self.gen, self.rules = m, gen, rules(gen)
        self.mode, self.accumulates = FloatMode(), False

    def _pointer(self, place: str, offsets: Any, type: LaneType) -> str:
        assert isinstance(offsets, tuple) and all(b - a == type.bytes for a, b in pairwise(offsets))
        return self.m.ir.emit(f"getelementptr i8, ptr %block, i64 {BLOCK_OFFSETS[place] + offsets[0]}")

    def read(self, place: str, type: LaneType, offsets: Any) -> Value:
        pointer, vector = self._pointer(place, offsets, type), self.m.ir.vector(type, len(offsets))
        return Value(self.m, type, len(offsets), self.m.ir.emit(f"load {vector}, ptr {pointer}, align 1"))

    def write(self, place: str, value: Value, offsets: Any, mask: Value) -> None:
        pointer, vector = self._pointer(place, offsets, value.type), self.m.ir.vector(value.type, value.lanes)
        operands = [(vector, value.payload), ("ptr", pointer), ("i32", "1"), (f"<{value.lanes} x i1>", mask.payload)]
        self.m.ir.intrinsic("llvm.masked.store", "void", operands, (vector, "ptr"))

    def enabled(self, inst: Instruction) -> Value:
        m = self.m
        bits = m.ir.emit(f"load <1 x i32>, ptr {m.ir.emit(f'getelementptr i8, ptr %block, i64 {ACTIVE}')}")
        return m.mask_from_bits(Value(m, u32, 1, bits), inst.exec_size)

    def flags(self, first: int, count: int) -> Value:
        return self.m.constant(bool_, 1, count)

    def write_flags(self, first: int, value: Value, mask: Value) -> None:
        raise NotImplementedError


def instruction(gen: float, sfid: int, descriptor: int, width: int, answer: int, split: int, extended: int = 0) -> Instruction:
    sources = (Operand("grf", "ud", number=PAYLOAD), *([Operand("grf", "ud", number=SECOND)] if split else []))
    dst = Operand("grf", "ud", number=RESPONSE) if answer else Operand("arf", "ud")
    form = "sends" if split else "send"
    if rules(gen).message_registers:
        sources = (Operand("arf", "ud"),)
    return Instruction(gen, form, 0x31, form, exec_size=width, dst=dst, sources=sources, sfid=sfid, descriptor=descriptor,
                       extended=extended | sfid | split << 6, base_mrf=1)  # fmt: skip


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _barrier(context: int) -> None:
    Context.from_address(context).arrived += 1


def text(inst: Instruction) -> str:
    """The IR of a function around a send, called by a frame that the guard can call."""
    m = LlvmMachine()

    def escape(condition: Value) -> None:
        leave, stay = m.labels("leave", "stay")
        m.ir.line(f"br i1 {m.ir.emit(f'extractelement <1 x i1> {condition.payload}, i64 0')}, label %{stay}, label %{leave}")
        m.start(leave)
        m.ir.line(f"ret i64 {int(ThreadStatus.ESCAPE)}")
        m.start(stay)

    execute_message(BlockState(m, inst.gen), inst, MessageCode(m, inst.gen, m.number(u64, IP), escape, RecordLayout.of(Context),
                                                            pixel_at=PIXEL))  # fmt: skip
    m.ir.line("ret i64 0")
    m.ir.define("i64 @message(ptr %block, ptr %context)")
    frame = LlvmMachine(m.ir.module)
    block, context = (frame.ir.emit(f"load ptr, ptr {frame.ir.emit(f'getelementptr ptr, ptr %pair, i64 {n}')}") for n in (0, 1))
    frame.ir.line(f"store ptr %record, ptr {frame.ir.emit(f'getelementptr i8, ptr {context}, i64 {RECORD}')}")
    frame.ir.line(f"ret i64 {frame.ir.emit(f'call i64 @message(ptr {block}, ptr {context})')}")
    frame.ir.define("i64 @run(ptr %pair, ptr %record)")
    return m.ir.module.text()


@cache
def code(gen: float, sfid: int, descriptor: int, width: int, answer: int, split: int, extended: int = 0) -> jit.LoadedCode:
    leave = ctypes.cast(guard.library().guard_leave, ctypes.c_void_p).value
    barrier = ctypes.cast(_barrier, ctypes.c_void_p).value
    assert leave and barrier
    imports = {"guard_leave": leave, BARRIER: barrier}
    ir = text(instruction(gen, sfid, descriptor, width, answer, split, extended))
    return jit.load(ir, ("run", "message"), Cache(None), imports=imports)


class Compiled:
    """A block and a context over an address space."""

    def __init__(self, gen: float, space: AddressSpace, local: Any, general: int) -> None:
        self.gen, self.space, self.local = gen, space, local
        self.block = np.zeros(BLOCK_SIZE, np.uint8)
        self.bindings = Bindings()
        self.surfaces = self.bindings.surfaces
        self.pictures = Pictures(self.bindings, space.bits)
        self.context = Context(surfaces=ctypes.addressof(self.bindings), local=local.ctypes.data, local_size=len(local), general=general)
        self.table = space.table
        self.context.table = ctypes.addressof(self.table)

    def bind(self, index: int, address: int, size: int, known: int = TOLD) -> None:
        host, mapped = self.table[address >> 32] + (address & 0xFFFFFFFF), self.space.mapped(address, size)
        self.surfaces[index] = Surface(host=host, size=size, mapped=mapped, known=known)

    def run(self, sfid: int, descriptor: int, payload: Any, second: Any, response: Any, mask: int, width: int,
            extended: int = 0) -> int:  # fmt: skip
        held = self.block
        first = BLOCK_OFFSETS["mrf"] + GRF_BYTES if rules(self.gen).message_registers else PAYLOAD * GRF_BYTES
        for start, item in ((first, payload), (SECOND * GRF_BYTES, second), (RESPONSE * GRF_BYTES, response)):
            held[start : start + len(item)] = item
        held[ACTIVE : ACTIVE + 4] = np.array([mask], np.uint32).view(np.uint8)
        found = code(self.gen, sfid, descriptor, width, len(response) // GRF_BYTES, len(second) // GRF_BYTES, extended)
        pair = (ctypes.c_uint64 * 2)(held.ctypes.data, ctypes.addressof(self.context))
        record = guard.FaultRecord()
        if guard.library().guard_call(found.address("run"), ctypes.addressof(pair), record):
            raise self._fault(record)
        response[:] = held[RESPONSE * GRF_BYTES : RESPONSE * GRF_BYTES + len(response)]
        return int(record.result)

    def _fault(self, record: guard.FaultRecord) -> GpuFault:
        assert record.ip == IP
        place = None if record.origin == FROM_CODE else arena.locate(record.address)
        return explain(self.context, record.address, place and place.address, guard.ACCESS[record.access], self.space, f"ip {record.ip:#x}")
