"""What is to be run: the units of a list, those of them that this shard has, and jobs for those that are missing."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from softgen.inspect.farm import drivers, identity
from softgen.inspect.farm.shards import WHOLE, Shard
from softgen.inspect.farm.unit import FarmUnit, Job

GIB = 1 << 30


@dataclass
class UnitSettings:
    """What all suites have in common: limits of a unit, options of `softgen`, and where."""

    seconds: float = 600.0
    memory: int = 8 * GIB
    options: tuple[str, ...] = ()  # of `softgen run` or `replay`
    pictures: bool = False
    shard: Shard = WHOLE
    folder: str = field(default_factory=os.getcwd)
    environment: dict[str, str] = field(default_factory=lambda: drivers.driver_variables(os.environ))

    @property
    def decisive(self) -> list[object]:
        """What of this is part of a unit's hash."""
        return [self.seconds, self.memory, *self.options]

    def job(self, suite: str, gpu: str, units: tuple[FarmUnit, ...], **more: object) -> Job:
        return Job(suite, gpu, units, self.seconds, self.memory, self.folder, self.options, self.environment, pictures=self.pictures,
                   host=identity.host_sum(gpu, self.environment), **more)  # type: ignore[arg-type]  # fmt: skip


class UnitPlan(ABC):
    """A suite's side of a farm: which units there are, their hashes, and how they run."""

    def __init__(self, settings: UnitSettings) -> None:
        self.settings = settings

    @abstractmethod
    def everything(self) -> list[tuple[str, str]]:
        """GPU and name of every unit, of all shards."""

    @abstractmethod
    def key(self, gpu: str, name: str) -> str:
        """A unit's hash."""

    @abstractmethod
    def jobs(self, units: list[FarmUnit], workers: int) -> Iterator[Job]:
        """Jobs that run these units, for so many workers."""

    def units(self) -> list[FarmUnit]:
        """The units of this shard."""
        return [FarmUnit(name, gpu, self.key(gpu, name)) for gpu, name in self.settings.shard.part(self.everything())]

    def whole_list(self) -> dict[str, object]:
        """The whole list, by which its shards are known to belong together: a sum of it, and how many units it has."""
        units = self.everything()
        return {"list": drivers.digest(f"{gpu} {name}" for gpu, name in units)[:16], "units": len(units)}


class ProgramPlan(UnitPlan):
    """A suite whose units are programs: drivers and their settings are part of each hash."""

    def context(self, gpu: str) -> str:
        return identity.program_context(gpu, self.settings.environment)


class CommandPlan(ProgramPlan):
    """Commands of a list, each on each GPU."""

    def __init__(self, lines: list[str], gpus: list[str], settings: UnitSettings) -> None:
        super().__init__(settings)
        self.lines, self.gpus = lines, gpus

    def everything(self) -> list[tuple[str, str]]:
        return list(product(self.gpus, self.lines))

    def key(self, gpu: str, name: str) -> str:
        return identity.line_key(name, gpu, self.settings.decisive, self.context(gpu), self.settings.folder)

    def jobs(self, units: list[FarmUnit], workers: int) -> Iterator[Job]:
        return (self.settings.job("run", unit.gpu, (unit,)) for unit in units)
