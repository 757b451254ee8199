"""Capture directories, written: contents are named by what they hold, and the directory appears when it is complete."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np
import zstandard

from softgen.bits.generation import Device
from softgen.errors import SoftgenError, Unsupported
from softgen.trace.capture import CaptureTrace
from softgen.trace.capture_json import ENGINES, PAGE, ZERO, Batch, BufferObject, Exec, write_exec
from softgen.trace.work import Trace, Work

STEP = 1 << 20
LEVEL = 3  # zstd; higher costs more than it saves on buffers that are mostly zero
KERNEL_NAME = {name: kernel for kernel, name in ENGINES.items()}
Bytes = bytes | memoryview
Contents = Callable[[BufferObject], Bytes]


class CaptureWriter:
    """A capture in the making. Nothing stands at `path` until the end; a directory with something in it is never touched.

    with CaptureWriter("capture") as writer:
        writer.add(exec, lambda bo: bytes of that buffer)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if os.path.lexists(self.path) and (not self.path.is_dir() or any(self.path.iterdir())):
            raise SoftgenError(f"{self.path}: already exists; a capture is written to a new or empty directory")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent))
            (self.folder / "bo").mkdir()
        except OSError as error:
            raise SoftgenError(f"{self.path}: cannot be written: {error.strerror}") from None
        self.compressor = zstandard.ZstdCompressor(level=LEVEL)

    def add(self, exec_: Exec, contents: Contents) -> Exec:
        """Write one submission; what comes back names the blobs."""
        exec_ = replace(exec_, bos=tuple(self._buffer(bo, contents(bo)) for bo in exec_.bos))
        file = self.folder / f"exec-{exec_.seq:06d}.json"
        if file.exists():
            raise SoftgenError(f"{self.path}: submission {exec_.seq} is written twice")
        file.write_text(write_exec(exec_), "utf-8")
        return exec_

    def _buffer(self, bo: BufferObject, data: Bytes) -> BufferObject:
        view = memoryview(data).cast("B")
        if len(view) != bo.size:
            raise SoftgenError(f"{self.path}: the buffer at {bo.gpu_addr:#x} must have {bo.size:#x} bytes, not {len(view):#x}")
        return replace(bo, blob=self.blob(view), nonzero=nonzero(view))

    def blob(self, view: memoryview) -> str:
        """Keep a content; its name."""
        if not nonzero(view):
            return ZERO
        name = hashlib.blake2b(view, digest_size=16).hexdigest()
        file = self.folder / "bo" / f"{name}.zst"
        if not file.exists():
            file.write_bytes(self.compressor.compress(view))
        return name

    def __enter__(self) -> CaptureWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        try:
            if kind is None:
                self.folder.chmod(0o777 & ~_umask())
                os.rename(self.folder, self.path)  # over an empty directory at most; the kernel refuses any other
        except OSError as failure:
            raise SoftgenError(f"{self.path}: cannot be written: {failure.strerror}") from None
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def nonzero(view: memoryview) -> int:
    """Bytes in pages that are not all zero."""
    return PAGE * sum(
        int(np.frombuffer(view[at : at + STEP], np.uint8).reshape(-1, PAGE).any(axis=1).sum()) for at in range(0, len(view), STEP)
    )


def write_capture(path: str | os.PathLike[str], trace: Trace) -> None:
    """Write a trace as a capture directory; traces whose work is batches can be."""
    with CaptureWriter(path) as writer:
        if isinstance(trace, CaptureTrace):
            for exec_ in trace.execs():
                writer.add(exec_, lambda bo: trace.contents(bo).view)
        else:
            for work in trace.work():
                writer.add(exec_of(work, trace.device), lambda bo, space=work.space: space.read(bo.gpu_addr, bo.size))  # type: ignore[misc]


def exec_of(work: Work, device: Device) -> Exec:
    """A submission as the kernel would have seen it: each mapped region is a buffer."""
    if work.kind != "batch":
        raise Unsupported(f"{work.label or 'work'}: comes from a ring; a capture holds batches only")
    bos = tuple(
        BufferObject(region.start, region.size, ZERO, handle=i, uid=i, pinned=True) for i, region in enumerate(work.space.regions(), 1)
    )
    inside = [i for i, bo in enumerate(bos) if bo.gpu_addr <= work.batch < bo.gpu_addr + bo.size]
    if not inside:
        raise SoftgenError(f"{work.label or 'work'}: no memory at its batch, {work.batch:#x}")
    bo, start = bos[inside[0]], work.batch - bos[inside[0]].gpu_addr
    length = min(work.end - work.batch, bo.size - start) if work.end else 0
    return Exec(work.sequence, device.name, device.pci_id, round(device.generation.number * 10), f"{KERNEL_NAME[work.engine]}0",
                Batch(inside[0], bo.handle, work.batch, start, length), bos, ctx=work.context,
                total_bytes=sum(bo.size for bo in bos))  # fmt: skip
