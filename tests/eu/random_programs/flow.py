"""Random control flow, structured so that it ends: whatever its channels do, they meet again.

Each statement leaves the channels that come to it, but for those that leave the loop or the thread, together behind it. Loops count down a
word per channel before anything else, and leave when it is used up, so `cont` cannot keep them going. Statements are written into a list
of instructions and labels; the jumps of a branch are names of labels.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from softgen.eu.isa import labels
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.opcodes import opcode
from softgen.eu.isa.rules import rules
from tests.eu.semantics.build import arf, branch, dst, imm, instr, reg, scalar

COUNTERS = 112  # registers that programs leave alone: words of loops, two registers for each nesting
SCALARS, RETURNS, DISTANCES = 4, 5, 3  # words of jmpi's own loops; what calls leave, a register for each nesting; how far jmpi goes
DEEPEST, ROUTINES = 2, 2
NULL = arf(0, "w", 0, "0;1,1")
SWITCH = 2
Item = Instruction | str


@dataclass(frozen=True)
class Inside:
    """Where a statement stands."""

    end: str  # the label channels come to that find nobody behind a branch
    depth: int = 0
    loop: str = ""  # label of the innermost loop's while, and of what is behind it
    after: str = ""
    ifs: int = 0  # masks pushed since that loop began
    routine: int = 0


Statement = Callable[[Inside], None]


class Flow:
    """Writes the statements of one program. `body` writes some straight instructions."""

    def __init__(self, gen: float, rng: random.Random, width: int, single: bool, body: Callable[[], list[Item]], movable: bool) -> None:
        self.gen, self.rng, self.width, self.single, self.body, self.movable = gen, rng, width, single, body, movable
        self.items: list[Item] = []
        self.routines: list[tuple[str, int, Inside]] = []
        self.count = 0
        self.halts = False
        self.stack = rules(gen).flow == "stack"

    def program(self, statements: int) -> list[Item]:
        """The statements, the place where halted channels meet, and after the end of the thread, which the caller adds, routines."""
        self.block(statements, Inside("halted"))
        self.items.append("halted")
        if self.halts:
            self.items += [branch(self.gen, "halt", "awake", "awake", size=self.width), "awake"]
        return self.items

    def tail(self) -> list[Item]:
        """Routines, which stand behind the end of the thread."""
        self.items = []
        while self.routines:
            name, register, where = self.routines.pop()
            self.items.append(name)
            self.block(2, where)
            back = (reg(register, "ud", "2;2,1"), reg(register, "ud", "2;2,1"))
            if self.rng.random() < 0.4:
                self._branch("ret", None, None, *back, **self._predicate())
                self.block(1, where)
            self.items.append(f"{name} end")
            self._branch("ret", None, None, *back)
        return self.items

    def block(self, statements: int, where: Inside) -> None:
        for _ in range(statements):
            self.items += self.body()
            known = self._known(where)
            if known and where.depth < DEEPEST + 1 and self.rng.random() < 0.75:
                self.rng.choice(known)(where)
        self.items += self.body()

    def _known(self, where: Inside) -> list[Statement]:
        """What may stand here."""
        found: list[Statement] = [self._jump, self._break, self._continue, self._continue] if where.loop else [self._jump]
        if not self.stack:
            found = [*found, self._halt]
        if where.depth >= DEEPEST:
            return found
        found = [*found, self._if, self._if, self._loop, self._jump_back]
        if self.stack:
            return [*found, self._iff]
        found += [self._converge, self._converge_back]
        if opcode("goto", self.gen):
            found += [self._goto, self._goto_back]
        if where.routine < ROUTINES:
            found += [self._call]
        return found

    # -- small things ----------------------------------------------------------------------------------------------

    def _label(self, name: str) -> str:
        self.count += 1
        return f"{name} {self.count}"

    def _branch(self, name: str, jip: str | int | None, uip: str | int | None, *sources: Operand, **more: Any) -> None:
        row = opcode(name, self.gen)
        assert row is not None
        uip = uip if "uip" in row.shape else None
        if "pop" in row.shape:
            more.setdefault("pop", 0)
        self.items.append(branch(self.gen, name, jip, uip, *sources, **{"size": self.width, **more}))

    def _compare(self, a: Operand, b: Operand, condition: int, size: int, flag: dict[str, int], **more: Any) -> None:
        self.items.append(instr(self.gen, "cmp", NULL, a, b, size=size, condition=condition, thread_control=SWITCH, **flag, **more))

    def _words(self, number: int) -> Operand:
        return reg(number, "w", f"{min(self.width, 16)};{min(self.width, 16)},1" if self.width > 1 else "0;1,0")

    def _flag(self) -> dict[str, Any]:
        return {"flag": 0 if self.stack else self.rng.randrange(2), "flag_sub": self.rng.randrange(2) if self.width < 32 else 0}

    def _predicate(self) -> dict[str, Any]:
        """A flag that channels differ in, mostly set just before."""
        flag = self._flag()
        if self.rng.random() < 0.8:
            a, b = (self._words(self.rng.randint(10, 100)) for _ in range(2))
            self._compare(a, b, self.rng.randint(1, 6), self.width, flag)
        group = [code for code, size in ((4, 2), (5, 2), (6, 4), (7, 4), (8, 8), (9, 8)) if size <= self.width]
        code = 1 if self.rng.random() < 0.7 else self.rng.choice(group)
        return {"predicate": code, "predicate_invert": self.rng.random() < 0.3, **flag}

    def _inner(self, where: Inside, end: str, **more: Any) -> Inside:
        return replace(where, end=end, depth=where.depth + 1, **more)

    # -- statements ------------------------------------------------------------------------------------------------

    def _if(self, where: Inside) -> None:
        other, end = self._label("else"), self._label("endif")
        inner = self._inner(where, end, ifs=where.ifs + 1)
        both = self.rng.random() < 0.6
        holds = self._predicate()
        if self.stack:
            self._branch("if", other if both else end, None, **holds)
        else:
            self._branch("if", other if both else end, other if both and self.single else end, **holds)
        self.block(1, replace(inner, end=other if both else end))
        if both and self.stack:
            self.items.append(other)
            self._branch("else", f"{end} after", None, pop=1)
            self.block(1, inner)
        elif both:
            self._branch("else", end, end)
            self.items.append(other)
            self.block(1, inner)
        self.items.append(end)
        if self.stack:
            self._branch("endif", 0, None, pop=1)
            self.items.append(f"{end} after")
        else:
            self._branch("endif", where.end, None)

    def _iff(self, where: Inside) -> None:
        after = self._label("after")
        self._branch("iff", after, None, **self._predicate())
        self.block(1, self._inner(where, after, ifs=where.ifs + 1))
        self._branch("endif", 0, None, pop=1)
        self.items.append(after)

    def _loop(self, where: Inside) -> None:
        """Counts down first and leaves when the count is used up."""
        top, bottom, after = self._label("loop"), self._label("while"), self._label("after")
        self._start_count(where)
        if self.stack:
            self.items.append(instr(self.gen, "do", arf(0), arf(0), arf(0), size=self.width))
        self.items.append(top)
        inner = self._inner(where, bottom, loop=bottom, after=after, ifs=0)
        flag = self._count_down(where, 6)
        self._leave("break", inner, predicate=1, **flag)
        self.block(self.rng.randint(1, 2), inner)
        holds = self._predicate() if self.rng.random() < 0.5 else {}
        self.items.append(bottom)
        self._branch("while", top, None, **holds)
        self.items.append(after)

    def _start_count(self, where: Inside) -> None:
        number = COUNTERS + 2 * where.depth
        turns = imm(self.rng.randint(1, 3) * 0x10001, "w")
        self.items.append(instr(self.gen, "mov", dst(number, "w"), turns, size=self.width))
        if self.rng.random() < 0.5:  # each channel its own number of turns
            own = instr(self.gen, "and", dst(number, "w"), self._words(self.rng.randint(10, 100)), imm(0x30003, "w"), size=self.width)
            self.items.append(own)

    def _count_down(self, where: Inside, condition: int) -> dict[str, int]:
        number, flag = COUNTERS + 2 * where.depth, self._flag()
        count = self._words(number)
        self.items.append(instr(self.gen, "add", dst(number, "w"), count, imm(0xFFFFFFFF, "w"), size=self.width))
        self._compare(count, imm(0, "w"), condition, self.width, flag)
        return flag

    def _again(self, where: Inside) -> dict[str, Any]:
        """A predicate for channels with turns left. Groups only such that a channel without turns never goes on for another's sake."""
        inverted = self.rng.random() < 0.4
        flag = self._count_down(where, 6 if inverted else 3)
        code = self.rng.choice((1, 1, 4 if inverted else 5, 6 if inverted else 7))
        return {"predicate": code, "predicate_invert": inverted, **flag}

    def _leave(self, name: str, where: Inside, **holds: Any) -> None:
        if self.stack:
            self._branch(name, where.after if name == "break" else where.loop, None, pop=where.ifs, **holds)
        else:
            self._branch(name, where.end, where.loop, **holds)

    def _break(self, where: Inside) -> None:
        self._leave("break", where, **self._predicate())

    def _continue(self, where: Inside) -> None:
        self._leave("cont", where, **self._predicate())

    def _halt(self, where: Inside) -> None:
        self.halts = True
        self._branch("halt", where.end, "halted", **self._predicate())

    def _jump(self, where: Inside) -> None:
        """All channels over some instructions, by a number or by a register."""
        over, skipped = self._label("over"), self.body()
        flag = self._flag()
        holds: dict[str, Any] = {}
        if self.rng.random() < 0.7:
            holds = {"predicate": 1, "predicate_invert": self.rng.random() < 0.5, **flag}
        plain = len(skipped) and all(isinstance(item, Instruction) for item in skipped)
        if self.rng.random() < 0.4 and not self.movable and plain:
            count = len(skipped) * labels.NATIVE // labels.unit(self.gen, "jmpi")
            self.items.append(instr(self.gen, "mov", dst(DISTANCES, "d"), imm(count, "d"), size=1, no_mask=True))
            by = scalar(DISTANCES, "d")
            self.items.append(branch(self.gen, "jmpi", None, None, arf(0xA0, "ud", 0, "0;1,0"), by, size=1, no_mask=True,
                                     target=arf(0xA0, "ud", 0, "0;1,0"), **holds))  # fmt: skip
        else:
            self.items.append(branch(self.gen, "jmpi", over, size=1, no_mask=True, **holds))
        self.items += [*skipped, over]

    def _jump_back(self, where: Inside) -> None:
        top, flag = self._label("again"), self._flag()
        target, count = dst(SCALARS, "w", 1, 2 * where.depth), scalar(SCALARS, "w", 2 * where.depth)
        self.items += [instr(self.gen, "mov", target, imm(self.rng.randint(1, 2) * 0x10001, "w"), size=1, no_mask=True), top]
        self.items.append(instr(self.gen, "add", target, count, imm(0xFFFFFFFF, "w"), size=1, no_mask=True))
        self.block(1, replace(where, depth=where.depth + 1, end=where.end))
        self._compare(count, imm(0, "w"), 3, 1, flag, no_mask=True)
        self.items.append(branch(self.gen, "jmpi", top, size=1, no_mask=True, predicate=1, **flag))

    # -- branches of later generations -----------------------------------------------------------------------------

    def _converge(self, where: Inside) -> None:
        meet = self._label("meet")
        self._branch("brc", meet, meet, **self._predicate())
        self.block(1, self._inner(where, meet))
        self.items.append(meet)

    def _converge_back(self, where: Inside) -> None:
        """Channels with turns left go back, the others wait behind the branch."""
        top, bottom = self._label("top"), self._label("bottom")
        self._start_count(where)
        self.items.append(top)
        self.block(1, self._inner(where, bottom, loop=""))
        self.items.append(bottom)
        self._branch("brd", top, None, **self._again(where))

    def _goto(self, where: Inside) -> None:
        meet = self._label("join")
        self._branch("goto", meet, meet, **self._predicate())
        self.block(1, self._inner(where, meet))
        self.items.append(meet)
        self._branch("join", where.end, None)

    def _goto_back(self, where: Inside) -> None:
        top, bottom, meet = self._label("top"), self._label("bottom"), self._label("join")
        self._start_count(where)
        self.items.append(top)
        self.block(1, self._inner(where, bottom, loop=""))
        self.items.append(bottom)
        self._branch("goto", meet, top, branch_control=True, **self._again(where))
        self.items.append(meet)
        self._branch("join", where.end, None)

    def _call(self, where: Inside) -> None:
        """A routine of this call alone."""
        name, register = self._label("routine"), RETURNS + where.routine
        absolute = opcode("calla", self.gen) is not None and not self.movable and self.rng.random() < 0.4
        holds = self._predicate() if self.rng.random() < 0.6 else {}
        self._branch("calla" if absolute else "call", name, None, target=dst(register, "ud"), **holds)
        self.routines.append((name, register, Inside(f"{name} end", where.depth + 1, routine=where.routine + 1)))
