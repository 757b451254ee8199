"""An execution: work on one of a device's engines, that can be run, parked and resumed.

    execution = device.begin(work)
    while not execution.run():         # False: a command waits for a semaphore
        ...                            # others may run; then run() tries that command again

Executions of different engines may run on different host threads. Of one engine at most one may run at a time; one that is parked, or
whose `timed_out` hook lets others run, goes on with its own registers and state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from softgen.command import Counters
from softgen.errors import SoftgenError
from softgen.streamer.execute import Streamer


class EngineExecution:
    """Work in progress. `counters` counts its commands, threads and instructions."""

    def __init__(self, streamer: Streamer, counters: Counters, on_return: Callable[[Counters], None]) -> None:
        self.streamer, self.counters, self._on_return = streamer, counters, on_return
        self._reported: Counters | None = None  # of what was done by then

    def run(self) -> bool:
        """Run to the end (True) or to a command that has to wait (False). Raises GpuFault, Unsupported or DecodeError with the place."""
        try:
            return self.streamer.run()
        finally:
            self._report()

    def run_to_end(self) -> None:
        """Run; a command that would have to wait is an error."""
        if not self.run():
            raise self.stuck()

    def stuck(self) -> SoftgenError:
        """The error of a wait that nothing will end."""
        return self.streamer.stuck()

    def _report(self) -> None:
        """Reports the work done since the last report."""
        self._on_return(self.counters if self._reported is None else self.counters.since(self._reported))
        self._reported = replace(self.counters) if self.streamer.place is not None else self.counters
