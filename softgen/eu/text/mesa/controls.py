"""The controls of an instruction as Mesa's dialect writes them: what stands before the operands, and the options behind them."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from softgen.eu.isa import opcodes
from softgen.eu.isa.opcodes import Opcode
from softgen.eu.text.mesa.names import mesa_words


@cache
def row_of(name: str, gen: float) -> Opcode:
    row = opcodes.opcode(name, gen)
    assert row is not None, f"gen {gen:g} has no {name}"
    return row


@lru_cache(maxsize=1 << 13)
def head(gen: float, opcode: str, predicate: int, invert: bool, flag: int, flag_sub: int, saturate: bool, condition: int, function: int,
         exec_size: int, align16: bool) -> tuple[str, dict[str, Any]]:  # fmt: skip
    """Predicate, opcode, its suffixes and the execution size. A predicate or condition that has no word is left out."""
    words, row = mesa_words(gen), row_of(opcode, gen)
    changes: dict[str, Any] = {}
    mode = words.write["channel" if align16 else "predicate"]
    register, flagged, before = f"f{flag}.{flag_sub}", False, ""
    if predicate == 1 or predicate in mode:
        before, flagged = f"({'-' if invert else '+'}{register}{'.' + mode[predicate] if predicate > 1 else ''}) ", True
    elif predicate or invert:
        changes |= {"predicate": 0, "predicate_invert": False}
    after = ".sat" if saturate and row.form not in ("send", "sends") else ""
    if saturate and not after:
        changes["saturate"] = False
    if condition in words.write["condition"]:
        after += "." + words.write["condition"][condition]
        if opcode not in words.sets["quiet"] or (not flagged and (flag or flag_sub)):
            after, flagged = f"{after}.{register}", True
    elif condition:
        changes["condition"] = 0
    if "function" in row.takes:
        after += " " + words.write["function"].get(function, str(function))
        if not flagged and (flag or flag_sub):  # macros write it
            after, flagged = f"{after}.{register}", True
    if not flagged and (flag or flag_sub):
        changes |= {"flag": 0, "flag_sub": 0}
    return f"{before}{opcode}{after}({exec_size})", changes


@lru_cache(maxsize=1 << 13)
def options(gen: float, align16: bool, no_mask: bool, no_dd_clear: bool, no_dd_check: bool, quarter: int, nibble: int, exec_size: int,
            compacted: bool, thread: int, acc_write: bool, branch_control: bool, eot: bool, breakpoint: bool,
            compr4: bool) -> str:  # fmt: skip
    """What stands in braces, in the order of Mesa's listings."""
    words = mesa_words(gen)
    found = ["align16" if align16 else "align1"]
    found += [words.write["mask"][1]] * no_mask
    clear, check = ["NoDDClr"] * no_dd_clear, ["NoDDChk"] * no_dd_check
    found += [",".join(clear + check)] if clear or check else []
    if words.write["compression"]:
        found += ["compr4"] if compr4 else [word for bit, word in words.write["compression"].items() if quarter & bit]
    else:
        found += _group(quarter, nibble, exec_size)
    found += ["compacted"] * compacted
    found += [word for bit, word in words.write["thread"].items() if thread & bit]
    found += ["AccWrEnable"] * acc_write + ["BranchCtrl"] * branch_control
    found += ["EOT"] * eot + ["breakpoint"] * breakpoint
    return f"{{ {' '.join(found)} }};"


def _group(quarter: int, nibble: int, exec_size: int) -> list[str]:
    """Which channels: nibbles, quarters or halves; sixteen channels from an odd quarter on are said in quarters."""
    if exec_size < 8 or nibble:
        return [f"{quarter * 2 + nibble + 1}N"]
    if exec_size == 16 and not quarter & 1:
        return [f"{quarter // 2 + 1}H"]
    return [f"{quarter + 1}Q"] if exec_size <= 16 or quarter else []
