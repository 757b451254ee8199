"""Programs in memory: kernels, and the system routine that their exceptions lead to."""

from __future__ import annotations

import ctypes
import threading
from functools import cache

from softgen.errors import GpuFault
from softgen.eu.encoding.program import LONGEST, instructions, opcode_numbers
from softgen.eu.interpreter import DecodedInstruction, KernelProgram
from softgen.eu.isa import labels, opcodes
from softgen.threads.dispatch import DispatchContext, ThreadDispatch

MAX_PROGRAMS = 256  # addresses of programs that are kept,
MOST_AT_ADDRESS = 4  # and programs of each
WAIT, RETURN, CALLS, JUMPS = "wait", "ret", frozenset({"call", "calla"}), ("jmpi", "brd", "brc")


@cache
def _waiting(gen: float) -> dict[int, str]:
    """Opcodes with which threads may wait, or go where only a register says, by number."""
    found = (opcodes.opcode(name, gen) for name in (WAIT, RETURN, *CALLS, *JUMPS))
    return {opcode.number: opcode.name for opcode in found if opcode is not None}


class MemoryRange(ctypes.Structure):
    """Bytes of an address space, and what was there (struct memory_range of memory/graphics_memory.h)."""

    _fields_ = [("address", ctypes.c_uint64), ("size", ctypes.c_uint64), ("data", ctypes.c_char_p)]


class DispatchProgram(KernelProgram):
    """A kernel together with the system routine, which is read when a thread first gets there."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, address: int, code: bytes) -> None:
        self.address, self.range = address, MemoryRange(address, len(code), code)
        super().__init__(context.generation.number, code, dispatch.kernel, f"kernel {address:#x}")
        self._context, self._routine_start = context, dispatch.system_routine
        self._user = threading.get_ident()  # the host thread that has used it last
        self._refreshed = False  # compared with memory, as far as it reaches
        self.read_routine: KernelProgram | None = None  # the system routine, once it has been read

    # What of memory the program depends on, for comparisons in C: `range` follows code and reach.

    @property
    def code(self) -> bytes:
        return self._code

    @code.setter
    def code(self, code: bytes) -> None:
        self._code = self.range.data = code

    @property
    def reach(self) -> int:
        return self._reach

    @reach.setter
    def reach(self, reach: int) -> None:
        self._reach = reach
        self.range.size = reach or len(self._code)

    @property
    def waits(self) -> bool:
        """Whether threads may wait for a notification, in the code that is known or where a register leads them; yes if none is known."""
        known, wanted = self.code[: self.reach], _waiting(self.gen)
        found = [(wanted[number], offset) for offset, number in opcode_numbers(known, self.gen) if number in wanted]
        names = {name for name, _ in found}
        if not known or WAIT not in wanted.values() or WAIT in names or RETURN in names and names.isdisjoint(CALLS):
            return True
        return any(next(instructions(known, self.gen, offset))[2].jip is None for name, offset in found if name != RETURN)

    def inside(self, ip: int) -> bool:
        """Whether an ip is in the kernel's bytes; only the interpreter executes code elsewhere."""
        return 0 <= ip - self.start < len(self.code)

    def line(self, ip: int) -> DecodedInstruction:
        if ip in self.lines:
            return self.lines[ip]
        routine = self.routine(ip)
        if routine is not None:
            return routine.line(ip)
        offset = ip - self.start
        if self._refreshed and 0 <= offset < len(self.code):
            self._refresh(offset)
        found = super().line(ip)
        self.reach = max(self.reach, offset + found.size)
        return found

    def _refresh(self, offset: int) -> None:
        """Reads an instruction that is reached for the first time: only what had been reached was compared with memory since."""
        size = min(labels.NATIVE, len(self.code) - offset)
        now = self._context.space.read(self.address + offset, size)
        if now != self.code[offset : offset + size]:
            self.code = self.code[:offset] + now + self.code[offset + size :]

    def routine(self, ip: int) -> KernelProgram | None:
        """The system routine, if an ip can only be there."""
        if self.inside(ip) or self._routine_start is None or ip < self._routine_start:
            return None
        if self.read_routine is None:
            address, code = code_at(self._context, self._routine_start)
            self.read_routine = KernelProgram(self.gen, code, self._routine_start, f"system routine {address:#x}")
        return self.read_routine

    def used_in(self, context: DispatchContext) -> None:
        """Memory was compared with it: instructions that are reached for the first time are read from there again."""
        self._context, self._user, self._refreshed = context, threading.get_ident(), True

    def current(self, context: DispatchContext) -> bool:
        """Whether memory still holds the program, as far as it has been decoded or translated. Another host thread that runs it in another
        address space may be decoding more of it: then all bytes have to be the same in both."""
        elsewhere = context.space is not self._context.space and self._user != threading.get_ident()
        size = len(self.code) if elsewhere else self.reach or len(self.code)  # all of it also while one is about to decode it
        try:
            if context.space.read(self.address, size) != self.code[:size]:
                return False
        except GpuFault:
            return False
        self.used_in(context)
        if self.read_routine is not None and self.read_routine.code != self._routine_code():
            self.read_routine = None
        return True

    def _routine_code(self) -> bytes:
        """The bytes of the system routine now; none where it is no longer mapped, which matters only to a thread that gets there."""
        assert self._routine_start is not None
        try:
            return code_at(self._context, self._routine_start)[1]
        except GpuFault:
            return b""


def code_at(context: DispatchContext, offset: int) -> tuple[int, bytes]:
    """The address of a program, and the bytes there now: as many as a program may have, since no state says where it ends."""
    address = context.address("instruction", offset)
    size = context.space.extent(address, LONGEST)
    if not size:
        raise GpuFault(address, "instruction fetch", context.space.name)
    return address, context.space.read(address, size)


def load(context: DispatchContext, dispatch: ThreadDispatch) -> DispatchProgram:
    return DispatchProgram(context, dispatch, *code_at(context, dispatch.kernel))


class ProgramCache:
    """Programs by address: the same bytes at the same address are the same DispatchProgram, so engines compile them once. Address spaces
    that are in use at the same time may have different ones there."""

    def __init__(self) -> None:
        self._programs: dict[tuple[float, int, int, int | None], tuple[DispatchProgram, ...]] = {}

    def load(self, context: DispatchContext, dispatch: ThreadDispatch) -> DispatchProgram:
        key = context.generation.number, dispatch.kernel, context.address("instruction", dispatch.kernel), dispatch.system_routine
        held = self._programs.get(key, ())
        found = next((program for program in held if program.current(context)), None)
        if found is None:
            if len(self._programs) >= MAX_PROGRAMS:
                self._programs.clear()
            found = load(context, dispatch)
            self._programs[key] = (found, *held)[:MOST_AT_ADDRESS]
        return found

    def __contains__(self, program: object) -> bool:
        return any(program is held for programs in list(self._programs.values()) for held in programs)
