"""Lines of a section: `gen …` lines, groups, fields, derived values, and what a command does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from softgen.bits.field_type import read_conditions, read_type
from softgen.bits.layout import BitField, Effect, Group
from softgen.bits.page.section import PageSection, cut_source, cut_tail, read_generations, read_source

NAME = re.compile(r"[a-z0-9_]+$")
BITS = re.compile(r"(?:\d{1,5}/)?\d{1,5}(?::\d{1,5})?(?:,(?:\d{1,5}/)?\d{1,5}(?::\d{1,5})?)*$")
WHEN = re.compile(r"(?:^|\s)when\s+([a-z0-9_]+\s*!?=\s*\S.*)$")
GATE = re.compile(r"(?:^|\s)gate\s+([a-z0-9_,]+)\s*$")
EFFECT = re.compile(r"(?:latches|merges (?:by|under) ([a-z0-9_,]+)|acts|starts)(?: group ([a-z0-9_]+))?(?: acts when ([a-z0-9_,]+))?$")
GEN = re.compile(r"gen\s+(\S+)\s+(\d{1,5})(\+|\.\.\d{1,5})?\s+dwords?\b(.*)$")
GROUP = re.compile(r"group\s+(\w+)\s+at\s+(\d{1,5})(?:\.(\d{1,5}))?\s+size\s+(\d{1,5})\s+times\s+(\d{1,5}|\*)(?:\s+of\s+(\S+))?$")
OPTIONS = {  # of a gen line, and what each looks like
    "key": re.compile(r"\S"), "at": re.compile(r"\S"), "times": re.compile(r"\S"), "engines": re.compile(r"\S"),
    "length": re.compile(r"\d{1,2}(?::\d{1,2})?$"), "bias": re.compile(r"\d{1,3}$"), "with": re.compile(r"\d{1,2}(?::\d{1,2})?=\d{1,9}$"),
}  # fmt: skip
EFFECTS = ("latches", "merges", "acts", "starts")
MOST_BITS = 1 << 22  # more than the longest command has


@dataclass
class RecordLines:
    """Lines of a record, each with the generations it is for: of all of a `gen` block, or of a group's element."""

    fields: list[tuple[BitField, frozenset[float]]] = field(default_factory=list, init=False)
    groups: list[tuple[Group, frozenset[float], RecordLines]] = field(default_factory=list, init=False)
    derived: list[tuple[int, str, str, frozenset[float]]] = field(default_factory=list, init=False)  # line, name, expression, gate


@dataclass
class LayoutBlock(RecordLines):
    """`gen … dwords` with its lines."""

    line: int
    gens: frozenset[float]
    source: str
    dwords: int
    maximum: int | None  # of dwords
    options: dict[str, str] = field(default_factory=dict)
    effects: list[tuple[Effect, frozenset[float]]] = field(default_factory=list)  # the later wins


def blocks(section: PageSection, wanted: frozenset[float]) -> Iterator[LayoutBlock]:
    """The `gen` blocks of a section; the lines of those that are for no wanted generation are not read."""
    block: LayoutBlock | None = None
    stack: list[tuple[int, RecordLines]] = []  # (indentation of the group line, the lines of its element)
    dword, before, effects = 0, section.source, list[tuple[Effect, frozenset[float]]]()
    for number, line in section.body:
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if text.startswith("gen "):
            if block:
                yield block
            block, stack, dword = gen_line(section, number, text, before), [], 0
            block.effects += effects
            continue
        if text.split()[0] in EFFECTS and section.kind == "command":
            (block.effects if block else effects).append(_effect_line(section, number, text))
            continue
        if text.startswith("source "):
            before = read_source(section.page, number, text.removeprefix("source").strip())
            if block:
                block.source = before
            continue
        if block is None:
            raise section.complain(f"cannot read {text!r} before 'gen …'", number)
        if not block.gens & wanted:
            continue
        while stack and indent <= stack[-1][0]:
            stack.pop()
        owner: RecordLines = stack[-1][1] if stack else block
        if re.match(r"(or\s+)?group\s", text):
            inner = _group_line(section, number, text, owner, block.source)
            stack.append((indent, inner))
            dword = 0
        else:
            dword = _field_line(section, number, text, owner, dword, block.source)
    if block:
        yield block


