"""Instructions as text in IGA's dialect: `add (16|M0)  r4.0<1>:f  r2.0<8;8,1>:f  0x3F800000:f  {Compacted}`.

In: an instruction, and names for the places that branches lead to. Out: the text that iga64 prints, but for blanks and comments, and that
it reads. What IGA has no words for is said in words added to its syntax (operands that branches and one-source instructions leave out,
align16, odd codes as numbers); what these cannot say stands in the annotation at the end of the line.

Reads  EU_SOURCE_1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from softgen.eu.encoding.encode import encode
from softgen.eu.encoding.fields import page
from softgen.eu.isa import labels as jumps
from softgen.eu.isa import opcodes, types
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.text.iga.controls import PREDICATE, Controls
from softgen.eu.text.iga.operand import LIMIT, Operands, type_text
from softgen.eu.text.iga.plan import (
    ABSENT,
    DESTINATION,
    EOT,
    MACRO_NULL,
    NULL,
    SOURCE,
    Plan,
    Roles,
    Unsaid,
    branch_register,
    copied,
    descriptor_operand,
    macro_regions,
    same_register,
)  # fmt: skip
from softgen.eu.text.lexer import bits

NOTHING: dict[int, str] = {}

_KEPT = ("gen", "opcode", "opcode_number", "form", "compacted")  # what text without controls and operands says
_DEFAULTS = {one.name: one.default for one in fields(Instruction) if one.name not in _KEPT}


class Writer:
    """One generation's text."""

    def __init__(self, gen: float) -> None:
        self.gen, self.operands = gen, Operands(gen)
        self.roles, self.controls = Roles(self.operands), Controls(gen)
        self.names, self.sets = self.operands.names, self.operands.names.sets
        self.plans: dict[tuple[str, bool], Plan] = {}
        self.forms = {"basic": self._basic, "branch": self._branch, "send": self._send, "sends": self._sends,
                      "three_source": self._three, "three_source_align1": self._three_align1}  # fmt: skip
        self.descriptor_types = page("EU_SOURCE_1", gen)
        self.annotations: dict[tuple[Any, ...], tuple[str, Any, Any]] = {}

    # -- one line ---------------------------------------------------------------------------------------------------

    def line(self, one: Instruction, labels: Mapping[int, str], offset: int) -> str:
        text, unsaid = self.say(one, labels, offset)
        if one.residue or unsaid:
            return text + self._annotation(one, unsaid)
        return text

    def _annotation(self, one: Instruction, unsaid: Unsaid) -> str:
        """Remembered for messages: where nothing but an operand is unsaid, only the operands count."""
        if one.form != "send" or one.residue or unsaid.keys() != {"dst", "sources"}:
            return bits(encode(one) ^ encode(replace(one, **{"residue": 0, **unsaid})))
        key = one.opcode, one.align16, id(one.dst), id(one.sources[0]), one.extended
        found = self.annotations.get(key)
        if found is None:
            if len(self.annotations) >= LIMIT:
                self.annotations.clear()
            difference = encode(one) ^ encode(replace(one, **unsaid))
            found = self.annotations[key] = bits(difference), one.dst, one.sources  # kept, so that nothing else can get their numbers
        return found[0]

    def say(self, one: Instruction, labels: Mapping[int, str], offset: int) -> tuple[str, Unsaid]:
        """The text without annotation, and what it leaves unsaid."""
        if not one.opcode:
            word = encode(one)
            dwords = " ".join(f"0x{word >> 32 * place & 0xFFFFFFFF:08X}" for place in reversed(range(2 if one.compacted else 4)))
            return f"{'':{PREDICATE}}.inline_inst {dwords}", {"residue": one.residue}
        plan = self.plans.get((one.opcode, one.align16)) or self._plan(one)
        if plan.bare:
            options = " {Compacted}" if one.compacted else ""
            return f"{'':{PREDICATE}}{one.opcode}{options}", {} if _is_default(one) else _DEFAULTS
        body, unsaid, shown = self.forms[one.form](one, plan, labels, offset)
        head, options, missing = self.controls.head(one, shown)
        text = f"{head}{body}".rstrip() + options
        return text, {**missing, **unsaid} if missing else unsaid

    def _plan(self, one: Instruction) -> Plan:
        row = opcodes.opcode(one.opcode, self.gen)
        assert row is not None  # instructions have an opcode of their generation
        return self.plans.setdefault((one.opcode, one.align16), Plan(self.roles, row, one.align16))

    # -- operands ---------------------------------------------------------------------------------------------------

    def _basic(self, one: Instruction, plan: Plan, labels: Mapping[int, str], offset: int) -> tuple[str, Unsaid, int]:
        if one.function and self.controls.is_macro(one):
            return self._macro(one, plan)
        dst, sources = one.dst, one.sources
        assert dst is not None  # bare opcodes have none, and they are said elsewhere
        if plan.copied and (copied := self._copied(one)):
            return copied
        old, text, normal = plan.dst(dst)
        body = f"{'(sat)' + text.rstrip():<{DESTINATION}} " if one.saturate else text
        clean, said = old is normal, []
        for source in self._shown(one, plan):
            old, text, normal = plan.src(source)
            clean = clean and old is normal
            said.append(normal)
            body += text
        if plan.single and one.absent != ABSENT:
            body += f"null:{one.absent}"
        if clean and len(said) == len(sources):
            return body, {}, one.exec_size
        unsaid: Unsaid = {"dst": plan.dst(dst)[2], "sources": (*said, *(NULL for _ in sources[len(said) :]))}
        return body, {} if unsaid["dst"] == dst and unsaid["sources"] == sources else unsaid, one.exec_size

    def _shown(self, one: Instruction, plan: Plan) -> tuple[Operand, ...]:
        """The sources, without those that a math function does not have."""
        if one.function and one.sources[-1] == NULL and (found := opcodes.function(one.function, self.gen)) and found.sources == 1:
            return one.sources[:1]
        return one.sources

    def _macro(self, one: Instruction, plan: Plan) -> tuple[str, Unsaid, int]:
        found = opcodes.function(one.function, self.gen)
        assert found is not None and one.dst is not None
        region, column = macro_regions(self.sets["macro_16"], one)
        text, dst = self.operands.macro(self.operands.real(one.dst), column)
        body = f"{'(sat)' if one.saturate else ''}{text:<{DESTINATION}} "
        said = []
        for source in one.sources[: found.sources]:
            text, normal = self.operands.macro(source, region(source))
            said.append(normal)
            body += f"{text:<{SOURCE}} "
        missing = [MACRO_NULL] * (len(one.sources) - len(said))
        unsaid: Unsaid = {"dst": dst, "sources": (*said, *missing)}
        return body, {} if (dst, unsaid["sources"]) == (one.dst, one.sources) else unsaid, one.exec_size

    def _copied(self, one: Instruction) -> tuple[str, Unsaid, int] | None:
        """An instruction whose destination is its source."""
        if (one.dst, one.sources[1:]) != copied(self.names.implied["copied", one.opcode], one.sources[0]) or one.saturate:
            return None
        text, normal = self.operands.source(one.sources[0])
        return f"{'':{DESTINATION}} {text}", {} if normal == one.sources[0] else _copy_unsaid(self, one, normal), one.exec_size

    def _three(self, one: Instruction, plan: Plan, labels: Mapping[int, str], offset: int) -> tuple[str, Unsaid, int]:
        assert one.dst is not None
        text, dst, shown = self.operands.three_destination(one.dst, one.exec_size)
        text = f"{'(sat)' if one.saturate else ''}{text}"
        found = [recall(source) for recall, source in zip(self.roles.three, one.sources, strict=True)]
        body = f"{text:<{DESTINATION}} " + "".join(text for _, text, _ in found)
        if dst == one.dst and all(old is normal for old, _, normal in found):
            return body, {}, shown
        return body, {"dst": dst, "sources": tuple(normal for _, _, normal in found)}, shown

    def _three_align1(self, one: Instruction, plan: Plan, labels: Mapping[int, str], offset: int) -> tuple[str, Unsaid, int]:
        assert one.dst is not None
        found = [recall(operand) for recall, operand in zip(self.roles.place, (one.dst, *one.sources), strict=True)]
        body = f"{'(sat)' if one.saturate else ''}" + "".join(text for _, text, _ in found)
        if all(old is normal for old, _, normal in found):
            return body, {}, one.exec_size
        return body, {"dst": found[0][2], "sources": tuple(normal for _, _, normal in found[1:])}, one.exec_size

    # -- messages ---------------------------------------------------------------------------------------------------

    def _send(self, one: Instruction, plan: Plan, labels: Mapping[int, str], offset: int) -> tuple[str, Unsaid, int]:
        assert one.dst is not None
        source = one.sources[0]
        _, text, dst = self.roles.message(one.dst)
        _, texts, payload = plan.send_src(source)
        if one.align16:
            text, dst = self.operands.destination_16(self.operands.real(one.dst, ABSENT))
            text += " "
        if one.align16 and one.extended is None:
            texts, payload = self.operands.source_16(self.operands.real(source, ABSENT))
            texts += " "
        body = f"{'(sat)' if one.saturate else ''}{text}{texts}{self._extended(one):<14} {self._descriptor(one):<20}"
        unsaid: Unsaid = {} if dst == one.dst and payload == source else {"dst": dst, "sources": (payload,)}
        return body, unsaid | self._unsaid_descriptor(one), one.exec_size

    def _sends(self, one: Instruction, plan: Plan, labels: Mapping[int, str], offset: int) -> tuple[str, Unsaid, int]:
        assert one.dst is not None
        found = [self.roles.split(one.dst), *map(self.roles.bare, one.sources)]
        texts = "".join(text for _, text, _ in found)
        body = f"{'(sat)' if one.saturate else ''}{texts}{self._extended(one):<14} {self._descriptor(one):<20}"
        same = all(old is normal for old, _, normal in found)
        unsaid: Unsaid = {} if same else {"dst": found[0][2], "sources": (found[1][2], found[2][2])}
        return body, unsaid | self._unsaid_descriptor(one), one.exec_size

    def _extended(self, one: Instruction) -> str:
        if isinstance(one.extended, Operand):
            return f"{f'0x{one.sfid:X}:' if one.sfid else ''}a0.{one.extended.sub // 4}"
        return f"0x{(one.extended or 0) | one.sfid | (EOT if one.eot else 0):X}"

    def _descriptor(self, one: Instruction) -> str:
        if isinstance(one.descriptor, Operand):
            return self.operands.register(descriptor_operand(one.descriptor))[0]
        kind = types.names("immediate", self.gen).get(self.descriptor_types.record(self._typed(one)).type, "") if one.residue else ABSENT
        return f"0x{one.descriptor or 0:08X}{'' if kind == ABSENT else f':{kind}'}"

    def _typed(self, one: Instruction) -> int:
        """The bits of an immediate descriptor's type: no field of the record, and not quite nothing where the word has them to itself."""
        if isinstance(one.descriptor, Operand) or one.extended is not None:
            return 0
        found = one.residue & self.descriptor_types.mask("type")
        return found if self.descriptor_types.record(found).type in types.names("immediate", self.gen) else 0

    def _unsaid_descriptor(self, one: Instruction) -> Unsaid:
        if one.residue and (found := self._typed(one)):
            return {"residue": found}
        if isinstance(one.descriptor, Operand) and (normal := descriptor_operand(one.descriptor)) != one.descriptor:
            return {"descriptor": normal}
        return {}

    # -- branches ---------------------------------------------------------------------------------------------------

    def _branch(self, one: Instruction, plan: Plan, labels: Mapping[int, str], offset: int) -> tuple[str, Unsaid, int]:
        assert one.dst is not None
        places = [self._place(one, count, labels, offset) for count in (one.jip, one.uip) if count is not None]
        implied = self.names.implied.get(("label" if one.jip is not None else "register", one.opcode))
        quiet: Unsaid = {"saturate": False} if one.saturate else {}
        short = self._implied(one, implied) if implied else None
        if implied is None or short is None:
            texts, said = self._full(one, plan, places)
            return "".join(texts), quiet | said, one.exec_size
        texts, operands = short
        if implied[0].file != "said":
            texts = ["", *texts]
        if operands != [one.dst, *one.sources]:
            quiet |= {"dst": operands[0], "sources": tuple(operands[1:])}
        body = f"{texts[0]:<{DESTINATION}} " + "".join(f"{text:<{SOURCE}} " for text in texts[1:] + places)
        return body, quiet, one.exec_size

    def _implied(self, one: Instruction, implied: tuple[Operand, ...]) -> tuple[list[str], list[Operand]] | None:
        """The texts of what a branch says and the operands they imply, if what it leaves out is as it should be. Calls and returns have
        sources of various regions, which nobody reads and IGA does not show."""
        assert one.dst is not None
        if len(implied) != 1 + len(one.sources) or one.absent != ABSENT or one.align16:
            return None
        texts, operands = [], []
        loose = any(expected.file == "said" for expected in implied)
        for place, (operand, expected) in enumerate(zip((one.dst, *one.sources), implied, strict=True)):
            found = expected
            if expected.file == "said":
                text, unsaid = self.operands.register(operand)
                found = branch_register(operand, expected, operand.type)
                if unsaid or operand.indirect or not operand.type:
                    return None
                texts.append(text + ("" if operand.type == expected.type else type_text(operand)))
            if operand != found and not (loose and place and same_register(operand, found)):
                return None
            operands.append(found)
        return texts, operands

    def _full(self, one: Instruction, plan: Plan, places: list[str]) -> tuple[list[str], Unsaid]:
        """Everything said: destination, sources, and the labels with the type of their source."""
        assert one.dst is not None
        _, text, dst = plan.dst(one.dst)
        texts, said = [text], []
        for operand in one.sources:
            if operand.file == "imm" and places:
                said.append(Operand("imm", operand.type))
                texts += [f"{place + (type_text(operand) if not number else ''):<{SOURCE}} " for number, place in enumerate(places)]
            else:
                _, text, normal = plan.src(operand)
                texts.append(text)
                said.append(normal)
        if one.absent != ABSENT:
            texts.append(f"null:{one.absent}")
        return texts, {} if (dst, tuple(said)) == (one.dst, one.sources) else {"dst": dst, "sources": tuple(said)}

    def _place(self, one: Instruction, count: int, labels: Mapping[int, str], offset: int) -> str:
        target = self.target(one, offset, count)
        found = labels.get(target)
        return found if found is not None else f".{target - offset:+d}"

    def target(self, one: Instruction, offset: int, count: int) -> int:
        """Where a count of a branch at an offset leads."""
        if one.opcode in self.sets["absolute"]:
            return count
        if one.opcode in self.sets["count_bytes"]:
            return jumps.base(one, offset) + count
        return jumps.target(one, offset, count)


