"""Formatter of Mesa's dialect: `add(16)  g4<1>F  g2<8,8,1>F  g6<8,8,1>F  { align1 1H };`

What the dialect cannot express follows the instruction as `/* bits: 0x… */`, the bits to xor into the encoding of the text. They are
found without parsing: every part of the text comes with the values that it denotes; with them the instruction is `normal`.

Some operands are implied, and compilers differ in them. The convention is `mesa`, or another one of spec/eu/mesa.table, which a
line at the head of the text then declares: `pragma`.

Reads   EU_SEND EU_SOURCE_1
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from softgen.bits.record import split
from softgen.eu.encoding.encode import encode
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.encoding.operand import operand_fields
from softgen.eu.isa import labels as jumps
from softgen.eu.isa import opcodes, types
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.opcodes import Opcode
from softgen.eu.text import lexer
from softgen.eu.text.mesa import operand as mesa_operand
from softgen.eu.text.mesa.controls import head, options, row_of
from softgen.eu.text.mesa.defaults import (
    NOTHING,
    absent_type,
    implied_extended,
    implied_operands,
    implied_residue,
    implies_absolute,
    offsets,
)
from softgen.eu.text.mesa.names import CONVENTIONS, DEFAULT_CONVENTION, mesa_words
from softgen.eu.text.mesa.operand import (
    FULL,
    OperandText,
    destination,
    immediate,
    immediate_64,
    payload,
    source,
    source_align1,
    source_three,
)
from softgen.shared_functions import descriptors

COLUMNS = (16, 32, 48, 64)  # of operands and options, as in Mesa's listings
COMPR4 = 0x80  # of a G45 message register's number: the second half is written four registers further
Changes = dict[str, Any]
Labels = Mapping[int, str]

NOT_AN_INSTRUCTION = "illegal"


def text(instruction: Instruction, labels: Labels | None = None, offset: int = 0, convention: str = DEFAULT_CONVENTION) -> str:
    """Format an instruction; `labels` names byte offsets of the program, `offset` is the instruction's own."""
    denoted, changes = _format(instruction, labels, offset, convention)
    if not changes:
        return denoted
    return denoted + lexer.annotation_text(encode(instruction) ^ encode(_normal(instruction, changes)))


def normal(instruction: Instruction, convention: str = DEFAULT_CONVENTION) -> Instruction:
    """The instruction that its text denotes without the annotation."""
    return _normal(instruction, _format(instruction, None, 0, convention)[1])


def _normal(instruction: Instruction, changes: Changes) -> Instruction:
    return replace(instruction, **changes) if changes else instruction


def pragma(convention: str) -> str:
    """The line that declares a convention; empty for the default."""
    return "" if convention == DEFAULT_CONVENTION else f"// implied operands: {convention}\n"


def convention_of(instructions: Iterable[Instruction]) -> str:
    """The convention that needs the fewest annotations for a program."""
    affected = [inst for inst in instructions if _depends_on_convention(inst)]
    return min(CONVENTIONS, key=lambda convention: sum(bool(_format(inst, None, 0, convention)[1]) for inst in affected))


def _depends_on_convention(inst: Instruction) -> bool:
    if inst.form in ("branch", "send") or not inst.opcode or not inst.dst:
        return inst.form in ("branch", "send")
    immediate = len(inst.sources) == 1 and inst.sources[0].file == "imm"
    return immediate or bool(implied_operands(inst.gen, inst.opcode, inst.align16, DEFAULT_CONVENTION))


def program(items: Iterable[tuple[int, int, Instruction]], convention: str | None = None) -> str:
    """Format a program with its labels, from byte offsets, sizes and instructions."""
    kept = list(items)
    convention = convention_of(inst for _, _, inst in kept) if convention is None else convention
    named = jumps.names(kept)
    lines = [pragma(convention)]
    for offset, _, inst in kept:
        lines += [f"{named[offset]}:\n"] if offset in named else []
        lines += [text(inst, named, offset, convention), "\n"]
    end = kept[-1][0] + kept[-1][1] if kept else 0
    return "".join([*lines, f"{named[end]}:\n" if end in named else ""])


