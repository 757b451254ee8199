"""Dispatches with several sets of surfaces, for tests: a kernel whose tables name other ranges of a buffer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from softgen.memory.address_space import AddressSpace
from softgen.memory.space import Space
from softgen.memory.store import MemfdBuffer
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.workers import group_cache, groups
from tests.gpgpu.job import dwords, vector_add
from tests.threads.workers.test_pool import recorded

TABLES = 0x30000  # surface state base of the job


def runs_made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []

    class Counted(groups.GroupRun):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(group_cache, "GroupRun", Counted)
    return made


class Sets:
    """A kernel with so many sets of surfaces: tables with other surface states, which name other ranges of the second buffer."""

    def __init__(self, count: int) -> None:
        self.job, self.dispatcher = vector_add("skl", ends=1), EngineDispatcher("t1", 1)
        self.context, dispatch = recorded(self.job)
        self.dispatch = replace(dispatch, kind=object())
        self.tables = [0x900 + 0x80 * number for number in range(count)]
        for number in range(count):
            self.write(number, number)

    def write(self, number: int, target: int, last: int = 127) -> None:
        """Writes the table of a set, whose kernel adds into a range of the buffer; `last`: its last byte, up to 127."""
        at = self.tables[number]
        state = dwords(*self.job.pack("RENDER_SURFACE_STATE", surface_type=4, surface_format=0x1FF, width=last, height=0,
                                      surface_base_address=self.job.address(1) + 64 * target))  # fmt: skip
        self.context.space.write(TABLES + at, dwords(0, at + 0x40).ljust(0x40, b"\0") + state)

    def run(self, number: int, target: int | None = None, meanwhile: Callable[[], None] = lambda: None) -> None:
        """`meanwhile`: what happens after the last thread, before the dispatch has ended."""
        self.context.space.write(self.job.address(1), bytes(512))
        finished = groups.GroupRun._finished
        with mock.patch.object(groups.GroupRun, "_finished", lambda run: (meanwhile(), finished(run))[1]):
            deque(self.dispatcher.run(self.context, replace(self.dispatch, binding_table=self.tables[number])), 0)
        assert self.context.space.read(self.job.address(1) + 64 * (number if target is None else target), 4) == dwords(1000)

    def kept(self) -> list[Any]:
        (workers,) = self.dispatcher._workers
        return workers.groups.kept()


def copied(space: Space) -> AddressSpace:
    """Another space with the same memory."""
    made = AddressSpace("another", space.bits)
    assert isinstance(space, AddressSpace)
    for region in list(space.regions()):
        made.map(region.start, MemfdBuffer(region.size))
        made.write(region.start, space.read(region.start, region.size))
    return made
