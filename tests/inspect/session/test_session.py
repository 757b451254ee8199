"""Sessions: events, seeking, state and memory between commands."""

import numpy as np
import pytest

from softgen.errors import UsageError
from softgen.inspect.session import Session
from softgen.trace.file import open_trace
from softgen.trace.replay import replay
from tests.conftest import ROOT

COMPUTE, TRIANGLE = (ROOT / "tests/data" / name for name in ("kbl-vk-compute", "kbl-vk-tri"))


def test_commands_are_numbered_as_they_are_executed() -> None:
    session = Session(TRIANGLE)
    draws = [event for event in session.events() if event.kind == "draw"]
    assert [str(event.position) for event in draws] == ["2:70", "2:124", "2:190", "2:245"]
    assert {event.name for event in draws} == {"3DPRIMITIVE"} and draws[0].fields
    assert session.seek("2:124").command == 124 and session.run.streamer.counters.commands == 123
    assert session.run.streamer.counters.draws == 1


def test_the_numbers_of_all_commands_are_those_of_a_replay() -> None:
    for capture in (COMPUTE, TRIANGLE):
        assert len(list(Session(capture).events())) == replay(open_trace(capture)).counters.commands


def test_memory_is_that_before_the_command() -> None:
    session = Session(COMPUTE)
    walker = session.work()[0].position
    session.seek(walker)
    address = next(write.address for thread in [session.thread("2:17/cs/g0.t0+0x98")] for write in thread.step().writes)
    session.seek(walker)
    before = session.memory(address, 64)
    session.next()
    after = np.frombuffer(session.memory(address, 64), np.uint32)
    assert before != after.tobytes() and after.tolist() == [1001 * i for i in range(16)]
    session.seek(walker)  # back
    assert session.memory(address, 64) == before


def test_state_and_what_changed_since_the_draw_before() -> None:
    session = Session(TRIANGLE)
    session.seek("2:124")
    first = session.state()
    assert first["3DSTATE_VS"]["enable"] in (0, 1) and "STATE_BASE_ADDRESS" in first
    changed = session.changes("2:190")
    session.seek("2:190")
    now = session.state()
    for name, fields in changed.items():
        assert all(now[name][field] != first.get(name, {}).get(field) for field in fields)
    same = set(now) - set(changed)
    assert same and all(now[name] == first[name] for name in same)


def test_targets_are_pictures_after_a_draw() -> None:
    session = Session(TRIANGLE)
    targets = session.targets("2:70"), session.targets("2:124")
    assert [(target.width, target.height, target.format) for target in targets[1]] == [(64, 64, "R8G8B8A8_UNORM")]
    assert targets[1][0].picture is not None
    assert str(session.position) == "2:125"


@pytest.mark.parametrize(("position", "says"), [("9:1", "there is no submission 9; there are 1, 2, 3"),
                                                ("2:9999", "submission 2 has commands 1 to"),
                                                ("2:17/cs/g9.t0", "starts no such thread; it starts 4 of cs")])  # fmt: skip
def test_positions_that_do_not_exist_are_named(position: str, says: str) -> None:
    session = Session(COMPUTE)
    with pytest.raises(UsageError, match=says):
        session.thread(position)
