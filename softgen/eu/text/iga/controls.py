"""Controls in IGA's dialect: predicate, mnemonic, execution size and condition before the operands, options behind them."""

from __future__ import annotations

from typing import Any

from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.iga.names import iga_words
from softgen.eu.text.iga.operand import LIMIT
from softgen.eu.text.iga.plan import OmittedFields

PREDICATE, MNEMONIC, FLAG = 8, 25, 11  # columns


class IgaControlText:
    """One generation's controls."""

    def __init__(self, gen: float) -> None:
        self.gen, self.names = gen, iga_words(gen)
        self.sets = self.names.sets
        self.heads: dict[tuple[Any, ...], tuple[str, str, OmittedFields]] = {}

    def head(self, inst: Instruction, shown: int) -> tuple[str, str, OmittedFields]:
        key = (inst.opcode, shown, inst.align16, inst.no_mask, inst.no_dd_clear, inst.no_dd_check, inst.quarter, inst.nibble,
               inst.thread_control, inst.predicate, inst.predicate_invert, inst.condition, inst.acc_write, inst.branch_control,
               inst.breakpoint, inst.flag, inst.flag_sub, inst.function, inst.eot, inst.compacted)  # fmt: skip
        found = self.heads.get(key)
        if found is None:
            if len(self.heads) >= LIMIT:
                self.heads.clear()
            found = self.heads[key] = self._make_head(inst, shown)
        return found

    def _make_head(self, inst: Instruction, shown: int) -> tuple[str, str, OmittedFields]:
        mnemonic = inst.opcode + self._function(inst) + (".b" if inst.branch_control else "")
        channel = inst.quarter * 8 + inst.nibble * 4
        if inst.opcode not in self.sets["scalar"] or (shown, channel) != (1, 0):
            mnemonic += f" ({shown}|M{channel})"
        head = f"{self._predicate(inst):<{PREDICATE - 1}} {mnemonic:<{MNEMONIC - 1}} {self._condition(inst):<{FLAG - 1}} "
        options = self._options(inst)
        return head, f" {{{','.join(options)}}}" if options else "", self._unsaid_controls(inst)

    def _unsaid_controls(self, inst: Instruction) -> OmittedFields:
        unsaid: OmittedFields = {}
        if inst.predicate_invert and not inst.predicate:
            unsaid["predicate_invert"] = False
        if (inst.flag or inst.flag_sub) and not (inst.predicate or inst.condition or self.is_macro(inst)):
            unsaid |= {"flag": 0, "flag_sub": 0}
        if inst.acc_write and inst.form == "branch":
            unsaid["acc_write"] = False
        return unsaid

    def is_macro(self, inst: Instruction) -> bool:
        if not inst.function:
            return False
        found = opcodes.math_function(inst.function, self.gen)
        return found is not None and found.macro

    def _function(self, inst: Instruction) -> str:
        row = opcodes.opcode(inst.opcode, self.gen)
        return f".{self.names.write['function'].get(inst.function, inst.function)}" if row and "function" in row.takes else ""

    def _predicate(self, inst: Instruction) -> str:
        if not inst.predicate:
            return "(W)" if inst.no_mask else ""
        words = self.names.write["channel" if inst.align16 else "predicate"]
        how = "" if inst.predicate == 1 else f".{words.get(inst.predicate, inst.predicate)}"
        return f"({'W&' if inst.no_mask else ''}{'~' if inst.predicate_invert else ''}f{inst.flag}.{inst.flag_sub}{how})"

    def _condition(self, inst: Instruction) -> str:
        if self.is_macro(inst):
            return f"(eo)f{inst.flag}.{inst.flag_sub}"
        if not inst.condition:
            return ""
        return f"({self.names.write['condition'].get(inst.condition, inst.condition)})f{inst.flag}.{inst.flag_sub}"

    def implied_align16(self, inst: Instruction) -> bool:
        return inst.form == "three_source" or self.is_macro(inst) and inst.opcode in self.sets["macro_16"]

    def _options(self, inst: Instruction) -> list[str]:
        found = []
        if inst.align16 != self.implied_align16(inst):
            found.append("Align16" if inst.align16 else "Align1")
        free = inst.acc_write and inst.form in self.sets["free"]
        thread = self.names.write["thread"].get(inst.thread_control, f"Thread{inst.thread_control}") if inst.thread_control else ""
        named = ("Atomic", "NoPreempt")  # the others stand behind
        given = {"AccWrEn": inst.acc_write and not free and inst.form != "branch", "Atomic": thread == "Atomic",
                 "Breakpoint": inst.breakpoint, "Compacted": inst.compacted, "EOT": inst.eot,
                 "NoDDChk": inst.no_dd_check, "NoDDClr": inst.no_dd_clear, "NoPreempt": thread == "NoPreempt",
                 "NoSrcDepSet": free}  # fmt: skip
        found += [name for name, here in given.items() if here]
        return found if thread in ("", *named) else [*found, thread]
