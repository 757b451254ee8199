"""Files that verbs write: readers see the old contents or the new, whatever ends the process or fills the disk."""

from __future__ import annotations

import os
from pathlib import Path

from softgen.errors import SoftgenError


def write_file(output: str | os.PathLike[str], data: bytes) -> None:
    """Write a file under another name and rename it. A device or a pipe is written to; a link stays a link."""
    path = Path(output)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise SoftgenError(f"{path}: cannot be written: {error.strerror}") from None


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".softgen-{os.urandom(6).hex()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
