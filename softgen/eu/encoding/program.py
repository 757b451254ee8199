"""Programs: bytes become a stream of instructions, native and compact mixed, and a list of instructions becomes bytes.

`instructions` reads whatever stands there. Eight bytes that are marked compact and stand for no instruction, or are not what `compact`
would make of it, come out as no instruction (opcode ""), with their bits in the residue: assembling gives the same bytes again.

`assemble(…, compact=True)` makes all compact that can be and moves the jumps along. G45 fetches pairs: what is not compact, and what is
jumped to, stands on 16 bytes there, with a compact nenop before it where needed (Mesa elk_eu_compact.c).

Reads  EU_CONTROL
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any

from softgen.errors import DecodeError
from softgen.eu.encoding.compact import compact as short_form
from softgen.eu.encoding.compact import expand, is_canonical, relax
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.isa import labels, opcodes, registers
from softgen.eu.isa.instruction import Instruction, Operand, make_instruction
from softgen.eu.isa.labels import COMPACT, NATIVE

LONGEST = 1 << 20  # bytes of a kernel whose length nobody says
PADDING = "nenop"  # where this exists, pairs of compact instructions are fetched together
JUMPS = ("jip", "uip")

NAMES = [field_.name for field_ in fields(Instruction)]
FIELDS, COMPACTED = attrgetter(*NAMES), NAMES.index("compacted")

ProgramLine = tuple[int, int, Instruction]  # byte offset, size, instruction


@cache
def compact_bit(gen: float) -> int:
    """The bit that says compact; it stands at the same place in both forms."""
    return instruction_page("EU_CONTROL", gen).mask("compacted")


# -- bytes to instructions -----------------------------------------------------------------------------------------


def instructions(data: bytes, gen: float, start: int = 0) -> Iterator[ProgramLine]:
    """What stands in the bytes from an offset on. A rest too short for an instruction is left: see `whole`."""
    marked, limit = compact_bit(gen), len(data)
    while start + COMPACT <= limit:
        half = int.from_bytes(data[start : start + COMPACT], "little")
        if half & marked:
            yield start, COMPACT, decode_compact(half, gen)
            start += COMPACT
        elif start + NATIVE <= limit:
            yield start, NATIVE, decode(int.from_bytes(data[start : start + NATIVE], "little"), gen)
            start += NATIVE
        else:
            return


def decodable_bytes(data: bytes, gen: float) -> int:
    """How many of the bytes are whole instructions."""
    return max((offset + size for offset, size, _ in instructions(data, gen)), default=0)


def decode_compact(half: int, gen: float) -> Instruction:
    """The instruction in eight bytes."""
    word = expand(half, gen)
    found = decode(word, gen) if word is not None and is_canonical(half, word, gen) else None
    if found is None or not found.opcode:
        number = half & instruction_page("EU_CONTROL", gen).mask("opcode")
        return Instruction(gen, "", number, "none", compacted=True, residue=half ^ number)
    values = [*FIELDS(found)]
    values[COMPACTED] = True
    return make_instruction(*values)  # six times as fast as `replace`


def kernel_end(data: bytes, gen: float) -> tuple[int, bool]:
    """Where a kernel that starts the bytes ends, and whether it ends its thread: behind the first send that does so and that no branch
    jumps over. Without one, or with routines behind it, it ends where something stands that is no instruction, or with the bytes."""
    reached = end = 0
    ends = False
    for offset, size, inst in instructions(data[:LONGEST], gen):
        if not inst.opcode or inst.opcode == "illegal":
            break
        end = offset + size
        reached = max([reached, *(target for target in labels.targets([(offset, size, inst)]) if target < len(data))])
        ends |= inst.eot
        if inst.eot and reached < end:
            break
    return end, ends


# -- instructions to bytes -----------------------------------------------------------------------------------------


def assemble(program: Iterable[Instruction], compact: bool = False) -> bytes:
    """The bytes of a program, whose jumps are right for it as it stands; `compact` makes more of it compact and corrects them."""
    kept = list(program)
    if compact:
        kept = compacted(kept)
    return b"".join(map(_bytes, kept))


def _bytes(inst: Instruction) -> bytes:
    found = encoded(inst)
    if found is None:
        raise DecodeError(f"{inst.opcode or 'what is no instruction'} has no compact form: {inst}")
    return found


def encoded(inst: Instruction) -> bytes | None:
    """An instruction's bytes; None for one that shall be compact and has no such form."""
    word = encode(inst)
    if not inst.compacted:
        return word.to_bytes(NATIVE, "little")
    half = word if word & compact_bit(inst.gen) else short_form(word, inst.gen)  # marked already: the eight bytes themselves
    return None if half is None or half >> 8 * COMPACT else half.to_bytes(COMPACT, "little")


@dataclass
class RelocatedInstruction:
    """An instruction on its way to a new place."""

    inst: Instruction
    old: int
    end: int
    targets: dict[str, int] = field(default_factory=dict)  # field -> where it leads, in old offsets
    new: int = 0


