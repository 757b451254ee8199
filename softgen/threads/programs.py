"""Programs in memory: kernels, and the system routine that their exceptions lead to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache
from operator import itemgetter
from typing import Any

from softgen.errors import GpuFault
from softgen.eu.encoding.program import LONGEST, instructions, opcode_numbers
from softgen.eu.interpreter import SENDS, DecodedInstruction, KernelProgram
from softgen.eu.isa import labels, opcodes
from softgen.eu.isa.rules import rules
from softgen.eu.semantics.send import may_be_atomic
from softgen.memory.graphics_memory_h import MemoryRange as MemoryRange
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.statistics import BEHIND

MAX_PROGRAMS = 256  # addresses of programs that are kept,
MOST_AT_ADDRESS = 4  # programs of each,
MOST_BYTES = 32 << 20  # and memory that all of them take,
COUNT_BYTES = 1 << 20  # which is counted again when so much has been added
WINDOW = 1 << 15  # bytes of code that are read at first, and then twice as many when more are reached: most kernels are shorter
LINE_BYTES = 256  # memory of a decoded instruction, about
WAIT, RETURN, CALLS, JUMPS = "wait", "ret", frozenset({"call", "calla"}), ("jmpi", "brd", "brc")


@cache
def _waiting(gen: float) -> dict[int, str]:
    """Opcodes with which threads may wait, or go where only a register says, by number."""
    found = (opcodes.opcode(name, gen) for name in (WAIT, RETURN, *CALLS, *JUMPS))
    return {opcode.number: opcode.name for opcode in found if opcode is not None}


@cache
def _branching(gen: float) -> dict[int, str]:
    """Opcodes that lead to another instruction than the next, by number."""
    named = (RETURN, *CALLS, *JUMPS)
    return {number: found.name for number in opcodes.NUMBERS
            if (found := opcodes.numbered(number, gen)) is not None and ("jip" in found.shape or found.name in named)}  # fmt: skip


@cache
def _sending(gen: float) -> frozenset[int]:
    """Opcodes that send messages, by number."""
    found = (opcodes.opcode(name, gen) for name in SENDS)
    return frozenset(opcode.number for opcode in found if opcode is not None)


class CacheUsage:
    """Memory that the programs of a cache take, about: dropped ones that still run count too, until it is counted again."""

    def __init__(self) -> None:
        self.bytes = 0


class FarCode(KernelProgram):
    """Code of another buffer, which threads got to by writing ip."""

    def line(self, ip: int) -> DecodedInstruction:
        found = super().line(ip)
        self.reach = max(self.reach, ip - self.start + found.size)
        return found


class DispatchProgram(KernelProgram):
    """A kernel together with the system routine, which is read when a thread first gets there. No state says where a kernel ends: its code
    is read as far as it is reached, in steps; `size` bytes can be."""

    used = 0  # when, as its cache counts

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, address: int, code: bytes, size: int | None = None,
                 usage: CacheUsage | None = None) -> None:  # fmt: skip
        self.address, self.range, self.size, self.usage = address, MemoryRange(address, len(code), code), size or len(code), usage
        super().__init__(context.generation.number, code, dispatch.kernel, f"kernel {address:#x}")
        self._context, self._routine_start = context, dispatch.system_routine
        self._user = threading.get_ident()  # the host thread that has used it last
        self._reading = threading.Lock()  # held while more of the code is read
        self._refreshed = False  # compared with memory, as far as it reaches
        self.read_routine: KernelProgram | None = None  # the system routine, once it has been read
        self.others: list[FarCode] = []  # code elsewhere that threads got to by writing ip
        self._contends = -1, False  # for a reach
        self.answers: dict[Any, Any] = {}  # for threads that leave compiled code (workers/answers.py)

    # What of memory the program depends on, for comparisons in C: `range` follows code and reach.

    @property
    def code(self) -> bytes:
        return self._code

    @code.setter
    def code(self, code: bytes) -> None:
        self._code = self.range.data = code

    def _grow(self, size: int) -> None:
        """Reads more of the code, `size` bytes at least."""
        with self._reading:
            have, wanted = len(self._code), min(max(size, 2 * len(self._code)), self.size)
            if have < min(size, self.size):
                self.code += self._read_more(have, wanted - have)
                self.range.size = self._reach or len(self._code)
                self._count(len(self._code) - have)

    def _read_more(self, have: int, size: int) -> bytes:
        """The code behind `have` bytes. What follows a kernel may be of others, and unmapped since it was loaded: then it has no more."""
        space, start = self._context.space, self.address + have
        try:
            return space.read(start, size)
        except GpuFault:
            found = space.extent(start, size)
            self.size = have + found
            return space.read(start, found)

    def _count(self, size: int) -> None:
        if self.usage is not None:
            self.usage.bytes += size

    @property
    def memory_bytes(self) -> int:
        """Memory that it takes, about."""
        routine = self.read_routine
        own = len(self._code) + LINE_BYTES * len(self.lines)
        more = self.others if routine is None else [routine, *self.others]
        return own + sum(len(other.code) + LINE_BYTES * len(other.lines) for other in more)

    def beginning(self, size: int) -> bytes:
        """What is not kept is read for this call alone."""
        have, size = len(self._code), min(size, self.size)
        if size <= have:
            return self._code[:size]
        try:
            return self._code + self._context.space.read(self.address + have, size - have)
        except GpuFault:
            return self._code

    @property
    def reach(self) -> int:
        return self._reach

    @reach.setter
    def reach(self, reach: int) -> None:
        if reach + BEHIND > len(self._code) < self.size:
            self._grow(reach + BEHIND)
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

    @property
    def loops(self) -> bool:
        """Whether threads may come to an instruction again, in the code that is known or where a register leads; yes if none is known."""
        known, wanted = self.code[: self.reach], _branching(self.gen)
        for offset, number in opcode_numbers(known, self.gen):
            name = wanted.get(number)
            if name == RETURN or name in CALLS:
                return True
            if name is not None:
                inst = next(instructions(known, self.gen, offset))[2]
                if inst.jip is None or inst.jip <= 0 or (inst.uip or 0) < 0:
                    return True
        return not known

    @property
    def contends(self) -> bool:
        """Whether host threads may contend for memory that threads change by atomic operations, in the code that is known."""
        if self._contends[0] != self.reach:
            known, sends = self.code[: self.reach], _sending(self.gen)
            offsets = (offset for offset, number in opcode_numbers(known, self.gen) if number in sends)
            self._contends = self.reach, any(may_be_atomic(next(instructions(known, self.gen, offset))[2]) for offset in offsets)
        return self._contends[1]

    def inside(self, ip: int) -> bool:
        """Whether an ip is in the kernel's bytes; only the interpreter executes code elsewhere."""
        return 0 <= ip - self.start < self.size

    def line(self, ip: int) -> DecodedInstruction:
        if ip in self.lines:
            return self.lines[ip]
        routine = self.routine(ip) or self.elsewhere(ip)
        if routine is not None:
            return routine.line(ip)
        offset = ip - self.start
        if len(self.code) - labels.NATIVE < offset < self.size:
            self._grow(offset + labels.NATIVE)
        if self._refreshed and 0 <= offset < len(self.code):
            self._refresh(offset)
        found = super().line(ip)
        self._count(LINE_BYTES)
        self.reach = max(self.reach, offset + found.size)
        return found

    def _refresh(self, offset: int) -> None:
        """Reads an instruction that is reached for the first time: only what had been reached was compared with memory since."""
        with self._reading:
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
            self._count(len(code))
        return self.read_routine

    def elsewhere(self, ip: int) -> KernelProgram | None:
        """Code outside of the kernel's bytes, read when a thread first gets there by writing ip: kernels call what other buffers hold
        (public: intel-vaapi-driver, mpeg2 kernels). None inside, or where nothing is mapped."""
        if self.inside(ip) or not rules(self.gen).far_code:
            return None
        found = next((other for other in self.others if 0 <= ip - other.start < len(other.code)), None)
        if found is None:
            try:
                address, size = code_range(self._context, ip)
                code = self._context.space.read(address, min(size, WINDOW))
            except GpuFault:
                return None
            found = FarCode(self.gen, code, ip, f"code {address:#x}")
            self.others.append(found)
            self._count(len(code))
        return found

    def _others_current(self, context: DispatchContext, whole: bool) -> bool:
        """Whether memory still holds the code elsewhere, as far as it was reached, or the `whole` of it."""
        for other in self.others:
            now = context.space.read(context.address("instruction", other.start), len(other.code))
            size = len(now) if whole else other.reach
            if now[:size] != other.code[:size]:
                return False
            other.code = now
        return True

    def used_in(self, context: DispatchContext) -> None:
        """Memory was compared with it: instructions that are reached for the first time are read from there again."""
        self._context, self._user, self._refreshed = context, threading.get_ident(), True

    def current(self, context: DispatchContext) -> bool:
        """Whether memory still holds the program, as far as it has been decoded or translated. Another host thread that runs it in another
        address space may be decoding more of it: then all bytes have to be the same in both."""
        elsewhere = context.space is not self._context.space and self._user != threading.get_ident()
        try:
            if elsewhere and len(self.code) < self.size:
                self._grow(self.size)
            size = len(self.code) if elsewhere else self.reach or len(self.code)  # all of it also while one is about to decode it
            if context.space.read(self.address, size) != self.code[:size] or not self._others_current(context, elsewhere):
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
    address, size = code_range(context, offset)
    return address, context.space.read(address, size)


