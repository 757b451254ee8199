"""Root threads of the media pipeline: one for each command, or many from a walker.

Reads   MEDIA_OBJECT MEDIA_OBJECT_PRT MEDIA_OBJECT_GRPID MEDIA_OBJECT_WALKER MEDIA_VFE_STATE INTERFACE_DESCRIPTOR_DATA MEDIA_THREAD_HEADER
Writes  ThreadDispatch records

After r0 the payload holds constants from the CURBE, then inline data, then indirect data, each padded to a whole register (G45 8528,
9699-9701). Threads that share neither barrier nor local memory go into one ThreadDispatch as long as none waits for another: a thread on
the scoreboard waits for those at eight distances that were dispatched before it (BDW 23977-24170), so these go into an earlier
ThreadDispatch. Threads of a group have a ThreadDispatch of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.errors import DecodeError, Unsupported
from softgen.media import front_end, walk
from softgen.media.front_end import FrontEnd, ThreadGroup, optional
from softgen.media.queued import CHANNELS, Interface, QueuedThread
from softgen.media.walk import BlockPosition
from softgen.threads.dispatch import DispatchContext, Scratch, ThreadDispatch
from softgen.threads.payload import PayloadList, SlotField, check_length

HEADER = "MEDIA_THREAD_HEADER"
BATCH = 64  # threads of a ThreadDispatch at most, of those that are independent
MAX_DATA = 112  # registers of inline and indirect data that are too many (BDW 22717-22721)
SCOREBOARDS = range(8)
REFUSED = ("masked_dispatch", "dual_mode", "repel", "quad_mode")  # what changes which threads run, or when
BY = "media command"


class RootThread(NamedTuple):
    """A thread: its position, and its registers after r0."""

    position: BlockPosition
    data: bytes


# -- one thread for each command ----------------------------------------------------------------------------------------------


def single(context: DispatchContext, front: FrontEnd, command: Record) -> ThreadDispatch:
    """MEDIA_OBJECT and MEDIA_OBJECT_PRT. A persistent thread, too, has ended when the next command is read, with or without a fence."""
    _check(command)
    data = constants(context, front, command) + inline(command) + indirect(context, command)
    return root_threads(context, front, command.interface_descriptor_offset, [RootThread(_position(command), data)], shares=False)


def queued(context: DispatchContext, front: FrontEnd, command: Record,
           handle: int) -> tuple[QueuedThread, tuple[SlotField, ...], Scratch | None]:  # fmt: skip
    """The thread of MEDIA_OBJECT or MEDIA_OBJECT_PRT that waits in a queue, with an entry of the URB; the fields of its header that live
    threads have each for itself; scratch space."""
    _check(command)
    index, position = int(command.interface_descriptor_offset), _position(command)
    held = front_end.descriptor(context.generation.number, front, index, BY)
    fields = front_end.dispatch_fields(context, front, held, False)
    header = _header(context, front, fields, index, position, urb_handle=handle)
    root = QueuedThread(interface(fields), header.data, constants(context, front, command), inline(command) + indirect(context, command),
                        handle, bool(optional(command, "thread_synchronization")), bool(optional(command, "prt_fence_needed")),
                        bool(optional(command, "children_present")), position, tuple(before(front, command, position)))  # fmt: skip
    return root, header.slots, fields["scratch"]


def interface(fields: dict[str, Any]) -> Interface:
    """The part of a dispatch's fields that its threads have in common."""
    return Interface(fields["kernel"], fields["control"], fields["binding_table"], fields["samplers"])


def before(front: FrontEnd, command: Record, position: BlockPosition) -> Iterator[BlockPosition]:
    """Positions of threads that one waits for."""
    for x, y in distances(front, command):
        yield BlockPosition(position.x + x, position.y + y, position.color)


