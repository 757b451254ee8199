"""What other disassemblers and assemblers write about a word is what we read in it. Bits that only change places would pass every
round trip; these texts name registers, regions, types and options in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from softgen.eu.encoding.compact import expand
from softgen.eu.encoding.decode import decode
from softgen.eu.isa import opcodes, types
from softgen.eu.isa.instruction import Instruction, Operand
from tests.conftest import SHARED, needs_shared

ASM = SHARED / "oracles" / "asm"
KERNELS = SHARED / "kernels"
GPUS = {"bdw": 8.0, "kbl": 9.0, "icllp": 11.0}
FOLDERS = {4.5: "elk/tests/gen4.5", 7.0: "elk/tests/gen7", 7.5: "elk/tests/gen7.5", 8.0: "elk/tests/gen8", 9.0: "brw/tests/gen9"}
WITH_IMPLIED_TYPES = ("send", "sends", "branch")
OPTIONS = {"align16": "align16", "no_dd_clear": "NoDDClr", "no_dd_check": "NoDDChk", "eot": "EOT", "acc_write": "AccWrEnable"}

# -- Mesa's assembler -----------------------------------------------------------------------------------------------------

PREDICATE = r"(?:\(([+-])f(\d)(?:\.(\d))?[^)]*\)\s+)?"
STATEMENT = re.compile(PREDICATE + r"(?:math(?:\.sat)?\s+)?([a-z0-9]+)(\S*?)\((\d+)\)\s+(.*?)\{([^}]*)\}", re.DOTALL)
MESA = re.compile(r"(?<![\w.])([-~]?)(\(abs\))?g(\d+)(?:\.(\d+))?(?:<([\d,]+)>)?(?:\.[xyzwr]+)?(?:<([\d,]+)>)?([A-Z]+)")


def statements(path: Path) -> list[re.Match[str]]:
    text = re.sub(r"/\*.*?\*/|//.*", "", path.read_text(), flags=re.DOTALL)
    return list(STATEMENT.finditer(text))


def mesa_pairs(gen: float) -> Iterator[tuple[Instruction, re.Match[str]]]:
    for path in sorted(set((ASM / FOLDERS[gen]).glob("*.asm")) - {ASM / FOLDERS[gen] / "nop.asm"}):  # a nop has nothing to say
        words = [bytes.fromhex(line) for line in path.with_suffix(".expected").read_text().splitlines() if line.strip()]
        found = statements(path)
        assert len(found) == len(words), path
        yield from ((decode(int.from_bytes(word, "little"), gen), each) for word, each in zip(words, found, strict=True))


def name_of(inst: Instruction) -> str:
    function = opcodes.math_function(inst.function, inst.gen) if inst.opcode == "math" else None
    return function.name if function else inst.opcode


def as_mesa(operand: Operand) -> tuple[str, str, str, str, str]:
    """Modifiers, number, sub-register in elements, type."""
    sub = operand.sub // types.size(operand.type)
    return "~" * operand.negate, "(abs)" * operand.absolute, str(operand.number), str(sub), operand.type.upper()


@needs_shared("oracles/asm")
@pytest.mark.parametrize("gen", FOLDERS)
def test_what_mesa_assembles(gen: float) -> None:
    count = 0
    for item, found in mesa_pairs(gen):
        sign, flag, flag_sub, opcode, suffix, size, operands, options = found.groups()
        assert (name_of(item), item.exec_size) == (opcode, int(size)), found[0]
        assert bool(item.predicate) == bool(sign) and item.predicate_invert == (sign == "-"), found[0]
        assert item.saturate == (".sat" in suffix or "math.sat" in found[0]), found[0]
        if sign:
            assert (item.flag, item.flag_sub) == (int(flag), int(flag_sub or 0)), found[0]
        said = re.split(r"[\s,]+", options)
        for name, option in OPTIONS.items():
            assert getattr(item, name) == (option in said), found[0]
        assert item.no_mask == ("WE_all" in said or "nomask" in said), found[0]
        if item.form in WITH_IMPLIED_TYPES or "g[" in operands:
            continue
        registers = [other for other in (item.dst, *item.sources) if other and other.file == "grf"]
        wanted = [("~" * bool(m[1]), m[2] or "", m[3], m[4] or "0", m[7]) for m in MESA.finditer(operands)]
        assert [as_mesa(other) for other in registers] == wanted, found[0]
        count += 1
    assert count > 150


# -- IGA's listings ---------------------------------------------------------------------------------------------------------

LISTED = re.compile(r"/\* \[\w+\] +([0-9A-F`]+) \*/ +(?:\([^)]*\) +)?([a-z0-9]+)\S*(?: \((\d+)\|M\d+\))? +(.*)")
REGISTER = re.compile(r"(?<![\w.])r(\d+)\.(\w+)(?:<([^>]*)>)?:(\w+)")


def listed(path: Path) -> Iterator[tuple[str, Instruction, re.Match[str]]]:
    for line in path.read_text().splitlines():
        found = LISTED.match(line)
        if found:
            digits = found[1].replace("`", "")
            word = int(digits, 16) if len(digits) == 32 else expand(int(digits, 16), GPUS[path.parent.name])
            assert word is not None, line
            yield line, decode(word, GPUS[path.parent.name]), found


def as_listed(operand: Operand, of: Instruction) -> tuple[str, str, str, str]:
    """Number, sub-register or extended accumulator, region, type; regions written for align16 are not ours."""
    extended = "nomme" if operand.special == 8 else f"mme{operand.special}"
    sub = str(operand.sub // types.size(operand.type)) if operand.special is None else extended
    if of.form == "three_source" or operand.special is not None:
        region = ""
    elif operand is of.dst or of.form == "three_source_align1" and operand is of.sources[2]:
        region = f"{operand.horizontal}"
    elif of.form == "three_source_align1":
        region = f"{operand.vertical};{operand.horizontal}"
    else:
        region = f"{operand.vertical};{operand.width},{operand.horizontal}"
    return str(operand.number), sub, region, operand.type


@needs_shared("kernels")
@pytest.mark.parametrize("gpu", GPUS)
def test_listings_name_the_same_registers(gpu: str) -> None:
    """Opcode, execution size, and number, sub-register, region and type of every direct general register."""
    count = 0
    for path in sorted(KERNELS.glob(f"*/{gpu}/*.asm")):
        for line, item, found in listed(path):
            assert item.opcode == found[2], line
            assert found[3] is None or item.exec_size == int(found[3]), line
            said = found[4].partition("{")[0]
            if item.form in WITH_IMPLIED_TYPES or "[" in said:
                continue
            operands = [as_listed(other, item) for other in (item.dst, *item.sources) if other and other.file == "grf"]
            wanted = [(m[1], m[2], m[3] or "" if item.form != "three_source" else "", m[4]) for m in REGISTER.finditer(said)]
            assert operands == wanted, line
            count += 1
    assert count > 10000
