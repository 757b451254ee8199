"""Translated kernels on disk, found by the bytes of their code: a kernel that was compiled once starts without being decoded.

Where a kernel ends is known only after decoding it. So what its first bytes lead to is a list of the kernels that begin so: how long each
is, the sum of its code, and its object.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from softgen.cache import Cache, default_folder
from softgen.eu.interpreter import KernelProgram
from softgen.lanes.compile import jit
from softgen.lanes.compile.source_fingerprint import source_fingerprint

BEGINNING = 16  # bytes of code that a list is kept for
MOST = 128  # kernels of one list


Entry = tuple[int, str, dict[str, Any]]  # size of a kernel's code, its SHA-256, facts about the translation


class StoredTranslation(NamedTuple):
    data: bytes  # the object
    size: int  # bytes of code that it was made from
    facts: dict[str, Any]


class TranslationStore:
    def __init__(self, folder: Path | None = None) -> None:
        self.cache = Cache(folder or default_folder())

    def _list(self, program: KernelProgram, key: object) -> str:
        parts = (source_fingerprint(), *jit.host(), f"{program.gen:g} {program.start} {key}")
        return hashlib.sha256("\0".join(parts).encode() + program.code[:BEGINNING]).hexdigest()

    def load(self, program: KernelProgram, key: object) -> StoredTranslation | None:
        for size, total, facts in self._entries(self._list(program, key)):
            code = program.beginning(size)
            if len(code) == size and hashlib.sha256(code).hexdigest() == total:
                data = self.cache.load(facts["object"])
                return None if data is None else StoredTranslation(data, size, facts)
        return None

    def save(self, program: KernelProgram, key: object, size: int, data: bytes, facts: dict[str, Any]) -> None:
        """`size` bytes of code are all that the translation depends on."""
        code = program.beginning(size)
        if len(code) < size:
            return
        name, total = self._list(program, key), hashlib.sha256(code).hexdigest()
        facts = {**facts, "object": hashlib.sha256(f"{name} {total}".encode()).hexdigest()}
        self.cache.save(facts["object"], data)
        known = [entry for entry in self._entries(name) if entry[1] != total]
        self.cache.save(name, json.dumps([(size, total, facts), *known[: MOST - 1]]).encode())

    def _entries(self, name: str) -> list[Entry]:
        return self.cache.load_json(name, entries) or []


def entries(loaded: Any) -> list[Entry]:
    """A list out of the cache, checked; a ValueError or TypeError where it is anything else."""
    return [(whole(size), text(total), facts_of(facts)) for size, total, facts in loaded]


def facts_of(loaded: Any) -> dict[str, Any]:
    needs = loaded["needs"] and [(whole(start), whole(size)) for start, size in loaded["needs"]]
    indices = [whole(index) for index in loaded["indices"]]
    clean, in_order = truth(loaded["clean"]), truth(loaded["in_order"])
    return {"object": text(loaded["object"]), "clean": clean, "needs": needs, "indices": indices, "in_order": in_order}


def truth(loaded: Any) -> bool:
    if not isinstance(loaded, bool):
        raise ValueError(f"neither true nor false: {loaded!r}")
    return loaded


def whole(loaded: Any) -> int:
    if type(loaded) is not int:
        raise ValueError(f"no whole number: {loaded!r}")
    return loaded


def text(loaded: Any) -> str:
    if not isinstance(loaded, str):
        raise ValueError(f"no text: {loaded!r}")
    return loaded
