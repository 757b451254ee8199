"""H.264 by VDENC: streams that ffmpeg decodes to what the engine has reconstructed, near the source, with the QP that was asked for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.codec.frames import frame
from tests.codec.pak.coded import BYTE_COUNT, CodedPicture, coded_pictures
from tests.codec.pak.record import DATA, clips, encode, make
from tests.codec.test_clips import DRIVERS
from tests.conftest import in_ci

AVC = [name for name in clips() if name.startswith("avc")]
SYNTAX_BITS, QP_COUNT, SLICES = 0x8A4, 0x8BC, 0x954  # MFC_BITSTREAM_SE_BITCOUNT_FRAME, MFC_QP_STATUS_COUNT, MFC_AVC_NUM_SLICES
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")


def coded(picture: CodedPicture) -> bytes:
    count = picture.stored(BYTE_COUNT)
    assert count
    return picture.data(count)


def decoded(stream: bytes, path: Path, size: int) -> list[bytes]:
    """Frames of a stream, as ffmpeg decodes them; any remark of its own fails."""
    path.write_bytes(stream)
    command = ["ffmpeg", "-v", "warning", "-nostdin", "-threads", "1", "-f", "h264", "-i", str(path), "-vf", "setpts=N/25/TB",
               "-f", "rawvideo", "-pix_fmt", "nv12", "-"]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True)
    assert not done.stderr, done.stderr.decode()
    return [done.stdout[at : at + size] for at in range(0, len(done.stdout), size)]


def decibels(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    return float(10 * np.log10(255**2 / max(np.mean((one.astype(float) - other) ** 2), 1e-9)))


@needs_ffmpeg
@pytest.mark.parametrize("name", AVC)
def test_decoded_frames_are_those_that_were_reconstructed(name: str, tmp_path: Path) -> None:
    clip = clips()[name]
    width, height = clip["size"]
    streams, frames = [], []
    for picture in coded_pictures(DATA / name):
        streams.append(coded(picture))
        frames.append(frame(picture.space, picture.engine, picture.latched, (width, height), "nv12"))
    assert len(frames) == clip["count"]
    assert decoded(b"".join(streams), tmp_path / "stream", width * height * 3 // 2) == frames


@pytest.mark.parametrize("name", AVC)
def test_registers_count_what_was_coded(name: str) -> None:
    clip = clips()[name]
    macroblocks = -(-clip["size"][0] // 16) * -(-clip["size"][1] // 16)
    for picture, qp in zip(coded_pictures(DATA / name), clip["qps"], strict=True):
        stream = coded(picture)
        slices = sum(bool(unit) and unit[0] & 31 in (1, 5) for unit in stream.split(b"\0\0\1"))
        assert picture.stored(SLICES) == slices > 0
        assert picture.stored(QP_COUNT) == qp * macroblocks
        bits = picture.stored(SYNTAX_BITS)
        assert bits and 8 * len(stream) - 2000 < bits < 8 * len(stream)


LIVE = [  # GPU, options, luma of the worst frame, bytes of all
    ("kbl", "-qp 26 -g 4", 41, 9800),
    ("icl", "-qp 34 -g 6 -coder cavlc", 33, 5200),
    ("skl", "-qp 20 -g 3", 45, 16500),
    ("kbl", "-qp 20 -g 3 -slices 4", 45, 16500),
    ("skl", "-qp 20 -g 3 -slices 4", 45, 16500),
]  # fmt: skip


@needs_ffmpeg
@pytest.mark.parametrize(("gpu", "options", "least", "most"), in_ci(LIVE, LIVE[-1]))
def test_a_driver_encodes_pictures_near_the_source(gpu: str, options: str, least: float, most: int, tmp_path: Path) -> None:
    if not (DRIVERS / "iHD_drv_video.so").exists():
        pytest.skip("the VA-API driver iHD is not installed")
    size = (200, 120)
    clip = {"gpu": gpu, "driver": "iHD", "size": list(size), "count": 6, "source": "nv12", "format": "h264",
            "pattern": "testsrc2=size={}x{}:rate=25", "coder": f"-c:v h264_vaapi -low_power 1 -bf 0 {options}"}  # fmt: skip
    source, stream = tmp_path / "source", tmp_path / "stream"
    make(clip, source)
    encode(clip, source, stream)
    luma = size[0] * size[1]
    wanted = np.fromfile(source, np.uint8).reshape(6, -1)
    found = [np.frombuffer(item, np.uint8) for item in decoded(stream.read_bytes(), tmp_path / "again", luma * 3 // 2)]
    assert len(found) == 6
    assert min(decibels(one[:luma], other[:luma]) for one, other in zip(wanted, found, strict=True)) > least
    assert stream.stat().st_size < most


def test_rate_control_is_refused_by_the_driver(tmp_path: Path) -> None:
    """HUC_STATUS is 0, so the driver offers no mode that needs the firmware of HuC."""
    if not (DRIVERS / "iHD_drv_video.so").exists() or shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg and the VA-API driver iHD are not installed")
    clip = {"gpu": "icl", "driver": "iHD", "size": [64, 64], "count": 1, "source": "nv12", "format": "h264",
            "coder": "-c:v h264_vaapi -low_power 1 -b:v 200k -bf 0"}  # fmt: skip
    source = tmp_path / "source"
    make(clip, source)
    with pytest.raises(subprocess.CalledProcessError):
        encode(clip, source, tmp_path / "stream")
