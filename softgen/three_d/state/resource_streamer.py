"""Resource streamer: binding tables that commands edit, constants gathered from buffers, and constant buffers of Direct3D 9.

Reads   3DSTATE_BINDING_TABLE_EDIT_VS 3DSTATE_GATHER_CONSTANT_VS 3DSTATE_GATHER_POOL_ALLOC 3DSTATE_BINDING_TABLE_POOL_ALLOC
        3DSTATE_BINDING_TABLE_POINTERS_VS 3DSTATE_DX9_CONSTANTF_VS 3DSTATE_DX9_CONSTANTI_VS 3DSTATE_DX9_CONSTANTB_VS
        3DSTATE_DX9_LOCAL_VALID_VS 3DSTATE_DX9_GENERATE_ACTIVE_VS 3DSTATE_DX9_CONSTANT_BUFFER_POOL_ALLOC, those of other stages,
        RENDER_SURFACE_STATE
Writes  binding tables, the gather pool and the pool of Direct3D 9 constant buffers
"""

from __future__ import annotations

from functools import partial

import numpy as np

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.bits.units import DWORD
from softgen.command import Commands, CommandStreamer
from softgen.errors import DecodeError, Unsupported
from softgen.shared_functions.dataport.surface import Surfaces
from softgen.three_d.rules.constant_rules import mark_constants_pending
from softgen.three_d.state.constant_registers import BLOCK, REGISTERS, TABLE, ResourceStreamer
from softgen.three_d.state.state import PipelineContext

COMMANDS: Commands = {}
STAGES, DX9_STAGES = ("VS", "HS", "DS", "GS", "PS"), ("VS", "PS")
OTHER_CORE = 2  # binding_table_edit_target: core 1 alone
ROW, HALF = 16, 4096  # bytes of a constant that is fetched, and of the first half of a Direct3D 9 constant buffer
GATHER_UNIT = 64  # bytes, of gather_buffer_offset
POOL_PAGE = 1 << 13  # bytes, of the Direct3D 9 pool
# Gen9's table on the die is not simulated.
NOT_BUILT = ("update_gather_table_only", "dx9_on_die_register_read_enable", "on_die_table")


def _streamer(cs: CommandStreamer) -> ResourceStreamer:
    return cs.state(PipelineContext).streamer


# -- binding tables ----------------------------------------------------------------------------------------------------


