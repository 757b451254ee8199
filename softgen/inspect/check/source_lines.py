"""Source lines of findings: instructions of OpenCL kernels whose binaries have debug information (softgen run --debug-info)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from softgen.inspect.check.finding import Finding
from softgen.inspect.debug.sources import KernelSources, SourceFile
from softgen.threads.programs import DispatchProgram

PLACE = re.compile(r"(kernel 0x[0-9a-f]+)\+(0x[0-9a-f]+)")


class SourceLines:
    """The lines of the kernels that ran, as far as binaries have them. `files`: OpenCL binaries, and texts of sources."""

    def __init__(self, gen: float, files: Sequence[str], programs: Iterable[DispatchProgram]) -> None:
        known = [file for file in KernelSources(gen, optional=files).files if file.lines]
        self._lines: dict[str, dict[int, tuple[str, int]]] = {}  # by a kernel's address, and by its name
        for program in programs if known else ():
            if (found := _file(known, program)) is not None:
                self._lines |= {program.title: found.lines, found.name: found.lines}

    def placed(self, finding: Finding) -> Finding:
        """A finding with the line of its position, and the lines of the instructions that it names."""
        details = tuple(PLACE.sub(self._named, line) for line in finding.details)
        lines = self._lines.get(finding.kernel)
        source = lines.get(finding.position.offset or 0) if lines is not None and finding.position.offset is not None else None
        return replace(finding, details=details, source=source or finding.source)

    def _named(self, place: re.Match[str]) -> str:
        found = self._lines.get(place[1], {}).get(int(place[2], 16))
        return f"{place[0]} ({found[0]}:{found[1]})" if found is not None else place[0]


def _file(known: list[SourceFile], program: DispatchProgram) -> SourceFile | None:
    """The longest code that a program begins with."""
    fitting = [file for file in known if program.beginning(len(file.code)) == file.code]
    return max(fitting, key=lambda file: len(file.code), default=None)
