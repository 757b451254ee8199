"""Reads Mesa's own decode of a program's batches: the commands in order, with the fields it names."""

from __future__ import annotations

import lzma
import re
from dataclasses import dataclass, field
from pathlib import Path

COMMAND = re.compile(r"0x([0-9a-f]{8,16}):\s+0x([0-9a-f]{8}):\s+([A-Z0-9][A-Z0-9_]+)\s*$")
DWORD = re.compile(r"0x([0-9a-f]{8,16}):\s+0x([0-9a-f]{8}) : Dword (\d+)")
FIELD = re.compile(r"    (\S.*?): (\S.*)$")


@dataclass
class MesaCommand:
    address: int
    header: int
    name: str
    fields: list[tuple[str, int | float]] = field(default_factory=list)


def snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def number(text: str) -> int | float | None:
    """A value as Mesa prints it: 12, 12 (NAME), 0x40, true, 0.5."""
    word = text.split()[0]
    if word in ("true", "false"):
        return int(word == "true")
    for read in (lambda t: int(t, 0), float):
        try:
            return read(word)  # type: ignore[no-any-return, operator]
        except ValueError:
            pass
    return None


def read(path: Path) -> list[MesaCommand]:
    """Every command Mesa printed. State it follows stands under other headings and is left out."""
    found: list[MesaCommand] = []
    inside = False
    for line in lzma.open(path, "rt", errors="replace"):
        if m := COMMAND.match(line):
            found.append(MesaCommand(int(m[1], 16) & (1 << 48) - 1, int(m[2], 16), m[3]))
            inside = True
        elif m := DWORD.match(line):
            inside = inside and bool(found) and int(m[1], 16) & (1 << 48) - 1 == found[-1].address + 4 * int(m[3])
        elif inside and (m := FIELD.match(line)):
            value = number(m[2])
            if value is not None:
                found[-1].fields.append((snake(m[1]), value))
        else:
            inside = False
    return found
