"""`softgen spec [NAME] --diff GPU GPU`: what changed from one GPU to another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softgen.bits.catalogue import catalogue
from softgen.errors import UsageError
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import Paint, counted, paint, print_json, table
from softgen.inspect.spec import spec_names
from softgen.inspect.spec.spec_diff import Change, Difference, compare_all, difference_json

MARKS = {"added": "+", "removed": "-", "moved": ">", "renamed": "~", "changed": "*"}
ROLES = {"added": "good", "removed": "bad", "moved": "warn", "renamed": "warn", "changed": "warn"}
LONGEST = 60  # characters of what a field means; the rest is for who asks for the field's page


def run(name: str | None, gpus: list[str], kind: str | None, as_json: bool) -> int:
    old, new = (find(gpu) for gpu in gpus)
    names = wanted(name, kind, (old.generation.number, new.generation.number))
    found = list(compare_all(names, old.generation.number, new.generation.number))
    if as_json:
        print_json({"from": old.name, "to": new.name, "names": {difference.name: difference_json(difference) for difference in found}})
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


def wanted(name: str | None, kind: str | None, gens: tuple[float, float]) -> list[str]:
    if kind == "enum":
        raise UsageError("enumerations are compared with the fields that have them; name one of those")
    if name is None:
        return catalogue().names(kind)
    named = spec_names.find(name, kind, gens) or (spec_names.holders(name, kind) if name.isidentifier() else [])
    names = [layout for layout in named if not spec_names.is_enum(layout)]
    if not names:
        meant = spec_names.close(name, kind)
        raise UsageError(f"no page describes {name!r}" + (f"; did you mean {' or '.join(meant)}?" if meant else ""))
    here = [layout for layout in names if any(gen in catalogue().history(layout) for gen in gens)]
    if not here:
        raise UsageError(f"neither GPU has {name}")
    return here


def lines(differences: list[Difference], whole: bool, colour: Paint) -> Iterator[str]:
    """Every field for one name; for many, those that came, those that went, and how much changed in the rest."""
    if whole:
        for difference in differences:
            yield from one_name(difference, colour)
        return
    for kind in ("added", "removed"):
        names = [difference.name for difference in differences if difference.kind == kind]
        if names:
            yield ""
            yield colour(f"{counted(len(names), 'name')} {kind}", ROLES[kind])
            yield from (f"  {MARKS[kind]} {name}" for name in names)
    changed = [difference for difference in differences if difference.kind == "changed"]
    if changed:
        yield ""
        yield colour(f"{counted(len(changed), 'name')} changed", ROLES["changed"])
        yield from (f"  {line}" for line in table([(MARKS["changed"], difference.name, summary(difference)) for difference in changed]))


def summary(difference: Difference) -> str:
    parts = [f"{what} {old or 'none'} to {new or 'none'}" for what, old, new in difference.frame]
    for kind in MARKS:
        number = sum(change.kind == kind for change in difference.changes)
        parts += [f"{number} {kind}"] if number else []
    return ", ".join(parts)


def one_name(difference: Difference, colour: Paint) -> Iterator[str]:
    yield f"{colour(difference.name, 'name')}  {difference.kind}"
    yield from (f"  {what}: {old or 'none'} to {new or 'none'}" for what, old, new in difference.frame)
    yield from (f"  {line}" for line in table([row(change, colour) for change in difference.changes]))


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
