"""A GPU: work in, memory changed. The only place where command streamers are built, for the driver, traces and TBX alike.

    gpu = GpuDevice(device("skl"))
    gpu.execute(work)              # raises GpuFault, Unsupported or DecodeError with the place
    gpu.begin(work).run()          # the same in steps: execution.py

A hardware context keeps its state and its registers on each engine from one submission to the next. With memory behind page tables a GPU
is also driven as drivers do it, through its registers:

    gpu = GpuDevice(device("skl"), memory=DeviceMemory(device("skl").generation))
    gpu.write_register(0x2230, …)      # four writes submit an execlist; it has run when the last returns

Several host threads may use a device: executions of different engines run side by side, register accesses of the host one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from softgen import blitter, codec, enhance, gpgpu, media, three_d
from softgen.bits import registers as placing
from softgen.bits.catalogue import catalogue
from softgen.bits.generation import Device
from softgen.command import Actors, Counters, Drawn, Pipeline, Preparers
from softgen.device import submission
from softgen.device.clock import host_clock
from softgen.device.execution import CounterTotal, EngineExecution
from softgen.device.interrupts import Interrupts
from softgen.device.registers import ContextRegisters, DeviceRegisters
from softgen.device.watchdog import Watchdog
from softgen.errors import SoftgenError
from softgen.memory.space import Space
from softgen.streamer import arithmetic, mi, switch, sync
from softgen.streamer.context import SavedContext
from softgen.streamer.execute import Streamer
from softgen.streamer.interface import DeviceInterface, StreamerHandler, SubmissionHooks
from softgen.streamer.latch import LatchedState
from softgen.streamer.latch_rules import latch_table
from softgen.streamer.position_only import ENGINE, PositionOnlyStreamer
from softgen.streamer.privilege import privileged
from softgen.streamer.rules import commands as rules_commands
from softgen.threads.dispatcher import EngineDispatcher
from softgen.threads.dispatcher_protocol import Dispatcher

if TYPE_CHECKING:
    from softgen.device.engines import HardwareEngine
    from softgen.device.memory import TableMemory

PIPELINES: tuple[Pipeline, ...] = (media, gpgpu, three_d, blitter, codec, enhance)
COMMANDS: dict[str, StreamerHandler] = {**mi.COMMANDS, **arithmetic.COMMANDS, **sync.COMMANDS, **switch.COMMANDS}
for _pipeline in PIPELINES:
    COMMANDS.update(_pipeline.COMMANDS)
PREPARED: Preparers = {**mi.PREPARED, **sync.PREPARED, **media.PREPARED, **gpgpu.PREPARED}
ACTORS: Actors = {**three_d.ACTORS, **media.ACTORS, **codec.ACTORS, **sync.ACTORS, **mi.ACTORS}


@cache
def handled_commands(rules: str) -> frozenset[str]:
    """Commands that Python has to see one by one: those with a handler, with rules to check, or for privileged batches only."""
    return frozenset(COMMANDS) | rules_commands(rules) | privileged("commands")


MOST_REMARKS = 1000
REACHABLE = 0x30  # IDLE_STATE


class DeviceWork(Protocol):
    """A submission: a batch in `space`, or a ring in the global space from head to tail."""

    @property
    def engine(self) -> str: ...
    @property
    def space(self) -> Space: ...
    @property
    def global_space(self) -> Space | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def batch(self) -> int: ...
    @property
    def head(self) -> int: ...
    @property
    def tail(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def context(self) -> int: ...
    @property
    def privileged(self) -> bool: ...


class GpuDevice:
    """One GPU, put together from its parts."""

    def __init__(self, device: Device, clock: Callable[[], int] | None = None, timed_out: Callable[[], bool] = lambda: False,
                 memory: TableMemory | None = None, on_error: Callable[[SoftgenError], bool] = lambda error: False,
                 dispatcher: Dispatcher | None = None, trace: Callable[[str, str], None] | None = None,
                 drawn: Drawn | None = None) -> None:  # fmt: skip
        """`clock` gives timestamps, by default the host's; `timed_out`, `on_error`, `dispatcher` and `drawn` serve work that brings no
        hooks of its own; `trace` is called with a topic and a line of text."""
        self.device, self.generation = device, device.generation
        self.clock = clock or host_clock(device)
        self.registers, self._total = DeviceRegisters(self.generation, self.clock), CounterTotal()
        self.remarks: dict[str, None] = {}
        self.names = {base: name for name, bases in placing.bases(self.generation.number).items() for base in bases}
        self.interrupts = Interrupts(self.generation, self.registers, self.names)
        self.watchdogs = self._watchdogs()
        self._idle_states()
        self.interface = DeviceInterface(self.generation, COMMANDS, PIPELINES, self.registers, self.clock, self.interrupt, self.signal,
                                         memory.update_table if memory else None, self.warn, self.watchdogs, self.saved_context,
                                         device.limit("slices"), trace, PREPARED, ACTORS)  # fmt: skip
        self.hooks = SubmissionHooks(timed_out, on_error, dispatcher or EngineDispatcher(), drawn)
        self.contexts: dict[tuple[int, str], SavedContext] = {}
        self._loaded: dict[str, ContextRegisters] = {}  # of the context that each engine ran last; the last one comes last
        self._host = threading.RLock()
        self.port = submission.port(device)
        self.engines = self._hardware_engines(memory) if memory else {}

    def _hardware_engines(self, memory: TableMemory) -> dict[int, HardwareEngine]:
        from softgen.device.engines import HardwareEngine  # not for work that is handed to engines without registers

        table = submission.submission(self.device)
        return {base: HardwareEngine(self, memory, table, name, base) for base, name in table.engines.items()}

    # -- work --------------------------------------------------------------------------------------------------------

    def execute(self, work: DeviceWork) -> None:
        """Execute work to its end."""
        self.begin(work).run_to_end()

    def begin(self, work: DeviceWork, saved: SavedContext | None = None, hooks: SubmissionHooks | None = None,
              instance: int = 0) -> EngineExecution:  # fmt: skip
        """Prepare work for execution in a hardware context: `saved`, or the one that has the work's number.

        `instance` counts engines of one kind; work that brings no `hooks` has the device's.
        """
        saved = saved or self.saved_context(work.context, work.engine)
        bases = placing.bases(self.generation.number).get(work.engine, (0,))
        loaded = saved.loaded if work.kind == "ring" else None
        registers = ContextRegisters(self.registers, (loaded or saved).registers)
        self._load(work.engine, registers)
        counters, base = Counters(), bases[min(instance, len(bases) - 1)]
        streamer = Streamer(self.interface, work.engine, work.space, work.global_space, saved, counters, hooks or self.hooks, base,
                            registers=registers, privileged=work.privileged)  # fmt: skip
        if streamer.watchdog is not None:
            streamer.watchdog = self.watchdogs[base].of_context(registers)
        if work.kind == "ring":
            streamer.start_ring(work.batch, work.head, work.tail, work.size)
        else:
            streamer.start_batch(work.batch)
        return EngineExecution(streamer, counters, self._total)

    @property
    def counters(self) -> Counters:
        """The work of all executions, as far as it has been done: always the same object."""
        return self._total()

    def begin_again(self, before: EngineExecution, batch: int) -> EngineExecution:
        """Prepare another batch in the context, the space and with the hooks of an execution that has ended, by which it is executed."""
        streamer = before.streamer
        registers: Any = streamer.registers  # ContextRegisters, as `begin` made them
        registers.own = streamer.submitted.registers  # MI_SET_CONTEXT may have switched to others
        self._load(streamer.engine, registers)
        before.restart(batch)
        return before

    def _load(self, engine: str, registers: ContextRegisters) -> None:
        self._loaded.pop(engine, None)
        self._loaded[engine] = registers

    def streamer(self, engine: str, space: Space, global_space: Space | None, saved: SavedContext, base: int,
                 process_page: int | None = None, context_id: int = 0) -> Streamer:  # fmt: skip
        """A command streamer for an engine that is driven through registers; context images keep registers."""
        return Streamer(self.interface, engine, space, global_space, saved, self.counters, self.hooks, base, process_page, context_id)

    def position_only_streamer(self, space: Space, global_space: Space, saved: SavedContext, base: int, process_page: int,
                               context_id: int) -> PositionOnlyStreamer:  # fmt: skip
        """The position-only streamer of a context: it raises no interrupts (ICL 873-875)."""
        silent = replace(self.interface, interrupt=lambda base, cause: None)
        return PositionOnlyStreamer(silent, ENGINE, space, global_space, saved, self.counters, self.hooks, base, process_page, context_id)

    def saved_context(self, context: int, engine: str) -> SavedContext:
        """The saved state of a context on an engine, by number."""
        found = self.contexts.get((context, engine))
        return found or self.contexts.setdefault((context, engine), self.new_context(engine))

    def new_context(self, engine: str) -> SavedContext:
        """The state of a new hardware context on an engine."""
        gen, rules = self.generation.number, self.generation.rules
        return SavedContext(LatchedState(latch_table(gen, engine, handled_commands(rules), tuple(ACTORS))))

    # -- driven through registers ------------------------------------------------------------------------------------

    def read_register(self, offset: int) -> int:
        """A register's value; of those that belong to contexts, the one of the context that ran last."""
        found = next((loaded.own[offset] for loaded in reversed(list(self._loaded.values())) if offset in loaded.own), None)
        return self.registers.read(offset) if found is None else found

    def register_written(self, offset: int) -> bool:
        """Whether anything has written a register."""
        return offset in self.registers.values or any(offset in loaded.own for loaded in list(self._loaded.values()))

    def write_register(self, offset: int, value: int) -> None:
        """As a driver does it: some writes start work, which is done (or waits) when this returns."""
        with self._host:
            self._write_register(offset, value)

    def _write_register(self, offset: int, value: int) -> None:
        self._check_host_write(offset)
        for loaded in list(self._loaded.values()):
            if offset in loaded.own:  # it hides the device's
                loaded.write(offset, value)
        self.registers.write(offset, value)
        starts = self.port.write(offset, value) if self.engines else []
        if starts and starts[0].ring is not None:
            self.engines[starts[0].base].start_ring(starts[0].ring)
        elif starts:
            self.engines[starts[0].base].submit([start.descriptor for start in starts if start.descriptor is not None])
        if starts:
            self.poll()

    def _check_host_write(self, offset: int) -> None:
        """Registers that belong to contexts are for commands, unless the host has stopped the engine from idling (ICL 1877-1892)."""
        place = self.registers.place(offset)
        if self.generation.rules == "none" or place is None or place.layout.name not in submission.context_registers():
            return
        base = place.offset - (place.layout.offset or 0) - 4 * place.layout.dwords * place.number
        if not self._awake(base):
            self.warn(f"{place.label} at {offset:#x} belongs to contexts; hosts may write it only while idle messages are disabled")

    def _awake(self, base: int) -> bool:
        layout = catalogue().layout("PSMI_CTL", self.generation.number)
        return bool(layout.raw([self.registers.read(base + (layout.offset or 0))]).sleep_message_disable)

    def _idle_states(self) -> None:
        """An engine that may not send idle messages says that its registers can be reached (ICL 1885-1888)."""
        layout = catalogue().get("IDLE_STATE", self.generation.number)
        if layout is not None:
            for base in self.names:
                self.registers.on_read(base + (layout.offset or 0), partial(self._idle_state, base))

    def _idle_state(self, base: int) -> int:
        return REACHABLE if self._awake(base) else 0

    def poll(self) -> None:
        """Memory may have changed: engines that wait look again, until none gets any further."""
        with self._host:
            self._poll()

    def _poll(self) -> None:
        before = -1
        while before != self.counters.commands and any(engine.busy() for engine in self.engines.values()):
            before = self.counters.commands
            for engine in self.engines.values():
                engine.poll()

    # -- what engines say --------------------------------------------------------------------------------------------

    def interrupt(self, base: int, cause: str) -> None:
        """An engine raises an interrupt; its status page gets a copy of the bits that HWSTAM lets through (KBL 11498-11501)."""
        bit = self.interrupts.raised(base, cause)
        if self.engines:
            self._show_status(base, bit)

    def _show_status(self, base: int, bit: int) -> None:
        engine = self.engines.get(base)
        if engine is None:
            return
        mask, where = (catalogue().get(name, self.generation.number) for name in ("HWSTAM", "HWS_PGA"))
        if mask is None or where is None:
            return
        page = self.registers.read(base + (where.offset or 0)) & ~0xFFF
        if page and bit & ~self.registers.read(base + (mask.offset or 0)):
            engine.memory.global_space.write32(page, bit)

    def signal(self, engine: str, context: int) -> None:
        """MI_SEMAPHORE_SIGNAL: the context, where it waits, looks again when the others have had their turn."""
        for slot in self.engines.values():
            if slot.current is not None and slot.current.id == context and slot.current.streamer.waiting is not None:
                slot.current.streamer.waiting = None

    def warn(self, text: str) -> None:
        """Keeps a broken rule of the manual among the remarks, once."""
        if len(self.remarks) < MOST_REMARKS:
            self.remarks.setdefault(text)

    def _watchdogs(self) -> dict[int, Watchdog]:
        if catalogue().get("PR_CTR_CTL", self.generation.number) is None:
            return {}
        return {base: Watchdog(self.generation, self.registers, base, self.clock, partial(self.interrupt, base, "timeout"), self.warn)
                for base in self.names}  # fmt: skip
