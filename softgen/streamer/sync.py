"""Synchronisation: flushes with what they write afterwards, semaphores, interrupts, reports.

Reads   PIPE_CONTROL MI_FLUSH MI_FLUSH_DW MI_SEMAPHORE_WAIT MI_SEMAPHORE_SIGNAL MI_SEMAPHORE_MBOX MI_USER_INTERRUPT MI_REPORT_HEAD
        MI_REPORT_PERF_COUNT PERFORMANCE_COUNTER_REPORT PS_DEPTH_COUNT RING_SYNC RING_BUFFER_HEAD CTX_SR_CTL
Writes  post-sync values: an immediate, the depth count, a timestamp; reports; interrupts

Everything before a command is done when the next one is read, except what a pipeline collects until its last part has come, which
flushes complete (finish_pipelines). No cache holds anything back but the streamer's own read-ahead of commands, which a stall after draws
drops; other stalls and invalidations have nothing to do. What a command writes is in memory before its interrupt is raised (KBL 1997-1999).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import cache, lru_cache
from operator import eq, ge, gt, itemgetter, le, lt, ne
from typing import Any, NamedTuple

from softgen.bits import catalogue, describe
from softgen.bits.generation import SPEC
from softgen.bits.record import Record
from softgen.bits.units import DWORD_MASK
from softgen.command import Actor, ActorRow, Actors, FieldPlace, registers_in
from softgen.errors import Unsupported
from softgen.streamer import flush_effects
from softgen.streamer.execute import Streamer, flag
from softgen.streamer.interface import Parked, StreamerCommands, StreamerPreparers, Wait
from softgen.streamer.write_actors import FlushActor, WalkedEffects, flush_table, learn_flush

COMMANDS: StreamerCommands = {}
PREPARED: StreamerPreparers = {}
executes, prepares = registers_in(COMMANDS), registers_in(PREPARED)

COMPARE = {
    "sad_greater_than_sdd": gt, "sad_greater_than_or_equal_sdd": ge, "sad_less_than_sdd": lt,
    "sad_less_than_or_equal_sdd": le, "sad_equal_sdd": eq, "sad_not_equal_sdd": ne,
}  # fmt: skip
DATA = ("address", "immediate_data")  # fields of flushes
NO_FIELD = FieldPlace(0, 0)
WRITES_DATA = "write immediate data"  # an operation after flushes
# Operations after flushes that can be prepared: what they write, given the immediate data.
PREPARED_OPERATIONS: dict[str, Callable[[Any, int], int] | None] = {
    "no write": None, "write immediate data": lambda cs, data: data, "write timestamp": lambda cs, data: cs.device.clock(),
}  # fmt: skip
HEAD_STORAGE = 16  # byte of a status page where the ring's head goes (KBL 11505-11510, 18208)


def word(cs: Streamer, command: str, values: Record, name: str) -> str:
    """The name of an enumerated field's value."""
    return _word(command, cs.generation.number, name, getattr(values, name))


@lru_cache(1 << 10)
def _word(command: str, gen: float, name: str, value: int) -> str:
    return describe.values_of(catalogue.layout(command, gen).field(name).type, gen).get(value, f"value {value}")


# -- flushes -------------------------------------------------------------------------------------------------------


@executes("MI_FLUSH")
def flush(cs: Streamer, cmd: Record) -> None:
    refuse_reset(cmd)
    cs.finish_pipelines()
    cs.memory_changed()  # draws may have written commands
    learn_flush(cs, "MI_FLUSH", WalkedEffects(rereads=True))


class FlushPlan(NamedTuple):
    """What a flush does besides flushing."""

    resets: bool  # global_snapshot_count_reset
    writes_register: bool
    stalls: bool
    operation: str  # after it
    is_global: bool
    in_status_page: bool
    notifies: bool
    invalidates: tuple[str, ...]  # state commands that the next switch of contexts does not restore

    @property
    def walks(self) -> bool:
        """Whether a walk may do it: it writes nothing but data to memory of the context."""
        if self.resets or self.writes_register or self.notifies or self.invalidates:
            return False
        return self.operation == "no write" or self.operation == WRITES_DATA and not (self.is_global or self.in_status_page)


@cache
def _controls(kind: type[Record]) -> itemgetter[Any]:
    """The fields of a flush that say what it does: all but the address and the data, which differ from one to the next."""
    return itemgetter(*(number for number, name in enumerate(kind._fields) if name not in DATA))


def plan(cs: Streamer, name: str, cmd: Record) -> FlushPlan:
    return _plan(name, cs.generation.number, type(cmd), _controls(type(cmd))(cmd))


@lru_cache(1 << 10)
def _plan(name: str, gen: float, kind: type[Record], controls: tuple[int, ...]) -> FlushPlan:
    values = dict(zip(_controls(kind)(kind._fields), controls, strict=True))
    resets, writes, stalls = (bool(values.get(field)) for field in ("global_snapshot_count_reset", "lri_post_sync_operation",
                                                                    "command_streamer_stall_enable"))  # fmt: skip
    operation = _word(name, gen, "post_sync_operation", values["post_sync_operation"])
    is_global = _word(name, gen, "destination_address_type", values["destination_address_type"]) == "ggtt"
    invalidates = tuple(command for field, commands in context_pointers().items() if values.get(field) for command in commands)
    return FlushPlan(resets, writes, stalls, operation, is_global, bool(values.get("store_data_index")), bool(values.get("notify_enable")),
                     invalidates)  # fmt: skip


