"""Messages with one address for whole registers: OWord and HWord blocks, scratch blocks, fences.

A block is transferred whole, whatever channels are on, except that nothing happens when none is (public Intel PRM, data port blocks).
Writes of whole registers look at the channels, OWord by OWord or dword by dword (KBL 3552-3565, 11846-11862).
At the end of a surface the dwords inside count: Intel's compiler reads the last few of a buffer with a block that ends past it (a dword
that is only partly inside is outside: public, Mesa's isl pads buffers for that reason).

Reads   MH_A32_GO MH_A64_OWB MH_A64_OWDB MH_A64_HWB MH_A32_HWB
"""

from __future__ import annotations

from softgen.bits.units import DWORD, GRF_BYTES, OWORD
from softgen.lanes.types import u32, u64
from softgen.lanes.value import Region, Value
from softgen.shared_functions.dataport import simd4x2
from softgen.shared_functions.dataport.environment import DataPortMessage
from softgen.shared_functions.dataport.reach import has_addresses, region
from softgen.shared_functions.message import answers

HALF = {"1_oword_low": 0, "1_oword_high": OWORD}  # where in its register a single OWord stands
BYTE_PORTS = ("data_port_read", "data_port_write")  # the data port of Gen4.5
SCRATCH = 1024  # bytes; the smallest scratch space


# -- OWord blocks --------------------------------------------------------------------------------------------------


def place(x: DataPortMessage) -> tuple[Region, Value, int, int]:
    """Memory, offset in bytes, dwords, and where in the first register the data begins."""
    count, half = x.plan.count("data_blocks") * OWORD // DWORD, HALF.get(x.plan.words["data_blocks"], 0)
    if has_addresses(x):
        return *region(x, x.header("MH_A64_OWB", "block_offset")), count, half
    return *region(x, in_bytes(x, x.m.convert(x.header("MH_A32_GO", "global_offset"), u64))), count, half


def in_bytes(x: DataPortMessage, offset: Value) -> Value:
    """Aligned blocks count OWords; on Gen4.5 all count bytes (public: Mesa elk_eu_emit.c, elk_vec4_generator.cpp)."""
    return offset if "unaligned" in x.plan.attributes or x.plan.function in BYTE_PORTS else offset << 4


@answers("oword_block_read", "oword_unaligned_block_read", "constant_oword_block_read", "constant_oword_unaligned_block_read",
         "sampler_cache_oword_unaligned_block_read", "a64_oword_block_read", "a64_oword_unaligned_block_read")  # fmt: skip
def oword_read(x: DataPortMessage) -> None:
    memory, offset, count, half = place(x)
    x.give(x.m.load_block(u32, count, memory, offset, x.any(count)), half, x.any(count))


@answers("oword_block_write", "a64_oword_block_write")
def oword_write(x: DataPortMessage) -> None:
    memory, offset, count, half = place(x)
    x.m.store_block(x.take(u32, half, count), memory, offset, x.any(count))


# -- dual OWord blocks: two addresses, each with its half of every register -----------------------------------------------


