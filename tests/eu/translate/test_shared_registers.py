"""Registers that belong to other channels from instruction to instruction (divergent_maps.py): which writes may lose their masks.

The reference runs a kernel twice. The second time anything is written to the inactive lanes of the writes that a translation has freed of
their masks; what is stored must be the same. And where a translation takes it that all channels are active, they are.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from softgen.eu.interpreter import Interpreter, KernelProgram
from softgen.eu.translate import inactive_lanes
from softgen.eu.translate.entry_exit import Key
from softgen.eu.translate.kernel import KernelTranslator
from softgen.eu.translate.registers import TRUE, RegisterAccess
from softgen.threads.dispatcher import EngineDispatcher
from tests.eu.translate import divergent, divergent_maps
from tests.eu.translate.divergent import Kernel

FEW = 6  # kernels of each generation, every time
MANY = int(os.environ.get("SOFTGEN_KERNELS", "60"))
NARROWEST = 8


@dataclass
class Writes:
    """Writes of a translation under the normal mask, by address: those freed of it, and those that never had one."""

    freed: dict[int, list[RegisterAccess]] = field(default_factory=dict)
    full: dict[int, list[RegisterAccess]] = field(default_factory=dict)

    @classmethod
    def of(cls, kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Writes:
        found, drop, before = cls(), inactive_lanes.drop_write_masks, dict[RegisterAccess, str]()

        def remembered(graph: Any, segments: Any, registers: Any) -> None:
            before.update((access, access.mask) for access in registers.accesses)
            drop(graph, segments, registers)

        full = kernel.right == (1 << kernel.width) - 1
        made = KernelTranslator(KernelProgram(kernel.gen, kernel.code()), Key(0, max(kernel.width, NARROWEST), full=full))
        with monkeypatch.context() as patched:
            patched.setattr(inactive_lanes, "drop_write_masks", remembered)
            made.translate()
        for access in made.state.registers.accesses:
            if access.place == "grf" and access.channel is not None and not access.result and access.mask == TRUE:
                kind = found.full if before.get(access, TRUE) == TRUE else found.freed
                kind.setdefault(access.ip, []).append(access)
        return found

    def step(self, interpreter: Interpreter, plain: Any, rng: random.Random) -> bool:
        """A step of the reference, and anything in the lanes that need not be kept."""
        thread = interpreter.thread
        ip, active = thread.ip, thread.active
        for access in self.full.get(ip, ()):
            assert not self.off(access, active), f"not all channels are active at {ip:#x}"
        found: bool = plain(interpreter)
        for access in self.freed.get(ip, ()):
            for lane in self.off(access, active):
                start = access.offsets[lane]
                thread.grf[start : start + access.type.bytes] = memoryview(rng.randbytes(access.type.bytes))
        return found

    def off(self, access: RegisterAccess, active: int) -> list[int]:
        assert access.channel is not None
        return [lane for lane in range(len(access.offsets)) if not active >> access.channel + lane & 1]


def stored(kernel: Kernel) -> list[tuple[int, ...]]:
    ran = kernel.job().run(groups=EngineDispatcher("reference"))
    return [ran.buffer(number) for number in range(2)]


def needs_a_mask(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether what a kernel stores shows that a write has lost a mask that it needs."""
    expected, writes = stored(kernel), Writes.of(kernel, monkeypatch)
    plain, rng = Interpreter.step, random.Random(kernel.seed)
    with monkeypatch.context() as patched:
        patched.setattr(Interpreter, "step", lambda interpreter: writes.step(interpreter, plain, rng))
        return stored(kernel) != expected


@pytest.mark.parametrize("gen", divergent.GPUS)
def test_freed_lanes_may_hold_anything(gen: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(FEW):
        kernel = divergent_maps.generate(gen, number)
        assert not needs_a_mask(kernel, monkeypatch), kernel.text()


@pytest.mark.witness
@pytest.mark.parametrize("generate", [divergent.generate, divergent_maps.generate], ids=["own", "shared"])
@pytest.mark.parametrize("gen", divergent.GPUS)
def test_freed_lanes_of_many_kernels_may_hold_anything(gen: float, generate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [number for number in range(MANY) if needs_a_mask(generate(gen, number), monkeypatch)]


def any_map(access: RegisterAccess) -> inactive_lanes.LaneMap:
    return 4, 0


def other_channels(known: Any, access: RegisterAccess) -> inactive_lanes.LaneMap:
    """As if all instructions were of channels from 0 on."""
    return known(access) if access.channel is None else access.offsets[:1]


@pytest.mark.witness
@pytest.mark.parametrize("wrong", [any_map, partial(other_channels, inactive_lanes.lane_map)], ids=["no maps", "no channels"])
def test_wrong_lane_maps_are_noticed(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inactive_lanes, "lane_map", wrong)
    assert any(needs_a_mask(divergent_maps.generate(9.0, number), monkeypatch) for number in range(60))