def grouped(context: DispatchContext, front: FrontEnd, group: ThreadGroup) -> ThreadDispatch:
    """MEDIA_OBJECT_GRPID: payloads are as those of GPGPU threads, or each thread has its own inline data (BDW 22904-22910)."""
    roots = [RootThread(_position(command), _part(context, front, command, number)) for number, command in enumerate(group.commands)]
    return root_threads(context, front, group.descriptor, roots, shares=True)


def _part(context: DispatchContext, front: FrontEnd, command: Record, number: int) -> bytes:
    _check(command, "thread_synchronization")
    inlined, fetched = inline(command), bool(optional(command, "indirect_data_length"))
    own, shared = _lengths(context, front, command)
    if inlined and (fetched or own or shared):
        raise DecodeError("inline data, and indirect data or constants too; only one of them is allowed")
    if inlined:
        return inlined
    data = indirect(context, command) if fetched else _curbe(context, front, command)
    begin, end = (shared + number * own) * GRF_BYTES, (shared + (number + 1) * own) * GRF_BYTES
    if end > len(data):
        raise DecodeError(f"thread {number} of its group needs {end} bytes of data, there are {len(data)}")
    common, own_part = data[: shared * GRF_BYTES], data[begin:end]
    return own_part + common if fetched else common + own_part


def _position(command: Record) -> BlockPosition:
    """The position that a command gives its thread; on Gen11 there is no scoreboard."""
    x, y, color = (
        optional(command, new) or optional(command, old)
        for new, old in (("x_position", "scoreboard_x"), ("y_position", "scoreboard_y"), ("block_color", "scoreboard_color"))
    )
    return BlockPosition(x, y, color)


# -- many threads for each command --------------------------------------------------------------------------------------------


def walked(context: DispatchContext, front: FrontEnd, command: Record, poll: Callable[[], None]) -> Iterator[ThreadDispatch]:
    """MEDIA_OBJECT_WALKER. `poll` is called at intervals, and may raise."""
    _check(command, "thread_synchronization")
    data = constants(context, front, command) + inline(command) + indirect(context, command)
    index = command.interface_descriptor_offset
    descriptor = front_end.descriptor(context.generation.number, front, index, "MEDIA_OBJECT_WALKER")
    level = optional(command, "group_id_loop_select")
    shares = level and (descriptor.barrier_enable or descriptor.shared_local_memory_size)
    before = distances(front, command)
    if shares:
        for positions in walk.groups(command, level, poll):
            if any(depends(position, before, set(positions)) for position in positions):
                raise Unsupported("a scoreboard inside thread groups is not yet simulated")
            yield root_threads(context, front, index, [RootThread(position, data) for position in positions], shares=True)
        return
    for positions in independent(walk.positions(command, poll), before):
        yield root_threads(context, front, index, [RootThread(position, data) for position in positions], shares=False)


def independent(positions: Iterator[BlockPosition], before: Sequence[tuple[int, int]]) -> Iterator[list[BlockPosition]]:
    """Batches of threads in dispatch order, split where one waits for another."""
    now: list[BlockPosition] = []
    running: set[BlockPosition] = set()
    for position in positions:
        if len(now) == BATCH or depends(position, before, running):
            yield now
            now, running = [], set()
        now.append(position)
        running.add(position)
    if now:
        yield now


def depends(position: BlockPosition, before: Sequence[tuple[int, int]], running: set[BlockPosition]) -> bool:
    return any(BlockPosition(position.x + x, position.y + y, position.color) in running for x, y in before)


def distances(front: FrontEnd, command: Record) -> list[tuple[int, int]]:
    """Scoreboard distances to the threads that a thread waits for; VFE state and command must both enable them."""
    state = front.state
    if state is None or not optional(command, "use_scoreboard") or not optional(state, "scoreboard_enable"):
        return []
    both = state.scoreboard_mask & command.scoreboard_mask
    found = [(getattr(state, f"scoreboard_{n}_delta_x"), getattr(state, f"scoreboard_{n}_delta_y")) for n in SCOREBOARDS if both >> n & 1]
    return [distance for distance in found if distance != (0, 0)]


