"""Execution: a ring or batch walked command by command, each carried out before the next is read.

Reads   MI_BATCH_BUFFER_START MI_BATCH_BUFFER_END
Writes  whatever the commands do; counts of commands and batches

A command that acts has a function in a table handed in (`@executes("MI_STORE_DATA_IMM")` puts it there); a command that only says
something is latched under its name (state.py). Any other raises Unsupported with its name and place. Errors say where they happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from softgen.bits import registers
from softgen.bits.generation import Generation
from softgen.bits.record import Record
from softgen.errors import DecodeError, GpuFault, SoftgenError, Unsupported
from softgen.gpgpu.walker import FrontEnd
from softgen.memory.space import Space
from softgen.streamer.context import Context
from softgen.streamer.parser import Command, Parser, Place, Remark
from softgen.streamer.state import only_says
from softgen.streamer.window import Window

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


@dataclass
class Counters:
    """What has been done so far."""

    batches: int = 0
    commands: int = 0
    draws: int = 0
    dispatches: int = 0
    threads: int = 0
    instructions: int = 0


@dataclass
class Held:
    """What a hardware context keeps from one submission to the next."""

    context: Context = field(default_factory=Context)
    front: FrontEnd = field(default_factory=FrontEnd)


@dataclass(frozen=True)
class Machine:
    """What a streamer is connected to."""

    generation: Generation
    commands: Mapping[str, Execute]
    registers: RegisterFile
    clock: Callable[[], int]  # ticks of TIMESTAMP
    counters: Counters
    spent: Callable[[], bool] = lambda: False  # is time up?


class Streamer(Parser):
    """An engine's command streamer at work on one submission."""

    def __init__(self, machine: Machine, engine: str, space: Space, global_space: Space | None, held: Held) -> None:
        super().__init__(machine.generation, engine, space, global_space)
        self.machine, self.held, self.context = machine, held, held.context
        self.registers, self.counters = machine.registers, machine.counters
        self.written = False  # memory has changed since commands were last read ahead
        self.command: Command  # being executed

    # -- walking ---------------------------------------------------------------------------------------------------

    def run_batch(self, address: int) -> None:
        self.counters.batches += 1
        address &= (1 << self.space.bits) - 1
        self._run(Place(Window(self.space), address, address, 1))

    def run_ring(self, start: int, head: int, tail: int, size: int) -> None:
        self._run(Place(Window(self.global_space), start, start + head, 0, start + tail, (start, start + size)))

    def _run(self, place: Place | None) -> None:
        while place is not None and not place.done():
            command = self._fetch(place)
            place.advance(len(command.dwords))
            self.counters.commands += 1
            match command.name:
                case "MI_BATCH_BUFFER_END":
                    place = self._return()
                case "MI_BATCH_BUFFER_START":
                    place = self._call(place, command)
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
            raise DecodeError(f"{command.dwords[0]:#010x} at {place.address:#x} (batch {place.start:#x}, {self.generation}) is no command")
        if len(command.dwords) < command.layout.length(command.dwords[0]):
            raise self._placed(DecodeError("; ".join(command.problems)), command)
        return command

    def _call(self, place: Place, command: Command) -> Place:
        """Where MI_BATCH_BUFFER_START leads."""
        start = command.record
        for name in ("predication_enable", "add_offset_enable"):
            if name in start._fields and getattr(start, name):
                raise self._placed(Unsupported(f"{name} is not yet simulated"), command)
        target = start.batch_buffer_start_address & (1 << self.space.bits) - 1
        level = self._enter(place, start)
        self.counters.batches += 1
        return Place(Window(self._space_of(start, target)), target, target, level)

    def _execute(self, command: Command) -> None:
        assert command.name is not None
        self.command = command
        function = self.machine.commands.get(command.name)
        try:
            if function is not None:
                function(self, command.record)
            elif only_says(command.name, command.record):
                self.context.note(command)
            else:
                raise Unsupported("not yet simulated")
        except SoftgenError as error:
            raise self._placed(error, command) from error

    def _placed(self, error: SoftgenError, command: Command) -> SoftgenError:
        where = f"{command.name} at {command.address:#x} (batch {command.batch:#x}, {self.generation})"
        if isinstance(error, GpuFault):
            by = f"{where}, {error.by}" if error.by else where
            return GpuFault(error.address, error.access, error.space, by, error.why)
        return type(error)(f"{where}: {error}")

    # -- for the functions that execute commands -----------------------------------------------------------------------

    def memory(self, is_global: object = False) -> Space:
        return self.global_space if is_global else self.space

    def address(self, canonical: int) -> int:
        return canonical & (1 << self.space.bits) - 1

    def read(self, address: int, size: int, is_global: object = False) -> bytes:
        return self.memory(is_global).read(self.address(address), size)

    def write(self, address: int, data: bytes, is_global: object = False) -> None:
        """Memory written by a command; what was read ahead is read again."""
        self.memory(is_global).write(self.address(address), data)
        self.written = True

    def register(self, offset: int, relative: object = False) -> int:
        """A register's offset, from where the engine's registers start if the command says so."""
        return offset + registers.bases(self.generation.number)[self.engine][0] if relative else offset
