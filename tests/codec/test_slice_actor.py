"""MPEG-2 slices in a walk over a batch leave what the same slices leave that Python executes: memory, registers, counts, errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from softgen.bits.registers import bases
from softgen.codec.engine import VideoEngine
from softgen.codec.mfx.mpeg2.slice_actor import ROOM, SliceActor
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.memory.address_space import AddressSpace
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work
from tests.codec.record import DATA

CLIPS = ("mpeg2-matrix", "mpeg2-interlaced", "mpeg2-fields")
OBJECT, LENGTH, START = "MFD_MPEG2_BSD_OBJECT", 1, 2  # dwords
NOWHERE, TWO_PAGES = 1 << 28, 0x2000
Edit = Callable[[int, Work], None]


class Run:
    """A capture's submissions, executed with slices in walks or by their handler, and what they leave."""

    def __init__(self, name: str, walks: bool, edit: Edit = lambda number, work: None) -> None:
        trace = open_trace(DATA / name)
        self.errors, self.objects, self.memory, self.pictures = list[str](), list[list[int]](), list[bytes](), 0
        self.device = GpuDevice(trace.device, itertools.count().__next__, on_error=self.failed)
        self.flags = bases(trace.device.generation.number)["video"][0] + 0x800  # MFX_ERROR_FLAGS, and those behind it
        self.command = self.device.interface.commands[OBJECT]
        if not walks:
            self.device.interface = replace(self.device.interface, commands={**self.device.interface.commands, OBJECT: self.seen})
        for number, work in enumerate(event for event in events(trace) if isinstance(event, Work)):
            self.objects.append([])
            edit(number, work)
            self.device.execute(work)
            self.memory += [bytes(mapping.view) for mapping in mappings(work)]
            engine = self.device.saved_context(work.context, work.engine).state(VideoEngine, self.device.interface.pipelines)
            self.pictures = engine.completed

    def failed(self, error: SoftgenError) -> bool:
        self.errors.append(str(error))
        return True

    def seen(self, cs: Any, cmd: Any) -> None:
        """A handler that no actor stands for."""
        self.objects[-1].append(cs.command.address)
        self.command(cs, cmd)

    def left(self) -> dict[str, Any]:
        registers = [self.device.read_register(self.flags + at) for at in range(0, 0x100, 4)]
        return {"memory": self.memory, "errors": self.errors, "registers": registers, "counters": vars(self.device.counters),
                "remarks": list(self.device.remarks)}  # fmt: skip


def mappings(work: Work) -> list[Any]:
    assert isinstance(work.space, AddressSpace)
    return sorted(work.space._held.values(), key=lambda held: held.start)


def dwords_at(work: Work, address: int) -> npt.NDArray[np.uint32]:
    """The dwords of a slice's command, to be changed."""
    held = next(mapping for mapping in mappings(work) if mapping.start <= address < mapping.end)
    offset = held.offset + address - held.start
    found: npt.NDArray[np.uint32] = held.store.array[offset : offset + 20].view(np.uint32)
    return found


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many slices each walk has begun."""
    found, leave = list[int](), SliceActor.leave

    def counted(self: SliceActor, cs: Any) -> None:
        found.append(self.struct.slices)
        leave(self, cs)

    monkeypatch.setattr(SliceActor, "leave", counted)
    return found


def same(name: str, edit: Edit = lambda number, work: None) -> Run:
    """The run by handlers, which leaves what walks leave."""
    by_walks, by_handlers = Run(name, True, edit), Run(name, False, edit)
    assert by_walks.left() == by_handlers.left() and by_walks.pictures == by_handlers.pictures
    return by_handlers


@pytest.mark.parametrize("name", CLIPS)
def test_walks_decode_all_slices_but_first_and_last_ones(name: str, walked: list[int]) -> None:
    run = same(name)
    assert not run.errors and sum(walked) == sum(map(len, run.objects)) - 2 * run.pictures > 0


@pytest.mark.parametrize(("name", "ratio"), [("mpeg2-interlaced", 0.02), ("mpeg2-fields", 0.01)])
def test_damaged_data(name: str, ratio: float, walked: list[int]) -> None:
    objects = Run(name, False).objects

    def edit(number: int, work: Work) -> None:
        random = np.random.default_rng(number)
        for mapping in mappings(work):
            if not any(mapping.start <= at < mapping.end for at in (work.batch, *objects[number])):
                used = np.flatnonzero(mapping.store.array)
                mapping.store.array[random.choice(used, int(len(used) * ratio))] = 0x5A

    run = same(name, edit)
    assert sum(walked) and run.device.read_register(run.flags)


def test_damaged_commands(walked: list[int]) -> None:
    """Any position, quantiser, length and start of a slice."""
    name = "mpeg2-interlaced"
    objects = Run(name, False).objects

    def edit(number: int, work: Work) -> None:
        random = np.random.default_rng(number)
        for address in objects[number][1:-1]:
            dwords_at(work, address)[1 + random.integers(0, 4)] ^= np.uint32(1) << random.integers(0, 12, dtype=np.uint32)

    same(name, edit)
    assert sum(walked)


@pytest.mark.parametrize(("name", "dword", "value", "error", "remark"), [
    ("mpeg2-matrix", START, NOWHERE, "bitstream", ""), ("mpeg2-interlaced", START, NOWHERE, "", "upper_bound"),
    ("mpeg2-interlaced", LENGTH, ROOM + 1, "", "upper_bound"), ("mpeg2-matrix", LENGTH, ROOM + 1, "", ""),
    ("mpeg2-interlaced", LENGTH, 0, "", ""),
])  # fmt: skip
def test_slices_whose_data_is_elsewhere_or_long(name: str, dword: int, value: int, error: str, remark: str, walked: list[int]) -> None:
    """Python decodes those that are not mapped whole, and says what is wrong with them."""
    objects = Run(name, False).objects

    def edit(number: int, work: Work) -> None:
        dwords_at(work, objects[number][1])[dword] = value

    run = same(name, edit)
    assert len(run.errors) == (len(objects) if error else 0) and all(error in found for found in run.errors)
    assert bool(run.device.remarks) == bool(remark) and all(remark in found for found in run.device.remarks)
    if name == "mpeg2-interlaced":
        assert sum(walked) == sum(len(found) - 2 for found in objects) - (len(objects) if value else 0)


def test_a_reference_that_is_not_mapped_ends_the_slice_that_refers_to_it(walked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The slices after it go on with what is there."""
    name, written = "mpeg2-matrix", list[int]()

    def edit(number: int, work: Work) -> None:
        """The first picture's surface is gone when the others are decoded, which go to their own."""
        if number and isinstance(work.space, AddressSpace):
            work.space.unmap(written[-1], TWO_PAGES)

    def close(self: VideoEngine, cs: Any) -> None:
        written.append(cs.latched["MFX_PIPE_BUF_ADDR_STATE"].pre_deblocking_destination_address)
        completed(self, cs)

    completed = VideoEngine.close
    monkeypatch.setattr(VideoEngine, "close", close)
    run = same(name, edit)
    assert run.errors and all("read" in error for error in run.errors) and sum(walked)
