"""A client that enqueues a kernel as Intel's OpenCL runtime does, and the same client on a device that prepares no batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from softgen.bits import registers
from softgen.bits.catalogue import catalogue, layout
from softgen.bits.generation import device
from softgen.device.execution import EngineExecution
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.eu.text import dialect
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.context import SavedContext
from softgen.streamer.interface import SubmissionHooks
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.work import Work
from tests.gpgpu.job import ADD, PAGE, SIMD_CODES, words
from tests.gpgpu.job import dwords as packed

COMMANDS, DYNAMIC, SURFACES, CODE, INDIRECT, SOURCE, TARGET, TAGS, ALIAS, FIRST = (0x100000 * number for number in range(1, 11))
SPACES = (COMMANDS, DYNAMIC, SURFACES, CODE, INDIRECT, SOURCE, TARGET, TAGS, FIRST)
STEP = 0x100  # of each heap, for an enqueue
TABLE = 0x80  # of these, where the binding table is
ITEMS = 16


@dataclass
class Enqueue:
    """What is enqueued; a test changes it."""

    number: int
    gpu: str
    descriptor: dict[str, Any] = field(default_factory=dict)
    walker: dict[str, Any] = field(default_factory=dict)
    stall: dict[str, Any] = field(default_factory=lambda: {"command_streamer_stall_enable": 1})
    tag: dict[str, Any] = field(default_factory=dict)
    sources: tuple[int, int] = (SOURCE, TARGET)  # surfaces 0 and 1
    constant: int = 1000
    before: list[list[int]] = field(default_factory=list)  # commands before the walker
    flushed: bool = True  # MEDIA_STATE_FLUSH follows it
    flips: dict[int, int] = field(default_factory=dict)  # bits of the batch's dwords that are inverted
    first: list[list[int]] | None = None  # commands in place of the first flush
    skip: int = 0  # bytes before the interface descriptor

    def pack(self, name: str, **values: Any) -> list[int]:
        return layout(name, device(self.gpu).generation.number).pack(**values)

    @property
    def at(self) -> int:
        """Where its pieces of the heaps begin, and its commands."""
        return self.number * STEP

    def batch(self) -> bytes:
        tag = {"command_streamer_stall_enable": 1, "dc_flush_enable": 1, "notify_enable": 1, "post_sync_operation": 1, "address": TAGS,
               "immediate_data": self.number + 1, **self.tag}  # fmt: skip
        walker = {"simd_size": SIMD_CODES[ITEMS], "thread_group_id_x_dimension": 2, "thread_group_id_y_dimension": 1,
                  "thread_group_id_z_dimension": 1, "right_execution_mask": 0xFFFF, "bottom_execution_mask": 0xFFFFFFFF,
                  "indirect_data_length": 64, "indirect_data_start_address": self.at, **self.walker}  # fmt: skip
        commands = [
            *([self.pack("MEDIA_STATE_FLUSH")] if self.first is None else self.first),
            self.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=32,
                      interface_descriptor_data_start_address=self.at + self.skip),
            *self.before, self.pack("GPGPU_WALKER", **walker), *([self.pack("MEDIA_STATE_FLUSH")] if self.flushed else []),
            self.pack("PIPE_CONTROL", **self.stall), self.pack("PIPE_CONTROL", **tag), self.pack("MI_BATCH_BUFFER_END"),
        ]  # fmt: skip
        found = [dword for command in commands for dword in command]
        for number, bits in self.flips.items():
            found[number] ^= bits
        return packed(*found)

    def pieces(self) -> dict[int, bytes]:
        """Memory that it writes, as a driver would."""
        values = {"binding_table_pointer": self.at + TABLE, "number_of_threads_in_gpgpu_thread_group": 1,
                  "constant_urb_entry_read_length": 1, "cross_thread_constant_data_read_length": 1, **self.descriptor}  # fmt: skip
        surface = {"surface_type": 4, "surface_format": 0x1FF, "width": 127, "height": 0}
        states = [packed(*self.pack("RENDER_SURFACE_STATE", surface_base_address=address, **surface)) for address in self.sources]
        return {
            COMMANDS + self.at: self.batch(),
            DYNAMIC + self.at + self.skip: packed(*self.pack("INTERFACE_DESCRIPTOR_DATA", **values)),
            SURFACES + self.at: b"".join(states).ljust(TABLE, b"\0") + packed(self.at, self.at + 64),
            INDIRECT + self.at: packed(self.constant, *[0] * 7) + words(*range(ITEMS)),
        }  # fmt: skip


def bases(gpu: str, **values: int) -> list[int]:
    given = {"surface_state_base_address": SURFACES, "dynamic_state_base_address": DYNAMIC, "instruction_base_address": CODE,
             "general_state_base_address": 0, "indirect_object_base_address": INDIRECT, **values}  # fmt: skip
    return Enqueue(0, gpu).pack("STATE_BASE_ADDRESS", **given, **{f"{name}_modify_enable": 1 for name in given})


@cache
def code(gpu: str) -> bytes:
    return bytes(dialect.read(ADD, device(gpu).generation.number))


class Client:
    """Memory, a device, and a hardware context. `prepares`: as it is; otherwise every batch is executed command by command."""

    def __init__(self, gpu: str, prepares: bool, engine: str = "t0") -> None:
        self.gpu, self.prepares, self.errors = gpu, prepares, list[str]()
        self.device = GpuDevice(device(gpu), clock=lambda: 0x1234)
        self.space = AddressSpace("client", device(gpu).generation.address_bits)
        self.buffers = {address: MemfdBuffer(0x10 * PAGE, f"{address:#x}") for address in SPACES}
        for address, buffer in self.buffers.items():
            self.space.map(address, buffer)
        self.space.map(ALIAS, self.buffers[COMMANDS])
        self.polls = 0
        self.timed_out: Callable[[], bool] = lambda: False
        self.hooks = SubmissionHooks(self._poll, self._failed, EngineDispatcher(engine, 1))
        self.contexts: dict[str, SavedContext] = {}
        self.last: dict[str, EngineExecution] = {}
        self.space.write(CODE, code(gpu))
        self.space.write(SOURCE, packed(*range(64)))
        self.run(bases(gpu), Enqueue(0, gpu).pack("MEDIA_VFE_STATE"))

    def _poll(self) -> bool:
        self.polls += 1
        return self.polls > 1000 or self.timed_out()

    def _failed(self, error: SoftgenError) -> bool:
        self.errors.append(f"{type(error).__name__}: {error}")
        return True

    def run(self, *commands: list[int], context: str = "") -> None:
        """A batch of other commands."""
        end = Enqueue(0, self.gpu).pack("MI_BATCH_BUFFER_END")
        self.space.write(FIRST, packed(*(dword for command in (*commands, end) for dword in command)))
        self.submit(FIRST, context)

    def submit(self, batch: int, context: str = "") -> None:
        """Execute a batch as the driver does; what goes wrong is in `errors`."""
        saved = self.contexts.setdefault(context, self.device.new_context("render"))
        last, self.polls = self.last.pop(context, None), 0
        if last is not None and self.prepares:
            execution = self.device.begin_again(last, batch)
        else:
            execution = self.device.begin(Work("render", self.space, batch), saved, self.hooks)
        try:
            if not execution.run():
                self.errors.append(str(execution.stuck()))
                return
            self.last[context] = execution
        except SoftgenError as error:
            self.errors.append(f"ended: {type(error).__name__}: {error}")

    def enqueue(self, job: Enqueue, context: str = "", changes: dict[int, bytes] | None = None) -> None:
        for address, data in {**job.pieces(), **(changes or {})}.items():
            self.space.write(address, data)
        self.submit(COMMANDS + job.at, context)

    def shown(self) -> dict[str, Any]:
        """All that a program or a person can see."""
        gen, base = self.device.generation.number, registers.bases(self.device.generation.number)["render"][0]
        seen = {name: self.device.read_register(base + (catalogue().layout(name, gen).offset or 0)) for name in ("IPEHR", "ACTHD")}
        return {"memory": {address: bytes(buffer.view) for address, buffer in self.buffers.items()}, "errors": self.errors, **seen,
                "remarks": list(self.device.remarks), "counters": self.device.counters, "interrupts": list(self.device.interrupts.events),
                "flushed": {name: saved.unflushed for name, saved in self.contexts.items()}}  # fmt: skip


GPUS = ("bdw", "skl", "kbl", "icl")
Scenario = Callable[[Client], None]


def compare(gpu: str, scenario: Scenario, engine: str = "t0") -> Client:
    """Both ways; the client that prepares."""
    clients = [Client(gpu, prepares, engine) for prepares in (True, False)]
    for client in clients:
        scenario(client)
    shown, expected = (client.shown() for client in clients)
    for what, value in expected.items():
        assert shown[what] == value, what
    return clients[0]


def enqueues(client: Client, *jobs: Enqueue) -> None:
    for job in jobs:
        client.enqueue(job)


def watermark(gpu: str) -> dict[str, int]:
    return {"watermark_required": 1} if gpu != "icl" else {}
