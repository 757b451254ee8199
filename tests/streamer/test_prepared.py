"""Prepared batches against the same batches executed command by command.

A client enqueues a kernel as Intel's OpenCL runtime does: command buffer and heaps are filled one enqueue after another. Between two
enqueues something changes; memory, remarks, counters, registers and errors must be those of a device that prepares nothing.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from softgen.bits import registers
from softgen.bits.catalogue import catalogue, layout
from softgen.bits.generation import device
from softgen.device.execution import EngineExecution
from softgen.device.gpu import PREPARED, GpuDevice
from softgen.errors import SoftgenError
from softgen.eu.text import dialect
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.streamer.context import SavedContext
from softgen.streamer.execute import Streamer
from softgen.streamer.interface import SubmissionHooks
from softgen.streamer.prepared import PreparedBatches, prepare
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.work import Work
from tests.gpgpu.job import ADD, PAGE, SIMD_CODES, words
from tests.gpgpu.job import dwords as packed

COMMANDS, DYNAMIC, SURFACES, CODE, INDIRECT, SOURCE, TARGET, TAGS, ALIAS, FIRST = (0x100000 * number for number in range(1, 11))
SPACES = (COMMANDS, DYNAMIC, SURFACES, CODE, INDIRECT, SOURCE, TARGET, TAGS, FIRST)
STEP = 0x100  # of each heap, for an enqueue
TABLE = 0x80  # of these, where the binding table is
ITEMS = 16
GPUS = ("bdw", "skl", "kbl", "icl")


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


Scenario = Callable[[Client], None]


@pytest.fixture
def prepared_runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batches that were executed as prepared ones, by their addresses."""
    found: list[int] = []
    run = Streamer._run_prepared

    def counted(self: Streamer, place: Any, batch: Any) -> None:
        found.append(place.start)
        run(self, place, batch)

    monkeypatch.setattr(Streamer, "_run_prepared", counted)
    return found


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


@pytest.mark.parametrize("gpu", GPUS)
def test_enqueues_are_prepared_and_come_to_the_same(gpu: str, prepared_runs: list[int]) -> None:
    jobs = [Enqueue(number, gpu, constant=1000 + number) for number in range(6)]
    client = compare(gpu, lambda client: enqueues(client, *jobs))
    assert prepared_runs == [COMMANDS + job.at for job in jobs[1:]]
    assert client.space.read(TARGET, 128) == packed(*(1005 + number for number in range(32)))
    assert client.space.read32(TAGS) == 6 and not client.errors


# -- each change between two enqueues ------------------------------------------------------------------------------


def changed(gpu: str, **values: Any) -> Scenario:
    """Some of the enqueues are others."""
    jobs = [Enqueue(number, gpu, **values if number in (2, 3, 4, 6) else {}) for number in range(8)]
    return lambda client: enqueues(client, *jobs)


