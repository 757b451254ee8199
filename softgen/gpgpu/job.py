"""A dispatch as its workers share it: the kernel, the engine, and the surfaces that compiled code can reach.

Reads   GPGPU_THREAD_HEADER
Writes  Surface and Picture entries, each when a kernel first asks for it
"""

from __future__ import annotations

import ctypes
from functools import cache

from softgen.bits import catalogue
from softgen.errors import SoftgenError
from softgen.eu.engine import Engine, Function
from softgen.eu.interpreter import KernelProgram
from softgen.eu.isa.instruction import Operand
from softgen.eu.isa.rules import rules
from softgen.eu.textured import Pictures
from softgen.eu.thread.block import KNOWN, TOLD, Bindings, Picture, Surface, offset
from softgen.gpgpu import group
from softgen.gpgpu.rows import rows
from softgen.gpgpu.walker import Plan, Surroundings
from softgen.memory import arena
from softgen.shared_functions import message
from softgen.shared_functions.dataport import Surfaces
from softgen.shared_functions.sampler import Samplers
from softgen.shared_functions.texture import Asked, textured

SURFACE, PICTURE = ctypes.sizeof(Surface), ctypes.sizeof(Picture)


@cache
def _special(gen: float) -> frozenset[int]:
    """Binding table indices that mean something else than an entry."""
    return frozenset(catalogue.enumeration(message.SURFACES, gen))


class Entries:
    """Room for the surfaces of one dispatch after another: what the last one filled is emptied before the next begins."""

    def __init__(self) -> None:
        self.bindings, self.filled = Bindings(), set[int]()
        self.surfaces, self.pictures = (ctypes.addressof(self.bindings) + offset(Bindings, one) for one in ("surfaces", "pictures"))

    def empty(self, samplers: int) -> Bindings:
        for index in self.filled:
            ctypes.memset(self.surfaces + index * SURFACE, 0, SURFACE)
            ctypes.memset(self.pictures + index * PICTURE, 0, PICTURE)
        self.filled.clear()
        self.bindings.samplers = samplers
        return self.bindings


class Job:
    """Raises Unsupported, with the reason, where compiled code cannot reach the memory."""

    def __init__(self, around: Surroundings, plan: Plan, program: KernelProgram, engine: Engine, entries: Entries | None = None) -> None:
        self.plan, self.program, self.engine, self.space = plan, program, engine, around.space
        self.gen, self.rules = around.generation.number, rules(around.generation.number)
        self.header = around.layout("GPGPU_THREAD_HEADER")
        self.surfaces = Surfaces(around.generation, around.space, around.bases, plan.binding_table)
        self.samplers = Samplers(around.generation, around.space, around.bases, plan.sampler)
        self.surfaces.tell, self.tell = self._outside, around.tell
        self.general = around.bases.get("general", 0)
        self.table = around.space.table
        entries = entries or Entries()
        self.bindings, self.filled = entries.empty(plan.sampler), entries.filled
        self.entries = self.bindings.surfaces
        self.pictures = Pictures(self.bindings, around.generation.address_bits)
        self.known: set[int] = set()
        self.rows = rows(plan)
        self.full = not ~(plan.right_mask & plan.bottom_mask) & (1 << plan.simd) - 1

    def function(self, control: int, entry: int | None = None) -> Function:
        """Code for threads whose cr0.0 is `control`, with the surfaces it names; `entry` is where one of them goes on."""
        found = self.engine.function(self.program, control, self.plan.simd, self.full, entry, self.rows)
        for index in found.indices - self.known:
            self.resolve(index)
        return found

    def learn(self, ip: int) -> bool:
        """Looks at the surface of the message at an address; True if compiled code can now go on by itself."""
        one = self.program.line(ip).instruction
        if one.descriptor is None or isinstance(one.descriptor, Operand):
            return False
        found = message.identify(one.sfid, one.descriptor, self.gen)
        if found is not None and (asked := textured(one.sfid, one.descriptor, self.gen)):
            return self._texels(asked, int(found.values.binding_table_index))
        index = getattr(found.values, "binding_table_index", None) if found is not None else None
        return index is not None and index not in self.known and self.resolve(int(index))

    def _texels(self, asked: Asked, index: int) -> bool:
        """Looks for a function that does what a message wants done to the texels of a surface."""
        if index in _special(self.gen):
            return False
        self.filled.add(index)
        try:
            how = self.samplers.sampling(asked.sampler) if asked.samples else None
            return self.pictures.fill(index, asked.what, asked.lanes, asked.sampler, self.surfaces.picture(index, False), how)
        except SoftgenError:
            return False

    def resolve(self, index: int) -> bool:
        """Fills the entry of a plain buffer, or of a null surface. What is wrong with any other, the reference will say."""
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
        """An access outside a buffer: told once."""
        self.filled.add(index)
        self.entries[index].known = TOLD
        self.tell(group.accessed(self.program, sender, what))

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
        entry.size = size  # last: others may be looking, and what is inside is there
        return True


def most_at_once(around: Surroundings, plan: Plan) -> int:
    """Groups that may run at the same time: scratch space is there for so many threads (BDW 22582-22611)."""
    front = around.front.state
    if front is None or not plan.scratch_bytes:
        return 1 << 16
    return max((int(front.maximum_number_of_threads) + 1) // plan.threads, 1)
