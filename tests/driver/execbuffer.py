"""EXECBUFFER2 in short, for tests: buffers, rows of the list, relocations."""

import struct
from types import SimpleNamespace

import pytest

from softgen.driver.uapi.uapi import EXEC_OBJECT, RELOCATION
from tests.driver.program import Program

PINNED, HIGH, NO_RELOC, LUT, FIRST = 1 << 4, 1 << 3, 1 << 11, 1 << 12, 1 << 18
STORE, END, SEMAPHORE = 0x10000002, 0x05000000, 0x0E000002  # MI_STORE_DATA_IMM, MI_BATCH_BUFFER_END, MI_SEMAPHORE_WAIT of 4 dwords


def buffer(program: Program, data: bytes = b"", size: int = 4096) -> int:
    handle: int = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=size).handle
    if data:
        program.ioctl("DRM_IOCTL_I915_GEM_PWRITE", handle=handle, offset=0, size=len(data), data=program.memory(data).address)
    return handle


def content(program: Program, handle: int, size: int = 16) -> tuple[int, ...]:
    """Dwords of a buffer, when the GPU is done with it."""
    data = program.memory(size)
    program.ioctl("DRM_IOCTL_I915_GEM_PREAD", handle=handle, offset=0, size=size, data=data.address)
    return struct.unpack(f"<{size // 4}I", bytes(data))


def row(handle: int, **fields: int) -> SimpleNamespace:
    return SimpleNamespace(**{**dict.fromkeys(EXEC_OBJECT.names, 0), "handle": handle, **fields})


def submit(program: Program, rows: list[SimpleNamespace], **fields: int) -> list[SimpleNamespace]:
    memory = program.memory(b"".join(EXEC_OBJECT.pack(row) for row in rows))
    program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=memory.address, count=len(rows), **fields)
    return EXEC_OBJECT.unpack_all(bytes(memory))


def refused(number: int, program: Program, rows: list[SimpleNamespace], **fields: int) -> None:
    with pytest.raises(OSError) as found:
        submit(program, rows, **fields)
    assert found.value.errno == number


def relocations(program: Program, *entries: dict[str, int]) -> dict[str, int]:
    data = b"".join(RELOCATION.pack(SimpleNamespace(**{**dict.fromkeys(RELOCATION.names, 0), **entry})) for entry in entries)
    return {"relocations": len(entries), "relocations_at": program.memory(data).address}
