"""A result that several host threads ask for at the same time is made once, and all get that one."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from softgen.lanes.once import once


def test_threads_that_ask_at_the_same_time_get_the_same_object() -> None:
    made: list[object] = []
    start = threading.Barrier(8)

    @once
    def slow(key: int) -> object:
        time.sleep(0.02)
        made.append(object())
        return made[-1]

    def ask(_: int) -> object:
        start.wait()
        return slow(1)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert len(made) == 1 and set(answers) == {made[0]}
    assert slow(2) is not made[0] and slow(1) is made[0]