def code_range(context: DispatchContext, offset: int) -> tuple[int, int]:
    """The address of a program, and the size it may have."""
    address = context.address("instruction", offset)
    size = context.space.extent(address, LONGEST)
    if not size:
        raise GpuFault(address, "instruction fetch", context.space.name)
    return address, size


def load(context: DispatchContext, dispatch: ThreadDispatch, usage: CacheUsage | None = None) -> DispatchProgram:
    address, size = code_range(context, dispatch.kernel)
    return DispatchProgram(context, dispatch, address, context.space.read(address, min(size, WINDOW)), size, usage)


class ProgramCache:
    """Programs by address: the same bytes at the same address are the same DispatchProgram, so engines compile them once. Address spaces
    that are in use at the same time may have different ones there. The least recently used ones are dropped where they take too much."""

    def __init__(self, dropped: Callable[[], None] = lambda: None, charge: Callable[[int], None] = lambda size: None) -> None:
        """`dropped` is called when programs were, `charge` with bytes of memory that are taken, or negative, given back."""
        self.dropped, self.charge = dropped, charge
        self._programs: dict[tuple[float, int, int, int | None], tuple[DispatchProgram, ...]] = {}
        self.usage = CacheUsage()
        self._charged = self._count_at = 0  # bytes
        self._loads = 0  # of programs that were not there

    def load(self, context: DispatchContext, dispatch: ThreadDispatch) -> DispatchProgram:
        key = context.generation.number, dispatch.kernel, context.address("instruction", dispatch.kernel), dispatch.system_routine
        held = self._programs.get(key, ())
        found = next((program for program in held if program.current(context)), None)
        if found is None:
            self._loads += 1
            found = load(context, dispatch, self.usage)
            self._programs[key] = (found, *held)[:MOST_AT_ADDRESS]
            self.usage.bytes += found.memory_bytes
        found.used = self._loads
        if self.usage.bytes > self._count_at or len(self._programs) > MAX_PROGRAMS:
            self._count(found)
        return found

    def _count(self, needed: DispatchProgram) -> None:
        """Counts the memory of all programs, and drops those that were not used for longest where it is too much."""
        kept = [(program.used, key, program) for key, held in list(self._programs.items()) for program in held]
        total, addresses = sum(program.memory_bytes for _, _, program in kept), len(self._programs)
        if total > MOST_BYTES or addresses > MAX_PROGRAMS:
            for _, key, program in sorted(kept, key=itemgetter(0)):
                if total <= MOST_BYTES * 7 // 8 and addresses <= MAX_PROGRAMS * 7 // 8:
                    break  # for a while
                if program is not needed:
                    total -= program.memory_bytes
                    addresses -= self._drop(key, program)
            self.dropped()
        self.usage.bytes, self._count_at = total, max(min(total + COUNT_BYTES, MOST_BYTES), total)
        self._charge(total)

    def _charge(self, total: int) -> None:
        size, self._charged = total - self._charged, total
        if size:
            self.charge(size)

    def clear(self) -> None:
        self._programs.clear()
        self.usage.bytes = self._count_at = 0
        self._charge(0)

    def _drop(self, key: tuple[float, int, int, int | None], program: DispatchProgram) -> bool:
        """Whether it was the last one of its address."""
        left = tuple(held for held in self._programs.get(key, ()) if held is not program)
        if left:
            self._programs[key] = left
        else:
            self._programs.pop(key, None)
        return not left

    def __iter__(self) -> Iterator[DispatchProgram]:
        return iter([program for programs in list(self._programs.values()) for program in programs])

    def __contains__(self, program: object) -> bool:
        return any(program is held for programs in list(self._programs.values()) for held in programs)
