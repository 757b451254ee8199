"""One generation's layout, built from the lines of a section and checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from softgen.bits.expression import check_expression
from softgen.bits.layout import KEY_SHIFT, BitField, Effect, Group, Header, Layout
from softgen.bits.page.lines import LayoutBlock, RecordLines, piece
from softgen.bits.page.section import PageSection
from softgen.errors import SpecError

Resolve = Callable[[str, float], Layout]


class RegisterSpan(NamedTuple):
    """The place of a register on one generation."""

    offset: int
    relative: bool  # the offset counts from where the engine's registers start
    size: int  # bytes, of all in a row
    engines: tuple[str, ...]


def build_layout(section: PageSection, block: LayoutBlock, gen: float, engines: tuple[str, ...], resolve: Resolve) -> Layout:
    fields, groups = _resolve(section, block, gen, resolve)
    header = read_header(section, block)
    name = section.name
    most = block.dwords if block.maximum is None else block.maximum
    _check(section, f"{name}", fields, groups, most * 32, header.claimed if header else 0, block.maximum is None)
    derived = _derived(section, name, block, gen, fields, groups)
    offset, relative, count = read_offset(section, block)
    return Layout(section.kind, name, gen, block.dwords, block.maximum, fields, groups, derived,
                  header, engines, offset, relative, count, _effect(section, block, gen, fields, groups), block.source, section.page,
                  block.line)  # fmt: skip


def _derived(section: PageSection, owner: str, lines: RecordLines, gen: float, fields: tuple[BitField, ...],
             groups: tuple[Group, ...]) -> tuple[tuple[str, str], ...]:  # fmt: skip
    """The derived attributes of a record on one generation: names and expressions, over fields and the attributes before."""
    derived, known, names = [], {f.name: f.width for f in fields}, {group.name for group in groups}
    for number, attribute, expression, gate in lines.derived:
        if gen not in gate:
            continue
        twice = attribute in known or attribute in names
        if wrong := check_expression(expression, known) or (f"{owner}.{attribute} is named twice" if twice else ""):
            raise section.complain(wrong, number)
        known[attribute] = 64
        derived.append((attribute, expression))
    return tuple(derived)


def _effect(section: PageSection, block: LayoutBlock, gen: float, fields: tuple[BitField, ...], groups: tuple[Group, ...]) -> Effect | None:
    """The effect of a command on one generation; the fields it names must be there."""
    found = [effect for effect, gate in block.effects if gen in gate]
    if not found:
        return None
    effect, own = found[-1], {f.name for f in fields}
    inner = {f.name for group in groups for f in group.fields}
    known = own | inner if effect.rule == "index" else own
    for name in (*(n for n in effect.by if n not in known), *(n for n in effect.acts_when if n not in own)):
        raise section.complain(f"{section.name} has no field {name!r} on gen {gen:g}, by which it would be executed", block.line)
    if len({dword for f in fields if f.name in effect.acts_when for dword in (f.low // 32, f.high // 32)}) > 1:
        names = " and ".join(effect.acts_when)
        raise section.complain(f"{section.name} acts when {names} on gen {gen:g}; these bits must stand in one dword", block.line)
    if effect.rule == "gates" and not any(f.gates for f in fields):
        raise section.complain(f"{section.name} merges by gates on gen {gen:g}, where no field has a gate", block.line)
    return effect


def read_offset(section: PageSection, block: LayoutBlock) -> tuple[int | None, bool, int]:
    """Where a register stands, whether that counts from its engine's registers, and how many of it there are."""
    if section.kind != "register":
        return None, False, 1
    text = block.options.get("at") or (section.rest[0] if section.rest else "")
    times = block.options.get("times", "1")
    if not re.match(r"\+?0x[0-9a-f]+$", text) or not re.match(r"[1-9]\d*$", times):
        expected = "at 0x2034 or, from its engine's start, at +0x34, times N"
        raise section.complain(f"a register stands {expected}; not {text!r}, {times!r}", block.line)
    if text[0] == "+" and not section.rest[1:] and "engines" not in block.options:
        raise section.complain(f"{section.name} stands at {text} of which engines?", block.line)
    return int(text, 0), text[0] == "+", int(times)


