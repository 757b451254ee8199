"""Patch threads: what the state of HS or DS means to the payloads and dispatches of its threads (patch_header.c).

Reads   3DSTATE_HS 3DSTATE_DS 3DSTATE_URB_HS 3DSTATE_URB_DS 3DSTATE_CONSTANT_HS 3DSTATE_CONSTANT_DS 3DSTATE_BINDING_TABLE_POINTERS_HS
        3DSTATE_BINDING_TABLE_POINTERS_DS 3DSTATE_SAMPLER_STATE_POINTERS_HS 3DSTATE_SAMPLER_STATE_POINTERS_DS
Writes  PatchHeader
"""

from __future__ import annotations

from softgen.bits import catalogue
from softgen.bits.layout import Layout
from softgen.bits.units import GRF_BYTES
from softgen.shared_functions.texture_tables import texture_tables
from softgen.shared_functions.urb.memory import ROW, UrbMemory
from softgen.threads.dispatch import UNITS, ThreadDispatch
from softgen.threads.payload import LoopPayload, WrittenMasks, check_length
from softgen.three_d.shader_stage import CHANNELS, payload_header, stage_fields, stage_tables, thread_mask
from softgen.three_d.state.state import DrawState
from softgen.three_d.state.unit_state import unit_state
from softgen.three_d.tessellation.tessellation_h import HEADER_DWORDS, PATCH_BATCH, PatchHeader


def byte_of(page: Layout, name: str) -> int:
    """Where a payload or an entry has a field, or a group of them."""
    found = next((group.start for group in page.groups if group.name == name), None)
    return (page.field(name).low if found is None else found) // 8


class PatchThreads:
    """The threads of one stage. `page` is that of their payload."""

    def __init__(self, state: DrawState, stage: str, page: str) -> None:
        self.stage, self.unit, self.page = stage, unit_state(state, stage), catalogue.layout(page, state.gen)
        self.thread_mask = thread_mask(state.gen, page)
        self.entry_bytes = (int(state.command(f"3DSTATE_URB_{stage}").urb_entry_allocation_size) + 1) * ROW
        self.start = int(self.unit.dispatch_grf_start_register_for_urb_data) * GRF_BYTES
        self.tables = texture_tables(state.latched)
        self.fields = {**stage_fields(state.gen, self.unit, stage), **stage_tables(state, stage)}
        self.common = payload_header(state.gen, page, self.fields)
        self._dispatched: tuple[tuple[object, ...], ThreadDispatch] | None = None

    @property
    def most_threads(self) -> int:
        """Threads that run at the same time, on one host thread: each has scratch space of its own."""
        scratch = self.fields["scratch"]
        return max(min(PATCH_BATCH, scratch.threads), 1) if scratch is not None else PATCH_BATCH

    def header(self, constants: tuple[int, int]) -> PatchHeader:
        """What payloads have in common; `constants`: host address and size."""
        (address, size), scratch = constants, self.fields["scratch"]
        return PatchHeader(
            constants=address, constant_offset=self.start, constant_bytes=size, data_offset=self.start + size,
            scratch_step=scratch.size if scratch is not None else 0, thread_mask=self.thread_mask, header=self.common[:HEADER_DWORDS],
        )  # fmt: skip

    def dispatch(self, urb: UrbMemory, threads: int, fixed: int, end: int) -> ThreadDispatch:
        """The record of threads: `threads` at the same time, with payloads of a fixed part and of data up to `end` (bytes)."""
        key = urb, threads, fixed, end
        if self._dispatched is None or self._dispatched[0] != key:
            registers = -(-max(fixed, end) // GRF_BYTES)
            check_length(registers, self.stage)
            made = ThreadDispatch(simd=CHANNELS, threads=threads, groups=0, payload=LoopPayload(registers), masks=WrittenMasks(),
                                  units=(*UNITS, "urb"), unit_states=(("urb", urb), *self.tables), **self.fields)  # fmt: skip
            self._dispatched = key, made
        return self._dispatched[1]
