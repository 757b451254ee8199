"""The folder of a run: sockets and the tree of files that programs are shown.

Launcher and server hold a lock on it for as long as one of them lives. The last of them to end removes it; where both were killed at once,
the next run does.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from pathlib import Path

NAME = re.compile(r"softgen-[0-9a-f]{12}")
MARK = ".softgen-run"  # a file in it: other folders of such a name are left alone
MEMORY = "/dev/shm"  # a tmpfs for everybody, like /tmp
LONGEST = 63  # bytes of its path that the shim has room for (begin() in shim.c); a socket's path has room for more
OWN = len("/softgen-") + 12  # bytes of them that are its own name


def parent() -> Path:
    """Where folders of runs are made: $XDG_RUNTIME_DIR, $TMPDIR, otherwise in memory, as a folder on a disk may take a tenth of a second
    to remove."""
    for place in (os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("TMPDIR", ""), MEMORY):
        if place.startswith("/") and len(os.fsencode(place)) + OWN <= LONGEST and os.path.isdir(place) and os.access(place, os.W_OK):
            return Path(place)
    return Path("/tmp")


def create() -> tuple[Path, int]:
    """A new folder, and a descriptor that locks it; a process that is forked shares the lock."""
    while True:
        folder = parent() / f"softgen-{os.urandom(6).hex()}"
        folder.mkdir(0o700)
        try:
            (folder / MARK).touch()
            return folder, _lock(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # another run found it before it was locked, and took it for a dead one
        except OSError:  # no locks in this file system, or too many open files: it would not be otherwise next time
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _lock(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(folder)  # it may have been removed meanwhile
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def remove_dead() -> None:
    """Remove folders of this user's runs that have no lock and no live socket."""
    around = parent()
    try:
        names = [name for name in os.listdir(around) if NAME.fullmatch(name)]
    except OSError:
        return
    for folder in [around / name for name in names]:
        try:
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                continue
            descriptor = _lock(folder)
        except OSError:
            continue  # it is in use, or gone
        try:
            if (folder / MARK).is_file() and not _has_sockets(folder):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)


def _has_sockets(folder: Path) -> bool:
    """Does a process listen on a socket in there? A version without locks may."""
    try:
        return f" {folder}/" in Path("/proc/net/unix").read_text("utf-8", "replace")
    except OSError:
        return True
