"""One host thread's share of a dispatch on a compiled engine: groups one after another, in native.c.

In:  a Job and which groups. Out: memory changed, and how many threads and instructions that were.
What compiled code leaves to the reference is answered here: the reference runs that one instruction on the same block of memory.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.errors import GpuFault, SoftgenError
from softgen.eu import block, native
from softgen.eu.block import Context, Control, Status
from softgen.eu.engine import Function
from softgen.eu.environment import explain
from softgen.eu.interpreter import Interpreter
from softgen.eu.native import Reason
from softgen.eu.thread import Thread
from softgen.gpgpu import group, walker
from softgen.gpgpu.group import set_mode
from softgen.gpgpu.job import Job
from softgen.memory import arena, guard
from softgen.shared_functions.dataport import DataPort, LocalMemory
from softgen.shared_functions.gateway import Gateway
from softgen.shared_functions.spawner import Spawner

Bytes = npt.NDArray[np.uint8]

SLICE = 20_000_000  # nanoseconds of compiled code before Python looks around
LINE = 64
MODES = 16  # changes of mode that a worker knows by heart

IDS = ("thread_group_id_x", "thread_group_id_y", "thread_group_id_z")
# What a thread that ran may have changed: registers, and what stands before `control`; control itself is one of them.
RANGES = (("grf", "mrf"), ("acc", "tdr"), ("control", ""))
RARE = (("mrf", "acc"), ("tdr", "control"))  # message registers, stacks and the like


class Memory:
    """Bytes that begin at a cache line; they grow and are kept from one dispatch to the next."""

    def __init__(self) -> None:
        self.bytes: Bytes = np.zeros(0, np.uint8)

    def fit(self, size: int) -> Bytes:
        if len(self.bytes) < size:
            raw = np.zeros(size + LINE, np.uint8)
            self.bytes = raw[-raw.ctypes.data % LINE :][:size]
        return self.bytes[:size]


class Room:
    """What a host thread needs to run groups."""

    def __init__(self) -> None:
        self.call = native.Call("native_groups")
        self.blocks, self.templates, self.local = Memory(), Memory(), Memory()


class Worker:
    """`number` tells workers of a dispatch apart; `look` is called now and then and may raise."""

    def __init__(self, job: Job, number: int, room: Room, look: Callable[[Worker], None]) -> None:
        self.job, self.plan, self.room, self.look, self.call = job, job.plan, room, look, room.call
        self.threads = threads = job.plan.threads
        self.blocks = room.blocks.fit(threads * block.SIZE)
        self.local = room.local.fit(job.plan.local_bytes + LINE)
        self.members = (native.Member * threads)()
        self.modes = (native.Mode * MODES)()
        self.kept: set[tuple[int, int]] = set()
        self.ranges = self._ranges()
        self.context = Context(
            table=ctypes.addressof(job.table), surfaces=ctypes.addressof(job.entries), local=self.local.ctypes.data,
            local_size=job.plan.local_bytes, blocks=self.blocks.ctypes.data, threads=threads, general=job.general,
        )  # fmt: skip
        templates = self._templates(number * threads)
        xs, ys, zs = job.plan.grid
        self.dispatch = native.Dispatch(
            context=ctypes.addressof(self.context), templates=templates.ctypes.data, members=ctypes.addressof(self.members),
            ranges=ctypes.addressof(self.ranges), range_count=len(self.ranges), turn=native.TURN,
            modes=ctypes.addressof(self.modes),
            origin=(xs.start, ys.start, zs.start), extent=(len(xs), len(ys), len(zs)), id_offset=self._ids(),
        )  # fmt: skip
        for member in self.members:
            member.dirty = 1  # what an earlier dispatch left
        self.functions: dict[tuple[int, int], Function] = {}  # alive while their code may run
        self.runners: dict[int, Interpreter] = {}
        self.messages: dict[int, Any] = {}

    # -- how threads start -----------------------------------------------------------------------------------------------

    def _ids(self) -> tuple[int, ...]:
        """Where the group's number stands in r0."""
        return tuple(self.job.header.field(name).low // 8 for name in IDS)

    def _ranges(self) -> ctypes.Array[native.Range]:
        spans = RANGES if self.job.rules.flow == "channel" else RANGES + RARE
        places = {**block.PLACES, "": block.PLACES["control"] + ctypes.sizeof(Control)}
        return (native.Range * len(spans))(*[native.Range(places[first], places[last] - places[first]) for first, last in spans])

    def _templates(self, before: int) -> Bytes:
        """A block for each thread of a group: all but the group's number is the same in all groups."""
        held = self.room.templates.fit(self.threads * block.SIZE)
        thread, first = Thread(self.job.gen, kernel=self.plan.kernel), self.plan.group(0)
        set_mode(thread, self.plan)
        width, height, _ = self.plan.shape
        for number in range(self.threads):
            payload = walker.registers(self.plan, first, number, self.job.header, before)
            thread.grf[: len(payload)] = np.frombuffer(payload, np.uint8)
            thread.dispatch(walker.mask(self.plan, number % width, number // width % height))
            thread.save()
            thread.where.number = number
            held[number * block.SIZE : (number + 1) * block.SIZE] = thread.block
        self.control = thread.control
        return held

    # -- running ---------------------------------------------------------------------------------------------------------

    def run(self, first: int, last: int) -> walker.Done:
        """Groups from `first` on, up to but not including `last`."""
        now = self.dispatch
        chosen = self._function(self.control)
        now.function, now.program, now.clean = chosen.address, chosen.program, chosen.clean
        now.first, now.last, now.threads_done, now.instructions, now.inside = first, last, 0, 0, 0
        now.deadline = time.monotonic_ns() + SLICE
        now.mode_count = 0
        self.kept.clear()
        while (why := self.call(now)) != Reason.DONE:
            self._answer(why)
        self.job.engine.ran(self.job.program, now.instructions)
        return walker.Done(now.threads_done, now.instructions, last - first)

    def _function(self, control: int, entry: int | None = None) -> Function:
        found = self.job.function(control, entry)
        self.functions[found.address, found.program] = found
        return found

    def _answer(self, why: int | None) -> None:
        match why:
            case None:
                raise self._fault()
            case Reason.LATE:
                self._look()
            case Reason.ESCAPED:
                self._escape()
            case Reason.OTHER_MODE:
                self._keep_mode()
            case Reason.STUCK:
                first = next(i for i, member in enumerate(self.members) if member.status != Status.ENDED)
                raise group.stuck(self.place(first), self.dispatch.left, self.threads)
            case _:
                raise SoftgenError(f"{self.place()}: compiled code came back with an unknown status")

    def _look(self) -> None:
        self.look(self)
        self.dispatch.deadline = time.monotonic_ns() + SLICE

    def control_of(self, number: int) -> Control:
        return Control.from_buffer(self.blocks, number * block.SIZE + block.PLACES["control"])  # type: ignore[arg-type]

    def _choose(self) -> tuple[int, int, Function]:
        """Code for what the current thread's cr0 says now, and where it is now."""
        number = self.dispatch.current
        start = number * block.SIZE + block.PLACES["cr"]
        control = int.from_bytes(self.blocks[start : start + 4].tobytes(), "little")
        ip = self.control_of(number).ip
        chosen = self._function(control, ip)
        self.members[number].function, self.members[number].program = chosen.address, chosen.program
        return control, ip, chosen

    def _keep_mode(self) -> None:
        """The same for a thread whose code said that its mode is another; the next one need not ask."""
        control, ip, chosen = self._choose()
        if (control, ip) not in self.kept and len(self.kept) < MODES:
            self.modes[len(self.kept)] = native.Mode(control, ip, chosen.address, chosen.program)
            self.kept.add((control, ip))
            self.dispatch.mode_count = len(self.kept)

    # -- the reference lends a hand --------------------------------------------------------------------------------------

    def _escape(self) -> None:
        """One instruction of the current thread on the reference, unless all it lacked was a surface that compiled code can reach."""
        now = self.dispatch
        runner = self._runner(now.current)
        thread = runner.thread
        if self.job.learn(thread.where.ip):
            return
        thread.load()
        here, control = thread.ip, thread.control
        done = runner.step()
        thread.save()
        now.moved |= done
        if thread.ended:
            self.members[now.current].status = Status.ENDED
            now.left -= 1
        elif thread.control != control and not self._now().steady or thread.ip != here + runner.code.line(here).size:
            self._choose()
        if thread.ended or not done or thread.ip <= here:  # others have a turn
            now.current += 1
            if time.monotonic_ns() >= now.deadline:
                self._look()

    def _now(self) -> Function:
        """The current thread's code."""
        member = self.members[self.dispatch.current]
        return self.functions[member.function, member.program]

    def _runner(self, number: int) -> Interpreter:
        if number not in self.runners:
            part = self.blocks[number * block.SIZE : (number + 1) * block.SIZE]
            thread = Thread(self.job.gen, self._messages(), self.plan.kernel, block=part)
            self.runners[number] = Interpreter(thread, self.job.program, text=group.text)
        return self.runners[number]

    def _messages(self) -> dict[int, Any]:
        if not self.messages:
            gen, local = self.job.gen, LocalMemory(self.plan.local_bytes)
            local.held = self.local[: self.plan.local_bytes]
            gateway = Gateway(gen, 1, lambda: native.barrier(self.context))  # who has come is counted there
            port = DataPort(self.job.surfaces, local)
            self.messages = {**port.handlers(), **gateway.handlers(), **Spawner(gen).handlers()}
        return self.messages

    # -- words -----------------------------------------------------------------------------------------------------------

    def place(self, number: int | None = None) -> str:
        """Where a thread is, or the one whose turn it was."""
        now = self.dispatch
        number = min(now.current, self.threads - 1) if number is None else number
        return group.place(number, self.plan.group(now.first), self.job.program, self.control_of(number).ip)

    def _fault(self) -> SoftgenError:
        record, space, code = self.call.record, self.job.space, self.job.program
        by = f"gen {self.job.gen:g}, {group.where(code, record.ip)}" if record.ip != guard.NOBODY else self.place()
        access = guard.ACCESS[record.access]
        if record.origin == guard.FROM_CODE:
            return explain(self.context, record.address, None, access, space, by)
        found = arena.locate(record.address)
        if found is None:
            return SoftgenError(f"{by}: {access} at host address {record.address:#x}, which is in no arena")
        fault = explain(self.context, record.address, found.address, access, space, by)
        why = fault.why.replace(space.outside(fault.address), self._why(fault.address, fault.access), 1)
        return GpuFault(fault.address, fault.access, space.name, by, why)

    def _why(self, address: int, access: str) -> str:
        """The space's own reason."""
        space = self.job.space
        try:
            space.write(address, space.read(address, 1)) if access == "write" else space.read(address, 1)
        except GpuFault as fault:
            return fault.why
        return space.outside(address)
