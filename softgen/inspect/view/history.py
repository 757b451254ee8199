"""Pixel history: what every draw, dispatch and other command does to one pixel of a render target, in one run of the capture.

Threads that shade the pixel run on the interpreter; each gives what it has written there, or which test after the shader kept it from that.
Fragments that are not covered, or fail a test before the shader, start no thread for the pixel. Where a pixel has several samples, each has
its bytes and its tests; stored bytes of a sample are those that the control surface says it has.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from softgen.bits.units import DWORD
from softgen.errors import SoftgenError, UsageError
from softgen.inspect.debug.breakpoints import Breakpoint
from softgen.inspect.report.pictures import Box, picture, read_words
from softgen.inspect.report.sample_pictures import SampleWords
from softgen.inspect.session.execution import CaptureExecution
from softgen.inspect.session.session import Session
from softgen.inspect.session.thread import ThreadCursor
from softgen.inspect.session.undo import Write
from softgen.memory.space import Space
from softgen.position import Position
from softgen.shared_functions.pixel_backend.interpreter import PixelBackend, PixelTest
from softgen.shared_functions.pixel_dispatch_h import PixelDispatch
from softgen.shared_functions.unit import MessageHandler
from softgen.surface.image import SurfaceImage
from softgen.surface.texels import texel_axes


@dataclass
class Fragment:
    """A thread that shaded the pixel, or a sample of it."""

    thread: str  # POSITION; `softgen debug --at` opens it
    lane: int
    writes: list[dict[str, str]] = field(default_factory=list)  # to the pixel: before and after, as hexadecimal bytes
    sample: int | None = None  # None: the pixel has only one
    failed: str = ""  # the test after the shader that kept the pixel from being written

    @property
    def wrote(self) -> bool:
        return bool(self.writes)


@dataclass
class PixelEvent:
    """A command that changed the pixel, or shaded it."""

    position: str
    name: str
    before: str  # stored bytes as hexadecimal; of samples one after another, with spaces between them
    after: str
    color: list[int]  # as the picture shows it, afterwards
    fragments: list[Fragment] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class PixelHistory:
    """The history of a pixel of a target that a draw has, or of one sample of it."""

    def __init__(self, session: Session, image: SurfaceImage, x: int, y: int, sample: int | None = None) -> None:
        _, _, width, height = image.level_box(image.level)
        if not (0 <= x < width and 0 <= y < height):
            raise UsageError(f"pixel ({x}, {y}) is outside the target of {width} x {height}")
        if sample is not None and not 0 <= sample < image.samples:
            raise UsageError(f"sample {sample}: a pixel of the target has {image.samples}, from 0 on")
        self.session, self.image, self.x, self.y = session, image, x, y
        self.samples = range(image.samples) if sample is None else (sample,)
        self.pixel = SampledPixel(image, x, y) if image.samples > 1 else StoredPixel(image, x, y)

    def events(self) -> list[PixelEvent]:
        """The events of the whole capture."""
        run = self.session.new_run()
        found: list[PixelEvent] = []
        for event in self.session.work():
            assert event.position.submission is not None and event.position.command is not None
            if not run.run_to(event.position.submission, event.position.command):
                break
            space, between = run.space, f"before {event.position}"
            self._note(found, space, between, "other commands", [])
            fragments = self._fragments(run) if event.kind == "draw" else self._plain(run)
            self._note(found, space, str(event.position), event.name, fragments)
        run.run_to_end()
        return found

    def _plain(self, run: CaptureExecution) -> list[Fragment]:
        run.finish_command()
        return []

    def _note(self, found: list[PixelEvent], space: Space, position: str, name: str, fragments: list[Fragment]) -> None:
        """Add an event if the pixel is another one now, or was shaded."""
        try:
            now = " ".join(self.pixel.stored(space, sample).hex() for sample in self.samples)
        except SoftgenError:
            return  # not mapped yet
        before = found[-1].after if found else ""
        if now == before and not fragments:
            return
        found.append(PixelEvent(position, name, before, now, self._color(space), fragments))

    def _color(self, space: Space) -> list[int]:
        try:
            shown = picture(space, self.image, Box(self.x, self.y, self.x + 1, self.y + 1)).convert("RGBA")
            return list(shown.getpixel((0, 0)))  # type: ignore[arg-type]
        except SoftgenError:
            return []

    def _fragments(self, run: CaptureExecution) -> list[Fragment]:
        """Execute a draw; the threads that shade the pixel of this target."""
        wanted = Breakpoint(0, "", Position(stage="ps"), pixel=(self.x, self.y))
        run.targets = ()
        control = run.offer_threads(wanted.wants, (self.x, self.y))
        found: list[Fragment] = []
        offered = control.next()
        while offered is not None:
            cursor = ThreadCursor(control, offered, self.session._attach)
            found += self._shaded(cursor)
            offered = control.next(True)
        run.end_control()
        targets: Sequence[SurfaceImage] = run.targets  # which the draw has set
        ours = any(target.base == self.image.base for target in targets)
        return [fragment for fragment in found if ours or fragment.wrote]

    def _shaded(self, cursor: ThreadCursor) -> list[Fragment]:
        """Run a thread; what it does to each sample."""
        thread = cursor.runner.thread
        held = PixelDispatch.from_buffer_copy(thread.pixel.tobytes())
        lanes = [lane for lane, pixel in enumerate(cursor.pixels()) if pixel == (self.x, self.y)]
        backend = _backend(cursor)
        writes: list[Write] = []
        tests: list[PixelTest] = []

        def note(_: ThreadCursor, done: Sequence[Write]) -> str:
            writes.extend(done)
            return ""

        if backend is not None:
            backend.told = tests
        cursor.run(note)
        if backend is not None:
            backend.told = None
        tests = [test for test in tests if test.base == self.image.base]
        found, several = [], self.image.samples > 1
        for sample, lane in itertools.product(self.samples, lanes):
            if several and not held.sample_lit[sample] >> lane & 1:  # not covered, or failed a test before; or another lane's
                continue
            fragment = Fragment(str(cursor.offered.position), lane, sample=sample if several else None)
            address = self.pixel.address(sample)
            fragment.writes = [_part(write, address, self.image.size) for write in writes if _touches(write, address, self.image.size)]
            fragment.failed = _failed(tests, lane, sample, fragment.wrote)
            found.append(fragment)
        return found


class StoredPixel:
    """Where a pixel is in memory."""

    def __init__(self, image: SurfaceImage, x: int, y: int) -> None:
        across, down = texel_axes(image)
        self.size, self._address = image.size, image.base + int(across[x]) + int(down[y])

    def address(self, sample: int) -> int:
        return self._address

    def stored(self, space: Space, sample: int) -> bytes:
        return space.read(self._address, self.size)


class SampledPixel:
    """Where the samples of a pixel are in memory."""

    def __init__(self, image: SurfaceImage, x: int, y: int) -> None:
        self.image, self.x, self.y = image, x, y
        self._words: SampleWords | None = None

    def _in(self, space: Space) -> SampleWords:
        if self._words is None:
            self._words = SampleWords(space, self.image, read_words)
        self._words.space = space
        return self._words

    def address(self, sample: int) -> int:
        """Of a sample in its own slice."""
        assert self._words is not None
        across, down = self._words.axes[sample]
        return self.image.base + int(across[self.x]) + int(down[self.y])

    def stored(self, space: Space, sample: int) -> bytes:
        words = self._in(space)
        space.read(self.address(sample), self.image.size)  # it is mapped
        held = words.rows(slice(self.y, self.y + 1), slice(self.x, self.x + 1))[sample]
        return b"".join(int(word[0, 0]).to_bytes(DWORD, "little") for word in held)[: self.image.size]


def _backend(cursor: ThreadCursor) -> PixelBackend | None:
    """The pixel backend that answers a thread's messages."""
    handlers = [handler for handler in cursor.runner.thread.messages.values() if isinstance(handler, MessageHandler)]
    units = (unit for handler in handlers for unit in handler.others.values())
    return next((unit for unit in units if isinstance(unit, PixelBackend)), None)


def _failed(tests: list[PixelTest], lane: int, sample: int, wrote: bool) -> str:
    """The first test that a lane does not pass; '' where it passes all, or the memory is written by another name."""
    ours = [test for test in tests if test.sample in (None, sample) and 0 <= lane - test.first < len(test.passed)]
    if not ours:
        return "" if wrote else "the shader writes nothing to this target"
    name = next((test.test for test in ours if not test.passed[lane - test.first]), "")
    return "the shader kills the pixel" if name == "shader" else name


def _touches(write: Write, address: int, size: int) -> bool:
    return write.address < address + size and address < write.address + len(write.after)


def _part(write: Write, address: int, size: int) -> dict[str, str]:
    """What a write changed of the pixel."""
    first, last = max(address - write.address, 0), min(address + size - write.address, len(write.after))
    return {"before": write.before[first:last].hex(), "after": write.after[first:last].hex()}
