"""A check of one capture: replays in worlds side by side, then the submissions that differ again, dispatch by dispatch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.inspect.check.bounds import check_bounds
from softgen.inspect.check.endless import prove_endless
from softgen.inspect.check.finding import ERROR, Allowed, CheckReport, Finding
from softgen.inspect.check.interleaved import check_interleaved
from softgen.inspect.check.lanes import LANES, check_lanes
from softgen.inspect.check.narrow import VALUES, NarrowingDispatcher
from softgen.inspect.check.remarks import from_remarks
from softgen.inspect.check.replays import Opener, Replays, WorldDifference
from softgen.inspect.check.source_lines import SourceLines
from softgen.inspect.check.stale import STALE, check_stale
from softgen.inspect.report.kernel_names import KernelNames
from softgen.position import Position
from softgen.position import of as position_of
from softgen.streamer.execute import Streamer
from softgen.threads.places import TIME_IS_UP
from softgen.threads.programs import DispatchProgram
from softgen.threads.world import World
from softgen.trace.replay import events
from softgen.trace.work import Work


@dataclass
class Check:
    """What to check, and how."""

    opener: Opener  # opens the capture anew
    worlds: list[World]
    engine: str = "auto"
    allowed: Allowed = field(default_factory=Allowed)
    names: KernelNames = field(default_factory=KernelNames)
    timed_out: Callable[[], bool] = lambda: False
    stale: bool = False  # whether the `stale` world is one of them
    sources: Sequence[str] = ()  # OpenCL binaries with debug information, and texts of sources

    def run(self) -> CheckReport:
        report = CheckReport(worlds=[*(world.name for world in self.worlds), *([STALE] if self.stale else [])])
        replays = Replays(self.opener, self.worlds, self.engine, self.timed_out)
        report.gpu = replays.plain.gpu.device.name
        differences: dict[int, list[WorldDifference]] = {}
        for work, found in replays.submissions():
            report.submissions += 1
            if replays.plain.error is not None:
                where = position_of(replays.plain.error, Position(work.sequence))
                report.failures.append(f"{where}: {replays.plain.error}")
            if found:
                differences[work.sequence] = found
        self._count(report, replays)
        endless = self._endless(replays)
        findings = self._facts(replays)
        findings += endless
        if self.stale:
            findings += merged(check_stale(self.opener, self.engine, self.timed_out))
        if any(world.reserved for world in self.worlds):
            report.worlds.append(LANES)
            findings += check_lanes(self.opener, self.engine, self.timed_out)
        if differences:
            findings += self._narrowed(differences, report)
        if any(world.seed for world in self.worlds) and report.dispatches:
            findings += self._interleaved(findings)
        programs = list(replays.plain.dispatcher.programs)
        lines = SourceLines(replays.plain.gpu.device.generation.number, self.sources, programs)
        for finding in (named(lines.placed(finding), self.names, programs) for finding in findings):
            (report.allowed if finding in self.allowed else report.findings).append(finding)
        return report

    def _interleaved(self, known: list[Finding]) -> list[Finding]:
        """Races of kernels of which no order of whole threads has shown one."""
        racing = {finding.kernel for finding in known if finding.kind in ("race", "order")}
        found = merged(check_interleaved(self.opener, self.engine, self.timed_out))
        return [finding for finding in found if finding.kernel not in racing]

    def _endless(self, replays: Replays) -> list[Finding]:
        """The proof that work which took too long never ends, if there is one."""
        plain = replays.plain
        if plain.error is None or plain.work is None or TIME_IS_UP not in str(plain.error):
            return []
        where = position_of(plain.error, Position(plain.work.sequence))
        found = prove_endless(self.opener, self.engine, where) if where.group is not None else None
        return [found] if found is not None else []

    def _facts(self, replays: Replays) -> list[Finding]:
        """What happened in the plain replay; accesses outside of surfaces once for each instruction, where the interpreter can tell."""
        remarked = from_remarks(replays.plain.gpu.remarks)
        kernels = frozenset(finding.kernel for finding in remarked if finding.kind == "bounds")
        if not kernels and not replays.plain.dispatcher.local:
            return remarked
        exact = check_bounds(self.opener, self.engine, kernels, self.timed_out)
        known = {finding.kernel for finding in exact}
        return [*(finding for finding in remarked if finding.kind != "bounds" or finding.kernel not in known), *exact]

    def _count(self, report: CheckReport, replays: Replays) -> None:
        counters = replays.plain.gpu.counters
        report.dispatches, report.draws = counters.dispatches, counters.draws
        report.seconds = {replay.world.name: round(replay.seconds, 4) for replay in (replays.plain, *replays.others)}
        report.seconds["comparing"] = round(replays.comparing, 4)
        if self.timed_out():
            report.notes.append("time was up before all submissions were checked")

    def _narrowed(self, differences: dict[int, list[WorldDifference]], report: CheckReport) -> list[Finding]:
        """The findings of the submissions that differ; of one in which no dispatch alone differs, the difference itself."""
        found: list[Finding] = []
        for work, findings in self._again(differences):
            found += findings
            axes = {finding.witness[1].split()[0] for finding in findings if finding.witness}
            for difference in differences[work.sequence]:
                if difference.world.axis not in axes:
                    axes.add(difference.world.axis)
                    found.append(unexplained(difference))
        return merged(found)

    def _again(self, differences: dict[int, list[WorldDifference]]) -> Iterator[tuple[Work, list[Finding]]]:
        """Each submission that differs, executed again with its dispatches in the worlds in which it did."""
        trace, streamers = self.opener(), list[Streamer]()
        at = Position()

        def position() -> Position:
            return Position(at.submission, streamers[-1].command_number)

        dispatcher = NarrowingDispatcher(self.engine, position, self.names)
        gpu = GpuDevice(trace.device, itertools.count(1).__next__, self.timed_out, dispatcher=dispatcher)
        left = set(differences)
        for event in events(trace):
            if not isinstance(event, Work) or not left:
                continue
            at, dispatcher.findings = Position(event.sequence), []
            dispatcher.worlds = [difference.world for difference in differences.get(event.sequence, ())]
            try:
                execution = gpu.begin(event)
                streamers[:] = [execution.streamer]
                execution.run_to_end()
            except SoftgenError:
                pass  # reported by the first replay
            if event.sequence in left:
                left.discard(event.sequence)
                yield event, dispatcher.findings


def named(finding: Finding, names: KernelNames, programs: list[DispatchProgram]) -> Finding:
    """A finding with the names of kernels, as far as binaries have them."""
    known = {program.title: names.find(program.beginning(program.size), program.gen) for program in programs}
    return replace(finding, kernel=known.get(finding.kernel) or finding.kernel, message=names.renamed(finding.message, programs),
                   details=tuple(names.renamed(line, programs) for line in finding.details))  # fmt: skip


def unexplained(difference: WorldDifference) -> Finding:
    """A difference that no dispatch of the submission has for itself."""
    kind, _ = VALUES.get(difference.world.axis, ("race", ""))
    what = difference.error or f"{difference.bytes} bytes differ after the submission, first at {difference.address:#x}"
    return Finding(kind, ERROR, what, "", Position(difference.work.sequence), ("plain", difference.world.name),
                   ("no dispatch or draw differs by itself",))  # fmt: skip


def merged(findings: list[Finding]) -> list[Finding]:
    """One finding for all that say the same of a kernel: dispatches repeat."""
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        place = finding.position
        kept.setdefault((finding.kind, finding.kernel or (place.submission, place.command), finding.details, place.offset), finding)
    return list(kept.values())
