"""Which backend runs a farm's jobs: this machine, a Dask cluster, or an executor that a program brings."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

from softgen.errors import UsageError
from softgen.inspect.farm.dask_backend import DaskBackend, connect
from softgen.inspect.farm.executors import Backend, LocalBackend


def from_address(on: str | None, workers: int | None) -> Backend:
    """The value of --on: nothing, `local` or `dask://HOST:PORT`."""
    if on in (None, "local"):
        return LocalBackend(workers)
    if not str(on).startswith(("dask://", "tcp://", "tls://")):
        raise UsageError(f"--on is local or dask://HOST:PORT, not {on!r}")
    if workers is not None:
        raise UsageError("--workers is for this machine; a cluster has the workers that it has")
    return connect(str(on))


def from_executor(executor: Any, workers: int | None) -> Backend:
    """The backend for an Executor, a Dask client or its executor; this machine for None."""
    if executor is None:
        return LocalBackend(workers)
    if hasattr(executor, "get_executor"):
        return DaskBackend(executor)
    if type(executor).__module__.startswith("distributed."):
        return DaskBackend(executor._client)
    if not isinstance(executor, Executor):
        raise UsageError(f"an executor is a concurrent.futures.Executor or a Dask client, not {type(executor).__name__}")
    return Backend(executor)
