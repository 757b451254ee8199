"""Captures of draws that tests write themselves."""

from __future__ import annotations

from pathlib import Path

from softgen.bits.generation import device
from softgen.memory.address_space import AddressSpace
from softgen.trace.capture_write import CaptureWriter, exec_of
from softgen.trace.work import Work


def write_capture_of(path: Path, gpu: str, space: AddressSpace, batch: int) -> Path:
    """A capture of one batch."""
    with CaptureWriter(path) as writer:
        writer.add(exec_of(Work("render", space, batch, sequence=1), device(gpu)), lambda bo: space.read(bo.gpu_addr, bo.size))
    return path