CHANGES: dict[str, dict[str, Any]] = {
    "constants": {"constant": 5},
    "another source": {"sources": (SOURCE + 64, TARGET)},
    "surfaces in turn": {"sources": (TARGET, SOURCE)},
    "unmapped surface": {"sources": (SOURCE, 0x7000_0000)},
    "the kernel elsewhere": {"descriptor": {"kernel_start_pointer": 0x40}},
    "no kernel": {"descriptor": {"kernel_start_pointer": 0x8000_0000}},
    "local memory": {"descriptor": {"shared_local_memory_size": 3}},
    "a barrier": {"descriptor": {"barrier_enable": 1}},
    "threads of a group": {"descriptor": {"number_of_threads_in_gpgpu_thread_group": 2}},
    "two threads": {"descriptor": {"number_of_threads_in_gpgpu_thread_group": 2, "constant_urb_entry_read_length": 0},
                    "walker": {"thread_width_counter_maximum": 1}},
    "more constants than fetched": {"descriptor": {"cross_thread_constant_data_read_length": 4}},
    "rounding": {"descriptor": {"rounding_mode": 1}},
    "samplers": {"descriptor": {"sampler_state_pointer": 0x40}},
    "the binding table nowhere": {"descriptor": {"binding_table_pointer": 0xF000}},
    "groups": {"walker": {"thread_group_id_x_dimension": 1}},
    "no groups": {"walker": {"thread_group_id_x_dimension": 0}},
    "first group": {"walker": {"thread_group_id_starting_x": 1}},
    "masks": {"walker": {"right_execution_mask": 0xFF}},
    "channels": {"walker": {"simd_size": 0}},
    "predicate": {"walker": {"predicate_enable": 1}},
    "dimensions in registers": {"walker": {"indirect_parameter_enable": 1}},
    "descriptor that is not loaded": {"walker": {"interface_descriptor_offset": 1}},
    "less data": {"walker": {"indirect_data_length": 32}},
    "odd data": {"walker": {"indirect_data_length": 60}},
    "data nowhere": {"walker": {"indirect_data_start_address": 0x8000_0000}},
    "another tag": {"tag": {"immediate_data": 0x1234_5678_9ABC}},
    "the tag elsewhere": {"tag": {"address": TAGS + 0x100}},
    "the tag nowhere": {"tag": {"address": 0x7000_0000}},
    "a timestamp": {"tag": {"post_sync_operation": 3}},
    "the depth count": {"tag": {"post_sync_operation": 2}},
    "no tag": {"tag": {"post_sync_operation": 0}},
    "a register": {"tag": {"post_sync_operation": 0, "lri_post_sync_operation": 1, "address": 0x2600}},
    "the status page": {"tag": {"store_data_index": 1, "address": 0}},
    "the global table": {"tag": {"destination_address_type": 1}},
    "no interrupt": {"tag": {"notify_enable": 0}},
    "no stall": {"stall": {"render_target_cache_flush_enable": 1}},
    "a broken rule": {"stall": {}},
    "descriptors out of line": {"skip": 32},
}  # fmt: skip


