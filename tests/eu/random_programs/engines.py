"""Two engines on one program: what differs first, and the smallest program on which something does.

    compare("reference", "t1", generate(9, 17))      # None, or a Difference

An engine takes a thread and a program, runs to the end, a wait or a spent budget, and leaves the thread's registers as the reference does.
A quiet NaN that arithmetic made equals any other. So that nothing has to know which instruction wrote a byte, the reference runs again
with other NaNs wherever it makes one: what changes then was left open, and is not compared, but for one thing: where the reference has
NaNs, whatever they are, there must be one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest import mock

import numpy as np

from softgen.errors import SoftgenError
from softgen.eu import engine
from softgen.eu.check.restrictions import check
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome, run
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.state import ThreadState
from softgen.eu.translate.engine import Translator
from softgen.lanes.numpy.machine import DTYPES, NumpyMachine
from softgen.lanes.types import LaneType
from tests.eu.random_programs.cases import Case

Engine = Callable[[ThreadState, KernelProgram], RunOutcome]

BUDGET = 2000  # backward branches of the reference; no program needs as many
TURNS = 50  # times that a thread waits or is spent
VARIATIONS = 6  # runs with other NaNs
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "fma", "sqrt", "floor", "ceil", "trunc", "round_even"})
ERRORS = (SoftgenError, ArithmeticError, LookupError, TypeError, ValueError, AssertionError, AttributeError, OSError, RuntimeError)


def reference(thread: ThreadState, code: KernelProgram) -> RunOutcome:
    return run(thread, code, BUDGET)


@cache
def _compiling(name: str) -> engine.Engine:
    """Registers can be looked at afterwards; messages go to the test's own listeners."""
    return Translator(observe=True, messages=False) if name == "t1" else engine.engine(name, messages=False)


def t0(thread: ThreadState, code: KernelProgram) -> RunOutcome:
    return engine.run("t0", thread, code, BUDGET, _compiling("t0"))


def t1(thread: ThreadState, code: KernelProgram) -> RunOutcome:
    return engine.run("t1", thread, code, BUDGET, _compiling("t1"))


ENGINES: dict[str, Engine] = {"reference": reference, "t0": t0, "t1": t1}


# -- states --------------------------------------------------------------------------------------------------------


State = dict[str, bytes]


def state(thread: ThreadState) -> State:
    """Every register by name, whole accumulators too."""
    found = thread.snapshot()
    return found | {f"acc (whole {kind})": thread.arf[name].tobytes() for name, kind in (("acc_d", "dwords"), ("acc_w", "words"))}


def execute(engine: Engine, case: Case) -> State:
    """The registers a case leaves. Whoever waits is notified."""
    thread, code = case.thread(), case.program()
    for _ in range(TURNS):
        outcome = engine(thread, code)
        if outcome is RunOutcome.ENDED:
            return state(thread)
        if outcome is RunOutcome.WAITING:
            thread.dwords("n")[0] += 1
    raise RuntimeError("the program does not end")


