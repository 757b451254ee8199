"""The front end's state: blocks in memory that MEDIA_STATE_POINTERS points to, and what is kept from one object to the next.

Reads   MEDIA_STATE_POINTERS VFE_STATE VFE_STATE_EX VLD_STATE INTERFACE_DESCRIPTOR_DATA URB_FENCE
Writes  VideoFrontEnd, a part of the hardware context
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from softgen.bits import catalogue
from softgen.bits.describe import value_name
from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import DecodeError
from softgen.shared_functions.urb.memory import ROW, UrbMemory

VLD = "vld"
URB_ROWS = 2048  # more than a fence can name: handles that software computes stay inside
DESCRIPTOR = 16  # bytes
REMAPPED = 16  # offsets of interface descriptors that a remap table has


class FrontEndState(NamedTuple):
    """The state that objects are executed with."""

    vfe: Record
    mode: str
    vld: Record | None  # VLD_STATE
    extension: Record | None  # VFE_STATE_EX
    first_row: int  # of the front end's region of the URB
    descriptors: dict[int, Record]  # by index, as they were read
    scoreboard: tuple[int, ...] = ()  # dwords of the extension that only later hardware has

    @property
    def children(self) -> bool:
        """Whether root threads may send spawn messages."""
        return bool(self.vfe.children_present)

    @property
    def most_roots(self) -> int:
        """Root threads that may be live at a time."""
        return int(self.vfe.maximum_number_of_threads) + 1

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry of the URB, which holds a payload without r0 and constants."""
        return (int(self.vfe.urb_entry_allocation_size) + 1) * ROW

    @property
    def scratch_bytes(self) -> int:
        """Scratch space of a thread: the field counts KiB here, where 3D stages have a power of two (G45 9335)."""
        return (int(self.vfe.per_thread_scratch_space) + 1) << 10

    def remapped(self, index: int) -> int:
        """The interface descriptor for a command's offset (G45 9539)."""
        if self.extension is None or index >= REMAPPED:
            return index
        return remap(self.extension, index)


def remap(tables: Record, index: int) -> int:
    """An entry of the remap tables of VFE_STATE_EX or VLD_STATE."""
    table = tables.interface_descriptor_remap_table_0_7 if index < 8 else tables.interface_descriptor_remap_table_8_15
    return int(table) >> 4 * (index & 7) & 15


class WaitingMacroblock(NamedTuple):
    """A macroblock of VC1-IT mode that the next one may change, and its thread."""

    macroblock: Any  # Transformed (blocks/vc1.py)
    thread: Any  # QueuedThread


@dataclass
class VideoFrontEnd:
    """What the front end keeps; a part of the hardware context."""

    state: FrontEndState | None = None  # None: read for the next object
    counter: int = 0  # the debug counter
    counter_begun: bool = False  # it has been initialised since the state changed
    entry: int = 0  # of the URB, taken next
    retained: bytes = b""  # the last register of indirect data that the next object's begins with
    persistent: bool = False  # a persistent thread was started since the last flush
    commands: set[str] = field(default_factory=set)  # that have started objects since the state changed
    waiting: WaitingMacroblock | None = None  # in VC1-IT mode
    kinds: Any = None  # MacroblockKinds, in VLD mode
    urb: UrbMemory = field(default_factory=lambda: UrbMemory(np.zeros(URB_ROWS * ROW, np.uint8)))

    def change_state(self) -> None:
        """Lets the next object read the state anew (G45 8736)."""
        self.state, self.counter_begun, self.entry = None, False, 0
        self.commands, self.waiting = set(), None


def current_state(cs: CommandStreamer) -> FrontEndState:
    """The state, read from memory for the first object after MEDIA_STATE_POINTERS."""
    front = cs.state(VideoFrontEnd)
    if front.state is None:
        front.state = _read(cs)
    return front.state


def _read(cs: CommandStreamer) -> FrontEndState:
    pointers = cs.latched.get("MEDIA_STATE_POINTERS")
    if pointers is None:
        raise DecodeError("there is no MEDIA_STATE_POINTERS")
    vfe = structure(cs, "VFE_STATE", pointers.vfe_state_pointer)
    mode = value_name(catalogue.layout("VFE_STATE", cs.generation.number), vfe, "vfe_mode")
    if mode in ("", "-") or mode.startswith("value") or mode.isdigit():
        raise DecodeError(f"VFE_STATE: vfe_mode {vfe.vfe_mode} is reserved")
    vld = extension = None
    if pointers.extended_vfe_state_enable and mode == VLD:
        vld = structure(cs, "VLD_STATE", pointers.extended_state_pointer)
    elif pointers.extended_vfe_state_enable and catalogue.catalogue().get("VFE_STATE_EX", cs.generation.number) is None:
        raise DecodeError("MEDIA_STATE_POINTERS: extended_vfe_state_enable is 1, but there is no VFE_STATE_EX before G45 (G45 9330)")
    elif pointers.extended_vfe_state_enable:
        extension = structure(cs, "VFE_STATE_EX", pointers.extended_state_pointer)
    if mode == VLD and vld is None:
        raise DecodeError("VFE_STATE: vfe_mode is vld, but extended_vfe_state_enable of MEDIA_STATE_POINTERS is 0: there is no VLD_STATE")
    fences = cs.latched.get("URB_FENCE")
    scoreboard = dwords(cs, pointers.extended_state_pointer + 16, 3) if extension is not None else ()
    return FrontEndState(vfe, mode, vld, extension, int(fences.sf_fence) if fences is not None else 0, {}, scoreboard)


def structure(cs: CommandStreamer, name: str, offset: int) -> Record:
    """State at an offset from the general state base."""
    layout = catalogue.layout(name, cs.generation.number)
    return layout.raw(dwords(cs, offset, layout.dwords))


def dwords(cs: CommandStreamer, offset: int, count: int) -> tuple[int, ...]:
    """Dwords at an offset from the general state base."""
    data = cs.space.read(cs.bases.get("general", 0) + offset & (1 << cs.space.bits) - 1, 4 * count)
    return struct.unpack(f"<{count}I", data)


def descriptor_pointer(state: FrontEndState, index: int) -> int:
    """Where an interface descriptor is, from the general state base."""
    return int(state.vfe.interface_descriptor_base_pointer) + DESCRIPTOR * index


def descriptor(cs: CommandStreamer, state: FrontEndState, index: int) -> Record:
    """An interface descriptor, which is read once (G45 9208-9212: they are cached)."""
    if index not in state.descriptors:
        state.descriptors[index] = structure(cs, "INTERFACE_DESCRIPTOR_DATA", descriptor_pointer(state, index))
    return state.descriptors[index]