@pytest.mark.parametrize("gpu", ["kbl", "icl"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_counts(change: str, gpu: str) -> None:
    compare(gpu, changed(gpu, **CHANGES[change]))


@pytest.mark.parametrize("gpu", ["kbl", "icl"])
def test_rules_are_checked_each_time(gpu: str, prepared_runs: list[int]) -> None:
    """A flush right before the walker that asks for the watermark; descriptors that are loaded while the last ones may be in use."""
    flush = Enqueue(0, gpu).pack("MEDIA_STATE_FLUSH", **watermark(gpu))
    jobs = [*(Enqueue(number, gpu, before=[flush]) for number in range(3)),
            *(Enqueue(number, gpu, first=[], flushed=False) for number in range(3, 6))]  # fmt: skip
    client = compare(gpu, lambda client: enqueues(client, *jobs))
    said = "\n".join(client.device.remarks)
    assert said.count("checks the watermark") == (3 if watermark(gpu) else 0) and said.count("descriptors have been used") == 2
    assert len(prepared_runs) == 4


@pytest.mark.parametrize("seed", range(4))
def test_each_bit_of_a_batch(seed: int) -> None:
    """One bit of each dword, another one for each seed; not so many groups that it takes long."""
    chance, plain, gpu = random.Random(seed), Enqueue(2, "kbl").batch(), "kbl"
    for number in range(len(plain) // 4):
        job = Enqueue(2, gpu, flips={number: 1 << chance.randrange(32)})
        walker = catalogue().layout("GPGPU_WALKER", 9.0).raw(struct.unpack_from("<15I", job.batch(), 24))
        if max(walker.thread_group_id_x_dimension, walker.thread_group_id_y_dimension, walker.thread_group_id_z_dimension) > 64:
            continue
        compare(gpu, lambda client, job=job: enqueues(client, Enqueue(0, gpu), Enqueue(1, gpu), job, Enqueue(3, gpu)))  # type: ignore[misc]


STATE: dict[str, Callable[[str], list[list[int]]]] = {
    "surface base": lambda gpu: [bases(gpu, surface_state_base_address=SURFACES + 0x1000)],
    "dynamic base": lambda gpu: [bases(gpu, dynamic_state_base_address=DYNAMIC + 0x1000)],
    "indirect base": lambda gpu: [bases(gpu, indirect_object_base_address=INDIRECT + 0x1000)],
    "instruction base": lambda gpu: [bases(gpu, instruction_base_address=CODE + 0x1000)],
    "scratch space": lambda gpu: [Enqueue(0, gpu).pack("MEDIA_VFE_STATE", per_thread_scratch_space=1, scratch_space_base_pointer=0x400)],
    "pipeline": lambda gpu: [Enqueue(0, gpu).pack("PIPELINE_SELECT", pipeline_selection=0, mask_bits=3)],
    "the same bases": lambda gpu: [bases(gpu)],
    "a walker without a flush": lambda gpu: [Enqueue(0, gpu).pack("MEDIA_STATE_FLUSH", **watermark(gpu))],
    "a descriptor load": lambda gpu: [Enqueue(0, gpu).pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=64,
                                                           interface_descriptor_data_start_address=0)],
    "half a thread group": lambda gpu: [Enqueue(0, gpu).pack("MEDIA_OBJECT_GRPID")],
}  # fmt: skip


def watermark(gpu: str) -> dict[str, int]:
    return {"watermark_required": 1} if gpu != "icl" else {}


@pytest.mark.parametrize("gpu", ["kbl", "icl"])
@pytest.mark.parametrize("what", STATE)
def test_state_between_enqueues(what: str, gpu: str) -> None:
    def scenario(client: Client) -> None:
        enqueues(client, Enqueue(0, gpu), Enqueue(1, gpu))
        for number in (SURFACES, DYNAMIC, INDIRECT, CODE):  # the same at other addresses, but for the constant
            client.space.write(number + 0x1000, client.space.read(number, 0x1000).replace(packed(1000), packed(77)))
        client.run(*STATE[what](gpu))
        enqueues(client, Enqueue(2, gpu), Enqueue(3, gpu))
        client.run(bases(gpu))
        enqueues(client, Enqueue(4, gpu), Enqueue(5, gpu))

    compare(gpu, scenario)


def test_kernel_bytes_change(prepared_runs: list[int]) -> None:
    def scenario(client: Client) -> None:
        enqueues(client, Enqueue(0, "kbl"), Enqueue(1, "kbl"))
        client.space.write(CODE, bytes(dialect.read(ADD.replace("add (16|M0) r12", "xor (16|M0) r12"), 9.0)))
        enqueues(client, Enqueue(2, "kbl"), Enqueue(3, "kbl"))

    for engine in ("reference", "t0", "t1"):
        client = compare("kbl", scenario, engine)
        assert client.space.read(TARGET, 128) == packed(*(1000 ^ number for number in range(32)))
    assert prepared_runs.count(COMMANDS + 2 * STEP) == 3


@pytest.mark.parametrize("place", ["binding table", "surface state", "descriptor", "constants"])
def test_memory_changes_in_place(place: str, prepared_runs: list[int]) -> None:
    """The same batch is submitted again; memory that it leads to is another one."""
    job = Enqueue(1, "kbl")
    other = Enqueue(1, "kbl", sources=(SOURCE + 64, TARGET), constant=9, descriptor={"kernel_start_pointer": 0x8000})
    addresses = {"binding table": SURFACES + STEP + TABLE, "surface state": SURFACES + STEP, "descriptor": DYNAMIC + STEP,
                 "constants": INDIRECT + STEP}  # fmt: skip
    address = addresses[place]
    data = packed(STEP + 64, STEP) if place == "binding table" else other.pieces()[address]

    def scenario(client: Client) -> None:
        enqueues(client, Enqueue(0, "kbl"), job, job)
        client.space.write(address, data)
        client.submit(COMMANDS + STEP)
        client.submit(COMMANDS + STEP)
        enqueues(client, job)

    compare("kbl", scenario)
    assert prepared_runs == [COMMANDS + STEP] * 5


# -- batches that change while they run ----------------------------------------------------------------------------


def flush_offset(job: Enqueue) -> int:
    return len(job.batch()) - 4 - 24  # of the flush that writes the tag


@pytest.mark.parametrize("through", [COMMANDS, ALIAS], ids=["its own address", "another address of the same memory"])
def test_a_flush_writes_into_its_batch(through: int, prepared_runs: list[int]) -> None:
    """The flush before the last one changes what the last one writes, and the last one the end."""
    gpu = "kbl"

    def job(number: int, own: bool) -> Enqueue:
        made = Enqueue(number, gpu)
        target = through + made.at + flush_offset(made) + 16 if own else TAGS + 8
        made.stall = {"command_streamer_stall_enable": 1, "post_sync_operation": 1, "address": target, "immediate_data": 0xAAAA}
        return made

    def store(number: int, own: bool) -> Enqueue:
        """The tag takes the place of the end: MI_NOOP twice, and then another end."""
        made = job(number, False)
        address = through + made.at + len(made.batch()) - 4 if own else TAGS
        made.tag = {"address": address & ~7, "immediate_data": 0}
        return made

    def scenario(client: Client) -> None:
        enqueues(client, job(0, False), job(1, False), job(2, True), job(3, False), store(4, False))
        last = store(5, True)
        client.enqueue(last, changes={COMMANDS + last.at + len(last.batch()): packed(*last.pack("MI_BATCH_BUFFER_END"))})

    client = compare(gpu, scenario)
    assert len(prepared_runs) == 5
    assert client.space.read32(TAGS) == 0 and client.device.counters.dispatches == 6


def test_a_kernel_writes_into_its_batch(prepared_runs: list[int]) -> None:
    """Surface 1 is the batch itself: from the command after the walker on all is MI_NOOP until the end of what the kernel wrote."""
    gpu = "kbl"

    def scenario(client: Client) -> None:
        enqueues(client, Enqueue(0, gpu), Enqueue(1, gpu))
        job = Enqueue(2, gpu)
        walker_end = 8 + 16 + 60
        job.sources = SOURCE + 0x800, COMMANDS + job.at + walker_end
        job.constant = 0
        noops = len(job.batch()) - walker_end
        end = packed(*job.pack("PIPE_CONTROL", post_sync_operation=1, address=TAGS, immediate_data=99), *job.pack("MI_BATCH_BUFFER_END"))
        client.space.write(SOURCE + 0x800, bytes(noops) + end + bytes(128 - noops - len(end)))
        client.enqueue(job)

    client = compare(gpu, scenario)
    assert len(prepared_runs) == 2 and client.space.read32(TAGS) == 99


# -- contexts, faults, time ----------------------------------------------------------------------------------------


def test_another_context_with_the_same_batch(prepared_runs: list[int]) -> None:
    def scenario(client: Client) -> None:
        enqueues(client, Enqueue(0, "kbl"), Enqueue(1, "kbl"))
        client.submit(COMMANDS + STEP, "new")  # no base addresses
        client.space.write(INDIRECT + 0x1000, (packed(77, *[0] * 7) + words(*range(ITEMS))).ljust(STEP, b"\0") * 5)
        client.run(bases("kbl", indirect_object_base_address=INDIRECT + 0x1000), context="other")
        for number in range(2, 5):
            client.enqueue(Enqueue(number, "kbl"), "other")
            client.enqueue(Enqueue(number, "kbl"))

    compare("kbl", scenario)
    assert len(prepared_runs) == 6


def test_a_buffer_is_unmapped_and_mapped_again(prepared_runs: list[int]) -> None:
    def scenario(client: Client) -> None:
        enqueues(client, Enqueue(0, "kbl"), Enqueue(1, "kbl"))
        client.space.unmap(TARGET, 0x10 * PAGE)
        enqueues(client, Enqueue(2, "kbl"), Enqueue(3, "kbl"))
        client.space.map(TARGET, client.buffers[SOURCE])
        enqueues(client, Enqueue(4, "kbl"), Enqueue(5, "kbl"))
        client.space.unmap(COMMANDS, 0x10 * PAGE)
        client.submit(COMMANDS + STEP)

    client = compare("kbl", scenario)
    assert len(prepared_runs) == 5 and len(client.errors) == 3


@pytest.mark.parametrize("polls", range(1, 5))
def test_time_is_up(polls: int, prepared_runs: list[int]) -> None:
    """Before, in or after the kernel: the submission ends, and the next one is executed."""
    client = Client("kbl", True)
    enqueues(client, Enqueue(0, "kbl"), Enqueue(1, "kbl"))
    client.timed_out = lambda: client.polls >= polls
    client.enqueue(Enqueue(2, "kbl"))
    ended = any("time is up" in error for error in client.errors)
    assert ended == (polls <= 2) and client.space.read32(TAGS) == (2 if ended else 3)
    client.timed_out = lambda: False
    client.enqueue(Enqueue(3, "kbl"))
    assert client.space.read32(TAGS) == 4 and len(prepared_runs) == 3 - ended


def test_a_watchdog_sees_every_command(prepared_runs: list[int]) -> None:
    client = Client("icl", True)
    enqueues(client, Enqueue(0, "icl"), Enqueue(1, "icl"))
    watchdog = next(iter(client.device.watchdogs.values()))
    client.device.registers.write(watchdog.control, 0xFFFFFFFF)
    enqueues(client, Enqueue(2, "icl"))
    assert len(prepared_runs) == 1 and client.space.read32(TAGS) == 3


def test_predicates_are_read(prepared_runs: list[int]) -> None:
    """Predicated walkers are not prepared; plain ones do not look."""
    gpu = "kbl"
    clear = Enqueue(0, gpu).pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x2418, "data_dword": 0}])

    def scenario(client: Client) -> None:
        enqueues(client, Enqueue(0, gpu), Enqueue(1, gpu), Enqueue(2, gpu, walker={"predicate_enable": 1}))
        client.run(clear)
        enqueues(client, *(Enqueue(number, gpu, walker={"predicate_enable": number % 2}) for number in range(3, 7)))

    compare(gpu, scenario)
    assert prepared_runs == [COMMANDS + number * STEP for number in (1, 4, 6)]


