"""Pages: the text of `spec/**/*.layout`, read strictly. A complaint starts with page:line.

A page is a list of sections that begin in column 0:

    source KBL 22480-22560                                     where what follows was read; each line may name its own after ';'
    enum Compare_Function                                      values indented, `5 greater`, gated with @
    command 3DSTATE_VS  3.3.0.10  render                       kind, name, key, engines
      latches  group vs                                        what the command does, for all generations or, after a gen line, for those
      gen 7..7.5  6 dwords                                     generations, length, options: key, length, fixed, bias, at, times, engines
        1  31:6  kernel_start_pointer  address instruction kernel   @7  ; IVB 120
        2  31:6  pointer  address dynamic data  gate pointer_valid      a bit of the same record without which the field is not taken
        or 2  31:0  other_reading      when mode=simd8
        group element  at 1  size 64  times *                  deeper lines are fields of one element; `of NAME` takes a structure's
        derive  size  end - start + 1
    register RING_BUFFER_HEAD  +0x34  all                      an offset with + counts from where the engine's registers start

A command `latches` (replaces its last occurrence), `merges by FIELD,…` (replaces what has the same values there), `merges by gates`
(fields whose gate is set), `merges by position` (as many dwords as it has), `merges under FIELD` (bits that are set in that field), `acts`
or `starts` work. `group NAME` says what the state is for; `acts when FIELD,…` names bits that make a state command act.

A length of `4..5 dwords` or `4+ dwords` says that dwords past the fourth may be missing; fields there then read zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from softgen.bits.layout import GENERATIONS, Header, Layout
from softgen.bits.page.build import RegisterSpan, Resolve, build_layout, read_header, read_offset
from softgen.bits.page.lines import EFFECTS, OPTIONS, LayoutBlock, blocks, gen_line
from softgen.bits.page.section import EVERY, KINDS, SOURCE, PageSection, cut_tail, read_generations, sections

__all__ = ["EFFECTS", "KINDS", "OPTIONS", "SOURCE", "PageSection", "RegisterSpan", "enumeration", "generations_of", "header", "layouts",
           "read", "sections", "span"]  # fmt: skip

ENGINES = ("render", "blitter", "video", "video_enhance", "position_only")


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


def enumeration(section: PageSection) -> dict[float, dict[int, str]]:
    """The values of an enum section by generation."""
    values: dict[float, dict[int, str]] = {gen: {} for gen in GENERATIONS}
    for number, line in section.body:
        text, gate, _ = cut_tail(section, number, line)
        m = re.match(r"(0x[0-9a-f]{1,16}|0|[1-9]\d{0,18})\s+(\S.*)$", text)
        if not m:
            raise section.complain(f"an enumeration's line is a number and a name, not {text!r}", number)
        for gen in gate:
            if int(m[1], 0) in values[gen]:
                raise section.complain(f"{section.name} names {m[1]} twice on gen {gen:g}", number)
            values[gen][int(m[1], 0)] = m[2].strip()
    return values


def layouts(section: PageSection, resolve: Resolve, wanted: frozenset[float] = EVERY) -> Iterator[Layout]:
    """One layout for each wanted generation a section speaks of."""
    if not section.source:
        raise section.complain(f"{section.name} has no source; write 'source …' above it")
    if not generations_of(section):
        raise section.complain(f"{section.name} has no `gen` block")
    for block in blocks(section, wanted):
        for gen in sorted(block.gens & wanted):
            yield build_layout(section, block, gen, _engines(section, block, gen), resolve)


def generations_of(section: PageSection) -> tuple[float, ...]:
    """The generations a section speaks of, without reading its fields."""
    return tuple(gen for gen, _ in _heads(section))


def _heads(section: PageSection) -> Iterator[tuple[float, LayoutBlock]]:
    """What the `gen` lines of a section say, by generation."""
    seen: set[float] = set()
    for number, line in section.gen_lines():
        block = gen_line(section, number, line, section.source)
        for gen in sorted(block.gens):
            if gen in seen:
                raise section.complain(f"{section.name} is laid out twice for gen {gen:g}", number)
            seen.add(gen)
            yield gen, block


def header(section: PageSection, wanted: float) -> tuple[Header, tuple[str, ...]] | None:
    """A command's header and engines on a generation, without reading its fields; None where it does not have the command."""
    for gen, block in _heads(section):
        if gen == wanted:
            found = read_header(section, block)
            assert found is not None
            return found, _engines(section, block, gen)
    return None


def span(section: PageSection, wanted: float) -> RegisterSpan | None:
    """The place of a register on a generation, without reading its fields; None where it does not have the register."""
    for gen, block in _heads(section):
        if gen == wanted:
            offset, relative, count = read_offset(section, block)
            assert offset is not None
            return RegisterSpan(offset, relative, 4 * block.dwords * count, _engines(section, block, gen))
    return None


def _engines(section: PageSection, block: LayoutBlock, gen: float) -> tuple[str, ...]:
    """'render,video', 'all', or with a gate each: 'render@4.5,blitter@7+'."""
    text = block.options.get("engines") or (section.rest[1] if len(section.rest) > 1 else "")
    named: list[str] = []
    for item in ENGINES if text == "all" else text.split(",") if text else ():
        name, at, gate = item.partition("@")
        if name not in ENGINES:
            named = []
            break
        if not at or gen in read_generations(section, block.line, gate):
            named.append(name)
    if text and not named or section.kind == "command" and not named or len(section.rest) > 2:
        words = " ".join(section.rest)
        raise section.complain(f"{section.kind} {section.name} needs a key and engines out of {', '.join(ENGINES)}, not {words!r}")
    return tuple(named)
