"""Prepared batches while they run: commands that change them, contexts, faults and time; and what is prepared at all."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from typing import Any

import pytest

from softgen.bits.catalogue import catalogue
from softgen.bits.generation import device
from softgen.device.gpu import COMMANDS as HANDLERS
from softgen.device.gpu import PREPARED
from softgen.streamer.parser import Command
from softgen.streamer.prepared import FoundBatch, prepare
from tests.gpgpu.job import PAGE, words
from tests.gpgpu.job import dwords as packed
from tests.streamer.enqueues import (
    ALIAS,
    COMMANDS,
    GPUS,
    INDIRECT,
    ITEMS,
    SOURCE,
    STEP,
    TAGS,
    TARGET,
    Client,
    Enqueue,
    bases,
    compare,
    enqueues,
)

# -- batches that others lead to -----------------------------------------------------------------------------------


def leads(client: Client, job: Enqueue, *before: list[int], **values: int) -> None:
    """Another batch sets state, as a driver does when a heap is full, and goes on in the one of an enqueue."""
    for address, data in job.pieces().items():
        client.space.write(address, data)
    start = {"batch_buffer_start_address": COMMANDS + job.at, "address_space_indicator": 1, **values}
    client.run(*before, job.pack("MI_BATCH_BUFFER_START", **start))


@pytest.mark.parametrize("gpu", GPUS)
def test_a_batch_that_another_goes_on_in(gpu: str, prepared_runs: list[int]) -> None:
    def scenario(client: Client) -> None:
        enqueues(client, *(Enqueue(number, gpu) for number in range(2)))
        leads(client, Enqueue(2, gpu, constant=7), bases(gpu), Enqueue(0, gpu).pack("MEDIA_VFE_STATE"))
        enqueues(client, Enqueue(3, gpu))
        leads(client, Enqueue(4, gpu), bases(gpu, indirect_object_base_address=INDIRECT + PAGE))

    compare(gpu, scenario)
    assert prepared_runs == [COMMANDS + number * STEP for number in (1, 2, 3, 4)]


def test_a_batch_that_is_called_returns(prepared_runs: list[int]) -> None:
    def scenario(client: Client) -> None:
        enqueues(client, *(Enqueue(number, "kbl") for number in range(2)))
        leads(client, Enqueue(2, "kbl"), second_level_batch_buffer=1)

    compare("kbl", scenario)
    assert prepared_runs == [COMMANDS + STEP]


def test_a_batch_that_another_goes_on_in_while_commands_are_skipped(prepared_runs: list[int]) -> None:
    """None of it is executed."""
    def scenario(client: Client) -> None:
        enqueues(client, *(Enqueue(number, "kbl") for number in range(2)))
        leads(client, Enqueue(2, "kbl"), Enqueue(0, "kbl").pack("MI_SET_PREDICATE", predicate_enable=15))
        assert client.space.read(TAGS, 4) == packed(2)

    compare("kbl", scenario)
    assert prepared_runs == [COMMANDS + STEP]


def test_time_is_up_in_a_batch_that_another_goes_on_in(prepared_runs: list[int]) -> None:
    """It is left after its walker, and before the tag."""
    def scenario(client: Client) -> None:
        enqueues(client, *(Enqueue(number, "kbl") for number in range(2)))
        client.timed_out = lambda: client.space.read(TARGET, 4) == packed(7)
        leads(client, Enqueue(2, "kbl", constant=7))
        assert client.space.read(TAGS, 4) == packed(2) and len(client.errors) == 1

    compare("kbl", scenario)
    assert prepared_runs == [COMMANDS + STEP, COMMANDS + 2 * STEP]


def test_counts_of_draws_before_a_batch_that_another_goes_on_in(prepared_runs: list[int]) -> None:
    """Registers that it stores hold them."""
    def draw(cs: Any, cmd: object) -> None:
        cs.count(counted, (7,))

    counted, primitive = ("PS_DEPTH_COUNT",), Enqueue(0, "kbl").pack("3DPRIMITIVE")
    store = Enqueue(0, "kbl").pack("MI_STORE_REGISTER_MEM", register_address=0x2350, memory_address=TAGS + 0x100)

    def scenario(client: Client) -> None:
        client.device.interface = replace(client.device.interface, commands={**HANDLERS, "3DPRIMITIVE": draw}, simple={})
        client.last.clear()
        enqueues(client, *(Enqueue(number, "kbl", before=[store]) for number in range(2)))
        leads(client, Enqueue(2, "kbl", before=[store]), primitive, primitive)
        assert client.space.read32(TAGS + 0x100) == 14

    compare("kbl", scenario)
    assert prepared_runs == [COMMANDS + STEP, COMMANDS + 2 * STEP]


def test_who_submitted_a_batch_is_told_when_only_its_end_is_left(prepared_runs: list[int]) -> None:
    """All that it writes is in memory then. Nobody is told where the batch is left before, for it is another one now."""
    client, told = Client("kbl", True), list[int]()
    client.hooks = replace(client.hooks, completed=lambda: told.append(client.space.read32(TAGS)))
    client.last.clear()
    enqueues(client, *(Enqueue(number, "kbl") for number in range(3)))
    assert told == [2, 3] and len(prepared_runs) == 2
    last = Enqueue(3, "kbl")
    last.tag = {"address": COMMANDS + last.at + len(last.batch()) - 4 & ~7, "immediate_data": 0}  # the end is MI_NOOP then
    client.enqueue(last, changes={COMMANDS + last.at + len(last.batch()): packed(*last.pack("MI_BATCH_BUFFER_END"))})
    assert told == [2, 3] and len(prepared_runs) == 3 and not client.errors


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
    client.run(Enqueue(0, "icl").pack("MI_LOAD_REGISTER_IMM", entry=[{"register_offset": 0x2178, "data_dword": 0xFFFFFFFF}]))
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


def preparing(client: Client, name: str, preparer: Any) -> Any:
    """The client's streamer, in whose device nothing but this command can be prepared."""
    streamer: Any = client.last[""].streamer
    streamer.device = type(streamer.device)(**{**vars(streamer.device), "prepared": {name: preparer}})
    return streamer


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("name", ["PIPE_CONTROL", "GPGPU_WALKER", "MEDIA_INTERFACE_DESCRIPTOR_LOAD"])
def test_places_of_fields(gpu: str, name: str) -> None:
    """A varying field reads as its command's record has it; all other bits are compared."""
    chance, client, page = random.Random(5), Client(gpu, True), catalogue().layout(name, device(gpu).generation.number)
    asked = {"PIPE_CONTROL": ("address", "immediate_data"), "GPGPU_WALKER": ("indirect_data_start_address",),
             "MEDIA_INTERFACE_DESCRIPTOR_LOAD": ("interface_descriptor_data_start_address",)}[name]  # fmt: skip
    seen: dict[str, Any] = {}

    def preparer(cs: Any, values: Any, place: Any) -> Any:
        seen.update({field: place(field) for field in asked})
        return lambda cs, batch: None

    header = page.pack()
    batch = packed(*header, *header, *Enqueue(0, gpu).pack("MI_BATCH_BUFFER_END"))
    prepared = prepare(preparing(client, name, preparer), batch)
    assert prepared is not None
    varying = sum(page.field(field).mask for field in asked)
    assert prepared.mask == (1 << 8 * len(batch)) - 1 & ~(varying | varying << 32 * len(header))
    bits = chance.getrandbits(8 * len(batch)) & ~prepared.mask | prepared.value
    dwords = struct.unpack(f"<{len(batch) // 4}I", bits.to_bytes(len(batch), "little"))
    record = page.raw(dwords[len(header) : 2 * len(header)])
    assert {field: bits >> shift & mask for field, (shift, mask) in seen.items()} == {field: getattr(record, field) for field in asked}
    assert any(getattr(record, field) for field in asked)


