"""MI commands: what the streamer does itself with memory and registers.

Reads   MI_NOOP MI_ARB_CHECK MI_ARB_ON_OFF MI_USER_INTERRUPT MI_SET_APPID MI_TOPOLOGY_FILTER MI_CLFLUSH MI_STORE_DATA_IMM
        MI_LOAD_REGISTER_IMM MI_LOAD_REGISTER_MEM MI_LOAD_REGISTER_REG MI_STORE_REGISTER_MEM MI_COPY_MEM_MEM
Writes  memory and registers
"""

from __future__ import annotations

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.errors import Unsupported
from softgen.streamer.execute import Commands, Streamer, into

COMMANDS: Commands = {}
executes = into(COMMANDS)


def flag(values: Record, name: str) -> bool:
    """A bit that some generations do not have: off there."""
    return name in values._fields and bool(getattr(values, name))


@executes("MI_NOOP", "MI_ARB_CHECK", "MI_ARB_ON_OFF", "MI_USER_INTERRUPT", "MI_SET_APPID", "MI_TOPOLOGY_FILTER", "MI_CLFLUSH")
def nothing(cs: Streamer, cmd: Record) -> None:
    """One submission runs at a time, in order, and nobody listens for interrupts: nothing is left to do."""


@executes("MI_STORE_DATA_IMM")
def store_data_imm(cs: Streamer, cmd: Record) -> None:
    """As many dwords as the command holds behind its address: one or two, and on later generations any number."""
    first = catalogue.layout("MI_STORE_DATA_IMM", cs.generation.number).field("immediate_data").low // 32
    data = b"".join(one.to_bytes(4, "little") for one in cs.command.dwords[first:])
    cs.write(cmd.address, data, cmd.use_global_gtt)


@executes("MI_LOAD_REGISTER_IMM")
def load_register_imm(cs: Streamer, cmd: Record) -> None:
    if cmd.byte_write_disables:
        raise Unsupported(f"byte_write_disables {cmd.byte_write_disables:#x} is not yet simulated")
    for pair in cmd.entry:
        cs.registers.write(cs.register(pair.register_offset, flag(cmd, "add_cs_mmio_start_offset")), pair.data_dword)


@executes("MI_LOAD_REGISTER_MEM")
def load_register_mem(cs: Streamer, cmd: Record) -> None:
    if flag(cmd, "add_loop_variable"):
        raise Unsupported("add_loop_variable is not yet simulated")
    value = int.from_bytes(cs.read(cmd.memory_address, 4, cmd.use_global_gtt), "little")
    cs.registers.write(cs.register(cmd.register_address, flag(cmd, "add_cs_mmio_start_offset")), value)


@executes("MI_LOAD_REGISTER_REG")
def load_register_reg(cs: Streamer, cmd: Record) -> None:
    source = cs.register(cmd.source_register_address, flag(cmd, "add_cs_mmio_start_offset_source"))
    destination = cs.register(cmd.destination_register_address, flag(cmd, "add_cs_mmio_start_offset_destination"))
    cs.registers.write(destination, cs.registers.read(source))


@executes("MI_STORE_REGISTER_MEM")
def store_register_mem(cs: Streamer, cmd: Record) -> None:
    if flag(cmd, "predicate_enable"):
        raise Unsupported("predicate_enable is not yet simulated")
    value = cs.registers.read(cs.register(cmd.register_address, flag(cmd, "add_cs_mmio_start_offset")))
    cs.write(cmd.memory_address, value.to_bytes(4, "little"), cmd.use_global_gtt)


@executes("MI_COPY_MEM_MEM")
def copy_mem_mem(cs: Streamer, cmd: Record) -> None:
    data = cs.read(cmd.source_memory_address, 4, cmd.use_global_gtt_source)
    cs.write(cmd.destination_memory_address, data, cmd.use_global_gtt_destination)
