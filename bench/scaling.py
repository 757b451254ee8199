"""How kernels scale with host threads: softgen beside C, wall clock, from one thread to as many as there are processors.

softgen shares the groups of one dispatch among its threads. C, which has no such dispatch, makes the same call in every thread, each on
arrays of its own: what the machine gives to independent work is what a dispatch can be compared with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import Measurement, best_time
from bench._work import peer, peers, works

LARGER = 16  # times the work of the other benchmarks: a sixteenth of it is still milliseconds
ROUNDS = 7


def measure() -> Iterator[Measurement]:
    library = next(iter(peers().values()), None)
    processors = os.sched_getaffinity(0)
    cores = len({siblings(processor) for processor in processors})
    counts = [1 << exponent for exponent in range(len(processors).bit_length()) if 1 << exponent <= len(processors)]
    for work in works(LARGER):
        ours = {count: best_time(work.dispatch(threads=count).run, rounds=ROUNDS) for count in counts}
        calls = [peer(library, work.name, work) for _ in processors] if library else []
        for count in counts[1:]:
            scaled = ours[1] / ours[count]
            c = at_once([call for call, _ in filter(None, calls[:count])])
            note = f"{scaled:.2f} times as fast as one, {ours[count] * 1e3:.2f} ms; C: {c:.2f}; {cores} cores"
            peered = ("C's scaling", 1 / c) if c else ("", 0.0)
            yield Measurement(f"{work.name}, {count} host threads", 1, "", 1 / scaled, *peered, note)


def siblings(processor: int) -> str:
    """The processors of a core; they share its execution units, so that code which keeps those busy gains nothing from a second one."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list").read_text("ascii")
    except OSError:
        return str(processor)


def at_once(calls: list[Callable[[], object]]) -> float:
    """How much more work is done in a time by calls that run at once, each in a thread, than by one of them; 0 without calls."""
    if not calls:
        return 0.0
    with ThreadPoolExecutor(len(calls)) as pool:
        together = best_time(lambda: list(pool.map(lambda call: call(), calls)), rounds=ROUNDS)
    return len(calls) * best_time(calls[0], rounds=ROUNDS) / together
