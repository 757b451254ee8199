"""Root threads of the media pipeline: one for each command, or many from a walker.

Reads   MEDIA_OBJECT MEDIA_OBJECT_PRT MEDIA_OBJECT_GRPID MEDIA_OBJECT_WALKER MEDIA_VFE_STATE INTERFACE_DESCRIPTOR_DATA MEDIA_THREAD_HEADER
Writes  Plans, which engines run as they run thread groups

Behind r0 a thread finds constants from the CURBE, then inline data, then indirect data, each filled up to a whole register (G45 8528,
9699-9701). Threads that share neither barrier nor local memory are put together, many to a Plan, as long as none waits for another: a
thread on the scoreboard waits for those at eight distances that were dispatched before it (BDW 23977-24170), so they go into an earlier
Plan. Threads of a group are a Plan of their own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from softgen.bits.catalogue import catalogue
from softgen.bits.layout import Layout
from softgen.bits.record import Record
from softgen.errors import DecodeError, Unsupported
from softgen.gpgpu import media_walk, walker
from softgen.gpgpu.media_walk import Place
from softgen.gpgpu.walker import ALL, REGISTER, Plan, Surroundings

HEADER = "MEDIA_THREAD_HEADER"
CHANNELS = 32
TOGETHER = 64  # threads of a Plan at most, of those that have nothing to do with each other
MOST_DATA = 112  # registers of inline and indirect data that are too many (BDW 22717-22721)
SCOREBOARDS = range(8)
ONCE = range(1)
REFUSED = ("thread_synchronization", "masked_dispatch", "dual_mode", "repel", "quad_mode")  # what changes which threads run, or when


class Root(NamedTuple):
    """A thread: where it stands, and its registers behind r0."""

    place: Place
    data: bytes


@dataclass(frozen=True)
class Roots:
    """Payloads of root threads (walker.Payloads)."""

    header: Layout
    descriptor: int
    roots: Sequence[Root]

    @property
    def registers(self) -> int:
        return 1 + max(len(root.data) for root in self.roots) // REGISTER

    def of(self, plan: Plan, number: int, slot: int) -> bytes:
        (x, y, color), data = self.roots[number]
        first = self.header.pack(x_position=self._fits("x_position", x), y_position=self._fits("y_position", y), color=color,
                                 interface_descriptor_offset=self.descriptor, **walker.uses(plan, slot))  # fmt: skip
        return struct.pack("<8I", *first) + data

    def _fits(self, name: str, value: int) -> int:
        return value & (1 << self.header.field(name).width) - 1


@dataclass
class Pending:
    """A thread group that MEDIA_OBJECT_GRPID commands put together."""

    id: int
    descriptor: int
    commands: list[Record]


# -- one thread a command ----------------------------------------------------------------------------------------------


def single(around: Surroundings, command: Record) -> Plan:
    """MEDIA_OBJECT and MEDIA_OBJECT_PRT. A persistent thread, too, has ended when the next command is read, whatever fence there is."""
    _check(around, command)
    data = constants(around, command) + inline(command) + indirect(around, command)
    return plan(around, command.interface_descriptor_offset, [Root(_place(command), data)], shares=False)


def grouped(around: Surroundings, pending: Pending) -> Plan:
    """MEDIA_OBJECT_GRPID: payloads are as those of GPGPU threads, or each thread has its own inline data (BDW 22904-22910)."""
    roots = [Root(_place(command), _part(around, command, number)) for number, command in enumerate(pending.commands)]
    return plan(around, pending.descriptor, roots, shares=True)


def _part(around: Surroundings, command: Record, number: int) -> bytes:
    _check(around, command)
    held, fetched, (own, shared) = inline(command), bool(_optional(command, "indirect_data_length")), _lengths(around, command)
    if held and (fetched or own or shared):
        raise DecodeError("inline data, and indirect data or constants too; only one of them is allowed")
    if held:
        return held
    data = indirect(around, command) if fetched else _curbe(around, command)
    begin, end = (shared + number * own) * REGISTER, (shared + (number + 1) * own) * REGISTER
    if end > len(data):
        raise DecodeError(f"thread {number} of its group needs {end} bytes of data, there are {len(data)}")
    every, each = data[: shared * REGISTER], data[begin:end]
    return each + every if fetched else every + each


def _place(command: Record) -> Place:
    """Where a command says that its thread stands; Gen11 says so without a scoreboard."""
    x, y, color = (
        _optional(command, new) or _optional(command, old)
        for new, old in (("x_position", "scoreboard_x"), ("y_position", "scoreboard_y"), ("block_color", "scoreboard_color"))
    )
    return Place(x, y, color)


# -- many threads a command --------------------------------------------------------------------------------------------


def walked(around: Surroundings, command: Record, look: Callable[[], None]) -> Iterator[Plan]:
    """MEDIA_OBJECT_WALKER. `look` is called now and then, and may raise."""
    _check(around, command)
    data = constants(around, command) + inline(command) + indirect(around, command)
    index = command.interface_descriptor_offset
    one = walker.descriptor(around, index, "MEDIA_OBJECT_WALKER")
    level = _optional(command, "group_id_loop_select")
    shares = level and (one.barrier_enable or one.shared_local_memory_size)
    before = distances(around, command)
    if shares:
        for places in media_walk.groups(command, level, look):
            if any(depends(place, before, set(places)) for place in places):
                raise Unsupported("a scoreboard inside thread groups is not yet simulated")
            yield plan(around, index, [Root(place, data) for place in places], shares=True)
        return
    for places in together(media_walk.places(command, look), before):
        yield plan(around, index, [Root(place, data) for place in places], shares=False)


def together(places: Iterator[Place], before: Sequence[tuple[int, int]]) -> Iterator[list[Place]]:
    """Threads in order, cut where one waits for another."""
    now: list[Place] = []
    running: set[Place] = set()
    for place in places:
        if len(now) == TOGETHER or depends(place, before, running):
            yield now
            now, running = [], set()
        now.append(place)
        running.add(place)
    if now:
        yield now


def depends(place: Place, before: Sequence[tuple[int, int]], running: set[Place]) -> bool:
    return any(Place(place.x + x, place.y + y, place.color) in running for x, y in before)


def distances(around: Surroundings, command: Record) -> list[tuple[int, int]]:
    """How far away those are that a thread waits for: state and command must both ask for it."""
    front = around.front.state
    if front is None or not _optional(command, "use_scoreboard") or not _optional(front, "scoreboard_enable"):
        return []
    both = front.scoreboard_mask & command.scoreboard_mask
    found = [(getattr(front, f"scoreboard_{n}_delta_x"), getattr(front, f"scoreboard_{n}_delta_y")) for n in SCOREBOARDS if both >> n & 1]
    return [one for one in found if one != (0, 0)]


# -- what threads start with -------------------------------------------------------------------------------------------


def plan(around: Surroundings, index: int, roots: Sequence[Root], shares: bool) -> Plan:
    """`shares`: barrier and local memory are the group's; threads of no group have neither."""
    one = walker.descriptor(around, index, "media command")
    said: dict[str, Any] = walker.described(around, one)
    if not shares:
        said |= {"local_bytes": 0, "barrier": False}
    elif said["barrier"] and len(roots) != one.number_of_threads_in_gpgpu_thread_group:
        expected = one.number_of_threads_in_gpgpu_thread_group
        raise DecodeError(f"{len(roots)} threads in a group with a barrier, its interface descriptor says {expected}")
    made = Roots(around.layout(HEADER), index, roots)
    if made.registers > walker.MOST_REGISTERS:
        raise DecodeError(f"{made.registers} registers of payload; a thread has {walker.MOST_REGISTERS}")
    return Plan(simd=CHANNELS, shape=(len(roots), 1, 1), grid=(ONCE, ONCE, ONCE), right_mask=ALL, bottom_mask=ALL, own=0, shared=0,
                own_first=False, data=b"", payloads=made, **said)  # fmt: skip


