"""The stream copy of HuC, the microcontroller of the video engine; programs of its firmware are refused.

Reads   HUC_STREAM_OBJECT HUC_START, and HUC_IMEM_STATE, HUC_IND_OBJ_BASE_ADDR_STATE
Writes  memory

Drivers copy with it what an application has left in several buffers, and the grey of chroma beside monochrome pictures.
"""

from __future__ import annotations

from softgen.bits.record import Record
from softgen.command import Commands, CommandStreamer, registers_in
from softgen.errors import DecodeError, SoftgenError, Unsupported

COMMANDS: Commands = {}
handles = registers_in(COMMANDS)

COPY_PROGRAM = 4  # huc_firmware_descriptor (public: media-driver, CodechalDecode::HucCopy)
AT_ONCE = 1 << 20  # bytes between two polls of the time limit
REFUSED = ("emulation_prevention_byte_removal", "start_code_search_engine")


@handles("HUC_STREAM_OBJECT")
def huc_stream_object(cs: CommandStreamer, cmd: Record) -> None:
    """Copy the stream that goes in to the one that comes out. No program works on it before HUC_START, whatever huc_processing says."""
    for name in REFUSED:
        if getattr(cmd, name):
            raise Unsupported(f"{name}: not yet simulated")
    bases = cs.latched.get("HUC_IND_OBJ_BASE_ADDR_STATE")
    if bases is None:
        raise DecodeError("no HUC_IND_OBJ_BASE_ADDR_STATE came before")
    if not cmd.stream_out:
        return
    wrap, length = (1 << cs.space.bits) - 1, cmd.indirect_stream_in_data_length
    source = bases.huc_indirect_stream_in_object_address + cmd.indirect_stream_in_address
    target = bases.huc_indirect_stream_out_object_address + cmd.indirect_stream_out_address
    for at in range(0, length, AT_ONCE):
        if cs.timed_out():
            raise SoftgenError(f"time is up: {length - at} of {length} bytes left")
        cs.space.write(target + at & wrap, cs.space.read(source + at & wrap, min(AT_ONCE, length - at)))
    cs.memory_changed()


@handles("HUC_START")
def huc_start(cs: CommandStreamer, cmd: Record) -> None:
    """Run a program of the firmware. That of the stream copy has nothing left to do: HUC_STREAM_OBJECT has copied already."""
    state = cs.latched.get("HUC_IMEM_STATE")
    if state is None:
        raise DecodeError("no HUC_IMEM_STATE came before")
    if state.huc_firmware_descriptor != COPY_PROGRAM:
        raise Unsupported(f"HuC firmware {state.huc_firmware_descriptor}: there is none to run")
