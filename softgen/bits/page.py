"""Pages: the text of `spec/**/*.layout`, read strictly. A complaint starts with page:line.

A page is a list of sections that begin in column 0:

    source KBL 22480-22560                                     where what follows was read; each line may name its own after ';'
    enum Compare_Function                                      values indented, `5 greater`, gated with @
    command 3DSTATE_VS  3.3.0.10  render                       kind, name, key, engines
      gen 7..7.5  6 dwords                                     generations, length, options: key, length, fixed, bias, at, times, engines
        1  31:6  kernel_start_pointer  address instruction kernel   @7  ; IVB 120
        or 2  31:0  other_reading      when mode=simd8
        group element  at 1  size 64  times *                  deeper lines are fields of one element; `of NAME` takes a structure's
        derive  size  end - start + 1
    register RING_BUFFER_HEAD  +0x34  all                      an offset with + counts from where the engine's registers start

A length of `4..5 dwords` or `4+ dwords` says that dwords past the fourth may be missing; fields there then read zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from softgen.bits.field_type import read_conditions, read_type
from softgen.bits.layout import GENERATIONS, KEY_SHIFT, Field, Group, Header, Layout, generations
from softgen.bits.record import check_expression
from softgen.errors import SpecError

KINDS = ("command", "structure", "register", "message", "instruction")
ENGINES = ("render", "blitter", "video", "video_enhance", "position_only")
EVERY = frozenset(GENERATIONS)

NAME = re.compile(r"[a-z0-9_]+$")
BITS = re.compile(r"(?:\d{1,5}/)?\d{1,5}(?::\d{1,5})?(?:,(?:\d{1,5}/)?\d{1,5}(?::\d{1,5})?)*$")
SOURCE = re.compile(r"(?:BDW|KBL|G45|IVB|ICL)(?: \d+(?:-\d+)?(?:, ?\d+(?:-\d+)?)*)?$|public \S.*$")
WHEN = re.compile(r"(?:^|\s)when\s+([a-z0-9_]+\s*!?=\s*\S.*)$")
GEN = re.compile(r"gen\s+(\S+)\s+(\d{1,5})(\+|\.\.\d{1,5})?\s+dwords?\b(.*)$")
GROUP = re.compile(r"group\s+(\w+)\s+at\s+(\d{1,5})(?:\.(\d{1,5}))?\s+size\s+(\d{1,5})\s+times\s+(\d{1,5}|\*)(?:\s+of\s+(\S+))?$")
OPTIONS = {  # of a gen line, and what each looks like
    "key": re.compile(r"\S"), "at": re.compile(r"\S"), "times": re.compile(r"\S"), "engines": re.compile(r"\S"),
    "length": re.compile(r"\d{1,2}(?::\d{1,2})?$"), "bias": re.compile(r"\d{1,3}$"), "with": re.compile(r"\d{1,2}(?::\d{1,2})?=\d{1,9}$"),
}  # fmt: skip
MOST_BITS = 1 << 22  # more than the longest command has

Resolve = Callable[[str, float], Layout]


@dataclass(frozen=True)
class Section:
    """One top-level entry of a page, not read yet."""

    page: str
    line: int
    kind: str
    name: str
    rest: tuple[str, ...]
    source: str
    body: tuple[tuple[int, str], ...]  # (line number, text)

    def complain(self, message: str, line: int = 0) -> SpecError:
        return SpecError(f"{self.page}:{line or self.line}: {message}")


@dataclass
class Block:
    """`gen … dwords` with its lines, or a group inside it."""

    line: int
    gens: frozenset[float]
    source: str
    fields: list[tuple[Field, frozenset[float]]] = field(default_factory=list)
    groups: list[tuple[Group, frozenset[float], Block]] = field(default_factory=list)
    derived: list[tuple[int, str, str, frozenset[float]]] = field(default_factory=list)  # line, name, expression, gate
    dwords: int = 0
    maximum: int | None = 0
    options: dict[str, str] = field(default_factory=dict)


def sections(page: str, text: str) -> Iterator[Section]:
    """The entries of a page, split but not yet read."""
    source, head = "", None
    body: list[tuple[int, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].rstrip()
        if not line:
            continue
        if "\t" in line:
            raise SpecError(f"{page}:{number}: a tab; pages are aligned with spaces")
        if not (line.isascii() and line.isprintable()):
            raise SpecError(f"{page}:{number}: {line.strip()!r} holds something that is no plain ASCII")
        if line[0] == " ":
            if head is None:
                raise SpecError(f"{page}:{number}: cannot read {line.strip()!r} before any command, structure, register or enum")
            body.append((number, line))
            continue
        if head:
            yield Section(page, *head, source, tuple(body))
        head, body, words = None, [], line.split()
        if words[0] == "source":
            source = _source(page, number, line.removeprefix("source").strip())
        elif words[0] not in (*KINDS, "enum") or len(words) < 2:
            raise SpecError(f"{page}:{number}: cannot read {line!r}; a section is one of {', '.join(KINDS)}, enum or source")
        else:
            head = (number, words[0], words[1], tuple(words[2:]))
    if head:
        yield Section(page, *head, source, tuple(body))


def _source(page: str, line: int, text: str) -> str:
    if not SOURCE.match(text):
        raise SpecError(f"{page}:{line}: a source is BDW, KBL, G45, IVB or ICL with line numbers, or public and a name, not {text!r}")
    return text


def read(page: str, text: str) -> dict[tuple[str, float], Layout]:
    """Every layout of a page, by name and generation."""
    found: dict[tuple[str, float], Layout] = {}

    def resolve(name: str, gen: float) -> Layout:
        return found[name, gen]

    for section in sections(page, text):
        for layout in layouts(section, resolve) if section.kind != "enum" else ():
            if (layout.name, layout.gen) in found:
                raise section.complain(f"{layout.name} is laid out twice for gen {layout.gen:g}")
            found[layout.name, layout.gen] = layout
    return found


# -- enumerations ------------------------------------------------------------------------------------------------


def enumeration(section: Section) -> dict[float, dict[int, str]]:
    """The values of an enum section by generation."""
    values: dict[float, dict[int, str]] = {gen: {} for gen in GENERATIONS}
    for number, line in section.body:
        text, gate, _ = _tail(section, number, line)
        m = re.match(r"(0x[0-9a-f]{1,16}|0|[1-9]\d{0,18})\s+(\S.*)$", text)
        if not m:
            raise section.complain(f"an enumeration's line is a number and a name, not {text!r}", number)
        for gen in gate:
            if int(m[1], 0) in values[gen]:
                raise section.complain(f"{section.name} names {m[1]} twice on gen {gen:g}", number)
            values[gen][int(m[1], 0)] = m[2].strip()
    return values


# -- layouts -----------------------------------------------------------------------------------------------------


def layouts(section: Section, resolve: Resolve) -> Iterator[Layout]:
    """One layout for each generation a section speaks of."""
    if not section.source:
        raise section.complain(f"{section.name} has no source; write 'source …' above it")
    seen: dict[float, int] = {}
    for block in _blocks(section):
        for gen in sorted(block.gens):
            if gen in seen:
                raise section.complain(f"{section.name} is laid out twice for gen {gen:g}", block.line)
            seen[gen] = block.line
            yield _layout(section, block, gen, _engines(section, block, gen), resolve)
    if not seen:
        raise section.complain(f"{section.name} says nothing about any generation")


def headers(section: Section) -> Iterator[tuple[float, Header, tuple[str, ...]]]:
    """A command's header and engines on each generation, without reading its fields."""
    for number, line in section.body:
        if line.lstrip().startswith("gen "):
            block = _gen_line(section, number, line.strip(), section.source)
            header = _header(section, block)
            assert header is not None
            for gen in block.gens:
                yield gen, header, _engines(section, block, gen)


