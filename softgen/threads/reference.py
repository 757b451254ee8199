"""Thread groups on the reference engine: the threads of a group run in turns on one host thread, with a barrier and local memory.

A thread runs until it ends, waits, or has taken its share of backward branches. If all threads that are left wait for notifications that
none of them will send, that is an error and not a hang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from softgen.errors import SoftgenError
from softgen.eu.interpreter import Interpreter, KernelProgram, RunOutcome
from softgen.eu.thread.state import ThreadState
from softgen.shared_functions import units
from softgen.shared_functions.dataport.watched import AccessWatch
from softgen.shared_functions.unit import DispatchBindings, GroupBindings, MessageHandler, handlers
from softgen.threads import places
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.dispatch import DispatchContext, Finished, ThreadDispatch, TimedOut, never
from softgen.threads.programs import load
from softgen.threads.world import undefined_bytes

TURN = 500  # backward branches that a thread may take in one turn
NOTIFICATION = 0  # the register of n0 that barriers count in (public Intel PRM, message gateway)


def run(context: DispatchContext, dispatch: ThreadDispatch, timed_out: TimedOut = never,
        program: KernelProgram | None = None, fill: int = 0) -> Iterator[Finished]:  # fmt: skip
    """All groups of a dispatch, in order. `fill`: what bytes hold that nothing has written."""
    program = program or load(context, dispatch)
    bindings = dispatch_bindings(context, dispatch)
    bindings.warn = lambda sender, what: context.warn(places.accessed(program, sender, what))
    for group in range(dispatch.groups):
        if timed_out():
            raise places.timed_out_before(dispatch, group, program)
        yield ReferenceGroup(context, dispatch, group, program, bindings, fill).run(timed_out)


def start_thread(gen: float, dispatch: ThreadDispatch, group: int, number: int,
                 messages: Mapping[int, MessageHandler] | None = None, elapsed: int = 0) -> ThreadState:  # fmt: skip
    """A thread as it starts, but for its payload."""
    thread = ThreadState(gen, dict(messages or {}), dispatch.kernel, dispatch.mask(number, group))
    thread.dwords("cr")[: len(dispatch.control)] = dispatch.control
    thread.dwords("sr")[0] = dispatch.thread_state
    thread.system_routine = dispatch.system_routine
    thread.clock = lambda: elapsed + thread.executed
    return thread


class ReferenceGroup:
    """One thread group on the interpreter."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, group: int, program: KernelProgram,
                 bindings: DispatchBindings, fill: int = 0, watch: AccessWatch | None = None) -> None:  # fmt: skip
        self.fill, self.barriers = fill, 0
        self.dispatch, self.group, self.elapsed, gen = dispatch, group, context.elapsed, context.generation.number
        self.told = context.told
        self.local = np.full(dispatch.local_bytes, fill, np.uint8)
        own = GroupBindings(bindings, self.local, dispatch.group_size(group), self._notify, watch)
        messages = handlers([units.named(name) for name in dispatch.units], own)
        self.threads = [self._thread(gen, number, messages) for number in range(dispatch.group_size(group))]
        self.runners = [Interpreter(thread, program, text=places.text) for thread in self.threads]

    def _thread(self, gen: float, number: int, messages: Mapping[int, MessageHandler]) -> ThreadState:
        thread = start_thread(gen, self.dispatch, self.group, number, messages, self.elapsed)
        if self.fill:
            for first, last in undefined_bytes():
                thread.block[first:last] = self.fill
        payload = self.dispatch.start_registers(self.group, number)
        thread.grf[: len(payload)] = np.frombuffer(payload, np.uint8)
        return thread

    def _notify(self) -> None:
        self.barriers += 1
        for thread in self.threads:
            thread.dwords("n")[NOTIFICATION] += 1

    def run(self, timed_out: TimedOut) -> Finished:
        left = self.runners
        while left:
            moved = False
            for runner in left:
                before = runner.thread.executed
                try:
                    outcome = runner.run(TURN)
                except SoftgenError as error:
                    raise places.placed(error, self._place(runner)) from None
                moved |= runner.thread.executed > before
                if outcome is RunOutcome.OUT_OF_BUDGET:
                    self.told(partial(self._place, runner))
                    if timed_out():
                        raise places.timed_out(self._place(runner))
            left = [runner for runner in left if not runner.thread.ended]
            if left and not moved:
                raise places.deadlock(self._place(left[0]), len(left), len(self.threads))
        return Finished(len(self.threads), sum(thread.executed for thread in self.threads))

    def _place(self, runner: Interpreter) -> places.ThreadPlace:
        thread = runner.thread
        return places.thread_at(self.dispatch, self.group, self.threads.index(thread), runner.code, thread.ip, thread.executed)
