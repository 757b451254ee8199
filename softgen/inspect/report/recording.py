"""Recordings: the submissions of a run as a capture directory, and a submission that failed as a capture to attach to a report."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from softgen.bits.generation import Device
from softgen.cache import user_folder
from softgen.driver.ioctl.gem import TILINGS
from softgen.driver.objects.buffer_list import Bound
from softgen.driver.objects.gem_object import Piece
from softgen.driver.objects.submission import Submission
from softgen.driver.uapi.i915_drm import EXEC_OBJECT_PINNED, EXEC_OBJECT_WRITE
from softgen.errors import SoftgenError
from softgen.trace.capture import EXEC, INCOMPLETE
from softgen.trace.capture_json import Batch, BufferObject, Exec
from softgen.trace.capture_write import STEP, ZEROS, CaptureWriter

KEPT_FAILURES = 20
MOST_KEPT = 4 << 30  # bytes of buffers in a failing submission


def exec_of(submission: Submission, device: Device, bos: tuple[BufferObject, ...]) -> Exec:
    batch = Batch(submission.batch_index, submission.bound[submission.batch_index].handle, submission.batch, submission.batch_start,
                  submission.batch_size)  # fmt: skip
    return Exec(submission.sequence, device.name, device.pci_id, round(device.generation.number * 10), submission.engine, batch, bos,
                pid=submission.pid, ctx=submission.context.number, vm=0, flags=submission.flags, relocs=submission.relocations,
                total_bytes=sum(bo.size for bo in bos))  # fmt: skip


def parts(piece: Piece) -> Iterator[bytes]:
    """A copy of a buffer's memory in parts. Where it has no pages none is made, nor read through a mapping, which would allocate them."""
    fd, at, end = piece.buffer.fd, piece.offset, piece.offset + piece.size
    while at < end:
        first, last = next_data(fd, at, end)
        yield from (ZEROS[: first - start] for start in range(at, first, STEP))
        yield from (os.pread(fd, min(STEP, last - start), start) for start in range(first, last, STEP))
        at = last


def next_data(fd: int, at: int, end: int) -> tuple[int, int]:
    """The next range of a memfd that has pages, before an end; an empty one at the end where there is none."""
    try:
        first = os.lseek(fd, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return end, end
    return min(first, end), min(os.lseek(fd, first, os.SEEK_HOLE), end)


class Recorder(CaptureWriter):
    """Writes each submission twice: before it runs, so that one that ends the server is kept, and after it with its results."""

    def __init__(self, path: str | os.PathLike[str], device: Device, in_place: bool = True, private: bool = False) -> None:
        super().__init__(path, in_place, private)
        self.device = device
        self.running: dict[Submission, tuple[BufferObject, ...]] = {}
        self.cut_short = self.ended = False

    def before(self, submission: Submission) -> None:
        if self.ended:
            return
        bos = tuple(self.recorded(bound) for bound in submission.bound)
        self.write(exec_of(submission, self.device, bos))
        self.running[submission] = bos

    def after(self, submission: Submission, fine: bool) -> None:
        if submission not in self.running or self.ended:
            return
        bos = self.running[submission]
        self.cut_short |= not fine and submission.context.cancelled  # its program is gone: it was ended before it was done
        if fine:
            bos = tuple(replace(bo, after=self.content(bound)[0]) for bo, bound in zip(bos, submission.bound, strict=True))
            self.write(exec_of(submission, self.device, bos))
        del self.running[submission]  # not where the disk is full: then the recording stays incomplete

    def content(self, bound: Bound) -> tuple[str, int]:
        """The name of what a buffer holds now, and how much of it is not zero."""
        return self.blob_of([part for piece in bound.bo.pieces for part in parts(piece)])

    def recorded(self, bound: Bound) -> BufferObject:
        bo, (blob, used) = bound.bo, self.content(bound)
        return BufferObject(bound.address, bo.size, blob, bound.handle, bo.uid, used, TILINGS[bo.tiling][0], bo.stride,
                            bool(bound.flags & EXEC_OBJECT_PINNED), bool(bound.flags & EXEC_OBJECT_WRITE), bo.user, bound.flags,
                            bound.relocations)  # fmt: skip

    def complete(self) -> None:
        """End the recording; it stays marked as incomplete if a submission runs or was ended early."""
        self.ended = True
        if not self.running and not self.cut_short:
            super().complete()

    def close(self) -> str:
        """Leave the recording as it is on disk; the result is '' where it is complete, otherwise what to tell the user."""
        if not os.path.lexists(self.path / INCOMPLETE):
            return ""
        if number := sum(EXEC.fullmatch(name) is not None for name in os.listdir(self.path)):
            return f"{self.path}: the recording was cut short; it holds {number} submission{'s' if number > 1 else ''}"
        shutil.rmtree(self.path / "bo", ignore_errors=True)
        (self.path / INCOMPLETE).unlink(missing_ok=True)
        try:
            self.path.rmdir()
        except OSError:
            pass  # the folder has other files
        return f"{self.path}: nothing was recorded"


def failures() -> Path:
    """The directory of failing submissions: SOFTGEN_FAILURES, or in XDG_STATE_HOME."""
    if (chosen := os.environ.get("SOFTGEN_FAILURES", "")).startswith("/"):
        return Path(chosen)
    folder = user_folder("XDG_STATE_HOME", ".local/state")
    if folder is None:
        raise SoftgenError("there is no home folder; XDG_STATE_HOME may name another")
    return folder / "softgen" / "failures"


def keep_failure(submission: Submission, message: str, device: Device) -> str:
    """Keep a failed submission with the memory it left, for its user alone; only the newest KEPT_FAILURES are kept."""
    if sum(bound.bo.size for bound in submission.bound) > MOST_KEPT:
        raise SoftgenError(f"its buffers have more than {MOST_KEPT >> 30} GiB")
    folder = failures()
    folder.mkdir(0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)  # an older version made it for all to read
    for old in sorted(path for path in folder.iterdir() if not path.name.startswith("."))[: -KEPT_FAILURES + 1]:
        shutil.rmtree(old, ignore_errors=True)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{submission.pid}-{submission.sequence}"
    recorder = Recorder(path, device, in_place=False, private=True)
    with recorder:
        recorder.before(submission)
        recorder.after(submission, fine=False)
        (recorder.folder / "message.txt").write_text(f"{message.strip()}\n", "utf-8")
    return str(path)
