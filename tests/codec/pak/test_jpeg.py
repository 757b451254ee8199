"""JPEG encoding: the streams of drivers' submissions equal a model's bit for bit, and ffmpeg decodes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.codec.frames import rows
from tests.codec.pak.coded import BYTE_COUNT, CodedPicture, coded_pictures
from tests.codec.pak.jpeg_model import Header, encode
from tests.codec.pak.record import DATA, clips, make
from tests.codec.pak.record import encode as encode_by_driver
from tests.codec.record import ffmpeg
from tests.codec.test_clips import DRIVERS
from tests.conftest import in_ci

ROOM = 32768
END = b"\xff\xd9"
JPEGS = [name for name in clips() if name.startswith("jpeg")]


def source_planes(picture: CodedPicture, kind: str, width: int, height: int) -> list[npt.NDArray[Any]]:
    """The source, read from its surface without the code under test."""
    state = picture.engine.surfaces.get(4) or picture.engine.surfaces[0]
    base = picture.latched["MFX_PIPE_BUF_ADDR_STATE"].original_uncompressed_picture_source_address
    if kind == "yuyv422":
        packed = rows(picture.space, base, state, 0, height, 2 * width)
        return [packed[:, ::2], packed[:, 1::4], packed[:, 3::4]]
    luma = rows(picture.space, base, state, 0, height, width)
    if kind == "gray":
        return [luma]
    pairs = rows(picture.space, base, state, state.y_offset_for_u_cb, height // 2, width)
    return [luma, pairs[:, ::2], pairs[:, 1::2]]


@pytest.mark.parametrize("name", JPEGS)
def test_streams_of_a_capture_are_those_of_the_model(name: str) -> None:
    clip = clips()[name]
    pictures = list(coded_pictures(DATA / name))
    assert len(pictures) == clip["count"]
    data = pictures[0].data(ROOM)
    data = data[: data.index(END) + 2]
    header = Header(data)
    assert [header.width, header.height] == clip["size"]
    planes = source_planes(pictures[0], clip["source"], *clip["size"])
    assert data[header.size :] == encode(header, planes, 65536 if clip["driver"] == "iHD" else 65535)
    count = pictures[0].stored(BYTE_COUNT)
    assert count == (len(data) if clip["driver"] == "iHD" else None)


LIVE = [("skl", "iHD", "nv12", 39, 5500), ("kbl", "i965", "nv12", 39, 5500), ("icl", "iHD", "yuyv422", 39, 6500)]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
@pytest.mark.parametrize(("gpu", "driver", "source", "decibels", "most"), in_ci(LIVE, LIVE[-1]))
def test_a_driver_encodes_what_ffmpeg_decodes(gpu: str, driver: str, source: str, decibels: float, most: int, tmp_path: Path) -> None:
    """Quality 80 of test pictures: luma near the source, and no more bytes than that takes."""
    if not (DRIVERS / f"{driver}_drv_video.so").exists():
        pytest.skip(f"the VA-API driver {driver} is not installed")
    clip = {"gpu": gpu, "driver": driver, "size": [208, 120], "count": 2, "source": source, "coder": "-c:v mjpeg_vaapi -global_quality 80",
            "format": "mjpeg"}  # fmt: skip
    raw, stream = tmp_path / "source", tmp_path / "stream"
    make(clip, raw)
    encode_by_driver(clip, raw, stream)
    command = ffmpeg("-f", "mjpeg", "-i", str(stream), "-f", "rawvideo", "-pix_fmt", "gray", "-")
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    seen = np.frombuffer(found.stdout, np.uint8).reshape(2, -1).astype(float)
    size = 208 * 120
    pictures = np.fromfile(raw, np.uint8).reshape(2, -1)
    wanted = pictures[:, :size] if source == "nv12" else pictures[:, ::2]
    error = np.mean((seen - wanted) ** 2, axis=1)
    assert (10 * np.log10(255**2 / error) > decibels).all()
    assert stream.stat().st_size < 2 * most
