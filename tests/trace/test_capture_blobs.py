"""Contents of a capture's buffers: which of them are kept for the submissions to come."""

from __future__ import annotations

from pathlib import Path

import pytest

from softgen.errors import DecodeError
from softgen.trace.capture import Blobs, CaptureTrace
from softgen.trace.capture_json import ZERO
from tests.trace.test_capture import RELOCATED


def test_few_contents_are_kept_when_there_are_many() -> None:
    blobs = Blobs(RELOCATED / "bo", keep_buffers=2)
    names = sorted(f.stem for f in (RELOCATED / "bo").iterdir())[:4]
    sizes = {bo.blob: bo.size for e in CaptureTrace(RELOCATED).execs() for bo in e.bos}
    first = bytes(blobs.get(names[0], sizes[names[0]]).view)
    for name in names:
        blobs.get(name, sizes[name])
    assert len(blobs._kept) == 2
    assert bytes(blobs.get(names[0], sizes[names[0]]).view) == first and blobs.decompressed == 5


def test_contents_that_were_used_last_are_kept() -> None:
    blobs = Blobs(RELOCATED / "bo", keep_buffers=2)
    sizes = {bo.blob: bo.size for e in CaptureTrace(RELOCATED).execs() for bo in e.bos if bo.blob != ZERO}
    one, two, three = sorted(sizes)[:3]
    for name in (one, two, one, three, one):
        blobs.get(name, sizes[name])
    assert blobs.decompressed == 3


def test_contents_are_kept_up_to_a_number_of_bytes_the_latest_used_ones(tmp_path: Path) -> None:
    """One content is always kept, however large."""
    blobs, page = Blobs(tmp_path, keep_bytes=3 * 4096), 4096
    first, second = blobs.get(ZERO, page), blobs.get(ZERO, 2 * page)
    assert blobs.get(ZERO, page) is first and blobs.get(ZERO, 2 * page) is second and blobs.get(ZERO, page) is first
    third = blobs.get(ZERO, 2 * page + 1)
    assert blobs.get(ZERO, 2 * page + 1) is third and blobs.get(ZERO, page) is not first
    fourth = blobs.get(ZERO, 4 * page)
    assert blobs.get(ZERO, 4 * page) is fourth and blobs.get(ZERO, page) is not first
    kept = [blobs.get(ZERO, page), blobs.get(ZERO, 2 * page)]
    assert [blobs.get(ZERO, page), blobs.get(ZERO, 2 * page)] == kept and blobs.decompressed == 0


def test_a_gib_of_contents_is_kept(tmp_path: Path) -> None:
    """As they are stated; zeros take no memory."""
    blobs, half = Blobs(tmp_path), 1 << 29
    first, second = blobs.get(ZERO, half), blobs.get(ZERO, half - 4096)
    assert blobs.get(ZERO, 4096) and blobs.get(ZERO, half) is first
    assert blobs.get(ZERO, 1) and blobs.get(ZERO, half) is first and blobs.get(ZERO, half - 4096) is not second


@pytest.mark.parametrize("log, fits", [(20, True), (27, True), (28, False)])
def test_contents_are_decompressed_with_a_window_of_128_mib_at_most(tmp_path: Path, log: int, fits: bool) -> None:
    """A file says itself how much memory its decompression takes (RFC 8878, 3.1.1.1.2): a frame with one block that is not compressed."""
    frame = b"\x28\xb5\x2f\xfd\0" + bytes([log - 10 << 3]) + (4096 << 3 | 1).to_bytes(3, "little")
    (tmp_path / "content.zst").write_bytes(frame + b"data" * 1024)
    blobs = Blobs(tmp_path)
    if fits:
        assert bytes(blobs.get("content", 4096).view) == b"data" * 1024
    else:
        with pytest.raises(DecodeError, match="cannot be decompressed after 0x0 bytes"):
            blobs.get("content", 4096)
