"""Jobs with bits flipped in their batch, kernel, descriptors and surfaces: they run or end in one of softgen's own errors."""

from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.threads import reference
from softgen.trace.work import Work
from tests.gpgpu.job import BATCH, CODE, DYNAMIC, SURFACES, vector_add

MOST_STEPS = 60  # commands and groups: a flipped bit may ask for millions


@given(gpu=st.sampled_from(["bdw", "skl", "icl"]), where=st.sampled_from([BATCH, CODE, DYNAMIC, SURFACES]),
       flips=st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 7)), min_size=1, max_size=4))  # fmt: skip
def test_flipped_bits_end_in_our_own_errors(gpu: str, where: int, flips: list[tuple[int, int]]) -> None:
    job = vector_add(gpu)
    space, data = job.memory(), bytearray(job.pieces()[where])
    for at, bit in flips:
        data[at % len(data)] ^= 1 << bit
    space.write(where, bytes(data))
    left = iter(range(MOST_STEPS))
    try:
        with mock.patch.object(reference, "TURN", 10):  # a kernel may go round for ever
            GpuDevice(job.device, timed_out=lambda: next(left, None) is None).execute(Work("render", space, BATCH))
    except SoftgenError as error:
        assert str(error)
