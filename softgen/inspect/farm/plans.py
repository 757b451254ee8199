"""What is to be run: the units of a list, those of them that this shard has, and jobs for those that are missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol

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
                   **more)  # type: ignore[arg-type]  # fmt: skip


class UnitPlan(Protocol):
    """A suite's side of a farm."""

    def units(self) -> list[FarmUnit]: ...
    def jobs(self, units: list[FarmUnit], workers: int) -> Iterator[Job]: ...


class CommandPlan:
    """Commands of a list, each on each GPU."""

    def __init__(self, lines: list[str], gpus: list[str], settings: UnitSettings) -> None:
        self.lines, self.gpus, self.settings = lines, gpus, settings

    def units(self) -> list[FarmUnit]:
        given = self.settings
        contexts = {gpu: identity.program_context(gpu, given.environment) for gpu in self.gpus}
        return [FarmUnit(line, gpu, identity.line_key(line, gpu, given.decisive, contexts[gpu], given.folder))
                for gpu, line in given.shard.part(list(product(self.gpus, self.lines)))]  # fmt: skip

    def jobs(self, units: list[FarmUnit], workers: int) -> Iterator[Job]:
        return (self.settings.job("run", unit.gpu, (unit,)) for unit in units)
