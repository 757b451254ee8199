"""Random kernels whose channels part, made to show what lanes of channels that are elsewhere are good for.

    kernel = generate(9, 17)            # the 17th of generation 9: always the same
    kernel.job().run(groups=…)          # a dispatch of several groups of several threads

Every thread loads data of its own, branches on it, computes, loads and stores on the way (divergent_code.py), and at its end stores a
few of its values; the others are dead.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from softgen.eu.encoding import program
from softgen.eu.isa.instruction import Operand
from softgen.eu.text.mesa import format as mesa_format
from tests.eu.random_programs.cases import Case
from tests.eu.random_programs.flow import DEEPEST, Flow, Inside, Item, Statement
from tests.eu.semantics.build import NULL, arf, dst, imm, instr, reg, scalar
from tests.eu.translate.divergent_code import (
    BARRIER_AREA,
    COUNTERS,
    GATEWAY,
    INDEX,
    ITEMS,
    OWN,
    PREDICATES,
    REGISTER,
    RESULT,
    ROOM,
    ROWS,
    SCALAR,
    SPAWNER,
    UNIFORM,
    Code,
    Slot,
)
from tests.gpgpu.job import CODE, Job, words

GPUS = {8: "bdw", 9: "skl", 11: "icl"}


@dataclass(frozen=True)
class Kernel:
    """A program and what it is dispatched with."""

    gen: float
    width: int
    items: tuple[Item, ...]
    seed: int  # of the data
    threads: int
    groups: int
    right: int
    even: bool  # items are numbered in order
    sizes: tuple[int, int] = (4 * ITEMS * ROWS,) * 2  # of the buffers

    def code(self) -> bytes:
        return Case(self.gen, self.items, 0, 0, 0).program().code

    def job(self) -> Job:
        rng = random.Random(self.seed)
        numbers = list(range(self.threads * self.width))
        if not self.even:
            rng.shuffle(numbers)
        own = [
            words(*numbers[first : first + self.width]).ljust(-(-2 * self.width // REGISTER) * REGISTER, b"\0")
            for first in range(0, len(numbers), self.width)
        ]
        small = b"".join(
            rng.choice((rng.getrandbits(32), rng.getrandbits(3), rng.getrandbits(8))).to_bytes(4, "little") for _ in range(ITEMS * ROWS)
        )
        made = Assembled(
            "",
            [small[: self.sizes[0]], bytes(self.sizes[1])],
            GPUS[int(self.gen)],
            self.width,
            (self.threads, 1, 1),
            ends=(self.groups, 1, 1),
            right=self.right,
            shared=rng.randbytes(REGISTER),
            own=own,
            descriptor={"barrier_enable": 1},
        )
        made.code = self.code()
        return made

    def text(self) -> str:
        said = [
            f"gen {self.gen:g}, SIMD{self.width}, {self.groups} groups of {self.threads} threads, mask {self.right:#x}, even {self.even}"
        ]
        for offset, _, made in program.instructions(self.code(), self.gen):
            said.append(f"{offset:5x}: {' '.join(mesa_format.text(made).split())}")
        return "\n".join(said)


@dataclass
class Assembled(Job):
    """A job whose kernel is code already."""

    code: bytes = field(default=b"", kw_only=True)

    def pieces(self) -> dict[int, bytes]:
        return {**super().pieces(), CODE: self.code}


class Parting(Flow):
    """Control flow that translations know, by what is in slots."""

    writer: Writer

    def _known(self, where: Inside) -> list[Statement]:
        found = [item for item in super()._known(where) if getattr(item, "__name__", "") != "_call"]
        return [*found, self._skipped, self._skipped] if where.depth < DEEPEST else found

    def _skipped(self, where: Inside) -> None:
        """Channels that leave do not come by a write that all others come by."""
        slot = self.rng.choice(self.writer.kept)
        other, end = self._label("else"), self._label("endif")
        inner = self._inner(where, end, ifs=where.ifs + 1)
        self._branch("if", other, end, **self._predicate())
        self.items += [*self.writer.body(), *self.writer.renew(slot)]
        self._branch("else", end, end)
        self.items.append(other)
        self.rng.choice((self._halt, self._break) if where.loop else (self._halt,))(inner)
        self.items.append(end)
        self._branch("endif", f"{end} after", None)  # nobody is led past what follows
        self.items += [f"{end} after", *self.writer.renew(slot)]

    def _words(self, number: int) -> Operand:
        if number < COUNTERS:
            number = self.rng.choice(self.writer.of_size(2)).start // REGISTER
        return super()._words(number)

    def _predicate(self) -> dict[str, Any]:
        flag = self._flag()
        if self.rng.random() < 0.85:
            self.items += self.writer.compare(flag)
        known = [code for code, size in PREDICATES if size <= self.width and (code not in (2, 3) or self.width < 32)]
        return {"predicate": self.rng.choice((1, 1, self.rng.choice(known))), "predicate_invert": self.rng.random() < 0.3, **flag}

    def _again(self, where: Inside) -> dict[str, Any]:
        flag = self._count_down(where, 3)
        return {"predicate": 1, "predicate_invert": False, **flag}


class Writer(Code):
    """Writes one kernel."""

    def write(self) -> Kernel:
        rng = self.rng
        threads, groups = rng.randint(1, 3), rng.randint(1, 3)
        flow = Parting(self.gen, rng, self.width, False, self.body, True)
        flow.writer = self
        flow.items = self._begin(threads)
        items = flow.program(rng.randint(2, 4)) + (self._barrier() if rng.random() < 0.3 else []) + self._finish()
        full = (1 << self.width) - 1
        right = full if rng.random() < 0.7 else rng.getrandbits(self.width) | 1 << rng.randrange(self.width)
        whole = 4 * ITEMS * ROWS
        sizes = [whole if rng.random() < 0.8 else rng.randrange(whole // 2, whole, 4) for _ in range(2)]
        return Kernel(
            self.gen, self.width, tuple(items), rng.getrandbits(32), threads, groups, right, rng.random() < 0.6, (sizes[0], sizes[1])
        )

    def _barrier(self) -> list[Item]:
        count = arf(0x90, "ud", 0, SCALAR)
        return [
            instr(self.gen, "and", dst(BARRIER_AREA, "ud"), scalar(0, "ud", 8), imm(0x8F000000, "ud"), size=8, no_mask=True),
            self._send(GATEWAY, 0x02008004, NULL, BARRIER_AREA, 8, 0, no_mask=True),
            instr(self.gen, "wait", replace(count, horizontal=1), count, NULL, size=1, no_mask=True),
        ]

    def _begin(self, threads: int) -> list[Item]:
        """Numbers of items, uniforms, and data in some of the slots."""
        after, index = OWN + -(-2 * self.width // REGISTER), Slot("d", INDEX * REGISTER)
        ids = Slot("uw", OWN * REGISTER)
        items: list[Item] = [
            instr(self.gen, "mov", dst(127, "ud"), reg(0, "ud"), size=8, no_mask=True),
            instr(self.gen, "mov", dst(UNIFORM, "ud"), reg(after, "ud"), size=8, no_mask=True),
            instr(self.gen, "mul", dst(UNIFORM + 1, "d"), scalar(0, "d", 4), imm(threads * self.width * 0x10001, "w"), size=1,
                  no_mask=True),
        ]
        assert after < INDEX
        for first, size in self._chunks(index):
            where = {**self._where(first), "no_mask": True}  # of all items, so that messages may be sent for all
            items.append(instr(self.gen, "mov", self._target(index, first), self._source(ids, first, size), size=size, **where))
            items.append(
                instr(
                    self.gen,
                    "add",
                    self._target(index, first),
                    self._source(index, first, size),
                    scalar(UNIFORM + 1, "d"),
                    size=size,
                    **where,
                )
            )
            items.append(
                instr(self.gen, "shl", self._target(index, first), self._source(index, first, size), imm(2, "ud"), size=size, **where)
            )
        items.append(instr(self.gen, "mov", dst(UNIFORM + 1, "d"), scalar(INDEX, "d"), size=1, no_mask=True))
        loaded = [slot for slot in self.of_size(4) if self.rng.random() < 0.7] or self.of_size(4)[:1]
        for slot in loaded:
            items += self.load(slot)
        for slot in self.of_size(2):
            source = self.rng.choice(loaded)
            items += (
                [
                    instr(
                        self.gen,
                        "mov",
                        self._target(slot, first),
                        replace(
                            self._source(source, first, size, slot.kind),
                            vertical=size * 2 if size < 16 else 16,
                            width=min(size, 8),
                            horizontal=2,
                        ),
                        size=size,
                        **self._where(first),
                    )
                    for first, size in self._chunks(source)
                ]
                if self.rng.random() < 0.3
                else self._narrowed(slot)
            )
        return items + (self._barrier() if self.rng.random() < 0.3 else [])

    def _narrowed(self, slot: Slot) -> list[Item]:
        """Words of each item's own, without reading dwords as words: its number, turned."""
        ids = Slot("uw", OWN * REGISTER)
        found: list[Item] = []
        factor = self.rng.choice((1, 3, 5, 77))
        for first, size in self._chunks(slot):
            found.append(
                instr(
                    self.gen,
                    "mul",
                    self._target(slot, first),
                    self._source(ids, first, size, slot.kind),
                    imm(factor * 0x10001, slot.kind),
                    size=size,
                    **self._where(first),
                )
            )
        return found

    def _finish(self) -> list[Item]:
        """Some of the slots go to memory, each to a row of its own."""
        items: list[Item] = []
        for row, slot in enumerate(self.kept, ROWS // 2):
            if slot.size == 4:
                items += self._stored(slot, row)
            else:
                room = Slot("d", ROOM * REGISTER)
                items += self._widened(slot, room)
                items += self._stored(room, row)
        return [*items, self._send(SPAWNER, 1 << 25 | 1 << 4, NULL, 127, 8, 0, eot=True, no_mask=True)]

    def _stored(self, slot: Slot, row: int) -> list[Item]:
        while not (found := self.store(slot, row)):
            pass
        return found

    def _widened(self, slot: Slot, room: Slot) -> list[Item]:
        found: list[Item] = []
        for first, size in self._chunks(slot, room):
            source, at = self._source(slot, first, size), self._where(first)
            if slot.size == 8:  # dwords of qwords go to every other place first
                found.append(instr(self.gen, "mov", dst(RESULT, "d", 2), source, size=size, **at))
                source = reg(RESULT, "d", "8;4,2")
            found.append(instr(self.gen, "mov", self._target(room, first), source, size=size, **at))
        return found


@cache
def generate(gen: float, number: int) -> Kernel:
    return Writer(gen, number).write()
