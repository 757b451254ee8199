"""Pictures: render targets in memory as image files.

    picture(space, image)                a Pillow image of the level and slice that the surface addresses
    pictures = TargetPictures("out")      collects the targets of each submission (`drawn`), and writes them when it ends (`write`)

Stored values are shown as they are: sRGB targets without conversion, floats and integers clamped, one channel (depth too) as grey.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softgen.bits.formats import Format, FormatChannel
from softgen.codec.image import VideoImage
from softgen.errors import SoftgenError, Unsupported, UsageError
from softgen.inspect.output_file import write_file
from softgen.inspect.report.sample_pictures import SampleWords
from softgen.inspect.report.video_pictures import rgb
from softgen.memory.space import Space
from softgen.surface.image import SurfaceImage
from softgen.surface.texels import texel_axes

if TYPE_CHECKING:
    from PIL.Image import Image

    from softgen.driver.objects.submission import Submission

Array = npt.NDArray[Any]
BAND, BAND_BYTES = 1 << 16, 64  # texels that are read at a time, and what each takes meanwhile
BLOCK = 4  # rows
RGB = 3  # channels
COPIES = 3  # of a picture: as an array, as an image, and as a file
DWORD_BITS = 32
WHITE = 255
HALF_SHIFTS = {10: 5, 11: 4}  # an unsigned float of 10 or 11 bits, shifted so far left, is a half float (public Intel PRM, formats)


Room = Callable[[int, int], AbstractContextManager[None]]  # for a process, so many bytes; SoftgenError where there is none


def any_room(pid: int, size: int) -> AbstractContextManager[None]:
    """No limit."""
    return nullcontext()


class Box(NamedTuple):
    """A part of a picture, in texels."""

    left: int
    top: int
    right: int
    bottom: int


def picture(space: Space, image: SurfaceImage, box: Box | None = None) -> Image:
    """The level and slice of a surface that its state addresses, or a part of it, as a Pillow image. Made in bands: surfaces are large."""
    from PIL import Image

    if isinstance(image, VideoImage):
        made = Image.fromarray(rgb(image, lambda plane: picture(space, plane)))
        return made if box is None else made.crop(box)
    channels = list(shown(image).values())
    if image.samples > 1:
        return Image.fromarray(_resolved(space, image, channels, box or Box(0, 0, image.width, image.height)))
    across, down = texel_axes(image)
    if box is not None:
        across, down = across[box.left : box.right], down[box.top : box.bottom]
    found, rows = np.zeros((len(down), len(across), _planes(channels)), np.uint8), max(BAND // max(len(across), 1), 1)
    for first in range(0, len(down), rows):
        texels = read_words(space, image, np.add.outer(down[first : first + rows], across))
        for plane, (channel, at) in enumerate(channels):
            found[first : first + rows, :, plane] = eight_bits(channel, bits(texels, at, channel.bits))
    return Image.fromarray(found[..., 0] if len(channels) == 1 else found)


def _resolved(space: Space, image: SurfaceImage, channels: list[tuple[FormatChannel, int]], box: Box) -> npt.NDArray[np.uint8]:
    """Channels of pixels with several samples: the mean of what each shows."""
    samples = SampleWords(space, image, read_words)
    step = max(BAND // max(box.right - box.left, 1) // image.samples // BLOCK * BLOCK, BLOCK)
    found = np.zeros((box.bottom - box.top, box.right - box.left, _planes(channels)), np.uint8)
    for first in range(box.top, box.bottom, step):
        held = samples.rows(slice(first, min(first + step, box.bottom)), slice(box.left, box.right))
        for plane, (channel, at) in enumerate(channels):
            shown = [eight_bits(channel, bits(words, at, channel.bits)).astype(np.float64) for words in held]
            found[first - box.top : first - box.top + step, :, plane] = np.rint(sum(shown) / len(shown))
    return found[..., 0] if len(channels) == 1 else found


def picture_bytes(image: SurfaceImage, box: Box | None = None) -> int:
    """Memory that a picture takes while it is made and written, about."""
    _, _, width, height = image.level_box(image.level)
    planes = RGB if isinstance(image, VideoImage) else _planes(list(shown(image).values()))
    if box is not None:
        width, height = box.right - box.left, box.bottom - box.top
    return COPIES * width * height * planes + BAND * BAND_BYTES


def _planes(channels: list[tuple[FormatChannel, int]]) -> int:
    """The channels of a picture: where there are several, red, green and blue are among them."""
    return 1 if len(channels) == 1 else max(len(channels), 3)


def png(image: Image) -> bytes:
    """A picture as the contents of a PNG file."""
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def shown(image: SurfaceImage) -> dict[str, tuple[FormatChannel, int]]:
    """The channels that a picture shows, red first, each with its lowest bit; Unsupported where there can be no picture."""
    if image.kind in ("buffer", "null"):
        raise Unsupported(f"pictures of a {image.kind} surface: not yet made")
    return shown_channels(image.format)


def shown_channels(format: Format) -> dict[str, tuple[FormatChannel, int]]:
    """The channels of texels of a format that a picture shows, likewise."""
    found = channel_bits(format)
    wide = format.bits > 4 * DWORD_BITS or any(channel.bits > DWORD_BITS for channel, _ in found.values())
    if format.coding or format.block != (1, 1) or not found or wide:
        raise Unsupported(f"pictures of surfaces of format {format}: not yet made")
    ordered = {name: found[name] for name in "rgba" if name in found}
    return ordered if ordered.keys() - {"a"} else dict([next(iter(found.items()))])  # luminance rather than its alpha


def channel_bits(format: Format) -> dict[str, tuple[FormatChannel, int]]:
    found, at = {}, 0
    for channel in format.channels:
        if channel.name != "x" and channel.type != "void":
            found[channel.name] = channel, at
        at += channel.bits
    return found


def read_words(space: Space, image: SurfaceImage, at: npt.NDArray[np.int64]) -> list[npt.NDArray[np.uint32]]:
    """The 32-bit words of texels at offsets, as arrays of rows; memory that is not mapped reads as zero."""
    low = int(at.min())
    data, at = np.frombuffer(read(space, image.base + low, int(at.max()) + image.size - low), np.uint8), at - low
    words = []
    for first in range(0, image.size, 4):
        word = np.zeros(at.shape, np.uint32)
        for byte in range(first, min(first + 4, image.size)):
            word |= data[at + byte].astype(np.uint32) << np.uint32(8 * (byte - first))
        words.append(word)
    return words


def read(space: Space, address: int, size: int) -> bytes:
    """Memory with zeros where nothing is mapped."""
    found = bytearray(size)
    for region in space.regions():
        start, end = max(region.start, address), min(region.start + region.size, address + size)
        if start < end:
            found[start - address : end - address] = space.read(start, end - start)
    return bytes(found)


def bits(words: list[npt.NDArray[np.uint32]], at: int, count: int) -> npt.NDArray[np.uint32]:
    """A field of each texel."""
    if at % DWORD_BITS + count > DWORD_BITS:
        raise Unsupported(f"pictures of channels that cross words (bits {at} to {at + count - 1}): not yet made")
    field = words[at // DWORD_BITS] >> np.uint32(at % DWORD_BITS)
    return field & np.uint32((1 << count) - 1)


def eight_bits(channel: FormatChannel, raw: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """A channel's values as 0 to 255."""
    signed: Array = (raw.astype(np.int64) ^ 1 << channel.bits - 1) - (1 << channel.bits - 1)
    values: Array
    if channel.type in ("uint", "raw"):
        values = raw / WHITE
    elif channel.type == "sint":
        values = signed / WHITE
    elif channel.type == "unorm":
        values = raw.astype(np.float64) / ((1 << channel.bits) - 1)
    elif channel.type == "snorm":
        values = signed / ((1 << channel.bits - 1) - 1)
    elif channel.type in ("float", "ufloat"):
        values = _float(channel, raw)
    else:
        raise Unsupported(f"pictures of {channel.type} channels: not yet made")
    scaled: Array = np.rint(np.clip(np.nan_to_num(values, nan=0.0), 0, 1) * WHITE)
    return scaled.astype(np.uint8)


