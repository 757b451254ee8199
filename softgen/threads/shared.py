"""The part of a dispatch that its workers share: the program, the engine, and bindings for compiled code.

In:  a ThreadDispatch. Out: Surface and Picture entries, each resolved when a kernel first uses it.
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits import catalogue
from softgen.errors import SoftgenError
from softgen.eu.engine import Engine, Function
from softgen.eu.interpreter import Program
from softgen.eu.isa.instruction import Operand
from softgen.eu.isa.rules import rules
from softgen.eu.textured import Pictures
from softgen.eu.thread.block import KNOWN, TOLD, Bindings, Picture, Surface, offset
from softgen.memory import arena
from softgen.shared_functions import message
from softgen.shared_functions.texture import Asked, textured
from softgen.threads import places, units
from softgen.threads.affine import affine_rows
from softgen.threads.dispatch import DispatchContext, ThreadDispatch

SURFACE, PICTURE = ctypes.sizeof(Surface), ctypes.sizeof(Picture)


@cache
def _special(gen: float) -> frozenset[int]:
    """Binding table indices that do not name an entry."""
    return frozenset(catalogue.enumeration(message.SURFACES, gen))


class BindingTableEntries:
    """Binding entries of one dispatch after another: those that the last one filled are cleared before the next begins."""

    def __init__(self) -> None:
        self.bindings, self.filled = Bindings(), set[int]()
        self.surfaces, self.pictures = (ctypes.addressof(self.bindings) + offset(Bindings, name) for name in ("surfaces", "pictures"))

    def clear(self, samplers: int) -> Bindings:
        for index in self.filled:
            ctypes.memset(self.surfaces + index * SURFACE, 0, SURFACE)
            ctypes.memset(self.pictures + index * PICTURE, 0, PICTURE)
        self.filled.clear()
        self.bindings.samplers = samplers
        return self.bindings


class SharedDispatch:
    """Raises Unsupported, with the reason, where compiled code cannot reach the memory."""

    def __init__(self, context: DispatchContext, dispatch: ThreadDispatch, program: Program, engine: Engine,
                 entries: BindingTableEntries | None = None) -> None:  # fmt: skip
        self.dispatch, self.program, self.engine, self.space = dispatch, program, engine, context.space
        self.gen, self.rules = context.generation.number, rules(context.generation.number)
        self.surfaces, self.samplers = units.surfaces(context, dispatch), units.samplers(context, dispatch)
        self.surfaces.tell, self.warn = self._outside, context.warn
        self.general = context.bases.get("general", 0)
        self.table = context.space.table
        entries = entries or BindingTableEntries()
        self.bindings, self.filled = entries.clear(dispatch.samplers), entries.filled
        self.entries = self.bindings.surfaces
        self.pictures = Pictures(self.bindings, context.generation.address_bits)
        self.known: set[int] = set()
        self.rows, self.full = affine_rows(dispatch), dispatch.full

    def function(self, control: int, entry: int | None = None) -> Function:
        """Code for threads whose cr0.0 is `control`, its surfaces resolved; `entry` is the ip of a thread that resumes."""
        found = self.engine.function(self.program, control, self.dispatch.simd, self.full, entry, self.rows)
        for index in found.indices - self.known:
            self.resolve(index)
        return found

    def learn(self, ip: int) -> bool:
        """Resolves the surface of the message at an ip; True if compiled code can now execute the message."""
        inst = self.program.line(ip).instruction
        if inst.descriptor is None or isinstance(inst.descriptor, Operand):
            return False
        found = message.identify(inst.sfid, inst.descriptor, self.gen)
        if found is not None and (asked := textured(inst.sfid, inst.descriptor, self.gen)):
            return self._texels(asked, int(found.values.binding_table_index))
        index = getattr(found.values, "binding_table_index", None) if found is not None else None
        return index is not None and index not in self.known and self.resolve(int(index))

    def _texels(self, asked: Asked, index: int) -> bool:
        """Fills in the function that executes a message on the texels of a surface."""
        if index in _special(self.gen):
            return False
        self.filled.add(index)
        try:
            how = self.samplers.sampling(asked.sampler) if asked.samples else None
            return self.pictures.fill(index, asked.what, asked.lanes, asked.sampler, self.surfaces.picture(index, False), how)
        except SoftgenError:
            return False

    def resolve(self, index: int) -> bool:
        """Fills the entry of a buffer or a null surface. Errors in surface state are left to the reference engine, which reports them."""
        self.known.add(index)
        self.filled.add(index)
        if index in _special(self.gen):
            return False
        try:
            found = self.surfaces.plain(index)
        except SoftgenError:
            return False
        return self._fill(self.entries[index], found)

    def _outside(self, sender: object, index: int, what: str) -> None:
        """Reports an access outside a buffer, once for each surface."""
        self.filled.add(index)
        self.entries[index].known = TOLD
        self.warn(places.accessed(self.program, sender, what))

    def _fill(self, entry: Surface, found: tuple[int, int] | None) -> bool:
        entry.known = KNOWN
        if found is None:
            entry.known, entry.size, entry.host = TOLD, 0, arena.void()
            return True
        base, size = found
        base &= (1 << self.space.bits) - 1
        at = self.space.in_one_piece(base, size)
        if at is None:
            return False
        entry.address, entry.host = base, at
        entry.size = size  # last: other workers may be reading the entry
        return True
