"""What earlier commands said that later ones need: base addresses, the last state of each unit, registers loaded.

Reads   STATE_BASE_ADDRESS MI_LOAD_REGISTER_IMM PIPELINE_SELECT

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

PIPELINES = ("3d", "media", "gpgpu")  # PIPELINE_SELECT.pipeline_selection


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
            case "PIPELINE_SELECT":
                self.latch(command.layout, self._selected(command.layout, command.record))
            case _:
                self.latch(command.layout, command.record)

    def _selected(self, layout: Layout, now: Record) -> Record:
        """The pipeline and what goes with it; where the command has mask bits, fields they leave out stay as they were."""
        if "mask_bits" not in now._fields:
            return now
        before = self.latched.get(layout.name) or type(now)([0] * len(now._fields))
        counts = {one.name: one.mask & now.mask_bits for one in layout.fields}
        return type(now)(getattr(now if counts[name] else before, name) for name in now._fields)

    def pipeline(self) -> str:
        """The selected pipeline's name; "" when none was selected yet."""
        selected = self.latched.get("PIPELINE_SELECT")
        return PIPELINES[selected.pipeline_selection] if selected is not None and selected.pipeline_selection < len(PIPELINES) else ""

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