def _format(inst: Instruction, labels: Labels | None, offset: int, convention: str) -> tuple[str, Changes]:
    """The text, and the fields that it omits."""
    if not inst.opcode:
        row = opcodes.opcode(NOT_AN_INSTRUCTION, inst.gen)
        assert row is not None
        blank = Instruction(inst.gen, row.name, row.number, row.form, compacted=inst.compacted)
        return _format(blank, None, 0, convention)[0], {
            name: getattr(blank, name) for name in ("opcode", "opcode_number", "form", "residue")
        }
    frame = _frame(CONTROLS(inst), _compr4(inst))
    row, changes, line = frame.row, frame.changes, frame.start
    if frame.bare and inst == Instruction(inst.gen, row.name, row.number, row.form):
        return f"{inst.opcode:<{COLUMNS[-1]}};", {}
    parts, more = _FORMATTERS[row.form](inst, row, labels, offset, convention)
    if changes or more:
        changes = {**changes, **more}
    usual = implied_residue(inst, convention)
    if inst.residue != usual:
        changes = {**changes, "residue": usual}
    if inst.mask_control_ex:
        changes = {**changes, "mask_control_ex": False}
    for column, part in zip(COLUMNS, parts, strict=False):
        line = f"{line:<{column - 1}} {part}"
    for part in parts[len(COLUMNS) :]:
        line = f"{line} {part}"
    return f"{line:<{COLUMNS[-1] - 1}} {frame.end}", changes


CONTROLS = attrgetter("gen", "opcode", "predicate", "predicate_invert", "flag", "flag_sub", "saturate", "condition", "function",
                      "exec_size", "align16", "no_mask", "no_dd_clear", "no_dd_check", "quarter", "nibble", "compacted",
                      "thread_control", "acc_write", "branch_control", "eot", "breakpoint")  # fmt: skip


class LineFrame(NamedTuple):
    """The text around the operands, and the control fields that it omits."""

    row: Opcode
    start: str
    changes: Changes
    end: str
    bare: bool


@lru_cache(1 << 14)
def _frame(controls: tuple[Any, ...], compr4: bool) -> LineFrame:
    gen, opcode, *start, size, align16, no_mask, clear, check, quarter, nibble, compacted, thread, acc, branch, eot, stop = controls
    denoted, changes = head(gen, opcode, *start, size, align16)
    end = options(gen, align16, no_mask, clear, check, quarter, nibble, size, compacted, thread, acc, branch, eot, stop, compr4)
    return LineFrame(row_of(opcode, gen), denoted, changes, end, opcode in mesa_words(gen).sets["bare"])


def _compr4(inst: Instruction) -> bool:
    return bool(inst.quarter == 2 and inst.dst is not None and inst.dst.file == "mrf" and not inst.dst.indirect and inst.dst.number & COMPR4
                and mesa_words(inst.gen).write["compression"])  # fmt: skip


# -- operands by form ----------------------------------------------------------------------------------------------

FormattedOperands = tuple[list[str], Changes]


def _agree(inst: Instruction, dst: Operand | None, sources: tuple[Operand, ...]) -> Changes:
    """The operands that differ from the instruction's."""
    changes: Changes = {}
    if dst is not inst.dst and dst != inst.dst:
        changes["dst"] = dst
    if len(sources) != len(inst.sources) or any(a is not b and a != b for a, b in zip(sources, inst.sources, strict=True)):
        changes["sources"] = sources
    return changes


def _destination(inst: Instruction) -> OperandText:
    dst = inst.dst
    assert dst is not None
    if _compr4(inst):
        text, denoted = destination(replace(dst, number=dst.number & ~COMPR4), inst.gen)
        return text, replace(denoted, number=dst.number)
    return destination(dst, inst.gen)


def _basic(inst: Instruction, row: Opcode, labels: Labels | None, offset: int, convention: str) -> FormattedOperands:
    if inst.dst is None:
        return [], {}
    implied = implied_operands(inst.gen, inst.opcode, inst.align16, convention)
    if implied is not None:
        return _implied(inst, implied)
    bitwise = inst.opcode in mesa_words(inst.gen).sets["bitwise"]
    parts, dst = _destination(inst)
    if "wide" in row.takes and inst.sources[0].file == "imm":
        found = [immediate_64(inst.sources[0])]
    else:
        found = [source(operand, inst.gen, inst.align16, bitwise) for operand in inst.sources]
    if len(found) == 2 and inst.sources[0].file == "imm":  # only the last source can be an immediate
        found[0] = source(_null(inst), inst.gen, inst.align16, False)
    if dst is inst.dst and all(denoted is operand for (_, denoted), operand in zip(found, inst.sources, strict=True)):
        changes: Changes = {}
    else:
        changes = _agree(inst, dst, tuple(denoted for _, denoted in found))
    usual = absent_type(found[0][1], None, convention) if len(found) == 1 else "ud"
    if inst.absent != usual:
        changes["absent"] = usual
    return [parts, *(part for part, _ in found)], changes


