"""The events of a capture: submissions and their commands, numbered as POSITION numbers them, without executing anything.

What the GPU itself decides (predicates, batches that it writes) is not known here: commands are numbered as if it decided nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from softgen.bits import describe
from softgen.bits.layout import Layout
from softgen.inspect.decode import kernels
from softgen.inspect.decode.decoding import Decoder
from softgen.inspect.decode.indirect_state import IndirectKernel, IndirectState
from softgen.position import Position
from softgen.streamer.parser import Command
from softgen.trace.work import Work, WorkTrace

DRAWS = frozenset({"3DPRIMITIVE"})
DISPATCHES = frozenset({"GPGPU_WALKER", "MEDIA_OBJECT", "MEDIA_OBJECT_WALKER", "MEDIA_OBJECT_GRPID", "MEDIA_OBJECT_PRT"})


def kind_of(name: str | None, sets_state: bool) -> str:
    """What a command is to a timeline: draw, dispatch, state, or other."""
    if name in DRAWS:
        return "draw"
    return "dispatch" if name in DISPATCHES else "state" if sets_state else "other"


@dataclass(frozen=True)
class Event:
    """A command of a submission."""

    position: Position
    kind: str  # draw, dispatch, state, other
    name: str  # as the manual has it; "" where no page describes it
    address: int
    batch: int
    dwords: tuple[int, ...] = field(repr=False)
    fields: dict[str, Any] = field(repr=False, default_factory=dict)
    kernels: dict[str, int] = field(repr=False, default_factory=dict)  # stage: address, of what this command points to
    code: dict[str, bytes] = field(repr=False, default_factory=dict)  # stage: the kernel's instructions
    layout: Layout | None = field(repr=False, default=None)
    states: list[tuple[Layout, int, list[int]]] = field(repr=False, default_factory=list)  # structures it points to: where, and dwords

    def as_json(self) -> dict[str, Any]:
        return {"position": str(self.position), "kind": self.kind, "name": self.name, "address": self.address, "batch": self.batch,
                "dwords": list(self.dwords), "fields": self.fields, "kernels": self.kernels}  # fmt: skip


@dataclass(frozen=True)
class SubmissionEvents:
    """A submission: its number in the capture, its engine, and its commands in order."""

    number: int
    engine: str
    label: str
    events: tuple[Event, ...]


def submissions(trace: WorkTrace) -> Iterator[SubmissionEvents]:
    """All submissions of a trace."""
    decoder, gen = Decoder(trace), trace.device.generation.number
    for work, items in decoder.work():
        found: list[Event] = []
        read: dict[int, bytes] = {}
        for item in items:
            match item.what:
                case Command() as command:
                    found.append(_event(work, len(found) + 1, command))
                case IndirectKernel() as kernel if found:
                    stage, address = kernel.stage.lower(), kernel.address
                    if address not in read:
                        read[address] = kernels.read(work.space, kernel, gen).code
                    found[-1].kernels[stage], found[-1].code[stage] = address, read[address]
                case IndirectState() as state if found and state.certain and not state.problem:
                    found[-1].states.append((state.layout, state.address, state.dwords))
                case _:
                    pass
        yield SubmissionEvents(work.sequence, work.engine, work.label or f"submission {work.sequence}", tuple(found))


def _event(work: Work, number: int, command: Command) -> Event:
    layout = command.layout
    sets_state = layout is not None and layout.effect is not None and layout.effect.sets_state
    fields = describe.to_json(layout, command.dwords) if layout is not None else {}
    return Event(Position(work.sequence, number), kind_of(command.name, sets_state), command.name or "", command.address, command.batch,
                 tuple(command.dwords), fields, layout=layout)  # fmt: skip
