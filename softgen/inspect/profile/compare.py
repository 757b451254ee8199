"""Two profiles side by side: kernels are aligned by name and stage, or by their code; counts that differ differ exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from softgen.errors import DecodeError
from softgen.inspect.cli.output import Paint, table
from softgen.inspect.profile.counts import DrawCounts, InstructionCounts, KernelCounts, Profile

SIMILAR = 0.6  # of the instructions of two kernels, from which on they are taken for versions of one
COUNTS = ("threads", "executed", "lanes")


@dataclass(frozen=True)
class KernelPair:
    """A kernel in both profiles; None: it is in one of them only."""

    before: KernelCounts | None
    after: KernelCounts | None

    @property
    def name(self) -> str:
        kernel = self.after or self.before
        assert kernel is not None
        return f"{kernel.name} {kernel.stage}".rstrip()

    def counts(self, name: str) -> tuple[int, int]:
        return tuple(getattr(kernel, name) if kernel is not None else 0 for kernel in (self.before, self.after))  # type: ignore[return-value]

    @property
    def differs(self) -> bool:
        return any(before != after for before, after in map(self.counts, COUNTS))

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kernel": self.name, "before": self.before and self.before.code, "after": self.after and self.after.code}
        for name in COUNTS:
            before, after = self.counts(name)
            found[name] = {"before": before, "after": after, "ratio": round(after / before, 6) if before else None}
        return found


def from_json(data: Any, name: str) -> Profile:
    """A profile that was written as JSON."""
    if not isinstance(data, dict) or data.get("format") != "softgen profile" or data.get("version") != 1:
        raise DecodeError(f"{name}: is no profile of this version of softgen")
    try:
        rest = {key: value for key, value in data.items() if key not in ("format", "version", "draws", "kernels")}
        kernels = [KernelCounts(**{**kernel, "instructions": [InstructionCounts(**row) for row in kernel["instructions"]]})
                   for kernel in data["kernels"]]  # fmt: skip
        return Profile(**rest, draws=[DrawCounts(**draw) for draw in data["draws"]], kernels=kernels)
    except (KeyError, TypeError) as error:
        raise DecodeError(f"{name}: is a damaged profile: {error}") from None


def pairs(before: Profile, after: Profile) -> list[KernelPair]:
    """The kernels of two profiles, aligned: the same code, then the same name that is no address, then similar instructions."""
    left, right = list(before.kernels), list(after.kernels)
    found = []
    for same in (_same_code, _same_name, _similar):
        for kernel in list(left):
            other = next((candidate for candidate in right if same(kernel, candidate)), None)
            if other is not None:
                left.remove(kernel)
                right.remove(other)
                found.append(KernelPair(kernel, other))
    found += [KernelPair(kernel, None) for kernel in left] + [KernelPair(None, kernel) for kernel in right]
    return sorted(found, key=lambda pair: -max(pair.counts("executed")))


def _same_code(kernel: KernelCounts, other: KernelCounts) -> bool:
    return (kernel.code, kernel.stage) == (other.code, other.stage)


def _same_name(kernel: KernelCounts, other: KernelCounts) -> bool:
    return kernel.name == other.name and kernel.stage == other.stage and not kernel.name.startswith("kernel 0x")


def _similar(kernel: KernelCounts, other: KernelCounts) -> bool:
    if kernel.stage != other.stage:
        return False
    first, second = ([row.text.split(" ")[0] for row in rows] for rows in (kernel.instructions, other.instructions))
    return SequenceMatcher(a=first, b=second, autojunk=False).ratio() >= SIMILAR


def lines(before: Profile, after: Profile, found: Sequence[KernelPair], colour: Paint) -> Iterator[str]:
    """What differs, as text."""
    yield colour(f"{before.capture} ({before.gpu})  ->  {after.capture} ({after.gpu})", "heading")
    cells = []
    for pair in found:
        for name in COUNTS:
            first, second = pair.counts(name)
            if first != second:
                ratio = f"{second / first:.4f}" if first else "new"
                cells.append((pair.name, "instructions" if name == "executed" else name, f"{first:,}", f"{second:,}", ratio))
    if cells:
        yield from table(cells, ("kernel", "count", "before", "after", "ratio"), right=(2, 3, 4))
    else:
        yield "the same counts of every kernel"
