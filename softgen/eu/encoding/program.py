"""Instruction streams: bytes to instructions, native and compact mixed, and instructions to bytes.

`instructions` decodes any bytes. Eight bytes with the compact bit that are an invalid or non-canonical encoding decode to an instruction
with opcode "" and their bits in the residue, so that assembling gives the same bytes.

`assemble(…, compact=True)` compacts every instruction that has a compact form and adjusts the jumps. G45 fetches pairs: native instructions
and jump targets are aligned to 16 bytes there, with a compact nenop as padding (Mesa elk_eu_compact.c).

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

LONGEST = 1 << 20  # bytes: the limit for a kernel of unknown length
PADDING = "nenop"  # generations with this opcode fetch compact instructions in pairs
JUMPS = ("jip", "uip")

NAMES = [field_.name for field_ in fields(Instruction)]
FIELDS, COMPACTED = attrgetter(*NAMES), NAMES.index("compacted")

ProgramLine = tuple[int, int, Instruction]  # byte offset, size, instruction


@cache
def compact_bit(gen: float) -> int:
    """The compact bit, at the same position in both forms."""
    return instruction_page("EU_CONTROL", gen).mask("compacted")


# -- bytes to instructions -----------------------------------------------------------------------------------------


def instructions(data: bytes, gen: float, start: int = 0) -> Iterator[ProgramLine]:
    """Decode bytes from an offset on. Trailing bytes too short for an instruction are ignored: see `decodable_bytes`."""
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


def opcode_numbers(data: bytes, gen: float) -> Iterator[tuple[int, int]]:
    """The offsets and opcodes of instructions; nothing else of them is decoded."""
    marked, mask, start = compact_bit(gen), instruction_page("EU_CONTROL", gen).mask("opcode"), 0
    while start + COMPACT <= len(data):
        half = int.from_bytes(data[start : start + COMPACT], "little")
        yield start, half & mask
        start += COMPACT if half & marked else NATIVE


def decodable_bytes(data: bytes, gen: float) -> int:
    """The number of bytes that form whole instructions."""
    return max((offset + size for offset, size, _ in instructions(data, gen)), default=0)


def decode_compact(half: int, gen: float) -> Instruction:
    """Decode a compact instruction."""
    word = expand(half, gen)
    found = decode(word, gen) if word is not None and is_canonical(half, word, gen) else None
    if found is None or not found.opcode:
        number = half & instruction_page("EU_CONTROL", gen).mask("opcode")
        return Instruction(gen, "", number, "none", compacted=True, residue=half ^ number)
    values = [*FIELDS(found)]
    values[COMPACTED] = True
    return make_instruction(*values)  # six times as fast as `replace`


def kernel_end(data: bytes, gen: float) -> tuple[int, bool]:
    """The end of the kernel at the start of the bytes, and whether it ends its thread: after the first send with EOT that no branch jumps
    over. Otherwise the kernel ends at the first reserved opcode, or with the bytes."""
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
    """Encode a program. Its jumps fit its present layout; `compact` compacts more of it and adjusts them."""
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
    """Encode an instruction; None where `compacted` is set and it has no compact form."""
    word = encode(inst)
    if not inst.compacted:
        return word.to_bytes(NATIVE, "little")
    half = word if word & compact_bit(inst.gen) else short_form(word, inst.gen)  # marked already: the eight bytes themselves
    return None if half is None or half >> 8 * COMPACT else half.to_bytes(COMPACT, "little")


@dataclass
class RelocatedInstruction:
    """An instruction with its old and new offset."""

    inst: Instruction
    old: int
    end: int
    targets: dict[str, int] = field(default_factory=dict)  # field -> target, as an old offset
    new: int = 0


def compacted(program: Sequence[Instruction]) -> list[Instruction]:
    """Compact a program. Shorter distances may let a branch become compact too, so branches, native at first, are retried until nothing
    changes: distances only shrink."""
    slots = _slots(program)
    for slot in slots:
        slot.inst = replace(slot.inst, compacted=False) if slot.targets else _shorter(slot.inst)
    while True:
        moved = _place(slots)
        sizes = [slot.inst.compacted for slot in slots]
        for slot in slots:
            if slot.targets:
                aimed = replace(_aim(slot, moved), compacted=False)
                slot.inst = replace(slot.inst, compacted=_shorter(aimed).compacted)
        if sizes == [slot.inst.compacted for slot in slots]:
            return list(_filled(slots, moved))


def expanded(program: Sequence[Instruction]) -> list[Instruction]:
    """Expand every compact instruction of a program, except invalid ones."""
    slots = _slots(program)
    for slot in slots:
        slot.inst = replace(slot.inst, compacted=slot.inst.compacted and not slot.inst.opcode)
    return list(_filled(slots, _place(slots)))


def _shorter(inst: Instruction) -> Instruction:
    """The instruction in compact form, if it or an equivalent one has one."""
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
    """The distance of `add ip ip NUMBER`. Other uses of ip, and jumps by a register, cannot be relocated."""
    first, last = (inst.sources[0], inst.sources[-1]) if inst.sources else (None, None)
    if inst.form == "branch":
        if inst.opcode == "jmpi" and inst.jip is None:
            raise DecodeError(f"jmpi at {offset:#x} jumps by a register's value: it cannot be relocated")
        return None
    if _is_ip(inst.dst, inst.gen) and _is_ip(first, inst.gen) and inst.opcode == "add" and last is not None and last.file == "imm":
        return (last.immediate ^ 1 << 31) - (1 << 31)
    if any(_is_ip(operand, inst.gen) for operand in (inst.dst, *inst.sources)):
        raise DecodeError(f"{inst.opcode} at {offset:#x} computes with ip: it cannot be relocated")
    return None


def _place(slots: list[RelocatedInstruction]) -> dict[int, int]:
    """Assign new offsets; returns old offset -> new offset, including the end's."""
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
    """The instruction with its jumps adjusted to its new offset."""
    inst, changes = slot.inst, dict[str, Any]()
    for name, target in slot.targets.items():
        if target not in moved:
            raise DecodeError(f"{inst.opcode} at {slot.old:#x} jumps to {target:#x}, which is not the start of an instruction")
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
    """The instructions in order, with padding in the gaps."""
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
