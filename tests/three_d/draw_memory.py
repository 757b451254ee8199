"""Memory and execution of draws that tests write themselves: buffers at fixed addresses, and a GPU that runs their batch."""

from __future__ import annotations

from collections.abc import Mapping

from softgen.bits.generation import device
from softgen.device.gpu import GpuDevice
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.surface.image import SurfaceImage
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.work import Work

CLOCK = 0x1234  # every timestamp


def filled_space(name: str, bits: int, size: int, held: Mapping[int, bytes], patch: Mapping[int, bytes]) -> AddressSpace:
    """A space with a buffer of `size` bytes at each address of `held`, and bytes written over them (`patch`)."""
    space = AddressSpace(name, bits)
    for address, data in held.items():
        buffer = MemfdBuffer(size)
        buffer.view[: len(data)] = data
        space.map(address, buffer)
    for address, data in patch.items():
        space.write(address, data)
    return space


def executed(name: str, engine: str, threads: int, space: AddressSpace, batch: int, targets: list[SurfaceImage] | None = None) -> GpuDevice:
    """A GPU after it has executed a batch on its render engine; `targets` gets the render targets that draws have written to."""
    drawn = None if targets is None else lambda space, found: targets.extend(found)
    gpu = GpuDevice(device(name), clock=lambda: CLOCK, dispatcher=EngineDispatcher(engine, threads=threads), drawn=drawn)
    gpu.execute(Work("render", space, batch))
    return gpu
