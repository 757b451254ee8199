"""AUB records written by hand, from the published format and not from our pages: a second opinion on every position."""

from __future__ import annotations

import struct

GLOBAL, LOCAL, PHYSICAL, GLOBAL_ENTRY, CONTEXT, TABLE, POINTERS, DIRECTORY, PML4 = 0, 1, 2, 4, 5, 6, 8, 9, 10
COMMENT, DATA, COMMAND, MMIO = 0, 1, 2, 3
DEVICE = {"bdw": 11, "skl": 12, "kbl": 16, "icl": 19, "ivb": 7}


def dwords(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def address(value: int) -> tuple[int, int]:
    return value & 0xFFFFFFFF, value >> 32


# -- memory trace --------------------------------------------------------------------------------------------------


def trace(subopcode: int, *body: int, data: bytes = b"") -> bytes:
    content = dwords(*body) + pad(data)
    return dwords(7 << 29 | 0x2E << 23 | subopcode << 16 | len(content) // 4) + content


def version(gpu: str | int = "skl", text: bytes = b"NEO\0") -> bytes:
    number = DEVICE[gpu] if isinstance(gpu, str) else gpu
    return trace(0x0E, 0, 0x10040000 | number << 8, 0, 0, data=text)


def register_write(offset: int, value: int, mask: int = 0xFFFFFFFF, size: int = 2, space: int = 0) -> bytes:
    return trace(0x03, offset, size << 16 | space << 28, *address(mask), *([value] if size < 3 else address(value)))


def register_compare(offset: int, value: int, mask: int = 0xFFFFFFFF, flags: int = 0, size: int = 2) -> bytes:
    return trace(0x01, offset, size << 16 | flags, *address(mask), *([value] if size < 3 else address(value)))


def register_poll(offset: int, mask: int, value: int) -> bytes:
    return trace(0x02, offset, 2 << 16, *address(mask), value)


def memory_write(where: int, data: bytes, space: int = PHYSICAL, flags: int = 0, size: int | None = None) -> bytes:
    return trace(0x06, *address(where), space << 28 | flags, len(data) if size is None else size, data=data)


def memory_write_pieces(pieces: list[tuple[int, bytes]], space: int = PHYSICAL, count: int | None = None) -> bytes:
    table = [number for where, data in pieces for number in (*address(where), len(data))]
    table += [0] * (63 * 3 - len(table))
    return trace(0x0B, space << 28 | (len(pieces) if count is None else count) << 4, *table, data=b"".join(data for _, data in pieces))


def memory_compare(where: int, data: bytes, space: int = PHYSICAL, flags: int = 0) -> bytes:
    return trace(0x04, *address(where), space << 28 | flags, len(data), data=data)


def predicate(state: int, target: int) -> bytes:
    return trace(0x0F, state | target << 1)


# -- classic -------------------------------------------------------------------------------------------------------


def header(comment: bytes = b"PCI-ID=0x2e22") -> bytes:
    body = dwords(4 << 24) + b"softgen".ljust(32, b"\0") + dwords(0, 0, len(comment)) + pad(comment)
    return dwords(7 << 29 | 1 << 23 | 0x05 << 16 | len(body) // 4 + 1 - 2) + body


def block(operation: int, where: int, data: bytes, kind: int = 0, space: int = 0, wide: bool = False) -> bytes:
    low, high = address(where)
    body = dwords(operation | kind << 8 | space << 16, 0, low, len(data), *([high] if wide else []))
    return dwords(7 << 29 | 1 << 23 | 0x41 << 16 | len(body) // 4 + 1 - 2) + body + pad(data)


# -- whole traces --------------------------------------------------------------------------------------------------

CONTEXT_AT, RING_AT, ROOT, BATCH = 0x6000, 0x2000, 0x100000, 0x7FFF_0040_0000


def image(tail: int, head: int = 0, root: int = ROOT, enable: int = 1) -> bytes:
    """A context's first pages: status page, then registers with their values."""
    context = [0] * 64
    context[5], context[7], context[9], context[11] = head, tail, RING_AT, 0x3000 | enable
    context[49], context[51] = root >> 32, root & 0xFFFFFFFF
    return bytes(4096) + dwords(*context)


def global_entries(first: int, count: int, physical: int | None = None) -> bytes:
    physical = first if physical is None else physical
    entries = [dword for i in range(count) for dword in ((physical + 4096 * i) | 1, 0)]
    return memory_write(first // 4096 * 8, dwords(*entries), GLOBAL_ENTRY)


def tables(where: int, physical: int, root: int = ROOT) -> bytes:
    """Four levels of tables for one page, each table at the root and the next three pages."""
    out, spaces = b"", (PML4, POINTERS, DIRECTORY, TABLE)
    for level, space in enumerate(spaces):
        table = root + 4096 * level
        entry = (physical if level == 3 else table + 4096) | 7
        out += memory_write(table + 8 * (where >> (39 - 9 * level) & 511), dwords(*address(entry)), space)
    return out


def machine(gpu: str | int = "skl", ring: bytes = dwords(0x18800101, *address(BATCH), 0), text: bytes = b"NEO\0") -> bytes:
    """A trace up to where work could start: tables, a batch, a context with a ring."""
    return (
        version(gpu, text)
        + global_entries(RING_AT, 4, 0x2000) + global_entries(CONTEXT_AT, 4, 0x6000)
        + tables(BATCH, 0x50000) + memory_write(0x50000, dwords(0x05000000, 0))
        + memory_write(0x6000, image(len(ring))) + memory_write(0x2000, ring)
    )  # fmt: skip


def submit_ports(descriptor: int = CONTEXT_AT | 0x119, base: int = 0x2000) -> bytes:
    """Gen8 and Gen9: second element high and low, first element high and low."""
    return b"".join(register_write(base + 0x230, value) for value in (0, 0, 7, descriptor))


def submit_queue(descriptor: int = CONTEXT_AT | 0x119, base: int = 0x2000) -> bytes:
    """Gen11."""
    return register_write(base + 0x510, descriptor) + register_write(base + 0x514, 7) + register_write(base + 0x550, 1)