# -- payloads -------------------------------------------------------------------------------------------


def root_threads(context: DispatchContext, front: FrontEnd, index: int, roots: Sequence[RootThread], shares: bool) -> ThreadDispatch:
    """`shares`: barrier and local memory are the group's; threads of no group have neither."""
    descriptor = front_end.descriptor(context.generation.number, front, index, BY)
    fields = front_end.dispatch_fields(context, front, descriptor, shares)
    if shares and descriptor.barrier_enable and len(roots) != descriptor.number_of_threads_in_gpgpu_thread_group:
        expected = descriptor.number_of_threads_in_gpgpu_thread_group
        raise DecodeError(f"{len(roots)} threads in a group with a barrier, its interface descriptor says {expected}")
    headers = [_header(context, front, fields, index, root.position) for root in roots]
    payload = PayloadList(tuple(header.data + root.data for header, root in zip(headers, roots, strict=True)), headers[0].slots)
    check_length(payload.registers, "media thread")
    return ThreadDispatch(simd=CHANNELS, threads=len(roots), groups=1, payload=payload, stage="media", **fields)


def header(context: DispatchContext, front: FrontEnd, fields: dict[str, Any], command: Record) -> front_end.ThreadHeader:
    """The header of the threads of a command."""
    return _header(context, front, fields, int(command.interface_descriptor_offset), _position(command))


def _header(context: DispatchContext, front: FrontEnd, fields: dict[str, Any], index: int, position: BlockPosition,
            **more: int) -> front_end.ThreadHeader:  # fmt: skip
    return front_end.thread_header(context, HEADER, fields, front, x_position=position.x, y_position=position.y, color=position.color,
                                   interface_descriptor_offset=index, **more)  # fmt: skip


def constants(context: DispatchContext, front: FrontEnd, command: Record) -> bytes:
    """Constants of threads that are of no group: the same for all."""
    own, shared = _lengths(context, front, command)
    curbe, need = _curbe(context, front, command), (own + shared) * GRF_BYTES
    if need > len(curbe):
        raise DecodeError(f"{need} bytes of constants are asked for, the CURBE holds {len(curbe)} there")
    return curbe[:need]


def inline(command: Record) -> bytes:
    return _padded(struct.pack(f"<{len(command.inline_data)}I", *(entry.inline_data for entry in command.inline_data)))


def indirect(context: DispatchContext, command: Record) -> bytes:
    """Indirect data; length 0 fetches nothing (BDW 22813-22815)."""
    return _padded(front_end.indirect_data(context, command)) if optional(command, "indirect_data_length") else b""


def _curbe(context: DispatchContext, front: FrontEnd, command: Record) -> bytes:
    descriptor = front_end.descriptor(context.generation.number, front, command.interface_descriptor_offset, BY)
    return front.constants[optional(descriptor, "constant_urb_entry_read_offset") * GRF_BYTES :]


def _lengths(context: DispatchContext, front: FrontEnd, command: Record) -> tuple[int, int]:
    """Registers of constants for each thread, and for all."""
    descriptor = front_end.descriptor(context.generation.number, front, command.interface_descriptor_offset, BY)
    return descriptor.constant_urb_entry_read_length, optional(descriptor, "cross_thread_constant_data_read_length")


def _check(command: Record, *refused: str) -> None:
    for name in (*REFUSED, *refused):
        if optional(command, name):
            raise Unsupported(f"{name} is not yet simulated")
    data = sum(-(-size // GRF_BYTES) for size in (4 * len(command.inline_data), optional(command, "indirect_data_length")))
    if data >= MAX_DATA:
        raise DecodeError(f"{data} registers of inline and indirect data; there must be fewer than {MAX_DATA}")


def _padded(data: bytes) -> bytes:
    """Data padded to a whole register."""
    return data.ljust(-(-len(data) // GRF_BYTES) * GRF_BYTES, b"\0")
