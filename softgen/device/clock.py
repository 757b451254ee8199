"""The GPU's clock: ticks of TIMESTAMP."""

from __future__ import annotations

import time
from collections.abc import Callable

from softgen.bits.generation import Device

TIMESTAMP_BITS = 36
NANOSECONDS = 1_000_000_000


def host_clock(device: Device) -> Callable[[], int]:
    """Ticks of the GPU's timestamp, by the host's clock."""
    rate = device.limit("timestamp_hz")
    return lambda: time.monotonic_ns() * rate // NANOSECONDS & (1 << TIMESTAMP_BITS) - 1
