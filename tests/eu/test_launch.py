"""What a runtime must know to dispatch a kernel, where the file does not say it."""

from __future__ import annotations

import pytest

from softgen.errors import DecodeError
from softgen.eu import binary
from softgen.eu.binary.launch import Relocation


def test_a_description_that_says_nothing_asks_for_nothing() -> None:
    """Local ids are there unless it is said that they are not, and any local size will do."""
    launch = binary.Launch()
    assert launch.local_ids and not any(launch.required_local_size) and not launch.barrier
    assert not (launch.arguments or launch.values or launch.samplers or launch.relocations or launch.constant_data or launch.global_data)
    assert not any((launch.payload_bytes, launch.local_bytes, launch.scratch_bytes, launch.private_bytes))
    assert launch.constant_surface is launch.global_surface is launch.private_surface is None


def test_a_relocation_is_of_a_whole_address() -> None:
    assert Relocation(0, "constant", 0, 8).shift == 0


def test_a_kernel_without_a_description_cannot_be_launched() -> None:
    kernel = binary.BinaryKernel("sum", b"", 16, 9.0, "zebin")
    assert kernel.member == ""
    with pytest.raises(DecodeError, match="sum: the file does not describe its arguments"):
        kernel.launch()
