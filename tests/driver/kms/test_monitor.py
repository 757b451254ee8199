"""The monitor's EDID, read as VESA E-EDID 1.4 lays it out."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from softgen.driver.kms.crtc import ModeObject
from softgen.driver.kms.monitor import edid, mode
from tests.driver.kms.test_resources import card
from tests.driver.program import Program

__all__ = ["card"]  # a fixture


@pytest.mark.parametrize("size", [(640, 480), (1024, 704), (1920, 1080), (3840, 2160)])
def test_the_preferred_mode_is_the_detailed_timing(size: tuple[int, int]) -> None:
    data, (width, height) = edid(mode(*size)), size
    assert len(data) == 128 and data[:8] == b"\0\xff\xff\xff\xff\xff\xff\0" and sum(data) & 0xFF == 0
    timing = data[54:72]
    assert (timing[2] | (timing[4] & 0xF0) << 4, timing[5] | (timing[7] & 0xF0) << 4) == (width, height)
    assert timing[3] | (timing[4] & 0xF) << 8 == 160 and timing[8] | (timing[11] & 0xC0) << 2 == 48
    assert timing[9] | (timing[11] & 0x30) << 4 == 32 and timing[10] >> 4 | (timing[11] & 0xC) << 2 == 3
    lines = height + (timing[6] | (timing[7] & 0xF) << 8)
    assert 59 < int.from_bytes(timing[:2], "little") * 10_000 / ((width + 160) * lines) < 61, "60 Hz"
    assert (timing[12] | (timing[14] & 0xF0) << 4, timing[13] | (timing[14] & 0xF) << 8) == (300, 200) and timing[17] == 0x1A


def test_a_mode_that_is_too_large_for_a_timing_leaves_a_dummy() -> None:
    assert edid(mode(8192, 4320))[54:59] == b"\0\0\0\x10\0"


def test_other_sizes_and_the_name() -> None:
    data = edid(mode(640, 480))
    assert data[35:38] == bytes([0x21, 0x08, 0])  # 640x480, 800x600, 1024x768
    standard = [(8 * (data[at] + 31), data[at + 1]) for at in range(38, 54, 2)]
    assert standard[:5] == [(1920, 0xC0), (1680, 0), (1280, 0x80), (1280, 0xC0), (256, 1)]
    assert data[72:90] == b"\0\0\0\xfc\0softgen\n     "
    assert data[8:10] == bytes([0x4C, 0xEE])  # SGN


def test_the_connector_has_the_edid(card: Program) -> None:
    size = card.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=ModeObject.EDID_BLOB).size
    room = card.memory(size)
    card.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=ModeObject.EDID_BLOB, size=size, data=room.address)
    assert bytes(room) == edid(mode(640, 480))


@pytest.mark.skipif(shutil.which("edid-decode") is None, reason="edid-decode is not installed")
def test_edid_decode_finds_no_fault() -> None:
    done = subprocess.run(["edid-decode", "--check"], input=edid(mode(1024, 768)), capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
