"""The catalogue: (name, generation) -> layout. Pages are split when the catalogue is made, a section is read when first asked for.

Commands are also found by their header dword, registers by their offset.
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
        self._layouts: dict[str, dict[float, Layout]] = {}
        self._values: dict[str, dict[float, dict[int, str]]] = {}
        self._commands: dict[tuple[float, str], CommandTable] = {}
        self._registers: dict[tuple[float, str], dict[int, Layout]] = {}
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
        if name not in self._layouts:
            if name not in self.sections:
                raise SpecError(f"no page describes {name!r}")
            self._layouts[name] = {layout.gen: layout for layout in page.layouts(self.sections[name], self.layout)}
        return self._layouts[name]

    def layout(self, name: str, gen: float) -> Layout:
        found = self.history(name).get(gen)
        if found is None:
            known = ", ".join(f"{g:g}" for g in sorted(self.history(name)))
            raise SpecError(f"gen {gen:g} has no {name}; generations {known} do")
        return found

    def get(self, name: str, gen: float) -> Layout | None:
        return self.history(name).get(gen) if name in self.sections else None

    def names(self, kind: str | None = None, gen: float | None = None) -> list[str]:
        return [n for n, s in sorted(self.sections.items()) if kind in (None, s.kind) and (gen is None or gen in self.history(n))]

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
                return self.history(name)[gen]
        return None

    def commands_like(self, header: int, gen: float, engine: str) -> list[Layout]:
        """The commands that share a header dword's key, in the order in which they are to be tried."""
        return [self.history(name)[gen] for _, name in self._sharing_key(header, gen, engine)]

    def _sharing_key(self, header: int, gen: float, engine: str) -> list[tuple[Header, str]]:
        table = self._commands.get((gen, engine)) or self._command_table(gen, engine)
        shift = KEY_SHIFT.get(header >> 29)
        return [] if shift is None else table.get((shift, header >> shift), [])

    def _command_table(self, gen: float, engine: str) -> CommandTable:
        """Commands by key; those with the same key differ in further header bits, the most specific first."""
        table: defaultdict[tuple[int, int], list[tuple[Header, str]]] = defaultdict(list)
        for name, section in self.sections.items():
            for its_gen, header, engines in page.headers(section) if section.kind == "command" else ():
                if its_gen != gen or engine not in engines:
                    continue
                shift = KEY_SHIFT[header.value >> 29]
                rivals = table[shift, header.value >> shift]
                for other, its_name in rivals:
                    if (other.mask, other.value) == (header.mask, header.value):
                        raise section.complain(f"{name} and {its_name} share key {header.key} on gen {gen:g}, {engine}")
                rivals.append((header, name))
                rivals.sort(key=lambda rival: -rival[0].mask.bit_count())
        self._commands[gen, engine] = dict(table)
        return self._commands[gen, engine]

    def find_register(self, offset: int, gen: float, engine: str = "") -> Layout | None:
        """The register at an absolute offset, an engine's own before shared ones. `registers.find` also knows relative ones."""
        if (gen, engine) not in self._registers:
            self._registers[gen, engine] = self._register_table(gen, engine)
        return self._registers[gen, engine].get(offset)

    def _register_table(self, gen: float, engine: str) -> dict[int, Layout]:
        table: dict[int, Layout] = {}
        own = defaultdict(bool)  # type: ignore[var-annotated]
        for name in self.names("register", gen):
            layout = self.history(name)[gen]
            assert layout.offset is not None
            if layout.relative:
                continue
            is_own = bool(engine) and engine in layout.engines
            if layout.offset not in table or is_own and not own[layout.offset]:
                table[layout.offset], own[layout.offset] = layout, is_own
        return table


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


def find_register(offset: int, gen: float, engine: str = "") -> Layout | None:
    return catalogue().find_register(offset, gen, engine)


def enumeration(name: str, gen: float) -> dict[int, str]:
    return catalogue().enumeration(name, gen)


__all__ = ["GENERATIONS", "Catalogue", "catalogue", "enumeration", "find_command", "find_register", "layout", "names", "spec_files"]
