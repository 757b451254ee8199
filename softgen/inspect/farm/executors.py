"""Where jobs run: threads of this process, each with one subprocess, or any `concurrent.futures.Executor`."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor

from softgen.inspect.farm.suites import run_job
from softgen.inspect.farm.unit import Job, JobOutcome

UNKNOWN = 256  # workers that an executor of a kind which does not say may have
AHEAD = 2  # jobs a worker is given at once, so that it does not wait for the next


class Backend:
    """An executor that runs jobs. `stop` is best effort: an executor elsewhere ends what it runs at the units' own limits."""

    def __init__(self, executor: Executor, name: str = "") -> None:
        self.executor, self.name = executor, name or type(executor).__name__

    @property
    def workers(self) -> int:
        """How many jobs run at once, as far as the executor says."""
        return int(getattr(self.executor, "_max_workers", UNKNOWN))

    @property
    def window(self) -> int:
        """Jobs that are handed over and not done: memory stays flat however long the list is."""
        return AHEAD * self.workers

    def submit(self, job: Job) -> Future[JobOutcome]:
        return self.executor.submit(run_job, job)

    def check(self) -> None:
        """Raise an error if the jobs that were handed over will never end."""

    def stop(self) -> None: ...

    def close(self) -> None: ...


class LocalBackend(Backend):
    """Threads of this process: each starts a subprocess and waits for it."""

    def __init__(self, workers: int | None = None) -> None:
        self.stopping = threading.Event()
        super().__init__(ThreadPoolExecutor(workers or processors(), "farm"), "this machine")

    def submit(self, job: Job) -> Future[JobOutcome]:
        return self.executor.submit(run_job, job, self.stopping.is_set)

    def stop(self) -> None:
        self.stopping.set()

    def close(self) -> None:
        self.stop()
        self.executor.shutdown(cancel_futures=True)


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))
