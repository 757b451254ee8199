"""Media objects in a walk over a batch: the threads of consecutive MEDIA_OBJECT commands as one dispatch, from Gen7 on.

Reads   MEDIA_OBJECT MEDIA_STATE_FLUSH
Writes  struct walked_objects; ThreadDispatch records

Root threads that no scoreboard orders run at the same time, and MEDIA_STATE_FLUSH, which drivers send after each object, does not wait for
them (BDW 23688-23775). Compiled code puts the inline data of objects aside that differ from one that Python has executed in nothing else;
their threads start when the walk is over: before any other command.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from softgen.bits.record import Record
from softgen.bits.units import GRF_BYTES
from softgen.command import CommandStreamer
from softgen.library import load
from softgen.media import front_end, object_actor_h, objects
from softgen.media.front_end import FrontEnd, dispatch_context, optional
from softgen.media.object_actor_h import OBJECT_DWORDS, ObjectWriter, WalkedObjects
from softgen.media.queued import CHANNELS
from softgen.memory import guard
from softgen.threads.dispatch import DispatchContext, ThreadDispatch
from softgen.threads.payload import PayloadWriter, check_length
from softgen.walk_h import WALK_DWORDS

MOST_BYTES = 1 << 20  # of inline data that is collected
MOST_OBJECTS = 4096
FLUSH_DWORDS = 2
GROUP = 16  # threads that a host thread takes together
ALONE = ("children_present", "thread_synchronization", "indirect_data_length")  # objects that Python executes one by one


@cache
def _function(name: str) -> int:
    return ctypes.cast(getattr(load("softgen.media._front_end", object_actor_h), name), ctypes.c_void_p).value or 0


class ObjectKind:
    """Objects that differ in their inline data alone."""

    def __init__(self, command: Record, dwords: list[int]) -> None:
        self.command, inline = command, len(command.inline_data)
        row = -(-4 * inline // GRF_BYTES) * GRF_BYTES
        self.fixed = dwords[: len(dwords) - inline]
        self.data = np.zeros((min(MOST_OBJECTS, MOST_BYTES // row), row // 4), np.uint32)
        self.struct = WalkedObjects(fixed_count=len(self.fixed), inline_count=inline, data=self.data.ctypes.data, row=row // 4,
                                    room=len(self.data))  # fmt: skip
        self.struct.fixed[: len(self.fixed)] = self.fixed


@dataclass(eq=False)
class ObjectRun:
    """Objects that walks of a context have collected; a part of the hardware context, empty between walks."""

    kind: ObjectKind | None = None  # of the last object that Python has executed
    flush: tuple[int, ...] = ()  # the last MEDIA_STATE_FLUSH that Python has executed,
    watermark: bool = False  # and what it asked for
    waiting: int = 0  # objects of `kind` that a walk has left

    def learn(self, cs: Any, front: FrontEnd, command: Record) -> None:
        """Keep the kind of the object being executed, for walks."""
        dwords = cs.command.dwords
        alone = front.state is None or any(optional(command, name) for name in ALONE) or bool(objects.distances(front, command))
        inline = len(command.inline_data)
        if alone or not inline or len(dwords) > WALK_DWORDS or len(dwords) - inline > OBJECT_DWORDS:
            self.kind = None
        elif self.kind is None or dwords[: len(dwords) - inline] != self.kind.fixed:
            self.kind = ObjectKind(command, dwords)

    def learn_flush(self, cs: Any, watermark: bool) -> None:
        self.flush, self.watermark = tuple(cs.command.dwords), watermark

    def run(self, cs: CommandStreamer, front: FrontEnd) -> None:
        """Runs the threads that were collected."""
        count, self.waiting = self.waiting, 0
        if count:
            assert self.kind is not None
            context = dispatch_context(cs)
            cs.run_threads(context, collected(context, front, self.kind, count))

    def __deepcopy__(self, memo: object) -> ObjectRun:
        """A copy of the hardware context has nothing collected."""
        return ObjectRun()


def collected(context: DispatchContext, front: FrontEnd, kind: ObjectKind, count: int) -> ThreadDispatch:
    """The threads of so many objects."""
    command, gen = kind.command, context.generation.number
    held = front_end.descriptor(gen, front, int(command.interface_descriptor_offset), objects.BY)
    fields = front_end.dispatch_fields(context, front, held, False)
    header, constants = objects.header(context, front, fields, command), objects.constants(context, front, command)
    data = ctypes.create_string_buffer(constants, max(len(constants), 1))
    writer = ObjectWriter(constants=ctypes.addressof(data), constant_bytes=len(constants), data=kind.data.ctypes.data,
                          data_bytes=kind.data.strides[0])  # fmt: skip
    writer.header[:] = header.data
    registers = -(-(len(header.data) + len(constants)) // GRF_BYTES) + kind.data.strides[0] // GRF_BYTES
    check_length(registers, "media thread")
    payload = PayloadWriter(_function("object_write"), ctypes.addressof(writer), registers, count=count, owner=(writer, data, kind),
                            slots=header.slots)  # fmt: skip
    scratch = fields["scratch"]
    threads = min(GROUP, scratch.threads) if scratch is not None and scratch.size else GROUP
    return ThreadDispatch(simd=CHANNELS, threads=threads, groups=-(-count // threads), payload=payload, stage="media", barrier=False,
                          **fields)  # fmt: skip


@cache
def object_actor(function: str) -> ObjectActor:
    return ObjectActor(function)


class ObjectActor:
    """The actor of objects, or of flushes between them."""

    collects = True

    def __init__(self, function: str) -> None:
        self.function = function

    def enter(self, cs: Any) -> tuple[int, int] | None:
        """Only Python changes the front end's state, and it does so after the walk."""
        run, front, kind = cs.state(ObjectRun), cs.state(FrontEnd), None
        if not cs.generation.unit_state and cs.dispatcher.prepares and not cs.saved.unfinished and front.group is None:
            kind = run.kind
        if kind is None or len(run.flush) not in (0, FLUSH_DWORDS):
            return None
        kind.struct.flush[:] = run.flush or (0,) * FLUSH_DWORDS
        return _function(self.function), ctypes.addressof(kind.struct)

    def leave(self, cs: Any) -> None:
        run, front = cs.state(ObjectRun), cs.state(FrontEnd)
        now = run.kind.struct
        if now.objects or now.flushes:
            front.used = bool(now.used)
        if now.flushes:
            front.watermark = run.watermark
        cs.counters.dispatches += now.objects
        run.waiting += now.objects
        now.objects = now.flushes = 0
        if run.waiting:
            cs.collected()

    def go_on(self, cs: CommandStreamer, cmd: Record, fault: guard.FaultRecord | None) -> None:
        """Neither leaves a command half done."""

    def settle(self, cs: Any) -> None:
        cs.finish_pipelines()
