"""IgaStatement: parses one instruction of IGA's dialect, from its mnemonic to its last operand.

Reads  EU_SEND
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from softgen.eu.encoding.fields import instruction_page
from softgen.eu.isa import opcodes, types
from softgen.eu.isa.extended_descriptor import FUNCTION_CONTROL, FUNCTION_ID, MESSAGE_LENGTH
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.opcodes import Opcode
from softgen.eu.text.iga.format import IgaFormatter
from softgen.eu.text.iga.operand import HIGH_PAIR, IDENTITY, LOW_PAIR
from softgen.eu.text.iga.plan import ABSENT, EOT, MACRO_NULL, NULL, branch_register, copied_operands, macro_regions
from softgen.eu.text.iga.reader import IgaReader, ParsedRegister

_SUFFIX = re.compile(r"\.(\w+)")
_EXECUTION = re.compile(r"\([ \t]*(\d{1,2})[ \t]*\|[ \t]*M(\d{1,2})[ \t]*\)")
_CONDITION = re.compile(r"\((?!sat\))(\w+)\)[ \t]*f(\d)\.(\d)")
_SATURATE = re.compile(r"\(sat\)")
_PLACE = re.compile(r"([A-Za-z_]\w*)|\.([-+]\d{1,12})\b")
_TYPED = re.compile(r":\w")
_ABSENT = re.compile(r"null(?=:)")

SIZES = (1, 2, 4, 8, 16, 32)

JumpTarget = tuple[str | int, int]  # a label or a distance in bytes, and its position in the text


class IgaStatement:
    """Parses one instruction from its mnemonic to its operands."""

    def __init__(self, reader: IgaReader, writer: IgaFormatter, row: Opcode, values: dict[str, Any]) -> None:
        self.reader, self.writer, self.row, self.values = reader, writer, row, values
        self.names, self.sets, self.gen = writer.names, writer.sets, writer.gen
        self.places: list[JumpTarget] = []  # of a branch

    def read(self) -> Instruction:
        self._suffix()
        if self.row.name in self.sets["bare"]:
            return self._make()
        self._execution()
        self._condition()
        forms = {"basic": self._basic, "branch": self._branch, "send": self._send, "sends": self._sends,
                 "three_source": self._three, "three_source_align1": self._three_align1}  # fmt: skip
        forms[self.row.form]()
        return self._make()

    def _make(self) -> Instruction:
        inst = Instruction(self.gen, self.row.name, self.row.number, self.row.form, **self.values)
        return replace(inst, align16=True) if self.writer.controls.implied_align16(inst) else inst

    def _suffix(self) -> None:
        reader, takes = self.reader, self.row.takes
        if "function" in takes:
            word = reader.expect_glued(_SUFFIX, "'.' and a math function")
            code = self.names.read["function"].get(word[1], int(word[1]) if word[1].isdigit() else -1)
            if not 0 <= code < 16:
                raise reader.wrong("a math function", word.start(1))
            self.values["function"] = code
        elif word_ := reader.glued(_SUFFIX):
            if word_[1] != "b" or "branch_control" not in takes:
                raise reader.wrong("the execution size", word_.start())
            self.values["branch_control"] = True

    def _execution(self) -> None:
        reader = self.reader
        found = reader.take(_EXECUTION)
        if found is None:
            if self.row.name in self.sets["scalar"]:
                return
            raise reader.wrong("the execution size, as (16|M0)")
        size, channel = int(found[1]), int(found[2])
        if size not in SIZES:
            raise reader.wrong(f"an execution size of {', '.join(map(str, SIZES))}", found.start(1))
        if channel % 4 or channel >= 32:
            raise reader.wrong("a first channel, as M0, M4 to M28", found.start(2) - 1)
        self.values |= {"exec_size": size, "quarter": channel // 8, "nibble": channel // 4 % 2}

    def _condition(self) -> None:
        found = self.reader.take(_CONDITION)
        if found is None:
            return
        word = found[1]
        if word != "eo" or "function" not in self.row.takes:
            code = self.names.read["condition"].get(word, int(word) if word.isdigit() else -1)
            if not 0 < code < 16:
                raise self.reader.wrong("a condition, as (eq), (ne), (gt), (ge), (lt) or (le)", found.start(1))
            self.values["condition"] = code
        self.values |= {"flag": int(found[2]), "flag_sub": int(found[3])}

    def _saturate(self) -> None:
        if self.reader.take(_SATURATE):
            self.values["saturate"] = True

    # -- operands ---------------------------------------------------------------------------------------------------

    def _destination(self) -> Operand:
        piece = self.reader.register("a destination")
        stride = self.reader.region_of(piece, 1, "a destination's region, as <1>")[0]
        return self.reader.operand(piece, horizontal=stride, write_mask=self.reader.mask(piece))

    def _source(self, wide: bool = False) -> Operand:
        reader = self.reader
        if reader.is_number():
            return reader.immediate(wide, False)
        return self._region(reader.register("a source"))

    def _region(self, piece: ParsedRegister) -> Operand:
        if piece.channels is not None:
            row = self.reader.region_of(piece, 1, "the region of an align16 source, as <4>")[0]
            return self.reader.operand(piece, vertical=row, swizzle=self.reader.swizzle(piece))
        vertical, width, horizontal = self.reader.region_of(piece, 3, "a region, as <8;8,1>")
        return self.reader.operand(piece, vertical=vertical, width=width, horizontal=horizontal)

    def _basic(self) -> None:
        row, reader, implied = self.row, self.reader, self.names.implied
        function = opcodes.math_function(self.values["function"], self.gen) if "function" in row.takes else None
        if function and function.macro:
            self._macro(function.sources)
            return
        if ("copied", row.name) in implied and self._copied():
            return
        self._saturate()
        self.values["dst"] = self._destination()
        single = row.sources == 1
        sources = [self._wide_source() if single else self._source()]
        while len(sources) < row.sources:
            more = reader.is_register() or reader.is_number()
            sources.append(self._source() if more or function is None or function.sources > 1 else NULL)
        self.values["sources"] = tuple(sources)
        if single and reader.take(_ABSENT):
            self.values["absent"] = reader.type_name()

    def _wide_source(self) -> Operand:
        """Parse the source of a one-source instruction: an immediate has 64 bits if its type has, and always with some opcodes."""
        reader = self.reader
        before = reader.at
        if not reader.is_number():
            return self._source()
        wide = "wide" in self.row.takes or types.size(reader.immediate(True, False).type) > 4
        reader.at = before
        return self._source(wide)

    def _copied(self) -> bool:
        """Parse an instruction of which only the source is written; the destination is the same."""
        before = self.reader.at
        if self.reader.peek(_SATURATE):
            return False
        piece = self.reader.register("a source")
        if piece.region is not None and len(piece.region) == 1 or self.reader.is_register():
            self.reader.at = before
            return False
        source = self._region(piece)
        dst, rest = copied_operands(self.names.implied["copied", self.row.name], source)
        self.values |= {"dst": dst, "sources": (source, *rest)}
        return True

    def _macro(self, count: int) -> None:
        inst = Instruction(self.gen, self.row.name, self.row.number, self.row.form, **self.values)
        region, column = macro_regions(self.sets["macro_16"], inst)
        self._saturate()
        dst = replace(self._special("a destination"), **column)
        found = [self._special("a source") for _ in range(count)]
        found = [source if source.file == "imm" else replace(source, **region(source)) for source in found]
        self.values |= {"dst": dst, "sources": (*found, *[MACRO_NULL] * (self.row.sources - count))}

    def _special(self, what: str) -> Operand:
        """Parse an operand with an accumulator selector."""
        if what == "a source" and self.reader.is_number():
            return self.reader.immediate(False, False)
        return self.reader.operand(self.reader.register(what), special=True)

    # -- three sources ----------------------------------------------------------------------------------------------

    def _three(self) -> None:
        self._saturate()
        if "macro" in self.row.takes:
            self.values["dst"] = self._special("a destination")
            self.values["sources"] = tuple(self._special("a source") for _ in range(3))
            return
        self.values["dst"] = self._three_destination()
        self.values["sources"] = tuple(self._three_source(last) for last in (False, False, True))

    def _three_destination(self) -> Operand:
        reader = self.reader
        piece = reader.register("a destination")
        operand = reader.operand(piece)
        if piece.channels is not None:
            return replace(operand, write_mask=reader.mask(piece))
        if reader.region_of(piece, 1, "a destination's region, as <1>") != (1,):
            raise reader.wrong("the region <1>", reader.text.find("<", piece.at))
        if self.values.get("exec_size", 1) != 1:
            return replace(operand, write_mask=0xF)
        size, sub = types.size(operand.type), piece.sub or 0
        if size == 8:  # an element is a pair of channels
            self.values["exec_size"] = 2
            return replace(operand, sub=(sub - sub % 2) * size, write_mask=0x3 << sub % 2 * 2)
        self.values["exec_size"] = 4
        return replace(operand, sub=(sub - sub % 4) * size, write_mask=1 << sub % 4)

    def _three_source(self, last: bool) -> Operand:
        reader = self.reader
        piece = reader.register("a source")
        operand = reader.operand(piece)
        if piece.channels is not None:
            return replace(operand, swizzle=reader.swizzle(piece), replicate=piece.replicate)
        region = reader.region_of(piece, 1 if last else 2, "a region, as <1> or <0>" if last else "a region, as <2;1> or <0;0>")
        if region in ((1,), (2, 1), (4, 1), (8, 1)):
            return replace(operand, swizzle=IDENTITY)
        if any(region):
            raise reader.wrong("a packed region or a scalar one", reader.text.find("<", piece.at))
        if types.size(operand.type) < 8:
            return replace(operand, swizzle=IDENTITY, replicate=True)
        sub = piece.sub or 0
        return replace(operand, sub=(sub - sub % 2) * 8, swizzle=HIGH_PAIR if sub % 2 else LOW_PAIR)

    def _three_align1(self) -> None:
        self._saturate()
        if "macro" in self.row.takes:
            regions = [{"horizontal": 1}, {"vertical": 4, "horizontal": 1}, {"vertical": 4, "horizontal": 1}, {"horizontal": 1}]
            what = ("a destination", "a source", "a source", "a source")
            dst, *sources = (self._special_16(word, region) for word, region in zip(what, regions, strict=True))
        else:
            dst, *sources = (self._three_piece(place) for place in range(4))
        self.values |= {"dst": dst, "sources": tuple(sources)}

    def _special_16(self, what: str, region: dict[str, Any]) -> Operand:
        if what == "a source" and self.reader.is_number():
            return self.reader.immediate(False, True)
        return replace(self._special(what), **region)

    def _three_piece(self, place: int) -> Operand:
        """Parse an operand; `place` is 0 for the destination, then the source's number."""
        reader = self.reader
        if place and reader.is_number():
            return reader.immediate(False, True)
        piece = reader.register("a source" if place else "a destination")
        if place in (1, 2):
            vertical, horizontal = reader.region_of(piece, 2, "a region, as <8;1>")
            return reader.operand(piece, vertical=vertical, horizontal=horizontal)
        return reader.operand(piece, horizontal=reader.region_of(piece, 1, "a region, as <1>")[0])

    # -- messages ---------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        reader = self.reader
        self._saturate()
        piece = reader.register("a destination")
        stride = piece.region[0] if piece.region is not None else 1
        dst = reader.operand(piece, ABSENT, horizontal=stride, write_mask=reader.mask(piece))
        piece = reader.register("a payload")
        extended = "extended" in instruction_page("EU_SEND", self.gen)
        if piece.channels is None and piece.region is None:
            source = reader.operand(piece, ABSENT)
        elif extended:
            raise reader.wrong("a payload without a region", piece.at)
        else:
            source = self._region(
                ParsedRegister(**{name: getattr(piece, name) for name in ParsedRegister.__slots__} | {"type": piece.type or ABSENT})
            )
        self.values |= {"dst": dst, "sources": (source,)}
        self._descriptors(extended)
        if self.reader.peek(_TYPED) and not isinstance(self.values["descriptor"], Operand) and "extended" not in self.values:
            self._descriptor_type()

    def _descriptor_type(self) -> None:
        at, kind = self.reader.at, self.reader.type_name()
        code = types.codes("immediate", self.gen).get(kind or "")
        if code is None:
            raise self.reader.wrong("the type of an immediate", at)
        self.values["residue"] = self.writer.descriptor_types.word({"type": code})

    def _sends(self) -> None:
        reader = self.reader
        self._saturate()
        dst = reader.operand(reader.register("a destination"), ABSENT)
        sources = tuple(reader.operand(reader.register("a payload")) for _ in range(2))
        self.values |= {"dst": dst, "sources": sources}
        self._descriptors(True)

    def _descriptors(self, extended: bool) -> None:
        reader = self.reader
        at = reader.skip()
        number, register = reader.extended()
        rest = number & ~(FUNCTION_ID | EOT)
        self.values["sfid"] = number & FUNCTION_ID
        if number & EOT:
            self.values["eot"] = True
        if register is not None:
            if self.row.form != "sends" or rest:
                raise reader.wrong("an extended message descriptor", at)
            self.values["extended"] = register
        elif extended:
            if rest & ~(FUNCTION_CONTROL | (MESSAGE_LENGTH if self.row.form == "sends" else 0)):
                raise reader.wrong("an extended message descriptor with nothing in its unused bits", at)
            self.values["extended"] = rest
        elif rest:
            raise reader.wrong("a shared function, 0x0 to 0xF", at)
        self.values["descriptor"] = reader.descriptor()

    # -- branches ---------------------------------------------------------------------------------------------------

    def _branch(self) -> None:
        """Parse a branch: labels alone, a register alone, or all operands; then the first one has a region."""
        reader = self.reader
        start = reader.skip()
        pieces: list[ParsedRegister | JumpTarget | Operand] = []
        kinds: list[str | None] = []
        while reader.is_register() or reader.is_number() or reader.peek(_PLACE):
            if reader.take(_ABSENT):
                self.values["absent"] = reader.type_name()
                break
            if reader.is_register():
                pieces.append(reader.register())
                continue
            if reader.is_number():
                pieces.append(reader.immediate(False, False))
                continue
            place = reader.expect(_PLACE, "a label")
            pieces.append((place[1] or int(place[2]), place.start()))
            kinds.append(reader.type_name())
        places = self.places = [piece for piece in pieces if isinstance(piece, tuple)]
        denoted = [piece for piece in pieces if isinstance(piece, ParsedRegister)]
        first = pieces[0] if pieces else None
        if isinstance(first, ParsedRegister) and (first.region is not None or first.channels is not None):
            self._full(pieces, kinds)
        elif any(isinstance(piece, Operand) for piece in pieces):
            raise reader.wrong("a label", start)
        else:
            self._implied(denoted, places, kinds)

    def _implied(self, denoted: list[ParsedRegister], places: list[JumpTarget], kinds: list[str | None]) -> None:
        reader = self.reader
        known = self.names.implied
        implied = known.get(("label" if places else "register", self.row.name))
        if not denoted and not places:
            raise reader.wrong(" or ".join(f"a {how}" for how in ("label", "register") if (how, self.row.name) in known))
        if implied is None:
            raise reader.wrong("a register" if places else "a label", places[0][1] if places else denoted[0].at)
        labels = len(self.row.shape & {"jip", "uip", "offset"}) if places else 0
        pieces = iter(denoted)
        operands = []
        for expected in implied:
            if expected.file == "said":
                piece = next(pieces, None)
                if piece is None:
                    raise reader.wrong("a register")
                operands.append(branch_register(reader.operand(piece, expected.type), expected, piece.type or expected.type))
            elif expected.file == "imm":
                operands.append(replace(expected, type=kinds[0] or expected.type))
            else:
                operands.append(expected)
        if (left := next(pieces, None)) is not None:
            raise reader.wrong("a label" if places else "the end of the line", left.at)
        if len(places) != labels:
            raise reader.wrong("a label") if len(places) < labels else reader.wrong("the end of the line", places[labels][1])
        self.values |= {"dst": operands[0], "sources": tuple(operands[1:])}

    def _full(self, pieces: list[ParsedRegister | JumpTarget | Operand], kinds: list[str | None]) -> None:
        first = pieces[0]
        assert isinstance(first, ParsedRegister)
        self.values["dst"] = self.reader.operand(first, horizontal=self.reader.region_of(first, 1, "a destination's region, as <1>")[0],
                                                 write_mask=self.reader.mask(first))  # fmt: skip
        sources: list[Operand] = []
        for number, piece in enumerate(pieces[1:], 1):
            if isinstance(piece, Operand):
                sources.append(piece)
            elif isinstance(piece, ParsedRegister):
                sources.append(self._region(piece))
            elif not isinstance(pieces[number - 1], tuple):
                sources.append(Operand("imm", kinds[0] or ""))
        alone = sources and sources[0].file == "imm" and self.row.shape & {"jip", "uip", "offset"}  # the rest of the word is offsets
        if len(sources) < 2 and not alone:
            raise self.reader.wrong("a source")
        self.values["sources"] = tuple(sources)
