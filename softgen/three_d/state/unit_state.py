"""A shader stage's state: a command, or a block in memory where units read their state from there; its binding table and samplers.

Reads   3DSTATE_VS 3DSTATE_PS 3DSTATE_PIPELINED_POINTERS VS_STATE GS_STATE CLIP_STATE SF_STATE WM_STATE
        3DSTATE_BINDING_TABLE_POINTERS 3DSTATE_BINDING_TABLE_POINTERS_VS 3DSTATE_BINDING_TABLE_POOL_ALLOC
        3DSTATE_SAMPLER_STATE_POINTERS_VS
Writes  records of pages; offsets for thread dispatches
"""

from __future__ import annotations

from collections.abc import Mapping

from softgen.bits.generation import Generation
from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.shared_functions.unit import TABLES_END
from softgen.threads.dispatch import DispatchContext
from softgen.three_d.state.state import DrawState

# stage -> its pointer in 3DSTATE_PIPELINED_POINTERS, its block of state (G45 958-1001), its table in 3DSTATE_BINDING_TABLE_POINTERS
BLOCKS = {
    "VS": ("pointer_to_vs_state", "VS_STATE", "pointer_to_vs_binding_table"),
    "GS": ("pointer_to_gs_state", "GS_STATE", "pointer_to_gs_binding_table"),
    "CLIP": ("pointer_to_clip_state", "CLIP_STATE", "pointer_to_clip_binding_table"),
    "SF": ("pointer_to_sf_state", "SF_STATE", "pointer_to_sf_binding_table"),
    "PS": ("pointer_to_wm_state", "WM_STATE", "pointer_to_ps_binding_table"),
}

MOST_POOL = 1 << 19  # bytes that a table's pointer can span: no table in a larger pool is past its end


def unit_state(state: DrawState, stage: str) -> Record:
    """The state of a stage: VS, HS, DS, GS, CLIP, SF or PS."""
    if not state.generation.unit_state:
        return state.command(f"3DSTATE_{stage}")
    pointer, block, _ = BLOCKS[stage]
    return state.structure(block, state.address("general", getattr(state.command("3DSTATE_PIPELINED_POINTERS"), pointer)))


def binding_table(state: DrawState, stage: str) -> int:
    """A stage's binding table, as an offset from the surface state base; it may be elsewhere, in a pool of tables (BDW 864-879)."""
    if state.generation.unit_state:
        pointers = state.get("3DSTATE_BINDING_TABLE_POINTERS")
        return int(getattr(pointers, BLOCKS[stage][2])) if pointers is not None else 0
    pointer = state.get(f"3DSTATE_BINDING_TABLE_POINTERS_{stage}")
    if pointer is None:
        return 0
    pool = state.get("3DSTATE_BINDING_TABLE_POOL_ALLOC")
    if pool is not None and pool.binding_table_pool_enable:
        return int(pool.binding_table_pool_base_address + pointer.pool_offset - state.bases.get("surface", 0))
    return int(pointer.pointer_to_binding_table)


def samplers(state: DrawState, stage: str) -> int:
    """A stage's sampler states, as an offset from the dynamic state base (from the general one where units read blocks)."""
    if state.generation.unit_state:
        return int(unit_state(state, stage).sampler_state_pointer)
    pointer = state.get(f"3DSTATE_SAMPLER_STATE_POINTERS_{stage}")
    return int(pointer.pointer_to_sampler_state) if pointer is not None else 0


def stage_bases(generation: Generation, bases: Mapping[str, int]) -> Mapping[str, int]:
    """Base addresses for a stage's threads: where units read blocks, kernels and samplers count from the general state base too."""
    if not generation.unit_state:
        return bases
    general = bases.get("general", 0)
    return {**bases, "instruction": general, "dynamic": general}


def dispatch_context(cs: CommandStreamer) -> DispatchContext:
    """The environment of the pipeline's threads."""
    bases = stage_bases(cs.generation, cs.bases)
    pool = cs.latched.get("3DSTATE_BINDING_TABLE_POOL_ALLOC")
    if pool is not None and pool.binding_table_pool_enable and pool.binding_table_pool_bytes < MOST_POOL:
        bases = {**bases, TABLES_END: pool.binding_table_pool_base_address + pool.binding_table_pool_bytes}
    return DispatchContext(cs.generation, cs.space, bases, cs.warn, cs.system_routine, elapsed=cs.elapsed, told=cs.told)
