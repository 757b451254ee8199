"""What a translated kernel puts back into a thread's block where it is left."""

from __future__ import annotations

import numpy as np
import pytest

from softgen.eu import engine
from softgen.eu.interpreter import Interpreter, RunOutcome
from softgen.eu.thread.block import Context, ThreadStatus
from softgen.eu.thread.state import ROUNDING_MODE
from softgen.eu.translate.engine import Translator
from softgen.eu.translate.liveness import Exit, FlagUse, Segment, compute_liveness
from softgen.eu.translate.registers import RegisterPartition
from softgen.lanes.llvm.machine import LlvmMachine
from tests.eu.semantics.build import L, Listing, arf, branch, dst, end, imm, instr, reg, thread

FLAGS = 5
ALL = (1 << FLAGS) - 1


@pytest.mark.parametrize("status, ip, more, expected", [
    (ThreadStatus.ENDED, 0x10, {}, 0),
    (ThreadStatus.OUT_OF_BUDGET, 0x40, {}, 0b01000), (ThreadStatus.WAITING, 0x40, {}, 0b01000), (ThreadStatus.WAITING, 0x50, {}, ALL),
    (ThreadStatus.ESCAPE, 0x10, {"conditional": True}, 0b01101), (ThreadStatus.ESCAPE, 0x10, {}, ALL),
    (ThreadStatus.ESCAPE, 0x10, {"conditional": True, "stray": True}, ALL),
])  # fmt: skip
@pytest.mark.parametrize("observe", [False, True])
def test_what_is_kept_at_an_exit(status: ThreadStatus, ip: int, more: dict[str, bool], expected: int, observe: bool) -> None:
    """What is read where the thread resumes, or everything where that is not known; nothing of a thread that has ended. At a side exit the
    interpreter reads what the instruction has read, flag 0; the code behind it reads 2 and 3, and 1 only after replacing it; nobody reads
    4. Somebody who observes is shown everything."""
    left = Exit("exit", status, ip, 0, frozenset(), **more)
    uses = [FlagUse(0, False, 0x10), left, FlagUse(1, True, 0x20), FlagUse(1, False, 0x30), FlagUse(2, False, 0x30)]
    segments = {0: Segment(0, True, uses, {0x40}), 0x40: Segment(0x40, False, [FlagUse(3, False, 0x40)])}
    compute_liveness(segments, RegisterPartition(LlvmMachine()), [], FLAGS, observe)
    assert left.live == (ALL if observe else expected)
    assert segments[0].live_in == left.live | 0b01101 and segments[0x40].live_in == 0b01000


@pytest.mark.parametrize("below", [0, 3, 8])
def test_a_thread_that_waits_takes_its_flags_channels_and_cr0_along(below: int) -> None:
    """Whichever engine it goes on with, and without anybody who observes it: the channels below a number wait in an if."""
    gen, notification = 9, arf(0x90, "ud", region="0;1,0")
    control = arf(0x80, "ud", region="0;1,0")
    code = Listing(gen, instr(gen, "cmp", arf(0, "d"), reg(4), imm(below), condition=L),
                   instr(gen, "or", arf(0x80, "ud"), control, imm(ROUNDING_MODE, "ud"), size=1, no_mask=True),
                   branch(gen, "if", "end", "end", predicate=1), instr(gen, "wait", notification, notification, size=1, no_mask=True),
                   instr(gen, "add", dst(20), reg(20), imm(1)), "end", branch(gen, "endif", "after"), "after",
                   instr(gen, "add", dst(21), reg(21), imm(10), predicate=1), instr(gen, "mov", dst(22, "ud"), control),
                   end(gen))  # fmt: skip
    for observing in (Translator(observe=True, messages=False), None):
        made = thread(gen, r4=np.arange(8, dtype=np.int32))
        function = Translator(messages=False).function(code, 0, 8, True)
        assert engine.call(function, made, Context(budget=10)) is (ThreadStatus.WAITING if below else ThreadStatus.ESCAPE)
        mask = (1 << below) - 1
        assert made.arf["f"][0] == mask and made.dwords("cr")[0] & ROUNDING_MODE == ROUNDING_MODE
        if below:
            assert [ip == made.ip for ip in made.channel_ip[:8]] == [channel < below for channel in range(8)]
            made.dwords("n")[0] = 1
        if observing is not None:
            assert engine.run("t1", made, code, 9, observing) is RunOutcome.ENDED
        else:
            assert Interpreter(made, code).run() is RunOutcome.ENDED
        assert made.register(20).view(np.int32).tolist() == [1] * below + [0] * (8 - below)
        assert made.register(21).view(np.int32).tolist() == [10] * below + [0] * (8 - below)
        assert (made.register(22).view(np.uint32) & ROUNDING_MODE == ROUNDING_MODE).all()
