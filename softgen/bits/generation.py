"""Generations and devices: what a machine can do, by name.

A generation's capabilities are the keys of its table in `spec/generations.toml`, inherited through `like`; code asks for them as
attributes. A device is a row of `spec/devices.toml`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from softgen.errors import SpecError

GENERATIONS = (4.0, 4.5, 7.0, 7.5, 8.0, 9.0, 11.0)
SPEC = Path(__file__).parent.parent / "spec"


@dataclass(frozen=True)
class Generation:
    """One generation; capabilities are attributes. A misspelt one raises at once."""

    number: float
    capabilities: tuple[tuple[str, Any], ...]

    def __getattr__(self, name: str) -> Any:
        for key, value in object.__getattribute__(self, "capabilities"):
            if key == name:
                self.__dict__[name] = value  # not looked for again
                return value
        if name.startswith("__"):
            raise AttributeError(name)
        raise SpecError(f"generations.toml names no capability {name!r}")

    def __str__(self) -> str:
        return f"gen {self.number:g}"


@dataclass(frozen=True)
class Device:
    """One GPU: a row of devices.toml."""

    name: str
    title: str
    pci_id: int
    pci_ids: tuple[int, ...]
    generation: Generation
    limits: tuple[tuple[str, int], ...]
    aliases: tuple[str, ...] = ()

    def limit(self, name: str) -> int:
        """A size or count, such as 'eus' or 'urb_kib'."""
        found = dict(self.limits).get(name)
        if found is None:
            raise SpecError(f"devices.toml gives {self.name} no {name!r}")
        return found


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((SPEC / name).read_text("utf-8"))


def read_generations(tables: dict[str, dict[str, Any]]) -> dict[float, Generation]:
    """Inherit, then check that every generation answers the same questions."""
    full: dict[str, dict[str, Any]] = {}
    for number, own in tables.items():
        parent = own.get("like")
        if parent is not None and parent not in full:
            raise SpecError(f"generations.toml: {number} is like {parent}, which does not stand above it")
        if parent is None and full:
            raise SpecError(f"generations.toml: {number} is like no generation above it; only the first names all capabilities")
        unknown = set(own) - {"like"} - set(full[parent]) if parent else set()
        if unknown:
            first = sorted(unknown)[0]
            raise SpecError(f"generations.toml: {number} names {first!r}, which {parent} does not; the first generation names them all")
        full[number] = {**(full[parent] if parent else {}), **{k: v for k, v in own.items() if k != "like"}}
    if sorted(float(n) for n in full) != sorted(GENERATIONS):
        raise SpecError(f"generations.toml: must name generations {', '.join(f'{g:g}' for g in GENERATIONS)}, not {', '.join(full)}")
    return {float(n): Generation(float(n), tuple((k, _freeze(v)) for k, v in c.items())) for n, c in full.items()}


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@cache
def generations() -> dict[float, Generation]:
    return read_generations(_table("generations.toml"))


def generation(number: float) -> Generation:
    found = generations().get(float(number))
    if found is None:
        raise SpecError(f"softgen knows generations {', '.join(f'{g:g}' for g in GENERATIONS)}, not {number:g}")
    return found


@cache
def devices() -> dict[str, Device]:
    """Every GPU, by name, oldest first."""
    found = {}
    for name, row in _table("devices.toml").items():
        limits = tuple((k, v) for k, v in row.items() if k not in ("title", "pci_ids", "pci_id", "generation", "aliases"))
        its_generation, aliases = generation(float(row["generation"])), tuple(row.get("aliases", ()))
        found[name] = Device(name, row["title"], row["pci_id"], tuple(row["pci_ids"]), its_generation, limits, aliases)
    return found


@cache
def most_of(generation: Generation, limit: str) -> int:
    """The largest value that a limit has among the devices of a generation."""
    return max(device.limit(limit) for device in devices().values() if device.generation is generation)


def device(name: str) -> Device:
    for device in devices().values():
        if name == device.name or name in device.aliases:
            return device
    raise SpecError(f"no GPU is called {name!r}; there are {', '.join(devices())}")


def device_by_pci(pci_id: int) -> Device:
    for device in devices().values():
        if pci_id in device.pci_ids:
            return device
    raise SpecError(f"no GPU softgen knows has PCI id {pci_id:#06x}; `softgen gpus` lists them")