def constants(around: Surroundings, command: Record) -> bytes:
    """The same for all threads that are of no group."""
    own, shared = _lengths(around, command)
    held, need = _curbe(around, command), (own + shared) * REGISTER
    if need > len(held):
        raise DecodeError(f"{need} bytes of constants are asked for, the CURBE holds {len(held)} there")
    return held[:need]


def inline(command: Record) -> bytes:
    return _filled(struct.pack(f"<{len(command.inline_data)}I", *(one.inline_data for one in command.inline_data)))


def indirect(around: Surroundings, command: Record) -> bytes:
    """Length 0: nothing is fetched (BDW 22813-22815)."""
    return _filled(walker.indirect_data(around, command)) if _optional(command, "indirect_data_length") else b""


def _curbe(around: Surroundings, command: Record) -> bytes:
    one = walker.descriptor(around, command.interface_descriptor_offset, "media command")
    return around.front.constants[_optional(one, "constant_urb_entry_read_offset") * REGISTER :]


def _lengths(around: Surroundings, command: Record) -> tuple[int, int]:
    """Registers of constants for each thread, and for all."""
    one = walker.descriptor(around, command.interface_descriptor_offset, "media command")
    return one.constant_urb_entry_read_length, _optional(one, "cross_thread_constant_data_read_length")


def _check(around: Surroundings, command: Record) -> None:
    if catalogue().get(HEADER, around.generation.number) is None:
        raise Unsupported("not yet simulated")
    for name in REFUSED:
        if _optional(command, name):
            raise Unsupported(f"{name} is not yet simulated")
    data = sum(-(-size // REGISTER) for size in (4 * len(command.inline_data), _optional(command, "indirect_data_length")))
    if data >= MOST_DATA:
        raise DecodeError(f"{data} registers of inline and indirect data; there must be fewer than {MOST_DATA}")


def _filled(data: bytes) -> bytes:
    """Up to a whole register."""
    return data.ljust(-(-len(data) // REGISTER) * REGISTER, b"\0")


def _optional(values: Record, name: str) -> int:
    """A field that some generations or commands do not have: zero there."""
    return int(getattr(values, name)) if name in values._fields else 0
