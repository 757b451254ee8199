"""Areas of references: those are read from memory that a block refers to, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softgen.codec.engine import VideoEngine
from softgen.codec.picture import AREA_HEIGHT, FramePool, Samples, reference_areas
from tests.codec.record import captured, clips, shown
from tests.conftest import in_ci

UNREAD, AREA_WIDTH = 0xA5, 256
CLIPS = [name for name in clips() if not name.startswith(("jpeg", "vc1"))]
CHOSEN = "h264-mbaff", "mpeg2-fields", "mpeg2-interlaced", "vp8-segments", "vp9-compound", "hevc-inter"


@pytest.fixture
def references(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Samples]]:
    """The references of all pictures with what was read of them: host memory of frames is UNREAD before."""
    found, take, close = list[tuple[Any, Samples]](), FramePool.take, VideoEngine.close

    def marked(self: FramePool, *kind: Any) -> Any:
        frame, samples = take(self, *kind)
        samples[:] = UNREAD
        return frame, samples

    def closed(self: VideoEngine, cs: Any) -> None:
        close(self, cs)
        found.extend((frame, samples.copy()) for frame, samples in self.frames._taken[1:])

    monkeypatch.setattr(FramePool, "take", marked)
    monkeypatch.setattr(VideoEngine, "close", closed)
    return found


@pytest.mark.parametrize("name", in_ci(CLIPS, *CHOSEN))
def test_frames_do_not_depend_on_what_was_in_their_memory(name: str, references: list[Any]) -> None:
    clip = clips()[name]
    assert shown(clip, captured(name), clip["frames"]) == clip["frames"]


def test_areas_are_read_that_blocks_refer_to(references: list[tuple[Any, Samples]]) -> None:
    """The third area across begins at sample 512 of 520: of one reference all is read but that, others are read whole or not at all."""
    assert captured("vp9-tiles") == clips()["vp9-tiles"]["frames"]
    found = list[list[bool]]()
    for frame, samples in references:
        row = 2 * frame.plane[0].stride  # two bytes a sample
        luma = samples[: row * AREA_HEIGHT].reshape(-1, row)
        found.append([bool(np.all(luma[:, x : x + 2 * AREA_WIDTH] == UNREAD)) for x in range(0, row, 2 * AREA_WIDTH)])
    assert [False, False, True] in [areas[:3] for areas in found] and [True, True, True] in [areas[:3] for areas in found]


def test_each_reference_has_its_areas() -> None:
    areas, size = reference_areas(3, 4 * AREA_HEIGHT + 1)
    assert size == 5 * 8 and areas.nbytes == 3 * size and not areas.any()
