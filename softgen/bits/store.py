"""Layouts and tables that earlier processes have read from the same pages, kept in the user's cache (softgen/cache.py).

One entry of the cache for each generation has all of them, by key. Its name has a checksum of the pages' names, sizes and times and of the
code that reads them, so an edited page is read again. What is kept is pickled and is unpickled out of a private folder only, like the
machine code that is kept there.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from softgen.cache import Cache

MISSING = object()
SOURCES = (Path(__file__).parent, Path(__file__).parent.parent / "spec")
SUFFIXES = (".py", ".layout")


class PageStore:
    """What was read, by generation and key. An entry that is not as expected is a miss."""

    def __init__(self, cache: Cache, sources: tuple[Path, ...] = SOURCES) -> None:
        self.cache, self.sources = cache, sources
        self._entries: dict[float, dict[str, bytes]] = {}

    def load(self, gen: float, key: str) -> Any:
        """What was kept, or MISSING."""
        if gen not in self._entries:
            self._entries[gen] = self._read(gen)
        data = self._entries[gen].get(key)
        try:
            return MISSING if data is None else pickle.loads(data)
        except Exception:  # unpickling may raise anything
            return MISSING

    def save(self, gen: float, tables: Mapping[str, object]) -> None:
        """Keep more. What another process keeps at the same time may be lost: it will be read from pages again."""
        pickled = {key: pickle.dumps(value, pickle.HIGHEST_PROTOCOL) for key, value in tables.items()}
        self.cache.save(self._name(gen), marshal.dumps(self._read(gen) | pickled))

    def _read(self, gen: float) -> dict[str, bytes]:
        data = self.cache.load(self._name(gen))
        if data is None:
            return {}
        try:
            found = marshal.loads(data)
        except (ValueError, EOFError, TypeError):
            found = None
        if isinstance(found, dict):
            return found
        self.cache.remove(self._name(gen))
        return {}

    def _name(self, gen: float) -> str:
        return f"pages-{gen:g}-{self._stamp}"

    @cached_property
    def _stamp(self) -> str:
        """Of the pages and what reads them, and of the Python whose bytecode it is."""
        lines = sorted(line for source in self.sources for line in _files(str(source)))
        return hashlib.sha256("".join([f"{sys.implementation.cache_tag}\n", *lines]).encode()).hexdigest()


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIXES) and entry.is_file():
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}\n"
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)