def _implied(inst: Instruction, implied: tuple[Operand | str, ...], third: OperandText | None = None) -> FormattedOperands:
    """Format operands, some of which are implied."""
    parts: list[str] = []
    denoted: list[Operand] = []
    given = (inst.dst, *inst.sources)
    for index, operand in enumerate(implied):
        if isinstance(operand, Operand):
            denoted.append(operand)
        elif operand == "=":
            denoted.append(same_register(denoted[0], inst.align16))
        else:
            actual = given[index] if index < len(given) else None
            part, meant = third if index == 2 and third else _format_operand(actual, inst, index)
            parts.append(part)
            denoted.append(meant)
    return parts, _agree(inst, denoted[0], tuple(denoted[1:]))


def _format_operand(operand: Operand | None, inst: Instruction, index: int) -> OperandText:
    """Format an explicit operand; the null register where it is absent or only marks a jump offset."""
    if index:
        there = operand is not None and not (operand.file == "imm" and inst.jip is not None)
        return source(operand if operand is not None and there else _null(inst), inst.gen, inst.align16, False)
    return destination(operand or Operand("arf", "ud", horizontal=1, write_mask=FULL if inst.align16 else None), inst.gen)


def _null(inst: Instruction) -> Operand:
    return Operand("arf", "ud", swizzle=0 if inst.align16 else None)


@lru_cache(maxsize=1 << 10)
def same_register(dst: Operand, align16: bool) -> Operand:
    """The source that reads a destination's register: its channels, with missing ones replaced by the preceding."""
    swizzle = None
    if align16:
        chosen = [channel for channel in range(4) if (dst.write_mask or 0) >> channel & 1] or [0]
        last = chosen[0]
        swizzle = 0
        for channel in range(4):
            last = channel if channel in chosen else last
            swizzle |= last << 2 * channel
    return Operand(dst.file, dst.type, dst.number, dst.sub, dst.indirect, dst.address_sub, dst.offset, swizzle=swizzle)


def _branch(inst: Instruction, row: Opcode, labels: Labels | None, offset: int, convention: str) -> FormattedOperands:
    implied = implied_operands(inst.gen, inst.opcode, inst.align16, convention)
    if implied is None:
        return _basic(inst, row, labels, offset, convention)
    third: OperandText | None = None
    if implied[-1] == "-" and len(inst.sources) > 1 and inst.sources[1].file == "imm":  # jmpi: the jump is the operand
        value = (inst.jip or 0) & 0xFFFFFFFF
        part, meant = immediate(replace(inst.sources[1], immediate=value))
        third = part, replace(meant, immediate=0)
    parts, changes = _implied(inst, implied, third)
    sources = changes.get("sources", inst.sources)
    usual = absent_type(sources[0], inst.uip, convention) if len(sources) == 1 else "ud"
    if inst.absent != usual:
        changes["absent"] = usual
    names = offsets(row, sources) if third is None else NOTHING
    words, missing = _jumps(inst, names, labels, offset)
    if third is not None and meant.immediate != value:
        missing["jip"] = mesa_operand.signed(meant.immediate, 32)
    return parts + words, {**changes, **missing}


def _jumps(inst: Instruction, names: tuple[str, ...], labels: Labels | None, offset: int) -> tuple[list[str], Changes]:
    sets = mesa_words(inst.gen).sets
    found: list[str] = []
    missing: Changes = {}
    for name in names:
        value = getattr(inst, name)
        if value is None:
            missing[name] = value = 0
        if sets["counts"]:
            if value or (inst.opcode in sets["pops"] if name == "pop" else inst.opcode not in sets["stays"]):
                found.append(f"{'Jump' if name == 'jip' else 'Pop'}: {value}")
        else:
            label = labels.get(jumps.target(inst, offset, value)) if labels else None
            found.append(f"{name.upper()}: {label or value}")
    return found, missing


def _three_source(inst: Instruction, row: Opcode, labels: Labels | None, offset: int, convention: str) -> FormattedOperands:
    assert inst.dst is not None
    first, *rest = mesa_operand.typed_alike((inst.dst, *inst.sources))
    part, dst = destination(first, inst.gen, True)
    found = [source_three(operand, inst.gen) for operand in rest]
    return [part, *(part for part, _ in found)], _agree(inst, dst, tuple(denoted for _, denoted in found))


