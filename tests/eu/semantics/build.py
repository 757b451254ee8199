"""Instructions made by hand, and threads that run them: no text, no bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from softgen.eu import engine as engines
from softgen.eu.interpreter import DecodedInstruction, KernelProgram, RunOutcome
from softgen.eu.isa import labels, opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.thread.state import ThreadState
from softgen.eu.translate.engine import Translator

NULL = Operand("arf", "ud", 0)
Z, NZ, G, GE, L, LE, R, O, U = range(1, 10)  # noqa: E741


def reg(number: int, kind: str = "d", region: str = "8;8,1", sub: int = 0, **more: Any) -> Operand:
    """A source: region "vertical;width,horizontal"."""
    vertical, rest = region.split(";")
    width, horizontal = rest.split(",")
    return Operand("grf", kind, number, sub, vertical=int(vertical), width=int(width), horizontal=int(horizontal), **more)


def scalar(number: int, kind: str = "d", sub: int = 0, **more: Any) -> Operand:
    return reg(number, kind, "0;1,0", sub, **more)


def dst(number: int, kind: str = "d", stride: int = 1, sub: int = 0, **more: Any) -> Operand:
    return Operand("grf", kind, number, sub, horizontal=stride, **more)


def arf(code: int, kind: str = "ud", sub: int = 0, region: str = "8;8,1", **more: Any) -> Operand:
    return replace(reg(code, kind, region, sub, **more), file="arf")


def imm(bits: int, kind: str = "d") -> Operand:
    return Operand("imm", kind, immediate=bits)


def instr(gen: float, opcode: str, target: Operand | None = None, *sources: Operand, size: int = 8, **controls: Any) -> Instruction:
    row = opcodes.opcode(opcode, gen)
    assert row is not None, f"{opcode} is not an instruction of gen {gen:g}"
    align16 = controls.pop("align16", row.form == "three_source")
    return Instruction(gen, opcode, row.number, row.form, size, align16, dst=target, sources=sources, **controls)


def branch(gen: float, opcode: str, jip: str | int | None = None, uip: str | int | None = None, *sources: Operand, size: int = 8,
           target: Operand | None = None, **controls: Any) -> Instruction:
    """Jumps are names of labels until `program` has placed them."""
    made = instr(gen, opcode, target or NULL, *(sources or (imm(0),)), size=size, align16=False, **controls)
    return replace(made, jip=jip, uip=uip)  # type: ignore[arg-type]


class Listing(KernelProgram):
    """A program of records. `labels` may stand between them as strings."""

    def __init__(self, gen: float, *items: Instruction | str) -> None:
        super().__init__(gen, b"")
        at, named, kept = 0, dict[str, int](), []
        for item in items:
            if isinstance(item, str):
                named[item] = at
            else:
                kept.append((at, item))
                at += labels.size(item)
        self.end = at
        self.labels = named
        for place, item in kept:
            self.lines[place] = DecodedInstruction(place, labels.size(item), self._placed(item, place))

    def _placed(self, item: Instruction, place: int) -> Instruction:
        changes = {}
        for name in ("jip", "uip"):
            value = getattr(item, name)
            if isinstance(value, str):
                changes[name] = labels.count(item, place, self.labels[value])
        return replace(item, **changes)  # type: ignore[arg-type]


def end(gen: float) -> Instruction:
    """The send that ends a thread; thread() gives it somebody to listen."""
    row = opcodes.opcode("send", gen)
    assert row is not None
    return Instruction(gen, "send", row.number, "send", 8, sfid=7, eot=True, no_mask=True, descriptor=0, dst=NULL, sources=(NULL,))


def thread(gen: float, mask: int = 0xFF, **registers: Any) -> ThreadState:
    made = ThreadState(gen, {7: lambda thread, sent: None}, dispatch_mask=mask)
    set_registers(made, registers)
    return made


def set_registers(made: ThreadState, registers: Mapping[str, Any]) -> None:
    """r10=array: bytes of an array at a register."""
    for name, values in registers.items():
        held = values.tobytes()
        start = int(name[1:]) * 32
        made.grf[start : start + len(held)] = memoryview(held)


@pytest.fixture(params=["reference", "t0", "t1"], autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """Imported by a module of tests, makes each of them run on every engine."""
    CHOSEN.append(request.param)
    yield request.param
    CHOSEN.pop()


CHOSEN = ["reference"]  # the last instruction runs


def run(made: ThreadState, *items: Instruction | str, limit: int = 1000) -> RunOutcome:
    """Runs a listing, to which the end is added, on the engine that is chosen."""
    program = Listing(made.gen, *items, end(made.gen))
    return engines.run(CHOSEN[-1], made, program, limit, Translator(observe=True, messages=False) if CHOSEN[-1] == "t1" else None)
