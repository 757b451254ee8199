"""Random programs with what they need to run: code, dispatch mask, control register, and registers from a seed.

    case = generate(9, 17)          # the 17th program of generation 9: always the same
    thread = case.thread()
    run(thread, case.program())

Programs take turns at the cells (cells.py), so that coverage grows with their number and not by luck. Registers: r2 what address
registers are filled with, r3 to r7 and r112 to r127 what control flow needs, r8 to r111 data.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from softgen.errors import DecodeError
from softgen.eu.check.restrictions import check
from softgen.eu.encoding import program
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.interpreter import KernelProgram
from softgen.eu.isa import labels, opcodes, types
from softgen.eu.isa.control_register import mask, roundings
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.rules import rules
from softgen.eu.text.mesa import format as mesa_format
from softgen.eu.thread.message import SentMessage
from softgen.eu.thread.state import ALL_CHANNELS, FloatMode, ThreadState
from softgen.shared_functions import descriptors
from tests.eu.random_programs.cells import Cell, cells, seen
from tests.eu.random_programs.flow import Flow, Item
from tests.eu.random_programs.instructions import Maker, straight
from tests.eu.random_programs.operands import ADDRESS, ADDRESSES, CONTROL, number
from tests.eu.semantics.build import NULL, arf, dst, imm, instr, reg

TABLE = 2  # the register that address registers are filled from
LAST_PAYLOAD = 124
SPAWNER = 7
EXTENDED_MATH = 1  # shared function of Gen4.5
TARGETS = 18  # cells that a program aims at
SWITCH = 2
MODES = ("alternate_float_mode", "float_denormals", "double_denormals", "half_denormals", "accumulator_disable")
KINDS = ("f", "f", "f", "hf", "df", "d", "d", "w", "ub", "uq")  # what registers are filled with


@dataclass(frozen=True)
class Case:
    """A program and what its thread starts with."""

    gen: float
    items: tuple[Item, ...]
    dispatch: int
    control: int  # cr0.0
    seed: int  # of the registers
    compact: bool = False

    def instructions(self) -> list[Instruction]:
        """The items with their jumps as they are encoded."""
        at, named, kept = 0, dict[str, int](), list[tuple[int, Instruction]]()
        for item in self.items:
            if isinstance(item, str):
                named[item] = at
            else:
                kept.append((at, item))
                at += labels.NATIVE
        return [_placed(item, place, named) for place, item in kept]

    def program(self) -> KernelProgram:
        made = self.instructions()
        try:
            code = program.assemble(made, self.compact)
        except DecodeError:
            code = program.assemble(made)
        return KernelProgram(self.gen, code, name="random")

    def thread(self) -> ThreadState:
        made = ThreadState(self.gen, listeners(self.gen), dispatch_mask=self.dispatch)
        fill(made, random.Random(self.seed))
        made.dwords("cr")[0] = self.control
        return made

    def text(self) -> str:
        """The listing, as `softgen disasm` prints it, and what the thread starts with."""
        lines = [f"gen {self.gen:g}, dispatch mask {self.dispatch:#x}, cr0 {self.control:#x}, seed {self.seed}"]
        for offset, _, made in program.instructions(self.program().code, self.gen):
            lines.append(f"{offset:5x}: {' '.join(mesa_format.text(made).split())}")
        return "\n".join(lines)


def _placed(item: Instruction, place: int, named: dict[str, int]) -> Instruction:
    changes: dict[str, Any] = {}
    for name in ("jip", "uip"):
        value = getattr(item, name)
        if isinstance(value, str):
            absolute = labels.is_absolute(item)
            changes[name] = named[value] if absolute else labels.count(item, place, named[value])
    return replace(item, **changes) if changes else item


# -- threads -------------------------------------------------------------------------------------------------------


def answer(thread: ThreadState, sent: SentMessage) -> None:
    """Somebody who answers every message: the payload, turned, in the channels that asked."""
    words = sent.response.view(np.uint32)
    asked = np.concatenate([sent.payload, sent.second]).view(np.uint32)
    for index in range(len(words)):
        channel = index % 8 + (index // 8 % 2) * 8
        if sent.mask >> channel & 1 and len(asked):
            words[index] = (int(asked[(index + 3) % len(asked)]) * 5 + sent.descriptor + index) & ALL_CHANNELS


def listeners(gen: float) -> dict[int, Any]:
    return {sfid: answer for sfid in range(16) if rules(gen).math != "message" or sfid != EXTENDED_MATH}


def fill(made: ThreadState, rng: random.Random) -> None:
    """Registers full of numbers of all types, many of them special; addresses that lead to registers."""
    for file in (made.grf, made.mrf):
        for start in range(0, len(file), 32):
            kind = rng.choice(KINDS)
            size = types.size(kind)
            held = b"".join(number(kind, rng).to_bytes(size, "little") for _ in range(32 // size))
            file[start : start + 32] = memoryview(held)
    made.grf[TABLE * 32 : TABLE * 32 + 32].view(np.uint16)[:] = [ADDRESSES * rng.randint(64, 168) for _ in range(16)]
    addresses = made.arf["a"].view(np.uint16)
    addresses[:] = made.grf[TABLE * 32 :].view(np.uint16)[: len(addresses)]
    made.arf["f"][:] = memoryview(rng.randbytes(len(made.arf["f"])))
    made.arf["n"].view(np.uint32)[0] = rng.randrange(3)
    kind = rng.choice(("f", "d", "w"))
    size = types.size(kind)
    made.arf["acc"][:] = memoryview(b"".join(number(kind, rng).to_bytes(size, "little") for _ in range(64 // size)))
    made.arf["acc_d"].view(np.int64)[:] = made.arf["acc"].view(np.int32)
    made.arf["acc_w"].view(np.int64)[:] = made.arf["acc"].view(np.int16)


@cache
def mode(gen: float, control: int) -> FloatMode:
    """What a control register says about floats."""
    made = ThreadState(gen)
    made.dwords("cr")[0] = control
    return made.mode


# -- messages ------------------------------------------------------------------------------------------------------


@cache
def messages(gen: float) -> tuple[tuple[int, int], ...]:
    """Some messages of a generation that are known and well formed: shared function and descriptor."""
    rng, found = random.Random(1), list[tuple[int, int]]()
    if rules(gen).math == "message":
        return tuple((EXTENDED_MATH, length << 20 | 1 << 16 | function) for function, length in _MATH)
    for _ in range(20000):
        sfid = rng.choice((2, 3, 4, 5, 9, 10, 12))
        descriptor = rng.randint(1, 4) << 25 | rng.randint(0, 4) << 20 | rng.getrandbits(1) << 19 | rng.getrandbits(19)
        if descriptors.identify(sfid, descriptor, gen) is not None and not check(_send(gen, "send", sfid, descriptor, 20, 40)):
            found.append((sfid, descriptor))
        if len(found) == 24:
            break
    return tuple(found)


_MATH = ((1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1), (10, 2), (12, 2), (13, 2), (12 | 16, 2), (1 | 64, 1), (1 | 128, 1))


def _send(gen: float, name: str, sfid: int, descriptor: int, payload: int, response: int, **more: Any) -> Instruction:
    row = opcodes.opcode(name, gen)
    assert row is not None
    sources: tuple[Operand, ...]
    if row.form == "sends":
        sources = (Operand("grf", "", payload), Operand("grf", "", payload + 8))
        more = {"extended": 1 << 6, **more}
        target = Operand("grf", "ud", response)
    else:
        sources, target = (reg(payload, "ud"),), dst(response, "ud")
        if "extended" in instruction_page("EU_SEND", gen):
            more = {"extended": 0, **more}
            sources = (Operand("grf", "ud", payload),)
    made = Instruction(gen, name, row.number, row.form, 8, sfid=sfid, descriptor=descriptor, dst=target, sources=sources)
    return replace(made, **more)


def end(gen: float) -> Instruction:
    """The message that ends the thread."""
    short = 1 << 20 if rules(gen).math == "message" else 1 << 25
    made = _send(gen, "send", SPAWNER, short, LAST_PAYLOAD, 0, eot=True, no_mask=True)
    return replace(made, dst=NULL)


# -- programs ------------------------------------------------------------------------------------------------------


@cache
def turns(gen: float) -> tuple[Cell, ...]:
    """The cells in the order programs take them: mixed, and always the same."""
    found = sorted(cells(gen))
    random.Random(int(gen * 2)).shuffle(found)
    return tuple(found)


class Writer:
    """Writes one program."""

    def __init__(self, gen: float, number: int) -> None:
        self.gen, self.number = gen, number
        self.rng = random.Random(f"{gen:g} {number}")
        self.maker = Maker(gen, self.rng)
        self.control = self._modes() if self.rng.random() < 0.6 else 0
        self.start = self.control
        self.known = sorted(row.name for row in straight(gen))
        self.flows = bool(number % 2)
        self.addressed = True  # whether address registers hold what they should
        self.aims = [turns(gen)[(number * TARGETS + index) % len(turns(gen))] for index in range(TARGETS)]

    def _modes(self) -> int:
        names = [name for name in MODES if mask(name, self.gen)]
        bits = sum(mask(name, self.gen) for name in names if self.rng.random() < (0.15 if name[0] == "a" else 0.4))
        return bits | self.rng.choice(sorted(roundings()))

    def straight(self) -> list[Item]:
        """The next instruction, with what it needs before it."""
        if self.aims and self.rng.random() < 0.85:
            return self._aimed(self.aims.pop())
        return self._any()

    def _aimed(self, cell: Cell) -> list[Item]:
        wants = cells(self.gen)[cell]
        found: list[Item] = []
        control = wants.get("control")
        if control is not None and control != self.control:
            found += self.write_control(control)
        for _ in range(4):
            made = self.maker.make(cell.opcode or self.rng.choice(("mov", "add", "and", "cmp")), wants)
            if made is None:
                break
            if cell in seen(made, mode(self.gen, self.control)):
                return found + self._with_addresses(made)
        return found + self._any()

    def _any(self) -> list[Item]:
        way = self.rng.random()
        if way < 0.06:
            return self.write_control(self._modes())
        if way < 0.12 and messages(self.gen):
            return [self._message()]
        if way < 0.14:
            return [self._wait()]
        if way < 0.15:
            return [instr(self.gen, "nop", size=1)]
        made = self.maker.make(self.rng.choice(self.known))
        return self._with_addresses(made) if made is not None else []

    def _with_addresses(self, made: Instruction) -> list[Item]:
        """Address registers are put right before they are used, or, where control flow may come from elsewhere, at once."""
        found: list[Item] = []
        if any(operand is not None and operand.indirect for operand in (made.dst, *made.sources)) and not self.addressed:
            found.append(self._addresses())
            self.addressed = True
        found.append(made)
        if made.dst is not None and made.dst.file == "arf" and made.dst.number == ADDRESS:
            self.addressed = self.flows
            found += [self._addresses()] if self.flows else []
        return found

    def _addresses(self) -> Instruction:
        count = self.maker.operands.addresses
        return instr(self.gen, "mov", arf(ADDRESS, "uw", 0, "0;1,1"), reg(TABLE, "uw", f"{count};{count},1"), size=count, no_mask=True)

    def write_control(self, bits: int) -> list[Item]:
        """Other modes, the bits that steer the thread apart."""
        own = mask("rounding_mode") | sum(mask(name, self.gen) for name in MODES)
        self.control = bits
        control, same = arf(CONTROL, "ud", 0, "0;1,1"), arf(CONTROL, "ud", 0, "0;1,0")
        how: dict[str, Any] = {"size": 1, "no_mask": True, "thread_control": SWITCH}
        cleared = instr(self.gen, "and", control, same, imm(~own & ALL_CHANNELS, "ud"), **how)
        return [cleared, instr(self.gen, "or", control, same, imm(bits, "ud"), **how)]

    def _message(self) -> Instruction:
        sfid, descriptor = self.rng.choice(messages(self.gen))
        names = [name for name in ("send", "sendc", "sends", "sendsc") if opcodes.opcode(name, self.gen)]
        more: dict[str, Any] = {"no_mask": self.rng.random() < 0.3, "quarter": 0}
        if self.rng.random() < 0.4:
            more |= {"predicate": 1, "predicate_invert": self.rng.random() < 0.5, "flag_sub": self.rng.randrange(2)}
        made = _send(self.gen, self.rng.choice(names), sfid, descriptor, self.rng.randint(10, 40), self.rng.randint(60, 100), **more)
        if rules(self.gen).math == "message":
            made = replace(made, base_mrf=self.rng.randint(1, 8))
        return made if not check(made) else instr(self.gen, "nop", size=1)

    def _wait(self) -> Instruction:
        count = arf(0x90, "ud", 0, "0;1,0")
        return instr(self.gen, "wait", replace(count, horizontal=1), count, NULL, size=1, no_mask=True)

    # -- whole programs --------------------------------------------------------------------------------------------

    def write(self) -> Case:
        items = self._flow() if self.flows else self._line()
        return Case(self.gen, tuple(items), self.dispatch, self.start, self.rng.getrandbits(32), self.compact)

    def _line(self) -> list[Item]:
        self.dispatch = self.rng.choice((ALL_CHANNELS, ALL_CHANNELS, 0xFFFF, 0xFF, self.rng.getrandbits(32) | 1))
        self.compact = self.rng.random() < 0.3
        items: list[Item] = []
        while self.aims:
            items += self.straight()
        return [*items, end(self.gen)]

    def _flow(self) -> list[Item]:
        width = self.rng.choice((8, 16) if rules(self.gen).flow == "stack" else (8, 16, 16, 32))
        self.dispatch = self.rng.choice(((1 << width) - 1, self.rng.getrandbits(width) | 1 << self.rng.randrange(width)))
        self.compact = self.rng.random() < 0.3
        single = rules(self.gen).flow == "channel" and self.rng.random() < 0.15
        if single:
            self.start |= mask("single_program_flow")
        if self.rng.random() < 0.15:
            self.start |= mask("vector_mask_enable")
        flow = Flow(self.gen, self.rng, width, single, self._few, self.compact)
        items = flow.program(4)
        while self.aims:
            items += self.straight()
        return [*items, end(self.gen), *flow.tail()]

    def _few(self) -> list[Item]:
        return self.straight() if self.rng.random() < 0.7 else []


@cache
def generate(gen: float, number: int) -> Case:
    """The program of a number: always the same."""
    return Writer(gen, number).write()
