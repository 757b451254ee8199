"""One host thread's share of a dispatch on a compiled engine: groups one after another, in scheduler.c.

In:  a SharedDispatch. Out: memory changed; counts of threads and instructions.
Fallbacks are handled here: the interpreter executes the one instruction that compiled code left, on the same block.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from softgen.errors import GpuFault, SoftgenError
from softgen.eu import native
from softgen.eu.engine_protocol import CompiledFunction
from softgen.eu.interpreter import DecodedInstruction, Interpreter
from softgen.eu.thread import block
from softgen.eu.thread.block import Context, ControlBlock, ThreadStatus
from softgen.eu.thread.regions import ip_jump, only_control
from softgen.eu.thread.state import ThreadState
from softgen.memory import arena, guard
from softgen.shared_functions.access_fault import WRITES, explain
from softgen.shared_functions.unit import GroupBindings, MessageHandler, handlers
from softgen.threads import places
from softgen.threads.dispatch import ThreadDispatch
from softgen.threads.native import scheduler
from softgen.threads.native.block_ranges import block_ranges
from softgen.threads.native.scheduler import TURN, BlockRange, FallbackAnswer, GroupMember, GroupShare, ReturnReason, SchedulerState
from softgen.threads.native.templates import LINE, AlignedMemory, TemplateCache, ThreadTemplates
from softgen.threads.payload import LoopPayload, PayloadWriter, WrittenMasks
from softgen.threads.workers.answers import ANSWERS, add_answer, jump_answer, recall_answers
from softgen.threads.workers.late_fields import place_slots
from softgen.threads.workers.shared import SharedDispatch
from softgen.threads.workers.strips import differing

SLICE = 20_000_000  # nanoseconds of compiled code between polls from Python
OVERDUE = 200_000_000  # nanoseconds past a deadline, after which the limit is polled in the middle of a thread, too


class WorkerState:
    """What a host thread keeps from one dispatch to the next."""

    def __init__(self, fill: int = 0) -> None:
        """`fill`: what each byte holds that nothing has written when a thread starts."""
        self.fill = fill
        self.call = scheduler.groups_call(native.on_own_lines(guard.FaultRecord))
        self.context, self.dispatch = native.on_own_lines(Context), native.on_own_lines(SchedulerState)
        self.blocks, self.templates, self.local = AlignedMemory(), ThreadTemplates(), AlignedMemory()
        self.kept_templates = TemplateCache()
        self.members = (GroupMember * 0)()
        self.ranges: ctypes.Array[BlockRange] | None = None
        self.dirty: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)  # of each member
        self.answers = (FallbackAnswer * ANSWERS)()
        self.masks = (ctypes.c_uint32 * 0)()
        self.dispatch.public.api = scheduler.library().threads_functions()
        self.dispatch.context, self.dispatch.answers = ctypes.addressof(self.context), ctypes.addressof(self.answers)

    def fit(self, threads: int) -> None:
        """Makes blocks for so many threads."""
        if len(self.members) != threads:
            self.blocks.fit(threads * block.BLOCK_SIZE)
            self.members = (GroupMember * threads)()
            words = np.frombuffer(memoryview(self.members).cast("B"), np.uint32)
            self.masks = (ctypes.c_uint32 * threads)()
            self.dirty = words[GroupMember.dirty.offset // 4 :: ctypes.sizeof(GroupMember) // 4]
            self.mark_dirty()

    def mark_dirty(self) -> None:
        """Blocks are no longer as their templates."""
        self.dirty[:] = 1
        self.dispatch.fresh = 0


def answer_parts(returned: Sequence[tuple[Worker, scheduler.WorkerPart]]) -> None:
    """Does what loops that ran at the same time returned for. Of several errors the one of the earliest group counts, as on the
    reference engine."""
    errors: list[tuple[int, SoftgenError]] = []
    for worker, part in returned:
        try:
            worker.answer(None if part.signal else int(part.result))
        except SoftgenError as error:
            errors.append((int(worker.dispatch.first), error))
    if errors:
        raise min(errors, key=lambda error: error[0])[1]


class Worker:
    """One host thread at work on a dispatch. `number` tells its workers apart; `poll` is called at intervals and may raise."""

    def __init__(self, shared: SharedDispatch, number: int, state: WorkerState, poll: Callable[[Worker], None]) -> None:
        self.shared, self.state, self.poll, self.call = shared, state, poll, state.call
        self.threads = threads = shared.strip or self.record.threads
        state.fit(threads)
        self.first_slot = number * self.record.threads
        state.templates, differ = state.kept_templates.choose(shared, self.first_slot)
        if differ or state.dispatch.rows:  # a strip's blocks all have the data of one thread
            state.mark_dirty()
        self.control, self.members, self.answers = state.templates.control, state.members, state.answers
        self.blocks, self.local = state.blocks.bytes, state.local.fit(self.record.local_bytes + LINE)
        self.context, self.dispatch = state.context, state.dispatch
        self._connect()
        self.chosen: CompiledFunction | None = None  # code that threads start with
        self.rows = shared.rows  # that it was chosen for
        self.functions: dict[tuple[int, int], CompiledFunction] = {}  # alive while their code may run
        self.runners: dict[int, Interpreter] = {}
        self.messages: dict[int, MessageHandler] = {}

    def _connect(self) -> None:
        """Fills the structures of scheduler.c anew: they hold what the last dispatch left."""
        shared, state, context, now = self.shared, self.state, self.context, self.dispatch
        for name, value in shared.bound.fields().items():
            setattr(context, name, value)
        context.local, context.local_size = state.local.address, self.record.local_bytes
        context.blocks, context.threads, context.notified = state.blocks.address, self.threads, 1
        now.templates, now.template_stride = state.templates.address, state.templates.stride
        now.members = ctypes.addressof(self.members)
        now.turn, now.start, now.size, now.fill = TURN, self.record.kernel, self.threads, state.fill
        counters = self.record.patch.counters if self.record.patch is not None else ()
        now.axes = self.counters = len(counters)
        for axis, counter in enumerate(counters):
            now.origin[axis], now.extent[axis], now.patch_offset[axis] = counter.start, counter.count, counter.offset
        now.numbered = now.ready = now.fresh = now.pieces = now.begin = now.rows = 0
        if shared.strip:
            self._connect_strips()
        payload = self.record.payload
        now.slots = 0
        if isinstance(payload, PayloadWriter):
            place_slots(now, payload.slots, self.first_slot)
            now.writer, now.writer_state, now.writer_first, now.total = payload.function, payload.state, payload.first, payload.count or 0
        else:
            now.writer = now.total = 0
        written = isinstance(payload, PayloadWriter) and isinstance(self.record.masks, WrittenMasks)
        now.written_masks = ctypes.addressof(state.masks) if written else 0

    def _connect_strips(self) -> None:
        now, record, strip = self.dispatch, self.record, self.shared.strip
        now.rows, now.extent[0] = record.threads, now.extent[0] // strip
        now.own_start, now.own_size = differing(record)

    def fill(self) -> None:
        """For another dispatch of the same kind, with other payload data."""
        if self.shared.strip:
            self.dispatch.own_start, self.dispatch.own_size = differing(self.record)
        if self.state.templates.make(self.shared, self.first_slot):
            self.state.mark_dirty()

    @property
    def record(self) -> ThreadDispatch:
        return self.shared.dispatch

    @property
    def address(self) -> int:
        """The worker for C loops: a pointer to struct threads_worker."""
        return ctypes.addressof(self.dispatch)

    # -- running ---------------------------------------------------------------------------------------------------------

    def join(self, share: GroupShare | None = None) -> None:
        """Takes part in a dispatch; without a share, by loops. A constant of the share is a counter that does not advance."""
        self._prepare(0 if share is None else ctypes.addressof(share))
        if share is not None and share.constants:
            now, axis = self.dispatch, self.counters
            now.axes, now.origin[axis], now.extent[axis], now.patch_offset[axis] = axis + 1, share.constant, 1, share.constant_offset

    def part(self) -> scheduler.WorkerPart:
        """The worker's part of a dispatch, for run_parts."""
        return scheduler.WorkerPart(self.address, ctypes.addressof(self.call.record))

    @property
    def _under_way(self) -> range:
        """Threads of the group under way, or of its piece."""
        return range(self.dispatch.begin, self.context.threads)

    @property
    def unfinished(self) -> bool:
        """Whether groups that it has taken are not done."""
        return bool(self.dispatch.inside) or self.dispatch.first != self.dispatch.last

    def _prepare(self, share: int) -> None:
        now = self.dispatch
        self.choose()
        now.share, now.chunk = share, 1
        now.numbered = now.taken = now.first = now.last = now.threads_done = now.instructions = now.inside = 0
        now.deadline = time.monotonic_ns() + SLICE
        recall_answers(self.shared.known_answers, self.shared.prepare, now, self.answers, self.functions)

    def choose(self) -> None:
        """Chooses the code that threads start with."""
        shared, chosen = self.shared, self.chosen
        if chosen is not None and self.rows is shared.rows and shared.engine.holds(shared.program, chosen):
            return
        chosen, self.rows = self._function(self.control), shared.rows
        if chosen is not self.chosen:
            self._choose_first(chosen)

    def _choose_first(self, chosen: CompiledFunction) -> None:
        """Threads start with this code."""
        now, self.chosen = self.dispatch, chosen
        now.function, now.program, now.clean, now.joint = chosen.address, chosen.program, chosen.clean, chosen.joint
        now.in_order, now.fresh = chosen.in_order, 0
        ranges = block_ranges(self.record.registers, self.shared.rules.flow, chosen.needs, self._copies_payload, self.state.fill)
        if ranges is not self.state.ranges:  # clean blocks were made for other code
            self.state.ranges = ranges
            self.state.mark_dirty()
        now.ranges, now.range_count = ctypes.addressof(ranges), len(ranges)

    @property
    def _copies_payload(self) -> bool:
        """Whether templates hold payloads."""
        return not isinstance(self.record.payload, PayloadWriter | LoopPayload)

    def _function(self, control: int, entry: int | None = None) -> CompiledFunction:
        found = self.shared.function(control, entry)
        self.functions[found.address, found.program] = found
        return found

    def answer(self, why: int | None) -> None:
        """Does what C code returned for."""
        match why:
            case None:
                if not self.dispatch.apart:
                    self.dispatch.current = self.context.threads - self.context.turns
                raise self._fault()
            case ReturnReason.DEADLINE:
                self._poll()
            case ReturnReason.ESCAPED:
                self._escape()
            case ReturnReason.OTHER_MODE:
                self._change_mode()
            case ReturnReason.DEADLOCK:
                threads = self._under_way
                first = next(number for number in threads if self.control_of(number).status != ThreadStatus.ENDED)
                raise places.deadlock(self.place(first), self.dispatch.left, len(threads))
            case ReturnReason.TOO_MANY:
                raise SoftgenError(f"kernel {self.record.kernel:#x}: a loop started more than the {self.threads} threads of a batch")
            case ReturnReason.TOO_LONG:
                raise SoftgenError(f"kernel {self.record.kernel:#x}: a loop would write payloads longer than a thread's registers")
            case _:
                raise SoftgenError(f"{self.place()}: compiled code came back with an unknown status")

    def _poll(self) -> None:
        self.poll(self)
        self.dispatch.deadline = time.monotonic_ns() + SLICE

    def control_of(self, number: int) -> ControlBlock:
        return ControlBlock.from_buffer(self.blocks, number * block.BLOCK_SIZE + block.BLOCK_OFFSETS["control"])  # type: ignore[arg-type]

    def _choose(self) -> tuple[int, int, CompiledFunction]:
        """Chooses code for the cr0 and ip that the current thread has now."""
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
        """Chooses code for a thread whose cr0 is no longer the one its code was made for."""
        control, ip, chosen = self._choose()
        self._remember(ThreadStatus.CR0_CHANGED, control, ip, control, ip, chosen)

    def _remember(self, status: ThreadStatus, control: int, ip: int, then: int, to: int, chosen: CompiledFunction) -> None:
        """Lets scheduler.c repeat this for other threads at the same ip."""
        counts = status is ThreadStatus.ESCAPE
        self._add_answer(FallbackAnswer(status, control, ip, then, to, counts, chosen.address, chosen.program), chosen)

    def _add_answer(self, answer: FallbackAnswer, chosen: CompiledFunction | None) -> None:
        if add_answer(self.dispatch, self.answers, answer):
            self.shared.keep_answer(answer, chosen)

    # -- fallbacks --------------------------------------------------------------------------------------

    def _escape(self) -> None:
        """Executes one instruction of the current thread on the interpreter, unless all it lacked was a surface that can be resolved."""
        now, runner = self.dispatch, self._runner(self.dispatch.current)
        thread = runner.thread
        thread.load()
        here, control, done = thread.ip, thread.cr0, None
        if self.shared.stepper is not None:
            done = self.shared.stepper(runner, self.record, *self._numbers(now.current))
            if done is None and self.members[now.current].function in native.interpreting():  # now as any other
                self._choose()
                return
        if done is None:
            if self.shared.learn(thread):
                return
            self.shared.program.fallbacks[here] += 1
            done = self._step(runner)
        thread.save()
        if self.shared.stepped is not None:
            self.shared.stepped(lambda: places.instruction_at(self.shared.program, here))
        now.moved |= done
        if thread.ended:
            now.left -= 1
        elif done:
            self._resume(thread, runner.code.line(here), control)
        if thread.ended or not done or thread.ip <= here:
            if not now.rows or thread.ended or not done:  # in a strip the next thread may have the same slot
                now.current += 1
            if time.monotonic_ns() >= now.deadline:
                self.shared.engine.yield_to_foreground()
                self._poll()
        elif time.monotonic_ns() >= now.deadline + OVERDUE:  # in a loop that compiled code never goes round in one turn
            self._poll()

    def _step(self, runner: Interpreter) -> bool:
        try:
            return runner.step()
        except SoftgenError as error:
            raise places.placed(error, self.place()) from None

    def _resume(self, thread: ThreadState, line: DecodedInstruction, control: int) -> None:
        """Finds the code to resume with after an instruction that the interpreter ran when cr0.0 was `control`."""
        after = line.ip + line.size
        if thread.cr0 != control and not self._now().steady or thread.ip != after:
            self._choose()
        if thread.cr0 == control and self.shared.stepper is None and (jump := ip_jump(line.instruction)) is not None:
            self._add_answer(jump_answer(control, line.ip, jump), None)
        if thread.ip == after and only_control(line.instruction) and self.shared.stepper is None:
            self._remember(ThreadStatus.ESCAPE, control, line.ip, thread.cr0, after, self._now())

    def _now(self) -> CompiledFunction:
        """The current thread's code."""
        member = self.members[self.dispatch.current]
        return self.functions[member.function, member.program]

    def _runner(self, number: int) -> Interpreter:
        if number not in self.runners:
            part = self.blocks[number * block.BLOCK_SIZE : (number + 1) * block.BLOCK_SIZE]
            thread = ThreadState(self.shared.gen, self._messages(), self.record.kernel, block=part)
            thread.system_routine = self.record.system_routine
            thread.clock = lambda: self.shared.elapsed + thread.executed
            self.runners[number] = Interpreter(thread, self.shared.program, text=places.text)
        return self.runners[number]

    def _messages(self) -> dict[int, MessageHandler]:
        if not self.messages:
            bound = self.shared.bound
            group = GroupBindings(bound.dispatch, self.local[: self.record.local_bytes], 1, lambda: native.barrier(self.context))
            self.messages = handlers(bound.units, group)  # native.c counts arrivals at the barrier
        return self.messages

    # -- error messages -----------------------------------------------------------------------------------------------------------

    def place(self, number: int | None = None) -> places.ThreadPlace:
        """The place of a thread; of the current one by default."""
        now = self.dispatch
        number = min(now.current, self.context.threads - 1) if number is None else number
        control = self.control_of(number)
        return places.thread_at(self.record, *self._numbers(number), self.shared.program, control.ip, control.executed)

    def _numbers(self, number: int) -> tuple[int, int]:
        """The group of a thread, and its number in there."""
        now = self.dispatch
        if now.rows:
            return now.first // now.rows * self.shared.strip + number, now.first % now.rows
        return now.first // max(now.pieces, 1), number

    def busy(self) -> int:
        """A thread to name at a time limit: the one before the current one, which has just had its turn, if it did not end."""
        current = self.dispatch.current
        threads = self._under_way
        numbers = [number for number in (current - 1, current, *threads) if number in threads]
        return int(next((number for number in numbers if self.control_of(number).status != ThreadStatus.ENDED), numbers[0]))

    def _fault(self) -> SoftgenError:
        """The error of an access to memory that is not mapped. Compiled code notes the instruction, but not how many it has executed."""
        error, ip, place = self._explained_fault(), self.call.record.ip, self.place()
        offset = None if ip == guard.NO_IP else ip - self.shared.program.start
        place.position = replace(place.position, offset=offset, instructions=None)
        return places.placed(error, place)

    def _explained_fault(self) -> SoftgenError:
        record, space, program = self.call.record, self.shared.space, self.shared.program
        by = f"gen {self.shared.gen:g}, {places.instruction_at(program, record.ip)}" if record.ip != guard.NO_IP else self.place()
        access = guard.ACCESS[record.access]
        if record.origin == guard.FROM_CODE:
            return explain(self.context, record.address, None, access, space, by)
        found = arena.locate(record.address)
        if found is None:
            return SoftgenError(f"{by}: {access} at host address {record.address:#x}, which is in no arena")
        fault = explain(self.context, record.address, found.address, access, space, by)
        why = fault.why.replace(space.outside(fault.address), self._why(fault.address, fault.access))
        return GpuFault(fault.address, fault.access, space.name, fault.by or self.place(), why)

    def _why(self, address: int, access: str) -> str:
        """The reason that the space gives for a fault."""
        space = self.shared.space
        try:
            space.write(address, space.read(address, 1)) if access in WRITES else space.read(address, 1)
        except GpuFault as fault:
            return fault.why
        return space.outside(address)
