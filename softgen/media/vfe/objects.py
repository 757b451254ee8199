"""Object commands as root threads: what each VFE mode makes of inline and indirect data (G45 8758-9140, 9641-11137).

Reads   MEDIA_OBJECT MEDIA_OBJECT_EX MEDIA_OBJECT_PRT STATE_BASE_ADDRESS
Writes  root threads in the spawner's queue
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, GpuFault
from softgen.media.front_end import optional
from softgen.media.queued import QueuedThread
from softgen.media.vfe import checks
from softgen.media.vfe.blocks import avc, scan, vc1
from softgen.media.vfe.payload import registers, root_thread
from softgen.media.vfe.spawner import ThreadSpawner
from softgen.media.vfe.state import VLD, FrontEndState, VideoFrontEnd, WaitingMacroblock, current_state
from softgen.media.vfe.vld.decoder import decode

PERSISTENT = "MEDIA_OBJECT_PRT"
FREE, FROZEN, ONCE, ALWAYS = range(4)  # debug_counter_control
COUNTER = (1 << 24) - 1

Mode = Callable[[CommandStreamer, FrontEndState, Record], Iterable[QueuedThread]]


def start(cs: CommandStreamer, name: str, cmd: Record) -> None:
    """Execute an object command: its root threads wait in the spawner's queue."""
    state, front = current_state(cs), cs.state(VideoFrontEnd)
    checks.object_command(cs, front, state, name, cmd)
    front.commands.add(name)
    cs.counters.dispatches += 1
    begin_counter(front, state, name, cmd)
    spawner = cs.state(ThreadSpawner)
    if state.mode == VLD:
        spawner.queue_slice(cs, state, decode(cs, state, cmd, indirect(cs, cmd)))
        return
    mode = generic if name == PERSISTENT else MODES[state.mode]
    for thread in mode(cs, state, cmd):
        spawner.queue(cs, state, thread)


def finish(cs: CommandStreamer) -> None:
    """Runs the root threads that wait: the pipeline is flushed."""
    front, spawner = cs.state(VideoFrontEnd), cs.state(ThreadSpawner)
    front.persistent = False
    for thread in finish_waiting(front):
        assert front.state is not None
        spawner.queue(cs, front.state, thread)
    spawner.run(cs)


# -- the debug counter -------------------------------------------------------------------------------------------------


def begin_counter(front: VideoFrontEnd, state: FrontEndState, name: str, cmd: Record) -> None:
    """Initialises the counter where its control says so (G45 9098-9137). The number is the command's, or that of VFE_STATE_EX."""
    control = int(state.vfe.debug_counter_control)
    if control == ALWAYS and state.mode == VLD:
        control = FREE  # reserved there
    if control == ALWAYS or control == ONCE and not front.counter_begun:
        front.counter = _object_id(state, name, cmd)
    front.counter_begun = True


def _object_id(state: FrontEndState, name: str, cmd: Record) -> int:
    if name == "MEDIA_OBJECT":
        return int(cmd.object_id)
    return int(state.extension.object_id) if state.extension is not None else 0


def count(front: VideoFrontEnd, state: FrontEndState) -> int:
    """The number of the next thread; the counter steps."""
    number = front.counter
    if state.vfe.debug_counter_control != FROZEN:
        front.counter = number + 1 & COUNTER
    return number


# -- data ----------------------------------------------------------------------------------------------------------------


def inline(cmd: Record) -> bytes:
    return struct.pack(f"<{len(cmd.inline_data)}I", *(entry.inline_data for entry in cmd.inline_data))


def indirect(cs: CommandStreamer, cmd: Record) -> bytes:
    """Indirect data; a length of 0 fetches nothing. From the access upper bound on it reads as zeros (G45 8592)."""
    length = optional(cmd, "indirect_data_length")
    if not length:
        return b""
    start = cs.bases.get("indirect", 0) + cmd.indirect_data_start_address & (1 << cs.space.bits) - 1
    inside = checks.inside_bound(cs, start, length)
    try:
        return cs.space.read(start, inside).ljust(length, b"\0")
    except GpuFault as fault:
        raise GpuFault(fault.address, "indirect data", cs.space.name) from fault


