"""Texture tables: palettes and chroma keys, which commands load into the sampler.

Reads   3DSTATE_SAMPLER_PALETTE_LOAD0 3DSTATE_SAMPLER_PALETTE_LOAD1 3DSTATE_CHROMA_KEY
Writes  TextureTables, the sampler's state of a dispatch
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from softgen.bits.record import Record

if TYPE_CHECKING:
    from softgen.shared_functions.unit import DispatchBindings, UnitStates

NAME = "sampler"
PALETTES = ("3DSTATE_SAMPLER_PALETTE_LOAD0", "3DSTATE_SAMPLER_PALETTE_LOAD1")
CHROMA_KEY = "3DSTATE_CHROMA_KEY"
ENTRIES = 256
KEYS = 4
Palette = tuple[int, ...]
ChromaKey = tuple[int, int]  # low and high value: alpha, red, green and blue from the highest byte down


class LatchedTables(Protocol):
    """Commands as they were latched, as far as tables are made of them."""

    def get(self, name: str, /) -> Record | None: ...

    def by_index(self, name: str) -> dict[int, Record]: ...


@dataclass(frozen=True)
class TextureTables:
    """Palettes and chroma keys of a dispatch. What was never loaded is zero."""

    palettes: tuple[Palette, ...] = ((0,) * ENTRIES,) * len(PALETTES)
    keys: tuple[ChromaKey, ...] = ((0, 0),) * KEYS

    @classmethod
    def of(cls, dispatch: DispatchBindings) -> TextureTables:
        found = dispatch.unit_states.get(NAME)
        return found if isinstance(found, TextureTables) else NO_TABLES


NO_TABLES = TextureTables()


def texture_tables(latched: LatchedTables) -> UnitStates:
    """The tables as they were loaded (BDW 9509-9642, 1655-1730); none where none ever was."""
    loads, keys = [latched.get(name) for name in PALETTES], latched.by_index(CHROMA_KEY)
    if not keys and not any(loads):
        return ()
    held = tuple((int(keys[number].chromakey_low_value), int(keys[number].chromakey_high_value)) if number in keys else (0, 0)
                 for number in range(KEYS))  # fmt: skip
    return ((NAME, TextureTables(tuple(_palette(load) for load in loads), held)),)


def _palette(load: Record | None) -> Palette:
    """Alpha, red, green and blue of each entry, a byte each; loads begin with entry 0."""
    entries = load.palette_entry if load is not None else ()
    found = [entry.alpha << 24 | entry.red << 16 | entry.green << 8 | entry.blue for entry in entries]
    return (*found, *[0] * ENTRIES)[:ENTRIES]
