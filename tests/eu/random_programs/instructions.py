"""Random legal instructions, made from the opcode table: an opcode, what is wanted of it, and chance for the rest.

    made = Maker(9, random.Random(1)).make("add", {"dst_type": "w", "region": (0, "vxh")})

An instruction is legal when it breaks no row of restrictions.table and the reference executes it. What was tried in vain leaves its reasons
in `reasons`: the rows that were broken, or what the reference said.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from softgen.errors import SoftgenError
from softgen.eu.check.restrictions import check
from softgen.eu.encoding.controls import control_fields
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.interpreter import InterpreterState
from softgen.eu.isa import opcodes, registers, types
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.opcodes import Opcode
from softgen.eu.isa.rules import execution_type, rules
from softgen.eu.semantics import OPS
from softgen.eu.semantics.step import step
from softgen.eu.thread.regions import destination_offsets, source_offsets
from softgen.eu.thread.state import ThreadState
from tests.eu.random_programs.operands import (
    ADDRESS,
    FLAG,
    SOURCES_1,
    SOURCES_16,
    TARGETS_1,
    TARGETS_16,
    THREE_1,
    THREE_16,
    Operands,
)

Wants = Mapping[str, Any]

TRIES = 60
EXECUTED = {"w": 2, "d": 4, "q": 8, "hf": 2, "f": 4, "df": 8}  # bytes of an execution type
COMPARES = frozenset({"cmp", "cmpn", "csel"})
ADDRESSED = (768, 3200)  # bytes that address registers with their offsets lead to
SWITCH = 2
NULL = Operand("arf", "ud")
CONDITIONS = (1, 2, 3, 4, 5, 6, 8, 9)
PREDICATES = tuple(range(1, 14))
WANTED = ("predicate", "predicate_invert", "condition", "saturate", "quarter", "nibble", "no_mask", "acc_write", "flag", "flag_sub")


@cache
def straight(gen: float) -> tuple[Opcode, ...]:
    """The opcodes of a generation that compute."""
    return tuple(row for row in opcodes.of_generation(gen) if row.name in OPS)


@cache
def functions(gen: float) -> dict[str, opcodes.MathFunction]:
    return {function.name: function for (_, known), function in opcodes.table().functions.items() if known == gen}


@cache
def forms(row: Opcode) -> tuple[bool, ...]:
    """Whether the instruction has align1, align16 or both."""
    if row.form == "three_source":
        return (True,)
    return (False, True) if "align16" in control_fields(row).names and row.name not in ("movi", "smov", "pln", "line", "dim") else (False,)


class Maker:
    """Makes instructions of one generation."""

    def __init__(self, gen: float, rng: random.Random) -> None:
        self.gen, self.rng = gen, rng
        self.operands = Operands(gen, rng)
        self.rules = rules(gen)
        self.scratch = InterpreterState(ThreadState(gen))
        self.reasons: Counter[str] = Counter()

    def make(self, name: str, wants: Wants | None = None, tries: int = TRIES) -> Instruction | None:
        """An instruction that is legal, with everything that is wanted of it; None where none was found."""
        row = opcodes.opcode(name, self.gen)
        assert row is not None, f"{name} is not an instruction of gen {self.gen:g}"
        self.reasons.clear()
        for _ in range(tries):
            made = self._draw(row, wants or {})
            if made is not None and self._is_legal(made):
                return made
        return None

    def _is_legal(self, inst: Instruction) -> bool:
        broken = check(inst)
        if broken:
            self.reasons.update(f"restriction {row}" for row in broken)
            return False
        try:
            if decode(encode(inst), self.gen) != inst:
                self.reasons["the encoding has no room for it"] += 1
                return False
            self.scratch.thread.arf["a"].view("u2")[:] = sum(ADDRESSED) // 2
            if not _inside(inst):
                self.reasons["outside the registers"] += 1
                return False
            step(self.scratch, inst)
        except SoftgenError as error:
            self.reasons[f"not simulated: {error}"] += 1
            return False
        return True

    # -- drawing ---------------------------------------------------------------------------------------------------

    def _draw(self, row: Opcode, wants: Wants) -> Instruction | None:
        known = control_fields(row).names
        align16 = self._align16(row, wants)
        function = self._function(row, wants)
        kinds = self._types(row, wants, function)
        if kinds is None:
            self.reasons["the table has no such types"] += 1
            return None
        size = wants.get("exec_size") or self._size(row, kinds, align16)
        operands = self._operands(row, wants, kinds, size, align16, function)
        given = self._controls(row, wants, size, align16, function)
        made = Instruction(self.gen, row.name, row.number, row.form, **{name: value for name, value in given.items() if name in known},
                           dst=operands[0], sources=tuple(operands[1:]))  # fmt: skip
        return self._settled(made, wants)

    def _align16(self, row: Opcode, wants: Wants) -> bool:
        known = forms(row)
        if row.form != "basic":
            return known[0] and row.form == "three_source"
        if (kind := wants.get("region")) is not None:
            return len(known) > 1 and kind[1] in (*SOURCES_16, *TARGETS_16)
        if "align16" in wants:
            return bool(wants["align16"])
        return self.rng.random() < 0.25 and len(known) > 1

    def _function(self, row: Opcode, wants: Wants) -> int:
        if "function" not in row.takes:
            return 0
        name = wants.get("function") or self.rng.choice(sorted(functions(self.gen)))
        return functions(self.gen)[name].number

    def _types(self, row: Opcode, wants: Wants, function: int) -> tuple[str, list[str]] | None:
        """A destination type and one for each source, out of one row of what the table allows."""
        pairs = [pair for pair in row.legal if _fits(pair, wants)]
        if function:
            kind = opcodes.math_function(function, self.gen)
            integer = kind is not None and kind.name.startswith("int")
            pairs = [pair for pair in pairs if bool(pair[1] & {"d", "ud"}) == integer]
        if not pairs:
            return None
        to, given = self.rng.choice(pairs)
        first = self.rng.choice(sorted(given - {"nf"} or given))
        sources = [self.rng.choice((first, self.rng.choice(sorted(given)))) for _ in range(row.sources)]
        if "src_type" in wants:
            index, name = wants["src_type"]
            sources[index] = name
        return wants.get("dst_type") or self.rng.choice(sorted(to)), sources

    def _size(self, row: Opcode, kinds: tuple[str, list[str]], align16: bool) -> int:
        widest = max(types.size(name) for name in (kinds[0], *kinds[1]))
        sizes = [value for value in (1, 2, 4, 8, 8, 16, 16, 32) if value * widest <= 64]
        if row.name in ("line", "pln"):
            sizes = [8, 16]
        elif align16:
            sizes = [value for value in (4, 8, 8, 8, 16, 1) if value * widest <= 64]
        return self.rng.choice(sizes)

    def _operands(self, row: Opcode, wants: Wants, kinds: tuple[str, list[str]], size: int, align16: bool, function: int) -> list[Operand]:
        place, kind = wants.get("region", (None, ""))
        if row.form != "basic":
            return self._three(row, wants, kinds, kind, place)
        sources = [self._source(row, index, name, size, align16, kind if place == index else "") for index, name in enumerate(kinds[1])]
        if "shape" in wants:
            sources[0] = self.operands.source(kind, kinds[1][0], size, wants["shape"])
        pitch = EXECUTED.get(execution_type(source.type for source in sources), 2)
        if kinds[0] in ("f", "hf") and {"f", "hf"} & {source.type for source in sources}:
            pitch = types.size(kinds[0])
        plain = TARGETS_16 if align16 else TARGETS_1
        chosen = kind if place == "dst" else self._usual(plain)
        return [self.operands.target(chosen, kinds[0], size, pitch), *sources]

    def _usual(self, kinds: tuple[str, ...]) -> str:
        """Plain operands more often than others, so that results are seen."""
        return self.rng.choice(kinds[:2]) if self.rng.random() < 0.6 else self.rng.choice(kinds)

    def _source(self, row: Opcode, index: int, name: str, size: int, align16: bool, kind: str) -> Operand:
        if not kind:
            kind = self._usual(SOURCES_16 if align16 else SOURCES_1)
            last = index == row.sources - 1
            if kind in ("immediate", "vector", "immediate16") and not last or kind in ("acc", "arf") and index:
                kind = "straight" if align16 else "packed"
        if kind in ("immediate", "immediate16") and name not in types.codes("immediate", self.gen):
            kind = "straight" if align16 else "packed"
        return self.operands.source(kind, name, size)

    def _three(self, row: Opcode, wants: Wants, kinds: tuple[str, list[str]], kind: str, place: Any) -> list[Operand]:
        macro, old = "macro" in row.takes, row.form == "three_source"
        names = list(kinds[1])
        if old and not {"f", "hf"} >= set(names):
            names = [names[0]] * 3
        found = [self.operands.three_target(row.form, kinds[0], macro, kind if place == "dst" else self.rng.choice(("", "", "write_mask")))]
        for index, name in enumerate(names):
            wanted = kind if place == index else ""
            if old:
                found.append(self.operands.three_16(wanted or self.rng.choice(THREE_16), name, macro))
            else:
                usual = self.rng.choice(THREE_1[:5] if index != 1 else (*THREE_1[:5], "acc"))
                found.append(self.operands.three_1(wanted or usual, name, index, macro))
        return found

    def _controls(self, row: Opcode, wants: Wants, size: int, align16: bool, function: int) -> dict[str, Any]:
        rng = self.rng
        found: dict[str, Any] = {"exec_size": size, "align16": align16, "function": function, "no_mask": rng.random() < 0.2,
                                 "flag": rng.randrange(2), "flag_sub": rng.randrange(2), "acc_write": rng.random() < 0.15,
                                 "no_dd_check": rng.random() < 0.03, "no_dd_clear": rng.random() < 0.03,
                                 "thread_control": SWITCH if rng.random() < 0.1 else 0}  # fmt: skip
        found |= self._channels(size)
        if "predicate" in row.takes and rng.random() < 0.4:
            known = range(1, 8) if align16 else PREDICATES
            found |= {"predicate": rng.choice(known), "predicate_invert": rng.random() < 0.5}
        if "condition" in row.takes and (row.name in COMPARES or rng.random() < 0.3):
            found["condition"] = rng.choice(CONDITIONS)
        found["saturate"] = "saturate" in row.takes and rng.random() < 0.25
        if row.name == "sel":
            found |= {"condition": 0} if rng.random() < 0.5 else {"predicate": 0, "predicate_invert": False}
            if not found.get("predicate") and not found.get("condition"):
                found |= {"predicate": 1} if rng.random() < 0.5 else {"condition": rng.randint(1, 6)}
        if row.name in ("addc", "subb"):
            found["acc_write"] = True
        found |= {name: wants[name] for name in WANTED if name in wants}
        if row.name == "sel" and ("condition" in wants) != ("predicate" in wants):
            found |= {"predicate": 0, "predicate_invert": False} if "condition" in wants else {"condition": 0}
        return found

    def _channels(self, size: int) -> dict[str, Any]:
        """Which of the thread's channels an instruction is about."""
        if self.rules.second_half == "compression":
            return {"quarter": 2 if size == 16 else self.rng.choice((0, 0, 1))}
        quarter = self.rng.choice((0, 0, 2)) if size == 16 else 0 if size == 32 else self.rng.choice((0, 0, 1, 2, 3))
        return {"quarter": quarter, "nibble": self.rng.randrange(2) if size <= 4 and self.rng.random() < 0.3 else 0}

    # -- what an opcode needs beside ---------------------------------------------------------------------------------

    def _settled(self, inst: Instruction, wants: Wants) -> Instruction | None:
        inst = self._modified(inst, wants)
        special = getattr(self, f"_settle_{inst.opcode}", None)
        if special is not None:
            inst = special(inst)
        if inst.dst is not None and inst.dst.file == "arf" and not inst.dst.number and inst.opcode in ("cmp", "cmpn"):
            inst = replace(inst, thread_control=SWITCH)
        return inst

    def _modified(self, inst: Instruction, wants: Wants) -> Instruction:
        """Negation and absolute values, where the opcode takes them."""
        row = opcodes.opcode(inst.opcode, self.gen)
        assert row is not None
        sources = list(inst.sources)
        for index, source in enumerate(sources):
            if "modifiers" in row.takes and source.file != "imm" and "modifier" not in wants and self.rng.random() < 0.3:
                absolute = self.rng.random() < 0.4 and not ("bitwise" in row.takes and self.rules.logical_modifiers)
                sources[index] = replace(source, negate=self.rng.random() < 0.7, absolute=absolute)
        if "modifier" in wants:
            index, how = wants["modifier"]
            sources[index] = replace(sources[index], negate=how.startswith("neg"), absolute=how.endswith("abs"))
        return replace(inst, sources=tuple(sources))

    def _settle_math(self, inst: Instruction) -> Instruction:
        known = opcodes.math_function(inst.function, self.gen)
        assert known is not None and inst.dst is not None
        sources = list(inst.sources)
        if known.macro:
            dst = replace(inst.dst, special=self.rng.randrange(9), sub=0, swizzle=None, write_mask=None)
            sources = [replace(source, special=self.rng.randrange(9), sub=0, swizzle=None) for source in sources]
            inst = replace(inst, dst=dst, align16=inst.align16)
        if known.sources == 1:
            sources[1] = replace(NULL, type=sources[0].type, **({"vertical": 4, "swizzle": 0} if inst.align16 else _null_region(self.gen)))
            if known.macro:
                sources[1] = replace(sources[1], special=8, swizzle=None)
        return replace(inst, sources=tuple(sources))

    def _settle_line(self, inst: Instruction) -> Instruction:
        first = replace(inst.sources[0], file="grf", indirect=False, address_sub=0, offset=0, immediate=0, vertical=0, width=1,
                        horizontal=0,
                        number=inst.sources[0].number or 9, sub=self.rng.choice((0, 16)))  # fmt: skip
        if first.number >= 0x20 and inst.sources[0].file == "arf":
            first = replace(first, number=10)
        return replace(inst, sources=(first, inst.sources[1]))

    def _settle_pln(self, inst: Instruction) -> Instruction:
        inst = self._settle_line(inst)
        second = Operand("grf", inst.sources[1].type, self.rng.randint(8, 100), vertical=8, width=8, horizontal=1)
        return replace(inst, sources=(inst.sources[0], second))

    def _settle_movi(self, inst: Instruction) -> Instruction:
        given = inst.sources[0]
        first = replace(self.operands.source("vx1", given.type, inst.exec_size), negate=given.negate, absolute=given.absolute)
        last = (replace(NULL, type="ud", **_null_region(self.gen)),) if len(inst.sources) > 1 else ()
        return replace(inst, sources=(first, *last))

    def _settle_smov(self, inst: Instruction) -> Instruction:
        assert inst.dst is not None
        if not inst.dst.indirect:
            dst = self.operands.target("indirect", inst.dst.type, inst.exec_size, types.size(inst.dst.type))
            inst = replace(inst, dst=dst)
        bits = self.rng.getrandbits(16)
        return replace(inst, sources=(inst.sources[0], Operand("imm", "uw", immediate=bits | bits << 16)))

    def _settle_dim(self, inst: Instruction) -> Instruction:
        return replace(inst, sources=(Operand("imm", "f", immediate=self.rng.getrandbits(64)),))


