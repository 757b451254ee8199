"""Software rules of Ice Lake's thread-generating stages: what must be mapped, fit, or come before a draw, reported when its plans are made.

Reads   3DSTATE_VS 3DSTATE_HS 3DSTATE_DS 3DSTATE_GS 3DSTATE_PS, the commands that say where their tables, samplers and constants are,
        3DSTATE_URB_VS and those of other stages, 3DSTATE_PUSH_CONSTANT_ALLOC_VS and those of other stages, L3CNTLREG
Writes  remarks
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softgen.bits import catalogue
from softgen.bits.generation import most_of
from softgen.bits.record import Record
from softgen.three_d.rules.urb_regions import beyond, constant_spaces, stage_entries
from softgen.three_d.state.constants import constant_ranges
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import binding_table, samplers

STAGES = ("VS", "HS", "DS", "GS")
LINE, KIB = 64, 1024
SAMPLERS_EACH, SAMPLER_BYTES = 4, 16  # that a sampler count means, of each
ENTRY = 4  # bytes of an entry of a binding table
HEADERS = {"VS": 2, "HS": 1, "DS": 5, "GS": 2}  # registers that payloads of SIMD8 threads begin with
WAYS = 96  # of the L3, however large (ICL 1285-1300)


def check_stages(state: DrawState) -> None:
    """Report what the state of thread-generating stages must not ask for."""
    if not state.generation.stage_rules:
        return
    for text in (*_regions(state), *_constants(state), *(text for stage in STAGES for text in _stage(state, stage))):
        state.remark(text)


def _unit(state: DrawState, stage: str) -> Record | None:
    """The state of a stage that has threads."""
    unit = state.get(f"3DSTATE_{stage}")
    if stage == "PS":
        extra = state.get("3DSTATE_PS_EXTRA")
        return unit if extra is not None and extra.pixel_shader_valid else None
    return unit if unit is not None and unit.enable else None


def _stage(state: DrawState, stage: str) -> Iterator[str]:
    unit = _unit(state, stage)
    if unit is None:
        return
    yield from _scratch(state, stage, unit)
    yield from _start(state, stage, unit)
    for what, address, size in prefetched(state, stage):
        if mapped := _unmapped(state, address, size):
            yield f"3DSTATE_{stage}: {what} at {address:#x} are prefetched, and {mapped} (ICL 3012-3013)"


def _unmapped(state: DrawState, address: int, size: int) -> str:
    found = state.unnoted.space.extent(address, size) if size else 0
    return f"only {found:#x} of their {size:#x} bytes are mapped" if found < size else ""


def _scratch(state: DrawState, stage: str, unit: Record) -> Iterator[str]:
    """Scratch space for each thread that may be active (ICL 2884-2888)."""
    if not unit.per_thread_scratch_space and not unit.scratch_space_base_pointer:
        return
    threads = int(unit.maximum_number_of_threads) + 1
    address = state.unnoted.address("general", unit.scratch_space_base_pointer & 0xFFFFFFFF)
    size = threads * (KIB << unit.per_thread_scratch_space)
    if text := _unmapped(state, address, size):
        yield f"3DSTATE_{stage}: scratch space of {threads} threads at {address:#x}: {text} (ICL 2884-2888)"


def _start(state: DrawState, stage: str, unit: Record) -> Iterator[str]:
    """Data from the URB must not overwrite the header of the payload (ICL 3149-3150)."""
    constants = state.get(f"3DSTATE_CONSTANT_{stage}")
    lengths = sum(int(part.length) for part in constants.read_length) if constants is not None else 0
    pushed = lengths or getattr(unit, "vertex_urb_entry_read_length", 0) or getattr(unit, "patch_urb_entry_read_length", 0)
    least = HEADERS[stage]
    if stage == "DS" and not unit.dispatch_mode:  # two points, whose coordinates have a register
        least = 2
    if pushed and unit.dispatch_grf_start_register_for_urb_data < least:
        start = unit.dispatch_grf_start_register_for_urb_data
        yield f"3DSTATE_{stage}: dispatch_grf_start_register_for_urb_data {start}; headers have {least} registers (ICL 3149-3150)"


# -- what is prefetched ------------------------------------------------------------------------------------------------


def prefetched(state: DrawState, stage: str) -> Iterator[tuple[str, int, int]]:
    """What the first thread of a stage has fetched into the state cache: what it is, its address and size (ICL 3007-3057). Surface states
    are left out: they never cross pages, and drivers let entries that their kernels do not use lead nowhere."""
    unit = state.command(f"3DSTATE_{stage}")
    if count := SAMPLERS_EACH * int(unit.sampler_count):
        yield f"{count} sampler states", state.block_address(samplers(state, stage)), count * SAMPLER_BYTES
    count, table = int(unit.binding_table_entry_count), state.unnoted.address("surface", binding_table(state, stage))
    pool = state.get("3DSTATE_BINDING_TABLE_POOL_ALLOC")
    if pool is not None and pool.binding_table_pool_enable:  # a bit for each line
        yield from ((f"line {line} of the binding table", table + LINE * line, LINE) for line in range(8) if count >> line & 1)
    elif count:
        yield f"{count} binding table entries", table, ENTRY * count


# -- URB ---------------------------------------------------------------------------------------------------------------


def urb_kib(ways: int, l3_kib: int) -> int:
    """The size of the URB with so many ways of an L3, whose ways are as many on every GPU (ICL 1291-1300)."""
    return ways * l3_kib // WAYS


def _regions(state: DrawState) -> Iterator[str]:
    """Entries and constants must not go past what the URB has of the L3 (ICL 3262-3264)."""
    ways: Any = catalogue.layout("L3CNTLREG", state.gen).raw([state.unnoted.register("L3CNTLREG")])
    parts = [int(getattr(ways, f"{name}_allocation")) for name in ("urb", "ro", "dc", "all")]
    if sum(parts) != WAYS:
        yield f"L3CNTLREG: {sum(parts)} ways are allocated; all {WAYS} must be (ICL 1298-1300)"
    limit = urb_kib(parts[0], most_of(state.generation, "l3_kib"))
    yield from beyond([*stage_entries(state), *constant_spaces(state)], limit, "the ways of the URB in the L3 have")


def _constants(state: DrawState) -> Iterator[str]:
    """Memory is read in lines of 64 bytes: what a buffer does not fill of its first and last line takes space, too (ICL 2718-2726)."""
    sizes = {space.command: space.end - space.start for space in constant_spaces(state)}
    for stage in (*STAGES, "PS"):
        command, unit = state.get(f"3DSTATE_CONSTANT_{stage}"), _unit(state, stage)
        name = f"3DSTATE_PUSH_CONSTANT_ALLOC_{stage}"
        if command is None or unit is None or state.get(name) is None:
            continue
        needed = sum(-(-(pointer % LINE + size) // LINE) * LINE for _, pointer, size in constant_ranges(command))
        if needed > sizes.get(name, 0):
            yield f"{name}: {sizes.get(name, 0)} bytes, and constants take {needed} with what their lines have besides (ICL 2722-2726)"
