"""Layouts and tables that earlier processes have read from the same pages, kept in the user's cache (softgen/cache.py).

One entry of the cache for each generation has all of them, by key. Its name has a checksum of the pages' names, sizes and times and of the
code that reads them, so an edited page is read again. What is kept is pickled and is unpickled out of a private folder only, like the
machine code that is kept there: who can write to that folder can execute code as this user. The entry itself is keys and values, each with
its size in front, so that no number in it makes anybody allocate more than the file has.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import struct
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from softgen.cache import Cache

MISSING = object()
SOURCES = (Path(__file__).parent, Path(__file__).parent.parent / "spec")
SUFFIXES = (".py", ".layout")
SIZES = struct.Struct("<II")  # of a key and its value


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
        self.cache.save(self._name(gen), joined(self._read(gen) | pickled))

    def _read(self, gen: float) -> dict[str, bytes]:
        data = self.cache.load(self._name(gen))
        if data is None:
            return {}
        try:
            return split(data)
        except (ValueError, struct.error):
            self.cache.remove(self._name(gen))
            return {}

    def _name(self, gen: float) -> str:
        return f"pages-{gen:g}-{self._stamp}"

    @cached_property
    def _stamp(self) -> str:
        """Of the pages and what reads them, and of the Python whose bytecode it is."""
        lines = sorted(line for source in self.sources for line in _files(str(source)))
        return hashlib.sha256("".join([f"{sys.implementation.cache_tag}\n", *lines]).encode()).hexdigest()


def joined(entries: Mapping[str, bytes]) -> bytes:
    """Entries as bytes: sizes, key and value of each."""
    parts = list[bytes]()
    for key, value in entries.items():
        name = key.encode()
        parts += (SIZES.pack(len(name), len(value)), name, value)
    return b"".join(parts)


def split(data: bytes) -> dict[str, bytes]:
    """The entries of joined(); a ValueError or struct.error where the data is anything else."""
    found, at = dict[str, bytes](), 0
    while at < len(data):
        name, value = SIZES.unpack_from(data, at)
        middle, end = at + SIZES.size + name, at + SIZES.size + name + value
        if end > len(data):
            raise ValueError("an entry that ends after the data")
        found[data[middle - name : middle].decode()] = data[middle:end]
        at = end
    return found


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIXES) and entry.is_file():
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}\n"
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)
