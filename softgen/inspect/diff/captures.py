"""Two captures side by side: their commands are aligned by name, submission by submission, then fields, structures and kernels compared.

Addresses and offsets differ between any two runs of a driver and are left out unless they are asked for: what they lead to is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher, unified_diff
from functools import lru_cache
from typing import Any

from softgen.bits import describe
from softgen.bits.layout import Layout
from softgen.eu.text import dialect
from softgen.inspect.session.events import Event
from softgen.inspect.session.session import Session

POINTERS = frozenset({"address", "offset"})  # types of fields


@dataclass(frozen=True)
class FieldDifference:
    """A field of a command, or of a structure that it points to."""

    field: str  # NAME, or STRUCTURE[NUMBER].NAME
    before: Any
    after: Any


@dataclass
class CommandDifference:
    """A command that is in one capture only, or differs between the two."""

    name: str
    before: str | None  # POSITION; None: it is not there
    after: str | None
    fields: list[FieldDifference] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)  # stages whose code differs

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class KernelDifference:
    """Kernels of a stage that aligned commands point to, with the difference of their instructions."""

    stage: str
    before: str  # POSITION of the first command that points to it
    after: str
    text: list[str]  # a unified difference


@dataclass
class CaptureDifference:
    """What differs between two captures."""

    commands: list[CommandDifference] = field(default_factory=list)
    kernels: list[KernelDifference] = field(default_factory=list)
    pairs: list[tuple[Event, Event]] = field(default_factory=list)  # all commands that were aligned
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.commands or self.kernels or self.notes)


def compare(before: Session, after: Session, addresses: bool = False) -> CaptureDifference:
    """Everything that differs between two captures, without executing them."""
    found = CaptureDifference()
    if before.gpu != after.gpu:
        found.notes.append(f"they are for different GPUs: {before.gpu} and {after.gpu}")
    first, second = before.submissions, after.submissions
    if len(first) != len(second):
        found.notes.append(f"{len(first)} submissions and {len(second)}")
    for left, right in zip(first, second, strict=False):
        _submission(left.events, right.events, addresses, found)
    for submission in first[len(second) :]:
        found.commands += [CommandDifference(event.name, str(event.position), None) for event in submission.events]
    for submission in second[len(first) :]:
        found.commands += [CommandDifference(event.name, None, str(event.position)) for event in submission.events]
    _kernels(found, before, after)
    return found


def _submission(left: Sequence[Event], right: Sequence[Event], addresses: bool, found: CaptureDifference) -> None:
    names = [event.name for event in left], [event.name for event in right]
    for tag, i, j, k, m in SequenceMatcher(a=names[0], b=names[1], autojunk=False).get_opcodes():
        if tag != "equal":
            found.commands += [CommandDifference(event.name, str(event.position), None) for event in left[i:j]]
            found.commands += [CommandDifference(event.name, None, str(event.position)) for event in right[k:m]]
            continue
        for one, other in zip(left[i:j], right[k:m], strict=True):
            found.pairs.append((one, other))
            fields = list(_fields(one, other, addresses))
            codes = sorted(stage for stage in one.code.keys() & other.code.keys() if one.code[stage] != other.code[stage])
            if fields or codes:
                found.commands.append(CommandDifference(one.name, str(one.position), str(other.position), fields, codes))


def _fields(one: Event, other: Event, addresses: bool) -> Iterator[FieldDifference]:
    """The fields of two commands of the same name that differ, then those of what they point to."""
    if one.layout is not None and other.layout is not None:
        yield from _differences("", _known(one.layout, one.fields, addresses), _known(other.layout, other.fields, addresses))
    if len(one.states) != len(other.states):
        yield FieldDifference("structures pointed to", len(one.states), len(other.states))
    for number, ((layout, _, dwords), (its_layout, _, its_dwords)) in enumerate(zip(one.states, other.states, strict=False)):
        if layout.name != its_layout.name:
            yield FieldDifference(f"structure {number}", layout.name, its_layout.name)
        elif dwords != its_dwords:
            values = (_known(its, describe.to_json(its, data), addresses) for its, data in ((layout, dwords), (its_layout, its_dwords)))
            yield from _differences(f"{layout.name}[{number}].", *values)


def _differences(prefix: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[FieldDifference]:
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name), after.get(name)
        if isinstance(one, list) and isinstance(other, list):
            for number in range(max(len(one), len(other))):
                parts = (rows[number] if number < len(rows) else {} for rows in (one, other))
                yield from _differences(f"{prefix}{name}[{number}].", *parts)
        elif one != other:
            yield FieldDifference(f"{prefix}{name}", _plain(one), _plain(other))


def _known(layout: Layout, fields: dict[str, Any], addresses: bool) -> dict[str, Any]:
    """Fields without pointers."""
    return fields if addresses else _without(fields, _pointers(layout))


def _without(fields: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: [_without(row, names) for row in value] if isinstance(value, list) else value
            for name, value in fields.items() if name not in names}  # fmt: skip


@lru_cache(1 << 10)
def _pointers(layout: Layout) -> frozenset[str]:
    derived = {name for name, _ in layout.derived if "address" in name}
    return frozenset(field.name for field, _ in layout.walk() if field.type.name in POINTERS) | derived


def _plain(value: Any) -> Any:
    """The name of an enumerated value, where it has one."""
    if isinstance(value, dict) and value.keys() == {"value", "name"}:
        return value["name"] if value["name"] is not None else value["value"]
    return value


def _kernels(found: CaptureDifference, before: Session, after: Session) -> None:
    """The kernels of aligned commands that differ, each pair once."""
    seen: set[tuple[str, bytes, bytes]] = set()
    gens = before._trace.device.generation.number, after._trace.device.generation.number
    for one, other in found.pairs:
        for stage in sorted(one.code.keys() & other.code.keys()):
            key = stage, one.code[stage], other.code[stage]
            if key[1] != key[2] and key not in seen:
                seen.add(key)
                texts = [dialect.text(code, gen).splitlines() for code, gen in zip(key[1:], gens, strict=True)]
                text = list(unified_diff(texts[0], texts[1], lineterm="", n=2))
                found.kernels.append(KernelDifference(stage, str(one.position), str(other.position), text))
