"""Prepared batches against the same batches executed command by command.

A client enqueues a kernel as Intel's OpenCL runtime does: command buffer and heaps are filled one enqueue after another. Between two
enqueues something changes; memory, remarks, counters, registers and errors must be those of a device that prepares nothing.
"""

from __future__ import annotations

import copy
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from softgen.bits.catalogue import catalogue
from softgen.eu.text import dialect
from softgen.media.front_end import FrontEnd, ThreadGroup
from softgen.streamer.latch import LatchedState
from softgen.streamer.parser import Command
from tests.gpgpu.job import ADD
from tests.gpgpu.job import dwords as packed
from tests.streamer.enqueues import (
    CODE,
    COMMANDS,
    DYNAMIC,
    GPUS,
    INDIRECT,
    SOURCE,
    STEP,
    SURFACES,
    TABLE,
    TAGS,
    TARGET,
    Client,
    Enqueue,
    Scenario,
    bases,
    compare,
    enqueues,
    watermark,
)


@pytest.mark.parametrize("gpu", GPUS)
def test_enqueues_are_prepared_and_come_to_the_same(gpu: str, prepared_runs: list[int]) -> None:
    jobs = [Enqueue(number, gpu, constant=1000 + number) for number in range(6)]
    client = compare(gpu, lambda client: enqueues(client, *jobs))
    assert prepared_runs == [COMMANDS + job.at for job in jobs[1:]]
    assert client.space.read(TARGET, 128) == packed(*(1005 + number for number in range(32)))
    assert client.space.read32(TAGS) == 6 and not client.errors


@pytest.mark.parametrize("more", [0, 1])
def test_a_batch_of_a_kibibyte_is_prepared_and_no_longer_one(more: int, prepared_runs: list[int]) -> None:
    flush = Enqueue(0, "kbl").pack("MEDIA_STATE_FLUSH")
    room = (0x400 - len(Enqueue(0, "kbl").batch())) // (4 * len(flush))
    jobs = [Enqueue(number, "kbl", before=[flush] * (room + more)) for number in (0, 8)]
    assert len(jobs[0].batch()) == 0x400 + 8 * more
    compare("kbl", lambda client: enqueues(client, *jobs))
    assert prepared_runs == ([] if more else [COMMANDS + jobs[1].at])


@pytest.mark.parametrize("kinds, prepared", [
    ([0, 1, 0, 1, 0, 1, 1], [2, 3, 4, 5, 6]),
    ([*range(8), *range(8)], [*range(8, 16)]),
    ([*range(8), 0, 8, 0, 1, 8], [8, 10, 12]),  # the ninth takes the place of the one that was used longest ago
    ([*range(8), *range(7), 8, 0, 7], [*range(8, 15), 16]),
    ([*range(8), 0, 1, 0, 1, 0, 1, 8, 7, 6, 5, 4, 3, 2], [*range(8, 14), *range(15, 20)]),  # each has one place
])  # fmt: skip
def test_eight_batches_are_kept_those_used_last(kinds: list[int], prepared: list[int], prepared_runs: list[int]) -> None:
    flush = Enqueue(0, "kbl").pack("MEDIA_STATE_FLUSH")
    compare("kbl", lambda client: enqueues(client, *(Enqueue(number, "kbl", before=[flush] * kind) for number, kind in enumerate(kinds))))
    assert prepared_runs == [COMMANDS + number * STEP for number in prepared]


@pytest.mark.parametrize("gpu", ["bdw", "kbl", "icl"])
def test_registers_are_stored_as_they_are_then(gpu: str, prepared_runs: list[int]) -> None:
    """Runtimes store registers before and after a kernel whose times are asked for, each time elsewhere."""
    places, registers = range(TAGS + 0x100, TAGS + 0x140, 16), (0x2074, 0x2068, 0x2358)  # ACTHD, IPEHR, TIMESTAMP

    def stores(start: int) -> list[list[int]]:
        return [Enqueue(0, gpu).pack("MI_STORE_REGISTER_MEM", register_address=register, memory_address=start + 4 * number)
                for number, register in enumerate(registers)]  # fmt: skip

    jobs = [Enqueue(number, gpu, before=stores(place)) for number, place in enumerate(places)]
    client = compare(gpu, lambda client: enqueues(client, *jobs))
    assert prepared_runs == [COMMANDS + job.at for job in jobs[1:]] and not client.errors
    found = [struct.unpack("<3I", client.space.read(place, 12)) for place in places]
    first, header = found[0][0] - COMMANDS - jobs[0].at, stores(0)[0][0]
    assert found == [(COMMANDS + job.at + first, header, 0x1234) for job in jobs]


