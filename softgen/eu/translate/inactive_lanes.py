"""Inactive-lane liveness: drops the write mask where no inactive lane's old value is read again.

Most values inside an if or a loop are of that kind. A channel is one thread of a program, so liveness is computed as each channel sees it.
Channels that are inactive at an instruction wait at known addresses; what is not live there may be overwritten.

Bytes may belong to one channel in some instructions and to another in others: compilers of SIMD32 kernels use a register for channels from
0 on, later for those from 16 on, or for a scalar. So a part counts once for each lane map. What a write without its mask overwrites must
also be dead in the other maps, in which it may belong to a channel that is active.
"""

from __future__ import annotations

from itertools import pairwise

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


LaneMap = tuple[int, ...]  # which channel the bytes of a part belong to: the same for the same channels
ANYONE: LaneMap = ()  # bytes may be read by any channel
Effects = dict[RegisterAccess, tuple[int, int]]  # what each access reads and kills, a bit for each part and lane map


def lane_map(access: RegisterAccess) -> LaneMap:
    """The lane map of an access. Accesses with the same one agree on the channel of every byte; a lane may be a part of its channel's."""
    size, offsets = access.type.bytes, access.offsets
    if access.channel is None or any(b - a < size for a, b in pairwise(sorted(offsets))):
        return ANYONE
    steps = {b - a for a, b in pairwise(offsets)} or {size}
    step = steps.pop()
    if steps or step < 0:
        return size, access.channel, *offsets
    start = offsets[0] - step * access.channel
    return (step, start - start % step) if start % step + size <= step else (size, step, start)


def drop_write_masks(graph: ControlFlowGraph, segments: dict[int, Segment], registers: RegisterPartition) -> None:
    """Make unmasked the writes that cover every active channel and overwrite nothing that is live in an inactive one."""
    maps = _maps(registers)
    effects = _effects(registers, maps)
    live = _live(graph, segments, effects)
    homes = _homes(graph, segments)
    for ip, segment in segments.items():
        live_elsewhere = 0
        for at in homes[ip].pending:
            live_elsewhere |= live.get(at, ~0)
        now = _live_out(segment, homes[ip], live)
        for item in reversed(segment.items):
            if not isinstance(item, RegisterAccess) or item not in effects:
                continue
            reads, kills = effects[item]
            if item.everyone and item.mask != TRUE:
                parts = registers.covering(item)
                other_maps = sum(sum(maps[part].values()) for part in parts if part in maps) & ~kills
                if kills.bit_count() == len(parts) and not (kills | other_maps) & live_elsewhere and not other_maps & now:
                    item.mask = TRUE
            now = now & ~kills | reads


def _maps(registers: RegisterPartition) -> dict[RegisterPart, dict[LaneMap, int]]:
    """A bit for each lane map of each part that is a variable."""
    found: dict[RegisterPart, dict[LaneMap, int]] = {part: {} for part in registers.parts.get("grf", ()) if part.variable}
    count = 0
    for access in registers.accesses:
        for part in registers.covering(access) if access.place == "grf" else ():
            if part in found and lane_map(access) not in found[part]:
                found[part][lane_map(access)] = 1 << count
                count += 1
    return found


def _effects(registers: RegisterPartition, maps: dict[RegisterPart, dict[LaneMap, int]]) -> Effects:
    """A write of all lanes, whichever channels are active, replaces a part in every lane map."""
    every = {part: sum(bits.values()) for part, bits in maps.items()}
    found: Effects = {}
    for access in registers.accesses:
        if access.place != "grf":
            continue
        known = lane_map(access)
        if access.result or access.mask != TRUE:
            number = {part: maps[part][known] for part in registers.covering(access) if part in maps}
        else:
            number = every
        reads, kills = effect(access, registers, number, _replaces(access))
        found[access] = reads if access.result else 0, kills
    return found


def _replaces(access: RegisterAccess) -> bool:
    """Whether the old value is dead for every active channel."""
    return not access.result and (access.everyone or access.mask == TRUE)


def _targets(segment: Segment, home: BasicBlock) -> set[int]:
    """Where channels go from a segment, or resume after one of its exits."""
    return segment.successors | home.sent | set(home.successors) | {item.ip for item in segment.items if isinstance(item, Exit)}


def _live_out(segment: Segment, home: BasicBlock, live: dict[int, int]) -> int:
    found = 0
    for to in _targets(segment, home):
        found |= live.get(to, 0)
    return found


def _homes(graph: ControlFlowGraph, segments: dict[int, Segment]) -> dict[int, BasicBlock]:
    """The basic block of each segment."""
    found, block = {}, next(iter(graph.blocks.values()))
    for ip in sorted(segments):
        block = graph.blocks.get(ip, block)
        found[ip] = block
    return found


def _live(graph: ControlFlowGraph, segments: dict[int, Segment], effects: Effects) -> dict[int, int]:
    """Live-in parts of each segment, as one channel sees them."""
    homes = _homes(graph, segments)
    predecessors: dict[int, set[int]] = {}
    for ip, segment in segments.items():
        for to in _targets(segment, homes[ip]) & set(segments):
            predecessors.setdefault(to, set()).add(ip)
    live, todo = dict.fromkeys(segments, 0), list(segments)
    while todo:
        ip = todo.pop()
        now = _live_out(segments[ip], homes[ip], live)
        for item in reversed(segments[ip].items):
            if isinstance(item, RegisterAccess) and item in effects:
                reads, kills = effects[item]
                now = now & ~kills | reads
        if now != live[ip]:
            live[ip] = now
            todo += predecessors.get(ip, ())
    return live
