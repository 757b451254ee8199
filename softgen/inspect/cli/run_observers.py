"""What shows a run to people: recordings, pictures, frames, the page of `softgen run --show`, names of kernels in messages."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from softgen.errors import UsageError
from softgen.inspect.cli.engine import traced
from softgen.inspect.cli.output import complain

if TYPE_CHECKING:
    from softgen.bits.generation import Device
    from softgen.driver.kms.crtc import Crtc
    from softgen.driver.objects.submission import Submission
    from softgen.driver.run.simulator import Observers
    from softgen.eu.interpreter import KernelProgram
    from softgen.inspect.frames.options import FrameOptions
    from softgen.inspect.frames.show import LiveSink, ShowOptions
    from softgen.inspect.frames.sink import FrameSink
    from softgen.inspect.report.frames import FramePictures
    from softgen.inspect.report.pictures import Room, SubmissionPictures
    from softgen.inspect.report.recording import Recorder


def frame_sink(options: FrameOptions | None) -> FrameSink | None:
    """What keeps presented frames, where that was asked for."""
    if options is None:
        return None
    from softgen.inspect.frames.sink import FrameSink

    return FrameSink(options, complain)


def page(args: argparse.Namespace) -> ShowOptions | None:
    """The page of --show, at an address that is said before the program starts."""
    if not args.show:
        if args.port is not None:
            raise UsageError("--port is that of --show")
        return None
    from softgen.inspect.frames.show import ShowOptions

    made = ShowOptions(args.port or 0)
    complain(f"live at {made.url}")
    return made


def live_sink(options: ShowOptions | None) -> LiveSink | None:
    if options is None:
        return None
    from softgen.inspect.frames.show import LiveSink

    return LiveSink(options, complain)


def observers(args: argparse.Namespace, gpu: Device, recorder: Recorder | None, pictures: SubmissionPictures | None,
              sinks: Sequence[FrameSink | LiveSink], programs: str | None) -> Observers:  # fmt: skip
    """What a run is recorded, drawn and traced with."""
    from softgen.driver.run.simulator import Observers

    found = Observers(complain, partial(save_failure, gpu), trace=traced(args, "ioctls"))
    found.ioctls = complain if "ioctls" in (args.trace or "").split(",") else None
    found.recorders = [item for item in (recorder, pictures) if item]
    if recorder:
        found.close = recorder.complete
    shown: list[FrameSink | LiveSink | FramePictures] = list(sinks)
    if pictures:
        from softgen.inspect.report.frames import FramePictures

        shown.append(FramePictures(pictures.folder, pictures.files, complain))
        found.drawn = pictures.drawn
    if shown:

        def presented(crtc: Crtc, number: int) -> None:
            for item in shown:
                item.presented(crtc, number)

        def use_room(room: Room) -> None:
            for item in (*shown, *([pictures] if pictures else [])):
                item.room = room

        found.presented, found.use_room = presented, use_room
    if places := [*args.kernels, *([programs] if programs else [])]:
        found.named = partial(renamed, places)
    return found


def renamed(places: list[str], text: str, programs: Iterable[KernelProgram]) -> str:
    """A message with names of kernels for their addresses; binaries are read anew, because programs compile more and more."""
    from softgen.inspect.report.kernel_names import KernelNames

    return KernelNames(places).renamed(text, programs)


def save_failure(gpu: Device, submission: Submission, message: str) -> str:
    from softgen.inspect.report.recording import keep_failure

    return keep_failure(submission, message, gpu)
