"""Findings: what a check found, where, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from softgen.errors import UsageError
from softgen.position import Position

ERROR, WARNING, NOTE = "error", "warning", "note"
NOWHERE = Position()
LEVELS = (ERROR, WARNING, NOTE)
CLASSES = {
    "race": "results depend on the order of threads that nothing orders",
    "order": "results of atomic operations depend on the order of threads, as sums of floats and lists that are appended to do",
    "uninitialised": "results depend on registers, local memory or scratch space that nothing has written",
    "bounds": "an access to a surface is outside of it",
    "stale": "results depend on when caches are flushed or invalidated",
    "unspecified": "results depend on bits that the manual leaves undefined",
    "rule": "a rule of the manual for software is broken",
    "endless": "threads repeat themselves and nothing can stop them",
}


@dataclass(frozen=True)
class Finding:
    """One finding. `witness`: the names of two worlds that differ; empty for facts, which happened in the replay itself."""

    kind: str
    level: str
    message: str
    kernel: str = ""
    position: Position = NOWHERE
    witness: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    source: tuple[str, int] | None = None  # file and line

    def __post_init__(self) -> None:
        assert self.kind in CLASSES and self.level in LEVELS

    def as_json(self) -> dict[str, Any]:
        return {"class": self.kind, "level": self.level, "message": self.message, "kernel": self.kernel, "position": str(self.position),
                "witness": list(self.witness), "details": list(self.details),
                "source": {"file": self.source[0], "line": self.source[1]} if self.source else None}  # fmt: skip


@dataclass(frozen=True)
class Allowed:
    """Findings that are meant to be: `--allow CLASS:KERNEL`, both with wildcards."""

    patterns: tuple[tuple[str, str], ...] = ()

    def __contains__(self, finding: Finding) -> bool:
        return any(finding.kind == kind and fnmatchcase(finding.kernel, kernel) for kind, kernel in self.patterns)


def allowed(texts: list[str]) -> Allowed:
    """Options `--allow` as patterns."""
    found = []
    for text in texts:
        kind, separator, kernel = text.partition(":")
        if kind not in CLASSES or not separator or not kernel:
            raise UsageError(f"--allow is CLASS:KERNEL, such as order:sum or race:*, with a class of {' '.join(CLASSES)}; not {text!r}")
        found.append((kind, kernel))
    return Allowed(tuple(found))


@dataclass
class CheckReport:
    """What was compared, and what was found."""

    gpu: str = ""
    worlds: list[str] = field(default_factory=list)
    submissions: int = 0
    dispatches: int = 0
    draws: int = 0
    findings: list[Finding] = field(default_factory=list)
    allowed: list[Finding] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # of the work itself
    notes: list[str] = field(default_factory=list)  # what could not be compared or explained
    seconds: dict[str, float] = field(default_factory=dict)  # of the plain run, and of each world

    @property
    def found(self) -> bool:
        """Whether there is anything but notes."""
        return any(finding.level != NOTE for finding in self.findings)

    @property
    def silence(self) -> str:
        """What it means that nothing was found."""
        return f"{len(self.worlds)} world{'s' if len(self.worlds) != 1 else ''}, no difference"

    def as_json(self) -> dict[str, Any]:
        return {"gpu": self.gpu, "worlds": self.worlds, "submissions": self.submissions, "dispatches": self.dispatches, "draws": self.draws,
                "result": "failed" if self.failures else "findings" if self.found else "fine",
                "findings": [finding.as_json() for finding in self.findings], "allowed": [finding.as_json() for finding in self.allowed],
                "failures": self.failures, "notes": self.notes, "seconds": self.seconds}  # fmt: skip