def test_a_context_with_collected_work_is_executed_command_by_command(prepared_runs: list[int]) -> None:
    """Prepared commands do not look for it: here a thread group that lacks its end."""

    def scenario(client: Client) -> None:
        enqueues(client, *(Enqueue(number, "kbl") for number in range(3)))
        saved = client.contexts[""]
        saved.unfinished, saved.pipelines[FrontEnd].group = True, ThreadGroup(7, 9)  # whose interface descriptor was not loaded
        client.enqueue(Enqueue(3, "kbl"))
        assert saved.pipelines[FrontEnd].group is None and not saved.unfinished
        client.enqueue(Enqueue(4, "kbl"))

    client = compare("kbl", scenario)
    assert prepared_runs == [COMMANDS + Enqueue(number, "kbl").at for number in (1, 2, 4)]
    assert any("no MEDIA_OBJECT_GRPID of group 0x7" in remark for remark in client.device.remarks)


def test_states_of_pipelines_that_are_replaced_count(prepared_runs: list[int]) -> None:
    """As after a reset of the context: a batch is prepared anew."""

    def scenario(client: Client) -> None:
        enqueues(client, *(Enqueue(number, "kbl") for number in range(3)))
        saved = client.contexts[""]
        saved.pipelines = {kind: copy.deepcopy(part) for kind, part in saved.pipelines.items()}
        for number in (3, 4):
            job = Enqueue(number, "kbl")
            client.enqueue(job)
            assert saved.pipelines[FrontEnd].descriptors == job.pieces()[DYNAMIC + job.at]

    compare("kbl", scenario)
    assert prepared_runs == [COMMANDS + Enqueue(number, "kbl").at for number in (1, 2, 4)]


def test_other_latched_state_of_as_many_commands_counts(prepared_runs: list[int]) -> None:
    """As after a reset of the context: what was latched is another object, with as many commands."""

    def scenario(client: Client) -> None:
        enqueues(client, *(Enqueue(number, "kbl") for number in range(3)))
        saved, state = client.contexts[""], bases("kbl", surface_state_base_address=SURFACES + 0x1000)
        other, page = LatchedState(saved.latched.table), catalogue().layout("STATE_BASE_ADDRESS", 9)
        for _ in range(saved.latched.latches):
            other.note(Command(0, 0, 1, page, state))
        saved.latched = other
        job = Enqueue(3, "kbl", sources=(SOURCE + 64, TARGET))
        pieces = job.pieces()
        client.enqueue(job, changes={SURFACES + job.at: bytes(TABLE + 8), SURFACES + 0x1000 + job.at: pieces[SURFACES + job.at]})

    client = compare("kbl", scenario)
    assert prepared_runs == [COMMANDS + Enqueue(number, "kbl").at for number in (1, 2, 3)] and not client.errors
    assert client.space.read(TARGET, 128) == packed(*(1016 + number for number in range(32)))


def test_time_stamps_rise_from_one_enqueue_to_the_next(prepared_runs: list[int]) -> None:
    """They count the instructions of the context's threads."""
    stamps = ADD.replace("r20.0<8;8,1>:d r2.0<0;1,0>:d", "r1.0<8;8,1>:d tm0.0<0;1,0>:d")
    found = list[bytes]()

    def scenario(client: Client) -> None:
        client.space.write(CODE, bytes(dialect.read(stamps, 9.0)))
        for number in range(4):
            client.enqueue(Enqueue(number, "kbl"))
            found.append(client.space.read(TARGET, 128))

    compare("kbl", scenario)
    assert len(prepared_runs) == 3 and len(set(found[:4])) == 4 and found[:4] == found[4:]


def test_a_store_with_a_predicate_is_not_prepared(prepared_runs: list[int]) -> None:
    store = Enqueue(0, "kbl").pack("MI_STORE_REGISTER_MEM", register_address=0x2358, memory_address=TAGS + 0x100, predicate_enable=1)
    client = compare("kbl", lambda client: enqueues(client, *(Enqueue(number, "kbl", before=[store]) for number in range(3))))
    assert not prepared_runs and client.space.read32(TAGS + 0x100) == 0


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


@pytest.mark.covering(1)
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


def test_a_flush_that_breaks_a_rule_is_reported_each_time(prepared_runs: list[int]) -> None:
    jobs = [Enqueue(number, "icl", stall={"tlb_invalidate": 1}) for number in range(3)]
    client = compare("icl", lambda client: enqueues(client, *jobs))
    assert "\n".join(client.device.remarks).count("tlb_invalidate needs command_streamer_stall_enable") == len(jobs)
    assert len(prepared_runs) == 2


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
