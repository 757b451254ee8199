"""Frames of a capture: what its submissions leave in the video engine's surfaces, read row by row without the code under test."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.codec.engine import VideoEngine
from softgen.device.gpu import GpuDevice
from softgen.memory.space import Space
from softgen.surface.tile_table import tile_offsets
from softgen.threads.dispatcher import EngineDispatcher
from softgen.trace.file import open_trace
from softgen.trace.replay import events
from softgen.trace.work import Work

Bytes = npt.NDArray[np.uint8]
TILE_BYTES, TILE_ROWS, TILE = 128, 32, 4096  # Y-major


def rows(space: Space, base: int, state: Any, first: int, count: int, width: int) -> Bytes:
    """`count` rows of `width` bytes of a Y-tiled or linear surface; those of HCP are always tiled."""
    pitch, last = state.surface_pitch + 1, first + count
    if not getattr(state, "tiled_surface", 1):
        found = np.frombuffer(space.read(base, last * pitch), np.uint8).reshape(last, pitch)
        return found[first:, :width]
    assert getattr(state, "tile_walk", 1)
    column, row = tile_offsets("y_major")
    size = -(-last // TILE_ROWS) * TILE_ROWS * pitch
    data = np.frombuffer(space.read(base, size), np.uint8)
    x, y = np.arange(width), np.arange(first, last)
    tiles = (y // TILE_ROWS * (pitch // TILE_BYTES))[:, None] + x // TILE_BYTES
    return data[tiles * TILE + column[x % TILE_BYTES] + row[y % TILE_ROWS][:, None]]


def surface(engine: VideoEngine, latched: Any) -> tuple[Any, int]:
    """The state and the address of the surface that was written last, by MFX or HCP."""
    mode = engine.mode
    if mode is None:
        return latched.by_index("HCP_SURFACE_STATE")[0], latched["HCP_PIPE_BUF_ADDR_STATE"].decoded_picture_address
    which = "pre" if mode.pre_deblocking_output_enable else "post"
    return engine.surfaces[0], getattr(latched["MFX_PIPE_BUF_ADDR_STATE"], f"{which}_deblocking_destination_address")


def frame(space: Space, engine: VideoEngine, latched: Any, size: tuple[int, int], layout: str) -> bytes:
    """The visible part of the picture that was written last: luma, then chroma as it lies in memory."""
    state, base = surface(engine, latched)
    width, height = size
    even, half = width + (width & 1), -(-height // 2)
    if layout == "yuyv422":
        return rows(space, base, state, 0, height, 2 * even).tobytes()
    if layout == "p010":
        even, width = 2 * even, 2 * width
    planes = [rows(space, base, state, 0, height, width)]
    if layout in ("nv12", "p010"):
        planes += [rows(space, base, state, state.y_offset_for_u_cb, half, even)]
    elif layout == "yuv420p":
        planes += [rows(space, base, state, first, half, even // 2) for first in (state.y_offset_for_u_cb, state.y_offset_for_v_cr)]
    return b"".join(plane.tobytes() for plane in planes)


def decoded(path: Path, threads: int = 1) -> Iterator[tuple[GpuDevice, Work]]:
    """A capture's submissions, each after it was executed on so many host threads."""
    trace = open_trace(path)
    device = GpuDevice(trace.device, dispatcher=EngineDispatcher("t1", threads))
    for event in events(trace):
        if isinstance(event, Work):
            device.execute(event)
            yield device, event


def video_frames(path: Path, size: tuple[int, int] | list[tuple[int, int]], layout: str, threads: int = 1) -> list[str]:
    """Digests of the pictures that a capture's submissions to the video engine leave, in that order; `size`: of all, or of each."""
    found, seen = list[str](), 0
    for device, work in decoded(path, threads):
        if work.engine != "video":
            continue
        saved = device.saved_context(work.context, work.engine)
        engine = saved.state(VideoEngine, device.interface.pipelines)
        if engine.completed == seen:  # it copies streams
            continue
        seen = engine.completed
        own = size[len(found)] if isinstance(size, list) else size
        found.append(digest(frame(work.space, engine, saved.latched, own, layout)))
    return found


def digest(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()
