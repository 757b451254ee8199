"""MFD_AVC_BSD_OBJECT: where its data is, and how much of it (BDW 25060-25100)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from softgen.bits.catalogue import layout
from softgen.codec.engine import VideoEngine
from softgen.device.gpu import GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work
from tests.codec.frames import digest, frame
from tests.codec.record import DATA, clips

NAME = "h264-cavlc"
MOVED, ZEROS = 192, 37  # bytes


def objects(dwords: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> Iterator[tuple[int, int]]:
    """Where objects stand in a batch, and the base that their data's offset counts from."""
    slice_object, bases = (layout(name, 9).header for name in ("MFD_AVC_BSD_OBJECT", "MFX_IND_OBJ_BASE_ADDR_STATE"))
    assert slice_object and bases
    base = 0
    for at, dword in enumerate(map(int, dwords)):
        if dword & bases.mask == bases.value:
            base = int(dwords[at + 1]) & ~0xFFF
        elif dword & slice_object.mask == slice_object.value:
            yield at, base


def frames(moved: int, zeros: int, cut: int = 0) -> list[str]:
    """Digests of a clip's frames, with the data of its slices moved by some bytes, with zeros behind it, or (`cut`) half of it cut off."""
    trace, found = open_trace(DATA / NAME), []
    device = GpuDevice(trace.device)
    for work in events(trace):
        if not isinstance(work, Work) or work.engine != "video":
            continue
        space = work.space
        assert isinstance(space, AddressSpace)
        mapping = next(item for item in space._held.values() if item.start <= work.batch < item.end)
        dwords = np.frombuffer(mapping.view, np.uint32)
        for at, base in objects(dwords):
            length, start = int(dwords[at + 1]), int(dwords[at + 2])
            data = space.read(base + start, length)
            space.write(base + start, bytes(moved) + data + bytes(zeros))
            dwords[at + 1], dwords[at + 2] = length + zeros >> cut, start + moved
        device.execute(work)
        saved = device.saved_context(work.context, work.engine)
        engine = saved.state(VideoEngine, device.interface.pipelines)
        found.append(digest(frame(space, engine, saved.latched, (88, 72), "nv12")))
    return found


@pytest.mark.behaviour("BDW-MFX-01", shows="action")
def test_data_begins_at_its_offset_and_may_have_zeros_behind() -> None:
    expected = clips()[NAME]["frames"]
    assert frames(0, 0) == frames(MOVED, 0) == frames(0, ZEROS) == frames(MOVED, ZEROS) == expected


@pytest.mark.behaviour("BDW-MFX-01", shows="action")
def test_data_ends_with_its_length() -> None:
    expected = clips()[NAME]["frames"]
    found = frames(0, 0, cut=1)
    assert len(found) == len(expected) and found[0] != expected[0]
