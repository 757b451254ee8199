"""The catalogue: (name, generation) -> layout. Pages are split when the catalogue is made, a section is read when first asked for.

Commands are also found by their header dword; for registers see registers.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from softgen.bits import page
from softgen.bits.layout import GENERATIONS, KEY_SHIFT, Header, Layout
from softgen.errors import SpecError

CommandTable = dict[tuple[int, int], list[tuple[Header, str]]]


class Catalogue:
    def __init__(self, pages: Iterable[tuple[str, str]]) -> None:
        self.sections: dict[str, page.PageSection] = {}
        self.enums: dict[str, page.PageSection] = {}
        self._generations: dict[str, tuple[float, ...]] = {}
        self._layouts: dict[tuple[str, float], Layout] = {}
        self._values: dict[str, dict[float, dict[int, str]]] = {}
        self._commands: dict[tuple[float, str], CommandTable] = {}
        for name, text in pages:
            for section in page.sections(name, text):
                self._add(section)

    def _add(self, section: page.PageSection) -> None:
        table = self.enums if section.kind == "enum" else self.sections
        if section.name in table:
            other = table[section.name]
            raise section.complain(f"{section.name} is already on {other.page}:{other.line}")
        table[section.name] = section

    # -- by name ---------------------------------------------------------------------------------------------------

    def history(self, name: str) -> dict[float, Layout]:
        """Every generation's layout of one name."""
        gens = self.generations(name)
        self._read(name, frozenset(gens))
        return {gen: self._layouts[name, gen] for gen in gens}

    def generations(self, name: str) -> tuple[float, ...]:
        """The generations that have a layout of this name."""
        if name not in self._generations:
            if name not in self.sections:
                raise SpecError(f"no page describes {name!r}")
            self._generations[name] = page.generations_of(self.sections[name])
        return self._generations[name]

    def layout(self, name: str, gen: float) -> Layout:
        found = self._layouts.get((name, gen))
        if found is None:
            known = self.generations(name)
            if gen not in known:
                raise SpecError(f"gen {gen:g} has no {name}; generations {', '.join(f'{g:g}' for g in sorted(known))} do")
            self._read(name, frozenset([gen]))
            found = self._layouts[name, gen]
        return found

    def _read(self, name: str, gens: frozenset[float]) -> None:
        """Read the layouts of these generations that were not read before."""
        if missing := frozenset(gen for gen in gens if (name, gen) not in self._layouts):
            for layout in page.layouts(self.sections[name], self.layout, missing):
                self._layouts.setdefault((name, layout.gen), layout)  # another thread may have been first

    def get(self, name: str, gen: float) -> Layout | None:
        found = self._layouts.get((name, gen))
        return self.layout(name, gen) if found is None and name in self.sections and gen in self.generations(name) else found

    def names(self, kind: str | None = None, gen: float | None = None) -> list[str]:
        return [n for n, s in sorted(self.sections.items()) if kind in (None, s.kind) and (gen is None or gen in self.generations(n))]

    def enumeration(self, name: str, gen: float) -> dict[int, str]:
        if name == "SURFACE_FORMAT":
            return _surface_formats()
        if name not in self._values:
            if name not in self.enums:
                raise SpecError(f"no page lists the values of {name!r}")
            self._values[name] = page.enumeration(self.enums[name])
        return self._values[name][gen]

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
        table = self._commands.get((gen, engine)) or self._command_table(gen, engine)
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
        self._commands[gen, engine] = dict(table)
        return self._commands[gen, engine]

    def registers(self, gen: float) -> Iterator[tuple[str, page.RegisterSpan]]:
        """Where each register of a generation stands, without reading its fields. `registers.place` finds one by its offset."""
        for name, section in self.sections.items():
            span = page.span(section, gen) if section.kind == "register" else None
            if span:
                yield name, span


def spec_files(suffix: str, root: Traversable | None = None) -> Iterator[tuple[str, Traversable]]:
    """Every file of spec/ with a suffix, as (path from spec/, file)."""
    for item in sorted((root or resources.files("softgen") / "spec").iterdir(), key=lambda i: i.name):
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
    return Catalogue((name, file.read_text("utf-8")) for name, file in spec_files(".layout"))


def layout(name: str, gen: float) -> Layout:
    return catalogue().layout(name, gen)


def names(kind: str | None = None, gen: float | None = None) -> list[str]:
    return catalogue().names(kind, gen)


def find_command(header: int, gen: float, engine: str) -> Layout | None:
    return catalogue().find_command(header, gen, engine)


def enumeration(name: str, gen: float) -> dict[int, str]:
    return catalogue().enumeration(name, gen)


__all__ = ["GENERATIONS", "Catalogue", "catalogue", "enumeration", "find_command", "layout", "names", "spec_files"]
