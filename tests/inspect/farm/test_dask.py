"""A farm on Dask: workers die, schedulers go, and every unit still has one result, that of a run on one machine."""

from __future__ import annotations

import os
import random
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softgen.errors import SoftgenError, UsageError
from softgen.inspect.farm.backends import from_address, from_executor
from softgen.inspect.farm.dask_backend import DaskBackend, preferred
from softgen.inspect.farm.engine import FarmEngine
from softgen.inspect.farm.executors import LocalBackend
from tests.driver.running import needs_shim
from tests.inspect.farm.farming import by_name, farm, job, start, write_list

distributed = pytest.importorskip("distributed", reason="Dask is absent (pip install softgen[farm])")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50) as cluster:
        yield cluster


def address(cluster: Any) -> str:
    return str(cluster.scheduler_address).replace("tcp://", "dask://")


def results(folder: Path) -> dict[str, tuple[str, str, str]]:
    return {name: (line["result"], line["message"], line["hash"]) for name, line in by_name(folder).items()}


@pytest.mark.witness
@needs_shim
def test_workers_that_are_killed_lose_nothing(cluster: Any, tmp_path: Path) -> None:
    """Workers are killed at random while units run, slow ones among them."""
    seed = random.randrange(1 << 30)
    tests = [f"sh -c 'sleep 0.{n % 7}; exit {n % 3}; {n}'" for n in range(24)]
    listed = write_list(tmp_path / "list", tests)
    farm("run", "--tests", listed, "--out", tmp_path / "serial", "--workers", "1")
    process = start("run", "--tests", listed, "--out", tmp_path / "dask", "--on", address(cluster))
    chance, killed = random.Random(seed), 0
    while process.poll() is None and killed < 4:
        time.sleep(chance.uniform(1, 4))
        if pids := [nanny.process.pid for nanny in cluster.workers.values() if nanny.process and nanny.process.pid]:
            os.kill(chance.choice(pids), signal.SIGKILL)
            killed += 1
    _, err = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in err and killed, (seed, err)
    assert results(tmp_path / "dask") == results(tmp_path / "serial") and len(results(tmp_path / "dask")) == 24, seed


@needs_shim
def test_a_farm_that_is_interrupted_ends_its_units(cluster: Any, tmp_path: Path) -> None:
    listed = write_list(tmp_path / "list", ["true", f"sh -c {shlex.quote(f'touch {tmp_path}/begun; sleep 1234.875')}"])
    process = start("run", "--tests", listed, "--out", tmp_path / "out", "--on", address(cluster))
    until(lambda: (tmp_path / "begun").exists() and (tmp_path / "out" / "results.jsonl").stat().st_size > 0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted: 1 of 2 units are done and kept" in err
    until(lambda: not alive("1234.875"))


def until(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def alive(mark: str) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += [pid] if mark in Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0") else []
        except OSError:
            continue
    return found


@needs_shim
def test_a_client_and_its_executor_are_executors(cluster: Any) -> None:
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)  # those that another test has killed come back
        for given in (client, client.get_executor()):
            backend = from_executor(given, None)
            assert isinstance(backend, DaskBackend) and backend.workers == 2
            [(_, outcome)] = FarmEngine(backend, iter([job("true")])).outcomes()
            assert outcome.results[0].result == "pass"
            backend.close()
        assert client.nthreads()  # it is not ours to close


def test_a_scheduler_that_goes_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its futures never end."""
    monkeypatch.setattr("softgen.inspect.farm.engine.LOOK", 0.2)
    monkeypatch.setattr("softgen.inspect.farm.engine.END", 0.2)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        engine = FarmEngine(DaskBackend(client, "dask://there"), iter([job("sleep 3")] * 3))
        threading.Timer(1, client.close).start()
        with pytest.raises(SoftgenError, match=r"dask://there: (takes no more units|the scheduler does not answer)"):
            list(engine.outcomes())
        assert list(engine.stop()) == []


def test_units_go_where_they_were_before() -> None:
    hosts = {f"tcp://host{n}": [f"tcp://host{n}:1", f"tcp://host{n}:2"] for n in range(4)}
    jobs = [job(f"unit {n}") for n in range(200)]
    first = {one.units[0].name: preferred(one, hosts) for one in jobs}
    shares = [sum(near[0].startswith(host) for near in first.values()) for host in hosts]
    assert all(25 < share < 80 for share in shares) and all(len(near) == 2 for near in first.values())
    del hosts["tcp://host2"]
    moved = [name for name, near in first.items() if preferred(job(name), hosts) != near]
    assert moved == [name for name, near in first.items() if near[0].startswith("tcp://host2")]
    assert preferred(jobs[0], {"tcp://one": ["tcp://one:1"]}) == [] == preferred(jobs[0], {})


def test_where_a_farm_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for on in (None, "local"):
        assert isinstance(from_address(on, 3), LocalBackend) and from_address(on, 3).workers == 3
    with pytest.raises(UsageError, match="--on is local or dask://HOST:PORT, not 'slurm'"):
        from_address("slurm", None)
    with pytest.raises(UsageError, match="--workers is for this machine"):
        from_address("dask://x:1", 3)
    with pytest.raises(UsageError, match=r"an executor is a concurrent.futures.Executor or a Dask client, not str"):
        from_executor("dask", None)
    monkeypatch.setattr("softgen.inspect.farm.dask_backend.CONNECT", 0.2)
    with pytest.raises(SoftgenError, match=r"--on dask://127.0.0.1:1: no Dask scheduler answers there"):
        from_address("dask://127.0.0.1:1", None)
    assert isinstance(from_executor(None, 2), LocalBackend)


def test_without_dask_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(SoftgenError, match=r"needs Dask, which is not installed: pip install 'softgen\[farm\]'"):
        from_address("dask://x:1", None)
