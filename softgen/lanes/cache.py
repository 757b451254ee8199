"""Compiled objects on disk, so that nothing is compiled twice: $XDG_CACHE_HOME/softgen/objects, private to the user.

A file is a SHA-256 of its contents followed by them; its name is the key. It is written beside and renamed, so readers see all or
nothing. Whatever goes wrong here (a read-only home, a full disk, bytes that changed) costs a compilation and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path
from typing import NamedTuple

LARGEST = 256 << 20         # bytes kept
_SUM = 32


def default_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(root) if root.startswith("/") else Path(os.path.expanduser("~/.cache"))) / "softgen" / "objects"


class Kept(NamedTuple):
    """A file of the cache."""

    used: float     # when, in seconds as time.time() has them
    size: int
    path: str


class Cache:
    """`load` and `save` never raise; None in, or a folder that is not ours alone, and nothing is kept."""

    def __init__(self, folder: Path | None, largest: int = LARGEST) -> None:
        self.folder, self.largest = folder, largest

    def load(self, key: str) -> bytes | None:
        """The object kept under a key, or None; one that does not match its sum is removed."""
        if self.folder is None or not self.private():
            return None
        path = self.folder / key
        try:
            raw = path.read_bytes()
            if hashlib.sha256(raw[_SUM:]).digest() != raw[:_SUM]:
                path.unlink()
                return None
            os.utime(path)                              # the oldest are dropped first
        except OSError:
            return None
        return raw[_SUM:]

    def save(self, key: str, data: bytes) -> None:
        if self.folder is None or len(data) + _SUM > self.largest:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.private():
                return
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(data).digest() + data)
                os.replace(name, self.folder / key)
            except OSError:
                os.unlink(name)
                raise
            self._shrink()
        except OSError:
            return

    def private(self) -> bool:
        """Objects are code: a folder that others can write to, or that is not ours, is left alone."""
        try:
            found = os.lstat(self.folder or "")
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022

    def kept(self) -> list[Kept]:
        """Every file, the one that was used longest ago first."""
        found = []
        try:
            with os.scandir(self.folder or "") as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue                        # another process was quicker
                    found.append(Kept(status.st_mtime, status.st_size, entry.path))
        except OSError:
            return []
        return sorted(found)

    def clear(self) -> int:
        """Removes everything, of a folder that is ours; how many files that were. Who runs meanwhile compiles again."""
        removed = 0
        for one in self.kept() if self.private() else ():
            try:
                os.unlink(one.path)
                removed += 1
            except OSError:
                pass                                    # gone already, or no file
        return removed

    def _shrink(self) -> None:
        """Drops what was used longest ago until the rest fits."""
        found = self.kept()
        size = sum(one.size for one in found)
        for one in found:
            if size <= self.largest:
                return
            Path(one.path).unlink(missing_ok=True)
            size -= one.size
