"""Registers by offset: `find(0x2608, 9, "render")` is CS_GPR.

An offset a command names is absolute, or counts from where the engine's registers start (Gen11's "add CS MMIO start offset"). Pages write
an engine's own registers once, with an offset that counts from that start (`+0x600`), and all others with the absolute one. Where the
engines start is in `spec/device/engines.toml`.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import SPEC
from softgen.bits.layout import Layout
from softgen.bits.page import RegisterSpan
from softgen.errors import SpecError


class RegisterPlace(NamedTuple):
    """What an offset names: a dword of a register, which may be one of several in a row."""

    layout: Layout
    offset: int  # absolute, of this register's first dword
    number: int  # which of the row
    dword: int  # which dword of the register

    @property
    def label(self) -> str:
        """'RING_BUFFER_HEAD', 'CS_GPR[3]', and 'CS_GPR[3]+4' for the upper half."""
        row = f"[{self.number}]" if self.layout.count > 1 else ""
        return self.layout.name + row + (f"+{4 * self.dword}" if self.dword else "")


def place(offset: int, gen: float, engine: str = "", relative: bool = False) -> RegisterPlace | None:
    """The register an offset falls into, as the engine's command streamer sees it."""
    starts = bases(gen)
    if relative:
        if engine not in starts:
            raise SpecError(f"gen {gen:g} has no engine {engine!r} that an offset could count from")
        offset += starts[engine][0]
    own = (_covering(gen, _own(gen, name), offset, base) for base, name in _order(gen, engine))
    return _covering(gen, _absolute(gen), offset, 0) or next(filter(None, own), None)


def find(offset: int, gen: float, engine: str = "", relative: bool = False) -> Layout | None:
    """The layout of the register an offset falls into; None when no page has one there."""
    found = place(offset, gen, engine, relative)
    return found.layout if found else None


@cache
def bases(gen: float) -> dict[str, tuple[int, ...]]:
    """Where the registers of each engine start."""
    text = (SPEC / "device" / "engines.toml").read_text("utf-8")
    return {engine: tuple(starts) for engine, starts in tomllib.loads(text)[f"{gen:g}"].items()}


def _order(gen: float, engine: str) -> Iterator[tuple[int, str]]:
    """(base, engine), the asking engine's own first."""
    named = sorted(bases(gen), key=lambda name: name != engine)
    yield from ((base, name) for name in named for base in bases(gen)[name])


RegisterRow = tuple[int, int, str]  # first byte, end, name


@cache
def _absolute(gen: float) -> tuple[RegisterRow, ...]:
    return _rows(gen, lambda span: not span.relative)


@cache
def _own(gen: float, engine: str) -> tuple[RegisterRow, ...]:
    return _rows(gen, lambda span: span.relative and engine in span.engines)


def _rows(gen: float, wanted: Callable[[RegisterSpan], bool]) -> tuple[RegisterRow, ...]:
    return tuple(sorted((span.offset, span.offset + span.size, name) for name, span in _registers(gen) if wanted(span)))


@cache
def _registers(gen: float) -> tuple[tuple[str, RegisterSpan], ...]:
    return tuple(catalogue().registers(gen))


def _covering(gen: float, rows: tuple[RegisterRow, ...], offset: int, base: int) -> RegisterPlace | None:
    at = offset - base
    nearest = bisect_right(rows, at, key=lambda row: row[0]) - 1
    if nearest < 0 or at >= rows[nearest][1]:
        return None
    start, _, name = rows[nearest]
    layout = catalogue().layout(name, gen)
    number, dword = divmod((at - start) // 4, layout.dwords)
    return RegisterPlace(layout, base + start + 4 * layout.dwords * number, number, dword)
