"""Random instructions, built from the opcode table and the pages: whatever a row says can be said, is said."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from softgen.bits.layout import GENERATIONS
from softgen.eu.encoding.controls import control_fields
from softgen.eu.encoding.fields import instruction_page
from softgen.eu.encoding.forms import EXTENDED
from softgen.eu.isa import opcodes, registers, types
from softgen.eu.isa.instruction import VXH, Instruction, Operand
from softgen.eu.isa.opcodes import Opcode

A0 = Operand("arf", "ud", 0x10)
NAMES = [field.name for field in fields(Instruction)]


def numbers(file: str, gen: float) -> st.SearchStrategy[int]:
    if file == "arf":
        return st.sampled_from(sorted(code for code, known in registers.table().numbered if known == gen))
    return st.integers(0, 15 if file == "mrf" else 127)


@st.composite
def basic_operands(draw: Any, name: str, gen: float, align16: bool, macro: bool = False) -> Operand:
    layout = instruction_page(name, gen)
    file = draw(st.sampled_from([code for code in layout.codes["file"] if code != "imm" and code != "-"]))
    values: dict[str, Any] = {"file": file, "type": draw(st.sampled_from(sorted(types.codes("register", gen))))}
    if not macro and draw(st.booleans()):
        unit = 16 if align16 else 1
        values |= {"indirect": True, "address_sub": draw(st.integers(0, 7)), "offset": unit * draw(st.integers(-512 // unit, 511 // unit))}
    else:
        values["number"] = draw(numbers(file, gen))
        if not macro:
            values["sub"] = draw(st.sampled_from((0, 16))) if align16 else draw(st.integers(0, 31))
    if macro:
        values["special"] = draw(st.integers(0, 15))
    elif align16:
        values |= {item: draw(st.integers(0, high)) for item, high in (("swizzle", 255), ("write_mask", 15)) if item in layout}
    if "vertical" not in layout:
        values["horizontal"] = draw(st.sampled_from((0, 1, 2, 4)))
    else:
        values["vertical"] = draw(st.sampled_from((0, 1, 2, 4, 8, 16, 32, VXH)))
        if not align16:
            values |= {"width": draw(st.sampled_from((1, 2, 4, 8, 16))), "horizontal": draw(st.sampled_from((0, 1, 2, 4)))}
        values |= {"negate": draw(st.booleans()), "absolute": draw(st.booleans())}
    return Operand(**values)


@st.composite
def immediates(draw: Any, gen: float, wide: bool) -> Operand:
    kind = draw(st.sampled_from([code for code in sorted(types.codes("immediate", gen)) if wide or types.size(code) < 8]))
    return Operand("imm", kind, immediate=draw(st.integers(0, (1 << (64 if types.size(kind) > 4 else 32)) - 1)))


@st.composite
def _controls(draw: Any, row: Opcode) -> dict[str, Any]:
    layout, found = control_fields(row).page, {}
    for name in control_fields(row).names:
        if name == "exec_size":
            found[name] = draw(st.sampled_from((1, 2, 4, 8, 16, 32)))
        elif name in layout.flags:
            found[name] = draw(st.booleans())
        else:
            found[name] = draw(st.integers(0, (1 << layout.fields[name].width) - 1))
    return found


@st.composite
def _basic(draw: Any, row: Opcode, align16: bool, function: int) -> dict[str, Any]:
    gen, macro = row.gen, function in opcodes.math_macros(row.gen) and "function" in row.takes
    if "dst" not in row.shape:
        return {}
    dst = draw(basic_operands("EU_DESTINATION", gen, align16, macro))
    single = row.sources == 1
    if single and draw(st.booleans()) or "wide" in row.takes:
        a = Operand("imm", "f", immediate=draw(st.integers(0, (1 << 64) - 1))) if "wide" in row.takes else draw(immediates(gen, True))
        wide = "wide" in row.takes or types.size(a.type) > 4
        absent = draw(st.sampled_from(sorted(types.codes("immediate", gen)))) if not wide else "ud"
        return {"dst": dst, "sources": (a,), "absent": absent}
    a = draw(basic_operands("EU_SOURCE_0", gen, align16, macro))
    if single:
        return {"dst": dst, "sources": (a,)}
    use = draw(st.booleans()) and not macro
    b = draw(immediates(gen, False)) if use else draw(basic_operands("EU_SOURCE_1", gen, align16, macro))
    return {"dst": dst, "sources": (a, b)}


@st.composite
def _branch(draw: Any, row: Opcode, align16: bool) -> dict[str, Any]:
    gen, layout = row.gen, instruction_page("EU_BRANCH", row.gen)
    found: dict[str, Any] = {"dst": draw(basic_operands("EU_DESTINATION", gen, align16))}
    names = [item for item in ("jip", "uip", "pop", "offset") if item in row.shape]
    head = Operand("imm", draw(st.sampled_from(("d", "w", "ud"))))
    overlap = bool(layout.mask("uip") & instruction_page("EU_SOURCE_0", gen).mask("number")) and "uip" in names
    if names and (overlap or draw(st.booleans())):
        found["sources"] = (head,)
    elif names:
        found["sources"] = (draw(basic_operands("EU_SOURCE_0", gen, align16)), head)
    else:
        found["sources"] = tuple(draw(basic_operands(item, gen, align16)) for item in ("EU_SOURCE_0", "EU_SOURCE_1"))
    for name in names:
        width, signed = layout.fields[name].width, layout.fields[name].type.name == "int"
        low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
        found["jip" if name == "offset" else name] = draw(st.integers(low, high))
    return found


@st.composite
def _send(draw: Any, row: Opcode, align16: bool) -> dict[str, Any]:
    """From gen 9 on the extended descriptor takes the place of the region, so that only one of them can be chosen freely."""
    layout = instruction_page("EU_SEND", row.gen)
    found: dict[str, Any] = {"dst": draw(basic_operands("EU_DESTINATION", row.gen, align16)), "eot": draw(st.booleans())}
    if "extended" in layout:
        found["extended"] = draw(st.integers(0, EXTENDED - 1)) * EXTENDED
        found["sources"] = (Operand("grf", "ud", draw(numbers("grf", row.gen))),)
    else:
        found["sources"] = (draw(basic_operands("EU_SOURCE_0", row.gen, align16)),)
    if draw(st.booleans()):
        found["descriptor"] = Operand("arf", "ud", A0.number, swizzle=0 if align16 else None)
    else:
        found["descriptor"] = draw(st.integers(0, (1 << layout.fields["descriptor"].width) - 1))
        if "sfid" in layout:
            found["sfid"] = draw(st.integers(0, 15))
    return found


@st.composite
def _sends(draw: Any, row: Opcode) -> dict[str, Any]:
    def address() -> dict[str, Any]:
        if draw(st.booleans()):
            return {"indirect": True, "address_sub": draw(st.integers(0, 15)), "offset": 16 * draw(st.integers(-32, 31))}
        return {"number": draw(st.integers(0, 127)), "sub": draw(st.sampled_from((0, 16)))}

    dst = Operand(draw(st.sampled_from(("arf", "grf"))), draw(st.sampled_from(sorted(types.codes("register", row.gen)))), **address())
    b = Operand(draw(st.sampled_from(("arf", "grf"))), "", draw(st.integers(0, 127)))
    extended = draw(st.integers(0, EXTENDED - 1)) * EXTENDED + draw(st.integers(0, 15)) * 64
    return {"dst": dst, "sources": (Operand("grf", "", **address()), b), "eot": draw(st.booleans()),
            "descriptor": A0 if draw(st.booleans()) else draw(st.integers(0, (1 << 31) - 1)),
            "extended": Operand("arf", "ud", A0.number, 4 * draw(st.integers(0, 7))) if draw(st.booleans()) else extended}  # fmt: skip


@st.composite
def _three_source(draw: Any, row: Opcode) -> dict[str, Any]:
    kinds, macro, layout = sorted(types.codes("three_source", row.gen)), "macro" in row.takes, instruction_page("EU_THREE_SOURCE", row.gen)
    shared = draw(st.sampled_from(kinds))
    unit = 2 if "src1_half" in layout else 4
    channels = {"special": draw(st.integers(0, 15))} if macro else {"write_mask": draw(st.integers(0, 15))}
    dst = Operand("grf", draw(st.sampled_from(kinds)), draw(st.integers(0, 127)), 4 * draw(st.integers(0, 7)), **channels)
    sources = []
    for index in range(3):
        mixed = index and unit == 2 and shared in ("f", "hf")
        channels = {"special": draw(st.integers(0, 15))} if macro else {"swizzle": draw(st.integers(0, 255))}
        sources.append(Operand("grf", draw(st.sampled_from(("f", "hf"))) if mixed else shared, draw(st.integers(0, 127)),
                               unit * draw(st.integers(0, 32 // unit - 1)), replicate=draw(st.booleans()), negate=draw(st.booleans()),
                               absolute=draw(st.booleans()), **channels))  # fmt: skip
    return {"dst": dst, "sources": tuple(sources)}


@st.composite
def _three_source_align1(draw: Any, row: Opcode) -> dict[str, Any]:
    kinds, macro = sorted(types.codes(draw(st.sampled_from(("integer", "float"))), row.gen)), "macro" in row.takes
    layout, operands = instruction_page("EU_THREE_SOURCE_ALIGN1", row.gen), []
    for name in ("dst", "src0", "src1", "src2"):
        file = draw(st.sampled_from(sorted(layout.codes[f"{name}_file"])))
        values: dict[str, Any] = {"file": file, "type": draw(st.sampled_from(kinds))}
        if name != "dst":
            values |= {"negate": draw(st.booleans()), "absolute": draw(st.booleans())}
        if file == "imm":
            values["immediate"] = draw(st.integers(0, 0xFFFF))
        else:
            values |= {"number": draw(st.integers(0, 127)), "special" if macro else "sub": draw(st.integers(0, 15))}
            values["horizontal"] = draw(st.sampled_from(sorted(layout.codes[f"{name}_horizontal"])))
            if f"{name}_vertical" in layout:
                values["vertical"] = draw(st.sampled_from((0, 2, 4, 8)))
        operands.append(Operand(**values))
    return {"dst": operands[0], "sources": tuple(operands[1:])}


@st.composite
def instructions(draw: Any, row: Opcode | None = None, gen: float | None = None) -> Instruction:
    """Any instruction an encoding exists for, legal or not."""
    if row is None:
        row = draw(st.sampled_from(opcodes.of_generation(gen if gen is not None else draw(st.sampled_from(GENERATIONS)))))
    assert row is not None
    found = draw(_controls(row))
    align16, function = found.get("align16", False), found.get("function", 0)
    bodies = {"basic": lambda: _basic(row, align16, function), "branch": lambda: _branch(row, align16), "send": lambda: _send(row, align16),
              "sends": lambda: _sends(row), "three_source": lambda: _three_source(row),
              "three_source_align1": lambda: _three_source_align1(row)}  # fmt: skip
    return Instruction(row.gen, row.name, row.number, row.form, **{**found, **draw(bodies[row.form]())})
