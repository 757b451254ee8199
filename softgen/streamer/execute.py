"""Execution: a ring or batch walked command by command, each carried out before the next is read.

Reads   MI_BATCH_BUFFER_START MI_BATCH_BUFFER_END MI_CONDITIONAL_BATCH_BUFFER_END
Writes  whatever the commands do; counts of commands and batches; where the engine is (engine_status.py)

A command with a handler in the device's table is executed by it; one that only sets state, as its page says, is latched (latch.py),
many at once in compiled code where nothing else has to be done for each. Any other raises Unsupported with its name and place.

A command that cannot complete now (a semaphore) raises Parked: `run` answers False, and when called again tries that command again.
"""

from __future__ import annotations

from dataclasses import replace

from softgen.bits import registers as places
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.command import Actor, Counters
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.memory.space import Space
from softgen.position import Position
from softgen.streamer import privilege, rules
from softgen.streamer.command_kinds import only_sets_state, simple_commands
from softgen.streamer.context import SavedContext
from softgen.streamer.engine_registers import EngineRegisters
from softgen.streamer.engine_status import EngineStatusRegisters
from softgen.streamer.handler_services import HandlerServices
from softgen.streamer.interface import DeviceInterface, Parked, PositionOnly, RegisterFile, SubmissionHooks, Wait
from softgen.streamer.parser import Command, CommandParser, FetchPointer, Remark, record
from softgen.streamer.prepared import FoundBatch, PreparedBatches, PreparedStep
from softgen.streamer.walk import BatchWalk
from softgen.streamer.window import Window

DRAW = "3DPRIMITIVE"  # its counts are added to those of the draw before
POLL_COMMANDS = 16  # commands that do not change memory between two polls of the time limit


