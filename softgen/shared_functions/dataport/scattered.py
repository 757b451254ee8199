"""Messages with an address per lane: byte, dword and qword scattered, untyped surface reads and writes.

Lanes are in registers in order: eight dwords or four qwords to a register, SIMD16 in twice as many. Several dwords of a
lane are so many sets of registers, one after another (KBL 5931-6224, 18332-18723).
"""

from __future__ import annotations

from softgen.errors import DecodeError, Unsupported
from softgen.lanes.types import LaneType, u8, u16, u32, u64
from softgen.lanes.value import Value
from softgen.shared_functions.dataport import simd4x2
from softgen.shared_functions.dataport.environment import DataPortMessage
from softgen.shared_functions.dataport.reach import has_addresses, pixel_lanes, region
from softgen.shared_functions.message import answers

SIMD = {"simd8": 8, "simd16": 16, "8_dwords": 8, "16_dwords": 16}
BYTES = {"byte": 1, "word": 2, "dword": 4}
TYPES = {1: u8, 2: u16, 4: u32, 8: u64}
CHANNELS = 4
SLOT = 4  # bytes of a lane in a register


def width(x: DataPortMessage, default: str = "simd8") -> int:
    """How many lanes a message has. The A64 scattered messages of generations without a bit for it have eight."""
    mode = x.plan.words.get("simd_mode") or x.plan.words.get("block_size", default)
    if mode not in SIMD:
        raise Unsupported(f"{x.plan.name} in mode {mode}: not yet simulated")
    return SIMD[mode]


def used_lanes(x: DataPortMessage) -> int:
    """How many of them the instruction has channels for: compilers load uniform values with SIMD8 messages of one channel."""
    return min(width(x), x.mask.lanes)


def offsets(x: DataPortMessage, lanes: int) -> tuple[Value, int]:
    """The addresses, and how many payload bytes they take."""
    type = u64 if has_addresses(x) else u32
    return x.take(type, 0, lanes), type.bytes * lanes


# -- untyped surfaces ----------------------------------------------------------------------------------------------


def channels(x: DataPortMessage) -> list[int]:
    """The dwords of a lane that are meant: a set bit leaves one out (KBL 3513-3541)."""
    return [channel for channel in range(CHANNELS) if not x.plan.fields.channel_mask >> channel & 1]


def runs(channels: list[int]) -> list[tuple[int, int]]:
    """Channels that follow one another: the first, and how many."""
    found: list[tuple[int, int]] = []
    for channel in channels:
        if found and channel == sum(found[-1]):
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((channel, 1))
    return found


@answers("untyped_surface_read", "a64_untyped_surface_read", "scaled_untyped_surface_read", "scaled_a64_untyped_surface_read")
def untyped_read(x: DataPortMessage) -> None:
    if x.plan.words["simd_mode"] == "simd4x2":
        simd4x2.untyped_read(x)
        return
    lanes = width(x)
    mask, (at, _) = pixel_lanes(x, lanes), offsets(x, lanes)
    memory, at = region(x, at)
    x.expect(len(channels(x)) * SLOT * lanes)
    found = [value for first, count in runs(channels(x)) for value in x.m.load_adjacent(u32, count, memory.moved(SLOT * first), at, mask)]
    for number, value in enumerate(found):
        x.give(value, number * SLOT * lanes, mask)


@answers("untyped_surface_write", "a64_untyped_surface_write", "scaled_untyped_surface_write", "scaled_a64_untyped_surface_write")
def untyped_write(x: DataPortMessage) -> None:
    if x.plan.words["simd_mode"] == "simd4x2":
        simd4x2.untyped_write(x)
        return
    lanes = width(x)
    mask, (at, start) = pixel_lanes(x, lanes), offsets(x, lanes)
    memory, at = region(x, at)
    data = [x.take(u32, start + number * SLOT * lanes, lanes) for number in range(len(channels(x)))]
    for first, count in runs(channels(x)):
        here, data = data[:count], data[count:]
        x.m.store_adjacent(here, memory.moved(SLOT * first), at, mask)


# -- scattered -----------------------------------------------------------------------------------------------------


def shape(x: DataPortMessage) -> tuple[LaneType, int, LaneType]:
    """An element, elements of a lane, and what an element takes in registers."""
    name, words = x.plan.name, x.plan.words
    if "byte_scattered" in name:
        # Bytes of a lane are together in one dword, however many there are (KBL 826-848, 5730-5745). The manual forbids eight; compilers
        # for Gen8 send them all the same, and read a qword (observed: IGC).
        if "data_elements" not in words and words["data_size"] not in BYTES:
            raise DecodeError(f"{name} has 1, 2 or 4 bytes a lane")
        size = x.plan.count("data_elements") if "data_elements" in words else BYTES[words["data_size"]]
        return TYPES[size], 1, TYPES[max(size, SLOT)]
    type = u64 if "qword" in name else u32
    return type, x.plan.count("data_elements") if "data_elements" in words else 1, type


def counts_dwords(x: DataPortMessage) -> bool:
    """Dword scattered messages without 64-bit addresses count dwords, not bytes (public: Mesa brw_fs_nir.cpp, IGC)."""
    return "dword" in x.plan.attributes


def element_offsets(x: DataPortMessage, lanes: int) -> tuple[Value, int]:
    at, start = offsets(x, lanes)
    return x.m.convert(at, u64) << 2 if counts_dwords(x) else at, start


@answers("byte_scattered_read", "dword_scattered_read", "constant_dword_scattered_read",
         "a64_byte_scattered_read", "a64_dword_scattered_read", "a64_qword_scattered_read", "scaled_byte_scattered_read",
         "scaled_a64_byte_scattered_read", "scaled_a64_dword_scattered_read", "scaled_a64_qword_scattered_read")  # fmt: skip
def scattered_read(x: DataPortMessage) -> None:
    lanes, used, (type, count, slot) = width(x), used_lanes(x), shape(x)
    mask, (at, _) = x.lanes(used), element_offsets(x, used)
    memory, at = region(x, at)
    x.expect(count * slot.bytes * lanes)
    found = x.m.load_adjacent(type, count, memory, at, mask)
    for number, value in enumerate(found):
        x.give(x.m.convert(value, slot), number * slot.bytes * lanes, mask)


@answers("byte_scattered_write", "dword_scattered_write",
         "a64_byte_scattered_write", "a64_dword_scattered_write", "a64_qword_scattered_write", "scaled_byte_scattered_write",
         "scaled_a64_byte_scattered_write", "scaled_a64_dword_scattered_write", "scaled_a64_qword_scattered_write")  # fmt: skip
def scattered_write(x: DataPortMessage) -> None:
    lanes, (type, count, slot) = width(x), shape(x)
    mask, (at, start) = x.lanes(lanes), element_offsets(x, lanes)
    memory, at = region(x, at)
    data = [x.m.convert(x.take(slot, start + number * slot.bytes * lanes, lanes), type) for number in range(count)]
    x.m.store_adjacent(data, memory, at, mask)
