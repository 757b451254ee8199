"""Capture directories, written: each buffer content once, under a name made of its hash.

A converted capture appears under its name when it is complete. A recording is written in place, so that a server that is killed loses
nothing of what it had finished: every file appears whole, and until the recording is complete the file `incomplete` stands beside them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np
import zstandard

from softgen.bits.generation import Device
from softgen.bits.units import PAGE_SIZE
from softgen.errors import SoftgenError, Unsupported
from softgen.trace.capture import INCOMPLETE, CaptureTrace
from softgen.trace.capture_json import ENGINES, ZERO, Batch, BufferObject, Exec, write_exec
from softgen.trace.work import Work, WorkTrace

STEP = 1 << 20
ZEROS = bytes(STEP)
LEVEL = 3  # zstd; higher costs more than it saves on buffers that are mostly zero
EXPLANATION = "The recording in this folder is still being written, or was cut short: its last submissions may be missing."
KERNEL_NAME = {name: kernel for kernel, name in ENGINES.items()}
Bytes = bytes | memoryview
Contents = Callable[[BufferObject], Bytes]


class CaptureWriter:
    """Writer of a new capture directory; a directory that is not empty is never touched.

    with CaptureWriter("capture") as writer:
        writer.add(exec, lambda bo: bytes of that buffer)

    `in_place` writes to `path` itself, marked as incomplete until the end; otherwise nothing is at `path` before the end.
    `private` keeps other users out of the finished directory.
    """

    def __init__(self, path: str | os.PathLike[str], in_place: bool = False, private: bool = False) -> None:
        self.path, self.in_place, self.private = Path(path), in_place, private
        if os.path.lexists(self.path) and (not self.path.is_dir() or any(self.path.iterdir())):
            raise self._exists()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.folder = self._start() if in_place else Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent))
            (self.folder / "bo").mkdir()
        except FileExistsError:
            raise self._exists() from None
        except OSError as error:
            raise SoftgenError(f"{self.path}: cannot be written: {error.strerror}") from None
        self.compressor = zstandard.ZstdCompressor(level=LEVEL)

    def _exists(self) -> SoftgenError:
        return SoftgenError(f"{self.path}: already exists; a capture is written to a new or empty directory")

    def _start(self) -> Path:
        self.path.mkdir(0o700 if self.private else 0o777, exist_ok=True)
        with (self.path / INCOMPLETE).open("x", encoding="utf-8") as file:  # of two writers at once, one is refused
            file.write(f"{EXPLANATION}\n")
        return self.path

    def add(self, exec_: Exec, contents: Contents) -> Exec:
        """Write one submission; the result names the blobs."""
        exec_ = replace(exec_, bos=tuple(self._buffer(bo, contents(bo)) for bo in exec_.bos))
        if self.exec_file(exec_).exists():
            raise SoftgenError(f"{self.path}: submission {exec_.seq} is written twice")
        self.write(exec_)
        return exec_

    def exec_file(self, exec_: Exec) -> Path:
        return self.folder / f"exec-{exec_.seq:06d}.json"

    def write(self, exec_: Exec) -> None:
        """Write a submission's JSON, or replace it."""
        appear(self.exec_file(exec_), write_exec(exec_).encode())

    def _buffer(self, bo: BufferObject, data: Bytes) -> BufferObject:
        view = memoryview(data).cast("B")
        if len(view) != bo.size:
            raise SoftgenError(f"{self.path}: the buffer at {bo.gpu_addr:#x} must have {bo.size:#x} bytes, not {len(view):#x}")
        return replace(bo, blob=self.blob(view), nonzero=nonzero(view))

    def blob(self, view: memoryview) -> str:
        """Write a content unless it is there; its name."""
        return self.blob_of([view])[0]

    def blob_of(self, parts: Sequence[Bytes]) -> tuple[str, int]:
        """Write a content in parts, each a whole number of pages; its name, and how many of its bytes are in pages that are not all zero.
        What is zero may be ZEROS, time after time: a sparse buffer can have more bytes than the host has memory."""
        used = sum(nonzero(memoryview(part)) for part in parts if part is not ZEROS)
        if not used:
            return ZERO, 0
        found = hashlib.blake2b(digest_size=16)
        for part in parts:
            found.update(part)
        name = found.hexdigest()
        file = self.folder / "bo" / f"{name}.zst"
        if not file.exists():
            stream = self.compressor.compressobj(size=sum(map(len, parts)))
            appear(file, b"".join([*map(stream.compress, parts), stream.flush()]))
        return name, used

    def __enter__(self) -> CaptureWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        if self.in_place:
            if kind is None:
                self.complete()
            return
        try:
            if kind is None:
                self.folder.chmod(0o700 if self.private else 0o777 & ~_umask())
                os.rename(self.folder, self.path)  # over an empty directory at most; the kernel refuses any other
        except OSError as failure:
            raise SoftgenError(f"{self.path}: cannot be written: {failure.strerror}") from None
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def complete(self) -> None:
        """End a capture that is written in place: everything is there."""
        (self.folder / INCOMPLETE).unlink(missing_ok=True)


def appear(path: Path, data: bytes) -> None:
    """Write a file that is seen whole or not at all, whenever this process is killed."""
    new = path.with_name(f".{path.name}.{threading.get_ident()}")
    try:
        new.write_bytes(data)
        os.replace(new, path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise SoftgenError(f"{path}: cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def nonzero(view: memoryview) -> int:
    """Bytes in pages that are not all zero."""
    return PAGE_SIZE * sum(
        int(np.frombuffer(view[at : at + STEP], np.uint8).reshape(-1, PAGE_SIZE).any(axis=1).sum()) for at in range(0, len(view), STEP)
    )


def write_capture(path: str | os.PathLike[str], trace: WorkTrace) -> None:
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
