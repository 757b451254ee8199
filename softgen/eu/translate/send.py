"""Messages of a kernel that is one function: the shared function's own lane program, on the kernel's registers."""

from __future__ import annotations

from softgen.errors import GpuFault, Unsupported
from softgen.eu.environment import CompiledEnvironment
from softgen.eu.isa.instruction import Instruction
from softgen.eu.semantics.send import execute_message, has_lane_program
from softgen.eu.translate.state import Translated
from softgen.lanes.value import Region


class Environment(CompiledEnvironment):
    """Also remembers which surfaces a kernel names, so that they can be found before it starts."""

    def __init__(self, state: Translated) -> None:
        super().__init__(state.m, state.gen, str(state.ip), lambda good: state.escape(~good))
        self.indices, self.part = state.indices, state.count  # type: ignore[method-assign]

    def bound(self, index: int) -> Region:
        self.indices.add(index)
        return super().bound(index)


def send(state: Translated, one: Instruction, here: bool) -> None:
    """`here`: whether the shared function is part of the code; otherwise the reference asks it."""
    if not here or not has_lane_program(one):
        raise Unsupported("this message has no translation")
    try:
        execute_message(state, one, Environment(state))
    except GpuFault as fault:
        raise Unsupported(str(fault)) from None  # it happens when the message is sent, not now
