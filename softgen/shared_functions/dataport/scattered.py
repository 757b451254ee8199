"""Messages with an address per lane: byte, dword and qword scattered, untyped surface reads and writes.

Lanes stand in registers as they are counted: eight dwords or four qwords to a register, SIMD16 in twice as many. Several dwords of a
lane are so many sets of registers, one after another (KBL 5931-6224, 18332-18723).
"""

from __future__ import annotations

import numpy as np

from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions.dataport.port import ADDRESS_64, DataPort, Request, answers
from softgen.shared_functions.dataport.target import Bytes, Offsets

SIMD = {"simd8": 8, "simd16": 16}
BYTES = {"byte": 1, "word": 2, "dword": 4}
CHANNELS = 4
SLOT = 4  # bytes of a lane in a register


def width(request: Request, default: str = "simd8") -> int:
    """How many lanes a message has. The A64 scattered messages of generations without a bit for it have eight."""
    mode = request.plan.words.get("simd_mode", default)
    if mode not in SIMD:
        raise Unsupported(f"{request.plan.name} in mode {mode}: not yet simulated")
    return SIMD[mode]


def offsets(request: Request, lanes: int) -> tuple[Offsets, int]:
    """The addresses, and how many payload bytes they take."""
    if request.plan.name.startswith(ADDRESS_64):
        return request.take(0, 8 * lanes).view(np.uint64), 8 * lanes
    return request.take(0, 4 * lanes).view(np.uint32).astype(np.uint64), 4 * lanes


def respond(request: Request, start: int, values: Bytes, size: int) -> None:
    """A row of bytes for each lane that is on, into slots of `size` bytes; what the row does not fill is zero."""
    lanes = len(values)
    place, on = request.answer(start, size * lanes).reshape(lanes, size), request.lanes(lanes)
    place[on] = 0
    place[on, : values.shape[1]] = values[on]


# -- untyped surfaces ----------------------------------------------------------------------------------------------


def surface_lanes(port: DataPort, request: Request) -> None:
    request.mask &= port.pixel_mask(request)


def channels(request: Request) -> list[int]:
    """The dwords of a lane that are meant: a set bit leaves one out (KBL 3513-3541)."""
    return [one for one in range(CHANNELS) if not request.plan.fields.channel_mask >> one & 1]


@answers("untyped_surface_read", "a64_untyped_surface_read")
def untyped_read(port: DataPort, request: Request) -> None:
    surface_lanes(port, request)
    lanes, target = width(request), port.target(request)
    at, _ = offsets(request, lanes)
    for number, channel in enumerate(channels(request)):
        found = target.load(at + np.uint64(SLOT * channel), SLOT, request.lanes(lanes))
        respond(request, number * SLOT * lanes, found, SLOT)


@answers("untyped_surface_write", "a64_untyped_surface_write")
def untyped_write(port: DataPort, request: Request) -> None:
    surface_lanes(port, request)
    lanes, target = width(request), port.target(request)
    at, start = offsets(request, lanes)
    for number, channel in enumerate(channels(request)):
        data = request.take(start + number * SLOT * lanes, SLOT * lanes).reshape(lanes, SLOT)
        target.store(at + np.uint64(SLOT * channel), data, request.lanes(lanes))


# -- scattered -----------------------------------------------------------------------------------------------------


def shape(request: Request) -> tuple[int, int, int]:
    """Bytes of an element, elements of a lane, bytes of an element's slot in registers."""
    name, words = request.plan.name, request.plan.words
    if "byte_scattered" in name:
        # Bytes of a lane stand together in one dword, however many there are (KBL 826-848, 5730-5745). The manual forbids eight; compilers
        # for Gen8 send them all the same, and read a qword (observed: IGC).
        if "data_elements" not in words and words["data_size"] not in BYTES:
            raise DecodeError(f"{name} has 1, 2 or 4 bytes a lane")
        size = request.plan.count("data_elements") if "data_elements" in words else BYTES[words["data_size"]]
        return size, 1, max(size, SLOT)
    size = 8 if "qword" in name else 4
    return size, request.plan.count("data_elements") if "data_elements" in words else 1, size


def element_offsets(request: Request, lanes: int) -> tuple[Offsets, int]:
    """Dword scattered messages without 64-bit addresses count dwords, not bytes (public: Mesa brw_fs_nir.cpp, IGC)."""
    at, start = offsets(request, lanes)
    counts_dwords = "dword_scattered" in request.plan.name and not request.plan.name.startswith(ADDRESS_64)
    return at * np.uint64(SLOT) if counts_dwords else at, start


@answers("byte_scattered_read", "dword_scattered_read", "constant_dword_scattered_read",
         "a64_byte_scattered_read", "a64_dword_scattered_read", "a64_qword_scattered_read")  # fmt: skip
def scattered_read(port: DataPort, request: Request) -> None:
    lanes, target = width(request), port.target(request)
    size, count, slot = shape(request)
    at, _ = element_offsets(request, lanes)
    for number in range(count):
        found = target.load(at + np.uint64(size * number), size, request.lanes(lanes))
        respond(request, number * slot * lanes, found, slot)


@answers("byte_scattered_write", "dword_scattered_write",
         "a64_byte_scattered_write", "a64_dword_scattered_write", "a64_qword_scattered_write")  # fmt: skip
def scattered_write(port: DataPort, request: Request) -> None:
    lanes, target = width(request), port.target(request)
    size, count, slot = shape(request)
    at, start = element_offsets(request, lanes)
    for number in range(count):
        data = request.take(start + number * slot * lanes, slot * lanes).reshape(lanes, slot)
        target.store(at + np.uint64(size * number), np.ascontiguousarray(data[:, :size]), request.lanes(lanes))
