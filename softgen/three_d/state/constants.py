"""Push constants: what a stage's threads get in their registers after the header.

Reads   3DSTATE_CONSTANT_VS 3DSTATE_CONSTANT_PS 3DSTATE_GATHER_POOL_ALLOC INSTPM CS_DEBUG_MODE2; CONSTANT_BUFFER, and a unit's state block
Writes  bytes, whole registers

    push_constants(state, "VS")
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from softgen.bits.catalogue import catalogue
from softgen.bits.record import Record
from softgen.errors import DecodeError
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state

UNIT = 32  # bytes of a read length or offset
# The register whose bit makes the first buffer's address absolute; it has moved (KBL 672-678).
OFFSET_DISABLE_REGISTERS = ("INSTPM", "CS_DEBUG_MODE2")
OFFSET_DISABLE = "constant_buffer_address_offset_disable"


def push_constants(state: DrawState, stage: str) -> bytes:
    """The constants of VS, HS, DS, GS or PS (of VS, GS, CLIP, SF or PS where all stages share one buffer), whole registers."""
    return _region(state, stage) if state.generation.unit_state else b"".join(_buffers(state, stage))


def _buffers(state: DrawState, stage: str) -> Iterator[bytes]:
    """Those of the four buffers that have a length, in order (KBL 620-715)."""
    command = state.get(f"3DSTATE_CONSTANT_{stage}")
    if command is None:
        return
    for number, pointer, size in constant_ranges(command):
        if number == 0 and not offset_disabled(state):
            yield _relative(state, pointer, size)
            continue
        pool = gather_pool(state) if number == 1 else None
        yield state.space.read(state.address("", pointer + (pool.gather_pool_base_address if pool is not None else 0)), size)


def gather_pool(state: DrawState) -> Record | None:
    """The pool that the address of buffer 1 counts from, where constants are gathered (KBL 681-695)."""
    found = state.get("3DSTATE_GATHER_POOL_ALLOC")
    return found if found is not None and found.gather_pool_enable else None


@lru_cache(256)
def constant_ranges(command: Record) -> tuple[tuple[int, int, int], ...]:
    """Number, pointer and size of the buffers that have a length."""
    buffers = enumerate(zip(command.read_length, command.constant_buffer, strict=True))
    return tuple((number, buffer.pointer, length.length * UNIT) for number, (length, buffer) in buffers if length.length)


def _relative(state: DrawState, pointer: int, size: int) -> bytes:
    """Constants at an offset from the dynamic state base. Captures that begin in the middle of a run have lost the command that set
    OFFSET_DISABLE; a pointer that leads out of the memory at the base is taken for an address, where there is something."""
    address, base = state.address("", pointer), state.address("dynamic", 0)
    if state.space.extent(base, pointer + size) < pointer + size and state.space.extent(address, size) >= size:
        state.warn(f"push constants at {pointer:#x}: that is no offset in the memory at the dynamic state base; read as an address")
        return state.space.read(address, size)
    return state.space.read(state.address("dynamic", pointer), size)


def offset_disabled(state: DrawState) -> bool:
    """Whether the first buffer's address does not count from the dynamic state base."""
    for name in OFFSET_DISABLE_REGISTERS:
        layout = catalogue().get(name, state.gen)
        if layout is not None and any(field.name == OFFSET_DISABLE for field in layout.fields):
            return bool(getattr(layout.raw([state.register(name)]), OFFSET_DISABLE))
    return False


def curbe_region(state: DrawState, stage: str) -> tuple[int, int]:
    """First byte and size of a unit's part of the CURBE."""
    unit = unit_state(state, stage)
    return int(unit.constant_urb_entry_read_offset) * UNIT, int(unit.constant_urb_entry_read_length) * UNIT


def _region(state: DrawState, stage: str) -> bytes:
    """The part that a unit reads of the buffer that all share, the CURBE."""
    first, size = curbe_region(state, stage)
    if not size:
        return b""
    if state.curbe is None:
        raise DecodeError(f"{stage}: constant_urb_entry_read_length {size // UNIT}, but no CONSTANT_BUFFER is valid")
    data = state.curbe[first : first + size]
    return data + bytes(size - len(data))  # past the end is undefined (G45 1575)