class Streamer(CommandParser, EngineRegisters, HandlerServices):
    """An engine's command streamer at work on one submission; the `CommandStreamer` that pipelines' handlers receive.

    `base` is where the engine's registers start, `process_page` the status page of the context, `context_id` its number; `registers` is the
    register file as the context sees it; `privileged`: whether a batch that it is started with may do what only the kernel driver may.
    """

    def __init__(self, device: DeviceInterface, engine: str, space: Space, global_space: Space | None, saved: SavedContext,
                 counters: Counters, hooks: SubmissionHooks, base: int | None = None, process_page: int | None = None,
                 context_id: int = 0, registers: RegisterFile | None = None, privileged: bool = True) -> None:  # fmt: skip
        super().__init__(device.generation, engine, space, global_space)
        self.device, self.saved, self.counters, self.hooks = device, saved, counters, hooks
        self.submitted = saved  # the context that was submitted; `saved` changes with MI_SET_CONTEXT
        bases = places.bases(self.generation.number)
        EngineRegisters.__init__(self, registers or device.registers, bases.get(engine, (0,))[0] if base is None else base)
        self.process_page, self.context_id = process_page, context_id
        self.skipping = False  # MI_SET_PREDICATE: commands are read as MI_NOOP
        self.arbitration = True  # MI_ARB_ON_OFF
        self.rules: str = device.generation.rules
        self.place: FetchPointer | None = None
        self._first = FetchPointer(Window(space), 0, 0, 1, privileged=privileged)  # the batch that a submission begins with
        self.waiting: Wait | None = None
        self.parked: int | None = None  # where it last had to wait
        self._executing: Command | PreparedStep | tuple[int, int, int, Layout, list[int]] | None = None
        self.status = EngineStatusRegisters(device.registers, self.generation.number, engine, self.base, device.interrupt)
        self.watchdog = device.watchdogs.get(self.base)
        self.simple_commands = simple_commands(device.simple, device.generation, engine, device.commands)
        self._prepared, self._found = PreparedBatches(), None
        self.walk = BatchWalk(device.actors, device.commands, device.generation)
        self.own_actors: dict[str, Actor] = {}  # of commands that no pipeline owns
        self._read_ahead_is_stale = False  # memory has changed since commands were last read ahead
        self.position_only: PositionOnly | None = None  # at work on the same context
        self._posh_enabled = False  # by the last batch start in the ring
        self.earlier_draws = 0
        self._before = counters.commands  # commands of earlier submissions,
        self._before_prepared = 0  # and those before a batch that was prepared
        self._work = 0  # draws and dispatches that have been counted
        self._earlier = 0  # instructions of earlier submissions, less those that the counters started with

    # -- walking ---------------------------------------------------------------------------------------------------

    def start_batch(self, address: int) -> None:
        self.counters.batches += 1
        place = self.place = self._first
        place.start = place.address = address & self.address_mask
        if place.window.end:
            place.window.forget()

    def start_again(self, address: int) -> None:
        """Another batch of the same context, after the one before has ended: each begins with what does not outlive a submission."""
        self.saved, self.earlier_draws, self._before = self.submitted, self.counters.draws, self.counters.commands
        self.skipping, self.arbitration, self.parked, self._executing = False, True, None, None
        self.start_batch(address)

    def start_ring(self, start: int, head: int, tail: int, size: int) -> None:
        self.saved = self.submitted.loaded or self.submitted
        self.place = FetchPointer(Window(self.global_space), start, start + head, 0, start + tail, (start, start + size))

    def run_to_end(self) -> None:
        if not self.run():
            raise self.stuck()

    def stuck(self) -> SoftgenError:
        """The error of a wait that nothing can end."""
        assert self.waiting is not None and self.waiting.command is not None
        return self._placed(SoftgenError(f"waits for ever: {self.waiting.text}"), self.waiting.command)

    def run(self) -> bool:
        """Execute from the current place to the end (True) or to a command that has to wait (False)."""
        self._earlier = self.submitted.instructions - self.counters.instructions
        try:
            return self._run()
        finally:
            self.note_work()
            self.submitted.instructions = self._earlier + self.counters.instructions
            if self.counted_names:
                self.write_counts()

    @property
    def elapsed(self) -> int:
        return self._earlier + self.counters.instructions

    def _run(self) -> bool:
        self.waiting = None
        self._work = self.counters.draws + self.counters.dispatches
        fresh = self._fresh_batch()
        if fresh is not None and (found := self._prepared.find(self, fresh.start)) is not None:
            self._run_prepared(fresh, found)
            fresh = None
            if self.place is None:
                return True
        timed_out, batches = self.hooks.timed_out, self.counters.batches
        self.memory_changed()  # others ran meanwhile
        while (place := self.place) is not None and (place.end is None or place.address != place.end):
            if timed_out():
                raise self._time_is_up(place)
            if self._read_ahead_is_stale:
                self._read_again(place)
            header = place.header()
            if header is not None and self.walk.may(self, header):
                if self._walk_ahead(place):
                    continue
                header = place.header()
            simple = header is not None and self.simple_commands[header] is not None
            try:
                if not (simple and self._run_simple(place)):
                    command = self._fetch(place, header)
                    place.advance(len(command.dwords))
                    self.counters.commands += 1
                    self._step(place, command)
            except Parked as parked:
                assert self._current is not None
                place.address = self.parked = self._current.address
                self.counters.commands -= 1
                self.waiting = replace(parked.wait, command=self._current)
                return False
            self.parked = None
            if place.wrap is not None or self.stack:
                self.status.ring_head(self.ring_place() if place.level else place)
        self.finish_pipelines()
        if fresh is not None and batches == self.counters.batches:  # one that leads to others cannot be prepared
            self._prepared.learn(self, fresh.start)
        return True

    def _time_is_up(self, place: FetchPointer) -> SoftgenError:
        error = SoftgenError(f"time is up at {place.address:#x} (batch {place.start:#x})")
        error.position = Position(None, self.command_number + 1)  # the command that was next
        return error

    def _fresh_batch(self) -> FetchPointer | None:
        """The batch that a submission begins with, or goes on in, before its first command; None where each command has to be seen, or a
        pipeline has collected work, which prepared commands do not expect."""
        place, watchdog = self.place, self.watchdog
        if place is None or place.level != 1 or place.address != place.start or self.stack or self.saved.unfinished:
            return None
        return place if self.device.trace is None and (watchdog is None or watchdog.since is None) else None

    def _run_prepared(self, place: FetchPointer, prepared: FoundBatch) -> None:
        """Execute a batch that was prepared: to its end, or to a command that is another one now. After a command that may have changed
        memory, and may have taken long, the rest of the batch is compared and the time limit polled."""
        batch, start, view, data, bits = prepared
        counters, before, last = self.counters, self.counters.commands, batch.last
        step, at = last, last.offset
        self._found, self._read_ahead_is_stale, self._before_prepared = prepared, False, before
        try:
            for step, run in batch.steps:
                if self._read_ahead_is_stale:
                    at, counters.commands = step.offset, before + step.number
                    if view[at:] != data[at:] or self.hooks.timed_out():
                        place.address, (step, _) = start + at, batch.steps[step.number - 1]  # the last one that was executed
                        return
                    self._read_ahead_is_stale = False
                self._executing = step
                try:
                    run(self, bits)
                except SoftgenError as error:
                    self._failed(error)
            at = last.offset
            if self._read_ahead_is_stale and view[at:] != data[at:]:
                place.address = start + at
                return
            step, self.place = last, None
            self.hooks.completed()
        finally:
            counters.commands = before + step.number + 1
            self.status.at(start + step.offset, step.header)

    def begin_special(self, step: PreparedStep) -> None:
        """What some commands need before they are executed."""
        if step.ruled:
            self._warn_of_rules(step.layout.name, self.command)
        if step.reads_registers:
            assert self._found is not None
            self.status.at(self._found.start + step.offset, step.header)

    def _run_simple(self, place: FetchPointer) -> bool:
        """Execute the commands of a batch that come next, as long as they need only a handler, and rules to be checked; whether any did."""
        if place.wrap is not None or self.device.trace is not None:
            return False
        window, status, counters, watchdog, simple_commands = place.window, self.status, self.counters, self.watchdog, self.simple_commands
        wrap, start, level, done, poll_at = (1 << window.space.bits) - 1, place.start, place.level, 0, POLL_COMMANDS
        try:
            while self.place is place and not self.skipping and (watchdog is None or watchdog.since is None):
                if self._read_ahead_is_stale:
                    self._read_again(place)
                    poll_at = done  # the command before may have taken long
                address = place.address
                at, data = address - window.start >> 2, window.data
                if not 0 <= at < len(data):
                    if window.first(address) is None:
                        break
                    at, data = address - window.start >> 2, window.data
                simple = simple_commands[data[at]]
                if simple is None:
                    break
                layout, length, ruled, handler, reads_registers, guarded = simple
                if done and layout.name in self.walk.acting:
                    break  # a walk may execute it
                dwords = data[at : at + length].tolist()
                if len(dwords) < length:
                    dwords = window.dwords(address, length)
                    if len(dwords) < length:
                        break
                if done and done >= poll_at:
                    if self.hooks.timed_out():
                        break
                    poll_at = done + POLL_COMMANDS
                place.address = address + 4 * length & wrap
                counters.commands += 1
                status.address, status.header = address, dwords[0]
                self._executing = start, address, level, layout, dwords
                if ruled:
                    self._warn_of_rules(layout.name, self.command)
                if reads_registers:
                    status.show()
                    self.write_counts()
                values = record(layout, dwords)
                try:
                    if not guarded or place.privileged or not privilege.refuses(self, layout.name, values):
                        handler(self, values)
                except SoftgenError as error:
                    self._failed(error)
                self.parked, done = None, done + 1
                if guarded and self.stack:
                    break  # it may have loaded the ring's head, which moves on
        finally:
            status.show()
        return bool(done)

    def _step(self, place: FetchPointer, command: Command) -> None:
        self._poll_watchdog()
        self.status.at(command.address, command.dwords[0])
        match command.name:
            case "MI_BATCH_BUFFER_END":
                if self.watchdog is not None and self.watchdog.since is not None:
                    self._executing = command
                    self.warn("the watchdog runs at the end of a batch: it is disabled where it was enabled (ICL 257-260)")
                self.place = self._return()
            case "MI_BATCH_BUFFER_START":
                self.place = self._call(place, command)
                self._run_called()
            case _:
                self._execute(command)

    def _run_called(self) -> None:
        """Execute the batch that another has led to, if it was prepared: drivers set state in one batch, which goes on in the next."""
        called = None if self.skipping else self._fresh_batch()
        if called is not None and (found := self._prepared.find(self, called.start)) is not None:
            if self.counted_names:
                self.write_counts()
            self._run_prepared(called, found)

    def _read_again(self, place: FetchPointer) -> None:
        """Memory has changed under what was read ahead."""
        for pointer in (place, *self.stack):
            pointer.window.forget()
        self._read_ahead_is_stale = False

    def _walk_ahead(self, place: FetchPointer) -> bool:
        """Executes the commands that come next in compiled code, where nothing has to be done for each in Python; whether more may
        follow."""
        watched = self.watchdog is not None and self.watchdog.since is not None
        if place.wrap is not None or place.end is not None or self.skipping or self.device.trace is not None or watched:
            return False
        return self.walk.run(self, place)

    def _fetch(self, place: FetchPointer, header: int | None) -> Command:
        command = self._command(place, header)
        if isinstance(command, Remark):
            raise GpuFault(place.address, "command fetch", place.window.space.name, why=command.text)
        if command.layout is None:
            self._instruction_error(command)
            raise DecodeError(f"{command.dwords[0]:#010x} at {place.address:#x} (batch {place.start:#x}, {self.generation}) is no command")
        if command.problems and len(command.dwords) < command.layout.length(command.dwords[0]):
            self._instruction_error(command)
            raise self._placed(DecodeError("; ".join(command.problems)), command)
        return command

    def _poll_watchdog(self) -> None:
        if self.watchdog is not None:
            self.watchdog.poll()

    def _instruction_error(self, command: Command) -> None:
        self._poll_watchdog()
        self.status.instruction_error(command.address, command.dwords[0])

    def _call(self, place: FetchPointer, command: Command) -> FetchPointer:
        """Where MI_BATCH_BUFFER_START leads."""
        start = command.record
        if self._leaves_out(place, command):
            return place
        if flag(start, "predication_enable") and not self.get("MI_PREDICATE_RESULT_1") & 1:
            return place
        target = start.batch_buffer_start_address
        if flag(start, "add_offset_enable"):
            target += self.get("BB_OFFSET")
        target &= (1 << self.space.bits) - 1
        level = self._enter(place, start)
        self.counters.batches += 1
        privileged = place.privileged and not privilege.gives_up(start)
        called = FetchPointer(Window(self._space_of(start, target)), target, target, level, privileged=privileged)
        self.status.batch_entered(called)
        return called

    def _leaves_out(self, place: FetchPointer, command: Command) -> bool:
        """Whether a batch start is read as MI_NOOP: batches with POSH Start are the position-only streamer's (ICL 470-471). The start in
        the ring must have said that there are some (ICL 856-861)."""
        starts = flag(command.record, "posh_start")
        if place.level == 0:
            self._posh_enabled = starts or flag(command.record, "posh_enable")
        elif starts and self.stack and self.stack[0].wrap is not None and not self._posh_enabled:
            self._executing = command
            self.warn("posh_start, and the batch start in the ring has no posh_enable (ICL 856-861)")
        return starts

    def ring_place(self) -> FetchPointer | None:
        """Where the ring is, whatever batch it has called."""
        ring = self.stack[0] if self.stack else self.place
        return ring if ring is not None and ring.wrap is not None else None

    def leave(self) -> None:
        """MI_CONDITIONAL_BATCH_BUFFER_END that ends: the batch and the ones that called it."""
        self.place = self._return()
        while self.place is not None and self.place.level:
            self.place = self._return()

    def _execute(self, command: Command) -> None:
        assert command.layout is not None and self.place is not None
        if self.skipping and command.name != "MI_SET_PREDICATE":
            return
        self._executing, name = command, command.layout.name
        if self.counted_names and name != DRAW:
            self.write_counts()
        if self.device.trace is not None:
            self.device.trace("commands", f"{self.engine} {command.address:#x} {name}")
        if rules.some(name, self.rules):
            self._warn_of_rules(name, command)
        if not self.place.privileged and privilege.matters(name) and privilege.refuses(self, name, command.record):
            return
        try:
            self._carry_out(name, command)
        except SoftgenError as error:
            self._failed(error)

    def _carry_out(self, name: str, command: Command) -> None:
        handler = self.device.commands.get(name)
        if handler is not None:
            handler(self, command.record)
        elif only_sets_state(command):
            self.saved.latched.note(command)
        else:
            raise Unsupported("not yet simulated")


def flag(values: Record, name: str) -> bool:
    """A bit that some generations do not have: off there."""
    return name in values._fields and bool(getattr(values, name))
