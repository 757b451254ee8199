"""Fuzz targets on captured draws and dispatches: their state mutated field by field, and the sends of their kernels.

draws    fields of the commands of a capture and of the structures that they point to
sends    dwords of send instructions of its kernels: descriptors, operands, execution sizes

Both run on the reference and on t0, one after the other: what one of them does not know, the other must not know either.
"""

from __future__ import annotations

import contextlib
import itertools
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from softgen.bits.layout import Layout
from softgen.device.gpu import GpuDevice
from softgen.errors import SoftgenError
from softgen.eu.encoding import program
from softgen.inspect.decode.decoding import Decoder
from softgen.inspect.decode.indirect_state import IndirectKernel, IndirectState
from softgen.memory.space import Space
from softgen.streamer.execute import Counters
from softgen.streamer.parser import Command
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import ReplayedCapture
from tests.conftest import ROOT, SHARED

NAMES = ("kbl-vk-tri", "g45-gles-tri", "kbl-vk-compute", "ivb-gles-tri", "bdw-gles-tri", "icl-gles-tri", "kbl-gles-tri")
ENGINES = ("reference", "t0")
MOST_EDITS = 16
SENDS = ("send", "sendc", "sends", "sendsc")
ELEMENTS = 3  # of a group whose fields are edited
INSTRUCTION = 16  # bytes

Budget = Callable[[], Callable[[], bool]]


class Place(NamedTuple):
    """Bits that are edited, before a submission runs: those of `mask` in the number that so many bytes at an address are."""

    sequence: int
    address: int
    size: int
    mask: int


def path_of(name: str) -> Path:
    own = (ROOT / "tests" / "data" / name, ROOT / "tests" / "codec" / "data" / name)
    return next((path for path in own if path.exists()), SHARED / "traces" / name)


def masks(layout: Layout, dwords: int) -> Iterator[int]:
    """The bits of every field, in the first elements of its groups."""
    for field, groups in layout.walk():
        for numbers in itertools.product(range(ELEMENTS), repeat=len(groups)):
            mask = field.mask << sum(group.start + number * group.size for group, number in zip(groups, numbers, strict=True))
            if not mask >> 32 * dwords:
                yield mask


def items(name: str) -> Iterator[tuple[int, Space, Any]]:
    for work, met in Decoder(ReplayedCapture(path_of(name))).work():
        for item in met:
            yield work.sequence, work.space, item.what


@cache
def fields(name: str) -> tuple[Place, ...]:
    """The fields of the state of a capture."""
    found = []
    for sequence, _, what in items(name):
        if isinstance(what, Command | IndirectState) and what.layout is not None and not what.layout.name.startswith("MI_"):
            found += [Place(sequence, what.address, 4 * len(what.dwords), mask) for mask in masks(what.layout, len(what.dwords))]
    return tuple(dict.fromkeys(found))


@cache
def sends(name: str) -> tuple[Place, ...]:
    """The dwords of the send instructions of a capture."""
    found, gen = [], open_trace(path_of(name)).device.generation.number
    for sequence, space, what in items(name):
        if isinstance(what, IndirectKernel) and not what.problem:
            code = space.read(what.address, space.extent(what.address, 1 << 14))
            end, _ = program.kernel_end(code, gen)
            for offset, size, inst in program.instructions(code[:end], gen):
                if inst.opcode in SENDS and size == INSTRUCTION:
                    found += [Place(sequence, what.address + offset, size, 0xFFFFFFFF << 32 * dword) for dword in range(4)]
    return tuple(dict.fromkeys(found))


def deposit(mask: int, value: int) -> int:
    """Bits of a value, lowest first, in the places of a mask."""
    made, at = 0, 0
    while mask >> at:
        if mask >> at & 1:
            made, value = made | (value & 1) << at, value >> 1
        at += 1
    return made


def edited(space: Space, place: Place, value: int, flips: bool) -> None:
    """Set the bits of a place, or flip them."""
    held = int.from_bytes(space.read(place.address, place.size), "little")
    bits = deposit(place.mask, value)
    made = held ^ bits if flips else held & ~place.mask | bits
    space.write(place.address, made.to_bytes(place.size, "little"))


def run(name: str, engine: str, edits: list[tuple[Place, int, bool]], budget: Budget) -> Counters:
    """Execute a capture with edits on an engine, for as long as the budget lasts."""
    trace, spent = ReplayedCapture(path_of(name)), budget()
    gpu = GpuDevice(trace.device, itertools.count(1).__next__, budget(), dispatcher=EngineDispatcher(engine, 1))
    for work in trace.events():
        for place, value, flips in edits:
            if place.sequence == work.sequence:
                with contextlib.suppress(SoftgenError):
                    edited(work.space, place, value, flips)
        with contextlib.suppress(SoftgenError):
            gpu.execute(work)
        if spent():
            break
    return gpu.counters


def on_both(data: bytes, places: Callable[[str], tuple[Place, ...]], budget: Budget) -> Counters | None:
    """Byte 0: the capture. Then edits of seven bytes: set or flip, place, value. A capture that is not here is passed over."""
    name = NAMES[(data[0] if data else 0) % len(NAMES)]
    if not path_of(name).exists():
        return None
    found, edits = places(name), []
    for at in range(1, min(len(data), 1 + 7 * MOST_EDITS) - 6, 7):
        flips, number, value = struct.unpack_from("<BHI", data, at)
        edits.append((found[number % len(found)], value, bool(flips & 1)))
    counters = None
    for engine in ENGINES:
        counters = run(name, engine, edits, budget)
    return counters
