"""Lanes of channels that are elsewhere. Where nobody will read them again, an instruction may write all lanes, and need not keep the old
ones apart: most values inside an if or a loop are of that kind.

A channel is one thread of a program: what it writes where it is active, it has written, whoever else is there. So a register is followed
as each channel sees it, through parts whose every byte belongs to one channel, whichever instruction uses it. Channels that are not where
an instruction is wait at known places; what none of them reads from there on may be overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable

from softgen.eu.interpreter import SENDS
from softgen.eu.isa.instruction import Instruction
from softgen.eu.translate.control_flow import Block, Graph
from softgen.eu.translate.liveness import Leave, Segment, effect
from softgen.eu.translate.registers import TRUE, Access, Part, Registers
from softgen.shared_functions import exchange

ACROSS = frozenset({"dp2", "dp3", "dp4", "dph", "sad2", "sada2"})  # compute with lanes of neighbours
LANES = frozenset({"simd8", "simd16", "8_dwords", "16_dwords"})  # modes of messages that have a lane for each channel


def by_lane(one: Instruction) -> bool:
    """Whether every lane that an instruction reads is for one channel. Messages with other modes move registers for any channel."""
    if one.opcode not in SENDS:
        return one.opcode not in ACROSS
    if not isinstance(one.descriptor, int):
        return False
    said = exchange.plan(one.sfid, one.descriptor, one.gen).words
    return (said.get("simd_mode") or said.get("block_size", "")) in LANES


def spread(graph: Graph, segments: dict[int, Segment], registers: Registers) -> None:
    """Makes writes of all lanes out of those that reach every active channel and leave nothing that another will read."""
    own = {part for part in registers.parts.get("grf", ()) if part.variable}
    own = own.difference(*(registers.covering(one) for one in _mixed(registers, own)))
    if not own:
        return
    number = {part: 1 << index for index, part in enumerate(own)}
    effects = {one: effect(one, registers, number, _replaces(one)) for one in registers.accesses if one.place == "grf"}
    live = _live(graph, segments, effects)
    homes = _homes(graph, segments)
    for ip, one in segments.items():
        read_elsewhere = 0
        for at in homes[ip].pending:
            read_elsewhere |= live.get(at, ~0)
        for item in one.items:
            if isinstance(item, Access) and item in effects and item.everyone and item.mask != TRUE:
                kills = effects[item][1]
                if kills.bit_count() == len(registers.covering(item)) and not kills & read_elsewhere:
                    item.mask = TRUE


def _mixed(registers: Registers, own: set[Part]) -> Iterable[Access]:
    """Accesses of parts in which a channel may see another's bytes."""
    places: dict[Part, dict[int, tuple[int, int]]] = {part: {} for part in own}
    for access in registers.accesses:
        if access.place != "grf" or access.mask == TRUE and not access.result:
            continue
        if access.channel is None:
            yield access
            continue
        for lane, offset in enumerate(access.offsets):
            for part in registers.covering(access):
                if part.start <= offset < part.end and part in places:
                    mine = access.channel + lane, access.type.bytes
                    if places[part].setdefault(offset, mine) != mine or access.type.bytes != next(iter(places[part].values()))[1]:
                        yield access


def _replaces(access: Access) -> bool:
    """Whether a channel that is active finds nothing of what was there before."""
    return not access.result and (access.everyone or access.mask == TRUE)


def _homes(graph: Graph, segments: dict[int, Segment]) -> dict[int, Block]:
    """The block that each segment is of."""
    found, block = {}, next(iter(graph.blocks.values()))
    for ip in sorted(segments):
        block = graph.blocks.get(ip, block)
        found[ip] = block
    return found


def _live(graph: Graph, segments: dict[int, Segment], effects: dict[Access, tuple[int, int]]) -> dict[int, int]:
    """Parts that a channel at the beginning of a segment may read before it writes them."""
    homes = _homes(graph, segments)
    leads = {ip: (one.leads | homes[ip].sent | set(homes[ip].leads)) & set(segments) for ip, one in segments.items()}
    for ip, one in segments.items():  # where a thread that was left goes on
        leads[ip] |= {item.ip for item in one.items if isinstance(item, Leave)} & set(segments)
    before: dict[int, set[int]] = {}
    for ip, targets in leads.items():
        for to in targets:
            before.setdefault(to, set()).add(ip)
    live, todo = dict.fromkeys(segments, 0), list(segments)
    while todo:
        ip = todo.pop()
        now = 0
        for to in leads[ip]:
            now |= live[to]
        for item in reversed(segments[ip].items):
            if isinstance(item, Access) and item in effects:
                reads, kills = effects[item]
                now = now & ~kills | reads
        if now != live[ip]:
            live[ip] = now
            todo += before.get(ip, ())
    return live
