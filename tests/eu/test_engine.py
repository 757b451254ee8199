"""Engines by their names, and threads that are run by themselves."""

from __future__ import annotations

import pytest

from softgen.errors import SoftgenError
from softgen.eu import engine
from softgen.eu.interpreter import RunOutcome
from softgen.eu.promotion import PromotingEngine
from softgen.eu.threaded.engine import ThreadedEngine
from softgen.eu.translate.engine import Translator
from tests.eu.semantics.build import Listing, arf, dst, end, imm, instr, thread


def test_engines_by_name() -> None:
    kinds = {name: type(engine.engine(name)) for name in ("t0", "t1", "auto")}
    assert kinds == {"t0": ThreadedEngine, "t1": Translator, "auto": PromotingEngine}
    for name in ("reference", "t2", ""):
        with pytest.raises(SoftgenError, match=f"there is no compiling engine '{name}'; engines are {' '.join(engine.NAMES)}"):
            engine.engine(name)


@pytest.mark.parametrize("name", ["t0", "t1"])
def test_an_engine_leaves_messages_to_the_thread_where_it_is_told_to(name: str) -> None:
    """As a thread that is run by itself has handlers of its own."""
    assert engine.engine(name).messages and not engine.engine(name, messages=False).messages  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["reference", "t0", "t1"])
def test_a_thread_waits_for_a_notification_and_goes_on(name: str) -> None:
    notification = arf(0x90, "ud", region="0;1,0")
    wait = instr(9, "wait", notification, notification, size=1)
    code, made = Listing(9, instr(9, "mov", dst(4), imm(1)), wait, instr(9, "mov", dst(5), imm(2)), end(9)), thread(9)
    assert engine.run(name, made, code) is RunOutcome.WAITING and made.register(4)[0] == 1 and made.register(5)[0] == 0
    made.dwords("n")[0] = 1
    assert engine.run(name, made, code) is RunOutcome.ENDED and made.register(5)[0] == 2
