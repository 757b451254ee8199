"""Parser of IGA's dialect: text to instructions, with labels resolved.

Parses what format.py writes and what iga64 prints. Errors are `name:line:column: expected …, not …`.

Reads  EU_CONTROL
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

from softgen.errors import DecodeError
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.isa import labels as jumps
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.iga.format import formatter
from softgen.eu.text.iga.reader import IgaReader
from softgen.eu.text.iga.statement import IgaStatement, JumpTarget

_END = re.compile(r"[\n;]")
_LABEL = re.compile(r"([A-Za-z_]\w*)[ \t]*:(?![\w])")
_OPEN = re.compile(r"\(")
_PREDICATE = re.compile(r"\([ \t]*(?:(W)[ \t]*(?:&[ \t]*(?=[~f]))?)?(?:(~?)[ \t]*f(\d)\.(\d)(?:\.(\w+))?)?[ \t]*\)")
_MNEMONIC = re.compile(r"\.?[A-Za-z_]\w*")
_DWORD = re.compile(r"0x([0-9a-fA-F]{1,8})\b")
_OPTIONS = re.compile(r"\{")
_OPTION = re.compile(r"[A-Za-z]\w*")
_MORE = re.compile(r"[ \t]*(,|\})")

OPTIONS: dict[str, tuple[str, Any]] = {
    "AccWrEn": ("acc_write", True), "Align1": ("align16", False), "Align16": ("align16", True), "Breakpoint": ("breakpoint", True),
    "Compacted": ("compacted", True), "EOT": ("eot", True), "NoDDChk": ("no_dd_check", True), "NoDDClr": ("no_dd_clear", True),
    "NoSrcDepSet": ("acc_write", True)}  # fmt: skip


@cache
def options(gen: float) -> dict[str, tuple[str, Any]]:
    threads = {f"Thread{code}": code for code in range(4)} | formatter(gen).names.read["thread"]
    known = {word: field for word, field in OPTIONS.items() if field[0] in instruction_page("EU_CONTROL", gen) or field[0] != "align16"}
    return known | {word: ("thread_control", code) for word, code in threads.items()}


class IgaParser:
    """Parses one text."""

    def __init__(self, text: str, gen: float, name: str) -> None:
        self.reader = IgaReader(text, gen, name)
        self.gen, self.writer = gen, formatter(gen)
        self.found: list[Instruction] = []
        self.starts: list[int] = []  # position of each in the text
        self.labels: dict[str, int] = {}
        self.waiting: list[tuple[int, list[JumpTarget]]] = []  # branches, and their targets
        self.offset = 0

    def read(self) -> list[Instruction]:
        reader = self.reader
        while True:
            while reader.take(_END):
                pass
            if reader.done():
                break
            while label := reader.take(_LABEL):
                if label[1] in self.labels:
                    raise reader.wrong("a label that is not yet used", label.start(1))
                self.labels[label[1]] = self.offset
            if not reader.done() and not reader.peek(_END):
                self._statement()
        self._resolve()
        return [self._settled(start, inst) for start, inst in zip(self.starts, self.found, strict=True)]

    def _settled(self, start: int, inst: Instruction) -> Instruction:
        """The instruction as its bits give it: annotations say bits, and bits belong to fields."""
        if not inst.opcode:
            return inst
        self._channels(start, inst)
        try:
            found = decode(encode(inst), self.gen)
        except DecodeError as error:
            raise DecodeError(f"{self.reader.place(start)}: {error}") from None
        if found.sources != inst.sources and not inst.residue and any(operand.file == "imm" for operand in inst.sources):
            raise DecodeError(f"{self.reader.place(start)}: expected registers for all sources but the last, whose bits an immediate takes")
        if inst.uip is not None and found.uip is None:  # the register stands in its bits
            raise DecodeError(f"{self.reader.place(start)}: expected one label beside a register, not two")
        return replace(found, compacted=True) if inst.compacted else found

    def _channels(self, start: int, inst: Instruction) -> None:
        """Channels stand on all registers of an align16 instruction, and on none of others."""
        if inst.form not in ("basic", "branch", "send"):
            return
        payload = inst.sources if inst.extended is None else ()  # from gen 9 on it has no channels
        for operand in (inst.dst, *payload):
            if operand is None or operand.file == "imm" or operand.special is not None:
                continue
            denoted = operand.write_mask is not None or operand.swizzle is not None
            if denoted and not inst.align16:
                raise DecodeError(f"{self.reader.place(start)}: expected the option Align16 beside channels, not align1")
            if inst.align16 and not denoted:
                raise DecodeError(f"{self.reader.place(start)}: expected channels on each register beside Align16, not a region alone")

    def _resolve(self) -> None:
        offsets, offset = [], 0
        for inst in self.found:
            offsets.append(offset)
            offset += jumps.size(inst)
        for index, places in self.waiting:
            counts = [self._count(self.found[index], offsets[index], place) for place in places]
            self.found[index] = replace(self.found[index], jip=counts[0], uip=counts[1] if len(counts) > 1 else None)

    def _count(self, inst: Instruction, offset: int, place: JumpTarget) -> int:
        name, at = place
        if isinstance(name, str) and name not in self.labels:
            raise self.reader.wrong("a label of the program", at)
        target = offset + name if isinstance(name, int) else self.labels[name]
        sets = self.writer.sets
        if inst.opcode in sets["absolute"]:
            return target
        count = target - jumps.base(inst, offset) if inst.opcode in sets["count_bytes"] else jumps.count(inst, offset, target)
        if count is None:
            raise self.reader.wrong(f"a place whole steps of {jumps.unit(self.gen)} bytes away", at)
        return count

    # -- one instruction --------------------------------------------------------------------------------------------

    def _statement(self) -> None:
        reader = self.reader
        start = reader.skip()
        values: dict[str, Any] = {}
        if reader.peek(_OPEN):
            self._predicate(values)
        mnemonic = reader.expect(_MNEMONIC, "an instruction")
        if mnemonic[0] == ".inline_inst":
            inst = self._inline()
        else:
            row = opcodes.opcode(mnemonic[0], self.gen)
            if row is None:
                raise reader.wrong(f"an instruction of gen {self.gen:g}", mnemonic.start())
            statement = IgaStatement(reader, self.writer, row, values)
            inst = statement.read()
            if statement.places:
                self.waiting.append((len(self.found), statement.places))
        self._finish(inst, start)

    def _predicate(self, values: dict[str, Any]) -> None:
        found = self.reader.take(_PREDICATE)
        if found is None or not (found[1] or found[3]):
            raise self.reader.wrong("a predicate, as (W), (f0.0) or (W&~f0.1.any8h)", self.reader.at if found is None else found.start())
        values["no_mask"] = bool(found[1])
        if found[3]:
            values |= {"predicate_invert": bool(found[2]), "flag": int(found[3]), "flag_sub": int(found[4])}
            values["predicate"] = self._predicate_code(found)

    def _predicate_code(self, match: re.Match[str]) -> int:
        word, read = match[5], self.writer.names.read
        if word is None:
            return 1
        code = read["predicate"].get(word, read["channel"].get(word, int(word) if word.isdigit() else -1))
        if not 0 <= code < 16:
            raise self.reader.wrong("a predicate's word, as any8h", match.start(5))
        return code

    def _inline(self) -> Instruction:
        """Bits as they are, the upper dword first: four, or two of a compact instruction."""
        dwords = [self.reader.expect(_DWORD, "a dword, as 0x0000007E") for _ in range(2)]
        short = not self.reader.peek(_DWORD)
        dwords += [] if short else [self.reader.expect(_DWORD, "a dword, as 0x0000007E") for _ in range(2)]
        word = sum(int(dword[1], 16) << 32 * place for place, dword in enumerate(reversed(dwords)))
        if not short:
            return decode(word, self.gen)
        number = word & instruction_page("EU_CONTROL", self.gen).mask("opcode")
        return Instruction(self.gen, "", number, "none", compacted=True, residue=word ^ number)

    def _finish(self, inst: Instruction, start: int) -> None:
        """The options after the operands."""
        reader, known = self.reader, options(self.gen)
        values: dict[str, Any] = {}
        if reader.take(_OPTIONS):
            while True:
                word = reader.expect(_OPTION, "an option")
                if word[0] not in known:
                    raise reader.wrong("an option of the instruction", word.start())
                values[known[word[0]][0]] = known[word[0]][1]
                if reader.expect_glued(_MORE, "',' or '}'")[1] == "}":
                    break
        annotation = reader.annotation()
        if not reader.done() and not reader.peek(_END):
            raise reader.wrong("the end of the line")
        if values or annotation:
            inst = replace(inst, **values, residue=inst.residue ^ annotation)
        self.found.append(inst)
        self.starts.append(start)
        self.offset += jumps.size(inst)


def parse(text: str, gen: float, name: str = "text") -> list[Instruction]:
    """The instructions of a text. `name` is what errors call it."""
    return IgaParser(text, gen, name).read()
