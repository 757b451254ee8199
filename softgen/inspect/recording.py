"""Recording a run: every submission of a program, before and after, as a capture directory; and one that failed, to attach to a report."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

from softgen.bits.generation import Device
from softgen.driver.gem import TILINGS
from softgen.driver.i915_drm import EXEC_OBJECT_PINNED, EXEC_OBJECT_WRITE
from softgen.driver.queue import Bound, Submission
from softgen.errors import SoftgenError
from softgen.trace.capture_json import Batch, BufferObject, Exec, write_exec
from softgen.trace.capture_write import CaptureWriter, nonzero

KEPT_FAILURES = 20
MOST_KEPT = 4 << 30  # bytes of buffers in a failing submission


def exec_of(submission: Submission, device: Device, bos: tuple[BufferObject, ...]) -> Exec:
    batch = Batch(submission.batch_index, submission.bound[submission.batch_index].handle, submission.batch, submission.batch_start,
                  submission.batch_size)  # fmt: skip
    return Exec(submission.sequence, device.name, device.pci_id, round(device.generation.number * 10), submission.engine, batch, bos,
                pid=submission.pid, ctx=submission.context.number, vm=0, flags=submission.flags, relocs=submission.relocations,
                total_bytes=sum(bo.size for bo in bos))  # fmt: skip


class Recorder(CaptureWriter):
    """A capture in the making, fed by the server."""

    def __init__(self, path: str | os.PathLike[str], device: Device) -> None:
        super().__init__(path)
        self.device = device
        self.waiting: dict[Submission, tuple[BufferObject, ...]] = {}

    def before(self, submission: Submission) -> None:
        self.waiting[submission] = tuple(self.kept(bound) for bound in submission.bound)

    def after(self, submission: Submission, fine: bool) -> None:
        bos = self.waiting.pop(submission)
        if fine:
            bos = tuple(replace(bo, after=self.content(bound)[0]) for bo, bound in zip(bos, submission.bound, strict=True))
        file = self.folder / f"exec-{submission.sequence:06d}.json"
        file.write_text(write_exec(exec_of(submission, self.device, bos)), "utf-8")

    def content(self, bound: Bound) -> tuple[str, int]:
        """The name of what a buffer holds now, and how much of it is not zero."""
        view = memoryview(bound.bo.read(0, bound.bo.size))
        return self.blob(view), nonzero(view)

    def kept(self, bound: Bound) -> BufferObject:
        bo, (blob, used) = bound.bo, self.content(bound)
        return BufferObject(bound.address, bo.size, blob, bound.handle, bo.uid, used, TILINGS[bo.tiling][0], bo.stride,
                            bool(bound.flags & EXEC_OBJECT_PINNED), bool(bound.flags & EXEC_OBJECT_WRITE), bo.user, bound.flags,
                            bound.relocations)  # fmt: skip

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def failures() -> Path:
    """Where failing submissions are kept (XDG)."""
    root = os.environ.get("XDG_STATE_HOME", "")
    return (Path(root) if root.startswith("/") else Path(os.path.expanduser("~/.local/state"))) / "softgen" / "failures"


def keep_failure(submission: Submission, message: str, device: Device) -> str:
    """One submission as it stands when it failed; the oldest make room."""
    if sum(bound.bo.size for bound in submission.bound) > MOST_KEPT:
        raise SoftgenError(f"its buffers have more than {MOST_KEPT >> 30} GiB")
    folder = failures()
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # a buffer holds whatever the program computes with
    for old in sorted((one for one in folder.iterdir() if not one.name.startswith(".")), key=lambda one: one.name)[: -KEPT_FAILURES + 1]:
        shutil.rmtree(old, ignore_errors=True)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{submission.pid}-{submission.sequence}"
    recorder = Recorder(path, device)
    with recorder:
        recorder.before(submission)
        recorder.after(submission, fine=False)
        (recorder.folder / "message.txt").write_text(f"{message.strip()}\n", "utf-8")
    path.chmod(0o700)
    return str(path)
