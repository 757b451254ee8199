"""Three-source and split send forms, whose layouts share nothing with the basic form.

Reads   EU_THREE_SOURCE EU_THREE_SOURCE_ALIGN1 EU_SENDS
"""

from __future__ import annotations

from typing import Any

from softgen.bits.record import Record
from softgen.bits.units import DWORD, WORD
from softgen.errors import DecodeError
from softgen.eu.encoding.controls import control_fields
from softgen.eu.encoding.fields import ADDRESSES, BoundedCache, instruction_page
from softgen.eu.encoding.forms import EXTENDED, DecodedOperands
from softgen.eu.encoding.operand import units
from softgen.eu.isa import types
from softgen.eu.isa.extended_descriptor import MESSAGE_LENGTH, unit
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.isa.opcodes import Opcode

SOURCES = ("src0", "src1", "src2")
EXTENDED_LENGTH = unit(MESSAGE_LENGTH)  # the unit of the extended descriptor's message length
ADDRESS = 0x10  # register number of a0


class CombinedForm:
    """A form whose operands are decoded and cached together."""

    def __init__(self, row: Opcode, name: str) -> None:
        self.row, self.page = row, instruction_page(name, row.gen)
        self.controls = control_fields(row)
        self.bits = self.page.mask_without()
        self.bodies: BoundedCache[int, DecodedOperands] = BoundedCache()
        self.macro = "macro" in row.takes

    def read(self, word: int, align16: bool, function: int) -> DecodedOperands:
        bits = word & self.bits
        return self.bodies.get(bits) or self.bodies.keep(bits, self._read(self.page.record(bits)))

    def _read(self, record: Record) -> DecodedOperands:
        raise NotImplementedError

    def _code(self, position: str, name: str) -> int:
        code = types.codes(position, self.row.gen).get(name, None if name else 0)
        if code is None:
            raise DecodeError(f"gen {self.row.gen:g}: {self.row.name} has no operands of type {name}")
        return code


class ThreeSourceForm(CombinedForm):
    """The align16 three-source form."""

    def __init__(self, row: Opcode) -> None:
        super().__init__(row, "EU_THREE_SOURCE")
        self.unit = WORD if "src1_half" in self.page else DWORD  # of source sub-registers: words where sources can be half floats

    def _read(self, record: Record) -> DecodedOperands:
        names = types.names("three_source", self.row.gen)
        shared = names.get(record.src_type, "")
        channels = {"special": record.dst_special} if self.macro else {"write_mask": record.dst_write_mask}
        dst = Operand("grf", names.get(record.dst_type, ""), record.dst_number, record.dst_sub * DWORD, **channels)
        sources = tuple(self._source(record, name, self._source_type(record, name, shared)) for name in SOURCES)
        return DecodedOperands(self._bits(dst, sources), dst=dst, sources=sources)

    def _source(self, record: Record, name: str, kind: str) -> Operand:
        def get(field: str) -> Any:
            return getattr(record, f"{name}_{field}")

        return Operand("grf", kind, get("number"), get("sub") * self.unit, replicate=bool(get("replicate")),
                       swizzle=None if self.macro else get("swizzle"), special=get("special") if self.macro else None,
                       negate=bool(get("negate")), absolute=bool(get("absolute")))  # fmt: skip

    def _source_type(self, record: Record, name: str, shared: str) -> str:
        """The type of a source: sources 1 and 2 may be half floats while the others are floats (KBL 6875-6888)."""
        field = f"{name}_half"
        if field not in self.page or shared not in self.page.codes[field]:
            return shared
        return str(self.page.meaning(field, getattr(record, field)))

    def write(self, inst: Instruction) -> int:
        if inst.dst is None:
            raise DecodeError(f"{self.row.name} needs a destination")
        return self._bits(inst.dst, inst.sources)

    def _bits(self, dst: Operand, sources: tuple[Operand, ...]) -> int:
        values: dict[str, Any] = {"dst_number": dst.number, "dst_sub": units(dst.sub, DWORD, "sub-register")}
        values |= {"dst_type": self._code("three_source", dst.type), "src_type": self._code("three_source", sources[0].type)}
        macros: dict[str, Any] = {}
        if dst.special is not None:
            macros["dst_special"] = dst.special
        else:
            values["dst_write_mask"] = dst.write_mask or 0
        for name, operand in zip(SOURCES, sources, strict=True):
            values |= {f"{name}_number": operand.number, f"{name}_sub": units(operand.sub, self.unit, "sub-register"),
                       f"{name}_replicate": operand.replicate, f"{name}_negate": operand.negate,
                       f"{name}_absolute": operand.absolute}  # fmt: skip
            if operand.special is not None:
                macros[f"{name}_special"] = operand.special
            else:
                values[f"{name}_swizzle"] = operand.swizzle or 0
            self._write_type(name, operand.type, sources[0].type, values)
        return self.page.word(values) | self.page.word(macros)

    def _write_type(self, name: str, kind: str, shared: str, values: dict[str, Any]) -> None:
        field = f"{name}_half"
        if field in self.page and shared in self.page.codes[field]:
            values[field] = self.page.code(field, kind)
        elif kind != shared:
            raise DecodeError(f"gen {self.row.gen:g}: sources of {self.row.name} must all have type {shared}, not {kind}")


