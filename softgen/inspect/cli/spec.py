"""`softgen spec [NAME]`: what softgen knows about a command, structure, register, message, instruction or enumeration."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from softgen.bits.catalogue import catalogue
from softgen.bits.describe import values_of
from softgen.bits.layout import GENERATIONS, BitField, Group, Layout
from softgen.bits.page import KINDS
from softgen.errors import UsageError
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import counted, paint, print_json, table
from softgen.inspect.spec import bit_diagram, spec_names
from softgen.inspect.spec.spec_diff import place

EXAMPLE = """examples:
  softgen spec 3DSTATE_VS --gpu kbl            one command on one GPU, as a diagram and a table
  softgen spec RENDER_SURFACE_STATE            on every generation
  softgen spec vertex buffer                   names with both words in them
  softgen spec 0x2358                          the register at this offset; a header finds its command
  softgen spec surface_pitch                   what has a field of this name
  softgen spec 3DSTATE_VS --diff kbl icl       what changed between two GPUs; without a name, everything that did
  softgen spec --gpu icl --kind register       what there is
  softgen spec --gpu kbl --json                everything, for machines
  softgen spec --html reference                a reference to browse, in a folder of its own

exit codes: 0 fine, 2 usage error, or no such name"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "Show the bits of a command, structure, register, message, instruction or enumeration."
    parser = subparsers.add_parser("spec", description=about, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*",
                        help="its name as in the manual; or what to search for: a part of the name, words, a field's name, a number")
    parser.add_argument("--gpu", help="one GPU only (softgen gpus lists them)")
    parser.add_argument("--kind", choices=(*KINDS, "enum"), help="one kind only")
    parser.add_argument("--diff", nargs=2, metavar=("GPU", "GPU"), help="what changed from the first to the second")
    parser.add_argument("--html", metavar="DIR", help="write all of it as pages to browse")
    parser.add_argument("--no-diagram", action="store_true", help="the table alone")
    parser.add_argument("--json", action="store_true", help="one JSON object: fields by name, positions counted from bit 0 of dword 0")


def run(args: argparse.Namespace) -> int:
    name = " ".join(args.name) or None
    if args.html is not None:
        return write_html(args, name)
    if args.diff is not None:
        from softgen.inspect.cli import spec_diff

        if args.gpu is not None:
            raise UsageError("--diff names both GPUs; leave out --gpu")
        return spec_diff.run(name, args.diff, args.kind, args.json)
    gens = (find(args.gpu).generation.number,) if args.gpu is not None else GENERATIONS
    names = select(name, gens, args.kind)
    enums = [name for name in names if spec_names.is_enum(name)]
    found = layouts(name or args.kind, [name for name in names if name not in enums], gens)
    if args.json:
        print_json(to_json(found, args.gpu is not None) | {enum: enum_json(enum, gens, args.gpu is not None) for enum in enums})
    elif name and len(names) == 1 and enums:
        print("\n".join(enum_page(enums[0], gens)))
    elif name and len(names) == 1:
        for number, layout in enumerate(distinct(found)):
            print("\n".join(([""] if number else []) + list(page(*layout, diagram=not args.no_diagram))))
    else:
        print("\n".join(listing(found, enums, gens)))
    return 0


def write_html(args: argparse.Namespace, name: str | None) -> int:
    from softgen.inspect.spec import spec_html

    if name or args.gpu or args.diff or args.kind or args.json:
        raise UsageError("--html writes all there is; leave out the rest")
    if not args.html:
        raise UsageError("where to? --html needs the name of a folder")
    print(f"{spec_html.write(args.html)} pages; open {args.html}/index.html")
    return 0


def select(name: str | None, gens: tuple[float, ...], kind: str | None) -> list[str]:
    """The names asked for: by name, by a part, by words, by number, or by a field they have."""
    if name is None:
        return catalogue().names(kind) if kind != "enum" else spec_names.known("enum")
    if found := spec_names.find(name, kind, gens) or (spec_names.holders(name, kind) if name.isidentifier() else []):
        return found
    meant = spec_names.close(name, kind)
    what = f"{kind} is called" if kind else "page describes"
    raise UsageError(f"no {what} {name!r}" + (f"; did you mean {' or '.join(meant)}?" if meant else ""))


def layouts(name: str | None, names: list[str], gens: tuple[float, ...]) -> list[Layout]:
    found = [layout for n in names for gen, layout in sorted(catalogue().history(n).items()) if gen in gens]
    if names and not found:
        have = ", ".join(f"{g:g}" for g in sorted({g for n in names for g in catalogue().history(n)}))
        raise UsageError(f"{name} does not exist on generation {gens[0]:g}, only on {have}")
    return found


# -- JSON ----------------------------------------------------------------------------------------------------------


def to_json(layouts: list[Layout], one_gpu: bool) -> dict[str, Any]:
    """By name for one GPU; by name and generation otherwise."""
    if one_gpu:
        return {layout.name: layout_json(layout) for layout in layouts}
    result: dict[str, Any] = {}
    for layout in layouts:
        result.setdefault(layout.name, {})[f"{layout.gen:g}"] = layout_json(layout)
    return result


def layout_json(layout: Layout) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": layout.kind, "key": layout.key, "dwords": layout.dwords}
    if layout.variable:
        found["maximum_dwords"] = layout.maximum
    if layout.engines:
        found["engines"] = list(layout.engines)
    found["fields"] = [field_json(field, groups, layout.gen) for field, groups in layout.walk()]
    if layout.derived:
        found["derived"] = dict(layout.derived)
    return found | {"page": f"{layout.page}:{layout.line}", "source": layout.source}