def compacted(program: Sequence[Instruction]) -> list[Instruction]:
    """The same program with everything compact that can be. Shorter ways may let a branch become compact too, so they are tried again
    until nothing changes; one that grew back stays as it is."""
    slots = _slots(program)
    stubborn: set[int] = set()
    for slot in slots:
        if not slot.targets:
            slot.inst = _shorter(slot.inst)
    while True:
        moved = _place(slots)
        sizes = [slot.inst.compacted for slot in slots]
        for slot in slots:
            if slot.targets:
                aimed = replace(_aim(slot, moved), compacted=False)
                fits = slot.old not in stubborn and _shorter(aimed).compacted
                if slot.inst.compacted and not fits:
                    stubborn.add(slot.old)
                slot.inst = replace(slot.inst, compacted=fits)
        if sizes == [slot.inst.compacted for slot in slots]:
            return list(_filled(slots, moved))


def expanded(program: Sequence[Instruction]) -> list[Instruction]:
    """The same program with nothing compact, but for what is no instruction."""
    slots = _slots(program)
    for slot in slots:
        slot.inst = replace(slot.inst, compacted=slot.inst.compacted and not slot.inst.opcode)
    return list(_filled(slots, _place(slots)))


def _shorter(inst: Instruction) -> Instruction:
    """The instruction as compact as it can be: its own word, or another of the same meaning."""
    if inst.compacted or not inst.opcode:
        return inst
    word = encode(inst)
    for candidate in (word, relax(word, inst.gen)):
        if short_form(candidate, inst.gen) is not None:
            return replace(decode(candidate, inst.gen), compacted=True)
    return inst


def _slots(program: Sequence[Instruction]) -> list[RelocatedInstruction]:
    offset, found = 0, []
    for inst in program:
        slot = RelocatedInstruction(inst, offset, offset + labels.size(inst))
        for name in () if labels.is_absolute(inst) else JUMPS:
            count = getattr(inst, name)
            if count is not None:
                slot.targets[name] = labels.target(inst, offset, count)
        if (added := _added(inst, offset)) is not None:
            slot.targets["sources"] = offset + added
        found.append(slot)
        offset = slot.end
    return found


def _is_ip(operand: Operand | None, gen: float) -> bool:
    ip = registers.register("ip", gen)
    return ip is not None and operand is not None and operand.file == "arf" and operand.number == ip.code and not operand.indirect


def _added(inst: Instruction, offset: int) -> int | None:
    """How far `add ip ip NUMBER` goes. Nothing else that computes with ip, or jumps by what a register holds, can be moved."""
    first, last = (inst.sources[0], inst.sources[-1]) if inst.sources else (None, None)
    if inst.form == "branch":
        if inst.opcode == "jmpi" and inst.jip is None:
            raise DecodeError(f"jmpi at {offset:#x} jumps by what a register holds: it cannot be moved")
        return None
    if _is_ip(inst.dst, inst.gen) and _is_ip(first, inst.gen) and inst.opcode == "add" and last is not None and last.file == "imm":
        return (last.immediate ^ 1 << 31) - (1 << 31)
    if any(_is_ip(operand, inst.gen) for operand in (inst.dst, *inst.sources)):
        raise DecodeError(f"{inst.opcode} at {offset:#x} computes with ip: it cannot be moved")
    return None


def _place(slots: list[RelocatedInstruction]) -> dict[int, int]:
    """Gives every slot its new place; the new places by old ones, the end's among them."""
    pairs = bool(slots) and opcodes.opcode(PADDING, slots[0].inst.gen) is not None
    targets = {target for slot in slots for target in slot.targets.values()} if pairs else set()
    offset, moved = 0, {}
    for slot in slots:
        if pairs and offset % NATIVE and (not slot.inst.compacted or slot.targets or slot.old in targets):
            offset += COMPACT
        moved[slot.old] = slot.new = offset
        offset += labels.size(slot.inst)
    if slots:
        moved[slots[-1].end] = offset + (offset % NATIVE if pairs else 0)
    return moved


def _aim(slot: RelocatedInstruction, moved: dict[int, int]) -> Instruction:
    """The instruction with its jumps as they are from its new place."""
    inst, changes = slot.inst, dict[str, Any]()
    for name, target in slot.targets.items():
        if target not in moved:
            raise DecodeError(f"{inst.opcode} at {slot.old:#x} jumps to {target:#x}, where no instruction begins")
        if name == "sources":
            last = replace(inst.sources[-1], immediate=moved[target] - slot.new & 0xFFFFFFFF)
            changes[name] = (*inst.sources[:-1], last)
        elif (count := labels.count(inst, slot.new, moved[target])) is None:
            unit = labels.unit(inst.gen, inst.opcode)
            raise DecodeError(f"{inst.opcode} at {slot.old:#x} cannot jump to {moved[target]:#x}: jumps count {unit} bytes")
        else:
            changes[name] = count
    return replace(inst, **changes) if changes else inst


def _filled(slots: list[RelocatedInstruction], moved: dict[int, int]) -> Iterator[Instruction]:
    """The instructions in order, with padding where places were left out."""
    offset = 0
    for slot in slots:
        if slot.new > offset:
            yield _padding(slot.inst.gen)
        yield _aim(slot, moved)
        offset = slot.new + labels.size(slot.inst)
    if slots and moved[slots[-1].end] > offset:
        yield _padding(slots[0].inst.gen)


def _padding(gen: float) -> Instruction:
    row = opcodes.opcode(PADDING, gen)
    assert row is not None
    return decode_compact(row.number | compact_bit(gen), gen)
