"""open_trace: which kind of trace is this? Decided by content, never by name."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from softgen.errors import DecodeError, Unsupported
from softgen.trace.aub import AubTrace
from softgen.trace.aub_records import looks_like_aub
from softgen.trace.capture import CaptureTrace
from softgen.trace.raw import RawTrace
from softgen.trace.work import Trace

START = 4096

# What a file is known by, and how to speak of it. These are files people have at hand and might try.
OTHERS = (
    (re.compile(rb"\x7fELF"), "an ELF file"),
    (re.compile(rb"!<arch>\n"), "an ar archive"),
    (re.compile(rb"\x1f\x8b"), "compressed with gzip; unpack it first"),
    (re.compile(rb"\xfd7zXZ"), "compressed with xz; unpack it first"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "compressed with zstd; a capture is opened by its directory"),
    (re.compile(rb"PK\x03\x04"), "a zip archive; unpack it first"),
    (re.compile(rb"\x89PNG"), "a picture"),
    (re.compile(rb"\s*\{\s*\"seq\""), "one submission of a capture; open its directory"),
)  # fmt: skip
LATER = (
    (re.compile(rb"(?s)(GPU HANG: ecode|Time: \d+ s |.{0,3000}\nPCI ID: 0x|.{0,3000}render command stream:)"), "an i915 error state"),
    (re.compile(rb"(?s)\x01\0\0\0.{4}\x63\x64\x67\x45\x23\x01\x45\x42"), "a Mesa hang dump (.dmp)"),
)


def open_trace(path: str | os.PathLike[str], gpu: str | None = None, engine: str = "render") -> Trace:
    """A trace, ready to give its work. `gpu` overrides what the file says, and makes a raw batch of a file nothing else explains."""
    path = Path(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise DecodeError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if stat.S_ISDIR(status.st_mode):
        return CaptureTrace(path, gpu)
    if not stat.S_ISREG(status.st_mode):
        raise DecodeError(f"{path}: is neither a file nor a directory")
    start = _start(path)
    if not start:
        raise DecodeError(f"{path}: is empty")
    if looks_like_aub(start):
        return AubTrace(path, gpu)
    for pattern, what in LATER:
        if pattern.match(start):
            raise Unsupported(f"{path}: is {what}, which softgen does not read yet")
    for pattern, what in OTHERS:
        if pattern.match(start):
            raise DecodeError(f"{path}: is {what}")
    if _is_text(start):
        raise DecodeError(f"{path}: is text; a trace is a capture directory, an AUB file or a raw batch")
    if gpu is None:
        raise DecodeError(f"{path}: is neither a capture directory nor an AUB file; for a raw batch, name its GPU with --gpu")
    return RawTrace(path, gpu, engine)


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(START)
    except OSError as error:
        raise DecodeError(f"{path}: cannot be read: {error.strerror}") from None


def _is_text(start: bytes) -> bool:
    """Nothing but printable ASCII and white space. A batch of any use holds a byte above 0x7f or a zero."""
    return all(byte in b"\t\n\r\f\x1b" or 0x20 <= byte < 0x7F for byte in start)