# -- preparing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", ["PIPE_CONTROL", "GPGPU_WALKER", "MEDIA_INTERFACE_DESCRIPTOR_LOAD"])
def test_places_of_fields(gpu: str, name: str) -> None:
    """A varying field reads as its command's record has it."""
    chance, client, page = random.Random(5), Client(gpu, True), catalogue().layout(name, device(gpu).generation.number)
    asked = {"PIPE_CONTROL": ("address", "immediate_data"), "GPGPU_WALKER": ("indirect_data_start_address",),
             "MEDIA_INTERFACE_DESCRIPTOR_LOAD": ("interface_descriptor_data_start_address",)}[name]  # fmt: skip
    streamer: Any = client.last[""].streamer
    seen: dict[str, Any] = {}

    def preparer(cs: Any, values: Any, place: Any) -> Any:
        seen.update({field: place(field) for field in asked})
        return lambda cs, batch: None

    streamer.device = type(streamer.device)(**{**vars(streamer.device), "prepared": {name: preparer}})
    header = page.pack()
    batch = packed(*header, *header, *Enqueue(0, gpu).pack("MI_BATCH_BUFFER_END"))
    prepared = prepare(streamer, batch)
    assert prepared is not None
    bits = chance.getrandbits(8 * len(batch)) & ~prepared.mask | prepared.value
    dwords = struct.unpack(f"<{len(batch) // 4}I", bits.to_bytes(len(batch), "little"))
    record = page.raw(dwords[len(header) : 2 * len(header)])
    assert {field: place.value(bits) for field, place in seen.items()} == {field: getattr(record, field) for field in asked}
    assert any(getattr(record, field) for field in asked)


