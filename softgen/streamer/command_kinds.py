"""Classification of commands: those that need only their handler, and those that only set state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from softgen.bits.generation import Generation
from softgen.bits.layout import Layout
from softgen.streamer import privilege, rules
from softgen.streamer.parser import Command, understood

WALKED = frozenset({"MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_END"})  # commands that move the fetch pointer
Handler = Callable[[Any, Any], None]
MOST_HEADERS = 1 << 12  # that are kept


class SimpleCommand(NamedTuple):
    """A command that a handler alone may execute in any batch."""

    layout: Layout
    length: int
    ruled: bool  # there are rules to check
    handler: Handler
    reads_registers: bool  # its handler may read any register
    guarded: bool  # only privileged batches may hold it, by what it loads


class SimpleCommands(dict[int, SimpleCommand | None]):
    """Simple commands of one engine by their header; None: any other command, or one without a handler. Filled as headers are met."""

    def __init__(self, gen: float, engine: str, rules_name: str, handlers: Mapping[str, Handler]) -> None:
        self._key = gen, engine, rules_name, handlers

    def __missing__(self, header: int) -> SimpleCommand | None:
        if len(self) >= MOST_HEADERS:
            self.clear()
        found = self[header] = simple_command(header, *self._key)
        return found


def simple_commands(kept: dict[str, Any], generation: Generation, engine: str, handlers: Mapping[str, Handler]) -> SimpleCommands:
    """Those of an engine, which a device keeps."""
    found: SimpleCommands | None = kept.get(engine)
    return found if found is not None else kept.setdefault(engine, SimpleCommands(generation.number, engine, generation.rules, handlers))


def simple_command(header: int, gen: float, engine: str, rules_name: str, handlers: Mapping[str, Handler]) -> SimpleCommand | None:
    """The command that a header begins; None if it has no handler, or needs more than its handler."""
    layout, length, problems = understood(header, gen, engine)
    if layout is None or problems or layout.name in WALKED or layout.name not in handlers:
        return None
    name, guarded = layout.name, privilege.loads(layout.name)
    if privilege.matters(name) and not guarded:
        return None
    return SimpleCommand(layout, length, rules.some(name, rules_name), handlers[name], name.startswith("MI_"), guarded)


def only_sets_state(command: Command) -> bool:
    """Whether a command does no more than set state, as its page says."""
    effect = command.layout.effect if command.layout else None
    return effect is not None and effect.sets_state and not any(getattr(command.record, name) for name in effect.acts_when)
