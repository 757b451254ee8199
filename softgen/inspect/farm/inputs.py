"""Captures on their way to workers that do not see the farm's disk: packed once, sent to each machine once, kept there by their hash."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

import zstandard

from softgen.cache import user_folder
from softgen.errors import SoftgenError
from softgen.inspect.farm.identity import tree_sum
from softgen.inspect.farm.unit import Job

LARGEST = 256 << 20  # bytes of a capture that is sent
KEPT = 4 << 30  # bytes of captures that a machine keeps


class MissingInput(Exception):
    """Raised by a worker that has none of a job's inputs: it is to be sent them."""


def folder() -> Path:
    """Where a machine keeps captures that it was sent."""
    return (user_folder("XDG_CACHE_HOME", ".cache") or Path(tempfile.gettempdir())) / "softgen" / "inputs"


def pack(job: Job) -> Job:
    """The job with its inputs."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, found in job.inputs:
            tar.add(os.path.join(job.folder, path), found)
            if packed.tell() > LARGEST:
                raise SoftgenError(f"{path}: more than {LARGEST >> 20} MiB, and workers do not see it: put it on storage that they share")
    return replace(job, payload=zstandard.compress(packed.getvalue(), 1))


def local_path(job: Job, path: str) -> str:
    """Where a capture is on this machine: at its own path, or among those that were sent."""
    known = dict(job.inputs)
    if path not in known or tree_sum(os.path.join(job.folder, path)) == known[path]:
        return path
    kept = folder() / known[path]
    if not kept.exists():
        if not job.payload:
            raise MissingInput(path)
        unpack(job.payload, kept.parent)
    os.utime(kept)
    return str(kept)


def unpack(payload: bytes, target: Path) -> None:
    """Unpack inputs under their hashes. Another process of this machine may do the same at this moment."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".new-") as new:
        with tarfile.open(fileobj=io.BytesIO(zstandard.decompress(payload))) as tar:
            tar.extractall(new, filter="data")
        for path in Path(new).iterdir():
            with contextlib.suppress(OSError):  # it is there by now
                path.rename(target / path.name)
    shrink(target)


def shrink(target: Path) -> None:
    """Remove the captures that were used least recently until the rest is small enough."""
    entries = sorted((path for path in target.iterdir() if not path.name.startswith(".")), key=lambda path: path.stat().st_mtime)
    sizes = {path: sum(file.stat().st_size for file in path.rglob("*")) or path.stat().st_size for path in entries}
    total = sum(sizes.values())
    for path in entries[:-1]:
        if total <= KEPT:
            return
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        total -= sizes[path]
