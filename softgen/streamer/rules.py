"""Checks of rules that the manuals give for commands.

Reads   PIPE_CONTROL
Writes  nothing: a broken rule is a warning, the command is executed all the same

The rules are rows of spec/streamer/rules.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from softgen.bits.generation import SPEC
from softgen.bits.record import Record

MOST_KEPT = 1 << 12  # answers for a command
OTHERWISE: dict[str, Any] = {"pipeline": "", "unflushed": False, "never": False, "nothing": False, "earlier": False}  # need not be said


class Rule(NamedTuple):
    when: tuple[str, ...]  # fields of which one is set; none: always
    needs: tuple[str, ...]  # fields that must all be set then
    forbids: tuple[str, ...]  # fields that must be clear then
    value: int | None  # the value `when` must have; None: anything but zero
    engines: tuple[str, ...]  # none: all
    pipeline: str  # the selected one for which it holds; "": any
    unflushed: bool  # broken while work was started that no stalling flush has followed
    never: bool  # not to be set at all
    nothing: bool  # something must be set
    earlier: bool  # `needs` may have been set by a command before, with no work in between
    says: str


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads((SPEC / "streamer" / "rules.toml").read_text("utf-8"))


def commands(rules: str) -> frozenset[str]:
    """The commands that a generation has rules for."""
    return frozenset(_table().get(rules, {}))


@cache
def _rules(command: str, rules: str) -> tuple[Rule, ...]:
    return tuple(_rule(row) for row in _table().get(rules, {}).get(command, ()))


def _rule(row: dict[str, Any]) -> Rule:
    when, needs, forbids, engines = (tuple(row.get(name, ())) for name in ("when", "needs", "forbids", "engines"))
    pipeline, unflushed, never, nothing, earlier = (row.get(name, other) for name, other in OTHERWISE.items())
    return Rule(when, needs, forbids, row.get("value"), engines, pipeline, unflushed, never, nothing, earlier, row["says"])


@cache
def some(command: str, rules: str) -> bool:
    """Whether there are any for a command."""
    return bool(_rules(command, rules))


@cache
def ruled_fields(command: str, rules: str) -> frozenset[str]:
    """The fields that rules for a command are about."""
    return frozenset(name for rule in _rules(command, rules) for name in (*rule.when, *rule.needs, *rule.forbids))


NONE: frozenset[str] = frozenset()


def broken(command: str, values: Record, rules: str, engine: str, pipeline: str, unflushed: bool,
           earlier: frozenset[str] = NONE) -> tuple[str, ...]:  # fmt: skip
    """The texts of broken rules, among those of a name. `earlier`: fields of `earlier_fields` that commands before had set."""
    kept, seen = _kept_answers(command, rules, type(values))
    key = seen(values), engine, pipeline, unflushed, earlier
    found = kept.get(key)
    if found is None:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        found = kept[key] = tuple(_broken(_rules(command, rules), values, engine, pipeline, unflushed, earlier))
    return found


@cache
def earlier_fields(command: str, rules: str) -> frozenset[str]:
    """The fields that may have been set by an earlier command of that name, with no work in between."""
    return frozenset(name for rule in _rules(command, rules) if rule.earlier for name in rule.needs)


@cache
def _kept_answers(command: str, rules: str, kind: type[Record]) -> tuple[dict[Any, tuple[str, ...]], Callable[[Record], Any]]:
    """Answers that are kept, and what of a record they depend on: addresses and data differ from command to command."""
    table, names = _rules(command, rules), ruled_fields(command, rules)
    places = [number for number, name in enumerate(kind._fields) if name in names]
    fields = itemgetter(*places) if places else lambda values: ()
    return {}, (lambda values: (fields(values), any(values))) if any(rule.nothing for rule in table) else fields


def _broken(rules: tuple[Rule, ...], values: Record, engine: str, pipeline: str, unflushed: bool,
            earlier: frozenset[str] = NONE) -> Iterator[str]:  # fmt: skip
    for rule in rules:
        if rule.engines and engine not in rule.engines or rule.pipeline and pipeline != rule.pipeline or rule.unflushed and not unflushed:
            continue
        if rule.nothing:
            applies = not any(values)
        elif rule.when:
            applies = any(_set(values, name, rule.value) for name in rule.when) and not _kept(rule, values, earlier)
        else:
            applies = rule.unflushed
        if applies:
            yield rule.says


def _set(values: Record, name: str, value: int | None = None) -> bool:
    return bool(getattr(values, name)) if value is None else getattr(values, name) == value


def _kept(rule: Rule, values: Record, earlier: frozenset[str]) -> bool:
    if rule.never:
        return False
    has = all(_set(values, name) or rule.earlier and name in earlier for name in rule.needs)
    return has and not any(_set(values, name) for name in rule.forbids)
