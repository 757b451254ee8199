"""A stage of a draw: what Python builds of it for the walk (draw.c), and answers for it.

    class DoNothing(Stage):
        name, run = "nothing", "stage_nothing"      # the C function, int64_t stage_nothing(struct draw *, struct stage *, void *)

        def build(self, record, into):
            return True                             # it is on

`stages.py` says which stages a draw has, in which order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from softgen.command import CommandStreamer
from softgen.errors import GpuFault
from softgen.memory import guard
from softgen.shared_functions.urb.memory import UrbMemory
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.native.scheduler import ReturnReason, WorkerPart
from softgen.threads.native.scheduler_h import UndefinedDwords
from softgen.threads.workers.late_fields import leave_undefined
from softgen.three_d.draw.draw_structures import DrawReason, DrawStruct, RecordStruct, StageStruct, function
from softgen.three_d.state.state import DrawCall, DrawState
from softgen.three_d.structures import ChunkStruct, ObjectArray, VertexArray

if TYPE_CHECKING:
    from softgen.threads.workers.kept_loop import KeptLoop

Undefined = Callable[[], Sequence[UndefinedDwords]]


class BuiltRecord(Protocol):
    """What a stage sees of the record that it is built for (DrawRecord)."""

    cs: Any
    pipeline: Any  # PipelinePlans: memory and plans that last from draw to draw
    plans: Any  # DrawPlans
    state: DrawState
    call: DrawCall
    keeper: Any  # RecordKeeper, or None: the record is not kept
    context: DispatchContext
    struct: RecordStruct
    last_chunk: ChunkStruct  # what the stage before puts out, and the URB that has its entries
    last_urb: UrbMemory
    patches: Any  # PatchArray of HS, or None
    points: Any  # DomainChunk of TE, or None
    threaded: list[ThreadedStage]

    @property
    def front(self) -> Any: ...
    @property
    def fetch(self) -> Any: ...
    @property
    def chunk(self) -> Any: ...
    @property
    def geometry(self) -> Any: ...
    @property
    def loops(self) -> Sequence[KeptLoop]: ...

    def not_kept(self, why: str) -> None: ...
    def put_out(self, vertices: VertexArray, objects: ObjectArray, urb: UrbMemory) -> ChunkStruct: ...
    def constants(self, stage: str) -> tuple[int, int]: ...
    def start(self, stage: ThreadedStage, dispatch: ThreadDispatch, header: int, context: DispatchContext | None = None) -> KeptLoop: ...
    def count(self) -> None: ...


class WalkedDraw(Protocol):
    """What a stage sees of the draw under way (DrawWalk)."""

    cs: Any
    record: Any
    pipeline: Any
    struct: DrawStruct
    fault: guard.FaultRecord
    helped: bool

    @property
    def context(self) -> DispatchContext: ...
    @property
    def running(self) -> Sequence[WorkerPart]: ...

    def needed_python(self) -> None: ...
    def share(self, stage: ThreadedStage) -> None: ...


class Stage:
    """A stage of one draw; fixed functions need nothing of Python while it runs."""

    name = ""  # as state, messages and kernels call it
    run = ""  # the C function that the walk calls
    ends = False  # once it is built: nothing goes on to the stages after it, which are not built

    def build(self, record: BuiltRecord, into: StageStruct) -> bool:
        """Fill in the stage for a draw's state; False: it is off."""
        raise NotImplementedError

    def answer(self, walk: WalkedDraw, why: int | None) -> None:
        """Do what `run` returned for, or raise; None: an access to memory that is not mapped, which `walk.fault` describes."""
        assert why is None, f"{self.name}: {why}"
        raise guard.fault(walk.fault, walk.cs.space)

    reports = False  # whether it has something to do after a draw:

    def report(self, cs: CommandStreamer) -> None:
        """Set registers, or warn of rules that the draw's threads have broken."""


NOT_BUILT = StageStruct()


