"""What a hardware context keeps on an engine: latched state, each pipeline's part, registers. It outlives a submission."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from softgen.command import Pipeline
from softgen.streamer.latch import LatchedState

StateT = TypeVar("StateT")


@dataclass(eq=False)
class SavedContext:
    """What a hardware context keeps on an engine from one submission to the next."""

    latched: LatchedState
    pipelines: dict[type[Any], Any] = field(default_factory=dict)  # each pipeline's part, by the class its new_state() makes
    unflushed: bool = False  # work was started that no stalling flush has followed
    unfinished: bool = False  # pipelines have collected work that they have not started
    registers: dict[int, int] = field(default_factory=dict)  # of contexts that MI_SET_CONTEXT switches
    earlier: frozenset[str] = frozenset()  # fields of rules (`earlier`) that commands have set since work was started
    instructions: int = 0  # that threads of its submissions have executed
    # loaded by MI_SET_CONTEXT in this one's ring; it stays when the ring runs dry
    loaded: SavedContext | None = field(default=None, repr=False)

    def state(self, kind: type[StateT], pipelines: Iterable[Pipeline]) -> StateT:
        """A pipeline's part, made when it is first asked for."""
        if kind not in self.pipelines:
            for pipeline in pipelines:
                made = pipeline.new_state()
                self.pipelines.setdefault(type(made), made)
        found: StateT = self.pipelines[kind]
        return found

    def reset(self) -> None:
        """Back to a new context's state."""
        self.latched, self.pipelines, self.registers = LatchedState(self.latched.table), {}, {}

    def copy(self) -> SavedContext:
        """A context of its own with the same state."""
        parts = {kind: copy.deepcopy(part) for kind, part in self.pipelines.items()}
        return SavedContext(self.latched.copy(), parts, self.unflushed, self.unfinished, dict(self.registers))
