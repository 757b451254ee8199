"""MI commands that read and write memory and registers.

Reads   MI_NOOP MI_ARB_CHECK MI_ARB_ON_OFF MI_SET_APPID MI_TOPOLOGY_FILTER MI_CLFLUSH MI_SUSPEND_FLUSH MI_FORCE_WAKEUP MI_RS_CONTROL
        MI_RS_CONTEXT MI_STORE_DATA_IMM MI_RS_STORE_DATA_IMM MI_STORE_DATA_INDEX MI_LOAD_REGISTER_IMM MI_LOAD_REGISTER_MEM
        MI_LOAD_REGISTER_REG MI_STORE_REGISTER_MEM MI_COPY_MEM_MEM MI_UPDATE_GTT MI_CONDITIONAL_BATCH_BUFFER_END MI_WAIT_FOR_EVENT
        MI_WAIT_FOR_EVENT_2 NOPID
Writes  memory, registers, the global table
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.bits.units import DWORD
from softgen.command import Actor, ActorRow, Actors, FieldPlace, registers_in
from softgen.errors import Unsupported
from softgen.streamer.execute import Streamer, flag
from softgen.streamer.interface import StreamerCommands, StreamerPreparers
from softgen.streamer.write_actors import STORE, StoreActor

COMMANDS: StreamerCommands = {}
PREPARED: StreamerPreparers = {}
executes, prepares = registers_in(COMMANDS), registers_in(PREPARED)


@executes("MI_ARB_CHECK", "MI_SET_APPID", "MI_CLFLUSH", "MI_SUSPEND_FLUSH", "MI_FORCE_WAKEUP", "MI_RS_CONTROL", "MI_RS_CONTEXT")
def nothing(cs: Streamer, cmd: Record) -> None:
    """One submission of an engine runs at a time, in order, on a machine that is always awake, and nothing runs ahead of the parser."""


@executes("MI_NOOP")
def noop(cs: Streamer, cmd: Record) -> None:
    if cmd.identification_number_register_write_enable:
        cs.set("NOPID", cmd.identification_number)


@executes("MI_ARB_ON_OFF")
def arb_on_off(cs: Streamer, cmd: Record) -> None:
    cs.arbitration = bool(cmd.arbitration_enable)


@executes("MI_TOPOLOGY_FILTER")
def topology_filter(cs: Streamer, cmd: Record) -> None:
    """Draws of other topologies do nothing from now on."""
    cs.saved.latched.note(cs.command)


@executes("MI_WAIT_FOR_EVENT", "MI_WAIT_FOR_EVENT_2")
def wait_for_event(cs: Streamer, cmd: Record) -> None:
    if any(cmd):
        raise Unsupported("there is no display whose events could be waited for")


@executes("MI_STORE_DATA_IMM")
def store_data_imm(cs: Streamer, cmd: Record) -> None:
    """As many dwords as follow the command's address: one or two, and on later generations any number."""
    first = catalogue.layout("MI_STORE_DATA_IMM", cs.generation.number).field("immediate_data").low // 32
    data = b"".join(dword.to_bytes(DWORD, "little") for dword in cs.command.dwords[first:])
    cs.write(cmd.address, data, cmd.use_global_gtt)


def _store_actor(cs: Any) -> Actor:
    found: Actor | None = cs.own_actors.get(STORE)
    if found is None:
        found = cs.own_actors[STORE] = StoreActor(cs.generation.number, store_data_imm)
    return found


ACTORS: Actors = {STORE: ActorRow(store_data_imm, _store_actor)}


@executes("MI_RS_STORE_DATA_IMM")
def rs_store_data_imm(cs: Streamer, cmd: Record) -> None:
    """The resource streamer writes it; here nothing runs ahead, so it is written in its turn."""
    cs.write(cmd.destination_address, cmd.data_dword_0.to_bytes(DWORD, "little"))


@executes("MI_STORE_DATA_INDEX")
def store_data_index(cs: Streamer, cmd: Record) -> None:
    """One dword or two, into the hardware status page; the offset counts dwords."""
    values = (cmd.data_dword_0, cmd.data_dword_1)[: len(cs.command.dwords) - 2]
    data = b"".join(value.to_bytes(DWORD, "little") for value in values)
    cs.write_status(DWORD * cmd.offset, data, flag(cmd, "use_per_process_hardware_status_page"))