def _engines(section: Section, block: Block, gen: float) -> tuple[str, ...]:
    """'render,video', 'all', or with a gate each: 'render@4.5,blitter@7+'."""
    text = block.options.get("engines") or (section.rest[1] if len(section.rest) > 1 else "")
    named: list[str] = []
    for item in ENGINES if text == "all" else text.split(",") if text else ():
        name, at, gate = item.partition("@")
        if name not in ENGINES:
            named = []
            break
        if not at or gen in _gens(section, block.line, gate):
            named.append(name)
    if text and not named or section.kind == "command" and not named or len(section.rest) > 2:
        told = " ".join(section.rest)
        raise section.complain(f"{section.kind} {section.name} needs a key and engines out of {', '.join(ENGINES)}, not {told!r}")
    return tuple(named)


def _blocks(section: Section) -> Iterator[Block]:
    block: Block | None = None
    stack: list[tuple[int, Block]] = []  # (indentation of the group line, its block)
    dword, before = 0, section.source
    for number, line in section.body:
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if text.startswith("gen "):
            if block:
                yield block
            block, stack, dword = _gen_line(section, number, text, before), [], 0
            continue
        if text.startswith("source "):
            before = _source(section.page, number, text.removeprefix("source").strip())
            if block:
                block.source = before
            continue
        if block is None:
            raise section.complain(f"cannot read {text!r} before 'gen …'", number)
        while stack and indent <= stack[-1][0]:
            stack.pop()
        owner = stack[-1][1] if stack else block
        if re.match(r"(or\s+)?group\s", text):
            inner = _group_line(section, number, text, owner, block.source)
            stack.append((indent, inner))
            dword = 0
        else:
            dword = _field_line(section, number, text, owner, dword, block.source)
    if block:
        yield block