def _three_source_align1(inst: Instruction, row: Opcode, labels: Labels | None, offset: int, convention: str) -> FormattedOperands:
    assert inst.dst is not None
    first, *rest = mesa_operand.typed_alike((inst.dst, *inst.sources))
    part, dst = destination(first, inst.gen)
    found = [source_align1(operand, inst.gen, place == 2) for place, operand in enumerate(rest)]
    return [part, *(part for part, _ in found)], _agree(inst, dst, tuple(denoted for _, denoted in found))


def _send(inst: Instruction, row: Opcode, labels: Labels | None, offset: int, convention: str) -> FormattedOperands:
    part, dst = _destination(inst)
    given = inst.sources[0] if inst.sources[0].file != "imm" else _null(inst)
    if implies_absolute(inst.gen, inst.opcode, inst.descriptor, convention):
        payload_part, a = source(replace(given, absolute=False), inst.gen, inst.align16, False)
        a = replace(a, absolute=True)
    else:
        payload_part, a = source(given, inst.gen, inst.align16, False)
    parts, changes = [part, payload_part], _agree(inst, dst, (a,))
    if "base_mrf" in row.takes:
        parts[0] = f"{inst.base_mrf} {part}"
    implied = implied_extended(a, inst.gen, inst.align16)
    if inst.extended != implied:
        changes["extended"] = implied
    if isinstance(inst.descriptor, Operand):
        register, denoted = source(inst.descriptor, inst.gen, inst.align16, False)
        if (denoted.file, denoted.type) != (inst.descriptor.file, inst.descriptor.type):  # the dword after it has the rest
            changes["descriptor"] = replace(inst.descriptor, file=denoted.file, type=denoted.type)
        parts.append(register)
    parts.append(f"0x{_last_dword(inst):08x}")
    return [*parts, _message(inst, inst.descriptor, 0)], changes


def _last_dword(inst: Instruction) -> int:
    """The instruction's last dword, which includes the descriptor."""
    if isinstance(inst.descriptor, Operand):
        word = operand_fields("EU_SOURCE_1", inst.gen).write(inst.descriptor, inst.align16) | instruction_page("EU_SEND", inst.gen).word(
            {"eot": inst.eot}
        )
    else:
        return _descriptor_dword(inst.gen, inst.descriptor or 0, inst.eot, inst.sfid)
    return split(word, 4)[3]


@lru_cache(maxsize=1 << 12)
def _descriptor_dword(gen: float, descriptor: int, eot: bool, sfid: int) -> int:
    form = instruction_page("EU_SEND", gen)
    given = {"descriptor": descriptor, "eot": eot, "sfid": sfid}
    return split(form.word({name: value for name, value in given.items() if name in form}), 4)[3]


def _sends(inst: Instruction, row: Opcode, labels: Labels | None, offset: int, convention: str) -> FormattedOperands:
    assert inst.dst is not None
    found = [payload(operand, inst.gen) for operand in (inst.dst, *inst.sources)]
    changes = _agree(inst, found[0][1] if inst.dst.type else replace(found[0][1], type="ud"), tuple(denoted for _, denoted in found[1:]))
    described = [_sends_descriptor(value) for value in (inst.descriptor, inst.extended)]
    length = inst.extended if isinstance(inst.extended, int) else 0
    return [*(part for part, _ in found), *described, _message(inst, inst.descriptor, length)], changes


def _sends_descriptor(value: int | Operand | None) -> str:
    if isinstance(value, Operand):
        sub = value.sub // types.size("ud")
        return f"a0.{sub}<0>UD" if sub else "a0<0>UD"
    return f"0x{value or 0:08x}"


def _message(inst: Instruction, descriptor: int | Operand | None, extended: int) -> str:
    name = mesa_words(inst.gen).write["sfid"].get(inst.sfid, str(inst.sfid))
    if isinstance(descriptor, Operand):
        return f"{name} MsgDesc: indirect"
    return f"{name} MsgDesc: {_described(inst.gen, inst.sfid, descriptor or 0)}"


@lru_cache(maxsize=1 << 12)
def _described(gen: float, sfid: int, descriptor: int) -> str:
    """A description of the message for readers; assemblers ignore it."""
    words = descriptors.describe(sfid, descriptor, gen).partition(": ")[2]
    return words.replace(";", ",").replace("{", "(").replace("}", ")").replace(",", "")


_FORMATTERS = {"basic": _basic, "branch": _branch, "three_source": _three_source, "three_source_align1": _three_source_align1,
           "send": _send, "sends": _sends}  # fmt: skip