def _resolve(section: PageSection, lines: RecordLines, gen: float, resolve: Resolve) -> tuple[tuple[BitField, ...], tuple[Group, ...]]:
    """The fields and groups of a record that exist on one generation."""
    fields = tuple(f for f, gate in lines.fields if gen in gate)
    groups = []
    for group, gate, inner in lines.groups:
        if gen not in gate:
            continue
        if group.of:
            if inner.fields or inner.groups or inner.derived:
                raise section.complain(f"group {group.name} is of {group.of}, and has lines of its own", group.line)
            try:
                other = resolve(group.of, gen)
            except (KeyError, SpecError):
                raise section.complain(f"group {group.name} is of {group.of}, which gen {gen:g} does not have", group.line) from None
            groups.append(replace(group, fields=other.fields, groups=other.groups, derived=other.derived))
        else:
            inner_fields, inner_groups = _resolve(section, inner, gen, resolve)
            derived = _derived(section, f"{section.name}.{group.name}", inner, gen, inner_fields, inner_groups)
            groups.append(replace(group, fields=inner_fields, groups=inner_groups, derived=derived))
    return fields, tuple(groups)


def read_header(section: PageSection, block: LayoutBlock) -> Header | None:
    if section.kind != "command":
        return None
    key = block.options.get("key") or next(iter(section.rest), "")
    try:
        mask, value, length = _key(key)
    except ValueError:
        known = "0.OP, 2.OP, 3.S.O.SUB and 3.2.O.A.B with OP, SUB and B in hex"
        raise section.complain(f"{key!r} is no key; keys are {known}", block.line) from None
    if "length" in block.options:
        length = piece(section, block.line, block.options["length"], 0)
    if "with" in block.options:
        bits, _, wanted = block.options["with"].partition("=")
        high, low = piece(section, block.line, bits, 0)
        mask |= (1 << high + 1) - (1 << low)
        value |= int(wanted) << low
    if length[0] > 31 or mask >> 32 or value & ~mask:
        raise section.complain(f"{section.name}: its key and length must fit dword 0", block.line)
    return Header(key, mask, value, None if "fixed" in block.options else length, int(block.options.get("bias", 2)))


def _key(key: str) -> tuple[int, int, tuple[int, int]]:
    """The header's mask and value, and the position of the length."""
    parts = key.split(".")
    kind = int(parts[0])
    shift = KEY_SHIFT.get(kind, -1)
    if kind in (0, 2) and len(parts) == 2:
        low, length = int(parts[1], 16), (7, 0)
    elif kind == 3 and len(parts) in (4, 5):
        subtype, opcode, last, codec = int(parts[1]), int(parts[2]), int(parts[-1], 16), len(parts) == 5
        sub = int(parts[3]) << 5 | last if codec else last
        low = subtype << 11 | opcode << 8 | sub
        length = (11, 0) if codec else (15, 0) if subtype == 2 else (7, 0)
        if subtype > 3 or opcode > 7 or sub > 255 or codec and (subtype != 2 or last > 31):
            raise ValueError(key)
    else:
        raise ValueError(key)
    if low >> 29 - shift:
        raise ValueError(key)
    return (1 << 32) - (1 << shift), kind << 29 | low << shift, length


def _check(section: PageSection, owner: str, fields: tuple[BitField, ...], groups: tuple[Group, ...], bits: int, claimed: int,
           open_end: bool) -> None:  # fmt: skip
    """No overlap without `or`, nothing past the end, no name twice."""
    names: set[str] = set()
    for f in fields:
        if f.high >= bits and not open_end:
            raise section.complain(f"{owner}.{f.name} ends at bit {f.high} of {bits}", f.line)
        if f.name in names:
            raise section.complain(f"{owner}.{f.name} is named twice", f.line)
        for gate in f.gates:
            if not any(other.name == gate and other.width == 1 for other in fields):
                raise section.complain(f"{owner}.{f.name} has the gate {gate!r}, which is no bit beside it", f.line)
        if f.mask & claimed and not f.alternate:
            other = next((o.name for o in fields if o.mask & f.mask and o is not f), "the header")
            raise section.complain(f"{owner}.{f.name} overlaps {other}; write 'or' if it is meant", f.line)
        names.add(f.name)
        claimed |= f.mask
    end = max([claimed.bit_length(), *(group.start + group.size * (group.count or 1) for group in groups)])
    for group in groups:
        if group.name in names:
            raise section.complain(f"{owner}.{group.name} is named twice", group.line)
        names.add(group.name)
        count = group.count or -(-(end - group.start) // group.size)  # elements up to the end are in the way of all that follows
        if group.start + group.size * count > bits and group.count is not None and not open_end:
            raise section.complain(f"{owner}.{group.name} ends at bit {group.start + group.size * count - 1} of {bits}", group.line)
        if not group.fields and not group.groups:
            raise section.complain(f"group {group.name} has no fields", group.line)
        _check(section, f"{owner}.{group.name}", group.fields, group.groups, group.size, 0, False)
        mask = 0
        for i in range(count):
            mask |= group.claimed << group.start + i * group.size
        if mask & claimed and not group.alternate:
            raise section.complain(f"{owner}.{group.name} overlaps other fields; write 'or' if it is meant", group.line)
        claimed |= mask
