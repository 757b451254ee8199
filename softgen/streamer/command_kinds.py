"""Classification of commands: those that need only their handler, and those that only set state."""

from __future__ import annotations

from functools import lru_cache

from softgen.bits.layout import Layout
from softgen.streamer import privilege, rules
from softgen.streamer.parser import Command, understood

WALKED = frozenset({"MI_BATCH_BUFFER_START", "MI_BATCH_BUFFER_END"})  # commands that move the fetch pointer


@lru_cache(1 << 12)
def simple_command(header: int, gen: float, engine: str, rules_name: str) -> tuple[Layout, int, bool] | None:
    """Layout, length and whether there are rules, of a command that a handler alone may execute in any batch; None: any other."""
    layout, length, problems = understood(header, gen, engine)
    if layout is None or problems or layout.name in WALKED or privilege.matters(layout.name):
        return None
    return layout, length, rules.some(layout.name, rules_name)


def only_sets_state(command: Command) -> bool:
    """Whether a command does no more than set state, as its page says."""
    effect = command.layout.effect if command.layout else None
    return effect is not None and effect.sets_state and not any(getattr(command.record, name) for name in effect.acts_when)
