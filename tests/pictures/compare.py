"""Pictures beside pictures of another renderer: where the reference is smooth, colours must agree.

Renderers may differ at edges, where one pixel more or less is covered; so only pixels count whose 5x5 neighbourhood in the reference
varies by at most SMOOTH. Of these, at least ENOUGH must be within NEAR units of 8-bit colour. Lines and points have no smooth places; so
of the pixels that are not of the background's colour, MOST must be near as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

SMOOTH, NEAR, ENOUGH, MOST = 16, 2, 0.999, 0.9
AROUND = 2  # pixels of a neighbourhood on each side
Picture = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Comparison:
    counted: int  # pixels in smooth places
    near: int  # of these, those that agree
    worst: int  # largest difference in a smooth place
    where: tuple[int, int]  # column and row of it
    drawn: int  # pixels that differ from the background, the colour of the first one, in either picture
    drawn_near: int  # of these, those that agree
    equal: bool  # bit for bit, everywhere

    @property
    def agrees(self) -> bool:
        return self.counted > 0 and self.near >= ENOUGH * self.counted and self.drawn_near >= MOST * self.drawn

    def __str__(self) -> str:
        smooth = f"{self.near} of {self.counted} smooth pixels agree; the worst, at {self.where}, is {self.worst} apart"
        return f"{smooth}; {self.drawn_near} of {self.drawn} pixels beside the background agree"


def read_pam(path: Path) -> Picture:
    """A PAM file of the programs in this folder."""
    head, _, data = path.read_bytes().partition(b"ENDHDR\n")
    width, height, depth = (int(re.search(rb"%s (\d+)" % name, head)[1]) for name in (b"WIDTH", b"HEIGHT", b"DEPTH"))  # type: ignore[index]
    return np.frombuffer(data, np.uint8).reshape(height, width, depth)


def smooth(reference: Picture) -> npt.NDArray[np.bool_]:
    """Pixels whose neighbourhood varies little, in every channel. At the border the neighbourhood is what there is of it."""
    padded = np.pad(reference, ((AROUND, AROUND), (AROUND, AROUND), (0, 0)), mode="edge").astype(np.int16)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * AROUND + 1, 2 * AROUND + 1), (0, 1))
    varies = windows.max((-2, -1)) - windows.min((-2, -1))
    calm: npt.NDArray[np.bool_] = (varies <= SMOOTH).all(-1)
    return calm


def compare(found: Picture, reference: Picture) -> Comparison:
    assert found.shape == reference.shape, f"sizes differ: {found.shape}, not {reference.shape}"
    calm = smooth(reference)
    apart = np.abs(found.astype(np.int16) - reference).max(-1)
    in_calm = np.where(calm, apart, -1)
    row, column = np.unravel_index(in_calm.argmax(), in_calm.shape)
    drawn = ((reference != reference[0, 0]) | (found != reference[0, 0])).any(-1)
    near = apart <= NEAR
    return Comparison(int(calm.sum()), int(near[calm].sum()), int(in_calm.max()), (int(column), int(row)), int(drawn.sum()),
                      int(near[drawn].sum()), bool(np.array_equal(found, reference)))  # fmt: skip
