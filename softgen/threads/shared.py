"""The part of a dispatch that its workers share: the program, the engine, and bindings for compiled code."""

from __future__ import annotations

from softgen.eu.engine import Engine, Function
from softgen.eu.isa.instruction import Operand
from softgen.eu.isa.rules import rules
from softgen.shared_functions import message
from softgen.shared_functions.texture import textured
from softgen.threads import places
from softgen.threads.affine import affine_rows
from softgen.threads.bindings import BindingCache
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.interpreted import interpreted
from softgen.threads.programs import DispatchProgram


class SharedDispatch:
    """Raises Unsupported, with the reason, where compiled code cannot reach the memory."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, program: DispatchProgram, engine: Engine,
                 bindings: BindingCache | None = None) -> None:  # fmt: skip
        self.dispatch, self.program, self.engine, self.space = dispatch, program, engine, context.space
        self.gen, self.rules = context.generation.number, rules(context.generation.number)
        self.general, self.table = context.bases.get("general", 0), context.space.table
        self.bound, self.warn = (bindings or BindingCache()).find(context, dispatch), context.warn
        self.surfaces, self.samplers = self.bound.surfaces, self.bound.samplers
        self.surfaces.tell = self._outside
        self.rows, self.full = affine_rows(dispatch), dispatch.full

    def function(self, control: int, entry: int | None = None) -> Function:
        """Code for threads whose cr0.0 is `control`, its surfaces resolved; `entry` is the ip of a thread that resumes.
        In the system routine the interpreter executes every instruction."""
        if entry is not None and not self.program.inside(entry):
            return interpreted()
        found = self.engine.function(self.program, control, self.dispatch.simd, self.full, entry, self.rows)
        for index in found.indices - self.bound.known:
            self.bound.resolve(index)
        return found

    def learn(self, ip: int) -> bool:
        """Resolves the surface of the message at an ip; True if compiled code can now execute the message."""
        inst = self.program.line(ip).instruction
        if inst.descriptor is None or isinstance(inst.descriptor, Operand):
            return False
        found = message.identify(inst.sfid, inst.descriptor, self.gen)
        if found is not None and (asked := textured(inst.sfid, inst.descriptor, self.gen)):
            return self.bound.resolve_image(asked, int(found.values.binding_table_index))
        index = getattr(found.values, "binding_table_index", None) if found is not None else None
        return index is not None and index not in self.bound.known and self.bound.resolve(int(index))

    def _outside(self, sender: object, index: int, what: str) -> None:
        """Reports an access outside a buffer, once for each surface."""
        self.bound.report_outside(index)
        self.warn(places.accessed(self.program, sender, what))