@cache
def context_pointers() -> dict[str, list[str]]:
    """Field of PIPE_CONTROL -> state that it marks as invalid."""
    return tomllib.loads((SPEC / "streamer" / "context_pointers.toml").read_text("utf-8"))


@executes("PIPE_CONTROL")
def pipe_control(cs: Streamer, cmd: Record) -> None:
    flush = plan(cs, "PIPE_CONTROL", cmd)
    if flush.resets:
        refuse_reset(cmd)
    if cs.traced and flush_effects.known(cs.rules):
        cs.trace("flushes", str(flush_effects.flush_effects(cmd, cs.rules)))
    cs.finish_pipelines()
    if flush.invalidates:
        cs.saved.invalidate(flush.invalidates)
    if flush.writes_register:
        cs.write_counts()
        cs.registers.write(cmd.address, cmd.immediate_data & DWORD_MASK)
    if flush.stalls:
        cs.note_work()
        if cs.saved.unflushed:
            cs.memory_changed()  # draws may have written commands
        cs.flushed()
    post_sync(cs, flush, cmd)
    if flush.walks:
        learn_flush(cs, "PIPE_CONTROL", WalkedEffects(flush.stalls, writes=flush.operation == WRITES_DATA))


def _actor_of(name: str, handler: Any) -> ActorRow:
    def find(cs: Any) -> Actor:
        found: Actor | None = cs.own_actors.get(name)
        if found is None:
            table = flush_table(name, cs.generation.number, cs.engine, cs.rules)
            found = cs.own_actors[name] = FlushActor(table, handler)
        return found

    return ActorRow(handler, find)


ACTORS: Actors = {"MI_FLUSH": _actor_of("MI_FLUSH", flush), "PIPE_CONTROL": _actor_of("PIPE_CONTROL", pipe_control)}


@prepares("PIPE_CONTROL")
def prepare_pipe_control(cs: Streamer, cmd: Record, place: Callable[[str], FieldPlace]) -> Callable[[Streamer, int], None] | None:
    """A flush that writes nothing, or eight bytes to memory: where, and which, may differ."""
    flush = plan(cs, "PIPE_CONTROL", cmd)
    if flush.resets or flush.writes_register or flush.in_status_page or flush.invalidates or flush.operation not in PREPARED_OPERATIONS:
        return None
    writes = PREPARED_OPERATIONS[flush.operation]
    (shift, mask), (data_shift, data_mask) = (place(name) for name in DATA) if writes else (NO_FIELD, NO_FIELD)
    stalls, notifies, is_global = flush.stalls, flush.notifies, flush.is_global

    def stall(cs: Streamer, batch: int) -> None:
        cs.flushed()

    def run(cs: Streamer, batch: int) -> None:
        if stalls:
            cs.flushed()
        if writes:
            cs.write(batch >> shift & mask, writes(cs, batch >> data_shift & data_mask).to_bytes(8, "little"), is_global)
        if notifies:
            cs.device.interrupt(cs.base, "notify")

    return run if writes or notifies or not stalls else stall


@executes("MI_FLUSH_DW")
def flush_dw(cs: Streamer, cmd: Record) -> None:
    cs.finish_pipelines()
    post_sync(cs, plan(cs, "MI_FLUSH_DW", cmd), cmd)


@executes("PIPELINE_SELECT")
def pipeline_select(cs: Streamer, cmd: Record) -> None:
    """Completes the work of the pipeline that was selected, then latches the new selection."""
    cs.finish_pipelines()
    if cmd.pipeline_selection and cs.position_only is not None and cs.position_only.in_batch:
        cs.warn("another pipeline than 3D is selected while the position-only streamer is in a batch (ICL 631-640)")
    cs.saved.latched.note(cs.command)


def refuse_reset(cmd: Record) -> None:
    if flag(cmd, "global_snapshot_count_reset"):
        raise Unsupported("global_snapshot_count_reset is not simulated: no product may use it (ICL 1126)")


def post_sync(cs: Streamer, flush: FlushPlan, cmd: Record) -> None:
    """Eight bytes, whatever they are (ICL 969-977); then the interrupt, if one is asked for."""
    match flush.operation:
        case "no write":
            value = None
        case "write immediate data":
            value = cmd.immediate_data
        case "write timestamp":
            value = cs.device.clock()
        case "write ps depth count":
            value = cs.get("PS_DEPTH_COUNT")
        case _:
            raise Unsupported(f"post_sync_operation {flush.operation} is not known")
    if value is not None:
        data = value.to_bytes(8, "little")
        if flush.in_status_page:
            cs.write_status(cmd.address & 0xFFF, data, per_process=not flush.is_global)
        else:
            cs.write(cmd.address, data, flush.is_global)
    if flush.notifies:
        cs.device.interrupt(cs.base, "notify")


