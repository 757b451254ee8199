"""Sections: the top-level entries of a page, split but not yet read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from softgen.bits.layout import GENERATIONS, generations
from softgen.errors import SpecError

KINDS = ("command", "structure", "register", "message", "instruction")
EVERY = frozenset(GENERATIONS)
SOURCE = re.compile(r"(?:BDW|KBL|G45|IVB|ICL)(?: \d+(?:-\d+)?(?:, ?\d+(?:-\d+)?)*)?$|public \S.*$")


@dataclass(frozen=True)
class PageSection:
    """One top-level entry of a page, not read yet."""

    page: str
    line: int
    kind: str
    name: str
    rest: tuple[str, ...]
    source: str
    below: tuple[str, ...]  # the lines of the page up to the next section

    @cached_property
    def body(self) -> tuple[tuple[int, str], ...]:
        """The lines below without comments, each with its number; no empty ones."""
        return tuple(_numbered(self.line + 1, self.below))

    def gen_lines(self) -> Iterator[tuple[int, str]]:
        """The `gen` lines, each with its number. Quicker than `body`: other lines are not looked at."""
        for number, raw in enumerate(self.below, self.line + 1):
            if raw.lstrip().startswith("gen "):
                yield number, raw.partition("#")[0].strip()

    def complain(self, message: str, line: int = 0) -> SpecError:
        return SpecError(f"{self.page}:{line or self.line}: {message}")


def sections(page: str, text: str) -> Iterator[PageSection]:
    """The entries of a page, split but not yet read."""
    if not (text.isascii() and text.replace("\n", "").isprintable()):
        text = _plain(page, text)
    lines = text.split("\n")
    heads = [at for at, line in enumerate(lines) if line and line[0] not in " #"]
    _nothing(page, 1, lines[: heads[0]] if heads else lines)
    source = ""
    for at, end in pairwise([*heads, len(lines)]):
        line, below = lines[at].partition("#")[0].rstrip(), lines[at + 1 : end]
        words = line.split()
        if words[0] == "source":
            source = read_source(page, at + 1, line.removeprefix("source").strip())
            _nothing(page, at + 2, below)
        elif words[0] not in (*KINDS, "enum") or len(words) < 2:
            raise SpecError(f"{page}:{at + 1}: cannot read {line!r}; a section is one of {', '.join(KINDS)}, enum or source")
        else:
            yield PageSection(page, at + 1, words[0], words[1], tuple(words[2:]), source, tuple(below))


def _plain(page: str, text: str) -> str:
    """A page without its comments, which alone may hold tabs and what is not ASCII."""
    found = [raw.partition("#")[0].rstrip() for raw in text.splitlines()]
    for number, line in enumerate(found, 1):
        if "\t" in line:
            raise SpecError(f"{page}:{number}: a tab; pages are aligned with spaces")
        if not (line.isascii() and line.isprintable()):
            raise SpecError(f"{page}:{number}: {line.strip()!r} holds something that is no plain ASCII")
    return "\n".join(found)


def _numbered(number: int, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines without comments that are not empty, each with its number."""
    for at, raw in enumerate(lines, number):
        if line := raw.partition("#")[0].rstrip():
            yield at, line


def _nothing(page: str, number: int, lines: Iterable[str]) -> None:
    """Refuse lines that belong to no section."""
    for at, line in _numbered(number, lines):
        raise SpecError(f"{page}:{at}: cannot read {line.strip()!r} before any command, structure, register or enum")


def read_source(page: str, line: int, text: str) -> str:
    if not SOURCE.match(text):
        raise SpecError(f"{page}:{line}: a source is BDW, KBL, G45, IVB or ICL with line numbers, or public and a name, not {text!r}")
    return text


def cut_tail(section: PageSection, number: int, line: str) -> tuple[str, frozenset[float], str]:
    """A line without its gate and source."""
    text, cite = cut_source(section, number, line.strip())
    text, at, gate = text.rpartition("@") if "@" in text else (text, "", "")
    return text.strip(), read_generations(section, number, gate.strip()) if at else EVERY, cite


def cut_source(section: PageSection, number: int, line: str) -> tuple[str, str]:
    text, semicolon, cite = line.partition(";")
    return text.strip(), read_source(section.page, number, cite.strip()) if semicolon else ""


def read_generations(section: PageSection, number: int, text: str) -> frozenset[float]:
    try:
        return generations(text)
    except ValueError:
        raise section.complain(f"no generations in {text!r}; they are {', '.join(f'{g:g}' for g in GENERATIONS)}", number) from None
