"""What a translated kernel puts back into a thread's block where it is left."""

from __future__ import annotations

import pytest

from softgen.eu.thread.block import ThreadStatus
from softgen.eu.translate.liveness import Exit, FlagUse, Segment, compute_liveness
from softgen.eu.translate.registers import RegisterPartition
from softgen.lanes.llvm import LlvmMachine

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
