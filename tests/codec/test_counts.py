"""What a report counts of the video engine: pictures by standard, blocks concealed, time."""

from __future__ import annotations

from itertools import islice

import pytest

from softgen.command import NO_VIDEO, Counters, VideoWork
from softgen.inspect.report.report import summary
from softgen.trace.file import open_trace
from softgen.trace.replay import replay
from tests.codec.record import DATA
from tests.codec.test_hostile import damaged
from tests.inspect.report.test_report import made


@pytest.mark.parametrize(("name", "pictures"), [("h264-cavlc", {"avc": 5}), ("vp9-tiles", {"vp9": 3}), ("jpeg-420", {"jpeg": 2})])
def test_pictures_are_counted_by_standard(name: str, pictures: dict[str, int]) -> None:
    work = replay(open_trace(DATA / name)).counters.video
    assert work.pictures == pictures and work.concealed == 0 and 0 < work.seconds < 10


def test_blocks_are_counted_that_were_concealed() -> None:
    """The register that a picture clears holds those of the last one."""
    found, registers = 0, 0
    for device, work in islice(damaged("h264-cavlc", 3, 0.3, False), 5):
        device.execute(work)
        found, registers = device.counters.video.concealed, registers + (device.read_register(0x12868))
    assert found == registers > 10


def test_work_of_counters_is_added_and_subtracted() -> None:
    one, two = VideoWork({"avc": 2}, 3, 0.5), VideoWork({"avc": 1, "hevc": 4}, 5, 0.25)
    total = Counters(video=one)
    total.add(Counters(video=two))
    assert total.video == VideoWork({"avc": 3, "hevc": 4}, 8) and total.video.seconds == 0.75 and one.pictures == {"avc": 2}
    assert total.since(Counters(video=one)).video == VideoWork({"avc": 1, "hevc": 4}, 5)
    assert total.since(total).video is NO_VIDEO and one + NO_VIDEO is one


def test_a_report_has_a_line_of_video() -> None:
    work = {"pictures": {"avc": 1200, "jpeg encoded": 1}, "concealed": 1, "seconds": 0.12345}
    assert [line for _, line in summary(made(video=work))][1] == (
        "video: pictures 1,200 avc, 1 jpeg encoded; 1 block concealed; 0.123 s in the engine")  # fmt: skip
