"""Descriptors in address registers: the bits of them that are known before a kernel runs.

Compilers build such a descriptor from an immediate and an index, right before the send: `or a0.0 r12.0 0x0C84A000` (public: Mesa
brw_eu_emit.c, brw_send_indirect_message). The immediate is what the message is; surface and sampler index come from the register. Compiled
code is specialised for the immediate and compares the other bits with it when the message is sent, so that nothing here has to be certain.
"""

from __future__ import annotations

from dataclasses import replace

from softgen.bits.units import DWORD
from softgen.errors import SoftgenError
from softgen.eu.isa import extended_descriptor
from softgen.eu.isa.instruction import Instruction, Operand
from softgen.eu.thread.regions import register_location

ADDRESS = "a"
BUILDING = frozenset({"or", "add", "mov"})  # opcodes that put an immediate into a descriptor
DWORDS = ("ud", "d")


def known_bits(descriptor: int | Operand | None) -> int | None:
    """A descriptor as far as it is known: the immediate, or what a register was built from; None where nothing is."""
    if isinstance(descriptor, Operand):
        return descriptor.immediate or None
    return descriptor


class AddressImmediates:
    """The immediates that address registers were built from, along the instructions of a kernel in the order of their addresses."""

    def __init__(self) -> None:
        self._held: dict[int, int] = {}  # by byte offset in a0

    def after(self, inst: Instruction) -> Instruction:
        """The instruction with known bits in its descriptors; what it writes counts for the following ones."""
        if isinstance(inst.descriptor, Operand) or isinstance(inst.extended, Operand):
            return self._described(inst)
        dst = inst.dst
        if dst is not None and dst.file == "arf" and not dst.indirect:
            self._write(inst, dst)
        return inst

    def _described(self, inst: Instruction) -> Instruction:
        descriptor, extended = self._operand(inst.descriptor, inst.gen), self._operand(inst.extended, inst.gen)
        sfid, bits = inst.sfid, known_bits(extended)
        if isinstance(extended, Operand) and not sfid and bits is not None:  # it names the function
            sfid = bits & extended_descriptor.FUNCTION_ID
        return replace(inst, descriptor=descriptor, extended=extended, sfid=sfid)

    def _operand(self, descriptor: int | Operand | None, gen: float) -> int | Operand | None:
        if not isinstance(descriptor, Operand):
            return descriptor
        return replace(descriptor, immediate=self._held.get(register_location(descriptor, gen)[1], 0))

    def _write(self, inst: Instruction, dst: Operand) -> None:
        try:
            name, start = register_location(dst, inst.gen)
        except SoftgenError:
            return
        if name != ADDRESS:
            return
        for place in [place for place in self._held if start - DWORD < place < start + DWORD * inst.exec_size]:
            del self._held[place]
        immediates = [operand.immediate for operand in inst.sources if operand.file == "imm"]
        if inst.opcode in BUILDING and dst.type in DWORDS and inst.exec_size == 1 and len(immediates) == 1:
            self._held[start] = immediates[0] & 0xFFFFFFFF
