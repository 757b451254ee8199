"""Programs in memory: kernels, and the system routine that their exceptions lead to."""

from __future__ import annotations

from softgen.errors import GpuFault
from softgen.eu.encoding.program import LONGEST
from softgen.eu.interpreter import DecodedInstruction, KernelProgram
from softgen.threads.dispatch import DispatchContext, ThreadDispatch

MAX_PROGRAMS = 256


class DispatchProgram(KernelProgram):
    """A kernel together with the system routine, which is read when a thread first gets there."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, address: int, code: bytes) -> None:
        super().__init__(context.generation.number, code, dispatch.kernel, f"kernel {address:#x}")
        self._context, self._routine_start = context, dispatch.system_routine
        self._routine: KernelProgram | None = None

    def inside(self, ip: int) -> bool:
        """Whether an ip is in the kernel's bytes; only the interpreter executes code elsewhere."""
        return 0 <= ip - self.start < len(self.code)

    def line(self, ip: int) -> DecodedInstruction:
        routine = self.routine(ip)
        return super().line(ip) if routine is None else routine.line(ip)

    def routine(self, ip: int) -> KernelProgram | None:
        """The system routine, if an ip can only be there."""
        if self.inside(ip) or self._routine_start is None or ip < self._routine_start:
            return None
        if self._routine is None:
            address, code = code_at(self._context, self._routine_start)
            self._routine = KernelProgram(self.gen, code, self._routine_start, f"system routine {address:#x}")
        return self._routine

    def current(self, context: DispatchContext, code: bytes) -> bool:
        """Whether the program is still what memory holds."""
        self._context = context
        if self._routine is not None and self._routine.code != self._routine_code():
            self._routine = None
        return self.code == code

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
    """Programs by address: the same bytes at the same address are the same DispatchProgram, so engines compile them once."""

    def __init__(self) -> None:
        self._programs: dict[tuple[float, int, int, int | None], DispatchProgram] = {}

    def load(self, context: DispatchContext, dispatch: ThreadDispatch) -> DispatchProgram:
        address, code = code_at(context, dispatch.kernel)
        key = context.generation.number, dispatch.kernel, address, dispatch.system_routine
        found = self._programs.get(key)
        if found is None or not found.current(context, code):
            if len(self._programs) >= MAX_PROGRAMS:
                self._programs.clear()
            found = self._programs[key] = DispatchProgram(context, dispatch, address, code)
        return found