def dual(x: DataPortMessage) -> tuple[Region, Value, int, int]:
    """Memory, an offset for each dword, dwords, and where data begins after the header."""
    m, count = x.m, x.plan.count("data_blocks") * GRF_BYTES // DWORD
    if has_addresses(x):
        starts = m.concat(x.header("MH_A64_OWDB", "block_offset_0"), x.header("MH_A64_OWDB", "block_offset_1"))
        after = 0
    else:
        starts = m.convert(simd4x2.firsts(x, u32, 0), u64) + m.broadcast(m.convert(x.header("MH_A32_GO", "global_offset"), u64), 2)
        starts, after = in_bytes(x, starts), GRF_BYTES
    memory, starts = region(x, starts)
    halves = m.shuffle(starts, [lane // 4 % 2 for lane in range(count)])
    steps = m.constant(u64, [lane // 8 * OWORD + lane % 4 * DWORD for lane in range(count)])
    return memory, halves + steps, count, after


@answers("oword_dual_block_read", "constant_oword_dual_block_read", "a64_oword_dual_block_read")
def dual_read(x: DataPortMessage) -> None:
    memory, at, count, _ = dual(x)
    x.expect(count * DWORD)
    mask = channels(x, count)
    x.give(x.m.load(u32, memory, at, mask), 0, mask)


@answers("oword_dual_block_write", "a64_oword_dual_block_write")
def dual_write(x: DataPortMessage) -> None:
    memory, at, count, start = dual(x)
    x.m.store(x.take(u32, start, count), memory, at, channels(x, count))


# -- HWord blocks --------------------------------------------------------------------------------------------------


def dwords(x: DataPortMessage) -> int:
    return x.plan.count("data_blocks") * GRF_BYTES // DWORD


@answers("a64_hword_block_read")
def hword_read(x: DataPortMessage) -> None:
    count = dwords(x)
    memory, offset = region(x, x.header("MH_A64_HWB", "block_offset"))
    x.give(x.m.load_block(u32, count, memory, offset, x.any(count)), 0, x.any(count))


@answers("a64_hword_block_write")
def hword_write(x: DataPortMessage) -> None:
    count = dwords(x)
    by_dword = x.m.broadcast(x.header("MH_A64_HWB", "channel_mode") != 0, count)
    memory, offset = region(x, x.header("MH_A64_HWB", "block_offset"))
    x.m.store_block(x.take(u32, 0, count), memory, offset, by_dword & channels(x, count) | ~by_dword & any_of_four(x, count))


def channels(x: DataPortMessage, count: int) -> Value:
    """Registers whose dwords belong to the instruction's channels, over and over."""
    return x.m.shuffle(x.mask, [lane % x.width for lane in range(count)])


def any_of_four(x: DataPortMessage, count: int) -> Value:
    """An OWord is written for any of its four."""
    m, on = x.m, channels(x, count)
    groups = [range(lane // 4 * 4, lane // 4 * 4 + 4) for lane in range(count)]
    first, *others = (m.shuffle(on, [group[member] for group in groups]) for member in range(4))
    for other in others:
        first = first | other
    return first


# -- scratch -------------------------------------------------------------------------------------------------------


def scratch(x: DataPortMessage, count: int) -> tuple[Region, int, Value]:
    """A thread's scratch space: its base is in the header, the descriptor counts registers from there (KBL 22805-22835). Which dwords
    are inside what the header says the thread has: 1 KiB or a power of two more of it (KBL 16391-16401)."""
    m, offset = x.m, int(x.plan.fields.hword_offset) * GRF_BYTES
    base = m.convert(x.header("MH_A32_HWB", "buffer_base_address"), u64)
    size = m.constant(u32, SCRATCH, 1) << x.header("MH_A32_HWB", "per_thread_scratch_space")
    ends = m.constant(u32, [offset + (lane * DWORD // OWORD + 1) * OWORD for lane in range(count)])
    return x.environment.general(base), offset, ends <= m.broadcast(size, count)


@answers("scratch_block_read")
def scratch_read(x: DataPortMessage) -> None:
    count = dwords(x)
    memory, offset, inside = scratch(x, count)
    x.give(x.m.load_block(u32, count, memory, offset, inside & x.any(count)), 0, x.any(count))


@answers("scratch_block_write")
def scratch_write(x: DataPortMessage) -> None:
    count = dwords(x)
    memory, offset, inside = scratch(x, count)
    on = channels(x, count) if x.plan.words.get("channel_mode") == "dword" else any_of_four(x, count)
    x.m.store_block(x.take(u32, 0, count), memory, offset, inside & on)


@answers("memory_fence", "render_memory_fence", "flush_render_cache")
def memory_fence(x: DataPortMessage) -> None:
    """Memory fence: accesses are in order here already; with a commit, one register is returned (BDW 24292-24383)."""
    if not getattr(x.plan.fields, "commit", 1):
        return
    for start in range(0, x.answered, GRF_BYTES):
        x.give(x.m.constant(u32, 0, GRF_BYTES // DWORD), start, x.m.mask_from_bits(0xFF, GRF_BYTES // DWORD))