def retained(front: VideoFrontEnd, cmd: Record, data: bytes) -> bytes:
    """Indirect data, behind the register that an object before retained (G45 9664)."""
    whole = front.retained + data if data else data
    if data:
        front.retained = registers(data)[-GRF_BYTES:] if optional(cmd, "retain") else b""
    return whole


# -- modes ---------------------------------------------------------------------------------------------------------------


def generic(cs: CommandStreamer, state: FrontEndState, cmd: Record) -> Iterable[QueuedThread]:
    """A thread with the data as it is: inline, then indirect, each padded to whole registers (G45 9699-9701)."""
    front = cs.state(VideoFrontEnd)
    data = registers(inline(cmd)) + registers(retained(front, cmd, indirect(cs, cmd)))
    yield made(cs, state, cmd, data)


def made(cs: CommandStreamer, state: FrontEndState, cmd: Record, data: bytes) -> QueuedThread:
    """The thread of an object, which takes the next entry of the URB and the next number."""
    front = cs.state(VideoFrontEnd)
    if len(data) > state.entry_bytes:
        raise DecodeError(f"{len(data)} bytes of data for a thread, an entry of the URB has {state.entry_bytes}")
    entry = cs.state(ThreadSpawner).take_entry(cs, front, state)
    index = state.remapped(int(cmd.interface_descriptor_offset))
    thread = root_thread(cs, state, index, entry, count(front, state), data)
    return thread._replace(synchronised=bool(optional(cmd, "thread_synchronization")), fence=bool(optional(cmd, "prt_fence_needed")))


def _dwords(cmd: Record) -> list[int]:
    return [int(entry.inline_data) for entry in cmd.inline_data]


def inverse_scan(cs: CommandStreamer, state: FrontEndState, cmd: Record) -> Iterable[QueuedThread]:
    """IS mode."""
    yield made(cs, state, cmd, scan.payload(cs.generation.number, inline(cmd), _dwords(cmd), indirect(cs, cmd)))


def avc_transform(cs: CommandStreamer, state: FrontEndState, cmd: Record) -> Iterable[QueuedThread]:
    """AVC-IT mode."""
    yield made(cs, state, cmd, avc.transformed(cs.generation.number, state.extension, _dwords(cmd), indirect(cs, cmd)))


def avc_motion(cs: CommandStreamer, state: FrontEndState, cmd: Record) -> Iterable[QueuedThread]:
    """AVC-MC mode."""
    if state.extension is not None and not state.extension.residual_data_fixed_source_offset:
        cs.warn("VFE_STATE_EX: residual_data_fixed_source_offset must be 1 in AVC-MC mode (G45 9511)")
    yield made(cs, state, cmd, avc.moved(cs.generation.number, state.extension, _dwords(cmd), indirect(cs, cmd)))


def vc1_transform(cs: CommandStreamer, state: FrontEndState, cmd: Record) -> Iterable[QueuedThread]:
    """VC1-IT mode. A thread whose right edge the next macroblock may change waits for that one (G45 9056-9060)."""
    front = cs.state(VideoFrontEnd)
    before = front.waiting
    found = vc1.transformed(cs, registers(inline(cmd)), _dwords(cmd), indirect(cs, cmd), before.macroblock if before else None)
    yield from finish_waiting(front)
    thread = made(cs, state, cmd, found.payload)
    if found.overlaps:
        front.waiting = WaitingMacroblock(found, thread)
        cs.state(ThreadSpawner).expect(cs, state)
    else:
        yield thread


def finish_waiting(front: VideoFrontEnd) -> Iterable[QueuedThread]:
    """The thread whose macroblock is finished, if one waits."""
    waiting, front.waiting = front.waiting, None
    if waiting is not None:
        yield waiting.thread._replace(data=waiting.macroblock.payload)


MODES: dict[str, Mode] = {
    "generic": generic, "is": inverse_scan, "avc-it": avc_transform, "avc-mc": avc_motion, "vc1-it": vc1_transform,
}  # fmt: skip