STALL = {"command_streamer_stall_enable": 1}


@pytest.mark.parametrize("name, values, varying, ruled", [
    ("PIPE_CONTROL", STALL, ["post_sync_operation"], True), ("PIPE_CONTROL", STALL, ["address"], False),
    ("PIPE_CONTROL", {"address": 64}, ["address"], True), ("PIPE_CONTROL", {"address": 64}, [], False),
    ("PIPELINE_SELECT", {"mask_bits": 3}, [], True), ("PIPE_CONTROL", {"texture_cache_invalidation_enable": 1}, [], True),
    ("PIPE_CONTROL", {"texture_cache_invalidation_enable": 1, **STALL, "stall_at_pixel_scoreboard": 1}, [], False),
])  # fmt: skip
def test_rules_are_checked_each_time_if_they_may_be_broken(name: str, values: dict[str, int], varying: list[str], ruled: bool) -> None:
    """By what varies, which may be zero, so that nothing is asked for; or by what comes before: a pipeline is not to be left before it is
    flushed, and caches are not to be invalidated without a stall while compute is selected."""
    def preparer(cs: Any, values: Any, place: Any) -> Any:
        for field in varying:
            place(field)
        return lambda cs, batch: None

    pack = Enqueue(0, "icl").pack
    prepared = prepare(preparing(Client("icl", True), name, preparer), packed(*pack(name, **values), *pack("MI_BATCH_BUFFER_END")))
    assert prepared is not None and [step.ruled for step, _ in prepared.steps] == [ruled]


def test_what_is_not_prepared() -> None:
    """Calls, chains, latched state, semaphores, loads of registers; a batch without an end."""
    streamer: Any = Client("kbl", True).last[""].streamer
    flush, pack = packed(*Enqueue(0, "kbl").pack("MEDIA_STATE_FLUSH")), Enqueue(0, "kbl").pack
    end = packed(*pack("MI_BATCH_BUFFER_END"))
    assert prepare(streamer, flush + end) is not None
    others = [pack("MI_BATCH_BUFFER_START"), pack("STATE_BASE_ADDRESS"), pack("MI_SEMAPHORE_WAIT"), pack("MI_LOAD_REGISTER_MEM"),
              pack("MI_STORE_REGISTER_MEM", predicate_enable=1), pack("MI_ARB_CHECK"),
              pack("GPGPU_WALKER", predicate_enable=1, indirect_data_length=64),
              pack("PIPE_CONTROL", lri_post_sync_operation=1), [0xFFFFFFFF]]  # fmt: skip
    for other in others:
        assert prepare(streamer, flush + packed(*other) + end) is None
    assert prepare(streamer, flush) is None
    assert set(PREPARED) == {"PIPE_CONTROL", "MI_STORE_REGISTER_MEM", "MEDIA_STATE_FLUSH", "MEDIA_INTERFACE_DESCRIPTOR_LOAD",
                             "GPGPU_WALKER"}  # fmt: skip


def test_commands_of_a_prepared_batch_are_those_of_a_first_level_batch() -> None:
    flush, end = packed(*Enqueue(0, "kbl").pack("MEDIA_STATE_FLUSH")), packed(0x05000000)
    streamer: Any = Client("kbl", True).last[""].streamer
    batch = prepare(streamer, flush + end)
    assert batch is not None
    found = FoundBatch(batch, 0x1000, memoryview(flush + end), flush + end, 0)
    assert found.command(batch.last) == Command(0x1000, 0x1000 + len(flush), 1, batch.last.layout, [0x05000000])
