"""Instruction compaction: 8 bytes for 16, by lookup tables. Read from `spec/eu/compaction.csv`.

Reads   EU_COMPACT EU_COMPACT_NATIVE EU_COMPACT_THREE_SOURCE EU_COMPACT_THREE_NATIVE

`compact` is exact: its result expands to the same word. A word may have several compact forms (with an immediate the second source's
sub-register is a don't-care); the lowest indices are used.
`relax` gives an equivalent word, which may have a compact form where the word itself has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache

from softgen.bits.layout import GENERATIONS, generations
from softgen.bits.page import SOURCE
from softgen.errors import SpecError
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.encoding.fields import InstructionPage, find_page, instruction_page
from softgen.eu.encoding.operand import operand_fields
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Operand
from softgen.eu.isa.table import SOURCE_RULE, load

COLUMNS = "table,generations,index,bits,source"
TABLES = {"control": 32, "datatype": 32, "subregister": 32, "source": 32, "three_control": 4, "three_source": 4}  # entries of each
TABLE_OF = {"source_0": "source", "source_1": "source"}  # fields that are not named after their table
SECOND = ("source_1", "src1_number")  # fields that an immediate replaces
RECENT = 1 << 14

CompactionTable = tuple[int, ...]  # index -> bits


def read(name: str, text: str) -> dict[tuple[str, float], CompactionTable]:
    """Parse the tables: name and generation -> entries."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line and not line.startswith("#")]
    if not lines or lines[0][1] != COLUMNS:
        raise SpecError(f"{name}:{lines[0][0] if lines else 1}: columns must be {COLUMNS}")
    found: dict[tuple[str, float], list[str]] = {}
    for number, line in lines[1:]:
        _entry(f"{name}:{number}", line, found)
    for (table, gen), entries in found.items():
        if len(entries) != TABLES[table]:
            raise SpecError(f"{name}: {table} must have {TABLES[table]} entries on gen {gen:g}, not {len(entries)}")
    return {key: tuple(int(bits, 2) for bits in entries) for key, entries in found.items()}


def _entry(place: str, line: str, table: dict[tuple[str, float], list[str]]) -> None:
    cells = line.split(",", 4)
    if len(cells) != 5 or cells[0] not in TABLES or not cells[2].isdigit() or not cells[3] or set(cells[3]) - {"0", "1"}:
        raise SpecError(f"{place}: an entry is a table out of {', '.join(TABLES)}, generations, an index, bits and a source, not {line!r}")
    if not SOURCE.match(cells[4]):
        raise SpecError(f"{place}: {SOURCE_RULE}, not {cells[4]!r}")
    try:
        gens = generations(cells[1])
    except ValueError:
        raise SpecError(f"{place}: no generations in {cells[1]!r}; they are {', '.join(f'{g:g}' for g in GENERATIONS)}") from None
    for gen in gens:
        entries = table.setdefault((cells[0], gen), [])
        if len(entries) != int(cells[2]):
            raise SpecError(f"{place}: {cells[0]} of gen {gen:g} goes on with index {len(entries)}, not {cells[2]}")
        if entries and len(entries[0]) != len(cells[3]):
            raise SpecError(f"{place}: {cells[0]} is {len(entries[0])} bits wide, not {len(cells[3])}")
        if cells[3] in entries:
            raise SpecError(f"{place}: {cells[0]} has {cells[3]} twice on gen {gen:g}")
        entries.append(cells[3])


@cache
def tables() -> dict[tuple[str, float], CompactionTable]:
    return read("eu/compaction.csv", load("compaction.csv"))


class CompactionTables:
    """One compact form of one generation: its page, the native page, and the tables between them."""

    def __init__(self, short: InstructionPage, native: InstructionPage) -> None:
        self.short, self.native = short, native
        self.tables: dict[str, CompactionTable] = {}
        for name in native.fields:
            table = tables().get((TABLE_OF.get(name, name), native.gen))
            if table is not None and TABLE_OF.get(name, name) in TABLES:
                self.tables[name] = table
        self.words = {name: self._words(name) for name in short.fields if name in native and name != "immediate"}
        self.marked = short.word({"compacted": 1})
        self.short_bits = short.mask_without()
        self.native_bits = native.mask_without("immediate")
        self.immediate_bits = native.mask_without(*SECOND)
        self.don_t_care = native.mask("subregister") & native.mask("immediate")

    def _words(self, name: str) -> tuple[int, ...]:
        """The native bits of each code of a compact field."""
        table = self.tables.get(name) or range(1 << self.short.fields[name].width)
        return tuple(self.native.word({name: value}) for value in table)

    def expand(self, half: int, immediate: bool) -> int:
        record, word = self.short.record(half), 0
        for name, words in self.words.items():
            if not immediate or name not in SECOND:
                word |= words[getattr(record, name)]
        return word & ~self.don_t_care | self.native.word({"immediate": record.immediate}) if immediate else word

    def compact(self, word: int, immediate: bool) -> int | None:
        if word & ~(self.immediate_bits if immediate else self.native_bits):
            return None
        values = self.native.record(word)._asdict()
        for name in SECOND if immediate else ("immediate",):
            values.pop(name, None)
        if immediate:
            if "immediate" not in self.short:
                return None
            values["immediate"] = _fits(values["immediate"], self.short.fields["immediate"].width)
        for name, table in self.tables.items():
            if name in values:
                values[name] = self._index(name, table, values[name], immediate)
        if None in values.values():
            return None
        return self.short.word(values) | self.marked

    def _index(self, name: str, table: CompactionTable, value: int, immediate: bool) -> int | None:
        if immediate and name == "subregister":
            return self._loose().get(value & self._care(), None)
        return _indices(table).get(value)

    def _care(self) -> int:
        """The bits of a sub-register entry that matter with an immediate."""
        field = self.native.fields["subregister"]
        return int(self.native.record(field.mask & ~self.don_t_care).subregister)

    @cache  # noqa: B019 - a few objects that live as long as the program
    def _loose(self) -> Mapping[int, int]:
        found: dict[int, int] = {}
        for index, bits in enumerate(self.tables["subregister"]):
            found.setdefault(bits & self._care(), index)
        return found