class ThreadedStage(Stage):
    """A stage whose work EU threads do, batch after batch, on one or several host threads."""

    function = ""  # the loop over batches in C
    own = True  # no other record has its loop

    def __init__(self) -> None:
        self.into = NOT_BUILT
        self.kept: KeptLoop | None = None
        self._shared: tuple[object, ...] = ()  # memory that C points to

    def start(self, record: BuiltRecord, into: StageStruct, dispatch: ThreadDispatch, loop: ctypes.Structure, header: int,
              context: DispatchContext | None = None, undefined: Undefined | None = None) -> None:  # fmt: skip
        """A worker for threads of `dispatch`, which `loop` starts; `header` is the address of r0 as their payloads have it;
        `undefined` says what hardware leaves undefined of these."""
        self.kept = kept = record.start(self, dispatch, header, context)
        if undefined is not None and (value := record.cs.dispatcher.reserved):
            workers = kept.workers_for(record.cs.dispatcher.threads)
            self._undefined = [leave_undefined(worker.dispatch, undefined(), value) for worker in workers]
        self.into, self._loop = into, loop
        into.worker, into.loop, into.function = kept.worker.address, ctypes.addressof(loop), function(self.function)
        ctypes.c_uint64.from_buffer(loop).value = into.worker
        into.threaded, into.loops.size, into.loops.slots = 1, ctypes.sizeof(loop), dispatch.threads
        if dispatch.scratch is not None and dispatch.scratch.size:  # loops that run at the same time have scratch space of their own
            into.loops.most = max(dispatch.scratch.threads // dispatch.threads, 1)

    # -- several host threads ------------------------------------------------------------------------------------------------------

    def share(self, loops: int) -> None:
        """Workers for so many loops, and copies of the first loop for all others."""
        assert self.kept is not None
        workers = self.kept.workers_for(loops)
        parts = (WorkerPart * loops)(*(worker.part() for worker in workers))
        copies = (ctypes.c_uint8 * (max(loops - 1, 1) * int(self.into.loops.size)))()
        self._shared, held = (parts, copies), self.into.loops
        held.parts, held.copies, held.count = ctypes.addressof(parts), ctypes.addressof(copies), loops

    def unshare(self) -> None:
        """Frees the memory of workers but for the first."""
        assert self.kept is not None
        held, self._shared = self.into.loops, ()
        held.parts = held.copies = held.count = 0
        del self.kept.workers[1:]

    # -- answers ---------------------------------------------------------------------------------------------------------------------

    def answer(self, walk: WalkedDraw, why: int | None) -> None:
        if self.kept is None:
            super().answer(walk, why)
        elif why == DrawReason.NO_WORKERS:
            walk.share(self)
        elif why == DrawReason.LOOPS:
            self._answer_loops(walk, walk.running)
        else:
            if why != ReturnReason.DEADLINE:
                walk.needed_python()
            try:
                self.kept.answer(walk.context, why, lambda: self.timed_out(walk), walk.fault)
            except GpuFault as fault:
                raise self.explained(fault, [self._loop]) from None

    def _answer_loops(self, walk: WalkedDraw, parts: Sequence[WorkerPart]) -> None:
        """Do what loops on several host threads returned for."""
        assert self.kept is not None
        if any(part.signal or part.result != ReturnReason.DEADLINE for part in parts):
            walk.needed_python()
        try:
            self.kept.answer_parts(walk.context, parts, lambda: self.timed_out(walk))
        except GpuFault as fault:
            raise self.explained(fault, [type(self._loop).from_address(part.argument) for part in parts]) from None

    def timed_out(self, walk: WalkedDraw) -> bool:
        """Whether the time limit has passed."""
        return bool(walk.cs.timed_out())

    def explained(self, fault: GpuFault, loops: Sequence[Any]) -> GpuFault:
        """The fault of a stage's loops, with what made the access."""
        return fault
