"""One host thread's share of a dispatch on a compiled engine: groups one after another, in native.c.

In:  a Job and which groups. Out: memory changed, and how many threads and instructions that were.
What compiled code leaves to the reference is answered here: the reference runs that one instruction on the same block of memory.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.bits import catalogue
from softgen.errors import GpuFault, SoftgenError
from softgen.eu import native
from softgen.eu.engine import Function
from softgen.eu.environment import explain
from softgen.eu.interpreter import DecodedInstruction, Interpreter
from softgen.eu.isa.instruction import Instruction
from softgen.eu.native import Reason
from softgen.eu.thread import block
from softgen.eu.thread.block import Context, ControlBlock, ThreadStatus
from softgen.eu.thread.regions import register_location
from softgen.eu.thread.state import ThreadState
from softgen.gpgpu import group, walker
from softgen.gpgpu.job import Job
from softgen.gpgpu.templates import LINE, Memory, Templates
from softgen.memory import arena, guard
from softgen.shared_functions.dataport import DataPort, LocalMemory
from softgen.shared_functions.gateway import Gateway
from softgen.shared_functions.sampler import SamplerPort
from softgen.shared_functions.spawner import Spawner

SLICE = 20_000_000  # nanoseconds of compiled code before Python looks around
CHANGES = frozenset({"mov", "not", "and", "or", "xor"})  # how programs change cr0
ANSWERS = 32  # that native.c knows by heart

Triple = tuple[int, int, int]
SAME = "binding_table_pointer"
IDS = ("thread_group_id_x", "thread_group_id_y", "thread_group_id_z")
# What a thread that ran may have changed, in pieces: from one place of a block up to another, and whether it starts as zeros.
REST, END = "mrf", ""
RANGES = (("acc", "sr", True), ("sr", "n", False), ("ip", "tdr", True), ("control", END, False))  # n is a group's affair
RARE = (("mrf", "acc", True), ("tdr", "control", True))  # message registers, stacks and the like


class Room:
    """What a host thread keeps from one dispatch to the next."""

    def __init__(self) -> None:
        self.call = native.Call("native_groups")
        self.blocks, self.templates, self.local = Memory(), Templates(), Memory()
        self.members = (native.Member * 0)()
        self.ranges: ctypes.Array[native.Range] | None = None
        self.dirty: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)  # of each member
        self.answers = (native.Answer * ANSWERS)()
        self.context = Context()
        self.dispatch = native.Dispatch(context=ctypes.addressof(self.context), answers=ctypes.addressof(self.answers))

    def seat(self, threads: int) -> None:
        """Blocks for so many threads."""
        size = len(self.blocks.bytes)
        self.blocks.fit(threads * block.BLOCK_SIZE)
        if len(self.members) != threads:
            self.members = (native.Member * threads)()
            words = np.frombuffer(memoryview(self.members).cast("B"), np.uint32)
            self.dirty = words[native.Member.dirty.offset // 4 :: ctypes.sizeof(native.Member) // 4]
        elif size == len(self.blocks.bytes):
            return
        self.spoil()

    def spoil(self) -> None:
        """Blocks are not as their templates have them."""
        self.dirty[:] = 1


def only_control(one: Instruction) -> bool:
    """Whether all that an instruction does follows from cr0.0, and is done to cr0.0."""
    plain = one.no_mask and one.exec_size == 1 and not one.predicate and not one.condition and not one.breakpoint
    operands = [one.dst, *one.sources]
    names = [
        register_location(operand, one.gen)
        for operand in operands
        if operand is not None and operand.file == "arf" and not operand.indirect
    ]
    immediates = sum(operand is not None and operand.file == "imm" for operand in operands)
    return plain and one.opcode in CHANGES and len(names) + immediates == len(operands) and set(names) == {("cr", 0)}


@cache
def _places(gen: float) -> tuple[int, int, int, int]:
    """Where in r0 the group's number stands, and the binding table's address."""
    header = catalogue.layout("GPGPU_THREAD_HEADER", gen)
    x, y, z = (header.field(name).low // 8 for name in IDS)
    return x, y, z, header.field(SAME).low // 32 * 4


@cache
def _ranges(registers: int, flow: str, needs: tuple[tuple[int, int], ...] | None) -> ctypes.Array[native.Range]:
    payload = -(-registers * walker.REGISTER // LINE) * LINE
    places = {**block.BLOCK_OFFSETS, END: block.BLOCK_OFFSETS["control"] + ctypes.sizeof(ControlBlock)}
    spans = [(places[first], places[last] - places[first], zero) for first, last, zero in RANGES + RARE]
    spans += [(0, payload, False), (payload, places[REST] - payload, True)]
    if needs is not None:
        copied = [(start, start + size) for start, size, zero in spans if not zero]
        behind = [(max(start, payload), start + size) for start, size in needs if start + size > payload]
        zeros = [one for one in behind if not any(start <= one[0] < end for start, end in copied)]  # sr and cr are not
        spans = [*(one for one in spans if not one[2]), *((start, end - start, True) for start, end in zeros)]
    elif flow == "channel":  # no message registers, and no stack that anyone uses
        spans = [one for one in spans if one[0] not in (places[first] for first, *_ in RARE)]
    return (native.Range * len(spans))(*[native.Range(*one) for one in spans])


class Worker:
    """`number` tells workers of a dispatch apart; `look` is called now and then and may raise."""

    def __init__(self, job: Job, number: int, room: Room, look: Callable[[Worker], None]) -> None:
        self.job, self.plan, self.room, self.look, self.call = job, job.plan, room, look, room.call
        self.threads = threads = job.plan.threads
        room.seat(threads)
        if room.templates.make(job, number * threads):
            room.spoil()
        self.control, self.members, self.answers = room.templates.control, room.members, room.answers
        self.blocks, self.local = room.blocks.bytes, room.local.fit(job.plan.local_bytes + LINE)
        self.context, self.dispatch = room.context, room.dispatch
        self._connect()
        self.functions: dict[tuple[int, int], Function] = {}  # alive while their code may run
        self.runners: dict[int, Interpreter] = {}
        self.messages: dict[int, Any] = {}

    def _connect(self) -> None:
        """The structures that native.c reads are the last dispatch's: everything in them that belongs to one is said anew."""
        job, room, around, now = self.job, self.room, self.context, self.dispatch
        around.table, around.surfaces, around.general = ctypes.addressof(job.table), ctypes.addressof(job.entries), job.general
        around.local, around.local_size = room.local.address, self.plan.local_bytes
        around.blocks, around.threads, around.notified = room.blocks.address, self.threads, 1
        now.templates, now.members = room.templates.address, ctypes.addressof(self.members)
        now.turn, now.start = native.TURN, self.plan.kernel
        now.origin, now.extent, now.id_offset = self._ids()
        now.numbered = 0

    def _ids(self) -> tuple[Triple, Triple, Triple]:
        """Of the groups' numbers: the first, how many, and where in r0 they stand. A header that has none says the same in all threads
        where it names the binding table: that is what is written there."""
        *places, same = _places(self.job.gen)
        if self.plan.payloads is not None:
            held = int.from_bytes(self.room.templates.bytes[same : same + 4].tobytes(), "little")
            return (held,) * 3, (1,) * 3, (same,) * 3
        xs, ys, zs = self.plan.grid
        x, y, z = places
        return (xs.start, ys.start, zs.start), (len(xs), len(ys), len(zs)), (x, y, z)

    # -- running ---------------------------------------------------------------------------------------------------------

    def run(self, first: int, last: int) -> walker.Done:
        """Groups from `first` on, up to but not including `last`."""
        now = self.dispatch
        chosen = self._function(self.control)
        now.function, now.program, now.clean, now.joint = chosen.address, chosen.program, chosen.clean, chosen.joint
        ranges = _ranges(self.plan.registers, self.job.rules.flow, chosen.needs)
        if ranges is not self.room.ranges:  # those that were made anew were made so for other code
            self.room.ranges = ranges
            self.room.spoil()
        now.ranges, now.range_count = ctypes.addressof(ranges), len(ranges)
        now.first, now.last, now.threads_done, now.instructions, now.inside = first, last, 0, 0, 0
        now.deadline = time.monotonic_ns() + SLICE
        now.answer_count = 0
        try:
            while (why := self.call(now)) != Reason.DONE:
                self._answer(why)
        except BaseException:  # threads were left in the middle
            self.room.spoil()
            raise
        self.job.engine.ran(self.job.program, now.instructions)
        return walker.Done(now.threads_done, now.instructions, last - first)

    def _function(self, control: int, entry: int | None = None) -> Function:
        found = self.job.function(control, entry)
        self.functions[found.address, found.program] = found
        return found

    def _answer(self, why: int | None) -> None:
        match why:
            case None:
                if not self.dispatch.apart:
                    self.dispatch.current = self.threads - self.context.turns
                raise self._fault()
            case Reason.LATE:
                self._look()
            case Reason.ESCAPED:
                self._escape()
            case Reason.OTHER_MODE:
                self._change_mode()
            case Reason.STUCK:
                first = next(number for number in range(self.threads) if self.control_of(number).status != ThreadStatus.ENDED)
                raise group.stuck(self.place(first), self.dispatch.left, self.threads)
            case _:
                raise SoftgenError(f"{self.place()}: compiled code came back with an unknown status")

    def _look(self) -> None:
        self.look(self)
        self.dispatch.deadline = time.monotonic_ns() + SLICE

    def control_of(self, number: int) -> ControlBlock:
        return ControlBlock.from_buffer(self.blocks, number * block.BLOCK_SIZE + block.BLOCK_OFFSETS["control"])  # type: ignore[arg-type]

    def _choose(self) -> tuple[int, int, Function]:
        """Code for what the current thread's cr0 says now, and where it is now."""
        number = self.dispatch.current
        start = number * block.BLOCK_SIZE + block.BLOCK_OFFSETS["cr"]
        control = int.from_bytes(self.blocks[start : start + 4].tobytes(), "little")
        ip = self.control_of(number).ip
        chosen = self._function(control, ip)
        self.members[number].function, self.members[number].program = chosen.address, chosen.program
        if (chosen.address, chosen.program) != (self.dispatch.function, self.dispatch.program):
            self.dispatch.apart = 1
        return control, ip, chosen

    def _change_mode(self) -> None:
        """The same for a thread whose code said that its mode is another."""
        control, ip, chosen = self._choose()
        self._remember(ThreadStatus.CR0_CHANGED, control, ip, control, ip, chosen)

    def _remember(self, status: ThreadStatus, control: int, ip: int, then: int, to: int, chosen: Function) -> None:
        """The next thread in the same place need not ask. What an engine would choose later is asked again for the next chunk."""
        count = self.dispatch.answer_count
        if count < ANSWERS:
            counts = status is ThreadStatus.ESCAPE
            self.answers[count] = native.Answer(status, control, ip, then, to, counts, chosen.address, chosen.program)
            self.dispatch.answer_count = count + 1

    # -- the reference lends a hand --------------------------------------------------------------------------------------

    def _escape(self) -> None:
        """One instruction of the current thread on the reference, unless all it lacked was a surface that compiled code can reach."""
        now = self.dispatch
        runner = self._runner(now.current)
        thread = runner.thread
        if self.job.learn(thread.control_block.ip):
            return
        thread.load()
        here, control = thread.ip, thread.cr0
        done = runner.step()
        thread.save()
        now.moved |= done
        if thread.ended:
            now.left -= 1
        elif done:
            self._go_on(thread, runner.code.line(here), control)
        if thread.ended or not done or thread.ip <= here:  # others have a turn
            now.current += 1
            if time.monotonic_ns() >= now.deadline:
                self._look()

    def _go_on(self, thread: ThreadState, line: DecodedInstruction, control: int) -> None:
        """Finds the code for what follows an instruction that the reference ran when cr0.0 was `control`."""
        behind = line.ip + line.size
        if thread.cr0 != control and not self._now().steady or thread.ip != behind:
            self._choose()
        if thread.ip == behind and only_control(line.instruction):
            self._remember(ThreadStatus.ESCAPE, control, line.ip, thread.cr0, behind, self._now())

    def _now(self) -> Function:
        """The current thread's code."""
        member = self.members[self.dispatch.current]
        return self.functions[member.function, member.program]

    def _runner(self, number: int) -> Interpreter:
        if number not in self.runners:
            part = self.blocks[number * block.BLOCK_SIZE : (number + 1) * block.BLOCK_SIZE]
            thread = ThreadState(self.job.gen, self._messages(), self.plan.kernel, block=part)
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

    def busy(self) -> int:
        """A thread that time is up for: the one before that whose turn it is has just had its own, if it did not end."""
        current = self.dispatch.current
        numbers = [number for number in (current - 1, current, *range(self.threads)) if 0 <= number < self.threads]
        return int(next((number for number in numbers if self.control_of(number).status != ThreadStatus.ENDED), numbers[0]))

    def _fault(self) -> SoftgenError:
        record, space, code = self.call.record, self.job.space, self.job.program
        by = f"gen {self.job.gen:g}, {group.where(code, record.ip)}" if record.ip != guard.NO_IP else self.place()
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