@executes("MI_USER_INTERRUPT")
def user_interrupt(cs: Streamer, cmd: Record) -> None:
    """Parsing does not stop (KBL 2021-2025)."""
    cs.device.interrupt(cs.base, "user")


# -- semaphores ----------------------------------------------------------------------------------------------------


@executes("MI_SEMAPHORE_WAIT")
def semaphore_wait(cs: Streamer, cmd: Record) -> None:
    operation = word(cs, "MI_SEMAPHORE_WAIT", cmd, "compare_operation")
    if operation not in COMPARE:
        raise Unsupported(f"compare_operation {operation} is not known")
    if flag(cmd, "register_poll_mode"):
        found, where, at = cs.registers.read(cmd.semaphore_address), f"register {cmd.semaphore_address:#x}", None
    else:
        found, where = int.from_bytes(cs.read(cmd.semaphore_address, 4, cmd.memory_type), "little"), f"{cmd.semaphore_address:#x}"
        at = cmd.semaphore_address
    if not COMPARE[operation](found, cmd.semaphore_data_dword):
        if cs.watchdog is not None and cs.watchdog.since is not None and cs.parked != cs.command.address:
            cs.warn("the watchdog runs while a semaphore is waited for: software disables it before (ICL 257-260)")
        if cs.parked != cs.command.address and control_bit(cs, "inhibit_synchronous_context_switch"):
            cs.device.interrupt(cs.base, "semaphore")  # once; otherwise it is switched out (KBL 1976-1979)
        signal = word(cs, "MI_SEMAPHORE_WAIT", cmd, "wait_mode") == "signal mode"
        raise Parked(Wait(f"{where} holds {found:#x}, {operation} {cmd.semaphore_data_dword:#x}", signal, address=at))


def control_bit(cs: Streamer, name: str) -> bool:
    """A bit of the context's control register."""
    layout = catalogue.layout("CTX_SR_CTL", cs.generation.number)
    return bool(getattr(layout.raw([cs.get("CTX_SR_CTL")]), name))


@executes("MI_SEMAPHORE_SIGNAL")
def semaphore_signal(cs: Streamer, cmd: Record) -> None:
    """Makes a context that waits for a signal evaluate its semaphore again."""
    cs.device.signal(word(cs, "MI_SEMAPHORE_SIGNAL", cmd, "target_engine_select"), cmd.target_context_id)


# Which of RING_SYNC a mailbox semaphore means, by register_select: the same order on every engine (public Linux i915 intel_gpu_commands.h).
MAILBOX = {0: 0, 2: 1, 1: 2}


@executes("MI_SEMAPHORE_MBOX")
def semaphore_mbox(cs: Streamer, cmd: Record) -> None:
    """Writes a mailbox or memory, or waits until it holds more than the command (public Linux i915 intel_ringbuffer.c)."""
    in_register = word(cs, "MI_SEMAPHORE_MBOX", cmd, "compare_register") == "register"
    if in_register and cmd.register_select not in MAILBOX:
        raise Unsupported("general_register_select is not yet simulated")
    if cmd.update_semaphore:
        if in_register:
            cs.set("RING_SYNC", cmd.semaphore_data_dword, MAILBOX[cmd.register_select])
        else:
            cs.write(cmd.semaphore_address, cmd.semaphore_data_dword.to_bytes(4, "little"), cmd.use_global_gtt)
    if cmd.compare_semaphore:
        if in_register:
            found = cs.get("RING_SYNC", MAILBOX[cmd.register_select])
        else:
            found = int.from_bytes(cs.read(cmd.semaphore_address, 4, cmd.use_global_gtt), "little")
        if found <= cmd.semaphore_data_dword:
            at = None if in_register else cmd.semaphore_address
            raise Parked(Wait(f"the mailbox holds {found:#x}, not more than {cmd.semaphore_data_dword:#x}", address=at))


# -- reports -------------------------------------------------------------------------------------------------------


@executes("MI_REPORT_HEAD")
def report_head(cs: Streamer, cmd: Record) -> None:
    """The ring's head, to the context's status page, or to the engine's where there are no contexts."""
    head = cs.get("RING_BUFFER_HEAD").to_bytes(4, "little")
    cs.write_status(HEAD_STORAGE, head, per_process=cs.process_page is not None)


@executes("MI_REPORT_PERF_COUNT")
def report_perf_count(cs: Streamer, cmd: Record) -> None:
    """Context, time, and counters that are zero: none of the units that they would count is timed."""
    layout = catalogue.catalogue().get("PERFORMANCE_COUNTER_REPORT", cs.generation.number)
    if layout is None:
        raise Unsupported("the report's format on this generation is on no page")
    now = cs.device.clock() & DWORD_MASK
    report = layout.pack(report_id=cmd.report_id, timestamp=now, context_id=cs.context_id, gpu_ticks=now)
    cs.write(cmd.memory_address, b"".join(dword.to_bytes(4, "little") for dword in report), cmd.use_global_gtt)
