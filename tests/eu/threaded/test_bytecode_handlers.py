"""Handlers as bytecode: the reference's examples, modes and exceptions on them, and their replacement by compiled ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from softgen.bits.layout import GENERATIONS
from softgen.cache import Cache
from softgen.eu.interpreter import Interpreter, RunOutcome
from softgen.eu.thread.state import ThreadState
from softgen.eu.threaded import library
from softgen.eu.threaded.engine import run as run_threaded
from softgen.eu.threaded.engine import threaded as engine_of
from softgen.eu.threaded.handlers import HandlerKind
from softgen.eu.threaded.shapes import computing
from softgen.lanes.bytecode import program as bytecode_program
from softgen.lanes.bytecode.program import BytecodeProgram
from softgen.lanes.compile import compile_policy
from tests.eu.random_programs.cases import generate
from tests.eu.random_programs.engines import compare
from tests.eu.semantics.build import Listing, dst, end, imm, instr, reg, thread
from tests.eu.semantics.test_examples import EXAMPLES, execute
from tests.eu.semantics.test_exceptions import *  # noqa: F403
from tests.eu.semantics.test_placed import *  # noqa: F403

Jobs = list[Callable[[], None]]
# Numbers of handlers are not given back, and a process has some 2,000. All tests here have these, one after the other: what the one before
# has made is gone with its library.
NUMBERS = [next(bytecode_program._numbers[False]) for _ in range(600)]
pytestmark = pytest.mark.usefixtures("threaded", "jobs")


@pytest.fixture
def jobs(fresh: Cache, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """Handlers are bytecode; what would be compiled in the background is collected."""
    found: Jobs = []
    monkeypatch.setattr(compile_policy._Mode, "background", True)
    monkeypatch.setattr(library, "in_turn", lambda job, later: found.append(job))
    monkeypatch.setitem(bytecode_program._numbers, False, iter(NUMBERS))
    yield found


@pytest.mark.parametrize("gen", GENERATIONS)
def test_examples(gen: float) -> None:
    examples = [item for found in EXAMPLES.values() for item in found if gen in item.generations]
    assert [(example, wrong) for example in examples if (wrong := execute(example, gen))] == []
    assert len(engine_of(gen).library.programs) > 50


def test_random_programs() -> None:
    for number in range(3):
        assert compare("reference", run_threaded, generate(9, number)) is None


def test_handlers_that_no_thread_waits_for_are_compiled_when_a_processor_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[bool]()
    monkeypatch.setattr(library, "in_turn", lambda job, later: asked.append(later))
    handlers = engine_of(9).library
    first, second = (HandlerKind("compute", computing(instr(9, opcode, dst(10), reg(2), imm(5))).shape) for opcode in ("add", "xor"))
    assert list(handlers.get([first])) == [first] and not handlers.get([second], needed=False)
    assert asked == [False, True]


def test_compiled_handlers_take_their_place(jobs: Jobs) -> None:
    """A program that was linked with bytecode runs compiled handlers, without being linked again."""
    code = Listing(9, instr(9, "add", dst(10), reg(2), imm(5)), instr(9, "mul", dst(11), reg(10), reg(2)), end(9))

    def result(runs: Callable[[ThreadState], RunOutcome]) -> bytes:
        state = thread(9, r2=np.arange(-3, 5, dtype=np.int32))
        assert runs(state) is RunOutcome.ENDED
        return bytes(state.grf)

    def threaded_result() -> bytes:
        return result(lambda state: run_threaded(state, code))

    expected = result(lambda state: Interpreter(state, code).run())
    assert threaded_result() == expected
    programs: list[BytecodeProgram] = list(engine_of(9).library.programs.values())
    before = [program.calls for program in programs]
    assert any(before) and jobs
    for job in jobs:
        job()
    assert not engine_of(9).library.programs and all(program.record.compiled for program in programs)
    assert threaded_result() == expected and [program.calls for program in programs] == before
