"""Computed jumps: returns of subroutines that are called without call and ret (public: intel-vaapi-driver's MPEG-2 kernels of Gen4.5).

    mov(1)  g125<1>UD  ip<0,1,0>UD               the address of this instruction
    jmpi    subroutine
    ...                                          the return address: 0x20 after the mov
    add(1)  ip<1>UD  g125<0,1,0>UD  0x20UD

Such an add may lead to as many bytes after each mov from ip of the program. It may lead elsewhere: the interpreter executes it then.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from softgen.eu.interpreter import DecodedInstruction
from softgen.eu.isa.instruction import Instruction
from softgen.eu.thread.regions import ip_jump, register_location


def saves_ip(inst: Instruction) -> bool:
    """Whether an instruction is a mov of ip to a register."""
    if inst.opcode != "mov" or inst.predicate or inst.dst is None or inst.dst.file != "grf":
        return False
    (source,) = inst.sources
    return source.file == "arf" and not source.indirect and register_location(source, inst.gen) == ("ip", 0)


class ComputedJumps:
    """The computed jumps of a program, found while its code is reached."""

    def __init__(self) -> None:
        self.saved: set[int] = set()  # addresses of instructions that read ip
        self.lines: dict[int, DecodedInstruction] = {}  # jumps, by address

    def note(self, line: DecodedInstruction) -> bool:
        """Takes note of an instruction; whether it is a jump."""
        if saves_ip(line.instruction):
            self.saved.add(line.ip)
        jump = ip_jump(line.instruction)
        if jump is None or not jump.addend:
            return False
        self.lines[line.ip] = line
        return True

    def targets(self, line: DecodedInstruction) -> set[int]:
        jump = ip_jump(line.instruction)
        assert jump is not None
        return {ip + jump.addend for ip in self.saved}

    def unreached(self, seen: AbstractSet[int]) -> list[int]:
        """Addresses that the jumps lead to. Without any the next instruction: the interpreter executes the jump, and may not take it."""
        found = set[int]()
        for ip, line in list(self.lines.items()):
            if not self.saved:
                del self.lines[ip]
                found.add(ip + line.size)
            else:
                found |= self.targets(line)
        return sorted(found - seen)
