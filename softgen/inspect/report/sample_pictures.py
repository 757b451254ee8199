"""Pictures of targets with several samples: the words of each sample, as control surfaces say where they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from softgen.lanes.numpy.machine import NumpyMachine
from softgen.lanes.types import MOST_LANES, u32
from softgen.lanes.value import Value
from softgen.memory.space import Space
from softgen.surface import samples
from softgen.surface.image import SurfaceImage, as_stored
from softgen.surface.sample_fetch import control_image
from softgen.surface.texels import texel_axes

Words = list[npt.NDArray[np.uint32]]
Reader = Callable[[Space, SurfaceImage, npt.NDArray[np.int64]], Words]
_MACHINE = NumpyMachine()


def _number(like: Value, number: int) -> Value:
    return _MACHINE.constant(u32, number, like.lanes)


def _in_parts(program: Callable[[list[Value]], Value], words: Words) -> npt.NDArray[Any]:
    """What a lane program makes of arrays of words, as many at a time as there are lanes."""
    flat, found = [word.reshape(-1) for word in words], []
    for first in range(0, flat[0].size, MOST_LANES):
        found.append(np.asarray(program([_MACHINE.value(u32, word[first : first + MOST_LANES]) for word in flat]).payload))
    return np.concatenate(found).reshape(words[0].shape)


class SampleWords:
    """The words of the samples of a level and slice, by rows; `read` reads texels at offsets."""

    def __init__(self, space: Space, image: SurfaceImage, read: Reader) -> None:
        self.space, self.image, self.read = space, image, read
        self.axes = [self._axes(sample) for sample in range(image.samples)]
        self.control = control_image(image)

    def _axes(self, sample: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Byte offsets of columns and rows of a sample's texels."""
        image, stored = self.image, as_stored(self.image)
        if not image.interleaved:
            return texel_axes(replace(stored, first=stored.first + sample))
        across, down = texel_axes(stored)
        columns, rows = (np.arange(size, dtype=np.uint32) for size in (image.width, image.height))

        def moved(axis: int) -> Callable[[list[Value]], Value]:
            return lambda places: samples.interleave(_MACHINE, image.samples, places[0], places[0], _number(places[0], sample))[axis]

        return across[_in_parts(moved(0), [columns])], down[_in_parts(moved(1), [rows])]

    def rows(self, rows: slice, columns: slice) -> list[Words]:
        """The words of each sample of some rows."""
        held = [self.read(self.space, self.image, np.add.outer(down[rows], across[columns])) for across, down in self.axes]
        if self.control is None or self.image.control is None:
            return held
        across, down = texel_axes(self.control)
        said = self.read(self.space, self.control, np.add.outer(down[rows], across[columns]))
        m, count = _MACHINE, self.image.samples
        clear, filled = _in_parts(lambda control: samples.is_clear(m, count, control), said), self._clear()
        found = []
        for sample in range(count):

            def slice_of(control: list[Value], sample: int = sample) -> Value:
                return samples.slice_of(m, count, control, _number(control[0], sample))

            where = np.minimum(_in_parts(slice_of, said), count - 1)
            found.append([np.where(clear, filled[n], np.choose(where, [words[n] for words in held])) for n in range(len(held[0]))])
        return found

    def _clear(self) -> list[int]:
        """The words of the clear colour."""
        control, m = self.image.control, _MACHINE
        assert control is not None
        values = [self.space.read32(control.clear_at + 4 * n) for n in range(4)] if control.clear_at else control.clear
        return [int(word.payload[0]) for word in samples.clear_words(m, self.image.format, [m.constant(u32, value, 1) for value in values])]
