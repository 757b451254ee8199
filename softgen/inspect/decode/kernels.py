"""Kernels of a trace: the distinct pieces of code that its state points to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from softgen.errors import GpuFault
from softgen.eu.encoding import program
from softgen.inspect.decode.decoding import Decoder
from softgen.inspect.decode.indirect_state import IndirectKernel
from softgen.memory.space import Space
from softgen.trace.work import WorkTrace


@dataclass
class KernelSnapshot:
    """A kernel as it was in memory when a command pointed to it."""

    address: int
    code: bytes
    ended: bool  # its last instruction ends the thread
    stages: list[str] = field(default_factory=list)
    problem: str = ""


def kernels(trace: WorkTrace, step: Callable[[], None] = lambda: None) -> list[KernelSnapshot]:
    """All kernels, in the order of the commands. `step` is called for every command, for progress."""
    gen = trace.device.generation.number
    found: dict[tuple[bytes, int], KernelSnapshot] = {}
    for work, items in Decoder(trace).work():
        for item in items:
            step()
            if isinstance(item.what, IndirectKernel):
                snapshot = read(work.space, item.what, gen)
                kept = found.setdefault((snapshot.code, 0 if snapshot.code else snapshot.address), snapshot)
                if item.what.stage not in kept.stages:
                    kept.stages.append(item.what.stage)
    return list(found.values())


def read(space: Space, kernel: IndirectKernel, gen: float) -> KernelSnapshot:
    """The kernel's code: the mapped bytes up to its end."""
    problem, code, ended = kernel.problem, b"", False
    try:
        code = space.read(kernel.address, space.extent(kernel.address, program.LONGEST))
    except GpuFault as fault:
        problem = problem or str(fault)
    if not code:
        return KernelSnapshot(kernel.address, b"", False, problem=problem or f"nothing is mapped at {kernel.address:#x}")
    end, ended = program.kernel_end(code, gen)
    return KernelSnapshot(kernel.address, code[:end], ended, problem=problem or ("" if end else "there is no instruction at its start"))
