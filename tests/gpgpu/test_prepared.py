"""Walkers of batches that come again: what each dispatch takes from the batch and the interface descriptor, and what makes a kept plan
unusable. Memory, remarks, counters and errors are those of a device that prepares nothing (`compare`)."""

from __future__ import annotations

from typing import Any

import pytest

from softgen.bits.generation import device
from softgen.eu.text import dialect
from softgen.gpgpu.plans import WalkerPlans
from tests.gpgpu.job import dwords as packed
from tests.gpgpu.job import words
from tests.gpgpu.test_dispatch import SHOWS
from tests.streamer.enqueues import (
    CODE,
    DYNAMIC,
    GPUS,
    INDIRECT,
    ITEMS,
    SOURCE,
    SURFACES,
    TABLE,
    TARGET,
    Client,
    Enqueue,
    bases,
    compare,
    enqueues,
    watermark,
)
from tests.streamer.test_prepared import CHANGES, changed

OTHER_KERNEL, OTHER_BASE, POOL = 0x400, 0x1000, 0x8000
COMPARED = 6  # searches of the client that prepares nothing: each of its enqueues


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Dispatches of walkers for which a plan was searched by the fields of command and descriptor."""
    found: list[object] = []
    real = WalkerPlans.dispatch

    def dispatch(self: WalkerPlans, *values: Any) -> Any:
        found.append(values)
        return real(self, *values)

    monkeypatch.setattr(WalkerPlans, "dispatch", dispatch)
    return found


@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("gpu", GPUS)
def test_a_plan_is_searched_twice(gpu: str, own: int, searches: list[object]) -> None:
    """By the batch that is executed for the first time, and by the one that comes again first."""
    given = {"descriptor": {"constant_urb_entry_read_length": own}, "walker": {"indirect_data_length": 32 + 32 * own}}
    jobs = [Enqueue(number, gpu, constant=1000 + number, **given) for number in range(6)]
    client = compare(gpu, lambda client: enqueues(client, *jobs))
    assert len(searches) == 2 + COMPARED and client.device.counters.dispatches == 6 and not client.errors


@pytest.mark.parametrize("gpu", GPUS)
def test_each_thread_header_names_the_binding_table_of_its_enqueue(gpu: str, searches: list[object]) -> None:
    code = bytes(dialect.read(SHOWS.replace("r1.0<8;8,1>", "r0.4<0;1,0>"), device(gpu).generation.number))
    found = []

    def scenario(client: Client) -> None:
        client.space.write(CODE + OTHER_KERNEL, code)
        for number in (0, 1, 2, 7, 3, 4):
            client.enqueue(Enqueue(number, gpu, sources=(TARGET, SOURCE), descriptor={"kernel_start_pointer": OTHER_KERNEL}))
            found.append(client.space.read32(TARGET) & ~0x1F)

    compare(gpu, scenario)
    assert found == [number * 0x100 + TABLE for number in (0, 1, 2, 7, 3, 4)] * 2 and len(searches) == 2 + COMPARED


@pytest.mark.parametrize("change", ["the kernel elsewhere", "local memory", "threads of a group", "two threads", "rounding",
                                    "more constants than fetched", "less data", "odd data", "data nowhere", "predicate",
                                    "dimensions in registers", "groups"])  # fmt: skip
def test_what_is_not_as_it_was_counts(change: str) -> None:
    compare("kbl", changed("kbl", **CHANGES[change]))


def test_missing_constants_are_reported_each_time() -> None:
    jobs = [Enqueue(number, "kbl", walker={"indirect_data_length": 32}) for number in range(4)]
    client = compare("kbl", lambda client: enqueues(client, *jobs))
    assert sum("32 are fetched" in remark for remark in client.device.remarks) == 4


def test_constants_in_the_curbe() -> None:
    """Walkers that fetch nothing have the constants that were loaded."""
    job = Enqueue(0, "kbl", walker={"indirect_data_length": 0}, constant=5)

    def scenario(client: Client) -> None:
        client.space.write(DYNAMIC + 0x4000, packed(77, *[0] * 7) + words(*range(ITEMS)))
        client.run(job.pack("MEDIA_VFE_STATE", curbe_allocation_size=2),
                   job.pack("MEDIA_CURBE_LOAD", curbe_total_data_length=64, curbe_data_start_address=0x4000))  # fmt: skip
        enqueues(client, job, job, job)

    client = compare("kbl", scenario)
    assert len(set(client.space.read(TARGET, 128))) > 1 and not client.errors


def test_the_second_of_two_descriptors() -> None:
    """Both are loaded, with binding tables of their own; the walker names the second one."""

    def scenario(client: Client) -> None:
        for number in range(4):
            other = Enqueue(number, "kbl", descriptor={"binding_table_pointer": 0xF000}).pieces()[DYNAMIC + number * 0x100]
            job = Enqueue(number, "kbl", walker={"interface_descriptor_offset": 1}, constant=number)
            job.before = [job.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=64,
                                   interface_descriptor_data_start_address=job.at)]  # fmt: skip
            client.enqueue(job, changes={DYNAMIC + job.at: other + job.pieces()[DYNAMIC + job.at]})

    client = compare("kbl", scenario)
    assert client.space.read(TARGET, 128) == packed(*(3 + number for number in range(32)))


def test_binding_tables_in_a_pool() -> None:
    def scenario(client: Client) -> None:
        pool = {"binding_table_pool_base_address": SURFACES + POOL, "binding_table_pool_enable": 1, "binding_table_pool_buffer_size": 1}
        client.run(Enqueue(0, "icl").pack("3DSTATE_BINDING_TABLE_POOL_ALLOC", **pool))
        for number in range(4):
            job = Enqueue(number, "icl", constant=number, descriptor={"binding_table_pointer": number * 0x100 >> 3})
            client.enqueue(job, changes={SURFACES + POOL + job.at: packed(job.at, job.at + 64)})

    client = compare("icl", scenario)
    assert client.space.read(TARGET, 128) == packed(*(3 + number for number in range(32)))


def test_half_a_descriptor_is_none() -> None:
    """The last dword of the descriptor is zero; then all others are loaded, but not that one."""

    def scenario(client: Client) -> None:
        job = Enqueue(1, "kbl", descriptor={"cross_thread_constant_data_read_length": 0})
        enqueues(client, job)
        walker = job.pack("GPGPU_WALKER", simd_size=1, indirect_data_length=64, right_execution_mask=0xFFFF, bottom_execution_mask=0xFFFF,
                          **{f"thread_group_id_{axis}_dimension": 1 for axis in "xyz"})  # fmt: skip
        for _ in range(3):
            client.run(walker)
        client.run(job.pack("MEDIA_STATE_FLUSH"), job.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=28,
                                                           interface_descriptor_data_start_address=job.at))  # fmt: skip
        client.run(walker)

    client = compare("kbl", scenario)
    assert len(client.errors) == 1 and "interface descriptor 0 is asked for, 0 are loaded" in client.errors[0]


@pytest.mark.parametrize("what", ["bases", "scratch space"])
def test_state_that_is_set_in_between_counts(what: str) -> None:
    def scenario(client: Client) -> None:
        enqueues(client, *(Enqueue(number, "kbl") for number in range(3)))
        client.space.write(INDIRECT + OTHER_BASE, client.space.read(INDIRECT, 0x1000).replace(packed(1000), packed(77)))
        client.run(bases("kbl", indirect_object_base_address=INDIRECT + OTHER_BASE) if what == "bases" else
                   Enqueue(0, "kbl").pack("MEDIA_VFE_STATE", per_thread_scratch_space=1, scratch_space_base_pointer=0x400))  # fmt: skip
        client.submit(0x100000)

    client = compare("kbl", scenario)
    assert client.space.read32(TARGET) == (77 if what == "bases" else 1000)


@pytest.mark.parametrize("gpu", GPUS)
def test_constants_beyond_the_last_address_begin_at_the_first(gpu: str, searches: list[object]) -> None:
    """Offsets are counted from a base near the end of the address space."""
    jobs = [Enqueue(number, gpu, constant=1000 + number) for number in range(6)]
    for job in jobs:
        job.walker = {"indirect_data_start_address": job.at + INDIRECT + 0x1000}

    def scenario(client: Client) -> None:
        client.run(bases(gpu, indirect_object_base_address=(1 << client.space.bits) - 0x1000))
        enqueues(client, *jobs)

    client = compare(gpu, scenario)
    assert client.space.read32(TARGET) == 1005 and not client.errors and len(searches) == 2 + COMPARED


def test_a_watermark_is_reported_once() -> None:
    """Two walkers after a flush that asks for it."""

    def scenario(client: Client) -> None:
        for number in range(4):
            job = Enqueue(number, "kbl")
            walker = job.pack("GPGPU_WALKER", simd_size=1, indirect_data_length=64, indirect_data_start_address=job.at)
            job.before = [job.pack("MEDIA_STATE_FLUSH", **watermark("kbl")), walker]
            client.enqueue(job)

    client = compare("kbl", scenario)
    assert sum("checks the watermark" in remark for remark in client.device.remarks) == 4
    assert client.device.counters.dispatches == 8


def test_walkers_use_the_descriptors_until_a_flush(searches: list[object]) -> None:
    """A walker that comes again too: the load of others is remarked; not so where a flush follows the walker."""
    found = list[int]()

    def scenario(client: Client) -> None:
        for number in range(8):
            client.enqueue(Enqueue(number, "kbl", first=[], flushed=number > 3))
            found.append(sum("descriptors have been used" in remark for remark in client.device.remarks))

    assert not compare("kbl", scenario).errors
    assert found == [0, 1, 2, 3, 4, 4, 4, 4] * 2
    assert len(searches) == 2 + 2 + 8  # for both kinds of batches, and those of the client that prepares nothing
