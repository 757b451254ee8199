"""Controls in IGA's dialect: predicate, mnemonic, execution size and condition before the operands, options behind them."""

from __future__ import annotations

from typing import Any

from softgen.eu.isa import opcodes
from softgen.eu.isa.instruction import Instruction
from softgen.eu.text.iga.names import names_of
from softgen.eu.text.iga.operand import LIMIT
from softgen.eu.text.iga.plan import Unsaid

PREDICATE, MNEMONIC, FLAG = 8, 25, 11  # columns


class Controls:
    """One generation's controls."""

    def __init__(self, gen: float) -> None:
        self.gen, self.names = gen, names_of(gen)
        self.sets = self.names.sets
        self.heads: dict[tuple[Any, ...], tuple[str, str, Unsaid]] = {}

    def head(self, one: Instruction, shown: int) -> tuple[str, str, Unsaid]:
        key = (one.opcode, shown, one.align16, one.no_mask, one.no_dd_clear, one.no_dd_check, one.quarter, one.nibble, one.thread_control,
               one.predicate, one.predicate_invert, one.condition, one.acc_write, one.branch_control, one.breakpoint, one.flag,
               one.flag_sub, one.function, one.eot, one.compacted)  # fmt: skip
        found = self.heads.get(key)
        if found is None:
            if len(self.heads) >= LIMIT:
                self.heads.clear()
            found = self.heads[key] = self._make_head(one, shown)
        return found

    def _make_head(self, one: Instruction, shown: int) -> tuple[str, str, Unsaid]:
        mnemonic = one.opcode + self._function(one) + (".b" if one.branch_control else "")
        channel = one.quarter * 8 + one.nibble * 4
        if one.opcode not in self.sets["scalar"] or (shown, channel) != (1, 0):
            mnemonic += f" ({shown}|M{channel})"
        head = f"{self._predicate(one):<{PREDICATE - 1}} {mnemonic:<{MNEMONIC - 1}} {self._condition(one):<{FLAG - 1}} "
        options = self._options(one)
        return head, f" {{{','.join(options)}}}" if options else "", self._unsaid_controls(one)

    def _unsaid_controls(self, one: Instruction) -> Unsaid:
        unsaid: Unsaid = {}
        if one.predicate_invert and not one.predicate:
            unsaid["predicate_invert"] = False
        if (one.flag or one.flag_sub) and not (one.predicate or one.condition or self.is_macro(one)):
            unsaid |= {"flag": 0, "flag_sub": 0}
        if one.acc_write and one.form == "branch":
            unsaid["acc_write"] = False
        return unsaid

    def is_macro(self, one: Instruction) -> bool:
        if not one.function:
            return False
        found = opcodes.function(one.function, self.gen)
        return found is not None and found.macro

    def _function(self, one: Instruction) -> str:
        row = opcodes.opcode(one.opcode, self.gen)
        return f".{self.names.write['function'].get(one.function, one.function)}" if row and "function" in row.takes else ""

    def _predicate(self, one: Instruction) -> str:
        if not one.predicate:
            return "(W)" if one.no_mask else ""
        words = self.names.write["channel" if one.align16 else "predicate"]
        how = "" if one.predicate == 1 else f".{words.get(one.predicate, one.predicate)}"
        return f"({'W&' if one.no_mask else ''}{'~' if one.predicate_invert else ''}f{one.flag}.{one.flag_sub}{how})"

    def _condition(self, one: Instruction) -> str:
        if self.is_macro(one):
            return f"(eo)f{one.flag}.{one.flag_sub}"
        if not one.condition:
            return ""
        return f"({self.names.write['condition'].get(one.condition, one.condition)})f{one.flag}.{one.flag_sub}"

    def implied_align16(self, one: Instruction) -> bool:
        return one.form == "three_source" or self.is_macro(one) and one.opcode in self.sets["macro_16"]

    def _options(self, one: Instruction) -> list[str]:
        found = []
        if one.align16 != self.implied_align16(one):
            found.append("Align16" if one.align16 else "Align1")
        free = one.acc_write and one.form in self.sets["free"]
        thread = self.names.write["thread"].get(one.thread_control, f"Thread{one.thread_control}") if one.thread_control else ""
        named = ("Atomic", "NoPreempt")  # the others stand behind
        given = {"AccWrEn": one.acc_write and not free and one.form != "branch", "Atomic": thread == "Atomic",
                 "Breakpoint": one.breakpoint, "Compacted": one.compacted, "EOT": one.eot,
                 "NoDDChk": one.no_dd_check, "NoDDClr": one.no_dd_clear, "NoPreempt": thread == "NoPreempt",
                 "NoSrcDepSet": free}  # fmt: skip
        found += [name for name, here in given.items() if here]
        return found if thread in ("", *named) else [*found, thread]
