"""Signatures of compiled programs: inputs and outputs, and their layout in memory.

A compiled program is `int64_t f(void *arguments, void *record)`. The arguments are 8-byte words: three fault words (memory.py), then
per input a pointer to its lanes, or pointer and size of a memory (pointer alone where it is not checked), then per output a pointer to
where its lanes go. Lanes are contiguous, as in NumPy; a bool is a byte. The result is the first fault word. The record is not
touched: it is where softgen.memory.guard keeps its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from softgen.lanes.compile.jit import Target
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.memory import FAULT_WORDS
from softgen.lanes.llvm.text import LlvmModule
from softgen.lanes.types import Lanes
from softgen.lanes.value import Memory, Value


@dataclass(frozen=True)
class Bytes:
    """A memory that goes in. One that is not checked may only be reached where the program's author answers for it."""

    name: str = "memory"
    checked: bool = True


@dataclass(frozen=True)
class Signature:
    """Inputs in the order the program takes them, outputs in the order it returns them."""

    inputs: tuple[Lanes | Bytes, ...]
    outputs: tuple[Lanes, ...] = ()
    name: str = "program"


def build(program: Callable[..., Any], signature: Signature, target: Target | None = None) -> str:
    """The program as IR: run once over values that stand for the inputs."""
    m = LlvmMachine(LlvmModule(target))
    word = FAULT_WORDS

    def argument(kind: str) -> str:
        nonlocal word
        word += 1
        return m.ir.emit(f"load {kind}, ptr {m.ir.emit(f'getelementptr i64, ptr %arguments, i64 {word - 1}')}")

    inputs: list[Value | Memory] = []
    for number, parameter in enumerate(signature.inputs):
        pointer = argument("ptr")
        if isinstance(parameter, Bytes):
            inputs.append(Memory(m, (pointer, argument("i64") if parameter.checked else ""), parameter.name, parameter.checked, number))
        else:
            inputs.append(_read(m, parameter, pointer))
    found = program(m, *inputs)
    outputs = found if isinstance(found, tuple) else () if found is None else (found,)
    shape = tuple(Lanes(output.type, output.lanes) for output in outputs)
    if shape != signature.outputs:
        raise TypeError(f"{signature.name} must return {signature.outputs}, not {shape}")
    for output in outputs:
        _write(m, output, argument("ptr"))
    m.ir.line(f"ret i64 {m.ir.emit('load i64, ptr %arguments')}")
    return m.ir.function(signature.name)


def _read(m: LlvmMachine, lanes: Lanes, pointer: str) -> Value:
    vector = m.ir.vector(lanes.type, lanes.lanes)
    if not lanes.type.is_bool:
        return Value(m, lanes.type, lanes.lanes, m.ir.emit(f"load {vector}, ptr {pointer}, align 1"))
    raw = m.ir.emit(f"load <{lanes.lanes} x i8>, ptr {pointer}, align 1")
    return Value(m, lanes.type, lanes.lanes, m.ir.emit(f"icmp ne <{lanes.lanes} x i8> {raw}, zeroinitializer"))


def _write(m: LlvmMachine, value: Value, pointer: str) -> None:
    text = m.ir.typed(value)
    if value.type.is_bool:
        text = f"<{value.lanes} x i8> {m.ir.emit(f'zext {text} to <{value.lanes} x i8>')}"
    m.ir.line(f"store {text}, ptr {pointer}, align 1")


__all__ = ["Bytes", "Lanes", "Signature", "build"]
