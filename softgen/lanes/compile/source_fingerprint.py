"""A checksum of the sources by which compiled objects are made: part of their keys in the cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import softgen

SOURCES = ("bits", "eu", "lanes", "shared_functions", "surface", "spec/eu", "spec/message")
SUFFIXES = (".py", ".table", ".csv", ".layout", ".asm")


@cache
def source_fingerprint() -> str:
    """Of names, sizes and times of the sources."""
    root = Path(softgen.__file__).parent
    found = hashlib.sha256()
    for source in SOURCES:
        found.update("".join(sorted(_files(str(root / source), source))).encode())
    return found.hexdigest()


def _files(folder: str, name: str) -> Iterator[str]:
    """A line for each source below a folder that is called `name`."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIXES):
                status = entry.stat()
                yield f"{name}/{entry.name} {status.st_size} {status.st_mtime_ns}\n"
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path, f"{name}/{entry.name}")
