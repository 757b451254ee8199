"""Options of `softgen run` about presented frames: which are saved, and where."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import NamedTuple

from softgen.errors import UsageError


class FrameOptions(NamedTuple):
    """What is kept of the frames that a program presents."""

    folder: str | None = None  # of PNG files
    every: int | None = None  # every so many frames, however long that takes; None: as many as are written in time
    last: bool = False  # only the last one
    video: str | None = None  # a film's file


def add_frame_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--frames", metavar="DIR", help="save the frames that the program presents as PNG files to a new folder: as many "
                        "as another process can write without slowing the program down")  # fmt: skip
    parser.add_argument("--every", type=int, metavar="N", help="with --frames: save the first frame and every Nth after it; the program "
                        "waits until they are written")  # fmt: skip
    parser.add_argument("--last", action="store_true", help="with --frames: save the last frame only, or with --every that, too")
    parser.add_argument("--video", metavar="FILE", help="film what the program presents, in real time (by ffmpeg; FILE's ending says how)")


def chosen(args: argparse.Namespace) -> FrameOptions | None:
    """The options of a run, checked; None where no frame is kept."""
    options = FrameOptions(args.frames, args.every, args.last, args.video)
    check(options)
    return options if options.folder is not None or options.video is not None else None


def check(options: FrameOptions) -> None:
    """Refuse options that make no sense, and places that cannot be written to."""
    if (options.every is not None or options.last) and options.folder is None:
        raise UsageError("--every and --last say which frames --frames DIR saves; give it, too")
    if options.every is not None and options.every < 1:
        raise UsageError(f"--every {options.every}: every first, second, third … frame is saved")
    if options.folder is not None:
        check_folder(options.folder)
    if options.video is None:
        return
    if shutil.which("ffmpeg") is None:
        raise UsageError("--video: ffmpeg makes the film, and is not installed; apt-get install ffmpeg")
    if not options.video or not Path(options.video).absolute().parent.is_dir() or Path(options.video).is_dir():
        raise UsageError(f"--video {options.video}: a film is a file in a folder that exists")


def check_folder(folder: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        taken = any(Path(folder).iterdir())
    except OSError as error:
        raise UsageError(f"--frames {folder}: {error.strerror}") from None
    if taken:
        raise UsageError(f"--frames {folder}: the folder has files in it already; frames go into a new or empty one")