def _gen_line(section: Section, number: int, text: str, source: str) -> Block:
    main, cite = _cut_source(section, number, text)
    m = GEN.match(main)
    if not m:
        raise section.complain(f"cannot read {text!r}; expected 'gen 8+  9 dwords'", number)
    gens, dwords = _gens(section, number, m[1]), int(m[2])
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
    return Block(number, gens, cite or source, dwords=dwords, maximum=maximum, options=options)


def _group_line(section: Section, number: int, text: str, owner: Block, source: str) -> Block:
    text, gate, cite = _tail(section, number, text)
    alternate = text.startswith("or ")
    m = GROUP.match(text.removeprefix("or ").strip())
    if not m:
        raise section.complain(f"cannot read {text!r}; expected 'group name  at 1  size 64  times 4'", number)
    start, size = int(m[2]) * 32 + int(m[3] or 0), int(m[4])
    count = None if m[5] == "*" else int(m[5])
    if size == 0 or count == 0 or start + size * (count or 1) > MOST_BITS:
        raise section.complain(f"group {m[1]} must have a size and a count above zero, and end before bit {MOST_BITS}", number)
    inner = Block(number, owner.gens, cite or source, dwords=-(-size // 32))
    owner.groups.append((Group(m[1], start, size, count, (), (), m[6] or "", alternate, cite or source, number), gate, inner))
    return inner


def _field_line(section: Section, number: int, text: str, owner: Block, dword: int, source: str) -> int:
    main, gate, cite = _tail(section, number, text)
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
    pieces = tuple(_piece(section, number, piece, dword) for piece in words[0].split(","))
    rest = " ".join(words[2:])
    condition = WHEN.search(rest)
    rest, when = (rest[: condition.start()], condition[1]) if condition else (rest, "")
    complain = partial(section.complain, line=number)
    kind = read_type(complain, rest.strip(), sum(h - low + 1 for h, low in pieces))
    conditions = read_conditions(complain, when, (f for f, _ in owner.fields)) if when else ()
    owner.fields.append((Field(words[1], pieces, kind, alternate, conditions, cite or source, number), gate))
    return dword


def _piece(section: Section, number: int, text: str, dword: int) -> tuple[int, int]:
    at, slash, bits = text.rpartition("/")
    high, _, low = bits.partition(":")
    base = 32 * (int(at) if slash else dword)
    if int(low or high) > int(high):
        raise section.complain(f"bits run from high to low, not {bits}", number)
    return base + int(high), base + int(low or high)


def _tail(section: Section, number: int, line: str) -> tuple[str, frozenset[float], str]:
    """A line without its gate and source."""
    text, cite = _cut_source(section, number, line.strip())
    text, at, gate = text.rpartition("@") if "@" in text else (text, "", "")
    return text.strip(), _gens(section, number, gate.strip()) if at else EVERY, cite


def _cut_source(section: Section, number: int, line: str) -> tuple[str, str]:
    text, semicolon, cite = line.partition(";")
    return text.strip(), _source(section.page, number, cite.strip()) if semicolon else ""


def _gens(section: Section, number: int, text: str) -> frozenset[float]:
    try:
        return generations(text)
    except ValueError:
        raise section.complain(f"no generations in {text!r}; they are {', '.join(f'{g:g}' for g in GENERATIONS)}", number) from None


# -- one generation ----------------------------------------------------------------------------------------------


def _layout(section: Section, block: Block, gen: float, engines: tuple[str, ...], resolve: Resolve) -> Layout:
    fields, groups = _resolve(section, block, gen, resolve)
    header = _header(section, block)
    name = section.name
    most = block.dwords if block.maximum is None else block.maximum
    _check(section, f"{name}", fields, groups, most * 32, header.claimed if header else 0, block.maximum is None)
    known = {f.name: f.width for f in fields}
    derived = [(number, attribute, expression) for number, attribute, expression, gate in block.derived if gen in gate]
    for number, attribute, expression in derived:
        wrong = check_expression(expression, known) or (f"{name}.{attribute} is named twice" if attribute in known else "")
        if wrong:
            raise section.complain(wrong, number)
        known[attribute] = 64
    offset, relative, count = _offset(section, block)
    return Layout(section.kind, name, gen, block.dwords, block.maximum, fields, groups, tuple((n, e) for _, n, e in derived),
                  header, engines, offset, relative, count, block.source, section.page, block.line)  # fmt: skip


def _offset(section: Section, block: Block) -> tuple[int | None, bool, int]:
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


def _resolve(section: Section, block: Block, gen: float, resolve: Resolve) -> tuple[tuple[Field, ...], tuple[Group, ...]]:
    """The fields and groups of a block that exist on one generation."""
    fields = tuple(f for f, gate in block.fields if gen in gate)
    groups = []
    for group, gate, inner in block.groups:
        if gen not in gate:
            continue
        if group.of:
            try:
                other = resolve(group.of, gen)
            except (KeyError, SpecError):
                raise section.complain(f"group {group.name} is of {group.of}, which gen {gen:g} does not have", group.line) from None
            groups.append(replace(group, fields=other.fields, groups=other.groups, derived=other.derived))
        else:
            inner_fields, inner_groups = _resolve(section, inner, gen, resolve)
            groups.append(replace(group, fields=inner_fields, groups=inner_groups))
    return fields, tuple(groups)


def _header(section: Section, block: Block) -> Header | None:
    if section.kind != "command":
        return None
    key = block.options.get("key") or next(iter(section.rest), "")
    try:
        mask, value, length = _key(key)
    except (ValueError, IndexError):
        known = "0.OP, 2.OP, 3.S.O.SUB and 3.2.O.A.B with OP, SUB and B in hex"
        raise section.complain(f"{key!r} is no key; keys are {known}", block.line) from None
    if "length" in block.options:
        length = _piece(section, block.line, block.options["length"], 0)
    if "with" in block.options:
        bits, _, wanted = block.options["with"].partition("=")
        high, low = _piece(section, block.line, bits, 0)
        mask |= (1 << high + 1) - (1 << low)
        value |= int(wanted) << low
    if length[0] > 31 or mask >> 32 or value & ~mask:
        raise section.complain(f"{section.name}: its key and length must fit dword 0", block.line)
    return Header(key, mask, value, None if "fixed" in block.options else length, int(block.options.get("bias", 2)))


def _key(key: str) -> tuple[int, int, tuple[int, int]]:
    """The header's mask and value, and where the length stands."""
    parts = key.split(".")
    kind = int(parts[0])
    shift = KEY_SHIFT.get(kind, -1)
    if kind in (0, 2) and len(parts) == 2:
        low, length = int(parts[1], 16), (7, 0)
        wide = 29 - shift
    elif kind == 3 and len(parts) in (4, 5):
        subtype, opcode = int(parts[1]), int(parts[2])
        sub = int(parts[3], 16) if len(parts) == 4 else int(parts[3]) << 5 | int(parts[4], 16)
        low, wide = subtype << 11 | opcode << 8 | sub, 13
        length = (11, 0) if len(parts) == 5 else (15, 0) if subtype == 2 else (7, 0)
        if subtype > 3 or opcode > 7 or sub > 255:
            raise ValueError(key)
    else:
        raise ValueError(key)
    if low >> wide:
        raise ValueError(key)
    return (1 << 32) - (1 << shift), kind << 29 | low << shift, length


def _check(section: Section, owner: str, fields: tuple[Field, ...], groups: tuple[Group, ...], bits: int, claimed: int,
           open_end: bool) -> None:  # fmt: skip
    """No overlap without `or`, nothing past the end, no name twice."""
    names: set[str] = set()
    for f in fields:
        if f.high >= bits and not open_end:
            raise section.complain(f"{owner}.{f.name} ends at bit {f.high} of {bits}", f.line)
        if f.name in names:
            raise section.complain(f"{owner}.{f.name} is named twice", f.line)
        if f.mask & claimed and not f.alternate:
            other = next((o.name for o in fields if o.mask & f.mask and o is not f), "the header")
            raise section.complain(f"{owner}.{f.name} overlaps {other}; write 'or' if it is meant", f.line)
        names.add(f.name)
        claimed |= f.mask
    for group in groups:
        if group.name in names:
            raise section.complain(f"{owner}.{group.name} is named twice", group.line)
        names.add(group.name)
        count = group.count or 1
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
