"""Ahead-of-time compilation of t0's handlers, for the instructions that many kernels have.

Compilers use few forms of the instructions there are. common/*.asm has for a generation those that OpenCL kernels have most often, as one
program that is never run; most often first. Compiled once, they are in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from softgen.eu.interpreter import KernelProgram
from softgen.eu.threaded.handlers import HandlerKind
from softgen.eu.threaded.library import library, name_of
from softgen.eu.threaded.link import Linker

FOLDER = Path(__file__).parent / "common"
AROUND = ("gate", "start", "back")  # operations of most kernels that are no instruction


def has_list(gen: float) -> bool:
    """Whether there are OpenCL kernels for a generation."""
    return _list(gen).exists()


def _list(gen: float) -> Path:
    return FOLDER / f"{gen:g}.asm"


def common(gen: float) -> list[HandlerKind]:
    """Handlers of a generation's common instructions, in the order of its list; none where there is no list."""
    path = _list(gen)
    if not has_list(gen):
        return []
    from softgen.eu.text import dialect  # most processes need none

    linker = Linker(KernelProgram(gen, dialect.read(path.read_text("utf-8"), gen, name=str(path))), 0, library(gen))
    linker.explore_modes(frozenset({0}))
    ops = [op for mode in (linker, linker.other) if mode is not None for op in mode.ops()]
    kinds = [op.kind for op in ops if op.kind is not None]
    return list(dict.fromkeys([*map(linker.kind, AROUND), *kinds]))


def compile_ahead(gen: float, stopped: Callable[[], bool]) -> None:
    """Compile what the cache lacks of them, until that is done, or `stopped`."""
    handlers = library(gen)
    if not handlers.is_complete():
        names = {kind: name_of(kind) for kind in common(gen)}
        while not stopped() and handlers.compile_next(names):
            pass
