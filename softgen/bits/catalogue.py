"""The catalogue: (name, generation) -> layout. A section is read for a generation when that is first asked for, and kept (store.py).

Commands are also found by their header dword; for registers see registers.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from softgen.bits import page
from softgen.bits.generation import SPEC
from softgen.bits.layout import GENERATIONS, KEY_SHIFT, Header, Layout
from softgen.bits.store import MISSING, PageStore
from softgen.cache import Cache, default_folder
from softgen.errors import SpecError

T = TypeVar("T")

CommandTable = dict[tuple[int, int], list[tuple[Header, str]]]


class Catalogue:
    """Layouts and enumerations by name. `store` has what earlier processes read from the same pages."""

    def __init__(self, pages: Iterable[tuple[str, str]], store: PageStore | None = None) -> None:
        self._pages, self._store = pages, store
        self._generations: dict[str, tuple[float, ...]] = {}
        self._layouts: dict[tuple[str, float], Layout | None] = {}  # None: the generation does not have it
        self._values: dict[tuple[str, float], dict[int, str]] = {}
        self._commands: dict[tuple[float, str], CommandTable] = {}
        self._stored: dict[tuple[str, float], int] = {}  # layouts that the store has: how many functions they had there
        self._new: defaultdict[float, dict[str, object]] = defaultdict(dict)  # tables that are not in the store

    @cached_property
    def _split(self) -> tuple[dict[str, page.PageSection], dict[str, page.PageSection]]:
        sections: dict[str, page.PageSection] = {}
        enums: dict[str, page.PageSection] = {}
        for name, text in self._pages:
            for section in page.sections(name, text):
                table = enums if section.kind == "enum" else sections
                if section.name in table:
                    other = table[section.name]
                    raise section.complain(f"{section.name} is already on {other.page}:{other.line}")
                table[section.name] = section
        return sections, enums

    @property
    def sections(self) -> dict[str, page.PageSection]:
        return self._split[0]

    @property
    def enums(self) -> dict[str, page.PageSection]:
        return self._split[1]

    # -- kept on disk --------------------------------------------------------------------------------------------------

    def _kept(self, gen: float, key: str, make: Callable[[], T]) -> T:
        """A table out of the store, or made now."""
        found: T | object = self._store.load(gen, key) if self._store else MISSING
        if found is MISSING:
            found = self._new[gen][key] = make()
        return cast(T, found)

    def save(self) -> None:
        """Keep what was read from pages for processes to come. A failure costs them the reading."""
        if self._store is None:
            return
        for (name, gen), layout in list(self._layouts.items()):
            if self._stored.get((name, gen)) != _functions(layout):
                self._new[gen][f"layout {name}"] = layout
                self._stored[name, gen] = _functions(layout)
        for gen in list(self._new):
            self._store.save(gen, self._new.pop(gen))

    # -- by name ---------------------------------------------------------------------------------------------------

    def history(self, name: str) -> dict[float, Layout]:
        """Every generation's layout of one name."""
        gens = self.generations(name)
        missing = frozenset(gen for gen in gens if (name, gen) not in self._layouts)
        for layout in page.layouts(self.sections[name], self.layout, missing) if missing else ():
            self._layouts.setdefault((name, layout.gen), layout)
        return {gen: self.layout(name, gen) for gen in gens}

    def generations(self, name: str) -> tuple[float, ...]:
        """The generations that have a layout of this name."""
        if name not in self._generations:
            if name not in self.sections:
                raise SpecError(f"no page describes {name!r}")
            self._generations[name] = page.generations_of(self.sections[name])
        return self._generations[name]

    def layout(self, name: str, gen: float) -> Layout:
        found = self._layouts.get((name, gen)) or self.get(name, gen)
        if found is None:
            known = ", ".join(f"{g:g}" for g in sorted(self.generations(name)))
            raise SpecError(f"gen {gen:g} has no {name}; generations {known} do")
        return found

    def get(self, name: str, gen: float) -> Layout | None:
        if (name, gen) in self._layouts:
            return self._layouts[name, gen]
        found: Any = self._store.load(gen, f"layout {name}") if self._store else MISSING
        if found is not MISSING:
            self._stored[name, gen] = _functions(found)
        elif name not in self.sections:
            return None
        else:
            found = next(page.layouts(self.sections[name], self.layout, frozenset([gen])), None)
        return self._layouts.setdefault((name, gen), found)  # another thread may have been first

    def names(self, kind: str | None = None, gen: float | None = None) -> list[str]:
        return [n for n, s in sorted(self.sections.items()) if kind in (None, s.kind) and (gen is None or gen in self.generations(n))]

    def enumeration(self, name: str, gen: float) -> dict[int, str]:
        if name == "SURFACE_FORMAT":
            return _surface_formats()
        if (name, gen) not in self._values:
            self._values[name, gen] = self._kept(gen, f"enum {name}", lambda: self._enumeration(name, gen))
        return self._values[name, gen]

    def _enumeration(self, name: str, gen: float) -> dict[int, str]:
        if name not in self.enums:
            raise SpecError(f"no page lists the values of {name!r}")
        return page.enumeration(self.enums[name])[gen]

    def layouts(self) -> Iterator[Layout]:
        for name in self.sections:
            yield from self.history(name).values()

    # -- by what stands in memory ------------------------------------------------------------------------------------

    def find_command(self, header: int, gen: float, engine: str) -> Layout | None:
        """The command a header dword names on an engine; None when there is none."""
        for known, name in self._sharing_key(header, gen, engine):
            if header & known.mask == known.value:
                return self.layout(name, gen)
        return None

    def commands_like(self, header: int, gen: float, engine: str) -> list[Layout]:
        """The commands that share a header dword's key, in the order in which they are to be tried."""
        return [self.layout(name, gen) for _, name in self._sharing_key(header, gen, engine)]

    def _sharing_key(self, header: int, gen: float, engine: str) -> list[tuple[Header, str]]:
        table = self._commands.get((gen, engine))
        if table is None:
            table = self._commands[gen, engine] = self._kept(gen, f"commands {engine}", lambda: self._command_table(gen, engine))
        shift = KEY_SHIFT.get(header >> 29)
        return [] if shift is None else table.get((shift, header >> shift), [])

    def _command_table(self, gen: float, engine: str) -> CommandTable:
        """Commands by key; those with the same key differ in further header bits, the most specific first."""
        table: defaultdict[tuple[int, int], list[tuple[Header, str]]] = defaultdict(list)
        for name, section in self.sections.items():
            found = page.header(section, gen) if section.kind == "command" else None
            if found is None or engine not in found[1]:
                continue
            header = found[0]
            shift = KEY_SHIFT[header.value >> 29]
            rivals = table[shift, header.value >> shift]
            for other, its_name in rivals:
                if (other.mask, other.value) == (header.mask, header.value):
                    raise section.complain(f"{name} and {its_name} share key {header.key} on gen {gen:g}, {engine}")
            rivals.append((header, name))
            rivals.sort(key=lambda rival: -rival[0].mask.bit_count())
        return dict(table)

    def registers(self, gen: float) -> list[tuple[str, page.RegisterSpan]]:
        """The place of each register of a generation, without reading its fields. `registers.place` finds one by its offset."""
        return self._kept(gen, "registers", lambda: self._spans(gen))

    def _spans(self, gen: float) -> list[tuple[str, page.RegisterSpan]]:
        spans = ((name, page.span(section, gen)) for name, section in self.sections.items() if section.kind == "register")
        return [(name, span) for name, span in spans if span]


