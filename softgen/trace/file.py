"""open_trace: opens a file as a trace, of the kind that its content shows."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from softgen.errors import DecodeError
from softgen.trace.aub import AubTrace
from softgen.trace.aub_records import looks_like_aub
from softgen.trace.capture import CaptureTrace
from softgen.trace.error_state import ErrorStateTrace
from softgen.trace.hang_dump import START as HANG_DUMP
from softgen.trace.hang_dump import HangDumpTrace
from softgen.trace.raw import RawTrace
from softgen.trace.work import WorkTrace

START = 4096

# Magic bytes of other formats that users may try, and what the error message calls them.
OTHERS = (
    (re.compile(rb"\x7fELF"), "an ELF file"),
    (re.compile(rb"!<arch>\n"), "an ar archive"),
    (re.compile(rb"\x1f\x8b"), "compressed with gzip; unpack it first"),
    (re.compile(rb"\xfd7zXZ"), "compressed with xz; unpack it first"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "compressed with zstd; a capture is opened by its directory"),
    (re.compile(rb"PK\x03\x04"), "a zip archive; unpack it first"),
    (re.compile(rb"\x89PNG"), "a picture"),
    (re.compile(rb"\*\*\*\* Xe Device Coredump"), "a core dump of the xe driver, which drives none of the GPUs softgen has"),
    (re.compile(rb"\s*\{\s*\"seq\""), "one submission of a capture; open its directory"),
)  # fmt: skip
ERROR_STATE = re.compile(rb"(?s)GPU HANG: |Kernel: [^\n]*\n(Driver: [^\n]*\n)?Time: |Time: \d+ s |"
                         rb".{0,3000}\n(PCI ID: 0x|render command stream:)")  # fmt: skip
NO_ERROR = re.compile(rb"(?i)no error state collected")


def open_trace(path: str | os.PathLike[str], gpu: str | None = None, engine: str = "render") -> WorkTrace:
    """Open a trace. `gpu` overrides the file's own GPU, and makes a raw batch of a file of no known kind."""
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
    if NO_ERROR.match(start):
        raise DecodeError(f"{path}: is an error state of a kernel that had collected none")
    if ERROR_STATE.match(start):
        return ErrorStateTrace(path, gpu)
    if HANG_DUMP.match(start):
        return HangDumpTrace(path, gpu)
    for pattern, what in OTHERS:
        if pattern.match(start):
            raise DecodeError(f"{path}: is {what}")
    if _is_text(start):
        raise DecodeError(f"{path}: is text; a trace is a capture directory, an AUB file, an error state, a hang dump or a raw batch")
    if gpu is None:
        raise DecodeError(f"{path}: is neither a capture directory nor an AUB file; for a raw batch, name its GPU with --gpu")
    return RawTrace(path, gpu, engine)


def looks_like_trace(start: bytes) -> bool:
    """Whether a file with this beginning is a trace of a known format."""
    return looks_like_aub(start) or bool(ERROR_STATE.match(start) or HANG_DUMP.match(start))


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(START)
    except OSError as error:
        raise DecodeError(f"{path}: cannot be read: {error.strerror}") from None


def _is_text(start: bytes) -> bool:
    """Nothing but printable ASCII and white space. A batch of any use holds a byte above 0x7f or a zero."""
    return all(byte in b"\t\n\r\f\x1b" or 0x20 <= byte < 0x7F for byte in start)
