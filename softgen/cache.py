"""Cache of compiled objects and of pages that were read: $XDG_CACHE_HOME/softgen/objects, private to the user.

A file is named by its key and holds the SHA-256 of key and data, then the data. It is written under another name and renamed, so a reader
sees all of it or nothing. An unexpected file (a wrong checksum, another key's data, a pipe, a directory) is a miss and is removed.
No failure here (a read-only home, a full disk) costs more than a compilation.

Beside it a team may share a folder that is read and never written: SOFTGEN_SHARED_CACHE is `FOLDER@SUM`, as `softgen cache --export` prints
it. The folder's index has the SHA-256 of each object, and SUM is that of the index: what does not match is not used, whoever can write to
the folder.

The checksum has no secret in it: it finds damage, not intent. What is kept is code (machine code, pickles), and is trusted because of where
it is: only its user can write to the folder, and a process that can do that can execute code as that user anyway.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

LARGEST = 256 << 20         # bytes kept
LOOKS = 64                  # at the whole folder, which may have very many files, while as much is saved as it may hold
_SUM = 32
INDEX = "index"             # of a shared folder: lines of SHA-256 and key
_KEY = re.compile(r"[\w-][\w.-]{0,199}")            # no key leads out of the folder, nor is taken for a file being written
T = TypeVar("T")


def user_folder(variable: str, default: str) -> Path | None:
    """The folder that an XDG variable names, otherwise `default` in the user's home; None where the user has neither.

    A variable that is empty or a relative path counts as not set, HOME too: the system's list of users has a home as well."""
    if (named := os.environ.get(variable, "")).startswith("/"):
        return Path(named)
    home = os.environ.get("HOME", "")
    if not home.startswith("/"):
        import pwd

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:  # a container's process may have any number
            return None
    return Path(home) / default


def default_folder() -> Path:
    return (user_folder("XDG_CACHE_HOME", ".cache") or Path(os.devnull)) / "softgen" / "objects"  # the latter cannot be made


def checksum(key: str, data: bytes) -> bytes:
    """SHA-256 of key and data: data that was saved under another key does not match."""
    found = hashlib.sha256(f"{key}\0".encode())
    found.update(data)
    return found.digest()


class Kept(NamedTuple):
    """A file of the cache."""

    used: float     # time of its last use, as time.time() counts
    size: int
    path: str


class SharedObjects:
    """The objects that a team shares, by key. Nothing of an index that does not have the sum that was named is used."""

    def __init__(self, place: str) -> None:
        folder, _, named = place.rpartition("@")
        self.folder, self.sums = Path(folder), dict[str, str]()
        try:
            index = (self.folder / INDEX).read_bytes()
        except (OSError, ValueError):
            return
        if hashlib.sha256(index).hexdigest() == named.lower():
            self.sums = {key: found for found, _, key in (line.partition("  ") for line in index.decode("utf-8", "replace").splitlines())}

    def load(self, key: str) -> bytes | None:
        expected = self.sums.get(key)
        if expected is None:
            return None
        try:
            raw = (self.folder / key).read_bytes()
        except (OSError, MemoryError):
            return None
        return raw[_SUM:] if hashlib.sha256(raw).hexdigest() == expected and checksum(key, raw[_SUM:]) == raw[:_SUM] else None


@cache
def shared_objects() -> SharedObjects | None:
    """Those of SOFTGEN_SHARED_CACHE; its index is read once."""
    place = os.environ.get("SOFTGEN_SHARED_CACHE", "")
    return SharedObjects(place) if place.startswith("/") and "@" in place else None