def _functions(layout: Layout | None) -> int:
    """The number of a layout's compiled functions; -1 for one that a generation does not have."""
    return -1 if layout is None else len(layout.codes)


def spec_files(suffix: str, root: Path = SPEC) -> Iterator[tuple[str, Path]]:
    """Every file of spec/ with a suffix, as (path from spec/, file)."""
    for item in sorted(root.iterdir(), key=lambda i: i.name):
        if item.is_dir():
            yield from ((f"{item.name}/{name}", file) for name, file in spec_files(suffix, item))
        elif item.name.endswith(suffix):
            yield item.name, item


@cache
def _surface_formats() -> dict[int, str]:
    from softgen.bits.formats import surface_formats  # only who meets a surface needs the table

    return {value: format.name for value, format in surface_formats().items()}


@cache
def catalogue() -> Catalogue:
    """The pages that come with softgen."""
    return Catalogue(((name, file.read_text("utf-8")) for name, file in spec_files(".layout")), PageStore(Cache(default_folder())))


def save() -> None:
    """Keep what this process has read from pages for processes to come."""
    catalogue().save()


def layout(name: str, gen: float) -> Layout:
    return catalogue().layout(name, gen)


def names(kind: str | None = None, gen: float | None = None) -> list[str]:
    return catalogue().names(kind, gen)


def find_command(header: int, gen: float, engine: str) -> Layout | None:
    return catalogue().find_command(header, gen, engine)


def enumeration(name: str, gen: float) -> dict[int, str]:
    return catalogue().enumeration(name, gen)


__all__ = ["GENERATIONS", "Catalogue", "catalogue", "enumeration", "find_command", "layout", "names", "save", "spec_files"]
