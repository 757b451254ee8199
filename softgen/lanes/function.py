"""Functions that lane programs call by address, with vectors as arguments and results.

    BLEND = FunctionType((Lanes(f32, 16), Lanes(bool_, 16)), (Lanes(f32, 16),))
    blend = LaneFunction(program, BLEND, "blend")       # compiled on first use of its address, or taken from the cache
    m.call(BLEND, record.load("blend"), colour, mask)

The address is a number that records hold. Compiled code calls it; the NumPy machine runs the lane program that is registered for it.
Vectors travel in registers, masks as integers: all modules share one set of target features.
"""

from __future__ import annotations

from functools import cached_property

from softgen.cache import Cache
from softgen.lanes.compile import jit
from softgen.lanes.function_type import PROGRAMS, CallTarget, FunctionType, LaneProgram, as_tuple
from softgen.lanes.llvm.machine import LlvmMachine
from softgen.lanes.llvm.text import LlvmModule


class LaneFunction:
    """A lane program with an address. It must outlive the memory that holds the address."""

    def __init__(self, program: LaneProgram, type: FunctionType, name: str, cache: Cache | None = None) -> None:
        self.program, self.type, self.name, self._cache = program, type, name, cache

    @cached_property
    def _code(self) -> jit.LoadedCode:
        return jit.load(self.ir(), (self.name,), self._cache)

    @cached_property
    def address(self) -> int:
        found = self._code.address(self.name)
        PROGRAMS[found] = CallTarget(self.program, self.type, self.name)
        return found

    def ir(self, target: jit.Target | None = None) -> str:
        m = LlvmMachine(LlvmModule(target))
        results = as_tuple(self.program(m, *m.calls.parameters(self.type.parameters)))
        self.type.check("results", self.type.results, results)
        m.calls.return_lanes(results)
        m.calls.define_lanes(self.name, self.type.parameters, self.type.results)
        return m.ir.module.text()
