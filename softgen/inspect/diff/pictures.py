"""Pictures compared pixel by pixel, exactly unless told otherwise; render targets of the draws of two captures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softgen.errors import SoftgenError
from softgen.inspect.diff.captures import CaptureDifference
from softgen.inspect.session.session import Session, TargetPicture

if TYPE_CHECKING:
    from PIL.Image import Image

Array = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class PictureDifference:
    """How two pictures differ."""

    sizes: tuple[tuple[int, int], tuple[int, int]]  # width and height
    pixels: int = 0  # that differ by more than is allowed
    most: int = 0  # the largest difference of a channel
    first: tuple[int, int] | None = None  # the first such pixel, x and y
    expected: tuple[int, ...] = ()  # its channels
    got: tuple[int, ...] = ()

    @property
    def same(self) -> bool:
        return self.sizes[0] == self.sizes[1] and not self.pixels

    def __str__(self) -> str:
        if self.sizes[0] != self.sizes[1]:
            (width, height), (other_width, other_height) = self.sizes
            return f"{width} x {height} pixels expected, got {other_width} x {other_height}"
        if self.first is None:
            return "the same"
        x, y = self.first
        return (f"{self.pixels:,} of {self.sizes[0][0] * self.sizes[0][1]:,} pixels differ, by {self.most} at most; "
                f"the first at ({x}, {y}): expected {' '.join(map(str, self.expected))}, got {' '.join(map(str, self.got))}")  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"same": self.same}


def compare(expected: Image, got: Image, most: int = 0, by: int = 0) -> PictureDifference:
    """Compare two pictures. `most` pixels may differ by any value, any pixel by up to `by` in each channel."""
    arrays = pixels(expected), pixels(got)
    sizes = expected.size, got.size
    if sizes[0] != sizes[1]:
        return PictureDifference(sizes)
    far = np.abs(arrays[0].astype(np.int16) - arrays[1]).max(axis=2)
    wrong = np.argwhere(far > by)
    if len(wrong) <= most:
        return PictureDifference(sizes, most=int(far.max(initial=0)))
    y, x = (int(value) for value in wrong[0])
    return PictureDifference(sizes, len(wrong), int(far.max()), (x, y), *(tuple(int(v) for v in array[y, x]) for array in arrays))


def pixels(image: Image) -> Array:
    """Red, green, blue and alpha of each pixel."""
    found: Array = np.asarray(image.convert("RGBA"))
    return found


def difference(expected: Image, got: Image) -> Image:
    """Where two pictures of the same size differ: black where not, brighter the more they do."""
    from PIL import Image as images

    far = np.abs(pixels(expected).astype(np.int16) - pixels(got))
    shown = np.minimum(far[..., :3].max(axis=2, keepdims=True) | far[..., 3:], 255)
    shown = np.where(shown, np.maximum(shown, 64), 0).astype(np.uint8)
    return images.fromarray(np.repeat(shown, 3, axis=2))


def drawn(before: Session, after: Session, found: CaptureDifference) -> list[dict[str, Any]]:
    """The render targets that aligned draws leave differently. Both captures are executed."""
    differences: list[dict[str, Any]] = []
    for one, other in found.pairs:
        if one.kind != "draw":
            continue
        try:
            both = before.targets(one.position), after.targets(other.position)
        except SoftgenError as error:
            found.notes.append(f"{one.position} and {other.position}: {error}")
            continue
        if len(both[0]) != len(both[1]):
            counts = f"drawn to {len(both[0])} target{'s' if len(both[0]) != 1 else ''} and to {len(both[1])}"
            differences.append({"before": str(one.position), "after": str(other.position), "target": None, "text": counts})
        for target, its in zip(*both, strict=False):
            if (difference := _differs(target, its)) is not None:
                differences.append({"before": str(one.position), "after": str(other.position), "target": target.number} | difference)
    return differences


def _differs(target: TargetPicture, other: TargetPicture) -> dict[str, Any] | None:
    if target.picture is None or other.picture is None:
        return None if target.why == other.why else {"text": target.why or other.why}
    found = compare(target.picture, other.picture)
    return None if found.same else found.as_json() | {"text": str(found)}
