"""One host thread's share of a dispatch on a compiled engine: groups one after another, in native.c.

In:  a Job and which groups. Out: memory changed, and how many threads and instructions that were.
What compiled code leaves to the reference is answered here: the reference runs that one instruction on the same block of memory.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.errors import GpuFault, SoftgenError
from softgen.eu import block, native
from softgen.eu.block import Context, Control, Status
from softgen.eu.engine import Function
from softgen.eu.environment import explain
from softgen.eu.instruction import Instruction
from softgen.eu.interpreter import Interpreter, Line
from softgen.eu.native import Reason
from softgen.eu.regions import place
from softgen.eu.thread import Thread
from softgen.gpgpu import group, walker
from softgen.gpgpu.group import set_mode
from softgen.gpgpu.job import Job
from softgen.memory import arena, guard
from softgen.shared_functions.dataport import DataPort, LocalMemory
from softgen.shared_functions.gateway import Gateway
from softgen.shared_functions.sampler import SamplerPort
from softgen.shared_functions.spawner import Spawner

Bytes = npt.NDArray[np.uint8]

SLICE = 20_000_000  # nanoseconds of compiled code before Python looks around
LINE = 64
HEADER = walker.REGISTER  # r0
CHANGES = frozenset({"mov", "not", "and", "or", "xor"})  # how programs change cr0
ANSWERS = 32  # that native.c knows by heart

Triple = tuple[int, int, int]
SAME = "binding_table_pointer"
IDS = ("thread_group_id_x", "thread_group_id_y", "thread_group_id_z")
# What a thread that ran may have changed, in pieces: from one place of a block up to another, and whether it starts as zeros.
REST, END = "mrf", ""
RANGES = (("acc", "sr", True), ("sr", "n", False), ("ip", "tdr", True), ("control", END, False))  # n is a group's affair
RARE = (("mrf", "acc", True), ("tdr", "control", True))  # message registers, stacks and the like


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


@lru_cache(64)
def _started(gen: float, kernel: int, single_flow: bool, alternate: bool, rounding: int, mask: int) -> bytes:
    """The block of a thread that starts, without its payload."""
    thread = Thread(gen, kernel=kernel, dispatch_mask=mask)
    set_mode(thread, single_flow, alternate, rounding)
    thread.save()
    return thread.block.tobytes()


def only_control(one: Instruction) -> bool:
    """Whether all that an instruction does follows from cr0.0, and is done to cr0.0."""
    plain = one.no_mask and one.exec_size == 1 and not one.predicate and not one.condition and not one.breakpoint
    operands = [one.dst, *one.sources]
    names = [place(operand, one.gen) for operand in operands if operand is not None and operand.file == "arf" and not operand.indirect]
    immediates = sum(operand is not None and operand.file == "imm" for operand in operands)
    return plain and one.opcode in CHANGES and len(names) + immediates == len(operands) and set(names) == {("cr", 0)}


class Worker:
    """`number` tells workers of a dispatch apart; `look` is called now and then and may raise."""

    def __init__(self, job: Job, number: int, room: Room, look: Callable[[Worker], None]) -> None:
        self.job, self.plan, self.room, self.look, self.call = job, job.plan, room, look, room.call
        self.threads = threads = job.plan.threads
        self.blocks = room.blocks.fit(threads * block.SIZE)
        self.local = room.local.fit(job.plan.local_bytes + LINE)
        self.members = (native.Member * threads)()
        self.answers = (native.Answer * ANSWERS)()
        self.ranges = self._ranges()
        self.context = Context(
            table=ctypes.addressof(job.table), surfaces=ctypes.addressof(job.entries), local=self.local.ctypes.data,
            local_size=job.plan.local_bytes, blocks=self.blocks.ctypes.data, threads=threads, general=job.general,
        )  # fmt: skip
        templates = self._templates(number * threads)
        origin, extent, offsets = self._ids(templates)
        self.dispatch = native.Dispatch(
            context=ctypes.addressof(self.context), templates=templates.ctypes.data, members=ctypes.addressof(self.members),
            ranges=ctypes.addressof(self.ranges), range_count=len(self.ranges), turn=native.TURN,
            answers=ctypes.addressof(self.answers),
            origin=origin, extent=extent, id_offset=offsets,
        )  # fmt: skip
        for member in self.members:
            member.dirty = 1  # what an earlier dispatch left
        self.functions: dict[tuple[int, int], Function] = {}  # alive while their code may run
        self.runners: dict[int, Interpreter] = {}
        self.messages: dict[int, Any] = {}

    # -- how threads start -----------------------------------------------------------------------------------------------

    def _ids(self, templates: Bytes) -> tuple[Triple, Triple, Triple]:
        """Of the groups' numbers: the first, how many, and where in r0 they stand. A header that has none says the same in all threads
        where it names the binding table: that is what is written there."""
        if self.plan.payloads is not None:
            place = self.job.header.field(SAME).low // 32 * 4
            held = int.from_bytes(templates[place : place + 4].tobytes(), "little")
            return (held,) * 3, (1,) * 3, (place,) * 3
        xs, ys, zs = self.plan.grid
        x, y, z = (self.job.header.field(name).low // 8 for name in IDS)
        return (xs.start, ys.start, zs.start), (len(xs), len(ys), len(zs)), (x, y, z)

    def _ranges(self) -> ctypes.Array[native.Range]:
        payload = -(-self.plan.registers * walker.REGISTER // LINE) * LINE
        places = {**block.PLACES, END: block.PLACES["control"] + ctypes.sizeof(Control)}
        spans = [(places[first], places[last] - places[first], zero) for first, last, zero in RANGES + RARE]
        spans += [(0, payload, False), (payload, places[REST] - payload, True)]
        if self.job.rules.flow == "channel":  # no message registers, and no stack that anyone uses
            spans = [one for one in spans if one[0] not in (places[first] for first, *_ in RARE)]
        return (native.Range * len(spans))(*[native.Range(*one) for one in spans])

    def _templates(self, before: int) -> Bytes:
        """A block for each thread of a group: all but the group's number is the same in all groups."""
        plan, first = self.plan, self.plan.group(0)
        held = self.room.templates.fit(self.threads * block.SIZE)
        rows = held.reshape(self.threads, block.SIZE)
        started = _started(self.job.gen, plan.kernel, plan.single_flow, plan.alternate, plan.rounding, (1 << plan.simd) - 1)
        rows[:] = np.frombuffer(started, np.uint8)
        numbers = np.arange(self.threads, dtype=np.uint32)
        if plan.payloads is not None:
            for number, row in enumerate(rows):
                registers = walker.registers(plan, first, number, self.job.header, before)
                row[: len(registers)] = np.frombuffer(registers, np.uint8)
        else:
            self._grid_templates(rows, numbers, before)
        place = block.PLACES["control"] + Control.number.offset
        rows[:, place : place + 4].view(np.uint32)[:, 0] = numbers
        if not self.job.full:
            self._mask(held)
        self.control = int.from_bytes(rows[0, block.PLACES["cr"] :][:4].tobytes(), "little")
        return held

    def _grid_templates(self, rows: Bytes, numbers: npt.NDArray[np.uint32], before: int) -> None:
        """Payloads of a GPGPU group's threads."""
        plan, first = self.plan, self.plan.group(0)
        one, other = (walker.registers(plan, first, number, self.job.header, before) for number in (0, min(1, self.threads - 1)))
        rows[:, : len(one)] = np.frombuffer(one, np.uint8)
        head, step = np.frombuffer(one[:HEADER], np.uint32), np.frombuffer(other[:HEADER], np.uint32)
        rows[:, :HEADER].view(np.uint32)[:] = head + numbers[:, None] * (step - head)  # what tells threads apart grows evenly
        own, begin = plan.own * walker.REGISTER, HEADER + (0 if plan.own_first else plan.shared * walker.REGISTER)
        data = np.frombuffer(plan.data, np.uint8)[plan.shared * walker.REGISTER :][: own * self.threads]
        rows[:, begin : begin + own] = data.reshape(self.threads, own)

    def _mask(self, held: Bytes) -> None:
        """Channels that are off in some threads."""
        width, height, _ = self.plan.shape
        for number in range(self.threads):
            thread = Thread(self.job.gen, kernel=self.plan.kernel, block=held[number * block.SIZE : (number + 1) * block.SIZE])
            thread.dispatch(walker.mask(self.plan, number % width, number // width % height))
            thread.save()

    # -- running ---------------------------------------------------------------------------------------------------------

    def run(self, first: int, last: int) -> walker.Done:
        """Groups from `first` on, up to but not including `last`."""
        now = self.dispatch
        chosen = self._function(self.control)
        now.function, now.program, now.clean = chosen.address, chosen.program, chosen.clean
        now.first, now.last, now.threads_done, now.instructions, now.inside = first, last, 0, 0, 0
        now.deadline = time.monotonic_ns() + SLICE
        now.answer_count = 0
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
                self._change_mode()
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

    def _change_mode(self) -> None:
        """The same for a thread whose code said that its mode is another."""
        control, ip, chosen = self._choose()
        self._remember(Status.MODE, control, ip, control, ip, chosen)

    def _remember(self, status: Status, control: int, ip: int, then: int, to: int, chosen: Function) -> None:
        """The next thread in the same place need not ask. What an engine would choose later is asked again for the next chunk."""
        count = self.dispatch.answer_count
        if count < ANSWERS:
            counts = status is Status.ESCAPE
            self.answers[count] = native.Answer(status, control, ip, then, to, counts, chosen.address, chosen.program)
            self.dispatch.answer_count = count + 1

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
        elif done:
            self._go_on(thread, runner.code.line(here), control)
        if thread.ended or not done or thread.ip <= here:  # others have a turn
            now.current += 1
            if time.monotonic_ns() >= now.deadline:
                self._look()

    def _go_on(self, thread: Thread, line: Line, control: int) -> None:
        """Finds the code for what follows an instruction that the reference ran when cr0.0 was `control`."""
        behind = line.ip + line.size
        if thread.control != control and not self._now().steady or thread.ip != behind:
            self._choose()
        if thread.ip == behind and only_control(line.instruction):
            self._remember(Status.ESCAPE, control, line.ip, thread.control, behind, self._now())

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
            sampler = SamplerPort(self.job.surfaces, self.job.samplers)
            self.messages = {**port.handlers(), **gateway.handlers(), **Spawner(gen).handlers(), **sampler.handlers()}
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