def gen_line(section: PageSection, number: int, text: str, source: str) -> LayoutBlock:
    main, cite = cut_source(section, number, text)
    m = GEN.match(main)
    if not m:
        raise section.complain(f"cannot read {text!r}; expected 'gen 8+  9 dwords'", number)
    gens, dwords = read_generations(section, number, m[1]), int(m[2])
    maximum = dwords if not m[3] else None if m[3] == "+" else int(m[3][2:])
    words, options = m[4].split(), {}
    while words:
        word = words.pop(0)
        if word == "fixed":
            options[word] = "yes"
        elif word in OPTIONS and words and OPTIONS[word].match(words[0]):
            options[word] = words.pop(0)
        else:
            known = "key, length, bias, at, times, engines, with and fixed"
            raise section.complain(f"{' '.join([word, *words[:1]])!r} is no option of a gen line; {known} are", number)
    return LayoutBlock(number, gens, cite or source, dwords, maximum, options=options)


def _effect_line(section: PageSection, number: int, text: str) -> tuple[Effect, frozenset[float]]:
    """What a command does: 'merges by vertex_buffer_index  group vertex', 'latches  group depth  acts when clear_enable' …"""
    main, gate, _ = cut_tail(section, number, text)
    m = EFFECT.match(" ".join(main.split()))
    kind = main.split()[0]
    if not m or kind in ("acts", "starts") and (m[2] or m[3]) or kind in ("latches", "merges") and not m[2]:
        known = "latches, merges by FIELD, merges by gates, merges by position or merges under FIELD, each with group NAME; acts or starts"
        raise section.complain(f"{text!r} does not say what the command does: {known}", number)
    rule = ""
    if m[1]:
        rule = "mask" if " under " in m[0] else m[1] if m[1] in ("gates", "position") else "index"
    by = tuple(m[1].split(",")) if rule in ("mask", "index") else ()
    return Effect(kind, rule, by, m[2] or "", tuple(m[3].split(",")) if m[3] else ()), gate


def _group_line(section: PageSection, number: int, text: str, owner: RecordLines, source: str) -> RecordLines:
    text, gate, cite = cut_tail(section, number, text)
    alternate = text.startswith("or ")
    m = GROUP.match(text.removeprefix("or ").strip())
    if not m:
        raise section.complain(f"cannot read {text!r}; expected 'group name  at 1  size 64  times 4'", number)
    start, size = int(m[2]) * 32 + int(m[3] or 0), int(m[4])
    count = None if m[5] == "*" else int(m[5])
    if size == 0 or count == 0 or start + size * (count or 1) > MOST_BITS:
        raise section.complain(f"group {m[1]} must have a size and a count above zero, and end before bit {MOST_BITS}", number)
    inner = RecordLines()
    owner.groups.append((Group(m[1], start, size, count, (), (), m[6] or "", alternate, cite or source, number), gate, inner))
    return inner


def _field_line(section: PageSection, number: int, text: str, owner: RecordLines, dword: int, source: str) -> int:
    main, gate, cite = cut_tail(section, number, text)
    words = main.split() or [""]
    if words[0] == "derive" and len(words) > 2:
        owner.derived.append((number, words[1], " ".join(words[2:]), gate))
        return dword
    alternate = words[0] == "or"
    words = words[alternate:]
    if len(words) > 1 and words[0].isdigit() and len(words[0]) < 6 and BITS.match(words[1]):
        dword = int(words.pop(0))
    if len(words) < 2 or not BITS.match(words[0]) or not NAME.match(words[1]):
        raise section.complain(f"cannot read {text!r}", number)
    pieces = tuple(piece(section, number, part, dword) for part in words[0].split(","))
    rest = " ".join(words[2:])
    condition = WHEN.search(rest)
    rest, when = (rest[: condition.start()], condition[1]) if condition else (rest, "")
    gates = GATE.search(rest)
    rest = rest[: gates.start()] if gates else rest
    complain = partial(section.complain, line=number)
    kind = read_type(complain, rest.strip(), sum(h - low + 1 for h, low in pieces))
    conditions = read_conditions(complain, when, (f for f, _ in owner.fields)) if when else ()
    gate_names = tuple(gates[1].split(",")) if gates else ()
    owner.fields.append((BitField(words[1], pieces, kind, alternate, conditions, gate_names, cite or source, number), gate))
    return dword


def piece(section: PageSection, number: int, text: str, dword: int) -> tuple[int, int]:
    at, slash, bits = text.rpartition("/")
    high, _, low = bits.partition(":")
    base = 32 * (int(at) if slash else dword)
    if int(low or high) > int(high):
        raise section.complain(f"bits run from high to low, not {bits}", number)
    return base + int(high), base + int(low or high)
