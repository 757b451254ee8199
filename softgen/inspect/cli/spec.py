"""`softgen spec [NAME]`: what softgen knows about a command, structure, register, message or instruction."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator
from typing import Any

from softgen.bits.catalogue import catalogue
from softgen.bits.describe import values_of
from softgen.bits.layout import GENERATIONS, Field, Group, Layout
from softgen.bits.page import KINDS
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import Misuse, paint, print_json, table

EXAMPLE = """examples:
  softgen spec 3DSTATE_VS --gpu kbl            one command on one GPU
  softgen spec RENDER_SURFACE_STATE            on every generation
  softgen spec --gpu icl --kind register       what there is
  softgen spec --gpu kbl --json                everything, for machines"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("spec", description="What softgen knows about a command, structure, register, message or instruction.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("name", nargs="?", help="its name as in the manual; part of it is enough to search")
    parser.add_argument("--gpu", help="one GPU only (softgen gpus lists them)")
    parser.add_argument("--kind", choices=KINDS, help="one kind only")
    parser.add_argument("--json", action="store_true", help="one JSON object: fields by name, positions counted from bit 0 of dword 0")


def run(args: argparse.Namespace) -> int:
    gens = (find(args.gpu).generation.number,) if args.gpu is not None else GENERATIONS
    found = select(args.name, gens, args.kind)
    if args.json:
        print_json(to_json(found, args.gpu is not None))
    elif args.name and len({one.name for one in found}) == 1:
        for number, one in enumerate(distinct(found)):
            print("\n".join(([""] if number else []) + list(page(*one))))
    else:
        print("\n".join(listing(found)))
    return 0


def select(name: str | None, gens: tuple[float, ...], kind: str | None) -> list[Layout]:
    """The layouts asked for. A name is taken whole if it exists, otherwise as a part of names."""
    known = catalogue().names(kind)
    exact = [n for n in known if name is None or n.lower() == name.lower()]
    names = exact or [n for n in known if name and name.lower() in n.lower()]
    if not names:
        close = difflib.get_close_matches((name or "").upper(), known, n=3)
        what = f"{kind} is called" if kind else "page describes"
        raise Misuse(f"no {what} {name!r}" + (f"; did you mean {' or '.join(close)}?" if close else ""))
    found = [layout for n in names for gen, layout in sorted(catalogue().history(n).items()) if gen in gens]
    if not found:
        have = ", ".join(f"{g:g}" for g in sorted({g for n in names for g in catalogue().history(n)}))
        raise Misuse(f"{name or kind} does not exist on generation {gens[0]:g}, only on {have}")
    return found


# -- JSON ----------------------------------------------------------------------------------------------------------


def to_json(found: list[Layout], one_gpu: bool) -> dict[str, Any]:
    """By name for one GPU; by name and generation otherwise."""
    if one_gpu:
        return {layout.name: layout_json(layout) for layout in found}
    result: dict[str, Any] = {}
    for layout in found:
        result.setdefault(layout.name, {})[f"{layout.gen:g}"] = layout_json(layout)
    return result


def layout_json(layout: Layout) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": layout.kind, "key": layout.key, "dwords": layout.dwords}
    if layout.variable:
        found["maximum_dwords"] = layout.maximum
    if layout.engines:
        found["engines"] = list(layout.engines)
    found["fields"] = [field_json(one, groups, layout.gen) for one, groups in layout.walk()]
    if layout.derived:
        found["derived"] = dict(layout.derived)
    return found | {"page": f"{layout.page}:{layout.line}", "source": layout.source}


def field_json(one: Field, groups: tuple[Group, ...], gen: float) -> dict[str, Any]:
    start = sum(group.start for group in groups)
    lowest = min(low for _, low in one.pieces)
    found: dict[str, Any] = {"name": one.name, "high": start + one.high, "low": start + lowest, "type": one.type.name}
    if one.type.name == "fixed":
        found |= {"fraction": one.type.fraction, "signed": one.type.signed}
    if values := values_of(one.type, gen):
        found["values"] = {str(value): name for value, name in values.items()}
    found |= {key: text for key, text in (("base", one.type.base), ("target", one.type.target)) if text}
    if len(one.pieces) > 1:
        found["pieces"] = [[start + high, start + low] for high, low in one.pieces]
    if one.alternate:
        found["alternate"] = True
    if one.when:
        found["when"] = [{"field": c.field, "values": list(c.values), "not": c.negated} for c in one.when]
    if groups:
        found["group"] = group_json(groups)
    return found | {"source": one.source}


def group_json(groups: tuple[Group, ...]) -> dict[str, Any]:
    *outer, group = groups
    found = {"name": group.name, "start": sum(g.start for g in groups), "size": group.size, "count": group.count}
    return found | ({"in": group_json(tuple(outer))} if outer else {})


# -- text ----------------------------------------------------------------------------------------------------------


def distinct(found: list[Layout]) -> list[tuple[Layout, list[float]]]:
    """Generations that read alike are shown once."""
    shown: list[tuple[Layout, list[float]]] = []
    for layout in found:
        last = shown[-1] if shown else None
        same = last and (last[0].dwords, last[0].key, _positions(last[0])) == (layout.dwords, layout.key, _positions(layout))
        if last and same:
            last[1].append(layout.gen)
        else:
            shown.append((layout, [layout.gen]))
    return shown


def _positions(layout: Layout) -> list[Any]:
    return [(f.name, f.pieces, str(f.type), f.type.values) for f, _ in layout.walk()]


def page(layout: Layout, gens: list[float]) -> Iterator[str]:
    bold = paint()
    length = f"{layout.dwords} dwords" if not layout.variable else f"{layout.dwords} dwords or more"
    key = f", key {layout.key}" if layout.key else ""
    engines = f", {' '.join(layout.engines)}" if layout.engines else ""
    yield f"{bold(layout.name, 'name')}  {layout.kind}, gen {' '.join(f'{g:g}' for g in gens)}{key}, {length}{engines}"
    yield bold(f"  {layout.page}:{layout.line}, from {layout.source}", "note")
    rows = [row(one, groups, layout, bold) for one, groups in layout.walk()]
    yield from (f"  {line}" for line in table(rows, ("dword", "bits", "name", "type", "source")))
    yield from (f"  derived: {name} = {expression}" for name, expression in layout.derived)


def row(one: Field, groups: tuple[Group, ...], layout: Layout, bold: Any) -> tuple[str, ...]:
    prefix = "".join(f"{g.name}[{g.count if g.count is not None else '…'}]." for g in groups)
    base = 32 * (one.pieces[-1][1] // 32)
    bits = ",".join(f"{high - base}:{low - base}" if high > low else f"{high - base}" for high, low in one.pieces)
    values = values_of(one.type, layout.gen)
    kind = " | ".join(f"{v} {n}" for v, n in list(values.items())[:8]) + (" | …" if len(values) > 8 else "") if values else str(one.type)
    conditions = [f"{c.field}{'!=' if c.negated else '='}{','.join(map(str, c.values))}" for c in one.when]
    when = " when " + " and ".join(conditions) if conditions else ""
    return (str(base // 32), bits, prefix + one.name, kind + when, bold(one.source, "note"))


def listing(found: list[Layout]) -> Iterator[str]:
    rows: dict[str, tuple[Layout, list[str]]] = {}
    for layout in found:
        rows.setdefault(layout.name, (layout, []))[1].append(f"{layout.gen:g}")
    cells = [(name, one.kind, one.key, " ".join(gens), one.page) for name, (one, gens) in rows.items()]
    yield from table(cells, ("name", "kind", "key", "gen", "page"))