class OtherNaNs(NumpyMachine):
    """The reference's machine, with other payloads and signs in every NaN that arithmetic makes; quiet ones stay quiet."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed) if seed else None

    def _other(self, type: LaneType, payload: Any) -> Any:
        nan = np.isnan(payload)
        if not nan.any():
            return payload
        unsigned = DTYPES[type.unsigned]
        free = type.unsigned.highest & ~type.quiet_nan
        if self.rng is None:
            chosen = np.full(len(payload), free, unsigned)
        else:
            chosen = self.rng.integers(0, type.unsigned.highest, len(payload), unsigned, endpoint=True) & unsigned.type(free)
        bits = payload.view(unsigned) ^ chosen
        return np.where(nan, (bits | unsigned.type(type.quiet_nan)).view(payload.dtype), payload)

    def _compute(self, name: str, type: LaneType, lanes: int, payloads: list[Any]) -> Any:
        found = super()._compute(name, type, lanes, payloads)
        return self._other(type, found) if type.is_float and name in ARITHMETIC else found

    def _rounded(self, name: str, type: LaneType, lanes: int, rounding: str, payloads: list[Any]) -> Any:
        return self._other(type, super()._rounded(name, type, lanes, rounding, payloads))

    def _convert(self, source: LaneType, type: LaneType, lanes: int, a: Any, rounding: str) -> Any:
        found = super()._convert(source, type, lanes, a, rounding)
        return self._other(type, found) if source.is_float and type.is_float and source is not type else found


def varied(seed: int) -> Engine:
    """The reference with other NaNs: all free bits turned, or some by chance."""
    return lambda thread, code: Interpreter(thread, code, OtherNaNs(seed)).run(BUDGET)


def left_to_reference(engine: Engine, case: Case) -> Counter[str]:
    """The instructions, by opcode, that an engine hands to the reference instead of executing them: what agrees trivially."""
    found: Counter[str] = Counter()
    plain = Interpreter.step

    def counted(self: Interpreter) -> bool:
        found[self.code.line(self.thread.ip).instruction.opcode] += 1
        return plain(self)

    with mock.patch.object(Interpreter, "step", counted):
        execute(engine, case)
    return found


# -- comparing -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """The first register two engines differ in."""

    case: Case
    engines: tuple[str, str]
    register: str
    values: tuple[str, str]

    def __str__(self) -> str:
        pairs = (f"{name:>10}: {value}" for name, value in zip(self.engines, self.values, strict=True))
        return "\n".join([f"{self.register} differs", *pairs, self.case.text()])


def compare(a: str | Engine, b: str | Engine, case: Case) -> Difference | None:
    """The first difference between two engines (names of ENGINES, or engines themselves)."""
    names = tuple(item if isinstance(item, str) else getattr(item, "__name__", "engine") for item in (a, b))
    found = []
    for item in (a, b):
        try:
            found.append(execute(ENGINES[item] if isinstance(item, str) else item, case))
        except ERRORS as error:
            found.append({"error": f"{type(error).__name__}: {error}".encode()})
    first, second = found
    if first == second and "error" not in first:
        return None
    if "error" in first or "error" in second:
        values = [item.get("error", b"none").decode() for item in found]
        return Difference(case, (names[0], names[1]), "the error", (values[0], values[1]))
    wrong = next(_differing(first, second, _variations(case)), None)
    if wrong is None:
        return None
    return Difference(case, (names[0], names[1]), wrong, (_spaced(first[wrong]), _spaced(second[wrong])))


def _spaced(held: bytes) -> str:
    """A register as dwords, the lowest first."""
    return " ".join(f"{int.from_bytes(held[start : start + 4], 'little'):08x}" for start in range(0, len(held), 4))


def _variations(case: Case) -> list[State]:
    return [execute(varied(seed), case) for seed in range(VARIATIONS)]


def _differing(first: State, second: State, others: list[State]) -> Iterator[str]:
    for name, held in first.items():
        if second.get(name) == held:
            continue
        if not _open(held, second[name], [other[name] for other in others]):
            yield name


def _open(held: bytes, given: bytes, others: list[bytes]) -> bool:
    """Whether every byte that differs was left open, and NaNs stand where they always do."""
    for index, (a, b) in enumerate(zip(held, given, strict=True)):
        if a == b:
            continue
        if all(other[index] == a for other in others) and not _part_of_nan(index, held, given, others):
            return False
        if not _keeps_nan(index, held, given, others):
            return False
    return True


NANS = ((2, "<f2"), (4, "<f4"), (8, "<f8"))


def _is_nan(held: bytes, start: int, size: int, kind: str) -> bool:
    return start + size <= len(held) and bool(np.isnan(np.frombuffer(held, kind, 1, start)[0]))


def _nans(index: int, held: bytes, others: list[bytes]) -> list[tuple[int, int, str]]:
    """The elements around a byte that are NaN in every run, and not the same one in all."""
    found = []
    for size, kind in NANS:
        start = index // size * size
        piece = {other[start : start + size] for other in (held, *others)}
        if len(piece) > 1 and all(_is_nan(other, start, size, kind) for other in (held, *others)):
            found.append((start, size, kind))
    return found


def _part_of_nan(index: int, held: bytes, given: bytes, others: list[bytes]) -> bool:
    return any(_is_nan(given, *nan) for nan in _nans(index, held, others))


def _keeps_nan(index: int, held: bytes, given: bytes, others: list[bytes]) -> bool:
    known = _nans(index, held, others)
    return not known or any(_is_nan(given, *item) for item in known)


# -- shrinking -----------------------------------------------------------------------------------------------------

PLAIN = ({"predicate": 0, "predicate_invert": False}, {"condition": 0}, {"saturate": False}, {"acc_write": False}, {"no_mask": False},
         {"quarter": 0}, {"nibble": 0}, {"thread_control": 0}, {"flag": 0, "flag_sub": 0}, {"exec_size": 8}, {"exec_size": 1})  # fmt: skip


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A case that fails with as few instructions and as little said as can be found. Only cases the reference runs to their end are
    tried, so that no engine is asked what has no answer."""

    def still(candidate: Case) -> bool:
        try:
            execute(reference, candidate)
        except ERRORS:
            return False
        return fails(candidate)

    for change in ({"compact": False}, {"control": 0}, {"dispatch": 0xFFFFFFFF}):
        if still(smaller := replace(case, **change)):
            case = smaller
    case = _fewer(case, still)
    case = _plainer(case, still)
    return _fewer(case, still)


def _fewer(case: Case, still: Callable[[Case], bool]) -> Case:
    """Leaves out ever smaller pieces; labels stay, and the end."""
    size = max(len(case.items) // 2, 1)
    while size:
        start, before = 0, case
        while start < len(case.items):
            piece = case.items[start : start + size]
            kept = tuple(item for item in piece if isinstance(item, str) or item.eot)
            smaller = replace(case, items=case.items[:start] + kept + case.items[start + size :])
            if len(kept) < len(piece) and still(smaller):
                case = smaller
                start += len(kept)
            else:
                start += size
        size = size if case is not before and size == 1 else size // 2
    return case


def _plainer(case: Case, still: Callable[[Case], bool]) -> Case:
    for index, item in enumerate(case.items):
        if not isinstance(item, Instruction) or item.eot:
            continue
        for change in PLAIN:
            case = _changed(case, index, still, **change)
        for place in range(len(item.sources)):
            now = case.items[index]
            assert isinstance(now, Instruction)
            sources = list(now.sources)
            sources[place] = replace(sources[place], negate=False, absolute=False)
            case = _changed(case, index, still, sources=tuple(sources))
    return case


def _changed(case: Case, index: int, still: Callable[[Case], bool], **change: Any) -> Case:
    now = case.items[index]
    assert isinstance(now, Instruction)
    new = replace(now, **change)
    if new == now or check(new):
        return case
    smaller = replace(case, items=(*case.items[:index], new, *case.items[index + 1 :]))
    return smaller if still(smaller) else case
