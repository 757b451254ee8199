"""Blocks of state behind the pointers of a kept record. Drivers write the same blocks at another address for each batch: what was read of
them is compared where they are now, and dwords of plans that count from there are moved along (draw_state.c).

Reads   3DSTATE_CC_STATE_POINTERS 3DSTATE_BLEND_STATE_POINTERS 3DSTATE_DEPTH_STENCIL_STATE_POINTERS 3DSTATE_VIEWPORT_STATE_POINTERS_CC
        3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP 3DSTATE_SCISSOR_STATE_POINTERS 3DSTATE_SAMPLER_STATE_POINTERS_VS
        3DSTATE_SAMPLER_STATE_POINTERS_HS 3DSTATE_SAMPLER_STATE_POINTERS_DS 3DSTATE_SAMPLER_STATE_POINTERS_GS
        3DSTATE_SAMPLER_STATE_POINTERS_PS
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import NamedTuple

from softgen.bits.units import DWORD
from softgen.memory.graphics_memory_h import MemoryRange
from softgen.threads.bindings import BoundUnits
from softgen.threads.dispatch import ThreadDispatch
from softgen.three_d.draw.draw_structures import MovedValue, StateBlock
from softgen.three_d.state.latched_state import LatchedBytes
from softgen.three_d.state.plan_cache import Notes

CC, BLEND, SAMPLERS = "3DSTATE_CC_STATE_POINTERS", "3DSTATE_BLEND_STATE_POINTERS", "3DSTATE_SAMPLER_STATE_POINTERS_"
# Commands with a pointer that counts from the dynamic state base, and its field.
POINTERS = {
    CC: "color_calc_state_pointer", BLEND: "blend_state_pointer", "3DSTATE_DEPTH_STENCIL_STATE_POINTERS": "depth_stencil_state_pointer",
    "3DSTATE_VIEWPORT_STATE_POINTERS_CC": "cc_viewport_pointer", "3DSTATE_VIEWPORT_STATE_POINTERS_SF_CLIP": "sf_clip_viewport_pointer",
    "3DSTATE_SCISSOR_STATE_POINTERS": "scissor_rect_pointer",
    **{SAMPLERS + stage: "pointer_to_sampler_state" for stage in ("VS", "HS", "DS", "GS", "PS")},
}  # fmt: skip
HEADER_CC, HEADER_SAMPLERS = 1, 3  # dwords of r0 (GRAPHICS_THREADS 2.1, 2.7)


class BlockPointer(NamedTuple):
    """A pointer that was latched: the offset of its dword, its bits, and their value when plans were made."""

    offset: int
    mask: int
    pointer: int


FIXED = BlockPointer(0, 0, 0)  # what counts from the base alone


class StateBlocks:
    """The blocks of a draw, and what has to follow them. `base`: the dynamic state base that plans were made with; `headers`: the addresses
    of r0 in plans of payloads, by stage."""

    def __init__(self, latches: LatchedBytes, notes: Notes, base: int, bound: Mapping[str, BoundUnits],
                 dispatches: Mapping[str, ThreadDispatch], headers: Mapping[str, int]) -> None:  # fmt: skip
        self._latches, self._notes, self._base, self._bound, self._dispatches = latches, notes, base, bound, dispatches
        self._kept: list[object] = []  # memory that C code points to
        self._pointers = {name: self._pointer(name) for name in POINTERS if notes.commands.get(name) is not None}
        values = {stage: bound[stage].sampler_keys() for stage in bound}
        for stage, header in headers.items():
            values[stage] = [*values.get(stage, ()), self._dword(header, HEADER_SAMPLERS)]
        self._values = {SAMPLERS + stage: held for stage, held in values.items()}
        if "PS" in headers:
            self._values[CC] = [self._dword(headers["PS"], HEADER_CC)]

    def _pointer(self, name: str) -> BlockPointer:
        field, start = self._latches.layout(name).field(POINTERS[name]), self._latches.place(name).offset
        pointer = self._latches.pointer(field, start)
        return BlockPointer(pointer.offset, pointer.mask, self._latches.latched.raw(pointer.offset, 1)[0] & pointer.mask)

    @staticmethod
    def _dword(header: int, number: int) -> tuple[int, int]:
        place = header + DWORD * number
        return place, ctypes.c_uint32.from_address(place).value

    def compared(self) -> list[StateBlock]:
        """The blocks, with all that was read of them until now."""
        self._kept.clear()
        behind = [MemoryRange(offset, len(data), data) for bound in self._bound.values()
                  for offset, data in bound.dispatch.resolved.behind.items()]  # fmt: skip
        return [*(self._block(name, pointer) for name, pointer in self._pointers.items()), self._ranges(FIXED, behind, [])]

    def _block(self, name: str, pointer: BlockPointer) -> StateBlock:
        read = {(address - self._base, size): data for (of, address, size), data in self._notes.blocks.items() if of == name}
        ranges = [MemoryRange(*place, data) for place, data in {**read, **self._read_by_units(name)}.items()]
        return self._ranges(pointer, ranges, [MovedValue(*value) for value in self._values.get(name, ())])

    def _ranges(self, pointer: BlockPointer, ranges: list[MemoryRange], values: list[MovedValue]) -> StateBlock:
        arrays = (MemoryRange * len(ranges))(*ranges), (MovedValue * len(values))(*values)
        self._kept += [arrays, ranges]
        return StateBlock(*pointer, len(ranges), len(values), 0, *(ctypes.addressof(array) for array in arrays))

    def _read_by_units(self, name: str) -> dict[tuple[int, int], bytes]:
        """By the offset from the base where it was when plans were made."""
        found: dict[tuple[int, int], bytes] = {}
        for stage, bound in self._bound.items():
            resolved = bound.dispatch.resolved
            if name == SAMPLERS + stage:
                start = self._dispatches[stage].samplers
                found |= {(start + offset, len(data)): data for offset, data in resolved.samplers.items()}
            if name == BLEND:
                found |= {(address - self._base, size): data for (address, size), data in resolved.blend.items()}
        return found

    def samplers(self, stage: str) -> int:
        """Where commands say that the samplers of a stage are: their offset."""
        return self._dispatches[stage].samplers + self._moved_by(SAMPLERS + stage)

    def blend_moved(self, base: int) -> int:
        """Bytes that the blend state has moved by since plans were made; `base`: the dynamic state base now."""
        return base - self._base + self._moved_by(BLEND)

    def _moved_by(self, name: str) -> int:
        held = self._pointers.get(name)
        return (self._latches.latched.raw(held.offset, 1)[0] & held.mask) - held.pointer if held is not None else 0