class Cache:
    """Compiled objects by key. `load` and `save` never raise; with folder None, or one that others can write to, nothing is kept."""

    def __init__(self, folder: Path | None, largest: int = LARGEST) -> None:
        self.folder, self.largest = folder, largest

    def load(self, key: str) -> bytes | None:
        """The data saved under a key, here or in the folder that a team shares, or None."""
        found = self._load(key)
        shared = shared_objects() if found is None else None
        return found if shared is None else shared.load(key)

    def _load(self, key: str) -> bytes | None:
        """The data of a file here. One that does not match its checksum is removed."""
        if self.folder is None or not _KEY.fullmatch(key) or not self.private():
            return None
        path = self.folder / key
        try:
            raw = self._read(path)
            if raw is not None and checksum(key, raw[_SUM:]) == raw[:_SUM]:
                self._used(path)
                return raw[_SUM:]
        except FileNotFoundError:
            return None
        except (OSError, MemoryError):
            pass
        self.remove(key)
        return None

    def _read(self, path: Path) -> bytes | None:
        """The contents of a plain file; None for anything else. Opening a pipe must not wait for its other end."""
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > self.largest:
                return None
            return file.read(self.largest + 1)

    def _used(self, path: Path) -> None:
        """Notes that a file was used: the least recently used are dropped first; on a read-only file system none is."""
        try:
            os.utime(path, follow_symlinks=False)
        except OSError:
            pass

    def load_json(self, key: str, parse: Callable[[Any], T]) -> T | None:
        """What `parse` makes of the JSON saved under a key; None, and the file is removed, where it raises because the JSON is not as
        expected."""
        data = self.load(key)
        if data is None:
            return None
        try:
            return parse(json.loads(data))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            self.remove(key)
            return None

    def remove(self, key: str) -> None:
        """Removes the entry of a key, whatever kind of file it is."""
        if self.folder is None or not _KEY.fullmatch(key) or not self.private():
            return
        path = self.folder / key
        try:
            path.unlink(missing_ok=True)
        except OSError:
            import shutil

            shutil.rmtree(path, ignore_errors=True)     # a directory

    def save(self, key: str, data: bytes) -> None:
        """Keeps data under a key, in place of whatever was there."""
        if self.folder is None or not _KEY.fullmatch(key) or len(data) + _SUM > self.largest:
            return
        import random  # not for processes that only read
        import tempfile

        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.private():
                return
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(checksum(key, data) + data)
                self._rename(name, key)
            except OSError:
                os.unlink(name)
                raise
            if random.random() * self.largest < LOOKS * len(data):
                self._shrink()
        except OSError:
            return

    def _rename(self, name: str, key: str) -> None:
        assert self.folder is not None
        try:
            os.replace(name, self.folder / key)
        except IsADirectoryError:
            self.remove(key)
            os.replace(name, self.folder / key)

    def private(self) -> bool:
        """Whether only this user can write to the folder: objects are code."""
        try:
            found = os.lstat(self.folder or "")
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022

    def kept(self) -> list[Kept]:
        """Every file, the least recently used first."""
        found = []
        try:
            with os.scandir(self.folder or "") as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue                        # another process has removed it
                    found.append(Kept(status.st_mtime, status.st_size, entry.path))
        except OSError:
            return []
        return sorted(found)

    def clear(self) -> int:
        """Removes every file of a private folder; the result is their number. Programs that run meanwhile compile theirs again."""
        removed = 0
        for file in self.kept() if self.private() else ():
            try:
                os.unlink(file.path)
                removed += 1
            except OSError:
                pass                                    # gone already, or a directory
        return removed

    def export(self, target: Path) -> str:
        """Copy every object to a folder for a team; what SOFTGEN_SHARED_CACHE is to be. An OSError says why that cannot be done."""
        target.mkdir(parents=True, exist_ok=True)
        lines = []
        for path in sorted(Path(file.path) for file in self.kept() if self.private()):
            raw = self._read(path) if _KEY.fullmatch(path.name) else None
            if raw is not None and checksum(path.name, raw[_SUM:]) == raw[:_SUM]:
                (target / path.name).write_bytes(raw)
                lines.append(f"{hashlib.sha256(raw).hexdigest()}  {path.name}\n")
        index = "".join(lines).encode()
        (target / INDEX).write_bytes(index)
        return f"{target.resolve()}@{hashlib.sha256(index).hexdigest()}"

    def _shrink(self) -> None:
        """Drops the least recently used files until the rest fits."""
        found = self.kept()
        size = sum(file.size for file in found)
        for file in found:
            if size <= self.largest:
                return
            Path(file.path).unlink(missing_ok=True)
            size -= file.size
