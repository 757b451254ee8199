"""Formatter of IGA's dialect: `add (16|M0)  r4.0<1>:f  r2.0<8;8,1>:f  0x3F800000:f  {Compacted}`.

In: an instruction, and labels of branch targets. Out: the text that iga64 prints and reads, except for blanks and comments. Extensions of
IGA's syntax cover what it cannot express (operands that branches and one-source instructions omit, align16, reserved codes as numbers);
the rest is in the annotation at the end of the line.

Reads  EU_SOURCE_1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from softgen.eu.encoding.encode import encode
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.isa import labels as jumps
from softgen.eu.isa import opcodes, types
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.text.iga.controls import PREDICATE, IgaControlText
from softgen.eu.text.iga.operand import LIMIT, IgaOperandText, type_text
from softgen.eu.text.iga.plan import (
    ABSENT,
    DESTINATION,
    EOT,
    MACRO_NULL,
    NULL,
    SOURCE,
    OmittedFields,
    OpcodeFormat,
    OperandRoles,
    branch_register,
    copied_operands,
    descriptor_operand,
    macro_regions,
    same_register,
)  # fmt: skip
from softgen.eu.text.lexer import annotation_text

NOTHING: dict[int, str] = {}

_KEPT = ("gen", "opcode", "opcode_number", "form", "compacted")  # fields of text without controls and operands
_DEFAULTS = {field.name: field.default for field in fields(Instruction) if field.name not in _KEPT}


class IgaFormatter:
    """Formats instructions of one generation."""

    def __init__(self, gen: float) -> None:
        self.gen, self.operands = gen, IgaOperandText(gen)
        self.roles, self.controls = OperandRoles(self.operands), IgaControlText(gen)
        self.names, self.sets = self.operands.names, self.operands.names.sets
        self.plans: dict[tuple[str, bool], OpcodeFormat] = {}
        self.forms = {"basic": self._basic, "branch": self._branch, "send": self._send, "sends": self._sends,
                      "three_source": self._three, "three_source_align1": self._three_align1}  # fmt: skip
        self.descriptor_types = instruction_page("EU_SOURCE_1", gen)
        self.annotations: dict[tuple[Any, ...], tuple[str, Any, Any]] = {}

    # -- one line ---------------------------------------------------------------------------------------------------

    def line(self, inst: Instruction, labels: Mapping[int, str], offset: int) -> str:
        text, omitted = self.say(inst, labels, offset)
        if inst.residue or omitted:
            return text + self._annotation(inst, omitted)
        return text

    def _annotation(self, inst: Instruction, omitted: OmittedFields) -> str:
        """The annotation for omitted fields; cached for messages in which only operands are omitted."""
        if inst.form != "send" or inst.residue or omitted.keys() != {"dst", "sources"}:
            return annotation_text(encode(inst) ^ encode(replace(inst, **{"residue": 0, **omitted})))
        key = inst.opcode, inst.align16, id(inst.dst), id(inst.sources[0]), inst.extended
        found = self.annotations.get(key)
        if found is None:
            if len(self.annotations) >= LIMIT:
                self.annotations.clear()
            difference = encode(inst) ^ encode(replace(inst, **omitted))
            found = self.annotations[key] = (
                annotation_text(difference),
                inst.dst,
                inst.sources,
            )  # references keep the ids from being reused
        return found[0]

    def say(self, inst: Instruction, labels: Mapping[int, str], offset: int) -> tuple[str, OmittedFields]:
        """The text without annotation, and the fields that it omits."""
        if not inst.opcode:
            word = encode(inst)
            dwords = " ".join(f"0x{word >> 32 * place & 0xFFFFFFFF:08X}" for place in reversed(range(2 if inst.compacted else 4)))
            return f"{'':{PREDICATE}}.inline_inst {dwords}", {"residue": inst.residue}
        plan = self.plans.get((inst.opcode, inst.align16)) or self._plan(inst)
        if plan.bare:
            options = " {Compacted}" if inst.compacted else ""
            return f"{'':{PREDICATE}}{inst.opcode}{options}", {} if _is_default(inst) else _DEFAULTS
        body, omitted, shown = self.forms[inst.form](inst, plan, labels, offset)
        head, options, missing = self.controls.head(inst, shown)
        text = f"{head}{body}".rstrip() + options
        return text, {**missing, **omitted} if missing else omitted

    def _plan(self, inst: Instruction) -> OpcodeFormat:
        row = opcodes.opcode(inst.opcode, self.gen)
        assert row is not None  # decoded instructions have an opcode of their generation
        return self.plans.setdefault((inst.opcode, inst.align16), OpcodeFormat(self.roles, row, inst.align16))

    # -- operands ---------------------------------------------------------------------------------------------------

    def _basic(self, inst: Instruction, plan: OpcodeFormat, labels: Mapping[int, str], offset: int) -> tuple[str, OmittedFields, int]:
        if inst.function and self.controls.is_macro(inst):
            return self._macro(inst, plan)
        dst, sources = inst.dst, inst.sources
        assert dst is not None  # bare opcodes, which have none, are formatted elsewhere
        if plan.copied and (copied := self._copied(inst)):
            return copied
        old, text, normal = plan.dst(dst)
        body = f"{'(sat)' + text.rstrip():<{DESTINATION}} " if inst.saturate else text
        clean, denoted = old is normal, []
        for source in self._shown(inst, plan):
            old, text, normal = plan.src(source)
            clean = clean and old is normal
            denoted.append(normal)
            body += text
        if plan.single and inst.absent != ABSENT:
            body += f"null:{inst.absent}"
        if clean:  # a source that is not shown is NULL
            return body, {}, inst.exec_size
        omitted: OmittedFields = {"dst": plan.dst(dst)[2], "sources": (*denoted, *(NULL for _ in sources[len(denoted) :]))}
        return body, {} if omitted["dst"] == dst and omitted["sources"] == sources else omitted, inst.exec_size

    def _shown(self, inst: Instruction, plan: OpcodeFormat) -> tuple[Operand, ...]:
        """The sources that are shown: a math function of one source has no second one."""
        if inst.function and inst.sources[-1] == NULL and (found := opcodes.math_function(inst.function, self.gen)) and found.sources == 1:
            return inst.sources[:1]
        return inst.sources

    def _macro(self, inst: Instruction, plan: OpcodeFormat) -> tuple[str, OmittedFields, int]:
        found = opcodes.math_function(inst.function, self.gen)
        assert found is not None and inst.dst is not None
        region, column = macro_regions(self.sets["macro_16"], inst)
        text, dst = self.operands.macro(self.operands.real(inst.dst), column)
        body = f"{'(sat)' if inst.saturate else ''}{text:<{DESTINATION}} "
        denoted = []
        for source in inst.sources[: found.sources]:
            text, normal = self.operands.macro(source, region(source))
            denoted.append(normal)
            body += f"{text:<{SOURCE}} "
        missing = [MACRO_NULL] * (len(inst.sources) - len(denoted))
        omitted: OmittedFields = {"dst": dst, "sources": (*denoted, *missing)}
        return body, {} if (dst, omitted["sources"]) == (inst.dst, inst.sources) else omitted, inst.exec_size

    def _copied(self, inst: Instruction) -> tuple[str, OmittedFields, int] | None:
        """Format an instruction whose destination is its source."""
        if (inst.dst, inst.sources[1:]) != copied_operands(self.names.implied["copied", inst.opcode], inst.sources[0]) or inst.saturate:
            return None
        text, normal = self.operands.source(inst.sources[0])
        return f"{'':{DESTINATION}} {text}", {} if normal == inst.sources[0] else _copy_omitted(self, inst, normal), inst.exec_size

    def _three(self, inst: Instruction, plan: OpcodeFormat, labels: Mapping[int, str], offset: int) -> tuple[str, OmittedFields, int]:
        assert inst.dst is not None
        text, dst, shown = self.operands.three_destination(inst.dst, inst.exec_size)
        text = f"{'(sat)' if inst.saturate else ''}{text}"
        found = [recall(source) for recall, source in zip(self.roles.three, inst.sources, strict=True)]
        body = f"{text:<{DESTINATION}} " + "".join(text for _, text, _ in found)
        if dst == inst.dst and all(old is normal for old, _, normal in found):
            return body, {}, shown
        return body, {"dst": dst, "sources": tuple(normal for _, _, normal in found)}, shown

    def _three_align1(
        self, inst: Instruction, plan: OpcodeFormat, labels: Mapping[int, str], offset: int
    ) -> tuple[str, OmittedFields, int]:
        assert inst.dst is not None
        found = [recall(operand) for recall, operand in zip(self.roles.place, (inst.dst, *inst.sources), strict=True)]
        body = f"{'(sat)' if inst.saturate else ''}" + "".join(text for _, text, _ in found)
        if all(old is normal for old, _, normal in found):
            return body, {}, inst.exec_size
        return body, {"dst": found[0][2], "sources": tuple(normal for _, _, normal in found[1:])}, inst.exec_size

    # -- messages ---------------------------------------------------------------------------------------------------

    def _send(self, inst: Instruction, plan: OpcodeFormat, labels: Mapping[int, str], offset: int) -> tuple[str, OmittedFields, int]:
        assert inst.dst is not None
        source = inst.sources[0]
        _, text, dst = self.roles.message(inst.dst)
        _, texts, payload = plan.send_src(source)
        if inst.align16:
            text, dst = self.operands.destination_16(self.operands.real(inst.dst, ABSENT))
            text += " "
        if inst.align16 and inst.extended is None:
            texts, payload = self.operands.source_16(self.operands.real(source, ABSENT))
            texts += " "
        body = f"{'(sat)' if inst.saturate else ''}{text}{texts}{self._extended(inst):<14} {self._descriptor(inst):<20}"
        omitted: OmittedFields = {} if dst == inst.dst and payload == source else {"dst": dst, "sources": (payload,)}
        return body, omitted | self._omitted_descriptor(inst), inst.exec_size

    def _sends(self, inst: Instruction, plan: OpcodeFormat, labels: Mapping[int, str], offset: int) -> tuple[str, OmittedFields, int]:
        assert inst.dst is not None
        found = [self.roles.split(inst.dst), *map(self.roles.bare, inst.sources)]
        texts = "".join(text for _, text, _ in found)
        body = f"{'(sat)' if inst.saturate else ''}{texts}{self._extended(inst):<14} {self._descriptor(inst):<20}"
        same = all(old is normal for old, _, normal in found)
        omitted: OmittedFields = {} if same else {"dst": found[0][2], "sources": (found[1][2], found[2][2])}
        return body, omitted | self._omitted_descriptor(inst), inst.exec_size

    def _extended(self, inst: Instruction) -> str:
        if isinstance(inst.extended, Operand):
            return f"{f'0x{inst.sfid:X}:' if inst.sfid else ''}a0.{inst.extended.sub // 4}"
        return f"0x{(inst.extended or 0) | inst.sfid | (EOT if inst.eot else 0):X}"

    def _descriptor(self, inst: Instruction) -> str:
        if isinstance(inst.descriptor, Operand):
            return self.operands.register(descriptor_operand(inst.descriptor))[0]
        kind = types.names("immediate", self.gen).get(self.descriptor_types.record(self._typed(inst)).type, "") if inst.residue else ABSENT
        return f"0x{inst.descriptor or 0:08X}{'' if kind == ABSENT else f':{kind}'}"

    def _typed(self, inst: Instruction) -> int:
        """The type bits of an immediate descriptor, which are in the residue where no other field has them."""
        if isinstance(inst.descriptor, Operand) or inst.extended is not None:
            return 0
        found = inst.residue & self.descriptor_types.mask("type")
        return found if self.descriptor_types.record(found).type in types.names("immediate", self.gen) else 0

    def _omitted_descriptor(self, inst: Instruction) -> OmittedFields:
        if inst.residue and (found := self._typed(inst)):
            return {"residue": found}
        if isinstance(inst.descriptor, Operand) and (normal := descriptor_operand(inst.descriptor)) != inst.descriptor:
            return {"descriptor": normal}
        return {}

    # -- branches ---------------------------------------------------------------------------------------------------

    def _branch(self, inst: Instruction, plan: OpcodeFormat, labels: Mapping[int, str], offset: int) -> tuple[str, OmittedFields, int]:
        assert inst.dst is not None
        places = [self._place(inst, count, labels, offset) for count in (inst.jip, inst.uip) if count is not None]
        implied = self.names.implied.get(("label" if inst.jip is not None else "register", inst.opcode))
        quiet: OmittedFields = {"saturate": False} if inst.saturate else {}
        short = self._implied(inst, implied) if implied else None
        if implied is None or short is None:
            texts, denoted = self._full(inst, plan, places)
            return "".join(texts), quiet | denoted, inst.exec_size
        texts, operands = short
        if implied[0].file != "said":
            texts = ["", *texts]
        if operands != [inst.dst, *inst.sources]:
            quiet |= {"dst": operands[0], "sources": tuple(operands[1:])}
        body = f"{texts[0]:<{DESTINATION}} " + "".join(f"{text:<{SOURCE}} " for text in texts[1:] + places)
        return body, quiet, inst.exec_size

    def _implied(self, inst: Instruction, implied: tuple[Operand, ...]) -> tuple[list[str], list[Operand]] | None:
        """The texts of a branch's operands and the operands they imply, if the omitted ones have their defaults. Calls and returns have
        sources of various regions, which have no effect and which IGA does not show."""
        assert inst.dst is not None
        if len(implied) != 1 + len(inst.sources) or inst.absent != ABSENT or inst.align16:
            return None
        texts, operands = [], []
        loose = any(expected.file == "said" for expected in implied)
        for place, (operand, expected) in enumerate(zip((inst.dst, *inst.sources), implied, strict=True)):
            found = expected
            if expected.file == "said":
                text, omitted = self.operands.register(operand)
                found = branch_register(operand, expected, operand.type)
                if omitted or operand.indirect or not operand.type:
                    return None
                texts.append(text + ("" if operand.type == expected.type else type_text(operand)))
            if operand != found and not (loose and place and same_register(operand, found)):
                return None
            operands.append(found)
        return texts, operands

    def _full(self, inst: Instruction, plan: OpcodeFormat, places: list[str]) -> tuple[list[str], OmittedFields]:
        """Format all operands of a branch: destination, sources, and labels with the type of their source."""
        assert inst.dst is not None
        _, text, dst = plan.dst(inst.dst)
        texts, denoted = [text], []
        for operand in inst.sources:
            if operand.file == "imm" and places:
                denoted.append(Operand("imm", operand.type))
                texts += [f"{place + (type_text(operand) if not number else ''):<{SOURCE}} " for number, place in enumerate(places)]
            else:
                _, text, normal = plan.src(operand)
                texts.append(text)
                denoted.append(normal)
        if inst.absent != ABSENT:
            texts.append(f"null:{inst.absent}")
        return texts, {} if (dst, tuple(denoted)) == (inst.dst, inst.sources) else {"dst": dst, "sources": tuple(denoted)}

    def _place(self, inst: Instruction, count: int, labels: Mapping[int, str], offset: int) -> str:
        target = self.target(inst, offset, count)
        found = labels.get(target)
        return found if found is not None else f".{target - offset:+d}"

    def target(self, inst: Instruction, offset: int, count: int) -> int:
        """The target of an encoded offset of the branch at byte `offset`."""
        if inst.opcode in self.sets["absolute"]:
            return count
        if inst.opcode in self.sets["count_bytes"]:
            return jumps.base(inst, offset) + count
        return jumps.target(inst, offset, count)


def _is_default(inst: Instruction) -> bool:
    return all(getattr(inst, name) == default for name, default in _DEFAULTS.items() if name != "residue")


def _copy_omitted(writer: IgaFormatter, inst: Instruction, normal: Operand) -> OmittedFields:
    dst, rest = copied_operands(writer.names.implied["copied", inst.opcode], normal)
    return {"dst": dst, "sources": (normal, *rest)}


@cache
def formatter(gen: float) -> IgaFormatter:
    return IgaFormatter(gen)


def text(instruction: Instruction, labels: Mapping[int, str] | None = None, offset: int = 0) -> str:
    """Format an instruction. Labels are names of byte offsets in the program, `offset` is the instruction's own; a branch to a target
    without a label shows the distance in bytes."""
    return formatter(instruction.gen).line(instruction, labels if labels is not None else NOTHING, offset)


def normal(instruction: Instruction) -> Instruction:
    """The instruction that its text denotes without the annotation."""
    return replace(instruction, **{"residue": 0, **formatter(instruction.gen).say(instruction, NOTHING, 0)[1]})


def labels(items: Iterable[tuple[int, int, Instruction]]) -> dict[int, str]:
    """IGA's labels of a program's branch targets; items are byte offset, size and instruction."""
    kept = list(items)
    places = {offset for offset, _, _ in kept} | {offset + size for offset, size, _ in kept[-1:]}
    targets = {
        formatter(inst.gen).target(inst, offset, count) for offset, _, inst in kept for count in (inst.jip, inst.uip) if count is not None
    }
    return {place: f"L{place}" for place in sorted(places & targets)}


def lines(items: Iterable[tuple[int, int, Instruction]]) -> Iterator[str]:
    """Format a program with its labels, line by line."""
    kept = list(items)
    found = labels(kept)
    for offset, _, inst in kept:
        if offset in found:
            yield f"{found[offset]}:"
        yield text(inst, found, offset)
    end = kept[-1][0] + kept[-1][1] if kept else 0
    if end in found:
        yield f"{found[end]}:"