def edit_table(stage: str, cs: CommandStreamer, cmd: Record) -> None:
    """Blocks are cleared first, then entries are set (BDW 412-438)."""
    if cmd.binding_table_edit_target == OTHER_CORE:
        return
    table = _streamer(cs).table(stage)
    for block in range(TABLE // BLOCK):
        if cmd.binding_table_block_clear >> block & 1:
            table[block * BLOCK : (block + 1) * BLOCK] = [0] * BLOCK
    for entry in cmd.entry:
        table[entry.binding_table_index] = entry.surface_state_offset


def write_tables(cs: CommandStreamer) -> None:
    """Write the edited tables of stages to the pool, where their pointers say now, as far as it has room (public: Mesa i965, hardware
    binding tables: 3DSTATE_BINDING_TABLE_POINTERS has them written; draws come after it)."""
    pool, streamer = cs.latched.get("3DSTATE_BINDING_TABLE_POOL_ALLOC"), _streamer(cs)
    if pool is None or not pool.binding_table_pool_enable:
        return
    if not pool.binding_table_pool_bytes:
        raise DecodeError("3DSTATE_BINDING_TABLE_POOL_ALLOC: binding_table_pool_enable 1 and a size of 0 (BDW 1426-1428)")
    for stage, table in streamer.tables.items():
        pointer = cs.latched.get(f"3DSTATE_BINDING_TABLE_POINTERS_{stage}")
        start = pointer.pool_offset if pointer is not None else 0
        used = max((number + 1 for number, offset in enumerate(table) if offset), default=0)
        room = max(pool.binding_table_pool_bytes - start, 0) // DWORD
        held = pool.binding_table_pool_base_address + start, tuple(table[: min(-(-used // BLOCK) * BLOCK, room)])
        if pointer is not None and streamer.written.get(stage) != held:
            cs.space.write(held[0] & (1 << cs.space.bits) - 1, np.array(held[1], "<u4").tobytes())
            streamer.written[stage] = held


# -- gathered constants ------------------------------------------------------------------------------------------------


def gather(stage: str, cs: CommandStreamer, cmd: Record) -> None:
    """Pack the channels that the gather table selects into the gather buffer (BDW 4667-4788; KBL 8982-9003)."""
    for name in NOT_BUILT:
        if getattr(cmd, name, 0):
            raise Unsupported(f"{name} {getattr(cmd, name)}: not yet simulated")
    mark_constants_pending(cs, stage)
    if not cmd.constant_buffer_valid:  # the pool is left as it is (BDW 4692-4695)
        return
    pool, tables = cs.latched.get("3DSTATE_GATHER_POOL_ALLOC"), cs.latched.get("3DSTATE_BINDING_TABLE_POOL_ALLOC")
    if pool is None or not pool.gather_pool_enable or tables is None or not tables.binding_table_pool_enable:
        raise DecodeError("constants are gathered, but the gather pool or the binding table pool is not enabled (BDW 4673)")
    data = b"".join(_gathered(stage, cs, cmd, entry) for entry in cmd.gather_entry if entry.channel_mask)
    start = cmd.gather_buffer_offset * GATHER_UNIT
    if start + len(data) > pool.gather_pool_bytes:
        cs.warn(f"constants are gathered past the end of the pool, {pool.gather_pool_bytes:#x} bytes: undefined (BDW 5445-5448)")
        data = data[: max(pool.gather_pool_bytes - start, 0)]
    cs.space.write(pool.gather_pool_base_address + start & (1 << cs.space.bits) - 1, data)


def _gathered(stage: str, cs: CommandStreamer, cmd: Record, entry: Record) -> bytes:
    """The dwords of one constant that its mask selects. A Direct3D 9 buffer is larger than 4 KiB: index 1 is its second half."""
    index, first = entry.binding_table_index_offset, 0
    if getattr(cmd, "constant_buffer_dx9_enable", 0):
        index, first = 0, HALF * min(index, 1)
    if not cmd.constant_buffer_valid >> index & 1:
        cs.warn(f"a constant is gathered from buffer {index}, whose bit in constant_buffer_valid is not set")
    row = _row(stage, cs, cmd.constant_buffer_binding_table_block * BLOCK + index, first + entry.constant_buffer_offset * ROW)
    return b"".join(row[4 * n : 4 * n + 4] for n in range(4) if entry.channel_mask >> n & 1)


def _row(stage: str, cs: CommandStreamer, index: int, offset: int) -> bytes:
    """16 bytes of a buffer; a null surface does not bound the fetch (BDW 4679), outside other buffers constants are 0."""
    layout, mask = catalogue.layout("RENDER_SURFACE_STATE", cs.generation.number), (1 << cs.space.bits) - 1
    at = cs.bases.get("surface", 0) + _streamer(cs).table(stage)[index] & mask
    state = layout.raw(np.frombuffer(cs.space.read(at, 4 * layout.dwords), "<u4").tolist())
    bounds = Surfaces(cs.generation, cs.space, cs.bases, 0).plain_at(at, f"surface {index}")
    if bounds is not None and offset + ROW > bounds[1]:
        return bytes(ROW)
    return bytes(cs.space.read(int(state.surface_base_address) + offset & mask, ROW))


# -- the constant registers of Direct3D 9 ------------------------------------------------------------------------------


def write_registers(kind: str, stage: str, cs: CommandStreamer, cmd: Record) -> None:
    """Set global or local registers from an index on (BDW 3756-3791, 3933-3971, 4129-4159)."""
    names = [f"component_{n}" for n in range(4)] if REGISTERS[kind][1] == 4 else ["component"]
    rows = [[getattr(constant, name) & 0xFFFFFFFF for name in names] for constant in cmd.constant]
    if cmd.constant_register_index + len(rows) > REGISTERS[kind][0]:
        cs.warn(f"constant registers past the last, {REGISTERS[kind][0] - 1}, are left out")
    _streamer(cs).constants(stage).write(kind, bool(cmd.global_constant_register), cmd.constant_register_index, rows)


def set_valid(stage: str, cs: CommandStreamer, cmd: Record) -> None:
    """Which local registers are valid, all of them at once."""
    floats = sum(part.bits << 32 * n for n, part in enumerate(cmd.local_constantf_valid))
    held = {"F": floats, "I": cmd.local_constanti_valid_bits, "B": cmd.local_constantb_valid_bits}
    for kind, flags in _streamer(cs).constants(stage).valid.items():
        flags[:] = [held[kind] >> n & 1 for n in range(len(flags))]


def generate(stage: str, cs: CommandStreamer, cmd: Record) -> None:
    """Write the active registers to the stage's constant buffer; local ones are not valid afterwards (BDW 4312-4343)."""
    streamer = _streamer(cs)
    pool, registers = streamer.pool, streamer.constants(stage)
    if pool is None or not pool.dx9_constant_buffer_pool_enable:
        raise DecodeError("a Direct3D 9 constant buffer is made, but the pool for it is not enabled")
    data = registers.active(bool(cmd.dx9_enable), bool(cmd.clamp_enable))
    start = cmd.pointer_to_constant_buffer * POOL_PAGE
    end = pool.dx9_constant_buffer_pool_buffer_size * POOL_PAGE
    if start + len(data) > end:  # it would be read as 0 (BDW 3682-3685)
        cs.warn(f"a constant buffer at {start:#x} is past the end of the pool, {end:#x} bytes, and not written")
    else:
        cs.space.write(pool.dx9_constant_buffer_pool_base_address + start & (1 << cs.space.bits) - 1, data)
    registers.forget()


def set_pool(cs: CommandStreamer, cmd: Record) -> None:
    """Without a pool no local register stays valid (BDW 3667-3672)."""
    streamer = _streamer(cs)
    streamer.pool = cmd
    if not cmd.dx9_constant_buffer_pool_enable:
        for registers in streamer.registers.values():
            registers.forget()


COMMANDS |= {f"3DSTATE_BINDING_TABLE_EDIT_{stage}": partial(edit_table, stage) for stage in STAGES}
COMMANDS |= {f"3DSTATE_GATHER_CONSTANT_{stage}": partial(gather, stage) for stage in STAGES}
COMMANDS |= {f"3DSTATE_DX9_CONSTANT{kind}_{stage}": partial(write_registers, kind, stage) for kind in REGISTERS for stage in DX9_STAGES}
COMMANDS |= {f"3DSTATE_DX9_LOCAL_VALID_{stage}": partial(set_valid, stage) for stage in DX9_STAGES}
COMMANDS |= {f"3DSTATE_DX9_GENERATE_ACTIVE_{stage}": partial(generate, stage) for stage in DX9_STAGES}
COMMANDS["3DSTATE_DX9_CONSTANT_BUFFER_POOL_ALLOC"] = set_pool
