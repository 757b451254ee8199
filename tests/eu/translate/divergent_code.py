"""Instructions of random kernels whose channels part, on values that stand in slots: a lane for each channel, side by side, in a type of
one size.

Most compute under the normal mask; some are predicated, NoMask, read across lanes, or are any legal instruction on the same registers.
Floats stay between 0 and 1 once something was computed with them, so that no NaN appears, whose bits are anybody's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from softgen.eu.check.restrictions import check
from softgen.eu.isa import opcodes, types
from softgen.eu.isa.instruction import Instruction, Operand
from tests.eu.random_programs.flow import Item
from tests.eu.random_programs.instructions import Maker
from tests.eu.semantics.build import NULL, arf, dst, imm, instr, reg, scalar

REGISTER = 32
OWN = 1  # register of the items' numbers
FIRST, LAST = 12, 75  # registers of slots; a few more with temporary ones
UNIFORM, AREAS = 76, (78, 82, 86, 90, 95)  # uniforms; payloads of messages, not all of them side by side
ROOM, RESULT, BLOCK_AREA, BARRIER_AREA = 100, 104, 108, 110
INDEX = 8  # the slot of where an item's data begins, in bytes
COUNTERS = 112
TEMPORARY = 4  # slots
ITEMS = 512  # room for items in each row of a buffer
ROWS, BLOCK_ROW = 24, 18
INTEGERS = {1: ("ub",), 2: ("w", "uw"), 4: ("d", "ud"), 8: ("q", "uq")}
SCALAR, SWITCH = "0;1,0", 2
DATA_CACHE, SPAWNER, GATEWAY = 0xC, 7, 3
OWORDS = 0xA  # data port 0
WEIRD = (
    "mov",
    "add",
    "and",
    "or",
    "xor",
    "sel",
    "cmp",
    "shl",
    "shr",
    "asr",
    "avg",
    "not",
    "lzd",
    "cbit",
    "bfe",
    "bfi2",
    "sad2",
    "sada2",
    "mul",
    "addc",
    "csel",
    "bfrev",
    "fbl",
)
PREDICATES = ((1, 1), (1, 1), (1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 4), (7, 4), (8, 8), (9, 8), (10, 16), (11, 16))


@dataclass(frozen=True)
class Slot:
    kind: str
    start: int  # bytes

    @property
    def size(self) -> int:
        return types.size(self.kind)


class Code:
    """Writes instructions of one kernel."""

    widths: tuple[int, ...] = (8, 16, 16, 32)

    def __init__(self, gen: float, number: int) -> None:
        self.gen, self.rng = gen, random.Random(f"parting {gen:g} {number}")
        self.maker = Maker(gen, self.rng)
        self.width = self.rng.choice(self.widths)
        self.strange = self.rng.choice((0.0, 0.1, 0.2, 0.4))  # how often lanes mix
        self.slots = list(self._slots())
        self.temporary = [self.slots.pop() for _ in range(TEMPORARY)]  # side by side
        self.kept = self.rng.sample(self.slots, self.rng.randint(2, 5))
        if not any(slot.size == 4 for slot in self.kept):
            self.kept.append(self.of_size(4)[0])

    def _slots(self) -> Iterator[Slot]:
        at = FIRST * REGISTER
        kinds = ["w", "uw", "d", "d", "ud", "d", "ud", "f", "f"]
        kinds += ["q"] * (self.width < 32
                          and self._legal(instr(self.gen, "add", dst(20, "q"), reg(20, "q", "4;4,1"), reg(24, "q", "4;4,1"))))
        self.rng.shuffle(kinds)
        last = ["d", "ud", "d", "f"][:TEMPORARY]
        for kind in [*kinds, *last]:
            yield Slot(kind, at)
            at += -(-types.size(kind) * self.width // REGISTER) * REGISTER
            at += self.rng.choice((0, 0, 0, REGISTER)) if self.width < 32 else 0

    def _legal(self, made: Instruction) -> bool:
        return not check(made)

    def of_size(self, size: int) -> list[Slot]:
        return [slot for slot in self.slots if slot.size == size and slot.kind != "f"]

    # -- operands ------------------------------------------------------------------------------------------------------

    def _chunks(self, *slots: Slot, least: int = 8) -> list[tuple[int, int]]:
        """First channel and size of the instructions that cover all channels."""
        most = min(64 // max([2, *(slot.size for slot in slots)]), self.width)
        size = self.rng.choice([value for value in (8, 16, 16, 32) if least <= value <= most] or [most])
        if self.rng.random() < 0.04 and size == 8:
            size = 4
        return [(first, size) for first in range(0, self.width, size)]

    def _source(self, slot: Slot, first: int, size: int, kind: str = "") -> Operand:
        at = slot.start + first * slot.size
        row = min(size, REGISTER // slot.size, 16)
        row = min(row, 8) if slot.size >= 4 else row
        return reg(at // REGISTER, kind or slot.kind, f"{row};{row},1", at % REGISTER)

    def _target(self, slot: Slot, first: int, kind: str = "") -> Operand:
        at = slot.start + first * slot.size
        return dst(at // REGISTER, kind or slot.kind, 1, at % REGISTER)

    def _where(self, first: int) -> dict[str, int]:
        return {"quarter": first // 8, "nibble": first % 8 // 4}

    def _other(self, slot: Slot, first: int, size: int) -> Operand:
        """A second source for what a slot holds."""
        way, rng = self.rng.random(), self.rng
        if slot.kind == "f":
            return self._source(rng.choice([slot for slot in self.slots if slot.kind == "f"]), first, size)
        if way < 0.25 and slot.size < 8:
            value = rng.choice((1, 3, 7, rng.getrandbits(15), rng.getrandbits(slot.size * 8 - 1)))
            return imm(value * 0x10001 if slot.size == 2 else value, slot.kind)
        if way < 0.35 and slot.size == 4:
            return scalar(UNIFORM, slot.kind, 4 * rng.randrange(8))
        if way < 0.35 + self.strange:
            return scalar(
                rng.choice(self.of_size(slot.size)).start // REGISTER, slot.kind, slot.size * rng.randrange(REGISTER // slot.size)
            )
        return self._source(rng.choice(self.of_size(slot.size)), first, size)

    # -- instructions --------------------------------------------------------------------------------------------------

    def body(self) -> list[Item]:
        if self.rng.random() < 0.2:
            return []
        return [item for _ in range(self.rng.choice((1, 1, 2, 3))) for item in self.some()]

    def some(self) -> list[Item]:
        rng, way = self.rng, self.rng.random()
        if rng.random() < self.strange:
            return rng.choice(
                (self.weird, self.dot, self.block_write, self.block_write, self.no_mask, self.seen, self.seen, self.seen, self.seen)
            )()
        if way < 0.12:
            return self.load(rng.choice(self.of_size(4)))
        if way < 0.2:
            return self.store(rng.choice(self.of_size(4)))
        if way < 0.25:
            return self.compare(self._flag())
        if way < 0.28:
            return [
                instr(
                    self.gen,
                    "add",
                    dst(UNIFORM, "d", 1, 4 * rng.randrange(8)),
                    scalar(UNIFORM, "d", 4 * rng.randrange(8)),
                    imm(5),
                    size=1,
                    no_mask=True,
                )
            ]
        if way < 0.36:
            return self.convert()
        return self.compute()

    def _flag(self) -> dict[str, int]:
        return {"flag": self.rng.randrange(2), "flag_sub": self.rng.randrange(2) if self.width < 32 else 0}

    def _predicated(self, size: int) -> dict[str, Any]:
        if self.rng.random() < 0.75:
            return {}
        known = [code for code, least in PREDICATES if least <= size and (code not in (2, 3) or self.width < 32)]
        return {"predicate": self.rng.choice(known), "predicate_invert": self.rng.random() < 0.5, **self._flag()}

    def compute(self, **more: Any) -> list[Item]:
        rng = self.rng
        slot = rng.choice(self.slots)
        alike = [candidate for candidate in self.slots if candidate.size == slot.size and (candidate.kind == "f") == (slot.kind == "f")]
        a = rng.choice(alike)
        names = ("add", "mul", "sel", "mov") if slot.kind == "f" else ("add", "add", "mov", "and", "or", "xor", "sel", "shl", "not", "asr")
        name, chunks = rng.choice(names), self._chunks(slot)
        given = {**self._predicated(chunks[0][1]), **more}
        if name == "sel":
            given = {**more, **({"condition": rng.choice((4, 5))} if rng.random() < 0.4 else {"predicate": 1, **self._flag()})}
        if slot.kind == "f" and name in ("add", "mul"):
            given["saturate"] = True
        if rng.random() < 0.15 and name in ("add", "and", "or") and not given.get("predicate"):
            given |= {"condition": rng.randint(1, 6), **self._flag()}
        found: list[Item] = []
        for first, size in chunks:
            sources = [self._source(a, first, size)]
            if name not in ("mov", "not"):
                sources.append(self._other(slot, first, size))
            if name in ("shl", "asr"):
                sources[1] = imm(rng.randrange(8) * (0x10001 if slot.size == 2 else 1), "uw" if slot.size == 2 else "ud")
            made = instr(self.gen, name, self._target(slot, first), *sources, size=size, **self._where(first), **given)
            found.append(made)
        return found if all(isinstance(item, str) or self._legal(item) for item in found) else self.fill(slot)

    def fill(self, slot: Slot) -> list[Item]:
        """A slot that gets a number."""
        if slot.size == 8 or slot.kind == "f":
            return []
        value = self.rng.randrange(100)
        return [
            instr(
                self.gen,
                "mov",
                self._target(slot, first),
                imm(value * 0x10001 if slot.size == 2 else value, slot.kind),
                size=size,
                **self._where(first),
            )
            for first, size in self._chunks(slot)
        ]

    def renew(self, slot: Slot) -> list[Item]:
        """A new value under the normal mask, whatever the old one was."""
        alike = [candidate for candidate in self.slots if candidate.size == slot.size and (candidate.kind == "f") == (slot.kind == "f")]
        source, more = self.rng.choice(alike), {"size": 0}
        found: list[Item] = []
        for first, more["size"] in self._chunks(slot):
            a = self._source(source, first, more["size"])
            if slot.size == 4 and slot.kind != "f":
                found.append(
                    instr(self.gen, "xor", self._target(slot, first), a, imm(self.rng.getrandbits(31), "d"), **more, **self._where(first))
                )
            else:
                found.append(instr(self.gen, "mov", self._target(slot, first), a, **more, **self._where(first)))
        return found

    def seen(self) -> list[Item]:
        """A temporary value, of which lanes of channels that are elsewhere are seen at once: by all, one by one, or by neighbours."""
        rng, slot, shown = self.rng, self.rng.choice(self.temporary), self.rng.choice(self.of_size(4))
        way = rng.choice(("scalar", "all", "next", "next", "dot"))
        items = self.renew(slot)
        if slot.kind == "f" and way != "dot" or way == "dot" and opcodes.opcode("dp4", self.gen) is None:
            way = "all"
        if way == "dot":
            slot = self.temporary[0]
            items = self.renew(slot)
            shown = Slot("f", RESULT * REGISTER)  # which is no number to go on with
        lane, step = rng.randrange(REGISTER // 4), rng.choice((4, REGISTER, REGISTER, 16))
        more = {"no_mask": True} if way == "all" or rng.random() < 0.2 else {}
        for first, size in self._chunks(slot, shown):
            name, sources = "mov", [self._source(slot, first, size, shown.kind)]
            if way == "scalar":
                sources = [scalar(slot.start // REGISTER, shown.kind, 4 * lane)]
            elif way == "next":
                sources = [self._source(Slot(shown.kind, slot.start + step), first, size)]
            elif way == "dot":
                name, sources = "dp4", sources * 2
            made = instr(self.gen, name, self._target(shown, first), *sources, size=size, **self._where(first), **more)
            if not self._legal(made):
                return items
            items.append(made)
        return items + self.store(shown, **more)

    def no_mask(self) -> list[Item]:
        return self.compute(no_mask=True)

    def convert(self) -> list[Item]:
        """From one size to another."""
        pairs = [
            (a, b)
            for a in self.slots
            for b in self.slots
            if a.size < b.size <= 4 or a.size == b.size == 4 and a.kind in "d" and b.kind == "f"
        ]
        a, b = self.rng.choice(pairs)
        given = self._predicated(8)
        found = [
            instr(self.gen, "mov", self._target(b, first), self._source(a, first, size), size=size, **self._where(first), **given)
            for first, size in self._chunks(a, b)
        ]
        return list(found) if all(map(self._legal, found)) else []

    def compare(self, flag: dict[str, int]) -> list[Item]:
        rng = self.rng
        slot = rng.choice(self.of_size(4) + self.of_size(2))
        condition, chunks = rng.randint(1, 6), self._chunks(slot)
        value = rng.choice((0, 1, 3, 4, 7, rng.getrandbits(8), rng.getrandbits(15), rng.getrandbits(8 * slot.size - 1)))
        way = rng.random()
        found: list[Item] = []
        for first, size in chunks:
            b = imm(value * 0x10001 if slot.size == 2 else value, slot.kind) if way < 0.6 else self._other(slot, first, size)
            target = arf(0, slot.kind, 0, "0;1,1")
            found.append(
                instr(
                    self.gen,
                    "cmp",
                    target,
                    self._source(slot, first, size),
                    b,
                    size=size,
                    condition=condition,
                    thread_control=SWITCH,
                    **flag,
                    **self._where(first),
                )
            )
        return found

    def weird(self) -> list[Item]:
        """Any legal instruction, on the registers that there are."""
        wants = {"exec_size": self.rng.choice([size for size in (1, 4, 8, 16) if size <= self.width])} if self.rng.random() < 0.7 else {}
        name = self.rng.choice([name for name in WEIRD if opcodes.opcode(name, self.gen)])
        made = self.maker.make(name, wants)
        if made is None or not all(self._tame(operand) for operand in (made.dst, *made.sources)) or made.acc_write:
            return []
        moved = replace(made, dst=self._moved(made.dst), sources=tuple(self._moved(operand) for operand in made.sources))
        return [moved] if self._legal(moved) else []

    def _tame(self, operand: Operand | None) -> bool:
        if operand is None or operand.indirect or operand.file == "arf" and operand.number or operand.special:
            return False
        return operand.type in ("ub", "b", "uw", "w", "ud", "d", "uq", "q", "v", "uv")

    def _moved(self, operand: Operand | None) -> Any:
        if operand is None or operand.file != "grf":
            return operand
        floats = {
            slot.start // REGISTER + more
            for slot in (*self.slots, *self.temporary)
            if slot.kind == "f"
            for more in range(4 * self.width // REGISTER)
        }
        known = [number for number in range(FIRST, LAST - 8) if not floats & set(range(number, number + 8))]
        return replace(operand, number=self.rng.choice(known or [ROOM]))

    def dot(self) -> list[Item]:
        """Four lanes become one."""
        name = self.rng.choice(("dp4", "dp3", "dp2", "dph"))
        if opcodes.opcode(name, self.gen) is None:
            return []
        known = [slot for slot in self.slots if slot.kind == "f"]
        slots = [self.rng.choice(known) for _ in range(3)] if known else []
        found = (
            [
                instr(
                    self.gen,
                    name,
                    self._target(slots[0], first),
                    self._source(slots[1], first, size),
                    self._source(slots[2], first, size),
                    size=size,
                    saturate=True,
                    **self._where(first),
                )
                for first, size in self._chunks(*slots)
            ]
            if slots
            else []
        )
        return list(found) if all(map(self._legal, found)) else []

    # -- messages ------------------------------------------------------------------------------------------------------

    def _send(self, sfid: int, descriptor: int, target: Operand, payload: int, size: int, first: int, **more: Any) -> Instruction:
        row = opcodes.opcode("send", self.gen)
        assert row is not None
        return Instruction(
            self.gen,
            "send",
            row.number,
            row.form,
            size,
            sfid=sfid,
            descriptor=descriptor,
            dst=target,
            sources=(Operand("grf", "ud", payload, vertical=8, width=8, horizontal=1),),
            **self._where(first),
            **more,
        )

    def _address(self, area: int, row: int, first: int, size: int, **more: Any) -> Instruction:
        source = self._source(Slot("d", INDEX * REGISTER), first, size)
        return instr(self.gen, "add", dst(area, "d"), source, imm(4 * ITEMS * row), size=size, **self._where(first), **more)

    def load(self, slot: Slot) -> list[Item]:
        found: list[Item] = []
        for first, size in self._chunks(slot):
            if size < 8:
                return []
            area, row = self.rng.choice(AREAS), self.rng.randrange(ROWS)
            given = self._predicated(size) if self.rng.random() < 0.5 else {}
            descriptor = 0x04205E00 if size == 16 else 0x02106E00
            found.append(self._address(area, row, first, size))
            found.append(self._send(DATA_CACHE, descriptor, self._target(slot, first, "ud"), area, size, first, **given))
        return found

    def store(self, slot: Slot, row: int | None = None, **more: Any) -> list[Item]:
        found: list[Item] = []
        row = self.rng.randrange(ROWS // 2) if row is None else row
        for first, size in self._chunks(slot):
            if size < 8:
                return []
            area = self.rng.choice(AREAS)
            data = dst(area + size // 8, "d")
            found.append(self._address(area, row, first, size, **more))
            found.append(instr(self.gen, "mov", data, self._source(slot, first, size, "d"), size=size, **self._where(first), **more))
            found.append(self._send(DATA_CACHE, 0x08025E01 if size == 16 else 0x04026E01, NULL, area, size, first, **more))
        return found

    def block_write(self) -> list[Item]:
        """All of a register for any channel, at a place of the thread's own."""
        slot = self.rng.choice(self.of_size(4))
        head, data = dst(BLOCK_AREA, "ud"), dst(BLOCK_AREA + 1, "ud")
        base = dst(BLOCK_AREA, "d", 1, 8)
        return [
            instr(self.gen, "mov", head, imm(0, "ud"), size=8, no_mask=True),
            instr(self.gen, "shr", base, scalar(UNIFORM + 1, "d"), imm(1, "ud"), size=1, no_mask=True),
            instr(self.gen, "add", base, scalar(BLOCK_AREA, "d", 8), imm(ITEMS * BLOCK_ROW // 4), size=1, no_mask=True),
            instr(self.gen, "mov", data, self._source(slot, 0, 8, "ud"), size=8),
            self._send(OWORDS, 2 << 25 | 1 << 19 | 8 << 14 | 2 << 8 | 1, NULL, BLOCK_AREA, 8, 0),
        ]
