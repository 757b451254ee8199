"""Enqueues as Intel's OpenCL runtime makes them, without the runtime: Python bytecodes in the server, and processor time.

A client speaks to a server as shim.c does, and submits what the runtime was seen to submit (captures of it, for Kaby Lake). It fills
command buffer and heaps one enqueue after another: batch, interface descriptor, binding table, surface state and indirect data are at new
addresses each time, and the tag that the last PIPE_CONTROL writes is another number. Base addresses come with the first batch, and when a
heap is full.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import softgen
from bench import Measurement
from bench._program import kernel
from softgen.api.kernels import Grid, local_ids
from softgen.api.state import Dispatch, Packer
from softgen.bits.generation import device
from softgen.bits.units import GRF_BYTES
from softgen.driver.queue.execute import Executor
from softgen.driver.queue.queue import Queues
from softgen.threads.dispatcher import EngineDispatcher
from tests.driver.program import Program, served

GPU = "kbl"
HEAP = 64 << 10
PAGE = 4096
PINNED = 1 << 4 | 1 << 3  # EXEC_OBJECT_PINNED, EXEC_OBJECT_SUPPORTS_48B_ADDRESS
NO_RELOCATIONS = 1 << 11  # I915_EXEC_NO_RELOC
OTHERS = 4  # buffers that the runtime lists besides: scratch space, system routine, …
LINE = 64
ITEMS, GROUP = 2048, 256  # work items
CONTEXT_TIME, TIMES = 0x23A8, 32  # a register; lines in which enqueues keep times in turn
WARM, COUNTED, ROUNDS, TIMED = 150, 96, 3, 1000
EMPTY = "(W) mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud\n(W) send (8|M0) null r127 0x27 0x02000010 {EOT}\n"
GOALS = {"an empty kernel": 4000, "saxpy, the same buffers": 4000, "saxpy, two sets of buffers in turn": 6000,
         "saxpy, with profiling": 6000}  # fmt: skip   bytecodes


class Bo:
    """A buffer object of the client, mapped, at an address of its own."""

    addresses = iter(range(1 << 32, 1 << 47, 1 << 26))

    def __init__(self, program: Program, size: int) -> None:
        self.size, self.address, self.used = size, next(self.addresses), 0
        self.handle = program.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=size).handle
        offset = program.ioctl("DRM_IOCTL_I915_GEM_MMAP_OFFSET", handle=self.handle, flags=2).offset
        descriptor, at = program.mmap(offset, size)
        self.view = mmap.mmap(descriptor, size, offset=at)
        os.close(descriptor)

    def add(self, data: bytes) -> int:
        """Append bytes at the next cache line; their offset."""
        at = -(-self.used // LINE) * LINE
        self.view[at : at + len(data)] = data
        self.used = at + len(data)
        return at


@dataclass(frozen=True)
class Arguments:
    """What a kernel is enqueued with."""

    surfaces: tuple[bytes, ...]
    cross_thread: bytes
    buffers: tuple[Bo, ...]


class Client:
    """A command queue of the runtime, with one kernel."""

    def __init__(self, program: Program, code: bytes, simd: int, profiling: bool = False) -> None:
        self.program, self.packer, self.simd, self.profiling = program, Packer(device(GPU)), simd, profiling
        self.commands, self.first, self.isa, self.tags = (Bo(program, size) for size in (HEAP, HEAP, PAGE, PAGE))
        self.heaps = [Bo(program, HEAP) for _ in range(3)]  # dynamic state, surface state, indirect data
        self.others = [Bo(program, PAGE) for _ in range(OTHERS)]
        self.isa.add(code)
        self.per_thread = local_ids(Grid((ITEMS, 1, 1), (GROUP, 1, 1)), simd)
        self.tag = 0

    def enqueue(self, arguments: Arguments) -> None:
        """Submit the kernel and wait for it: the runtime polls the tag, and asks the driver to wait if that takes too long."""
        full = any(heap.used > HEAP - PAGE for heap in (*self.heaps, self.commands))
        if full or not self.tag:
            for bo in (*self.heaps, self.commands, self.first):
                bo.used = 0
        self.tag += 1
        batch, start = self.commands, self.commands.add(self._commands(arguments))
        listed = [*arguments.buffers, self.isa, *self.heaps, self.tags, *self.others, batch]
        if full or self.tag == 1:
            batch, start = self.first, self.first.add(self._preamble(batch.address + start))
            listed.append(batch)
        self._submit(listed, start)
        while struct.unpack_from("<I", self.tags.view)[0] != self.tag:
            self.program.ioctl("DRM_IOCTL_I915_GEM_WAIT", handle=batch.handle, timeout=10**11)

    def _preamble(self, target: int) -> bytes:
        dynamic, surface, indirect = (heap.address for heap in self.heaps)
        pack, flush = self.packer.pack, self.packer.pack("PIPE_CONTROL", command_streamer_stall_enable=1, dc_flush_enable=1)
        l3 = pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x7034, "data_dword": 0x60000321}])
        return (flush + l3 + self.packer.front_end(0, 0) + flush + self.packer.bases(0, surface, dynamic, indirect, self.isa.address)
                + flush + pack("MI_BATCH_BUFFER_START", batch_buffer_start_address=target, address_space_indicator=1))  # fmt: skip

    def _commands(self, arguments: Arguments) -> bytes:
        (dynamic, surface, indirect), pack = self.heaps, self.packer.pack
        entries = [pack("BINDING_TABLE_STATE", surface_state_pointer=surface.add(state)) for state in arguments.surfaces]
        data = arguments.cross_thread + b"".join(self.per_thread)
        dispatch = Dispatch(
            simd=self.simd, group_threads=len(self.per_thread), groups=(ITEMS // GROUP, 1, 1), indirect=(indirect.add(data), len(data)),
            per_thread=len(self.per_thread[0]) // GRF_BYTES, cross_thread=len(arguments.cross_thread) // GRF_BYTES,
            binding_table=surface.add(b"".join(entries)) if entries else 0)  # fmt: skip
        dispatch.descriptor = dynamic.add(self.packer.descriptor(dispatch))
        stall = pack("PIPE_CONTROL", command_streamer_stall_enable=1)
        tag = pack("PIPE_CONTROL", command_streamer_stall_enable=1, dc_flush_enable=1, notify_enable=1, post_sync_operation=1,
                   address=self.tags.address, immediate_data=self.tag)  # fmt: skip
        before, after = (self._times(number) for number in range(2)) if self.profiling else (b"", b"")
        return pack("MEDIA_STATE_FLUSH") + before + self.packer.dispatch(dispatch) + after + stall + tag + self.packer.end()

    def _times(self, number: int) -> bytes:
        """The time of the device and of the context, as a queue with profiling keeps them before and after a kernel."""
        at, pack = self.tags.address + LINE * (1 + 2 * self.tag % TIMES + number), self.packer.pack
        return (pack("PIPE_CONTROL", command_streamer_stall_enable=1)
                + pack("PIPE_CONTROL", command_streamer_stall_enable=1, post_sync_operation=3, address=at)
                + pack("MI_STORE_REGISTER_MEM", register_address=CONTEXT_TIME, memory_address=at + 8))  # fmt: skip

    def _submit(self, buffers: list[Bo], start: int) -> None:
        self.program.kept.clear()
        rows = self.program.memory(b"".join(struct.pack("<IIQQQQQQ", bo.handle, 0, 0, 0, bo.address, PINNED, 0, 0) for bo in buffers))
        self.program.ioctl("DRM_IOCTL_I915_GEM_EXECBUFFER2", buffers=rows.address, count=len(buffers), start=start, flags=NO_RELOCATIONS)


class Bytecodes:
    """Counts the bytecodes that threads execute which start after `installed`, while `counting`."""

    def __init__(self) -> None:
        self.counting, self.counts = False, Counter[CodeType]()

    @contextmanager
    def installed(self) -> Iterator[None]:
        threading.settrace(self._called)
        try:
            yield
        finally:
            threading.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._executed

    def _executed(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "opcode" and self.counting:
            self.counts[frame.f_code] += 1
        return self._executed


def arguments_of(client: Client, x: Bo, y: Bo) -> Arguments:
    """The arguments of saxpy."""
    launch, packer = kernel("saxpy").launch, client.packer
    payload = bytearray(launch.payload_bytes)
    values = {"local_size": struct.pack("<3I", GROUP, 1, 1), "enqueued_local_size": struct.pack("<3I", GROUP, 1, 1),
              "arg_byvalue": struct.pack("<f", 0.5), "global_id_offset": bytes(12)}  # fmt: skip
    for slot in launch.values:
        data = struct.pack("<Q", (x, y)[slot.argument].address) if slot.kind == "buffer_address" else values[slot.kind]
        payload[slot.offset : slot.offset + slot.size] = data[: slot.size]
    return Arguments((packer.raw(x.address, x.size), packer.raw(y.address, y.size)), bytes(payload), (x, y))


def clients(program: Program) -> Iterator[tuple[str, Client, list[Arguments]]]:
    """What is enqueued, and with which arguments in turn."""
    yield "an empty kernel", Client(program, softgen.assemble(EMPTY, GPU), 32), [Arguments((), bytes(2 * GRF_BYTES), ())]
    for what, sets, profiling in (("saxpy, the same buffers", 1, False), ("saxpy, two sets of buffers in turn", 2, False),
                                  ("saxpy, with profiling", 1, True)):  # fmt: skip
        client = Client(program, kernel("saxpy").code, kernel("saxpy").simd, profiling)
        yield what, client, [arguments_of(client, Bo(program, 4 * ITEMS), Bo(program, 4 * ITEMS)) for _ in range(sets)]


@contextmanager
def program_of_server() -> Iterator[Program]:
    executor = Executor(device(GPU), [], lambda submission, text: "", print, new_dispatcher=lambda: EngineDispatcher("auto", 1))
    with served(GPU, Queues(executor.execute, executor.failed)) as gpu:
        yield gpu.program()


def counted() -> Iterator[tuple[str, Counter[CodeType]]]:
    """The bytecodes of enqueues, by function: the round with the fewest, for what other threads do in the background only adds."""
    bytecodes = Bytecodes()
    with bytecodes.installed(), program_of_server() as program:
        for what, client, arguments in clients(program):
            for number in range(WARM):
                client.enqueue(arguments[number % len(arguments)])
            rounds = []
            for _ in range(ROUNDS):
                bytecodes.counts, bytecodes.counting = Counter(), True
                for number in range(COUNTED):
                    client.enqueue(arguments[number % len(arguments)])
                bytecodes.counting = False
                rounds.append(bytecodes.counts)
            yield what, min(rounds, key=Counter.total)


def timed() -> Iterator[tuple[str, float]]:
    """Seconds of processor time of enqueues, those of the client without it."""
    with program_of_server() as program:
        for what, client, arguments in clients(program):
            taken = []
            for number in range(WARM + TIMED):
                began, own = time.process_time(), time.thread_time()
                client.enqueue(arguments[number % len(arguments)])
                taken.append(time.process_time() - began - (time.thread_time() - own))
            yield what, sorted(taken[WARM:])[TIMED // 2]


def measure() -> Iterator[Measurement]:
    times = dict(timed())
    for what, counts in counted():
        number = counts.total() / COUNTED
        yield Measurement(f"enqueue of {what}", 1, "", number, "the goal", GOALS[what],
                          f"{number:,.0f} bytecodes, {times[what] * 1e6:.0f} µs; goal {GOALS[what]:,}", "bytecodes")  # fmt: skip


if __name__ == "__main__":
    for name, found in counted():
        print(f"{name}: {found.total() / COUNTED:,.0f}")
        for code, count in found.most_common(int(sys.argv[1]) if len(sys.argv) > 1 else 30):
            print(f"  {count / COUNTED:8.1f}  {code.co_qualname}  {code.co_filename.rpartition('softgen/')[2]}:{code.co_firstlineno}")
