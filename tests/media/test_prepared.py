"""Loads of interface descriptors and flushes in batches that come again: their rules are checked each time."""

from __future__ import annotations

import pytest

from tests.streamer.conftest import prepared_runs
from tests.streamer.enqueues import CODE, DYNAMIC, INDIRECT, SURFACES, TARGET, Client, Enqueue, bases, compare, enqueues, watermark

__all__ = ["prepared_runs"]  # a fixture
GPUS = ["bdw", "kbl", "icl"]


@pytest.mark.parametrize("gpu", GPUS)
def test_batches_within_the_rules_are_not_remarked(gpu: str, prepared_runs: list[int]) -> None:
    client = compare(gpu, lambda client: enqueues(client, *(Enqueue(number, gpu) for number in range(4))))
    assert not client.device.remarks and not client.errors and len(prepared_runs) == 3


@pytest.mark.parametrize("gpu", GPUS)
def test_descriptors_out_of_line_are_remarked_each_time(gpu: str, prepared_runs: list[int]) -> None:
    """The last ones in the first line of the heap."""
    jobs = [Enqueue(5 - number, gpu, skip=32 * (number % 2)) for number in range(6)]
    client = compare(gpu, lambda client: enqueues(client, *jobs))
    assert [remark.split(": ")[-1] for remark in client.device.remarks] == [
        f"interface descriptors at {at:#x} should begin at a multiple of 64" for at in (0x420, 0x220, 0x20)]  # fmt: skip
    assert len(prepared_runs) == 5


@pytest.mark.parametrize("gpu", GPUS)
def test_descriptors_that_may_be_in_use_are_remarked_each_time(gpu: str, prepared_runs: list[int]) -> None:
    """No flush comes between a walker and the next load."""
    jobs = [Enqueue(number, gpu, first=[], flushed=False) for number in range(4)]
    client = compare(gpu, lambda client: enqueues(client, *jobs))
    assert sum("descriptors have been used" in remark for remark in client.device.remarks) == 3 and len(prepared_runs) == 3


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("gpu", GPUS)
def test_descriptors_beyond_the_last_address_begin_at_the_first(gpu: str, at: int, prepared_runs: list[int]) -> None:
    """Offsets are counted from a base near the end of the address space; one out of line is no other."""
    jobs = [Enqueue(number, gpu, constant=1000 + number, skip=DYNAMIC + 0x1000 + at) for number in range(3)]

    def scenario(client: Client) -> None:
        client.run(bases(gpu, dynamic_state_base_address=(1 << client.space.bits) - 0x1000))
        for job in jobs:
            client.enqueue(job, changes={DYNAMIC + job.at + at: job.pieces()[DYNAMIC + job.at + job.skip]})

    client = compare(gpu, scenario)
    assert client.space.read32(TARGET) == 1002 and not client.errors and len(prepared_runs) == 2


@pytest.mark.parametrize("gpu", GPUS)
def test_descriptors_are_at_their_offset_where_no_base_was_set(gpu: str, prepared_runs: list[int]) -> None:
    jobs = [Enqueue(number, gpu, constant=1000 + number, skip=DYNAMIC + 0x1000) for number in range(3)]
    heaps = {"surface_state_base_address": SURFACES, "instruction_base_address": CODE, "indirect_object_base_address": INDIRECT}
    set_bases = jobs[0].pack("STATE_BASE_ADDRESS", **heaps, **{f"{name}_modify_enable": 1 for name in heaps})

    def scenario(client: Client) -> None:
        client.run(set_bases, jobs[0].pack("MEDIA_VFE_STATE"), context="new")
        for job in jobs:
            place = job.at + job.skip
            client.enqueue(job, "new", {place: job.pieces()[DYNAMIC + place]})

    client = compare(gpu, scenario)
    assert client.space.read32(TARGET) == 1002 and not client.errors and len(prepared_runs) == 2


def test_a_flush_asks_for_the_watermark_each_time(prepared_runs: list[int]) -> None:
    flush = Enqueue(0, "kbl").pack("MEDIA_STATE_FLUSH", **watermark("kbl"))
    client = compare("kbl", lambda client: enqueues(client, *(Enqueue(number, "kbl", before=[flush]) for number in range(3))))
    assert sum("checks the watermark" in remark for remark in client.device.remarks) == 3 and len(prepared_runs) == 2


def test_loads_that_break_a_rule_are_not_prepared(prepared_runs: list[int]) -> None:
    jobs = [Enqueue(number, "kbl") for number in range(3)]
    for job in jobs:
        job.before = [job.pack("MEDIA_INTERFACE_DESCRIPTOR_LOAD", interface_descriptor_total_length=48,
                               interface_descriptor_data_start_address=job.at)]  # fmt: skip
    client = compare("kbl", lambda client: enqueues(client, *jobs))
    assert sum("48 bytes are not 1 to 64 interface descriptors" in remark for remark in client.device.remarks) == 3 and not prepared_runs
