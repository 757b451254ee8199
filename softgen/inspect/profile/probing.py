"""Probing: a capture executed while probes are told what its kernels do (probe.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.eu.interpreter import KernelProgram
from softgen.inspect.profile.measure import Place, ProfilingDispatcher
from softgen.inspect.profile.probe import ACCESS, BATCH, EXECUTED, Probe, ProbedKernel, Rows
from softgen.inspect.session.execution import CaptureExecution
from softgen.inspect.session.session import Session
from softgen.position import Position
from softgen.shared_functions.dataport import target
from softgen.threads.statistics import own_code


class ProbeRun:
    """A run of a capture with probes."""

    def __init__(self, session: Session, probes: Sequence[Probe]) -> None:
        self.session, self.probes = session, probes
        self.observed = [probe for probe in probes if type(probe).accesses is not Probe.accesses]
        self.dispatcher = ProfilingDispatcher(bool(self.observed))
        self.kernels: dict[int, ProbedKernel] = {}
        self._numbers: dict[KernelProgram, int] = {}
        self._batch: list[Rows] = []
        self._size = 0
        for probe in probes:
            probe.kernels = self.kernels

    def run(self) -> None:
        """Execute the capture."""
        run = CaptureExecution(self.session._open(), dispatcher=self.dispatcher)
        target.observers.append(self._observe)
        try:
            before = self.dispatcher.totals()
            for event in self.session.work():
                assert event.position.submission is not None and event.position.command is not None
                if not run.run_to(event.position.submission, event.position.command):
                    continue
                for probe in self.probes:
                    probe.begin(event.position, event.name)
                run.finish_command()
                self._flush()
                before = self._executed(event.position, before)
            run.run_to_end()
        finally:
            target.observers.remove(self._observe)
        for _, error in run.errors:
            raise error

    def _number(self, program: KernelProgram) -> int:
        number = self._numbers.get(program)
        if number is None:
            number = self._numbers[program] = len(self.kernels)
            self.kernels[number] = ProbedKernel(number, program.title, own_code(program), program)
        return number

    def _observe(self, access: str, addresses: target.Offsets, width: int, lanes: npt.NDArray[np.intp]) -> None:
        here = self.dispatcher.traffic.here if self.dispatcher.traffic is not None else None
        if here is None or not self.observed:
            return
        rows = np.zeros(len(addresses), ACCESS)
        rows["kernel"], rows["offset"], rows["write"] = self._number(here[0]), here[1] - here[0].start, access == "write"
        rows["lane"], rows["size"], rows["address"] = lanes, width, addresses
        self._batch.append(rows)
        self._size += len(rows)
        if self._size >= BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._batch:
            rows, self._batch, self._size = np.concatenate(self._batch), [], 0
            for probe in self.observed:
                probe.accesses(rows)

    def _executed(self, position: Position, before: dict[Place, tuple[int, int]]) -> dict[Place, tuple[int, int]]:
        """Report the counts of a draw or dispatch; all counts so far."""
        after = self.dispatcher.totals()
        found: list[Any] = []
        for (program, ip), (executed, lanes) in after.items():
            had = before.get((program, ip), (0, 0))
            if executed > had[0]:
                found.append((self._number(program), ip - program.start, executed - had[0], lanes - had[1]))
        rows = np.array(sorted(found), EXECUTED)
        for probe in self.probes:
            probe.executed(position, rows)
        return after
