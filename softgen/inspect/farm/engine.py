"""Hands jobs to a backend, a few at a time, and takes their outcomes as they come. Only jobs of lost workers are tried again."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Future

from softgen.errors import SoftgenError
from softgen.inspect.farm.executors import Backend
from softgen.inspect.farm.inputs import MissingInput, pack
from softgen.inspect.farm.unit import FarmUnit, Job, JobOutcome

RETRIES = 2  # of a job whose worker was lost
LOST = {"KilledWorker", "CommClosedError", "FutureCancelledError", "FuturesCancelledError", "UnfitWorker"}  # by name: Dask may not be there
LOOK = 5.0  # seconds between two looks at the backend while nothing ends
END = 10.0  # seconds that jobs have to end when the farm is stopped


class LostJob(SoftgenError):
    """A job whose worker was lost more often than it is tried again."""


class FarmEngine:
    """Jobs on their way to a backend, and those that are there."""

    def __init__(self, backend: Backend, jobs: Iterator[Job]) -> None:
        self.backend, self.jobs = backend, jobs
        self.running: dict[Future[JobOutcome], Job] = {}
        self.ended: queue.SimpleQueue[Future[JobOutcome]] = queue.SimpleQueue()
        self.tries: dict[tuple[FarmUnit, ...], int] = {}  # of jobs whose worker was lost
        self.lost: list[tuple[Job, str]] = []

    def outcomes(self) -> Iterator[tuple[Job, JobOutcome]]:
        """What became of each job, in the order in which they end."""
        self._hand_over()
        while self.running:
            future = self._next_ended()
            job = self.running.pop(future)
            outcome = self._outcome(future, job)
            self._hand_over()
            if outcome is not None:
                yield job, outcome

    def _next_ended(self) -> Future[JobOutcome]:
        """Wait for the end of a job, for as long as the backend is there."""
        while True:
            try:
                return self.ended.get(timeout=LOOK)
            except queue.Empty:
                self.backend.check()

    def _hand_over(self) -> None:
        while len(self.running) < self.backend.window and (job := next(self.jobs, None)) is not None:
            self._submit(job)

    def _submit(self, job: Job) -> None:
        try:
            future = self.backend.submit(job)
        except SoftgenError:
            raise
        except Exception as error:  # what an executor raises when it is closed, or its scheduler is gone, is its own
            raise SoftgenError(f"{self.backend.name}: takes no more units: {error or type(error).__name__}") from error
        self.running[future] = job
        future.add_done_callback(self.ended.put)

    def _outcome(self, future: Future[JobOutcome], job: Job) -> JobOutcome | None:
        """The outcome of a job that is done; None if it has none, or is tried again because its worker was lost."""
        try:
            outcome = future.result()
            self.tries.pop(job.units, None)
            return outcome
        except MissingInput as missing:
            why = f"{missing}: could not be sent to the worker"
            if not job.payload:
                self._submit(pack(job))
                return None
        except (BrokenExecutor, CancelledError, OSError, MemoryError) as error:
            why = f"{type(error).__name__}: {error}".rstrip(": ")
        except Exception as error:
            if type(error).__name__ not in LOST:
                raise SoftgenError(f"{self.backend.name}: a worker cannot run units: {type(error).__name__}: {error}") from error
            why = str(error)
        self.tries[job.units] = self.tries.get(job.units, 0) + 1
        if self.tries[job.units] <= RETRIES:
            self._submit(job)
        else:
            self.lost.append((job, why))
        return None

    def stop(self) -> Iterator[tuple[Job, JobOutcome]]:
        """End the jobs that run, drop the others, and give what is done."""
        self.backend.stop()
        for future in self.running:
            future.cancel()
        while self.running:
            try:
                future = self.ended.get(timeout=END)
            except queue.Empty:
                return
            job = self.running.pop(future)
            if not future.cancelled() and future.exception() is None:
                yield job, future.result()
