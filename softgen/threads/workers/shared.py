"""The part of a dispatch that its workers share: the program, the engine, and bindings for compiled code."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from softgen.errors import SoftgenError
from softgen.eu.engine_protocol import CompiledFunction, CompilerEngine
from softgen.eu.interpreter import SENDS, KernelProgram
from softgen.eu.isa.rules import rules
from softgen.eu.semantics.send import build_message
from softgen.eu.thread.state import ThreadState
from softgen.shared_functions import descriptors
from softgen.threads import places
from softgen.threads.bindings import BASES, BindingCache
from softgen.threads.dispatch import DispatchContext, Stepper, ThreadDispatch
from softgen.threads.interpreted import interpreted
from softgen.threads.native.scheduler import FallbackAnswer
from softgen.threads.payload import TemplatePayload
from softgen.threads.programs import DispatchProgram
from softgen.threads.workers.affine import affine_rows
from softgen.threads.workers.answers import KnownAnswer

MANY = 8192  # threads: functions for their messages are worth to be compiled before


class Reports:
    """Where reports about a program's threads go."""

    def __init__(self, context: DispatchContext, program: DispatchProgram) -> None:
        self.context, self.program = context, program

    def warn(self, sender: object, what: str) -> None:
        """A message did something wrong."""
        self.context.warn(places.accessed(self.program, sender, what))


class SharedDispatch:
    """Raises Unsupported, with the reason, where compiled code cannot reach the memory."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, engine: CompilerEngine,
                 bindings: BindingCache | None = None) -> None:  # fmt: skip
        self.dispatch, self.program, self.engine, self.space, self.bases = dispatch, program, engine, context.space, context.bases
        self.gen, self.rules = context.generation.number, rules(context.generation.number)
        self.bound = (bindings or BindingCache()).find(context, dispatch)
        self.reports = Reports(context, program)
        self.bound.dispatch.warn = self.reports.warn
        self._prepared: CompiledFunction | None = None  # the last function whose surfaces were resolved
        self._learnt = True  # units may have read state, or reported something, since they were renewed: only the interpreter does
        self._binding = threading.Lock()  # units fill their tables for one worker at a time
        self.rows, self.full = affine_rows(dispatch), dispatch.full
        self.strip = 0  # groups of a strip (strips.py); 0: groups run one by one

    @property
    def stepped(self) -> Callable[[Callable[[], str]], None] | None:
        return self.reports.context.stepped

    @property
    def stepper(self) -> Stepper | None:
        return self.reports.context.stepper

    @property
    def elapsed(self) -> int:
        return self.reports.context.elapsed

    def report_to(self, context: DispatchContext) -> None:
        """What a message did wrong, and instructions on the interpreter, are reported to this context."""
        self.reports.context = context

    def holds(self, context: DispatchContext, program: DispatchProgram) -> bool:
        """Whether another dispatch by the same record may use it: what can change in between is compared."""
        if program is not self.program or context.space is not self.space or not self._same_bases(context.bases):
            return False
        if not self.bound.follow_table(self.dispatch.binding_table):
            return False
        self.bound.renew()
        self.reports.context = context
        return True

    def renew(self, context: DispatchContext, dispatch: ThreadDispatch) -> bool:
        """Variant of holds() where program, space and base addresses are known to be the same, and what the binding table leads to."""
        bound = self.bound
        if not bound.follow_surfaces(dispatch.binding_table):
            return False
        self.program.used_in(context)
        self.dispatch, self.reports.context = dispatch, context
        if self._learnt:
            self._learnt = False
            bound.renew()
        return True

    def follow_rows(self) -> None:
        """The payload has other data."""
        rows = affine_rows(self.dispatch)
        self.rows = self.rows if rows == self.rows else rows  # workers compare identities

    def _same_bases(self, bases: Mapping[str, int]) -> bool:
        return bases is self.bases or all(bases.get(name) == self.bases.get(name) for name in BASES)

    def function(self, control: int, entry: int | None = None) -> CompiledFunction:
        """Code for threads whose cr0.0 is `control`, its surfaces resolved; `entry` is the ip of a thread that resumes.
        In the system routine the interpreter executes every instruction."""
        program: KernelProgram | None = self.program
        if entry is not None and not self.program.inside(entry):
            program = self.program.elsewhere(entry) if self.program.routine(entry) is None else None
        if program is None:
            return interpreted()
        found = self.engine.function(program, control, self.dispatch.simd, self.full, entry, self.rows)
        self.prepare(found)
        return found

    def prepare(self, found: CompiledFunction) -> None:
        """Resolves the surfaces of code."""
        if found is self._prepared:
            return
        self._learnt = True
        hurry = found.joint or self.dispatch.groups * self.dispatch.threads >= MANY  # a translated kernel is worth it, too
        with self._binding:
            self.bound.prepare(found.indices, hurry)
        self._prepared = found

    @property
    def _answers(self) -> dict[tuple[int, int, int], KnownAnswer]:
        """What threads of the program were answered in dispatches like this one, by status, cr0.0 and ip."""
        key = self.engine, self.dispatch.simd, self.full, self.rows
        found: dict[tuple[int, int, int], KnownAnswer] = self.program.answers.setdefault(key, {})
        return found

    @property
    def known_answers(self) -> tuple[KnownAnswer, ...]:
        """Those that hold for this dispatch."""
        return () if self.stepper is not None else tuple(self._answers.values())

    def keep_answer(self, answer: FallbackAnswer, chosen: CompiledFunction | None) -> None:
        """Keeps an answer for later dispatches, if its code stays the engine's choice."""
        if self.stepper is None and (chosen is None or self.engine.settled(chosen)):
            self._answers[answer.status, answer.control, answer.ip] = KnownAnswer(answer, chosen)

    def independent(self) -> bool:
        """Whether threads of a group have nothing in common but memory. A kernel may wait at a barrier that no command has enabled."""
        dispatch = self.dispatch
        if dispatch.barrier or dispatch.local_bytes or not isinstance(dispatch.payload, TemplatePayload):
            return False
        self.function(dispatch.control[0])  # reads the code
        return not self.program.waits

    def learn(self, thread: ThreadState) -> bool:
        """Resolves what the message that a thread is about to send lacked; True if compiled code can now execute it."""
        self._learnt = True
        inst = self.program.line(thread.ip).instruction
        if inst.opcode not in SENDS:
            return False
        try:
            sent = build_message(thread, inst, 0, 0)
        except SoftgenError:  # the interpreter reports it
            return False
        found = descriptors.identify(sent.sfid, sent.descriptor, self.gen)
        with self._binding:
            return found is not None and self.bound.resolve(found, None if self.rules.message_registers else sent)
