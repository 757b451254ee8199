"""`softgen run --frames` and `--video`: which frames are saved, and that the program need not wait for them."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softgen.driver.kms.crtc import Blob, Crtc
from softgen.errors import SoftgenError, UsageError
from softgen.inspect.frames import sink as sinks
from softgen.inspect.frames.options import FrameOptions, check, chosen
from softgen.inspect.frames.scanout import compose, copied
from softgen.inspect.frames.sink import FILM, SAVE, FrameSink, summary
from softgen.inspect.frames.slots import SLOTS, FrameMessage, FrameSender
from softgen.inspect.frames.writer import FrameWriter
from tests.inspect.report.test_frames import OFFSET, plane, shown

GAMMA = Blob(3, (np.arange(256, dtype=np.uint16)[::-1] * 257).repeat(4).tobytes())


def coloured(modifier: str = "y_tiled") -> Crtc:
    """A frame of random pixels with a cursor over it, through an inverting gamma table."""
    crtc, buffer = shown(modifier=modifier)
    buffer.view[OFFSET:] = np.random.default_rng(1).integers(0, 256, len(buffer.view) - OFFSET, np.uint8).tobytes()
    return replace(crtc, cursor=plane((10, 20, 30, 51), (190, -5)), gamma_blob=GAMMA)


def test_frames_are_written_by_another_process(tmp_path: Path) -> None:
    said, crtc = list[str](), coloured()
    sink = FrameSink(FrameOptions(str(tmp_path), every=2), said.append)
    for number in range(1, 6):
        sink.presented(crtc, number)
    found = sink.close()
    assert said == [] and sorted(os.listdir(tmp_path)) == [f"frame-{number:05}.png" for number in (1, 3, 5)]
    copy = copied(crtc)
    assert copy is not None and (np.asarray(Image.open(tmp_path / "frame-00003.png")) == compose(copy)).all()
    assert found["summary"] == f"5 frames presented, 3 saved in {tmp_path}" and not sink.sender.process.returncode


def test_the_last_frame_is_saved_besides_every_so_manyth(tmp_path: Path) -> None:
    sink = FrameSink(FrameOptions(str(tmp_path), every=4, last=True), list[str]().append)
    for number in range(1, 8):
        sink.presented(coloured(), number)
    sink.close()
    assert sorted(os.listdir(tmp_path)) == [f"frame-{number:05}.png" for number in (1, 5, 7)]


def quiet(monkeypatch: pytest.MonkeyPatch, options: FrameOptions) -> tuple[FrameSink, list[FrameMessage]]:
    """A sink whose writer takes frames and never gives a slot back."""
    sent = list[FrameMessage]()
    monkeypatch.setattr(sinks, "WRITER", "this")
    monkeypatch.setattr(FrameSender, "listen", lambda sender, seconds=0.0: True)
    monkeypatch.setattr(FrameSender, "send", lambda sender, message: sent.append(message))
    return FrameSink(options, lambda text: None), sent


def test_frames_are_skipped_while_the_writer_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, sent = quiet(monkeypatch, FrameOptions("there"))
    for number in range(1, 8):
        sink.presented(shown()[0], number)
    assert [message.number for message in sent] == [1, 2, 3][:SLOTS] and sink.skipped == 7 - SLOTS
    sink.sender.process.wait()


def test_the_last_frame_is_what_the_display_shows_in_the_end(tmp_path: Path) -> None:
    """X servers draw into it without presenting it again."""
    sink, (crtc, buffer) = FrameSink(FrameOptions(str(tmp_path), last=True), print), shown()
    for number in range(1, 8):
        sink.presented(crtc, number)
    buffer.view[OFFSET:] = bytes([30, 100, 200, 0]) * ((len(buffer.view) - OFFSET) // 4)
    assert sink.close()["saved"] == 1 and os.listdir(tmp_path) == ["frame-00007.png"]
    assert (np.asarray(Image.open(tmp_path / "frame-00007.png")) == (200, 100, 30)).all()


def test_a_frame_that_has_no_room_is_complained_about(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(pid: int, size: int) -> None:
        raise SoftgenError("no room")

    sink, sent = quiet(monkeypatch, FrameOptions("there", every=1))
    said, sink.room = list[str](), none  # type: ignore[assignment]
    sink.complain = said.append
    sink.presented(shown()[0], 1)
    assert said == ["frame 1 is not saved: no room"] and sent == [] and len(sink.sender.free) == SLOTS
    sink.sender.process.wait()


def test_a_film_has_so_many_frames_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    sink, now = quiet(monkeypatch, FrameOptions("there", 3, video="film.mp4"))[0], [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    found = []
    for number in range(1, 6):
        found.append(sink.uses(number))
        sink.filmed = now[0] if FILM in found[-1] else sink.filmed
        now[0] += 0.02
    assert found == [(SAVE, FILM), (), (FILM,), (SAVE,), (FILM,)]
    sink.sender.process.wait()


@pytest.mark.parametrize("options, why", [
    (FrameOptions(every=2), "--frames"), (FrameOptions(last=True), "--frames"),
    (FrameOptions("x", 0), "--every 0"), (FrameOptions("/proc/none"), "--frames /proc/none"),
    (FrameOptions("/proc"), "files in it already"),
    (FrameOptions(video="/none/x.mp4"), "a film is a file|ffmpeg")])  # fmt: skip
def test_options_that_make_no_sense(options: FrameOptions, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check(options)


def test_no_frames_are_kept_by_default() -> None:
    assert chosen(argparse.Namespace(frames=None, every=None, last=False, video=None)) is None


def test_a_full_disk_is_told_a_few_times(tmp_path: Path) -> None:
    said = list[str]()
    writer = FrameWriter(FrameOptions(str(tmp_path / "gone")), said.append)
    for number in range(9):
        writer.save(np.zeros((2, 2, 3), np.uint8), number)
    assert len(said) == 5 and "cannot be written" in said[0] and writer.saved == 0 and writer.close() is None


def test_summaries() -> None:
    found = {"presented": 1, "saved": 1, "skipped": 0, "folder": "d", "video": "f.mp4"}
    assert summary(found) == "1 frame presented, 1 saved in d, filmed in f.mp4"
    assert "(7 skipped while others were written: --every N waits)" in summary(found | {"skipped": 7})
    assert summary(found | {"presented": 0, "folder": None, "video": None}) == "0 frames presented, none kept"
