"""Messages with one address for whole registers: OWord and HWord blocks, scratch blocks.

A block is transferred whole, whatever channels are on, except that nothing happens when none is (public Intel PRM, data port blocks).
Writes of whole registers look at the channels, OWord by OWord or dword by dword (KBL 3552-3565, 11846-11862).

Reads   MH_A32_GO MH_BTS_GO MH_A64_OWB MH_A64_HWB MH_A32_HWB
"""

from __future__ import annotations

import numpy as np

from softgen.shared_functions.dataport.port import ADDRESS_64, REGISTER, DataPort, Request, answers
from softgen.shared_functions.dataport.target import Bytes, Memory, Offsets, Target

OWORD = 16
DWORD = 4
HALF = {"1_oword_low": 0, "1_oword_high": OWORD}  # where in its register a single OWord stands


def places(offset: int, size: int, step: int) -> Offsets:
    return np.uint64(offset) + np.arange(0, size, step, dtype=np.uint64)


def load(target: Target, offset: int, size: int) -> Bytes:
    """Consecutive bytes; what is out of bounds reads as zero, OWord by OWord."""
    return target.load(places(offset, size, OWORD), OWORD, np.ones(size // OWORD, np.bool_)).reshape(-1)


def store(target: Target, offset: int, data: Bytes) -> None:
    target.store(places(offset, len(data), OWORD), data.reshape(-1, OWORD), np.ones(len(data) // OWORD, np.bool_))


# -- OWord blocks --------------------------------------------------------------------------------------------------


def block(port: DataPort, request: Request) -> tuple[int, int, int]:
    """Offset in bytes, size, and where in the first register the data begins. Aligned blocks count OWords (public: Mesa brw_eu_emit.c)."""
    count = request.plan.count("data_blocks") * OWORD
    half = HALF.get(request.plan.words["data_blocks"], 0)
    if request.plan.name.startswith(ADDRESS_64):
        return int(port.header("MH_A64_OWB", request).block_offset), count, half
    offset = int(port.header("MH_A32_GO", request).global_offset)
    return offset if "unaligned" in request.plan.name else offset * OWORD, count, half


@answers("oword_block_read", "oword_unaligned_block_read", "constant_oword_block_read", "constant_oword_unaligned_block_read",
         "sampler_cache_oword_unaligned_block_read", "a64_oword_block_read", "a64_oword_unaligned_block_read")  # fmt: skip
def oword_read(port: DataPort, request: Request) -> None:
    if request.mask:
        offset, size, half = block(port, request)
        request.answer(half, size)[:] = load(port.target(request), offset, size)


@answers("oword_block_write", "a64_oword_block_write")
def oword_write(port: DataPort, request: Request) -> None:
    if request.mask:
        offset, size, half = block(port, request)
        store(port.target(request), offset, request.take(half, size))


# -- HWord blocks --------------------------------------------------------------------------------------------------


@answers("a64_hword_block_read")
def hword_read(port: DataPort, request: Request) -> None:
    if request.mask:
        size = request.plan.count("data_blocks") * REGISTER
        offset = int(port.header("MH_A64_HWB", request).block_offset)
        request.answer(0, size)[:] = load(port.target(request), offset, size)


@answers("a64_hword_block_write")
def hword_write(port: DataPort, request: Request) -> None:
    if request.mask:
        header, size = port.header("MH_A64_HWB", request), request.plan.count("data_blocks") * REGISTER
        store_channels(port.target(request), int(header.block_offset), request, size, bool(header.channel_mode))


def store_channels(target: Target, offset: int, request: Request, size: int, by_dword: bool) -> None:
    """Registers whose dwords belong to the instruction's channels, over and over; an OWord is written for any of its four."""
    on = request.lanes(request.width)[np.arange(size // DWORD) % request.width]
    if not by_dword:
        on = on.reshape(-1, OWORD // DWORD).any(axis=1).repeat(OWORD // DWORD)
    target.store(places(offset, size, DWORD), request.take(0, size).reshape(-1, DWORD), on)


# -- scratch -------------------------------------------------------------------------------------------------------


def scratch(port: DataPort, request: Request) -> tuple[Target, int, int]:
    """A thread's scratch space: its base is in the header, the descriptor counts registers from there (KBL 22805-22835)."""
    base = int(port.header("MH_A32_HWB", request).buffer_base_address)
    offset, size = int(request.plan.fields.hword_offset) * REGISTER, request.plan.count("data_blocks") * REGISTER
    return Memory(port.space, port.general + base), offset, size


@answers("scratch_block_read")
def scratch_read(port: DataPort, request: Request) -> None:
    if request.mask:
        target, offset, size = scratch(port, request)
        request.answer(0, size)[:] = load(target, offset, size)


@answers("scratch_block_write")
def scratch_write(port: DataPort, request: Request) -> None:
    if request.mask:
        target, offset, size = scratch(port, request)
        store_channels(target, offset, request, size, request.plan.words.get("channel_mode") == "dword")


@answers("memory_fence")
def memory_fence(port: DataPort, request: Request) -> None:
    """All accesses happen at once and in order here; who asks for a commit gets a register back (BDW 24292-24383)."""
    request.response[:] = 0
