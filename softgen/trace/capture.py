"""Capture directories: `exec-NNNNNN.json` per submission, `bo/<hash>.zst` per buffer content.

Contents are decompressed on first use, once each, and shared by all buffers that hold them; they are therefore mapped read-only.
Replay, which writes, copies them with `Blobs.copy`.
"""

from __future__ import annotations

import os
import re
import stat
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import zstandard

from softgen.bits.generation import Device, device, device_by_pci
from softgen.errors import DecodeError, SoftgenError, SpecError
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.trace.capture_json import ZERO, BufferObject, Exec, read_exec
from softgen.trace.work import Events, Work

EXEC = re.compile(r"exec-(\d{1,12})\.json")
INCOMPLETE = "incomplete"  # a file: the recording is still being written, or whatever wrote it was killed
CHUNK = 1 << 20
ZEROS = bytes(CHUNK)
KEEP_BYTES = 1 << 30  # contents kept for the submissions to come, counted as they were stated
MAX_HELD_BYTES = 4 << 30  # bytes of one submission that are not zero: a few kilobytes of zstd may inflate to more than the host has
KEEP_BUFFERS = 256  # each is a file descriptor


def is_capture(path: Path) -> bool:
    """Whether a directory holds a capture."""
    return any(EXEC.fullmatch(name) for name in os.listdir(path))


class Blobs:
    """The contents of a capture's buffers, by name."""

    def __init__(self, folder: Path, keep_bytes: int = KEEP_BYTES, keep_buffers: int = KEEP_BUFFERS) -> None:
        self.folder, self.keep_bytes, self.keep_buffers = folder, keep_bytes, keep_buffers
        self.decompressed = 0  # how often; each content counts once as long as it is kept
        self._kept: OrderedDict[tuple[str, int], MemfdBuffer] = OrderedDict()
        self._kept_bytes = 0
        self.budget: int | None = None  # non-zero bytes that may still be decompressed; None: no limit

    def get(self, name: str, size: int) -> MemfdBuffer:
        """A content, shared and cached; read-only."""
        if buffer := self._kept.get((name, size)):
            self._kept.move_to_end((name, size))
            return buffer
        buffer = self.copy(name, size)
        self._kept[name, size] = buffer
        self._kept_bytes += size
        while len(self._kept) > 1 and (self._kept_bytes > self.keep_bytes or len(self._kept) > self.keep_buffers):
            self._kept_bytes -= self._kept.popitem(last=False)[0][1]
        return buffer

    def copy(self, name: str, size: int) -> MemfdBuffer:
        """A private, writable copy of a content."""
        try:
            buffer = MemfdBuffer(size, name)
        except (SoftgenError, OSError, MemoryError) as error:
            raise DecodeError(f"{self.folder}: no memory for {size:#x} bytes of {name}: {error}") from None
        if name != ZERO:
            self.decompressed += 1
            with self._open(name) as file:
                self._fill(buffer, file, self.path(name))
        return buffer

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.zst"

    def _open(self, name: str) -> BinaryIO:
        path = self.path(name)
        try:
            file = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")  # a pipe must not block
        except OSError as error:
            raise DecodeError(f"{path}: cannot be read: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise DecodeError(f"{path}: is no file")
        return file

    def _fill(self, buffer: MemfdBuffer, file: BinaryIO, path: Path) -> None:
        """Decompress exactly the buffer's size: never more than stated, however much the file would inflate to."""
        done = 0
        try:
            with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file, closefd=False) as reader:
                while done < buffer.size and (chunk := reader.read(min(CHUNK, buffer.size - done))):
                    if chunk != ZEROS[: len(chunk)]:  # what stays zero costs nothing
                        self._spend(len(chunk), path)
                        buffer.view[done : done + len(chunk)] = chunk
                    done += len(chunk)
                more = reader.read(1)
        except (zstandard.ZstdError, OSError, MemoryError) as error:
            raise DecodeError(f"{path}: cannot be decompressed after {done:#x} bytes: {error}") from None
        if done < buffer.size or more:
            size = f"{done:#x}" if done < buffer.size else "more"
            raise DecodeError(f"{path}: must hold {buffer.size:#x} bytes, as its submission says, not {size}")


    def _spend(self, size: int, path: Path) -> None:
        if self.budget is not None:
            self.budget -= size
            if self.budget < 0:
                raise DecodeError(f"{path}: the buffers of its submission hold more than {MAX_HELD_BYTES:#x} bytes that are not zero")


