"""Sections: the top-level entries of a page, split but not yet read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
    body: tuple[tuple[int, str], ...]  # (line number, text)

    def complain(self, message: str, line: int = 0) -> SpecError:
        return SpecError(f"{self.page}:{line or self.line}: {message}")


def sections(page: str, text: str) -> Iterator[PageSection]:
    """The entries of a page, split but not yet read."""
    source, head = "", None
    body: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].rstrip()
        if not line:
            continue
        if "\t" in line:
            raise SpecError(f"{page}:{number}: a tab; pages are aligned with spaces")
        if not (line.isascii() and line.isprintable()):
            raise SpecError(f"{page}:{number}: {line.strip()!r} holds something that is no plain ASCII")
        if line[0] == " ":
            if head is None:
                raise SpecError(f"{page}:{number}: cannot read {line.strip()!r} before any command, structure, register or enum")
            body.append((number, line))
            continue
        if head:
            yield PageSection(page, *head, source, tuple(body))
        head, body, words = None, [], line.split()
        if words[0] == "source":
            source = read_source(page, number, line.removeprefix("source").strip())
        elif words[0] not in (*KINDS, "enum") or len(words) < 2:
            raise SpecError(f"{page}:{number}: cannot read {line!r}; a section is one of {', '.join(KINDS)}, enum or source")
        else:
            head = (number, words[0], words[1], tuple(words[2:]))
    if head:
        yield PageSection(page, *head, source, tuple(body))


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
