"""Files that verbs read as a whole: code and text, of limited size, from a path or standard input."""

from __future__ import annotations

import sys
from typing import BinaryIO

from softgen.errors import DecodeError

LARGEST = 1 << 28  # bytes: a device such as /dev/zero has no end
STEP = 1 << 24


def read_bytes(file: str) -> tuple[str, bytes]:
    """What messages call a file, and its contents; `-` is standard input."""
    name = "standard input" if file == "-" else file
    try:
        if file == "-":
            return name, _limited(name, sys.stdin.buffer)
        with open(file, "rb") as stream:
            return name, _limited(name, stream)
    except OSError as error:
        raise DecodeError(f"{name}: cannot be read: {error.strerror or error}") from None


def _limited(name: str, stream: BinaryIO) -> bytes:
    data = bytearray()
    while part := stream.read(STEP):
        data += part
        if len(data) > LARGEST:
            raise DecodeError(f"{name}: has more than {LARGEST >> 20} MiB")
    return bytes(data)


def read_text(file: str) -> tuple[str, str]:
    """What messages call a file, and its text."""
    name, raw = read_bytes(file)
    try:
        return name, raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"{name}: is not text: byte {error.start} is {raw[error.start]:#04x}") from None
