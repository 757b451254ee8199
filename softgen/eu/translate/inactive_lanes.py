"""Inactive-lane liveness: drops the write mask where no inactive lane's old value is read again.

Most values inside an if or a loop are of that kind. A channel is one thread of a program, so liveness is computed as each channel sees it,
over the parts whose every byte belongs to one channel in all instructions. Channels that are inactive at an instruction wait at known
addresses; what is not live there may be overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable

from softgen.eu.interpreter import SENDS
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics.descriptor_bits import known_bits
from softgen.eu.translate.control_flow import BasicBlock, ControlFlowGraph
from softgen.eu.translate.liveness import Exit, Segment, effect
from softgen.eu.translate.registers import TRUE, RegisterAccess, RegisterPart, RegisterPartition
from softgen.shared_functions import message

ACROSS = frozenset({"dp2", "dp3", "dp4", "dph", "sad2", "sada2"})  # read lanes of other channels
LANES = frozenset({"simd8", "simd16", "8_dwords", "16_dwords"})  # modes of messages that have a lane for each channel


def by_lane(inst: Instruction) -> bool:
    """Whether each lane that an instruction reads belongs to one channel. Messages with other modes move whole registers."""
    if inst.opcode not in SENDS:
        return inst.opcode not in ACROSS
    bits = known_bits(inst.descriptor)
    if bits is None:
        return False
    words = message.plan(inst.sfid, bits, inst.gen).words
    return (words.get("simd_mode") or words.get("block_size", "")) in LANES


def drop_write_masks(graph: ControlFlowGraph, segments: dict[int, Segment], registers: RegisterPartition) -> None:
    """Make unmasked the writes that cover every active channel and overwrite nothing that is live in an inactive one."""
    own = {part for part in registers.parts.get("grf", ()) if part.variable}
    own = own.difference(*(registers.covering(access) for access in _mixed(registers, own)))
    if not own:
        return
    number = {part: 1 << index for index, part in enumerate(own)}
    effects = {access: effect(access, registers, number, _replaces(access)) for access in registers.accesses if access.place == "grf"}
    live = _live(graph, segments, effects)
    homes = _homes(graph, segments)
    for ip, segment in segments.items():
        live_elsewhere = 0
        for at in homes[ip].pending:
            live_elsewhere |= live.get(at, ~0)
        for item in segment.items:
            if isinstance(item, RegisterAccess) and item in effects and item.everyone and item.mask != TRUE:
                kills = effects[item][1]
                if kills.bit_count() == len(registers.covering(item)) and not kills & live_elsewhere:
                    item.mask = TRUE


def _mixed(registers: RegisterPartition, own: set[RegisterPart]) -> Iterable[RegisterAccess]:
    """Accesses of parts in which a channel may read another's bytes."""
    places: dict[RegisterPart, dict[int, tuple[int, int]]] = {part: {} for part in own}
    for access in registers.accesses:
        if access.place != "grf" or access.mask == TRUE and not access.result:
            continue
        if access.channel is None:
            yield access
            continue
        for lane, offset in enumerate(access.offsets):
            for part in registers.covering(access):
                if part.start <= offset < part.end and part in places:
                    owner = access.channel + lane, access.type.bytes
                    if places[part].setdefault(offset, owner) != owner or access.type.bytes != next(iter(places[part].values()))[1]:
                        yield access


def _replaces(access: RegisterAccess) -> bool:
    """Whether the old value is dead for every active channel."""
    return not access.result and (access.everyone or access.mask == TRUE)


def _homes(graph: ControlFlowGraph, segments: dict[int, Segment]) -> dict[int, BasicBlock]:
    """The basic block of each segment."""
    found, block = {}, next(iter(graph.blocks.values()))
    for ip in sorted(segments):
        block = graph.blocks.get(ip, block)
        found[ip] = block
    return found


def _live(graph: ControlFlowGraph, segments: dict[int, Segment], effects: dict[RegisterAccess, tuple[int, int]]) -> dict[int, int]:
    """Live-in parts of each segment, as one channel sees them."""
    homes = _homes(graph, segments)
    successors = {ip: (segment.successors | homes[ip].sent | set(homes[ip].successors)) & set(segments) for ip, segment in segments.items()}
    for ip, segment in segments.items():  # resume points
        successors[ip] |= {item.ip for item in segment.items if isinstance(item, Exit)} & set(segments)
    predecessors: dict[int, set[int]] = {}
    for ip, targets in successors.items():
        for to in targets:
            predecessors.setdefault(to, set()).add(ip)
    live, todo = dict.fromkeys(segments, 0), list(segments)
    while todo:
        ip = todo.pop()
        now = 0
        for to in successors[ip]:
            now |= live[to]
        for item in reversed(segments[ip].items):
            if isinstance(item, RegisterAccess) and item in effects:
                reads, kills = effects[item]
                now = now & ~kills | reads
        if now != live[ip]:
            live[ip] = now
            todo += predecessors.get(ip, ())
    return live
