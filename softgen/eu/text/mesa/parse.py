"""Parser of Mesa's dialect: text to instructions, with labels resolved and annotations applied.

    LABEL0:
    (+f0.0) if(8)   JIP: LABEL0   UIP: 32                           { align1 1Q };
    add(8)          g4<1>F        g2<8,8,1>F    0x3f800000F         { align1 1Q compacted }; /* bits: 0x80000000 */

A line `// implied operands: iga` at the head declares the convention of implied operands; the default is Mesa's.

Reads   EU_SEND EU_SENDS EU_BRANCH EU_SOURCE_1
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from softgen.errors import DecodeError
from softgen.eu.encoding import program
from softgen.eu.encoding.decode import decode
from softgen.eu.encoding.encode import encode
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.encoding.operand import operand_fields
from softgen.eu.isa import labels as jumps
from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.opcodes import Opcode
from softgen.eu.text.lexer import Scanner
from softgen.eu.text.mesa.defaults import absent_type, implied_extended, implied_operands, implied_residue, implies_absolute, offsets
from softgen.eu.text.mesa.format import COMPR4, same_register
from softgen.eu.text.mesa.names import CONVENTIONS, DEFAULT_CONVENTION, mesa_words
from softgen.eu.text.mesa.reader import NUMBER, OperandBuilder, ParsedOperand, number, read, with_position

PRAGMA = re.compile(r"\s*//\s*implied operands:\s*(\w+)[ \t]*(?:\n|$)")
LABEL = re.compile(r"([A-Za-z_]\w*)[ \t]*:(?!\w*[ \t]*:)")
NAME = re.compile(r"[A-Za-z_]\w*")
OPCODE = re.compile(r"[a-z][a-z0-9]*")
SUFFIX = re.compile(r"\.([a-z][a-z0-9]*)")
FLAG = re.compile(r"f([0-9])(?:\.([0-9]))?(?![0-9a-z])")
FLAG_SUFFIX = re.compile(r"\.f([0-9])(?:\.([0-9]))?(?![0-9a-z])")
FLAG_SUB = re.compile(r"\.([0-9])")
OPEN, CLOSE = re.compile(r"\("), re.compile(r"\)")
BRACE, UNBRACE, SEMICOLON, COMMA = re.compile(r"\{"), re.compile(r"\}"), re.compile(r";"), re.compile(r",")
SIZE = re.compile(r"[0-9]{1,2}(?![0-9])")
SMALL = re.compile(r"[0-9]{1,3}(?![0-9a-z])")
PLUS_MINUS = re.compile(r"[+-]")
OPTION = re.compile(r"[A-Za-z0-9_]+")
GROUP = re.compile(r"([1-8])([NQH])$")
GROUPS = {"N": (8, 1), "Q": (4, 2), "H": (2, 4)}  # how many there are, and nibbles in each
JUMP = {"jip": re.compile(r"(?:JIP|Jump)\s*:"), "uip": re.compile(r"UIP\s*:"), "pop": re.compile(r"Pop\s*:")}
MESSAGE = re.compile(r"MsgDesc:[^{;]*")
ADDRESS = 0x10  # the register number of a0
LAST_DWORD = 96  # its first bit in an instruction
EXEC_SIZES = (1, 2, 4, 8, 16, 32)
FLAGS = {"align1": {"align16": False}, "align16": {"align16": True}, "NoDDClr": {"no_dd_clear": True}, "NoDDChk": {"no_dd_check": True},
         "compacted": {"compacted": True}, "AccWrEnable": {"acc_write": True}, "BranchCtrl": {"branch_control": True},
         "breakpoint": {"breakpoint": True}}  # fmt: skip


@dataclass
class MesaStatement:
    """An instruction as parsed, before its operands are built."""

    at: int
    row: Opcode
    values: dict[str, Any] = field(default_factory=dict)
    operands: list[ParsedOperand] = field(default_factory=list)
    jumps: dict[str, tuple[int, str | int]] = field(default_factory=dict)  # position, and a label or an encoded offset
    dwords: list[tuple[int, int]] = field(default_factory=list)  # descriptors: position and number
    compr4: bool = False
    bits: int = 0


def parse(text: str, gen: float, name: str = "text") -> list[Instruction]:
    """Parse a text; DecodeError names position and expectation."""
    return MesaParser(text, gen, name).parse()


@cache
def _functions(gen: float) -> re.Pattern[str]:
    """Pattern of shared function names or a number."""
    return re.compile(rf"({'|'.join(map(re.escape, mesa_words(gen).read['sfid']))}|[0-9]{{1,2}})(?![0-9A-Za-z_])")


class MesaParser:
    """Parses one text."""

    def __init__(self, text: str, gen: float, name: str) -> None:
        self.scan, self.gen, self.words = Scanner(text, name), gen, mesa_words(gen)
        self.convention = DEFAULT_CONVENTION
        self.named: dict[str, int] = {}  # label -> byte offset
        self.instructions: list[tuple[int, MesaStatement, Instruction]] = []

    def parse(self) -> list[Instruction]:
        self._pragma()
        offset = 0
        while not self.scan.done():
            at = self.scan.at
            if label := self.scan.take(LABEL):
                if label[1] in self.named:
                    raise self.scan.wrong("a label that does not stand above", at)
                self.named[label[1]] = offset
                continue
            statement = self._statement()
            inst = self._build(statement)
            self.instructions.append((offset, statement, inst))
            offset += jumps.size(inst)
        return [self._finish(*item) for item in self.instructions]

    def _pragma(self) -> None:
        if found := self.scan.glued(PRAGMA):
            if found[1] not in CONVENTIONS:
                raise self.scan.wrong(" or ".join(CONVENTIONS), found.start(1))
            self.convention = found[1]

    # -- reading ---------------------------------------------------------------------------------------------------

    def _statement(self) -> MesaStatement:
        scan, at = self.scan, self.scan.at
        predicate = self._predicate()
        here = scan.skip()
        word = scan.take(OPCODE)
        row = opcodes.opcode(word[0], self.gen) if word else None
        if row is None:
            raise scan.wrong(f"an instruction of gen {self.gen:g}" + ("" if predicate else ", a predicate or a label"), here)
        statement = MesaStatement(at, row, predicate)
        self._suffixes(statement)
        self._exec_size(statement)
        self._operands(statement)
        scan.expect(SEMICOLON, "';'" if self._options(statement) else "'{' or ';'")
        statement.bits = scan.annotation()
        return statement

    def _predicate(self) -> dict[str, Any]:
        scan = self.scan
        if not scan.take(OPEN):
            return {}
        sign = scan.take(PLUS_MINUS)
        flag = scan.expect(FLAG, "a flag register" if sign else "'+', '-' or a flag register")
        code, at = 1, scan.at
        if suffix := scan.glued(SUFFIX):
            known = self.words.read["predicate"] | self.words.read["channel"]
            if suffix[1] not in known:
                raise scan.wrong("a predicate control or ')'", at)
            code = known[suffix[1]]
        scan.expect(CLOSE, "')'")
        invert = sign is not None and sign[0] == "-"
        return {"predicate": code, "predicate_invert": invert, "flag": int(flag[1]), "flag_sub": int(flag[2] or 0)}

    def _suffixes(self, statement: MesaStatement) -> None:
        """.sat, a condition and its flag, the math function."""
        scan = self.scan
        conditions = {} if statement.row.takes & {"function", "sfid", "base_mrf"} else self.words.read["condition"]
        while suffix := scan.glued(SUFFIX):
            word, at = suffix[1], suffix.start(1)
            if word == "sat" and statement.row.form not in ("send", "sends"):
                statement.values["saturate"] = True
            elif word == "breakpoint":
                statement.values["breakpoint"] = True
            elif word in conditions and "condition" not in statement.values:
                statement.values["condition"] = conditions[word]
            elif (flag := FLAG.match(word)) and "condition" in statement.values:
                sub = scan.glued(FLAG_SUB)
                self._flag(statement, int(flag[1]), int(sub[1]) if sub else 0, at)
            else:
                raise scan.wrong("a flag" if "condition" in statement.values else "sat or a condition" if conditions else "sat", at)
        if "function" in statement.row.takes:
            at = scan.skip()
            found = scan.take(OPCODE) or scan.take(SIZE)
            functions = self.words.read["function"]
            if found is None or (found[0] not in functions and (not found[0].isdigit() or int(found[0]) > 15)):
                raise scan.wrong("a math function", at)
            statement.values["function"] = functions[found[0]] if found[0] in functions else int(found[0])
            if flag := scan.glued(FLAG_SUFFIX):
                self._flag(statement, int(flag[1]), int(flag[2] or 0), flag.start())

    def _flag(self, statement: MesaStatement, flag: int, sub: int, at: int) -> None:
        if "predicate" in statement.values and (statement.values["flag"], statement.values["flag_sub"]) != (flag, sub):
            raise self.scan.wrong(f"f{statement.values['flag']}.{statement.values['flag_sub']}, the predicate's flag", at)
        statement.values |= {"flag": flag, "flag_sub": sub}

    def _exec_size(self, statement: MesaStatement) -> None:
        scan = self.scan
        if not scan.take(OPEN):
            return
        at = scan.skip()
        size = int(scan.expect(SIZE, "an execution size")[0])
        if size not in EXEC_SIZES:
            raise scan.wrong("an execution size of 1, 2, 4, 8, 16 or 32", at)
        statement.values["exec_size"] = size
        scan.expect(CLOSE, "')'")

    def _operands(self, statement: MesaStatement) -> None:
        scan, row = self.scan, statement.row
        if row.form in ("send", "sends"):
            return self._message(statement)
        implied = self._implied(statement)
        for index, name in enumerate(("dst", "a", "b", "c")):
            if name in row.shape and (implied is None or implied[index : index + 1] == ("-",)):
                statement.operands.append(read(scan, self.gen, "a destination" if name == "dst" else "a source"))
        if row.form == "branch" and implied is not None and implied[-1] != "-":
            self._jumps(statement, implied)
        return None

    def _implied(self, statement: MesaStatement, align16: bool = False) -> tuple[Operand | str, ...] | None:
        """The implied operands. Which ones are implied does not depend on the access mode, only their values."""
        return implied_operands(self.gen, statement.row.name, align16, self.convention)

    def _jumps(self, statement: MesaStatement, implied: tuple[Operand | str, ...]) -> None:
        scan = self.scan
        sources = tuple(found if isinstance(found, Operand) else Operand("grf", "ud") for found in implied[1:])
        for name in offsets(statement.row, sources):
            if not scan.take(JUMP[name]):
                if self.words.sets["counts"]:
                    statement.jumps[name] = scan.at, 0
                    continue
                raise scan.wrong(f"'{name.upper()}:'")
            at = scan.skip()
            if label := scan.take(NAME):
                statement.jumps[name] = at, label[0]
            else:
                statement.jumps[name] = at, number(scan, "a label or a number")

    def _message(self, statement: MesaStatement) -> None:
        scan, split_send = self.scan, statement.row.form == "sends"
        if "base_mrf" in statement.row.takes:
            statement.values["base_mrf"] = int(scan.expect(SMALL, "the number of the first message register")[0])
        statement.operands.append(read(scan, self.gen, "a destination"))
        for _ in range(statement.row.sources):
            statement.operands.append(read(scan, self.gen, "a source"))
        for what in ("a descriptor", "an extended descriptor") if split_send else ("a descriptor",):
            if not scan.peek(NUMBER):
                statement.operands.append(read(scan, self.gen, what))
                statement.dwords.append((statement.operands[-1].at, -1))
                if split_send:
                    continue
            at = scan.skip()
            statement.dwords.append((at, number(scan, what)))
        found = scan.expect(_functions(self.gen), "a shared function")
        statement.values["sfid"] = self.words.read["sfid"][found[1]] if found[1] in self.words.read["sfid"] else int(found[1])
        scan.take(MESSAGE)

    def _options(self, statement: MesaStatement) -> bool:
        """Parse the options in braces; returns whether there are any."""
        scan = self.scan
        if not scan.take(BRACE):
            return False
        while not scan.take(UNBRACE):
            at = scan.skip()
            word = scan.expect(OPTION, "an option or '}'")[0]
            if not self._option(statement, word):
                raise scan.wrong("an option or '}'", at)
            scan.take(COMMA)
        return True

    def _option(self, statement: MesaStatement, word: str) -> bool:
        values, known = statement.values, self.words.read
        if word in FLAGS:
            values |= FLAGS[word]
        elif word in known["mask"]:
            values["no_mask"] = True
        elif word in known["thread"]:
            values["thread_control"] = values.get("thread_control", 0) | known["thread"][word]
        elif word in known["compression"]:
            values["quarter"] = values.get("quarter", 0) | known["compression"][word]
        elif word == "compr4" and known["compression"]:
            values["quarter"], statement.compr4 = 2, True
        elif word == "EOT" and statement.row.form in ("send", "sends"):
            values["eot"] = True
        elif (group := GROUP.match(word)) and not known["compression"] and int(group[1]) <= GROUPS[group[2]][0]:
            values["quarter"], values["nibble"] = divmod((int(group[1]) - 1) * GROUPS[group[2]][1], 2)
        else:
            return False
        return True

    # -- building --------------------------------------------------------------------------------------------------

    def _build(self, statement: MesaStatement) -> Instruction:
        """The instruction without its jumps."""
        row, values = statement.row, dict(statement.values)
        placer = OperandBuilder(self.scan, self.gen, values.get("align16", False) or row.form == "three_source")
        if row.form == "send":
            self._place_send(statement, placer, values)
        elif row.form == "sends":
            self._place_sends(statement, placer, values)
        elif "dst" in row.shape:
            self._place(statement, placer, values)
        found = Instruction(self.gen, row.name, row.number, row.form, **values)
        usual = implied_residue(found, self.convention)
        return replace(found, residue=usual) if usual else found

    def _place(self, statement: MesaStatement, placer: OperandBuilder, values: dict[str, Any]) -> None:
        implied = self._implied(statement, values.get("align16", False))
        denoted = iter(statement.operands)
        found: list[Operand] = []
        for index in range(len(implied) if implied is not None else len(statement.operands)):
            given = implied[index] if implied is not None else "-"
            if isinstance(given, Operand):
                found.append(given)
            elif given == "=":
                found.append(same_register(found[0], values.get("align16", False)))
            else:
                found.append(self._operand(statement, placer, next(denoted), index, values))
        values["dst"], values["sources"] = found[0], tuple(found[1:])
        if len(found) == 2:
            values["absent"] = absent_type(found[1], 0 if "uip" in statement.row.shape else None, self.convention)

    def _operand(self, statement: MesaStatement, placer: OperandBuilder, raw: ParsedOperand, index: int, values: dict[str, Any]) -> Operand:
        form = statement.row.form
        if index == 0:
            dst = placer.destination(raw, form != "three_source")
            return replace(dst, number=dst.number | COMPR4) if statement.compr4 and dst.file == "mrf" else dst
        if form == "three_source":
            return placer.three(raw)
        if form == "three_source_align1":
            return placer.three_align1(raw, index == 3)
        found = placer.source(raw, "wide" in statement.row.takes)
        if "offset" in statement.row.shape:  # a register has no bits of one
            word = operand_fields("EU_SOURCE_1", self.gen).page.word({"immediate": found.immediate})
            values["jip"] = instruction_page("EU_BRANCH", self.gen).record(word).offset
        if found.file == "imm" and index < statement.row.sources:
            raise self.scan.wrong("a register: only the last source can be a number", raw.at)
        return found

    def _place_send(self, statement: MesaStatement, placer: OperandBuilder, values: dict[str, Any]) -> None:
        a = placer.source(statement.operands[1])
        if a.file == "imm":
            raise self.scan.wrong("a register", statement.operands[1].at)
        values |= {"dst": placer.destination(statement.operands[0]), "extended": implied_extended(a, self.gen, placer.align16)}
        at, dword = statement.dwords[-1]
        if not 0 <= dword < 1 << 32:
            raise self.scan.wrong("a number of 32 bits", at)
        if len(statement.operands) == 3:
            register = placer.source(statement.operands[2])
            if register.file == "imm":
                raise self.scan.wrong("a register", statement.operands[2].at)
            where = operand_fields("EU_SOURCE_1", self.gen)
            eot = instruction_page("EU_SEND", self.gen).mask("eot")
            values["descriptor"] = where.read(where.write_head(register) | (dword << LAST_DWORD) & ~eot, placer.align16)[0]
        else:
            values["descriptor"] = instruction_page("EU_SEND", self.gen).record(dword << LAST_DWORD).descriptor
        values["sources"] = (
            replace(a, absolute=True) if implies_absolute(self.gen, statement.row.name, values["descriptor"], self.convention) else a,
        )

    def _place_sends(self, statement: MesaStatement, placer: OperandBuilder, values: dict[str, Any]) -> None:
        values["dst"] = placer.payload(statement.operands[0], True)
        values["sources"] = tuple(placer.payload(raw, False) for raw in statement.operands[1:3])
        registers = iter(statement.operands[3:])
        for name, (at, dword) in zip(("descriptor", "extended"), statement.dwords, strict=True):
            if dword == -1:
                raw = next(registers)
                if raw.file != "arf" or raw.number != ADDRESS or (name == "descriptor" and raw.sub):
                    raise self.scan.wrong("a0" if name == "descriptor" else "a sub-register of a0", raw.at)
                values[name] = Operand("arf", "ud", raw.number, raw.sub * 4)
                continue
            if not 0 <= dword < 1 << 32:
                raise self.scan.wrong("a number of 32 bits", at)
            values[name] = (
                instruction_page("EU_SENDS", self.gen).record(dword << LAST_DWORD).descriptor if name == "descriptor" else dword
            )

    def _finish(self, offset: int, statement: MesaStatement, inst: Instruction) -> Instruction:
        """Resolve the jumps, apply the annotation, and decode the resulting bits."""
        values: dict[str, Any] = {}
        for name, (at, to) in statement.jumps.items():
            count: int | None = self._count(inst, offset, to, at) if isinstance(to, str) else to
            if count is None:
                raise self.scan.wrong("a label a whole number of units away", at)
            values[name] = count
        try:
            word = encode(replace(inst, **values) if values else inst)
        except DecodeError as error:
            raise with_position(error, self.scan, statement.at) from None
        word ^= statement.bits
        if inst.compacted and word & program.compact_bit(self.gen) and not word >> 8 * jumps.COMPACT:
            return program.decode_compact(word, self.gen)  # the eight bytes themselves, an invalid compact instruction
        found = decode(word, self.gen)
        return replace(found, compacted=True) if inst.compacted else found

    def _count(self, inst: Instruction, offset: int, label: str, at: int) -> int | None:
        if label not in self.named:
            raise self.scan.wrong("a label of this text", at)
        return jumps.count(inst, offset, self.named[label])
