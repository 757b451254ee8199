"""FileView: bytes of a file with bounds-checked access; errors name the file and the offset in it."""

from __future__ import annotations

import struct

from softgen.errors import DecodeError


class FileView:
    """Bytes of a file with their place in it."""

    def __init__(self, data: bytes | memoryview, name: str, start: int = 0) -> None:
        self.data, self.name, self.start = memoryview(data), name, start

    def __len__(self) -> int:
        return len(self.data)

    def part(self, offset: int, size: int, what: str) -> FileView:
        if offset + size > len(self):
            raise self.error(offset, f"{what} of {size:,} bytes runs past the end, {len(self) - min(offset, len(self)):,} bytes on")
        return FileView(self.data[offset : offset + size], self.name, self.start + offset)

    def read(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        return layout.unpack(self.part(offset, layout.size, what).data)

    def text(self) -> str:
        """The NUL-terminated string at the start."""
        return bytes(self.data).partition(b"\0")[0].decode("utf-8", "replace")

    def error(self, offset: int, message: str) -> DecodeError:
        return DecodeError(f"{self.name}: at {self.start + offset:#x}: {message}")