def field_json(field: BitField, groups: tuple[Group, ...], gen: float) -> dict[str, Any]:
    start = sum(group.start for group in groups)
    lowest = min(low for _, low in field.pieces)
    found: dict[str, Any] = {"name": field.name, "high": start + field.high, "low": start + lowest, "type": field.type.name}
    if field.type.name == "fixed":
        found |= {"fraction": field.type.fraction, "signed": field.type.signed}
    if values := values_of(field.type, gen):
        found["values"] = {str(value): name for value, name in values.items()}
    found |= {key: text for key, text in (("base", field.type.base), ("target", field.type.target)) if text}
    if len(field.pieces) > 1:
        found["pieces"] = [[start + high, start + low] for high, low in field.pieces]
    if field.alternate:
        found["alternate"] = True
    if field.when:
        found["when"] = [{"field": c.field, "values": list(c.values), "not": c.negated} for c in field.when]
    if groups:
        found["group"] = group_json(groups)
    return found | {"source": field.source}


def group_json(groups: tuple[Group, ...]) -> dict[str, Any]:
    *outer, group = groups
    found = {"name": group.name, "start": sum(g.start for g in groups), "size": group.size, "count": group.count}
    return found | ({"in": group_json(tuple(outer))} if outer else {})


def enum_json(name: str, gens: tuple[float, ...], one_gpu: bool) -> dict[str, Any]:
    by_gen = {f"{gen:g}": {str(value): text for value, text in sorted(catalogue().enumeration(name, gen).items())} for gen in gens}
    return {"kind": "enum", "values": by_gen[f"{gens[0]:g}"] if one_gpu else by_gen}


# -- text ----------------------------------------------------------------------------------------------------------


def distinct(layouts: list[Layout]) -> list[tuple[Layout, list[float]]]:
    """Generations that read alike are shown once."""
    shown: list[tuple[Layout, list[float]]] = []
    for layout in layouts:
        last = shown[-1] if shown else None
        same = last and (last[0].dwords, last[0].key, _positions(last[0])) == (layout.dwords, layout.key, _positions(layout))
        if last and same:
            last[1].append(layout.gen)
        else:
            shown.append((layout, [layout.gen]))
    return shown


def _positions(layout: Layout) -> list[Any]:
    return [(f.name, f.pieces, str(f.type), f.type.values) for f, _ in layout.walk()]


def page(layout: Layout, gens: list[float], diagram: bool = True) -> Iterator[str]:
    bold = paint()
    length = counted(layout.dwords, "dword") + (" or more" if layout.variable else "")
    key = f", key {layout.key}" if layout.key else ""
    engines = f", {' '.join(layout.engines)}" if layout.engines else ""
    yield f"{bold(layout.name, 'name')}  {layout.kind}, gen {' '.join(f'{g:g}' for g in gens)}{key}, {length}{engines}"
    yield bold(f"  {layout.page}:{layout.line}, from {layout.source}", "note")
    fields = list(layout.walk())
    if diagram:
        numbers = {(".".join(g.name for g in groups), field.name): number for number, (field, groups) in enumerate(fields, 1)}
        yield from (f"  {line}" for line in bit_diagram.draw(layout, numbers, unicode_welcome()))
    rows = [(str(number), *row(field, groups, layout, bold)) for number, (field, groups) in enumerate(fields, 1)]
    yield from (f"  {line}" for line in table(rows, ("", "dword", "bits", "name", "type", "source"), right=(0,)))
    yield from (f"  derived: {name} = {expression}" for name, expression in layout.derived)


def unicode_welcome() -> bool:
    """Whether standard output takes the lines of a box; one that does not say so is no file."""
    return "utf" in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()


def row(field: BitField, groups: tuple[Group, ...], layout: Layout, bold: Any) -> tuple[str, ...]:
    prefix = "".join(f"{g.name}[{g.count if g.count is not None else '…'}]." for g in groups)
    dword, bits = place(field.pieces)
    values = values_of(field.type, layout.gen)
    kind = " | ".join(f"{v} {n}" for v, n in list(values.items())[:8]) + (" | …" if len(values) > 8 else "") if values else str(field.type)
    conditions = [f"{c.field}{'!=' if c.negated else '='}{','.join(map(str, c.values))}" for c in field.when]
    when = " when " + " and ".join(conditions) if conditions else ""
    return (str(dword), bits, prefix + field.name, kind + when, bold(field.source, "note"))


def enum_page(name: str, gens: tuple[float, ...]) -> Iterator[str]:
    """An enumeration: its values, and on which generations each is called so."""
    bold = paint()
    yield f"{bold(name, 'name')}  enum"
    rows: dict[tuple[int, str], list[str]] = {}
    for gen in gens:
        for value, text in catalogue().enumeration(name, gen).items():
            rows.setdefault((value, text), []).append(f"{gen:g}")
    cells = [(str(value), f"{value:#x}", text, " ".join(named)) for (value, text), named in sorted(rows.items())]
    yield from (f"  {line}" for line in table(cells, ("value", "", "name", "gen"), right=(0, 1)))


def listing(layouts: list[Layout], enums: list[str], gens: tuple[float, ...]) -> Iterator[str]:
    rows: dict[str, tuple[Layout, list[str]]] = {}
    for layout in layouts:
        rows.setdefault(layout.name, (layout, []))[1].append(f"{layout.gen:g}")
    cells = [(name, layout.kind, layout.key, " ".join(named), layout.page) for name, (layout, named) in rows.items()]
    for name in enums:
        section = catalogue().enums.get(name)
        named = [f"{gen:g}" for gen in gens if catalogue().enumeration(name, gen)]
        cells.append((name, "enum", "", " ".join(named), section.page if section else "formats.csv"))
    yield from table(cells, ("name", "kind", "key", "gen", "page"))