def _null_region(gen: float) -> dict[str, Any]:
    return {"vertical": 8, "width": 8, "horizontal": 1}


def _fits(pair: tuple[frozenset[str], frozenset[str]], wants: Wants) -> bool:
    if "dst_type" in wants and wants["dst_type"] not in pair[0]:
        return False
    return "src_type" not in wants or wants["src_type"][1] in pair[1]


def _inside(inst: Instruction) -> bool:
    """Whether every byte an instruction reads and writes is a register's, and none that steers the program is written."""
    operands = [(inst.dst, destination_offsets(inst) if inst.dst is not None and inst.dst.file != "imm" else ())]
    operands += [(source, source_offsets(inst, index)) for index, source in enumerate(inst.sources) if source.file != "imm"]
    if inst.dst is not None and inst.dst.file == "arf" and not inst.dst.indirect and inst.dst.number in (FLAG, FLAG + 1, ADDRESS):
        found = registers.find(inst.dst.number, inst.gen)
        if found is None or inst.dst.sub + max(operands[0][1]) + types.size(inst.dst.type) > found[0].size:
            return False
    for operand, offsets in operands:
        if operand is None or operand.file != "grf" or not offsets:
            continue
        size = types.size(operand.type)
        first, last = min(offsets), max(offsets) + size
        if operand.indirect:
            low, high = operand.offset + first + ADDRESSED[0] + 256, operand.offset + last + ADDRESSED[1] - 512
        else:
            low, high = (operand.number * 32 + operand.sub + edge for edge in (first, last))
        written = operand is inst.dst
        extra = 32 if written and inst.opcode == "math" else 128 if inst.opcode == "pln" else 0
        if low < (256 if written else 0) or high + extra > (3584 if written else 4096):
            return False
    return True
