"""Rules of the manual for front-end commands. A broken rule is reported; the command is executed nevertheless.

Reads   MEDIA_CURBE_LOAD MEDIA_INTERFACE_DESCRIPTOR_LOAD MEDIA_VFE_STATE
Writes  texts of warnings
"""

from __future__ import annotations

from collections.abc import Iterator

from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.media.front_end import FrontEnd

MAX_DESCRIPTORS = 64
DESCRIPTOR = 32  # bytes


def front_end(command: Record, urb_bytes: int) -> Iterator[str]:
    """MEDIA_VFE_STATE, on a device that has at most so much URB."""
    stack = command.stack_size if "stack_size" in command._fields else 0
    if stack > command.per_thread_scratch_space:  # BDW 23828-23830
        yield f"a stack of size {stack} is part of the scratch space, whose size is {command.per_thread_scratch_space}"
    entries = command.number_of_urb_entries * command.urb_entry_allocation_size + command.curbe_allocation_size + MAX_DESCRIPTORS
    if entries * GRF_BYTES > urb_bytes:  # BDW 23934-23946
        yield f"entries of the URB, constants and {MAX_DESCRIPTORS} descriptors take {entries * GRF_BYTES} bytes of the URB's {urb_bytes}"


def constants(front: FrontEnd, command: Record, alignment: int) -> Iterator[str]:
    """MEDIA_CURBE_LOAD (BDW 22582-22611)."""
    if command.curbe_data_start_address % alignment:
        yield f"constants at {command.curbe_data_start_address:#x} should begin at a multiple of {alignment}"
    allocated = front.state.curbe_allocation_size * GRF_BYTES if front.state else 0
    if command.curbe_total_data_length > allocated:
        yield f"{command.curbe_total_data_length} bytes of constants, {allocated} are allocated for them"


def descriptors(front: FrontEnd, command: Record, alignment: int) -> list[str]:
    """MEDIA_INTERFACE_DESCRIPTOR_LOAD."""
    return descriptor_load(front, command.interface_descriptor_total_length, command.interface_descriptor_data_start_address, alignment)


def descriptor_load(front: FrontEnd, length: int, start: int, alignment: int) -> list[str]:
    """A load of interface descriptors (BDW 22619-22694)."""
    broken = list[str]()
    if length % DESCRIPTOR or not 0 < length <= MAX_DESCRIPTORS * DESCRIPTOR:
        broken.append(f"{length} bytes are not 1 to {MAX_DESCRIPTORS} interface descriptors of {DESCRIPTOR}")
    if start % alignment:
        broken.append(f"interface descriptors at {start:#x} should begin at a multiple of {alignment}")
    if front.used:
        broken.append("descriptors have been used since the last MEDIA_STATE_FLUSH, and may still be kept")
    return broken
