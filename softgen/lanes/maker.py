"""A checksum of the sources by which compiled objects are made: part of their keys in the cache."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import softgen

SOURCES = ("bits", "eu", "lanes", "shared_functions", "surface", "spec/eu", "spec/message")
SUFFIXES = (".py", ".table", ".csv", ".layout")


@cache
def maker() -> str:
    """Of names, sizes and times of the sources."""
    root = Path(softgen.__file__).parent
    found = hashlib.sha256()
    for source in SOURCES:
        for path in sorted((root / source).rglob("*")):
            if path.suffix in SUFFIXES:
                status = path.stat()
                found.update(f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return found.hexdigest()
