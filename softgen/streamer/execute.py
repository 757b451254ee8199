"""Execution: a ring or batch walked command by command, each carried out before the next is read.

Reads   MI_BATCH_BUFFER_START MI_BATCH_BUFFER_END MI_CONDITIONAL_BATCH_BUFFER_END
Writes  whatever the commands do; counts of commands and batches; where the engine is (where.py)

A command that acts has a function in a table handed in (`@executes("MI_STORE_DATA_IMM")` puts it there); a command that only says
something is latched under its name (state.py). Any other raises Unsupported with its name and place. Errors say where they happened.

A command that cannot complete now (a semaphore) raises Parked: `run` answers False, and called again tries that command again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from softgen.bits import registers
from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Generation
from softgen.bits.record import Record
from softgen.command import CommandStreamer, Counters, StateT
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.memory.space import Space
from softgen.streamer import privilege, rules
from softgen.streamer.context import Context
from softgen.streamer.parser import Command, Parser, Place, Remark
from softgen.streamer.state import only_says
from softgen.streamer.where import Whereabouts
from softgen.streamer.window import Window
from softgen.threads.dispatch import Dispatcher
from softgen.threads.reference import ReferenceDispatcher

Execute = Callable[["Streamer", Record], None]
Commands = dict[str, Execute]


def into(table: Commands) -> Callable[..., Callable[[Execute], Execute]]:
    """A decorator that puts a function into a table under the names of the commands it executes."""

    def executes(*names: str) -> Callable[[Execute], Execute]:
        def keep(function: Execute) -> Execute:
            table.update(dict.fromkeys(names, function))
            return function

        return keep

    return executes


class RegisterFile(Protocol):
    def read(self, offset: int) -> int: ...
    def write(self, offset: int, value: int) -> None: ...
    def raise_error(self, offset: int, value: int) -> None: ...


@dataclass
class Held:
    """What a hardware context keeps from one submission to the next."""

    context: Context = field(default_factory=Context)
    states: dict[type, object] = field(default_factory=dict)  # of pipelines, by class
    unflushed: bool = False  # was work started that no stalling flush has followed?
    registers: dict[int, int] = field(default_factory=dict)  # of contexts that MI_SET_CONTEXT switches

    def renew(self) -> None:
        """As if nothing had ever been said."""
        self.context, self.states, self.registers = Context(), {}, {}


@dataclass(frozen=True)
class Machine:
    """What a streamer is connected to."""

    generation: Generation
    commands: Mapping[str, Execute]
    registers: RegisterFile
    clock: Callable[[], int]  # ticks of TIMESTAMP
    counters: Counters
    spent: Callable[[], bool] = lambda: False  # is time up?
    interrupt: Callable[[int, str], None] = lambda base, cause: None  # the engine at `base` raises one
    signal: Callable[[str, int], None] = lambda engine, context: None  # MI_SEMAPHORE_SIGNAL
    update_table: Callable[[int, list[int]], None] | None = None  # MI_UPDATE_GTT: address of the first page, entries
    remark: Callable[[str], None] = lambda text: None  # a rule of the manual that software broke
    tick: Callable[[int], None] = lambda base: None  # the engine at `base` begins a command
    excuse: Callable[[SoftgenError], bool] = lambda error: False  # go on behind a command that failed?
    held: Callable[[int, str], Held] | None = None  # MI_SET_CONTEXT: what the context at an address keeps
    slices: int = 1
    dispatcher: Dispatcher = field(default_factory=ReferenceDispatcher)  # runs thread dispatches
    trace: Callable[[str, str], None] | None = None  # is told what happens: topic, and a line of text
    finish: tuple[Callable[[CommandStreamer], None], ...] = ()  # of pipelines


@dataclass(frozen=True)
class Wait:
    """What a parked command waits for."""

    text: str
    on_signal: bool = False  # only looked at again when signalled
    command: Command | None = None


class Parked(Exception):
    """A command cannot complete now."""

    def __init__(self, wait: Wait) -> None:
        super().__init__(wait.text)
        self.wait = wait


class Streamer(Parser):
    """An engine's command streamer at work on one submission.

    `base` is where the engine's registers start, `process_page` the status page of the context, `context_id` its number.
    """

    def __init__(self, machine: Machine, engine: str, space: Space, global_space: Space | None, held: Held, base: int | None = None,
                 process_page: int | None = None, context_id: int = 0) -> None:  # fmt: skip
        super().__init__(machine.generation, engine, space, global_space)
        self.machine, self.held, self.context = machine, held, held.context
        self.registers, self.counters = machine.registers, machine.counters
        bases = registers.bases(self.generation.number)
        self.base = bases.get(engine, (0,))[0] if base is None else base
        self.process_page, self.context_id = process_page, context_id
        self.written = False  # memory has changed since commands were last read ahead
        self.skipping = False  # MI_SET_PREDICATE: commands are read as MI_NOOP
        self.arbitration = True  # MI_ARB_ON_OFF
        self.rules: str = machine.generation.rules
        self.place: Place | None = None
        self.waiting: Wait | None = None
        self.parked: int | None = None  # where it last had to wait
        self.work = 0  # draws and dispatches that have been seen
        self.command: Command  # being executed
        self.whereabouts = Whereabouts(self)

    # -- walking ---------------------------------------------------------------------------------------------------

    def start_batch(self, address: int) -> None:
        self.counters.batches += 1
        address &= (1 << self.space.bits) - 1
        self.place = Place(Window(self.space), address, address, 1)

    def start_ring(self, start: int, head: int, tail: int, size: int) -> None:
        self.place = Place(Window(self.global_space), start, start + head, 0, start + tail, (start, start + size))

    def run_batch(self, address: int) -> None:
        self.start_batch(address)
        self._run_out()

    def run_ring(self, start: int, head: int, tail: int, size: int) -> None:
        self.start_ring(start, head, tail, size)
        self._run_out()

    def _run_out(self) -> None:
        if not self.run():
            raise self.stuck()

    def stuck(self) -> SoftgenError:
        """The error of a wait that nobody is left to end."""
        assert self.waiting is not None and self.waiting.command is not None
        return self._placed(SoftgenError(f"waits for ever: {self.waiting.text}"), self.waiting.command)

    def run(self) -> bool:
        """On from where it is, to the end (True) or to a command that has to wait (False)."""
        self.waiting = None
        self.written = True  # others ran meanwhile
        self.work = self.counters.draws + self.counters.dispatches
        while (place := self.place) is not None and not place.done():
            command, before = self._fetch(place), place.address
            place.advance(len(command.dwords))
            self.counters.commands += 1
            try:
                self._step(place, command)
            except Parked as parked:
                place.address = before
                self.counters.commands -= 1
                self.waiting, self.parked = Wait(parked.wait.text, parked.wait.on_signal, command), before
                return False
            self.parked = None
            self.whereabouts.after(place)
        self._settle()
        self._note_work()
        return True

    def _settle(self) -> None:
        """Completes work that pipelines have collected, but not started."""
        for finish in self.machine.finish if "command" in self.__dict__ else ():
            self._execute_function(partial(_finish, finish), self.command)

    def _step(self, place: Place, command: Command) -> None:
        self.whereabouts.at(command)
        match command.name:
            case "MI_BATCH_BUFFER_END":
                self.place = self._return()
            case "MI_BATCH_BUFFER_START":
                self.place = self._call(place, command)
            case _:
                self._execute(command)

    def _fetch(self, place: Place) -> Command:
        if self.machine.spent():
            raise SoftgenError(f"time is up at {place.address:#x} (batch {place.start:#x})")
        if self.written:
            for one in (place, *self.stack):
                one.window.forget()
            self.written = False
        command = self._command(place)
        if isinstance(command, Remark):
            raise GpuFault(place.address, "command fetch", place.window.space.name, why=command.text)
        if command.layout is None:
            self.whereabouts.wrong(command)
            raise DecodeError(f"{command.dwords[0]:#010x} at {place.address:#x} (batch {place.start:#x}, {self.generation}) is no command")
        if command.problems and len(command.dwords) < command.layout.length(command.dwords[0]):
            self.whereabouts.wrong(command)
            raise self._placed(DecodeError("; ".join(command.problems)), command)
        return command

    def _call(self, place: Place, command: Command) -> Place:
        """Where MI_BATCH_BUFFER_START leads."""
        start = command.record
        if flag(start, "predication_enable") and not self.get("MI_PREDICATE_RESULT_1") & 1:
            return place
        target = start.batch_buffer_start_address
        if flag(start, "add_offset_enable"):
            target += self.get("BB_OFFSET")
        target &= (1 << self.space.bits) - 1
        level = self._enter(place, start)
        self.counters.batches += 1
        privileged = place.privileged and not privilege.gives_up(start)
        called = Place(Window(self._space_of(start, target)), target, target, level, privileged=privileged)
        self.whereabouts.called(called)
        return called

    def ring_place(self) -> Place | None:
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
        name = command.layout.name
        if self.skipping and name != "MI_SET_PREDICATE":
            return
        self.command = command
        if self.machine.trace is not None:
            self.machine.trace("commands", f"{self.engine} {command.address:#x} {name}")
        self._note_work()
        if rules.some(name, self.rules):
            self._remark_rules(name, command)
        if not self.place.privileged and privilege.denies(self, command):
            self.whereabouts.violation(command)
            return
        self._execute_function(self.machine.commands.get(name), command)

    def _remark_rules(self, name: str, command: Command) -> None:
        pipeline, unflushed = self.context.pipeline(), self.held.unflushed
        for broken in rules.broken(name, command.record, self.rules, self.engine, pipeline, unflushed):
            self.machine.remark(f"{name} at {command.address:#x} (batch {command.batch:#x}, {self.generation}): {broken}")

    def _execute_function(self, function: Execute | None, command: Command) -> None:
        try:
            if function is not None:
                function(self, command.record)
            elif only_says(command.name or "", command.record):
                self.context.note(command)
            else:
                raise Unsupported("not yet simulated")
        except SoftgenError as error:
            placed = self._placed(error, command)
            if not self.machine.excuse(placed):
                raise placed from error

    def _note_work(self) -> None:
        """Work that was started since this was last asked has not been flushed."""
        work = self.counters.draws + self.counters.dispatches
        if work != self.work:
            self.work, self.held.unflushed = work, True

    def _placed(self, error: SoftgenError, command: Command) -> SoftgenError:
        where = f"{command.name} at {command.address:#x} (batch {command.batch:#x}, {self.generation})"
        if isinstance(error, GpuFault):
            by = f"{where}, {error.by}" if error.by else where
            return GpuFault(error.address, error.access, error.space, by, error.why)
        return type(error)(f"{where}: {error}")

    # -- the CommandStreamer protocol --------------------------------------------------------------------------------

    @property
    def dispatcher(self) -> Dispatcher:
        return self.machine.dispatcher

    @property
    def bases(self) -> Mapping[str, int]:
        return self.context.bases

    def state(self, kind: type[StateT]) -> StateT:
        found = self.held.states.get(kind)
        if not isinstance(found, kind):
            found = self.held.states[kind] = kind()
        return found

    def warn(self, text: str) -> None:
        self.machine.remark(f"{self.command.name} at {self.command.address:#x} (batch {self.command.batch:#x}, {self.generation}): {text}")

    def trace(self, topic: str, text: str) -> None:
        if self.machine.trace is not None:
            self.machine.trace(topic, text)

    def timed_out(self) -> bool:
        return self.machine.spent()

    def memory_changed(self) -> None:
        self.written = True

    # -- for the functions that execute commands -----------------------------------------------------------------------

    def memory(self, is_global: object = False) -> Space:
        """The context's space; the global one where a command asks for it, which only a privileged batch may."""
        return self.global_space if is_global and (self.place is None or self.place.privileged) else self.space

    def address(self, canonical: int) -> int:
        return canonical & (1 << self.space.bits) - 1

    def read(self, address: int, size: int, is_global: object = False) -> bytes:
        return self.memory(is_global).read(self.address(address), size)

    def write(self, address: int, data: bytes, is_global: object = False) -> None:
        """Memory written by a command; what was read ahead is read again."""
        self.memory(is_global).write(self.address(address), data)
        self.written = True

    def write_status(self, offset: int, data: bytes, per_process: object = False) -> None:
        """Into the hardware status page: the engine's, or the context's own. Both stand in the global space."""
        page = self.process_page if per_process else self.whereabouts.status_page()
        if not page:
            raise Unsupported(f"no {'per-process ' if per_process else ''}hardware status page is set up")
        self.global_space.write(page + offset, data)
        self.written = True

    def register(self, offset: int, relative: object = False) -> int:
        """A register's offset, from where the engine's registers start if the command says so."""
        return offset + self.base if relative else offset

    def own(self, name: str, number: int = 0) -> int:
        """Where one of the engine's registers is; `number` counts in a row of them."""
        layout = catalogue().layout(name, self.generation.number)
        return (layout.offset or 0) + 4 * layout.dwords * number + (self.base if layout.relative else 0)

    def get(self, name: str, number: int = 0) -> int:
        """What a register holds, all its dwords."""
        offset, dwords = self.own(name, number), catalogue().layout(name, self.generation.number).dwords
        return sum(self.registers.read(offset + 4 * i) << 32 * i for i in range(dwords))

    def set(self, name: str, value: int, number: int = 0) -> None:
        offset, dwords = self.own(name, number), catalogue().layout(name, self.generation.number).dwords
        for i in range(dwords):
            self.registers.write(offset + 4 * i, value >> 32 * i & 0xFFFFFFFF)

    def predicate(self) -> bool:
        """What MI_PREDICATE decided last: draws, walkers and stores with their predicate enabled happen only then."""
        return bool(self.get("MI_PREDICATE_RESULT") & 1)


def _finish(finish: Callable[[CommandStreamer], None], cs: Streamer, cmd: Record) -> None:
    finish(cs)


def flag(values: Record, name: str) -> bool:
    """A bit that some generations do not have: off there."""
    return name in values._fields and bool(getattr(values, name))
