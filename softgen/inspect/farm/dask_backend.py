"""Dask: jobs on the workers of a cluster (`pip install softgen[farm]`). Dask schedules, and notices workers that are lost."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from softgen.errors import SoftgenError
from softgen.inspect.farm.executors import Backend
from softgen.inspect.farm.suites import run_job
from softgen.inspect.farm.unit import Job, JobOutcome

CONNECT = 20.0  # seconds in which a scheduler must answer
REFRESH = 5.0  # seconds after which workers are counted again
FEWEST = 16  # jobs that are handed over while there are no workers yet


def connect(address: str) -> DaskBackend:
    """The backend for --on dask://HOST:PORT."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise SoftgenError(f"--on {address} needs Dask, which is not installed: pip install 'softgen[farm]'") from None
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the farm tells what happens to its jobs
    try:
        client = distributed.Client(address.replace("dask://", "tcp://", 1), timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SoftgenError(f"--on {address}: no Dask scheduler answers there: {error}") from None
    return DaskBackend(client, address, own=True)


class DaskBackend(Backend):
    """The workers of a cluster. Jobs go to the machine that has run them before, whose compiled kernels are kept there, if it is free."""

    def __init__(self, client: Any, name: str = "Dask", own: bool = False) -> None:
        super().__init__(client.get_executor(pure=False), name)
        self.client, self.own = client, own
        self.hosts: dict[str, list[str]] = {}  # workers by machine
        self.threads, self.counted = 0, 0.0
        self.keys = (f"softgen-{os.urandom(4).hex()}-{number}" for number in itertools.count())

    def _count(self) -> None:
        """Look at the workers there are: a cluster grows and shrinks."""
        if (now := time.monotonic()) < self.counted + REFRESH:
            return
        try:
            found = self.client.nthreads()
        except Exception as error:  # of many kinds, when the scheduler is gone
            raise SoftgenError(f"{self.name}: the scheduler does not answer any more: {error}") from None
        self.counted, self.threads, self.hosts = now, sum(found.values()), {}
        for address in found:
            self.hosts.setdefault(address.rpartition(":")[0], []).append(address)

    @property
    def workers(self) -> int:
        self._count()
        return self.threads

    @property
    def window(self) -> int:
        return max(super().window, FEWEST)

    def submit(self, job: Job) -> Future[JobOutcome]:
        where: dict[str, Any] = {"workers": near, "allow_other_workers": True} if (near := preferred(job, self.hosts)) else {}
        executor: Any = self.executor
        future: Future[JobOutcome] = executor.submit(run_on_worker, job, key=next(self.keys), **where)
        return future

    def check(self) -> None:
        if self.client.status in ("closing", "closed"):
            raise SoftgenError(f"{self.name}: the scheduler does not answer any more")

    def close(self) -> None:
        if self.own:
            self.client.close()


def preferred(job: Job, hosts: dict[str, list[str]]) -> list[str]:
    """The workers of the machine that a job goes to: always the same, for as long as there is that machine (rendezvous hashing)."""
    if len(hosts) < 2:
        return []
    name = f"{job.gpu} {job.units[0].name}"
    return hosts[max(hosts, key=lambda host: hashlib.sha256(f"{host} {name}".encode()).digest())]


def run_on_worker(job: Job) -> JobOutcome:
    """Run a job on a Dask worker."""
    return run_job(job, cancelled())


def cancelled() -> Callable[[], bool]:
    """A function that says whether the farm has dropped the task that this thread of a worker runs: it would go on to its limit."""
    worker = importlib.import_module("distributed").get_worker()
    key = worker.get_current_task()

    def found() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return found