def test_what_is_not_prepared() -> None:
    """Calls, chains, latched state, semaphores and registers; a batch without an end; one that is too long."""
    streamer: Any = Client("kbl", True).last[""].streamer
    flush, pack = packed(*Enqueue(0, "kbl").pack("MEDIA_STATE_FLUSH")), Enqueue(0, "kbl").pack
    end = packed(*pack("MI_BATCH_BUFFER_END"))
    assert prepare(streamer, flush + end) is not None
    others = [pack("MI_BATCH_BUFFER_START"), pack("STATE_BASE_ADDRESS"), pack("MI_SEMAPHORE_WAIT"), pack("MI_LOAD_REGISTER_MEM"),
              pack("MI_STORE_REGISTER_MEM"), pack("MI_ARB_CHECK"), pack("GPGPU_WALKER", predicate_enable=1, indirect_data_length=64),
              pack("PIPE_CONTROL", lri_post_sync_operation=1), [0xFFFFFFFF]]  # fmt: skip
    for other in others:
        assert prepare(streamer, flush + packed(*other) + end) is None
    assert prepare(streamer, flush) is None
    batches = PreparedBatches()
    streamer.space.write(FIRST, flush * 200 + end)
    batches.learn(streamer, FIRST)
    assert batches.find(streamer.space, FIRST) is None
    assert set(PREPARED) == {"PIPE_CONTROL", "MEDIA_STATE_FLUSH", "MEDIA_INTERFACE_DESCRIPTOR_LOAD", "GPGPU_WALKER"}
