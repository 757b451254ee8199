"""The tables of spec/driver: what the kernel says about a GPU, and which drivers there are for it."""

from __future__ import annotations

import glob
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from softgen.errors import SpecError


@dataclass(frozen=True)
class KernelFacts:
    """A row of kernel.toml."""

    revision: int
    engines: tuple[str, ...]
    topology: tuple[int, ...]
    llc: bool
    ppgtt: int
    vm: bool
    gtt_bytes: int
    fences: int
    parser: int
    preempt: int
    isolation: int
    huc: bool
    address_size: int
    vcs: int = 0
    vecs: int = 0


@dataclass(frozen=True)
class Runtime:
    """A row of runtimes.toml: a driver of the distribution."""

    name: str
    api: str
    package: str
    gpus: tuple[str, ...]
    files: tuple[str, ...]

    def found(self) -> str:
        """The file that shows it is installed; '' where it is not."""
        return next((path for pattern in self.files for path in sorted(glob.glob(pattern))), "")


def _table(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((resources.files("softgen") / "spec" / "driver" / name).read_text("utf-8"))


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


@cache
def kernel(gpu: str) -> KernelFacts:
    row = _table("kernel.toml").get(gpu)
    if row is None:
        raise SpecError(f"kernel.toml says nothing about {gpu}")
    return KernelFacts(**_frozen(row))


@cache
def runtimes() -> tuple[Runtime, ...]:
    return tuple(Runtime(name, **_frozen(row)) for name, row in _table("runtimes.toml").items())


def runtimes_of(gpu: str) -> tuple[Runtime, ...]:
    """The drivers that serve a GPU, in the order they are preferred."""
    return tuple(runtime for runtime in runtimes() if gpu in runtime.gpus)