class ThreeSourceAlign1Form(CombinedForm):
    """Align1."""

    def __init__(self, row: Opcode) -> None:
        super().__init__(row, "EU_THREE_SOURCE_ALIGN1")

    def _read(self, record: Record) -> DecodedOperands:
        names = types.names(str(self.page.meaning("execution_type", record.execution_type)), self.row.gen)
        operands = [self._operand(record, name, names) for name in ("dst", *SOURCES)]
        return DecodedOperands(self._bits(operands[0], tuple(operands[1:])), dst=operands[0], sources=tuple(operands[1:]))

    def _operand(self, record: Record, name: str, names: Any) -> Operand:
        file = self.page.meaning(f"{name}_file", getattr(record, f"{name}_file"))
        values: dict[str, Any] = {"file": file, "type": names.get(getattr(record, f"{name}_type"), "")}
        fields = ["negate", "absolute"]
        if file != "imm":
            fields += ["number", "horizontal", "vertical", "special" if self.macro else "sub"]
        for field in fields:
            if (full := f"{name}_{field}") in self.page:
                values[field] = self._value(full, getattr(record, full))
        if file == "imm":
            values["immediate"] = getattr(record, f"{name}_immediate")
        return Operand(**values)

    def _value(self, field: str, code: int) -> Any:
        if field in self.page.values:
            return self.page.meaning(field, code)
        return bool(code) if field in self.page.flags else code

    def write(self, inst: Instruction) -> int:
        if inst.dst is None:
            raise DecodeError(f"{self.row.name} needs a destination")
        return self._bits(inst.dst, inst.sources)

    def _bits(self, dst: Operand, sources: tuple[Operand, ...]) -> int:
        operands = (dst, *sources)
        known = [found for operand in operands if (found := types.type_of(operand.type))]
        kind = "float" if any(type_.float for type_ in known) else "integer"
        bits = self.page.word({"execution_type": self.page.code("execution_type", kind)})
        for name, operand in zip(("dst", *SOURCES), operands, strict=True):
            bits |= self.page.word(self._values(name, operand, kind))
        return bits

    def _values(self, name: str, operand: Operand, kind: str) -> dict[str, Any]:
        values: dict[str, Any] = {
            f"{name}_file": self.page.code(f"{name}_file", operand.file),
            f"{name}_type": self._code(kind, operand.type),
        }
        fields = ["negate", "absolute"]
        if operand.file == "imm":
            values[f"{name}_immediate"] = operand.immediate
        else:
            fields += ["number", "horizontal", "vertical", "special" if operand.special is not None else "sub"]
        for field in fields:
            if (full := f"{name}_{field}") in self.page:
                value = getattr(operand, field)
                values[full] = self.page.code(full, value) if full in self.page.values else value
        return values


class SplitSendForm(CombinedForm):
    """Split sends: two payloads, and descriptors that may each be in a0."""

    def __init__(self, row: Opcode) -> None:
        super().__init__(row, "EU_SENDS")

    def _read(self, record: Record) -> DecodedOperands:
        page = self.page
        kind = types.names("register", self.row.gen).get(record.dst_type, "")
        dst = Operand(str(page.meaning("dst_file", record.dst_file)), kind, **self._read_address(record, "dst"))
        a = Operand("grf", "", **self._read_address(record, "src0"))
        b = Operand(str(page.meaning("src1_file", record.src1_file)), "", record.src1_number)
        descriptor = Operand("arf", "ud", ADDRESS) if record.descriptor_register else record.descriptor
        extended: int | Operand = record.extended * EXTENDED + record.extended_length * EXTENDED_LENGTH
        if record.extended_register:
            extended = Operand("arf", "ud", ADDRESS, record.extended_sub * DWORD)
        body = DecodedOperands(0, bool(record.eot), descriptor, extended, dst, (a, b))
        return body._replace(bits=self._bits(body))

    def _read_address(self, record: Record, name: str) -> dict[str, Any]:
        def get(field: str) -> Any:
            return getattr(record, f"{name}_{field}")

        if get("indirect"):
            return {"indirect": True, "address_sub": get("address_sub"), "offset": get("offset") * ADDRESSES}
        return {"number": get("number"), "sub": get("sub") * ADDRESSES}

    def write(self, inst: Instruction) -> int:
        return self._bits(inst)

    def _bits(self, inst: Instruction | DecodedOperands) -> int:
        if inst.dst is None:
            raise DecodeError(f"{self.row.name} needs a destination")
        dst, (a, b), page = inst.dst, inst.sources, self.page
        values: dict[str, Any] = {"eot": inst.eot, "dst_type": self._code("register", dst.type),
                                  "dst_file": page.code("dst_file", dst.file), "src1_file": page.code("src1_file", b.file),
                                  "src1_number": b.number}  # fmt: skip
        if isinstance(inst.descriptor, Operand):
            values["descriptor_register"] = True
        else:
            values["descriptor"] = inst.descriptor or 0
        if isinstance(inst.extended, Operand):
            values |= {"extended_register": True, "extended_sub": units(inst.extended.sub, DWORD, "sub-register")}
        else:
            upper, lower = divmod(inst.extended or 0, EXTENDED)
            values |= {"extended": upper, "extended_length": lower % (EXTENDED_LENGTH * 16) // EXTENDED_LENGTH}
        return page.word(values) | page.word(self._address("dst", dst)) | page.word(self._address("src0", a))

    def _address(self, name: str, operand: Operand) -> dict[str, Any]:
        if operand.indirect:
            return {
                f"{name}_indirect": 1,
                f"{name}_address_sub": operand.address_sub,
                f"{name}_offset": units(operand.offset, ADDRESSES, "offset"),
            }
        return {f"{name}_number": operand.number, f"{name}_sub": units(operand.sub, ADDRESSES, "sub-register")}
