"""What earlier commands said that later ones need: base addresses, the last state of each unit, registers loaded.

Reads   STATE_BASE_ADDRESS MI_LOAD_REGISTER_IMM

A hardware context outlives a submission; so does this.
"""

from __future__ import annotations

from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.streamer.parser import Command

# base -> (address, its modify enable) in STATE_BASE_ADDRESS
BASES = {
    "general": ("general_state_base_address", "general_state_base_address_modify_enable"),
    "surface": ("surface_state_base_address", "surface_state_base_address_modify_enable"),
    "dynamic": ("dynamic_state_base_address", "dynamic_state_base_address_modify_enable"),
    "instruction": ("instruction_base_address", "instruction_base_address_modify_enable"),
    "indirect": ("indirect_object_base_address", "indirect_object_base_address_modify_enable"),
    "bindless": ("bindless_surface_state_base_address", "bindless_surface_state_base_address_modify_enable"),
}


class Context:
    def __init__(self) -> None:
        self.bases: dict[str, int] = {}
        self.latched: dict[str, Record] = {}
        self.registers: dict[int, int] = {}

    def note(self, command: Command) -> None:
        """A command has passed."""
        if command.layout is None:
            return
        match command.layout.name:
            case "STATE_BASE_ADDRESS":
                self._base_address(command.record)
            case "MI_LOAD_REGISTER_IMM":
                for pair in command.record.entry:
                    self.registers[pair.register_offset] = pair.data_dword
            case _:
                self.latch(command.layout, command.record)

    def latch(self, layout: Layout, values: Record) -> None:
        self.latched[layout.name] = values

    def _base_address(self, state: Record) -> None:
        for base, (address, enable) in BASES.items():
            if address in state._fields and getattr(state, enable):
                self.bases[base] = getattr(state, address)

    def base(self, name: str) -> int | None:
        """A base address; None when this context was never told it."""
        return self.bases.get(name) if name else 0

    def copy(self) -> Context:
        other = Context()
        other.bases, other.latched, other.registers = dict(self.bases), dict(self.latched), dict(self.registers)
        return other
