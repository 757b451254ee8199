"""Snapshots of memory, and the results of two engines that started from the same one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from softgen.bits.units import PAGE_SIZE
from softgen.errors import GpuFault, SoftgenError, Unsupported
from softgen.memory.space import Space
from softgen.threads.dispatch import Finished

MAX_SNAPSHOT = 2 << 30  # bytes of memory that are copied
PIECE = 1 << 20


class EngineDifference(SoftgenError):
    """Two engines left different bytes, or only one of them failed."""


class MemorySnapshot:
    """All bytes of a space. A program may unmap buffers while it is held: what is no longer mapped is neither changed nor restored."""

    def __init__(self, space: Space) -> None:
        self.space, self.pieces, size = space, {}, 0
        for region in space.regions():
            size += region.size
            if size > MAX_SNAPSHOT:
                raise Unsupported(f"{space.name} has more than {MAX_SNAPSHOT >> 30} GiB: too much to compare engines on")
            for at in range(region.start, region.start + region.size, PIECE):
                with suppress(GpuFault):
                    self.pieces[at] = space.read(at, min(PIECE, region.start + region.size - at))

    def restore(self) -> None:
        for page, old, _ in self._changed():
            with suppress(GpuFault):
                self.space.write(page, old)

    def changed(self) -> dict[int, bytes]:
        """Pages that have changed, with their new contents."""
        return {page: new for page, _, new in self._changed()}

    def _changed(self) -> Iterator[tuple[int, bytes, bytes]]:
        for at, held in self.pieces.items():
            try:
                now = self.space.read(at, len(held))
            except GpuFault:
                continue
            if now != held:
                for offset in range(0, len(held), PAGE_SIZE):
                    old, new = held[offset : offset + PAGE_SIZE], now[offset : offset + PAGE_SIZE]
                    if old != new:
                        yield at + offset, old, new


@dataclass(frozen=True)
class EngineResult:
    """The outcome of a dispatch on one engine: its error, and the pages it changed, by address."""

    done: tuple[Finished, ...]
    error: SoftgenError | None
    pages: dict[int, bytes]

    @property
    def threads(self) -> int:
        return sum(finished.threads for finished in self.done)


class PageSnapshot:
    """Some pages, to be restored."""

    def __init__(self, space: Space, pages: set[int]) -> None:
        self.space, self.held = space, {page: space.read(page, PAGE_SIZE) for page in pages}

    def restore(self) -> None:
        for page, data in self.held.items():
            if self.space.read(page, PAGE_SIZE) != data:
                self.space.write(page, data)


def first_page(first: EngineResult, second: EngineResult) -> int | None:
    """The first page that two runs left differently."""
    differing = {page for page, _ in first.pages.items() ^ second.pages.items()}
    return min(differing, default=None)


def first_address(first: dict[int, bytes], second: dict[int, bytes]) -> int | None:
    """The first address at which pages differ, of a dword."""
    for page in sorted(first):
        if first[page] != second[page]:
            return page + next(i for i in range(PAGE_SIZE) if first[page][i] != second[page][i]) // 4 * 4
    return None


def values_text(names: list[str], at: int, pages: list[dict[int, bytes]]) -> str:
    def value(held: dict[int, bytes]) -> str:
        start = at % PAGE_SIZE
        return f"{int.from_bytes(held[at - start][start : start + 4], 'little'):#010x}"

    return f"at {at:#x} {names[0]} has {value(pages[0])}, {names[1]} has {value(pages[1])}"


def error_text(error: SoftgenError | None) -> str:
    """The part of an error on which engines must agree: at a time limit they may be in different places of a loop."""
    if isinstance(error, GpuFault):
        return f"{error.access} at {error.address:#x}"
    return str(error) if error else ""