def _is_default(one: Instruction) -> bool:
    return all(getattr(one, name) == default for name, default in _DEFAULTS.items() if name != "residue")


def _copy_unsaid(writer: Writer, one: Instruction, normal: Operand) -> Unsaid:
    dst, rest = copied(writer.names.implied["copied", one.opcode], normal)
    return {"dst": dst, "sources": (normal, *rest)}


@cache
def writer(gen: float) -> Writer:
    return Writer(gen)


def text(instruction: Instruction, labels: Mapping[int, str] | None = None, offset: int = 0) -> str:
    """One instruction. Labels are names of byte offsets in the program, `offset` is the instruction's own; a branch to a place without a
    name says the distance in bytes."""
    return writer(instruction.gen).line(instruction, labels if labels is not None else NOTHING, offset)


def normal(instruction: Instruction) -> Instruction:
    """The instruction that reading its text without annotation gives."""
    return replace(instruction, **{"residue": 0, **writer(instruction.gen).say(instruction, NOTHING, 0)[1]})


def labels(items: Iterable[tuple[int, int, Instruction]]) -> dict[int, str]:
    """IGA's names for the places in a program that branches lead to; items are byte offset, size and instruction."""
    kept = list(items)
    places = {offset for offset, _, _ in kept} | {offset + size for offset, size, _ in kept[-1:]}
    targets = {writer(one.gen).target(one, offset, count) for offset, _, one in kept for count in (one.jip, one.uip) if count is not None}
    return {place: f"L{place}" for place in sorted(places & targets)}


def lines(items: Iterable[tuple[int, int, Instruction]]) -> Iterator[str]:
    """A whole program, with its labels."""
    kept = list(items)
    found = labels(kept)
    for offset, _, one in kept:
        if offset in found:
            yield f"{found[offset]}:"
        yield text(one, found, offset)
    end = kept[-1][0] + kept[-1][1] if kept else 0
    if end in found:
        yield f"{found[end]}:"
