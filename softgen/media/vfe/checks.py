"""Rules of the manual for the object commands of Gen4.5. A broken rule is reported; what cannot be executed is an error.

Reads   MEDIA_OBJECT MEDIA_OBJECT_EX MEDIA_OBJECT_PRT VFE_STATE STATE_BASE_ADDRESS
Writes  texts of warnings
"""

from __future__ import annotations

from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.command import CommandStreamer
from softgen.errors import DecodeError
from softgen.media.front_end import optional
from softgen.media.vfe.state import FrontEndState, VideoFrontEnd

OBJECT, EXTENDED, PERSISTENT = "MEDIA_OBJECT", "MEDIA_OBJECT_EX", "MEDIA_OBJECT_PRT"
# Modes that each command can be used in (G45 9645-9647, 9878-9880, 11117).
MODES = {OBJECT: ("generic", "is", "vld"), EXTENDED: ("generic", "avc-it", "avc-mc", "vc1-it"),
         PERSISTENT: ("generic", "is", "avc-it", "avc-mc", "vc1-it")}  # fmt: skip
# What length and address of indirect data must be multiples of (G45 9678-9690, 9904-9917).
ALIGNMENT = {"generic": 4, "is": 4, "avc-it": 4, "avc-mc": 4, "vc1-it": 4, "vld": 1}
LENGTH_ALIGNMENT = {**ALIGNMENT, "generic": 32, "avc-mc": 32}
MOST_REGISTERS = 63  # of inline and indirect data in generic mode


def object_command(cs: CommandStreamer, front: VideoFrontEnd, state: FrontEndState, name: str, cmd: Record) -> None:
    """An object command in the mode that VFE_STATE has."""
    if state.mode not in MODES[name]:
        raise DecodeError(f"{name} cannot be used in mode {state.mode}")
    if not front.commands:
        _state(cs, state)
    other = {OBJECT: EXTENDED, EXTENDED: OBJECT}.get(name)
    if other in front.commands:
        cs.warn(f"{name} after {other} without a change of state: they cannot be used together (G45 11097-11099)")
    if name == PERSISTENT and front.persistent:
        cs.warn("a second persistent root thread without an MI_FLUSH: there can be one at a time (G45 9283-9286)")
    front.persistent |= name == PERSISTENT
    if not len(cmd.inline_data):
        cs.warn(f"{name} must have inline data (G45 9652)")
    _data(cs, state, name, cmd)


def _state(cs: CommandStreamer, state: FrontEndState) -> None:
    """VFE_STATE, when its first object comes."""
    entries = int(state.vfe.number_of_urb_entries)
    if not 1 <= entries <= 64:
        cs.warn(f"VFE_STATE: number_of_urb_entries {entries} must be 1 to 64 (G45 9345-9347)")
    if state.vfe.urb_entry_allocation_size > 255:
        cs.warn(f"VFE_STATE: entries of {state.vfe.urb_entry_allocation_size + 1} rows; there may be 256 at most (G45 9342-9344)")
    if state.vfe.per_thread_scratch_space > 11:
        cs.warn(f"VFE_STATE: per_thread_scratch_space {state.vfe.per_thread_scratch_space} must be 0 to 11 (G45 9338)")
    if state.extension is not None and any(state.scoreboard):
        cs.warn("VFE_STATE_EX: dwords 4 to 6 have no meaning before Ironlake; they must be 0 (G45 9463-9502)")
    if state.mode == "vld" and state.children:
        cs.warn("VFE_STATE: children_present must be 0 in VLD mode (G45 9360)")
    if state.mode not in ("generic", "is") and state.vfe.debug_counter_control == 3:
        cs.warn(f"VFE_STATE: debug_counter_control 3 is reserved in mode {state.mode} (G45 9122)")


def _data(cs: CommandStreamer, state: FrontEndState, name: str, cmd: Record) -> None:
    length = optional(cmd, "indirect_data_length")
    if state.mode == "vld" and optional(cmd, "thread_synchronization"):
        cs.warn("thread_synchronization must be 0 in VLD mode (G45 9673)")
    if length:
        alignment = 4 if name == EXTENDED and state.mode == "generic" else LENGTH_ALIGNMENT[state.mode]
        if length % alignment:
            cs.warn(f"{length} bytes of indirect data are no multiple of {alignment}")
        if cmd.indirect_data_start_address % ALIGNMENT[state.mode]:
            cs.warn(f"indirect data at {cmd.indirect_data_start_address:#x} should begin at a multiple of {ALIGNMENT[state.mode]}")
    if state.mode == "generic" or name == PERSISTENT:
        found = sum(-(-size // GRF_BYTES) for size in (4 * len(cmd.inline_data), length))
        if found > MOST_REGISTERS:
            raise DecodeError(f"{found} registers of inline and indirect data; there may be {MOST_REGISTERS} at most (G45 9653-9657)")


def register_blocks(cs: CommandStreamer, index: int, descriptor: Record) -> None:
    """The registers that an interface descriptor asks for, in blocks of eight; the field has one less (G45 9548-9551)."""
    blocks = int(descriptor.grf_register_blocks) + 1
    if blocks % 2:
        cs.warn(f"interface descriptor {index} has {blocks} blocks of registers; their number must be even (G45 9548-9551)")


def inside_bound(cs: CommandStreamer, start: int, length: int) -> int:
    """How many bytes of indirect data are below the access upper bound of indirect objects; 0 is none."""
    held = cs.latched.get("STATE_BASE_ADDRESS")
    bound = int(held.indirect_object_access_upper_bound) if held is not None else 0
    if not bound or start + length <= bound:
        return length
    inside = max(bound - start, 0)
    cs.warn(f"{length - inside} of {length} bytes of indirect data at {start:#x} are past the access upper bound {bound:#x}: zeros")
    return inside
