"""Binding table entries become targets, each looked up on first use and kept for a dispatch.

Reads   BINDING_TABLE_STATE RENDER_SURFACE_STATE
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.generation import Generation
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.errors import GpuFault, Unsupported
from softgen.memory.space import Space
from softgen.shared_functions.dataport.target import Memory, Nothing, Target

RAW = "RAW"


class Surfaces:
    """The surfaces of one dispatch: a binding table, counted from the surface base."""

    def __init__(self, generation: Generation, space: Space, bases: Mapping[str, int], binding_table: int) -> None:
        self.gen, self.space, self.bases, self.table = generation.number, space, bases, binding_table
        self._targets: dict[int, Target] = {}

    def bound(self, index: int) -> Target:
        """The buffer of a binding table index."""
        if index not in self._targets:
            entry, _ = self._read("BINDING_TABLE_STATE", self._base("surface") + self.table + 4 * index, f"binding table entry {index}")
            address = self._base("surface") + entry.surface_state_pointer
            self._targets[index] = self._buffer(address, f"surface {index}")
        return self._targets[index]

    def _buffer(self, address: int, what: str) -> Target:
        state, layout = self._read("RENDER_SURFACE_STATE", address, f"state of {what}")
        kind, form = value_name(layout, state, "surface_type"), value_name(layout, state, "surface_format")
        if kind == "null":
            return Nothing()
        if kind != "buffer" or form != RAW:
            raise Unsupported(f"{what} (state at {address:#x}) is a {kind} surface of format {form}: not yet simulated for this message")
        return Memory(self.space, state.surface_base_address, state.number_of_entries)

    def _read(self, name: str, address: int, what: str) -> tuple[Record, Layout]:
        layout = catalogue.layout(name, self.gen)
        address &= (1 << self.space.bits) - 1
        try:
            dwords = array("I", self.space.read(address, 4 * layout.dwords))
        except GpuFault as fault:
            raise GpuFault(fault.address, fault.access, fault.space, fault.by, f"{fault.why}; {what} should be there") from None
        return layout.raw(dwords), layout

    def _base(self, name: str) -> int:
        return self.bases.get(name, 0)
