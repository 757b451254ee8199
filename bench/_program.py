"""A program of bench/programs as a launch of softgen's Python interface."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import softgen

FOLDER = Path(__file__).parent / "programs"
GPU = "kbl"

Array = npt.NDArray[Any]
Argument = Array | np.generic


@cache
def kernel(name: str) -> softgen.Kernel:
    return softgen.load_kernels(FOLDER / f"{name}.bin", GPU)[name]


class Dispatch:
    """A launch with arguments in GPU memory: arrays, which become buffers, and numbers. `run` as often as wanted."""

    def __init__(self, name: str, arguments: Sequence[Argument], size: Sequence[int], group: Sequence[int], engine: str = "t1",
                 threads: int = 1) -> None:  # fmt: skip
        self.kernel, self.size, self.group = kernel(name), tuple(size), tuple(group)
        self.gpu = softgen.Gpu(GPU, engine, threads)
        self._given: list[Any] = [self.gpu.buffer(value) if isinstance(value, np.ndarray) else value for value in arguments]
        buffers = {number: value for number, value in enumerate(self._given) if isinstance(value, softgen.Buffer)}
        self.arrays: dict[int, Array] = {number: buffer.array for number, buffer in buffers.items()}
        self._prepared = self.gpu.prepare(self.kernel, *self._given, global_size=self.size, local_size=self.group)

    @property
    def groups(self) -> int:
        return self._prepared.groups

    def resize(self, size: Sequence[int]) -> None:
        """Launch another number of work items from now on."""
        self.size = tuple(size)
        self._prepared.free()
        self._prepared = self.gpu.prepare(self.kernel, *self._given, global_size=self.size, local_size=self.group)

    def run(self, time_limit: float | None = None) -> softgen.Run:
        return self._prepared.run(time_limit=time_limit)
