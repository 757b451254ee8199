"""Reader of the tables in spec/eu: lines of words. `#` starts a comment, `source …` cites the source of the lines below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from softgen.bits.generation import SPEC
from softgen.bits.layout import GENERATIONS, generations
from softgen.bits.page import SOURCE
from softgen.errors import SpecError

SOURCE_RULE = "a source is BDW, KBL, G45, IVB or ICL with line numbers, or public and a name"


@dataclass(frozen=True)
class TableRow:
    """A line of a table."""

    page: str
    line: int
    words: tuple[str, ...]
    source: str

    def error(self, message: str) -> SpecError:
        return SpecError(f"{self.page}:{self.line}: {message}")

    def generations(self, text: str) -> frozenset[float]:
        try:
            return generations(text)
        except ValueError:
            raise self.error(f"no generations in {text!r}; they are {', '.join(f'{g:g}' for g in GENERATIONS)}") from None


def rows(page: str, text: str) -> Iterator[TableRow]:
    """The lines of a table with their sources."""
    source = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line, semicolon, cite = raw.partition("#")[0].partition(";")
        words = tuple(line.split())
        if not words:
            continue
        given = " ".join(words[1:]) if words[0] == "source" else cite.strip() if semicolon else source
        if (semicolon or words[0] == "source") and not SOURCE.match(given):
            raise SpecError(f"{page}:{number}: {SOURCE_RULE}, not {given!r}")
        if words[0] == "source":
            source = given
        else:
            yield TableRow(page, number, words, given)


def load(name: str) -> str:
    """The text of a table in spec/eu."""
    return (SPEC / "eu" / name).read_text("utf-8")
