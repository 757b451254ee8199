"""Search of the spec's names: whole, in part, by words, misspelt, by number.

    find("3DSTATE_VS")        [3DSTATE_VS]
    find("vertex buffer")     every name with both words in it, nearest first
    find("0x2358")            the register at this offset        find("0x7a000004")   the command with this header
    close("3DSTATE_VERTX")    what may have been meant
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from softgen.bits.catalogue import catalogue
from softgen.bits.layout import GENERATIONS
from softgen.bits.page import ENGINES

SURFACE_FORMAT = "SURFACE_FORMAT"  # an enumeration that is a table of its own
NUMBER = re.compile(r"0x[0-9a-f]{1,8}$", re.IGNORECASE)
OFFSETS_END = 1 << 23  # registers fill 8 MiB; a larger number is a header
CLOSE, NEARLY, MOST_CLOSE = 0.6, 0.8, 4


def known(kind: str | None = None) -> list[str]:
    """Every name, enumerations among them."""
    names = catalogue().names(kind) if kind != "enum" else []
    return names + ([*sorted(catalogue().enums), SURFACE_FORMAT] if kind in (None, "enum") else [])


def is_enum(name: str) -> bool:
    return name == SURFACE_FORMAT or name in catalogue().enums and name not in catalogue().sections


def find(text: str, kind: str | None = None, gens: tuple[float, ...] = GENERATIONS) -> list[str]:
    """Names by text, nearest first: an exact name, else those that contain it, all its words, or it without underscores."""
    if NUMBER.match(text):
        return sorted({name for name in _numbered(int(text, 16), gens) if kind in (None, catalogue().sections[name].kind)})
    names, low = known(kind), text.lower()
    words = [word for word in re.split(r"[\s_\-.]+", low) if word]
    ways = (lambda name: name == low, lambda name: low in name, lambda name: bool(words) and all(word in name for word in words),
            lambda name: bool(words) and "".join(words) in name.replace("_", ""))  # fmt: skip
    for way in ways:
        if low and (found := [name for name in names if way(name.lower())]):
            return nearest(low, found)
    return []


def nearest(low: str, names: list[str]) -> list[str]:
    """Names in the order of their likeness to a text."""
    if len(names) < 2:
        return names
    import difflib  # takes time that exact names need not spend

    matcher = difflib.SequenceMatcher(b=low)

    def unlike(name: str) -> float:
        matcher.set_seq1(name.lower())
        return -matcher.ratio()

    return sorted(names, key=unlike)


def _numbered(number: int, gens: tuple[float, ...]) -> Iterator[str]:
    """Registers at an offset, commands with a header."""
    from softgen.bits import registers  # reads every page of registers

    for gen in gens:
        if number < OFFSETS_END:
            found = registers.place(number, gen)
            yield from [found.layout.name] if found else []
        else:
            commands = (catalogue().find_command(number, gen, engine) for engine in ENGINES)
            yield from (command.name for command in commands if command)


def holders(field: str, kind: str | None = None) -> list[str]:
    """Names that have a field called so."""
    low, names = field.lower(), catalogue().names(kind) if kind != "enum" else []
    pages = {name: catalogue().history(name).values() for name in names}
    return [name for name in names if any(field.name == low for page in pages[name] for field, _ in page.walk())]


def close(text: str, kind: str | None = None) -> list[str]:
    """Names that resemble a text: their beginning, the whole, or one of their parts. For misspelt names."""
    import difflib  # takes time that correct names need not spend

    low = text.lower()
    names = {name.lower(): name for name in known(kind)}
    starts: dict[str, str] = {}
    for name in sorted(names, key=len):  # the shortest of those that begin alike
        starts.setdefault(name[: len(low) + 1], name)
    found = [starts[start] for start in difflib.get_close_matches(low, starts, 2, NEARLY)]
    found += [name for name in difflib.get_close_matches(low, names, MOST_CLOSE, CLOSE) if name not in found]
    parts: dict[str, list[str]] = {}
    for name in names:
        for part in _parts(name):
            parts.setdefault(part, []).append(name)
    for part in difflib.get_close_matches(low, parts, MOST_CLOSE, NEARLY):
        found += [name for name in sorted(parts[part], key=len)[:2] if name not in found]
    return [names[name] for name in found[:MOST_CLOSE]]


def _parts(name: str) -> Iterator[str]:
    """The ends of a name from each of its words on: vs_state and state of 3dstate_vs_state."""
    words = name.split("_")
    yield from ("_".join(words[at:]) for at in range(1, len(words)))