class CaptureTrace(Events):
    """A capture directory."""

    def __init__(self, path: str | os.PathLike[str], gpu: str | None = None) -> None:
        self.path = Path(path)
        self.files = _exec_files(self.path)
        super().__init__(str(path), _device(read_exec(self.files[0]), self.files[0], gpu))
        self.gpu = gpu
        self.blobs = Blobs(self.path / "bo")
        if os.path.lexists(self.path / INCOMPLETE):
            self.note(f"the recording was cut short, or is still being written: its last submission is {exec_number(self.files[-1])}")

    def execs(self) -> Iterator[Exec]:
        """The submissions as recorded, in order."""
        for file in self.files:
            exec_ = read_exec(file, self.device.generation.address_bits)
            if not self.gpu and _device(exec_, file, None) is not self.device:
                raise DecodeError(f"{file}: is for {exec_.device}, the submissions before it for {self.device.name}")
            if exec_.seq != exec_number(file):
                self.note(f"{file.name} says it is submission {exec_.seq}")
            yield exec_

    def events(self) -> Iterator[Work]:
        for exec_ in self.execs():
            batch = exec_.batch
            label = f"submission {exec_.seq} on {exec_.engine}"
            # Each slot of a context's engine map (the low six flag bits) has hardware state of its own.
            yield Work(exec_.engine_name, self.space(exec_, label), batch.gpu_addr, "batch", exec_.seq, label,
                       end=batch.gpu_addr + batch.len if batch.len else None, context=exec_.ctx << 6 | exec_.flags & 0x3F,
                       privileged=False)  # fmt: skip

    def space(self, exec_: Exec, name: str = "") -> AddressSpace:
        """The address space of one submission."""
        space = AddressSpace(name or f"submission {exec_.seq}", self.device.generation.address_bits)
        self.blobs.budget = MAX_HELD_BYTES
        for bo in exec_.bos:
            space.map(bo.gpu_addr, self.contents(bo), writable=False)
        return space

    def contents(self, bo: BufferObject) -> MemfdBuffer:
        return self.blobs.get(bo.blob, bo.size)


def exec_number(file: Path) -> int:
    """The number in the name of a submission's file."""
    return int(EXEC.fullmatch(file.name)[1])  # type: ignore[index]


def _exec_files(path: Path) -> list[Path]:
    try:
        names = sorted((int(m[1]), name) for name in os.listdir(path) if (m := EXEC.fullmatch(name)))
    except OSError as error:
        raise DecodeError(f"{path}: cannot be read: {error.strerror}") from None
    if not names and os.path.lexists(path / INCOMPLETE):
        raise DecodeError(f"{path}: is a recording that was cut short before its first submission, or has only begun")
    if not names:
        raise DecodeError(f"{path}: is no capture: it holds no exec-NNNNNN.json")
    return [path / name for _, name in names]


def _device(exec_: Exec, file: Path, gpu: str | None) -> Device:
    """The GPU of a capture: the user's choice, else by PCI id, else by name."""
    if gpu:
        return device(gpu)
    try:
        found = device_by_pci(exec_.pci_id)
    except SpecError:
        try:
            found = device(exec_.device)
        except SpecError as error:
            raise DecodeError(f"{file}: device {exec_.device!r} with pci_id {exec_.pci_id:#06x}: {error}; name a GPU with --gpu") from None
    if round(found.generation.number * 10) != exec_.gen:
        raise DecodeError(f"{file}: gen must be {found.generation.number * 10:g} for {found.name}, not {exec_.gen}")
    return found
