"""Synchronisation: flushes with what they write afterwards, and semaphores.

Reads   PIPE_CONTROL MI_FLUSH MI_FLUSH_DW MI_SEMAPHORE_WAIT
Writes  post-sync values: an immediate, the depth count, a timestamp

Everything before a command is done when the next one is read, and no cache holds anything back, so flushes, stalls and invalidations
have nothing to do.
"""

from __future__ import annotations

from operator import eq, ge, gt, le, lt, ne

from softgen.bits import catalogue, describe
from softgen.bits.record import Record
from softgen.errors import SoftgenError, Unsupported
from softgen.streamer.execute import Commands, Streamer, into
from softgen.streamer.mi import flag

COMMANDS: Commands = {}
executes = into(COMMANDS)

COMPARE = {
    "sad_greater_than_sdd": gt, "sad_greater_than_or_equal_sdd": ge, "sad_less_than_sdd": lt,
    "sad_less_than_or_equal_sdd": le, "sad_equal_sdd": eq, "sad_not_equal_sdd": ne,
}  # fmt: skip
DEPTH_COUNT = "PS_DEPTH_COUNT"


def word(cs: Streamer, command: str, values: Record, name: str) -> str:
    """The name of an enumerated field's value."""
    return describe.value_name(catalogue.layout(command, cs.generation.number), values, name)


@executes("MI_FLUSH")
def flush(cs: Streamer, cmd: Record) -> None:
    pass


@executes("PIPE_CONTROL")
def pipe_control(cs: Streamer, cmd: Record) -> None:
    if flag(cmd, "lri_post_sync_operation"):
        cs.registers.write(cmd.address, cmd.immediate_data & 0xFFFFFFFF)
    post_sync(cs, "PIPE_CONTROL", cmd)


@executes("MI_FLUSH_DW")
def flush_dw(cs: Streamer, cmd: Record) -> None:
    post_sync(cs, "MI_FLUSH_DW", cmd)


def post_sync(cs: Streamer, name: str, cmd: Record) -> None:
    """Eight bytes, whatever they are (ICL 969-977)."""
    operation = word(cs, name, cmd, "post_sync_operation")
    match operation:
        case "no write":
            return
        case "write immediate data":
            value = cmd.immediate_data
        case "write timestamp":
            value = cs.machine.clock()
        case "write ps depth count":
            value = depth_count(cs)
        case _:
            raise Unsupported(f"post_sync_operation {operation} is not yet simulated")
    if flag(cmd, "store_data_index"):
        raise Unsupported("store_data_index is not yet simulated")
    cs.write(cmd.address, value.to_bytes(8, "little"), word(cs, name, cmd, "destination_address_type") == "ggtt")


def depth_count(cs: Streamer) -> int:
    offset = cs.register(catalogue.layout(DEPTH_COUNT, cs.generation.number).offset or 0, relative=True)
    return cs.registers.read(offset) | cs.registers.read(offset + 4) << 32


@executes("MI_SEMAPHORE_WAIT")
def semaphore_wait(cs: Streamer, cmd: Record) -> None:
    """Nothing else runs meanwhile: a semaphore that does not let the streamer pass now never will."""
    if flag(cmd, "register_poll_mode"):
        raise Unsupported("register_poll_mode is not yet simulated")
    operation = word(cs, "MI_SEMAPHORE_WAIT", cmd, "compare_operation")
    if operation not in COMPARE:
        raise Unsupported(f"compare_operation {operation} is not known")
    found = int.from_bytes(cs.read(cmd.semaphore_address, 4, cmd.memory_type), "little")
    if not COMPARE[operation](found, cmd.semaphore_data_dword):
        raise SoftgenError(f"waits for ever: {cmd.semaphore_address:#x} holds {found:#x}, {operation} {cmd.semaphore_data_dword:#x}")