@executes("MI_LOAD_REGISTER_IMM")
def load_register_imm(cs: Streamer, cmd: Record) -> None:
    """A byte whose write is disabled keeps what it has."""
    kept = sum(0xFF << 8 * byte for byte in range(DWORD) if cmd.byte_write_disables >> byte & 1)
    for pair in cmd.entry:
        offset = cs.register(pair.register_offset, flag(cmd, "add_cs_mmio_start_offset"))
        old = cs.registers.read(offset) & kept if kept else 0
        cs.registers.write(offset, old | pair.data_dword & ~kept)


@executes("MI_LOAD_REGISTER_MEM")
def load_register_mem(cs: Streamer, cmd: Record) -> None:
    if flag(cmd, "add_loop_variable"):
        raise Unsupported("add_loop_variable is not yet simulated")
    value = int.from_bytes(cs.read(cmd.memory_address, DWORD, cmd.use_global_gtt), "little")
    cs.registers.write(cs.register(cmd.register_address, flag(cmd, "add_cs_mmio_start_offset")), value)


@executes("MI_LOAD_REGISTER_REG")
def load_register_reg(cs: Streamer, cmd: Record) -> None:
    source = cs.register(cmd.source_register_address, flag(cmd, "add_cs_mmio_start_offset_source"))
    destination = cs.register(cmd.destination_register_address, flag(cmd, "add_cs_mmio_start_offset_destination"))
    cs.registers.write(destination, cs.registers.read(source))


@executes("MI_STORE_REGISTER_MEM")
def store_register_mem(cs: Streamer, cmd: Record) -> None:
    if flag(cmd, "predicate_enable") and not cs.predicate():
        return
    value = cs.registers.read(cs.register(cmd.register_address, flag(cmd, "add_cs_mmio_start_offset")))
    cs.write(cmd.memory_address, value.to_bytes(DWORD, "little"), cmd.use_global_gtt)


@prepares("MI_STORE_REGISTER_MEM")
def prepare_store_register_mem(cs: Streamer, cmd: Record, place: Callable[[str], FieldPlace]) -> Callable[[Streamer, int], None] | None:
    """A store whose address may differ: runtimes keep the time before and after a kernel so."""
    if flag(cmd, "predicate_enable"):
        return None
    register, (shift, mask) = cs.register(cmd.register_address, flag(cmd, "add_cs_mmio_start_offset")), place("memory_address")

    def run(cs: Streamer, batch: int) -> None:
        cs.write(batch >> shift & mask, cs.registers.read(register).to_bytes(DWORD, "little"), cmd.use_global_gtt)

    return run


@executes("MI_COPY_MEM_MEM")
def copy_mem_mem(cs: Streamer, cmd: Record) -> None:
    data = cs.read(cmd.source_memory_address, DWORD, cmd.use_global_gtt_source)
    cs.write(cmd.destination_memory_address, data, cmd.use_global_gtt_destination)


@executes("MI_UPDATE_GTT")
def update_gtt(cs: Streamer, cmd: Record) -> None:
    if cs.device.update_table is None:
        raise Unsupported("this memory has no global table that could be changed")
    cs.device.update_table(cmd.entry_address, [entry.entry_data for entry in cmd.entry])
    cs.memory_changed()


@executes("MI_CONDITIONAL_BATCH_BUFFER_END")
def conditional_batch_buffer_end(cs: Streamer, cmd: Record) -> None:
    """Goes on where memory holds more than the command; otherwise ends the batch and those that called it.

    With a mask, memory holds the mask and then the value it is taken to (public media-driver mhw_mi).
    """
    if not cmd.compare_semaphore:
        return
    masked = flag(cmd, "compare_mask_mode")
    data = cs.read(cmd.compare_address, DWORD * (1 + masked), cmd.use_global_gtt)
    found = int.from_bytes(data[:DWORD], "little")
    if masked:
        found &= int.from_bytes(data[DWORD:], "little")
    if found <= cmd.compare_data_dword:
        cs.leave()