def _float(channel: FormatChannel, raw: npt.NDArray[np.uint32]) -> Array:
    if channel.bits == DWORD_BITS:
        return raw.view(np.float32).astype(np.float64)
    return (raw << np.uint32(HALF_SHIFTS.get(channel.bits, 0))).astype(np.uint16).view(np.float16).astype(np.float64)


class TargetPictures:
    """The render targets of submissions, written as PNG files when a submission ends: submission-2-draw-5-target-0.png.

    The number of the draw is that of the last one that wrote to the target, counted from 1 in the submission."""

    def __init__(self, folder: str | os.PathLike[str], complain: Callable[[str], None] = lambda text: None) -> None:
        self.folder, self.complain = Path(folder), complain
        self.files: list[str] = []
        self.room: Room = any_room
        self._drawn: dict[Hashable, _Submission] = {}
        self._lock = threading.Lock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            taken = any(self.folder.iterdir())
        except OSError as error:
            raise UsageError(f"--images {folder}: {error.strerror}") from None
        if taken:
            raise UsageError(f"--images {folder}: the folder has files in it already; pictures go into a new or empty one")

    def drawn(self, submission: Hashable, space: Space, targets: Iterable[SurfaceImage]) -> None:
        """A draw of a submission wrote to these targets."""
        with self._lock:
            self._drawn.setdefault(submission, _Submission()).add(space, targets)

    def write(self, submission: Hashable, label: str, pid: int = 0) -> list[str]:
        """Write the targets that a submission of a process drew to; paths of the files. What cannot be shown is complained about."""
        with self._lock:
            ended = self._drawn.pop(submission, None)
        written = []
        for (number, image), (draw, space) in ended.targets.items() if ended else ():
            what = f"picture-{draw}{f'-{number}' if number else ''}" if isinstance(image, VideoImage) else f"draw-{draw}-target-{number}"
            path = self.folder / f"{label}-{what}.png"
            try:
                with self.room(pid, picture_bytes(image)):
                    data = png(picture(space, image))
            except SoftgenError as error:
                self.complain(f"{path.name}: {error}")
                continue
            write_file(path, data)
            written.append(str(path))
        self.files += written
        return written


class SubmissionPictures(TargetPictures):
    """Pictures of live submissions, written by the executor as it records (driver/queue/execute.py, SubmissionRecorder)."""

    def before(self, submission: Submission) -> None:
        pass

    def after(self, submission: Submission, fine: bool) -> None:
        self.write(submission, f"submission-{submission.sequence}", submission.pid)


class _Submission:
    """Targets of one submission, each with the last draw that wrote to it."""

    def __init__(self) -> None:
        self.draws = 0
        self.targets: dict[tuple[int, SurfaceImage], tuple[int, Space]] = {}

    def add(self, space: Space, targets: Iterable[SurfaceImage]) -> None:
        self.draws += 1
        for key in enumerate(targets):
            self.targets[key] = self.draws, space
