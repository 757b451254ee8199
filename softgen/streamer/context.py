"""What a hardware context keeps on an engine: latched state, each pipeline's part, registers. It outlives a submission."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from softgen.bits.record import Record
from softgen.command import ConstantUrbEntry, Pipeline
from softgen.streamer.latch import LatchedState

StateT = TypeVar("StateT")


@runtime_checkable
class RestoredPart(Protocol):
    """A pipeline's part of a context that keeps state which is latched as well."""

    def restored(self, latched: Mapping[str, Record]) -> None: ...


@dataclass(eq=False)
class SavedContext:
    """What a hardware context keeps on an engine from one submission to the next."""

    latched: LatchedState
    pipelines: dict[type[Any], Any] = field(default_factory=dict)  # each pipeline's part, by the class its new_state() makes
    unflushed: bool = False  # work was started that no stalling flush has followed
    unfinished: bool = False  # pipelines have collected work that they have not started
    registers: dict[int, int] = field(default_factory=dict)  # of contexts that MI_SET_CONTEXT switches
    earlier: frozenset[str] = frozenset()  # fields of rules (`earlier`) that commands have set since work was started
    invalidated: dict[str, int] = field(default_factory=dict)  # state that is not restored: how often it had been latched until then
    invalid_constants: bytes | None = None  # the constant URB entry that is not restored
    instructions: int = 0  # that threads of its submissions have executed
    # loaded by MI_SET_CONTEXT in this one's ring; it stays when the ring runs dry
    loaded: SavedContext | None = field(default=None, repr=False)

    def state(self, kind: type[StateT], pipelines: Iterable[Pipeline]) -> StateT:
        """A pipeline's part, or one that pipelines share, made when it is first asked for."""
        if kind not in self.pipelines:
            for pipeline in pipelines:
                made = pipeline.new_state()
                self.pipelines.setdefault(type(made), made)
            if kind not in self.pipelines:
                self.pipelines[kind] = kind()
        found: StateT = self.pipelines[kind]
        return found

    def reset(self) -> None:
        """Back to a new context's state."""
        self.latched, self.pipelines, self.registers, self.invalidated = LatchedState(self.latched.table), {}, {}, {}

    def invalidate(self, commands: Iterable[str]) -> None:
        """Marks state as invalid: it is lost when the context is switched out, unless it is set again before."""
        self.invalidated |= {name: self.latched.latched_count(name) for name in commands}
        self.invalid_constants = self._constants().data

    def drop_invalid(self) -> None:
        """Forgets what is marked as invalid, when the context is switched out (ICL 1042-1049, G45 1747-1751)."""
        lost = [name for name, count in self.invalidated.items() if count and self.latched.latched_count(name) == count]
        if lost:
            self.restore(self.latched.without(lost))
        if self.invalidated and self.invalid_constants is (held := self._constants()).data:
            held.data = None
        self.invalidated, self.invalid_constants = {}, None

    def restore(self, latched: LatchedState) -> None:
        """Takes state commands as they were restored from an image; parts of pipelines that keep some of them do as well."""
        self.latched = latched
        for part in self.pipelines.values():
            if isinstance(part, RestoredPart):
                part.restored(latched)

    def _constants(self) -> ConstantUrbEntry:
        held: ConstantUrbEntry = self.pipelines.setdefault(ConstantUrbEntry, ConstantUrbEntry())
        return held

    def copy(self) -> SavedContext:
        """A context of its own with the same state."""
        parts = {kind: copy.deepcopy(part) for kind, part in self.pipelines.items()}
        return SavedContext(self.latched.copy(), parts, self.unflushed, self.unfinished, dict(self.registers),
                            invalidated=dict(self.invalidated), invalid_constants=self.invalid_constants)  # fmt: skip
