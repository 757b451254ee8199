"""Coverage: which cells the executed instructions of programs fall into, and why no program reaches the others.

Only what executes counts: a straight instruction with a channel that is on, a branch the thread came to. Of a cell that was not reached
the generator tries hard to make an instruction. If every try breaks one and the same restriction, the cell is ruled out by it and does
not count; if the reference refuses every try, it is not simulated; else it was missed.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from softgen.eu.interpreter import Interpreter
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.isa.rules import rules
from softgen.eu.semantics.control import PER_CHANNEL
from softgen.eu.semantics.mask_stack import MASK_STACK
from softgen.eu.thread.predicate import first_channel, predicate
from softgen.eu.thread.state import ThreadState
from tests.eu.random_programs.cases import Case, generate
from tests.eu.random_programs.cells import Cell, cells, seen
from tests.eu.random_programs.engines import BUDGET
from tests.eu.random_programs.instructions import Maker, straight

HARD = 300  # tries for a cell that no program reached
WIDTHS = {"stack": (8, 16), "channel": (8, 16, 32)}
UNCONDITIONAL = frozenset({"else", "endif", "do", "join"})
SCALAR = frozenset({"jmpi", "do"})
OPENS = frozenset({"if", "iff"})


def flow_cells(gen: float) -> set[Cell]:
    """Those of branches, messages and what else does not compute."""
    found, flow = set[Cell](), rules(gen).flow
    for row in opcodes.of_generation(gen):
        if row.name in (MASK_STACK if flow == "stack" else PER_CHANNEL) and row.name != "illegal":
            found |= {Cell("flow", row.name, what) for what in _branch_cells(row, flow)}
        elif row.form in ("send", "sends"):
            found |= {Cell("flow", row.name, what) for what in ("plain", "predicated", "NoMask")}
        elif row.name in ("wait", "nop"):
            found.add(Cell("flow", row.name, "plain"))
    return found


def _branch_cells(row: opcodes.Opcode, flow: str) -> set[str]:
    found = {f"width {size}" for size in WIDTHS[flow]} if row.name not in SCALAR else {"plain"}
    if row.name not in UNCONDITIONAL:
        found |= {"predicated", "inverted", "all leave", "none leaves"}
        found |= {"some leave", "grouped"} if row.name != "jmpi" else set()
    if flow == "channel":
        found |= {"single flow", "in a routine"}
    if row.name not in ("ret", "iff"):
        found |= {"in an if", "in a loop"}
    return found


def nesting(case: Case) -> list[frozenset[str]]:
    """What each instruction of a case stands in."""
    found, stack = list[frozenset[str]](), list[str]()
    for item in case.items:
        if isinstance(item, str):
            word = item.split()[0]
            if word == "routine" and not item.endswith("end"):
                stack = ["a routine"]
            elif word in ("loop", "top", "again"):
                stack.append("a loop")
            continue
        closes = item.opcode in ("endif", "while", "brd") or item.opcode in ("goto", "jmpi") and _goes_back(item)
        if closes and stack and stack[-1] != "a routine":
            stack.pop()
        found.append(frozenset(stack))
        if item.opcode in OPENS:
            stack.append("an if")
    return found


def _goes_back(inst: Instruction) -> bool:
    target: object = inst.uip if inst.opcode == "goto" else inst.jip
    return isinstance(target, str) and target.split()[0] in ("top", "again")


# -- what executes -------------------------------------------------------------------------------------------------


def executed(case: Case) -> set[Cell]:
    """Runs a case on the reference and gives the cells its instructions fall into."""
    case = replace(case, compact=False)
    thread = case.thread()
    runs, inside = Interpreter(thread, case.program()), nesting(case)
    found: set[Cell] = set()
    names = {row.name for row in straight(case.gen)}
    for _ in range(BUDGET * 10):
        if thread.ended:
            return found
        inst = runs.code.line(thread.ip).instruction
        if inst.opcode in names:
            first = first_channel(runs.state, inst)
            if inst.no_mask or thread.active >> first & (1 << inst.exec_size) - 1:
                found |= seen(inst, thread.mode)
        else:
            found |= {Cell("flow", inst.opcode, what) for what in _features(runs, thread, inst, inside[thread.ip // 16])}
        if not runs.step():
            thread.dwords("n")[0] += 1
    raise AssertionError(f"the program does not end\n{case.text()}")


def _features(runs: Interpreter, thread: ThreadState, inst: Instruction, inside: frozenset[str]) -> set[str]:
    found = {"plain", f"width {inst.exec_size}", *(f"in {what}" for what in inside)}
    if inst.predicate:
        found |= {"predicated", "inverted" if inst.predicate_invert else "", "grouped" if inst.predicate > 3 else ""}
    found |= {"NoMask" if inst.no_mask else "", "single flow" if thread.single_program_flow else ""}
    active = 1 if inst.opcode == "jmpi" else thread.active & (1 << inst.exec_size) - 1
    holds = sum(1 << channel for channel, truth in enumerate(predicate(runs.state, inst).payload) if truth)
    if active:
        found.add("all leave" if active & holds == active else "some leave" if active & holds else "none leaves")
    return found - {""}


# -- measuring -----------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """Coverage of a generation."""

    gen: float
    programs: int
    reached: dict[str, int] = field(default_factory=dict)
    defined: dict[str, int] = field(default_factory=dict)
    ruled_out: dict[str, list[Cell]] = field(default_factory=dict)  # restriction -> cells
    refused: dict[str, list[Cell]] = field(default_factory=dict)  # what the reference says -> cells
    missed: list[Cell] = field(default_factory=list)

    @property
    def share(self) -> float:
        return sum(self.reached.values()) / sum(self.defined.values())

    def row(self) -> str:
        parts = (f"{kind} {self.reached[kind]}/{self.defined[kind]}" for kind in sorted(self.defined))
        return f"gen {self.gen:<4g} {self.programs:5} programs  {self.share:6.1%}  {'  '.join(parts)}"


def measure(gen: float, numbers: Iterable[int], probe: bool = True) -> Report:
    """Without a probe, what is not reached is all missed."""
    reached: set[Cell] = set()
    count = 0
    for number in numbers:
        reached |= executed(generate(gen, number))
        count += 1
    wanted = set(cells(gen)) | flow_cells(gen)
    report = Report(gen, count)
    maker, out = Maker(gen, random.Random(0)), set[Cell]()
    found: dict[str, dict[str, list[Cell]]] = {"restriction": defaultdict(list), "not simulated": defaultdict(list)}
    for cell in sorted(wanted - reached):
        why = _why(maker, cell) if probe and cell.kind != "flow" else ""
        kind = next((item for item in found if why.startswith(item)), "")
        if not kind:
            report.missed.append(cell)
            continue
        found[kind][why].append(cell)
        out.add(cell)
    report.ruled_out, report.refused = found["restriction"], found["not simulated"]
    kinds = Counter(cell.kind for cell in wanted - out)
    report.defined = dict(kinds)
    report.reached = {kind: sum(1 for cell in wanted & reached if cell.kind == kind) for kind in kinds}
    return report


def _why(maker: Maker, cell: Cell) -> str:
    """Why no instruction falls into a cell; nothing where there is one, or no single reason."""
    wants = cells(maker.gen)[cell]
    if maker.make(cell.opcode or "mov", wants, HARD) is not None:
        return ""
    reasons = maker.reasons.most_common()
    always = [reason for reason, count in reasons if count >= HARD and reason.startswith("restriction")]
    if always:
        return always[0]
    refused = [reason for reason, _ in reasons if reason.startswith("not simulated")]
    return refused[0] if refused else ""

