"""The registers that root threads start with: r0, constants of the CURBE, then the data of the object (G45 11140-11860).

Reads   INTERFACE_DESCRIPTOR_DATA MEDIA_ROOT_THREAD_HEADER VFE_STATE CONSTANT_BUFFER
Writes  QueuedThread records
"""

from __future__ import annotations

import struct
from functools import lru_cache

from softgen.bits import catalogue
from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.command import CommandStreamer, ConstantUrbEntry
from softgen.errors import DecodeError
from softgen.media.front_end import slot_field
from softgen.media.queued import Interface, QueuedThread
from softgen.media.vfe import checks
from softgen.media.vfe.state import FrontEndState, descriptor, descriptor_pointer
from softgen.threads.dispatch import control_register
from softgen.threads.payload import SlotField

HEADER = "MEDIA_ROOT_THREAD_HEADER"
EXCEPTIONS = {"illegal_opcode_exception_enable": "illegal_opcode_enable", "software_exception_enable": "software_enable",
              "mask_stack_exception_enable": "stack_overflow_enable"}  # fmt: skip


def interface(gen: float, held: Record) -> Interface:
    """The part of an interface descriptor that a dispatch depends on."""
    exceptions = {enable: int(getattr(held, name)) for name, enable in EXCEPTIONS.items()}
    control = control_register(gen, bool(held.single_program_flow), bool(held.floating_point_mode), 0, **exceptions)
    return Interface(int(held.kernel_start_pointer), control, int(held.binding_table_pointer), int(held.sampler_state_pointer))


def root_thread(cs: CommandStreamer, state: FrontEndState, index: int, entry: int, count: int, data: bytes) -> QueuedThread:
    """A root thread of an interface descriptor: `entry` of the URB and the debug counter `count` are in its header."""
    if index not in state.descriptors:
        checks.register_blocks(cs, index, descriptor(cs, state, index))
    held = descriptor(cs, state, index)
    handle = state.first_row + entry * (state.entry_bytes // 64) if state.children else 0
    header = _header(cs.generation.number, handle, descriptor_pointer(state, index), held.sampler_state_pointer,
                     int(state.vfe.per_thread_scratch_space), held.binding_table_pointer, count)  # fmt: skip
    return QueuedThread(interface(cs.generation.number, held), header, constants(cs, held), data, handle, children=state.children)


@lru_cache(256)
def _header(gen: float, handle: int, pointer: int, samplers: int, scratch: int, table: int, count: int) -> bytes:
    dwords = catalogue.layout(HEADER, gen).pack(urb_handle=handle & 0xFFFF, interface_descriptor_pointer=pointer,
                                                sampler_state_pointer=samplers, per_thread_scratch_space=scratch,
                                                binding_table_pointer=table, thread_count=count)  # fmt: skip
    return struct.pack("<8I", *dwords)


def constants(cs: CommandStreamer, held: Record) -> bytes:
    """Registers of the constant URB entry that an interface descriptor asks for, after r0 (G45 8528, 9557-9563)."""
    length = int(held.constant_urb_entry_read_length) * GRF_BYTES
    if not length:
        return b""
    first, entry = int(held.constant_urb_entry_read_offset) * GRF_BYTES, cs.state(ConstantUrbEntry).data
    if entry is None:
        raise DecodeError(f"constant_urb_entry_read_length {length // GRF_BYTES}, but no CONSTANT_BUFFER is valid")
    found = entry[first : first + length]
    if len(found) < length:
        raise DecodeError(f"{length} bytes of constants from {first} on are asked for, the constant URB entry has {len(entry)}")
    return found


@lru_cache(16)
def slots(gen: float, scratch_base: int, scratch_bytes: int) -> tuple[SlotField, ...]:
    """The header's fields that tell live root threads apart."""
    return (slot_field(gen, HEADER, "fftid", 0, 1), slot_field(gen, HEADER, "scratch_space_pointer", scratch_base, scratch_bytes))


def registers(data: bytes) -> bytes:
    """Data padded with zeros to a whole register."""
    return data.ljust(-(-len(data) // GRF_BYTES) * GRF_BYTES, b"\0")
