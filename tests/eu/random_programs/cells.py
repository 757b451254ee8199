"""Cells: what coverage counts, per generation, defined from the tables. A straight instruction falls into a cell of each of these:

    types    opcode × destination type × source and its type, for every pair of a `legal` row; math: function × type
    region   opcode × operand × kind of operand (operands.py), in every form the opcode has
    shape    vertical stride; width, horizontal stride × bytes of an element: every region that can stand in two registers
    mode     opcode × execution size, predicate control (align1, align16, inverted), condition modifier, saturation, source modifier,
             quarter, nibble, NoMask, AccWrEn, flag register
    float    opcode that computes with floats × rounding mode, denormals kept or flushed, ALT mode

Branches fall into `flow` cells: opcode × predicated, inverted, diverging, in an if, in a loop, in a routine, single program flow.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from softgen.eu.check.restrictions import restrictions
from softgen.eu.encoding.controls import control_fields
from softgen.eu.isa import opcodes, registers, types
from softgen.eu.isa.control_register import mask, roundings
from softgen.eu.isa.instruction import VXH, Instruction, Operand
from softgen.eu.isa.opcodes import Opcode
from softgen.eu.isa.rules import COMPUTED_AS
from softgen.eu.thread.state import FloatMode
from tests.eu.random_programs.instructions import COMPARES, CONDITIONS, PREDICATES, Wants, forms, functions, straight
from tests.eu.random_programs.operands import (
    ACC,
    IDENTITY,
    SOURCES_1,
    SOURCES_16,
    TARGETS_1,
    TARGETS_16,
    THREE_1,
    THREE_16,
    Region,
    kind_of,
    regions,
)

FLOATS = ("hf", "f", "df")
MODIFIERS = {"neg": (True, False), "abs": (False, True), "negabs": (True, True)}
PINNED = {"movi": ("dst",), "smov": (0,), "dim": ("dst",), "pln": ("dst",), "line": ("dst", 1)}  # operands that may be chosen
DENORMALS = {"hf": "half_denormals", "f": "float_denormals", "df": "double_denormals"}


class Cell(NamedTuple):
    kind: str
    opcode: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind:7}{self.opcode:8}{self.what}"


@cache
def cells(gen: float) -> dict[Cell, Wants]:
    """Every cell of straight instructions, and what an instruction needs to fall into it."""
    found: dict[Cell, Wants] = {}
    for row in straight(gen):
        for part in (_type_cells, _region_cells, _mode_cells, _float_cells):
            found.update(part(row))
    for size in (1, 2, 4, 8):
        if size < 8 or "uq" in types.codes("register", gen):
            found.update(_shape_cells(size))
    if any(restriction.name == "no_quadwords" and gen in restriction.gens for restriction in restrictions()):
        found = {cell: wants for cell, wants in found.items() if not _is_wide(wants)}
    return found


def _is_wide(wants: Wants) -> bool:
    """Whether it is about a type of 64 bits."""
    return 8 in (types.size(wants.get("dst_type", "")), types.size(wants.get("src_type", (0, ""))[1]))


def _type_cells(row: Opcode) -> dict[Cell, Wants]:
    found: dict[Cell, Wants] = {}
    given = functions(row.gen) if "function" in row.takes else {"": None}
    for name, function in given.items():
        sources = function.sources if function else row.sources
        for to, source in {(a, b) for pair in row.legal for a in pair[0] for b in pair[1]}:
            if name and name.startswith("int") != (source in ("d", "ud")):
                continue
            for index in range(1 if row.name in PINNED else sources):
                wants = {"dst_type": to, "src_type": (index, source), **({"function": name} if name else {})}
                found[Cell("types", row.name, f"{name + ' ' if name else ''}{to} <- source {index} {source}")] = wants
    return found


def _region_cells(row: Opcode) -> dict[Cell, Wants]:
    found: dict[Cell, Wants] = {}

    def add(place: Any, *kinds: str) -> None:
        for kind in kinds:
            found[Cell("region", row.name, f"{_place(place)} {kind}")] = {"region": (place, kind)}

    sources = range(row.sources)
    if row.name in PINNED:
        for place in PINNED[row.name]:
            add(place, *(("packed", "stride2", "null") if place == "dst" else ("packed", "scalar")))
    elif "macro" in row.takes:
        pass
    elif row.form == "three_source":
        add("dst", "all_channels", "write_mask")
        for index in sources:
            add(index, *THREE_16)
    elif row.form == "three_source_align1":
        add("dst", "packed", "stride2", "acc")
        for index in sources:
            out = {"acc"} if index != 1 else {"immediate"}
            add(index, *(kind for kind in THREE_1 if kind not in out | ({"rows"} if index == 2 else set())))
    else:
        _basic_cells(row, add)
    return found


def _basic_cells(row: Opcode, add: Any) -> None:
    add("dst", *TARGETS_1, *(("mrf",) if registers.register("mask", row.gen) else ()))
    given = {item for pair in row.legal for item in pair[1]}
    vectors, single = given & {"w", "uw", "d", "ud", "f"}, given & set(types.codes("immediate", row.gen))
    for index in range(row.sources):
        out = set() if index == row.sources - 1 and single else {"immediate", "immediate16", "vector"}
        out |= {"acc", "arf"} if index else set()
        add(index, *(kind for kind in SOURCES_1 if kind not in out and (kind != "vector" or vectors)))
    if len(forms(row)) > 1:
        add("dst", *TARGETS_16)
        for index in range(row.sources):
            add(index, *(kind for kind in SOURCES_16 if kind != "immediate16" or index == row.sources - 1 and single))


def _mode_cells(row: Opcode) -> dict[Cell, Wants]:
    known = control_fields(row).names
    found: dict[str, Wants] = {f"exec {size}": {"exec_size": size} for size in (1, 2, 4, 8, 16, 32)}
    if "predicate" in row.takes:
        for align16 in forms(row):
            codes = range(1, 8) if align16 else PREDICATES
            found |= {f"predicate {code}{' align16' if align16 else ''}": {"predicate": code, "align16": align16} for code in codes}
        found["predicate inverted"] = {"predicate": 1, "predicate_invert": True}
    if "condition" in row.takes and "condition" in known:
        found |= {f"condition {code}": {"condition": code} for code in CONDITIONS}
    if "saturate" in row.takes:
        found["saturate"] = {"saturate": True}
    if "modifiers" in row.takes:
        sources = 1 if row.name in ("movi", "pln") else row.sources
        found |= {f"source {index} {how}": {"modifier": (index, how)} for index in range(sources) for how in MODIFIERS}
    found["NoMask"] = {"no_mask": True}
    if "acc_write" in known:
        found["AccWrEn"] = {"acc_write": True}
    found |= {f"quarter {code}": {"quarter": code} for code in range(1, 4)}
    if "nibble" in known:
        found["nibble"] = {"nibble": 1}
    if {"predicate", "condition"} & row.takes:
        flags = registers.register("f", row.gen)
        assert flags is not None
        uses: dict[str, Any] = {"predicate": 1} if "predicate" in row.takes else {"condition": 3}
        if row.name in COMPARES:
            uses = {"condition": 3}
        for flag in range(flags.count):
            for sub in range(2):
                found[f"f{flag}.{sub}"] = {**uses, "flag": flag, "flag_sub": sub}
    return {Cell("mode", row.name, what): wants for what, wants in found.items()}


def _float_cells(row: Opcode) -> dict[Cell, Wants]:
    kinds = [name for name in FLOATS if any(name in pair[1] for pair in row.legal)]
    if not kinds or row.name in ("dim", "movi", "smov"):
        return {}
    found: dict[str, Wants] = {}
    for bits, name in roundings().items():
        found[f"rounds {name}"] = {"src_type": (0, kinds[-1] if len(kinds) < 3 else "f"), "control": bits}
    if "f" in kinds:
        found["ALT"] = {"src_type": (0, "f"), "control": mask("alternate_float_mode")}
    for kind in kinds:
        found[f"{kind} flushed"] = {"src_type": (0, kind), "control": 0}
        if bit := mask(DENORMALS[kind], row.gen):
            found[f"{kind} kept"] = {"src_type": (0, kind), "control": bit}
    return {Cell("float", row.name, what): wants for what, wants in found.items()}


def _shape_cells(size: int) -> dict[Cell, Wants]:
    found: dict[Cell, Wants] = {}
    name = {1: "ub", 2: "uw", 4: "ud", 8: "uq"}[size]
    for exec_size in (1, 2, 4, 8, 16, 32):
        for region in regions(exec_size, size):
            wants = {"exec_size": exec_size, "src_type": (0, name), "shape": region, "region": (0, kind_of(region, exec_size))}
            found.setdefault(Cell("shape", "", f"{region} of {size} bytes"), wants)
    return found


def _place(place: Any) -> str:
    return "dst" if place == "dst" else f"source {place}"


# -- what an instruction falls into --------------------------------------------------------------------------------


def seen(inst: Instruction, mode: FloatMode) -> set[Cell]:
    row = opcodes.opcode(inst.opcode, inst.gen)
    assert row is not None and inst.dst is not None
    found = {Cell("mode", inst.opcode, what) for what in _modes(inst)}
    function = opcodes.math_function(inst.function, inst.gen) if "function" in row.takes else None
    sources = inst.sources[: function.sources] if function else inst.sources
    name = f"{function.name} " if function else ""
    for index, source in enumerate(sources):
        found.add(Cell("types", inst.opcode, f"{name}{inst.dst.type} <- source {index} {source.type}"))
        found |= {Cell("region", inst.opcode, f"source {index} {kind}") for kind in source_kinds(inst, source)}
        if row.form == "basic" and source.file == "grf" and not inst.align16 and source.vertical != VXH:
            found.add(Cell("shape", "", f"{Region(source.vertical, source.width, source.horizontal)} of {types.size(source.type)} bytes"))
    found |= {Cell("region", inst.opcode, f"dst {kind}") for kind in target_kinds(inst, inst.dst)}
    return found | {Cell("float", inst.opcode, what) for what in _floats(sources, mode)}


def _modes(inst: Instruction) -> set[str]:
    found = {f"exec {inst.exec_size}", f"condition {inst.condition}", f"quarter {inst.quarter}", "nibble" if inst.nibble else ""}
    if inst.predicate:
        found |= {f"predicate {inst.predicate}{' align16' if inst.align16 else ''}", "predicate inverted" if inst.predicate_invert else ""}
    if inst.predicate or inst.condition:
        found.add(f"f{inst.flag}.{inst.flag_sub}")
    found |= {name for name, holds in (("saturate", inst.saturate), ("NoMask", inst.no_mask), ("AccWrEn", inst.acc_write)) if holds}
    for index, source in enumerate(inst.sources):
        found |= {f"source {index} {how}" for how, signs in MODIFIERS.items() if signs == (source.negate, source.absolute)}
    return found


def _floats(sources: tuple[Operand, ...], mode: FloatMode) -> set[str]:
    kinds = {COMPUTED_AS.get(source.type, "") for source in sources} & set(FLOATS)
    found = {f"rounds {mode.rounding}"} if kinds else set()
    if "f" in kinds and mode.alt:
        found.add("ALT")
    return found | {f"{kind} {'flushed' if kind in mode.flushes else 'kept'}" for kind in kinds}


def source_kinds(inst: Instruction, source: Operand) -> set[str]:
    if source.file == "imm":
        vector = source.type in ("v", "uv", "vf")
        return {"vector" if vector else "immediate16" if inst.align16 else "immediate"}
    if source.file == "arf":
        return {"acc" if source.number in (ACC, ACC + 1) else "arf"}
    if inst.form == "three_source":
        return {"replicate"} if source.replicate else {"straight" if source.swizzle == IDENTITY else "swizzle"}
    if inst.form == "three_source_align1":
        return _three_kinds(source)
    if inst.align16:
        plain = "straight" if source.vertical == 4 and source.swizzle == IDENTITY else "swizzle"
        return {"indirect16"} if source.indirect else {plain, *(("one_vector",) if not source.vertical else ())}
    if source.indirect:
        return {"indirect" if source.vertical != VXH else "vx1" if source.width == 1 else "vxh"}
    return {kind_of(Region(source.vertical, source.width, source.horizontal), inst.exec_size)}


def _three_kinds(source: Operand) -> set[str]:
    inner = {0: "scalar", 1: "packed", 2: "stride2", 4: "stride4"}[source.horizontal]
    if not source.vertical or source.vertical == 8 and source.horizontal:
        return {inner}
    return {"rows"}


def target_kinds(inst: Instruction, dst: Operand) -> set[str]:
    if inst.form == "three_source" or inst.align16:
        kind = "all_channels" if dst.write_mask == 15 else "write_mask"
        return {kind, *(("indirect16",) if dst.indirect else ())}
    if dst.file == "arf":
        return {"null" if not dst.number else "acc" if dst.number in (ACC, ACC + 1) else "arf"}
    if dst.file == "mrf":
        return {"mrf"}
    stride = {1: "packed", 2: "stride2", 4: "stride4"}.get(dst.horizontal, "")
    return {"indirect" if dst.indirect else stride, *(("offset",) if dst.sub else ())}
