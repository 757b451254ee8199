"""The tables of spec/driver: what the kernel says about a GPU and its display, and which drivers there are for it."""

from __future__ import annotations

import glob
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from softgen.bits.generation import SPEC
from softgen.errors import SpecError


class KernelFacts(NamedTuple):
    """A row of kernel.toml."""

    revision: int
    engines: tuple[str, ...]
    topology: tuple[int, ...]
    llc: bool
    ppgtt: int
    vm: bool
    gtt_bytes: int
    fences: int
    fence_stride: int
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
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)

    def found(self, root: str = "") -> str:
        """The file that shows it is installed, under `root`; '' where it is not."""
        return next((path for pattern in self.files for path in sorted(glob.glob(root + pattern))), "")

    @property
    def debian_package(self) -> str:
        """Its package as apt-get takes it on this host: the drivers are x86-64 code."""
        return self.package if x86_64_host() else f"{self.package}:amd64"


def x86_64_host() -> bool:
    return os.uname().machine == "x86_64"


class ScanoutFormat(NamedTuple):
    """A row of display.toml: a pixel format of framebuffers, by its fourcc."""

    name: str
    surface: str
    bits: int
    depth: int

    @property
    def fourcc(self) -> int:
        return int.from_bytes(self.name.encode("ascii"), "little")


class ScanoutModifier(NamedTuple):
    """A row of display.toml: a tiling of framebuffers, by its modifier."""

    name: str
    value: int
    tiling: str
    unit: int
    rows: int


class DisplayFacts(NamedTuple):
    """What display.toml says about a GPU: the largest framebuffer, its formats by fourcc, and its modifiers by value; atomic mode setting,
    entries of GAMMA_LUT, whether the primary plane may cover a part of the CRTC."""

    largest: int
    formats: dict[int, ScanoutFormat]
    modifiers: dict[int, ScanoutModifier]
    atomic: bool = True
    gamma: int = 1024
    windowed_primary: bool = False


def _table(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((SPEC / "driver" / name).read_text("utf-8"))


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


@cache
def kernel(gpu: str) -> KernelFacts:
    row = _table("kernel.toml").get(gpu)
    if row is None:
        raise SpecError(f"kernel.toml says nothing about {gpu}")
    return KernelFacts(**_frozen(row))


@cache
def display(gpu: str) -> DisplayFacts:
    table = _table("display.toml")
    row = table["gpus"].get(gpu)
    if row is None:
        raise SpecError(f"display.toml says nothing about {gpu}")
    formats = [ScanoutFormat(name, **row) for name, row in table["formats"].items()]
    modifiers = [ScanoutModifier(name, **table["modifiers"][name]) for name in row["modifiers"]]
    return DisplayFacts(row["largest"], {entry.fourcc: entry for entry in formats}, {entry.value: entry for entry in modifiers},
                        row["atomic"], row["gamma"], row["windowed_primary"])  # fmt: skip


@cache
def runtimes() -> tuple[Runtime, ...]:
    return tuple(Runtime(name, **_frozen(row)) for name, row in _table("runtimes.toml").items())


def runtimes_of(gpu: str) -> tuple[Runtime, ...]:
    """The drivers that serve a GPU, in the order they are preferred."""
    return tuple(runtime for runtime in runtimes() if gpu in runtime.gpus)
