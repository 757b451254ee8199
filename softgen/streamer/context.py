"""The state of a hardware context: what earlier commands set and later ones use.

Reads   STATE_BASE_ADDRESS MI_LOAD_REGISTER_IMM PIPELINE_SELECT

It outlives a submission, as the hardware context does.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.command import Pipeline
from softgen.streamer.parser import Command

StateT = TypeVar("StateT")

# base -> (address, its modify enable) in STATE_BASE_ADDRESS
BASES = {
    "general": ("general_state_base_address", "general_state_base_address_modify_enable"),
    "surface": ("surface_state_base_address", "surface_state_base_address_modify_enable"),
    "dynamic": ("dynamic_state_base_address", "dynamic_state_base_address_modify_enable"),
    "instruction": ("instruction_base_address", "instruction_base_address_modify_enable"),
    "indirect": ("indirect_object_base_address", "indirect_object_base_address_modify_enable"),
    "bindless": ("bindless_surface_state_base_address", "bindless_surface_state_base_address_modify_enable"),
}

PIPELINE_NAMES = ("3d", "media", "gpgpu")  # PIPELINE_SELECT.pipeline_selection


class LatchedState:
    """State commands as they were last executed, base addresses, and registers that commands loaded."""

    def __init__(self) -> None:
        self.bases: dict[str, int] = {}
        self.latched: dict[str, Record] = {}
        self.registers: dict[int, int] = {}

    def note(self, command: Command) -> None:
        """Latch a command."""
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
        """PIPELINE_SELECT merged: where the command has mask bits, fields that they leave out keep their values."""
        if "mask_bits" not in now._fields:
            return now
        before = self.latched.get(layout.name) or type(now)([0] * len(now._fields))
        counts = {item.name: item.mask & now.mask_bits for item in layout.fields}
        return type(now)(getattr(now if counts[name] else before, name) for name in now._fields)

    def pipeline(self) -> str:
        """The selected pipeline's name; "" when none was selected yet."""
        selected = self.latched.get("PIPELINE_SELECT")
        return PIPELINE_NAMES[selected.pipeline_selection] if selected is not None and selected.pipeline_selection < 3 else ""

    def latch(self, layout: Layout, values: Record) -> None:
        self.latched[layout.name] = values

    def _base_address(self, state: Record) -> None:
        for base, (address, enable) in BASES.items():
            if address in state._fields and getattr(state, enable):
                self.bases[base] = getattr(state, address)

    def base(self, name: str) -> int | None:
        """A base address; None when no command has set it."""
        return self.bases.get(name) if name else 0

    def copy(self) -> LatchedState:
        other = LatchedState()
        other.bases, other.latched, other.registers = dict(self.bases), dict(self.latched), dict(self.registers)
        return other


@dataclass
class SavedContext:
    """What a hardware context keeps on an engine from one submission to the next."""

    latched: LatchedState = field(default_factory=LatchedState)
    pipelines: dict[type[Any], Any] = field(default_factory=dict)  # each pipeline's part, by the class its new_state() makes
    unflushed: bool = False  # work was started that no stalling flush has followed
    registers: dict[int, int] = field(default_factory=dict)  # of contexts that MI_SET_CONTEXT switches

    def state(self, kind: type[StateT], pipelines: Iterable[Pipeline]) -> StateT:
        """A pipeline's part, made when it is first asked for."""
        if kind not in self.pipelines:
            for pipeline in pipelines:
                made = pipeline.new_state()
                self.pipelines.setdefault(type(made), made)
        found: StateT = self.pipelines[kind]
        return found

    def reset(self) -> None:
        """Back to a new context's state."""
        self.latched, self.pipelines, self.registers = LatchedState(), {}, {}

    def copy(self) -> SavedContext:
        """A context of its own with the same state."""
        parts = {kind: copy.deepcopy(part) for kind, part in self.pipelines.items()}
        return SavedContext(self.latched.copy(), parts, self.unflushed, dict(self.registers))
