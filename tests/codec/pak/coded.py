"""Coded pictures of a capture: what its submissions to the video engine leave in the coded buffer, as registers count it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softgen.codec.engine import VideoEngine
from softgen.device.gpu import GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.memory.space import Space
from softgen.trace.work import Work
from tests.codec.frames import decoded

BYTE_COUNT = 0x8A0  # MFC_BITSTREAM_BYTECOUNT_FRAME
STORE_REGISTER = 0x24  # MI_STORE_REGISTER_MEM


class CodedPicture(NamedTuple):
    device: GpuDevice
    work: Work
    space: Space
    engine: VideoEngine
    latched: Any
    batch: list[int]  # dwords

    def data(self, size: int) -> bytes:
        """The first bytes of the coded buffer."""
        return self.space.read(self.latched["MFX_IND_OBJ_BASE_ADDR_STATE"].mfc_indirect_pak_bse_object_address, size)

    def stored(self, register: int) -> int | None:
        """What MI_STORE_REGISTER_MEM has left of a register, by its offset from the engine's."""
        for at, dword in enumerate(self.batch[:-3]):
            if dword >> 23 == STORE_REGISTER and dword & 0xFF == 2 and self.batch[at + 1] in (register, 0x12000 + register):
                address = self.batch[at + 2] | self.batch[at + 3] << 32
                return int.from_bytes(self.space.read(address, 4), "little")
        return None


def coded_pictures(path: Path) -> Iterator[CodedPicture]:
    """The pictures that a capture's submissions encode, each after its submission."""
    seen = 0
    for device, work in decoded(path):
        if work.engine != "video":
            continue
        saved = device.saved_context(work.context, work.engine)
        engine = saved.state(VideoEngine, device.interface.pipelines)
        if engine.encoded > seen:
            seen = engine.encoded
            assert isinstance(work.space, AddressSpace)
            mapping = next(item for item in work.space._held.values() if item.start <= work.batch < item.end)
            dwords = np.frombuffer(bytes(mapping.view), np.uint32)[(work.batch - mapping.start) // 4 :]
            yield CodedPicture(device, work, work.space, engine, saved.latched, dwords.tolist())
