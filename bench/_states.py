"""`python -m bench._states CAPTURE COUNT`: execute a capture on the engine auto, and print the processor time of its first draw and of the
last COUNT draws in seconds: whatever comes between is the program's set-up.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

from softgen.bits.record import Record
from softgen.device.gpu import COMMANDS, GpuDevice
from softgen.driver.run.collector import Collector
from softgen.streamer.execute import Streamer
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work

PRIMITIVE = "3DPRIMITIVE"


def draws(path: Path, engine: str = "auto") -> list[float]:
    """Seconds of processor time of each draw."""
    trace, found = open_trace(path), []
    gpu = GpuDevice(trace.device, dispatcher=EngineDispatcher(engine, threads=1))

    def timed(cs: Streamer, command: Record) -> None:
        before = time.thread_time()
        COMMANDS[PRIMITIVE](cs, command)
        found.append(time.thread_time() - before)

    gpu.interface = dataclasses.replace(gpu.interface, commands={**COMMANDS, PRIMITIVE: timed})
    collector = Collector()
    for event in events(trace):
        if isinstance(event, Work):
            gpu.execute(event)
            collector.executed()
    return found


if __name__ == "__main__":
    times = draws(Path(sys.argv[1]))
    print("\n".join(f"{seconds:.6f}" for seconds in (times[0], *times[-int(sys.argv[2]) :])))
