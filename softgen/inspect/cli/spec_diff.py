"""`softgen spec [NAME] --diff GPU GPU`: what changed from one GPU to another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softgen.bits.catalogue import catalogue
from softgen.errors import UsageError
from softgen.inspect import spec_names
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import Paint, counted, paint, print_json, table
from softgen.inspect.spec_diff import Change, Difference, compare_all, difference_json

MARKS = {"added": "+", "removed": "-", "moved": ">", "renamed": "~", "changed": "*"}
ROLES = {"added": "good", "removed": "bad", "moved": "warn", "renamed": "warn", "changed": "warn"}
LONGEST = 60  # characters of what a field means; the rest is for who asks for the field's page


def run(asked: str | None, gpus: list[str], kind: str | None, as_json: bool) -> int:
    old, new = (find(gpu) for gpu in gpus)
    names = wanted(asked, kind, (old.generation.number, new.generation.number))
    found = list(compare_all(names, old.generation.number, new.generation.number))
    if as_json:
        print_json({"from": old.name, "to": new.name, "names": {one.name: difference_json(one) for one in found}})
        return 0
    colour = paint()
    title = f"{old.name} (gen {old.generation.number:g}) to {new.name} (gen {new.generation.number:g})"
    print(colour(title, "heading"))
    for line in lines(found, len(names) == 1 or len(found) == 1, colour):
        print(line)
    if not found:
        same = "they are of one generation" if old.generation.number == new.generation.number else f"{counted(len(names), 'name')} compared"
        print(f"no difference: {same}")
    return 0


def wanted(asked: str | None, kind: str | None, gens: tuple[float, float]) -> list[str]:
    if kind == "enum":
        raise UsageError("enumerations are compared with the fields that have them; name one of those")
    if asked is None:
        return catalogue().names(kind)
    named = spec_names.find(asked, kind, gens) or (spec_names.holders(asked, kind) if asked.isidentifier() else [])
    names = [name for name in named if not spec_names.is_enum(name)]
    if not names:
        meant = spec_names.close(asked, kind)
        raise UsageError(f"no page describes {asked!r}" + (f"; did you mean {' or '.join(meant)}?" if meant else ""))
    here = [name for name in names if any(gen in catalogue().history(name) for gen in gens)]
    if not here:
        raise UsageError(f"neither GPU has {asked}")
    return here


def lines(found: list[Difference], whole: bool, colour: Paint) -> Iterator[str]:
    """Every field for one name; for many, those that came, those that went, and how much changed in the rest."""
    if whole:
        for one in found:
            yield from one_name(one, colour)
        return
    for kind in ("added", "removed"):
        names = [one.name for one in found if one.kind == kind]
        if names:
            yield ""
            yield colour(f"{counted(len(names), 'name')} {kind}", ROLES[kind])
            yield from (f"  {MARKS[kind]} {name}" for name in names)
    changed = [one for one in found if one.kind == "changed"]
    if changed:
        yield ""
        yield colour(f"{counted(len(changed), 'name')} changed", ROLES["changed"])
        yield from (f"  {line}" for line in table([(MARKS["changed"], one.name, summary(one)) for one in changed]))


def summary(found: Difference) -> str:
    parts = [f"{what} {old or 'none'} to {new or 'none'}" for what, old, new in found.frame]
    for kind in MARKS:
        number = sum(one.kind == kind for one in found.changes)
        parts += [f"{number} {kind}"] if number else []
    return ", ".join(parts)


def one_name(found: Difference, colour: Paint) -> Iterator[str]:
    yield f"{colour(found.name, 'name')}  {found.kind}"
    yield from (f"  {what}: {old or 'none'} to {new or 'none'}" for what, old, new in found.frame)
    yield from (f"  {line}" for line in table([row(one, colour) for one in found.changes]))


def row(change: Change, colour: Paint) -> tuple[Any, ...]:
    before, after = change.before, change.after
    mark = colour(f"{MARKS[change.kind]} {change.kind}", ROLES[change.kind])
    if change.kind == "renamed" and before and after:
        return mark, str(after), f"{before.name} is now {after.name}"
    if change.kind == "moved" and before and after:
        return mark, f"{before} to {after}", change.name
    if change.kind == "changed" and before and after:
        return mark, str(after), f"{change.name}: {short(before.meaning)} is now {short(after.meaning)}"
    return mark, str(after or before), f"{change.name}: {short((after or before).meaning)}"  # type: ignore[union-attr]


def short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