@cache
def _indices(table: CompactionTable) -> Mapping[int, int]:
    return {bits: index for index, bits in enumerate(table)}


def _fits(value: int, width: int) -> int | None:
    """The value if it fits a signed field of `width` bits, else None."""
    return value if -(1 << width - 1) <= value < 1 << width - 1 else None


class Compactor:
    """Compaction for one generation; the oldest has no compact instructions."""

    def __init__(self, gen: float) -> None:
        self.gen = gen
        self.usual = _tables_between("EU_COMPACT", "EU_COMPACT_NATIVE", gen)
        self.three = _tables_between("EU_COMPACT_THREE_SOURCE", "EU_COMPACT_THREE_NATIVE", gen)
        self.opcode_bits = instruction_page("EU_CONTROL", gen).mask("opcode")
        self.threes = frozenset(row.number for row in opcodes.of_generation(gen) if row.form in opcodes.THREE_SOURCE_FORMS)
        self.sources = operand_fields("EU_SOURCE_0", gen), operand_fields("EU_SOURCE_1", gen)

    def chosen(self, word: int) -> CompactionTables | None:
        return self.three if word & self.opcode_bits in self.threes else self.usual

    def has_immediate(self, word: int) -> bool:
        return any(source.is_immediate(word) for source in self.sources)

    def expand(self, half: int) -> int | None:
        found = self.chosen(half)
        if found is None or half & ~found.short_bits or not half & found.marked:
            return None
        if found is self.three:
            return found.expand(half, False)
        word = found.expand(half, False)
        if not self.has_immediate(word):
            return word
        return found.expand(half, True) if "immediate" in found.short else None

    def compact(self, word: int) -> int | None:
        found = self.chosen(word)
        if found is None:
            return None
        return found.compact(word, found is self.usual and self.has_immediate(word))


def _tables_between(compact: str, native: str, gen: float) -> CompactionTables | None:
    pages = find_page(compact, gen), find_page(native, gen)
    return CompactionTables(pages[0], pages[1]) if pages[0] and pages[1] else None


@cache
def compactor(gen: float) -> Compactor:
    return Compactor(gen)


@lru_cache(RECENT)
def expand(half: int, gen: float) -> int | None:
    """The native word of a compact instruction; None for invalid encodings."""
    return compactor(gen).expand(half)


@lru_cache(RECENT)
def compact(word: int, gen: float) -> int | None:
    """The compact form of a native word, or None."""
    return compactor(gen).compact(word)


def is_canonical(half: int, word: int, gen: float) -> bool:
    """Whether `compact` gives this form for its word. Without an immediate the form is unique (no table repeats an entry); with one,
    sub-register entries that differ only in the immediate's bits are equivalent."""
    return not compactor(gen).has_immediate(word) or compact(word, gen) == half


def relax(word: int, gen: float) -> int:
    """An equivalent instruction that compilers choose because it compacts. With an immediate the absent source needs no type; a move of a
    signed immediate to a signed destination equals the unsigned one; zero may be a packed vector, where the destination allows one
    (IVB 2912-2914)."""
    inst = decode(word, gen)
    if len(inst.sources) != 1 or inst.sources[0].file != "imm" or inst.form != "basic" or inst.residue:
        return word
    inst = replace(inst, absent="ud")
    a, dst = inst.sources[0], inst.dst
    if inst.opcode == "mov" and dst is not None and a.type == "d" == dst.type and not inst.condition:
        inst = replace(inst, dst=replace(dst, type="ud"), sources=(replace(a, type="ud"),))
    if inst.opcode == "mov" and dst is not None and a.type == "f" == dst.type and not a.immediate and _takes_vector(dst):
        inst = replace(inst, sources=(replace(a, type="vf"),))
    return encode(inst)


def _takes_vector(dst: Operand) -> bool:
    return dst.sub % 16 == 0 and dst.horizontal == 1 and not dst.indirect
