"""Commands executed per second: state commands as drivers send them before a draw, and commands that act."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from typing import Any

from bench import Measurement, best_time
from softgen.bits.catalogue import layout
from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.work import Work

COMMANDS = 10_000
GOAL = 3e-6  # seconds for a state command
BATCH = 0x10_0000

# What comes before a draw, as Mesa's drivers order it.
DRAW: tuple[tuple[str, dict[str, Any]], ...] = (
    ("3DSTATE_VERTEX_BUFFERS", {"vertex_buffer": [{"vertex_buffer_index": n, "address_modify_enable": 1} for n in range(2)]}),
    ("3DSTATE_VERTEX_ELEMENTS", {"vertex_element": [{"valid": 1}] * 3}),
    ("3DSTATE_VF_INSTANCING", {"vertex_element_index": 1}), ("3DSTATE_VF_INSTANCING", {"vertex_element_index": 2}),
    ("3DSTATE_VF_TOPOLOGY", {}), ("3DSTATE_VS", {}), ("3DSTATE_CONSTANT_VS", {}), ("3DSTATE_CONSTANT_PS", {}),
    ("3DSTATE_BINDING_TABLE_POINTERS_VS", {}), ("3DSTATE_BINDING_TABLE_POINTERS_PS", {}), ("3DSTATE_SAMPLER_STATE_POINTERS_PS", {}),
    ("3DSTATE_BLEND_STATE_POINTERS", {"blend_state_pointer_valid": 1}), ("3DSTATE_PS", {}), ("3DSTATE_PS_EXTRA", {}),
    ("3DSTATE_WM_DEPTH_STENCIL", {}), ("3DSTATE_RASTER", {}), ("3DSTATE_SF", {}), ("3DSTATE_SBE", {}), ("3DSTATE_CLIP", {}),
)  # fmt: skip


class Batch:
    """A batch of commands on a GPU, executed by `run`."""

    def __init__(self, commands: Iterator[list[int]]) -> None:
        gpu = device("skl")
        self.gpu, self.space = GpuDevice(gpu), AddressSpace("bench", gpu.generation.address_bits)
        dwords = [*itertools.chain.from_iterable(commands), *pack("MI_BATCH_BUFFER_END")]
        self.space.map(BATCH, MemfdBuffer(-(-4 * len(dwords) // 4096) * 4096, "batch"))
        self.space.write(BATCH, struct.pack(f"<{len(dwords)}I", *dwords))

    def run(self) -> None:
        self.gpu.execute(Work("render", self.space, BATCH))


def pack(name: str, **values: Any) -> list[int]:
    return layout(name, 9.0).pack(**values)


def repeated(*commands: list[int]) -> Iterator[list[int]]:
    return itertools.islice(itertools.cycle(commands), COMMANDS)


def measure() -> Iterator[Measurement]:
    state = [pack(name, **values) for name, values in DRAW]
    seconds = best_time(Batch(repeated(*state)).run)
    yield Measurement("state commands in a batch of 10,000", COMMANDS, "commands", seconds, "the goal", GOAL * COMMANDS,
                      f"{seconds / COMMANDS * 1e6:.2f} µs; goal {GOAL * 1e6:g} µs")  # fmt: skip
    lone = itertools.chain.from_iterable((command, pack("MI_NOOP")) for command in state)
    for what, commands in (("state commands and MI_NOOP in turn", lone), ("MI_NOOP", [pack("MI_NOOP")])):
        seconds = best_time(Batch(repeated(*commands)).run)
        yield Measurement(what, COMMANDS, "commands", seconds, note=f"{seconds / COMMANDS * 1e6:.2f} µs")
