"""The check for lost updates: threads take turns after each message, so that reading, changing and writing without an atomic shows.

The order worlds run threads one after another, between barriers and long loops. Here the first groups of each kernel's first dispatch run
on the interpreter, one after another. Where two of their threads store to the same byte, the groups run once more, each thread up to its
next message in turn, and memory is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from softgen.errors import SoftgenError
from softgen.inspect.check.accesses import unordered_accesses
from softgen.inspect.check.finding import ERROR, WARNING, Finding
from softgen.inspect.check.observed import FirstDispatches, observe
from softgen.inspect.check.replays import Opener
from softgen.inspect.check.turns import Turns
from softgen.shared_functions.dataport.watched import MemoryAccess
from softgen.threads.bindings import dispatch_bindings
from softgen.threads.compare.snapshot import MemorySnapshot
from softgen.threads.dispatch import DispatchContext, ThreadDispatch, TimedOut
from softgen.threads.programs import DispatchProgram
from softgen.threads.reference import ReferenceGroup
from softgen.threads.world import PLAIN

MESSAGES = "order messages"  # the world in which threads take turns after each message
MOST_INSTRUCTIONS = 1000  # of a dispatch, somewhat less than a second
MOST_STEPS = 4000  # of groups that are begun
MOST_GROUPS = 8  # at the same time


class StoresSeen:
    """The threads that store to bytes without an atomic operation, and whether two of them meet."""

    def __init__(self) -> None:
        self.memory: dict[int, object] = {}  # address and thread
        self.local: dict[int, object] = {}  # of the group under way
        self.meet = False

    def note(self, access: MemoryAccess) -> None:
        if access.kind == "write":
            seen = self.local if access.local else self.memory
            self.meet |= any(seen.setdefault(address, access.sender) is not access.sender for address in access.addresses.tolist())


class InterleavingDispatcher(FirstDispatches):
    """A dispatcher that looks for threads that store to the same bytes, and lets them take turns."""

    def wants(self, dispatch: ThreadDispatch) -> bool:
        return dispatch.stage == "cs"

    def look(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, timed_out: TimedOut) -> None:
        before = MemorySnapshot(context.space)
        try:
            count = self._alone(context, dispatch, program, timed_out)
            plain = before.changed()
            before.restore()
            if not count or any(turns.run(MOST_STEPS, timed_out) is None for turns in self._together(context, dispatch, program, count)):
                return
            other = before.changed()
            if plain != other:
                before.restore()
                self.findings.append(self._finding(context, dispatch, program, plain, other, timed_out))
        except SoftgenError:
            return  # the plain replay reports it
        finally:
            before.restore()

    def _alone(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, timed_out: TimedOut) -> int:
        """Run the first groups one after another, as many as there is time for; how many, if two of their threads store to a byte."""
        done, threads, number, seen = 0, 0, 0, StoresSeen()
        while number < min(dispatch.groups, MOST_GROUPS) and (done < MOST_INSTRUCTIONS or threads < 2):
            group = ReferenceGroup(context, dispatch, number, program, dispatch_bindings(context, dispatch), watch=seen.note)
            seen.local.clear()
            ran = Turns([group], program).run(MOST_STEPS - done, timed_out)
            if ran is None:
                return 0
            done, threads, number = done + ran, threads + len(group.threads), number + 1
        return number if seen.meet else 0

    def _together(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, count: int) -> Iterator[Turns]:
        """The same groups, all at the same time; one after another where they would have the same scratch space."""

        def group(number: int) -> ReferenceGroup:
            return ReferenceGroup(context, dispatch, number, program, dispatch_bindings(context, dispatch))

        if dispatch.scratch is not None and dispatch.scratch.base:  # the size is never zero
            yield from (Turns([group(number)], program, messages=True) for number in range(count))
        else:
            yield Turns([group(number) for number in range(count)], program, messages=True)

    def _finding(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, plain: dict[int, bytes],
                 other: dict[int, bytes], timed_out: TimedOut) -> Finding:  # fmt: skip
        found = unordered_accesses(context, dispatch, timed_out)
        where, witness = found.position.within(self.position()), (PLAIN.name, MESSAGES)
        effect = _effect(plain, other)
        if found.conflict is None and found.atomics:
            what = f"results of atomic operations depend on the order of threads: {effect}"
            return Finding("order", WARNING, what, program.title, where, witness)
        lines = found.lines if found.conflict is not None else () if found.complete else ("the accesses were not all looked at",)
        return Finding("race", ERROR, f"data race: {effect}", program.title, where, witness, lines)


def _effect(plain: dict[int, bytes], other: dict[int, bytes]) -> str:
    """Where two outcomes differ first. Pages that one of them has changed alone differ from the beginning."""
    page = min(page for page in {*plain, *other} if plain.get(page) != other.get(page))
    mine, its = plain.get(page), other.get(page)
    if mine is None or its is None:
        return f"the first difference is in the page at {page:#x}"
    at = next(at for at in range(len(mine)) if mine[at] != its[at]) & ~3
    values = [int.from_bytes(held[at : at + 4], "little") for held in (mine, its)]
    return f"where threads take turns after each message, {page + at:#x} holds {values[1]:#010x} in place of {values[0]:#010x}"


def check_interleaved(opener: Opener, engine: str, timed_out: Callable[[], bool] = lambda: False) -> list[Finding]:
    """The findings of all kernels of a capture's dispatches."""
    return observe(opener(), lambda position: InterleavingDispatcher(engine, position), timed_out).findings
