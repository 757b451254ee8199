"""Gamma ramps: the legacy ones of 256 entries, and GAMMA_LUT."""

from __future__ import annotations

import errno
import struct

import pytest

from softgen.driver.kms.crtc import Crtc, ModeObject
from tests.driver.ioctl.test_gem import refused
from tests.driver.kms.test_resources import card, frame, show
from tests.driver.program import Gpu, Program

__all__ = ["card"]  # a fixture


def read(program: Program) -> list[tuple[int, ...]]:
    rooms = [program.memory(512) for _ in range(3)]
    program.ioctl("DRM_IOCTL_MODE_GETGAMMA", crtc=ModeObject.CRTC, size=256,
                  **{name: room.address for name, room in zip(("red", "green", "blue"), rooms, strict=True)})  # fmt: skip
    return [struct.unpack("<256H", bytes(room)) for room in rooms]


def test_a_ramp_is_linear_until_it_is_set_and_then_in_frames(gpu: Gpu, card: Program) -> None:
    assert read(card) == [tuple(range(0, 65536, 256))] * 3
    ramps = [[number * factor for number in range(256)] for factor in (7, 100, 255)]
    card.ioctl("DRM_IOCTL_MODE_SETGAMMA", crtc=ModeObject.CRTC, size=256,
               **{name: card.numbers("H", *ramp) for name, ramp in zip(("red", "green", "blue"), ramps, strict=True)})  # fmt: skip
    assert read(card) == [tuple(ramp) for ramp in ramps]
    seen = list[Crtc]()
    gpu.shared.display.presented = lambda crtc, number: seen.append(crtc)
    show(card, frame(card)[0])
    assert seen[0].gamma_blob is not None
    assert list(struct.iter_unpack("<4H", seen[0].gamma_blob.data)) == [(*entry, 0) for entry in zip(*ramps, strict=True)]


@pytest.mark.parametrize("name", ["GETGAMMA", "SETGAMMA"])
@pytest.mark.parametrize("number, fields", [(errno.ENOENT, {"crtc": 9}), (errno.EINVAL, {"size": 255}), (errno.EFAULT, {"blue": 8})])
def test_ramps_that_cannot_be(card: Program, name: str, number: int, fields: dict[str, int]) -> None:
    if name == "GETGAMMA" and number == errno.EFAULT:
        return  # the answer is written when the ioctl has returned
    rooms = dict.fromkeys(("red", "green", "blue"), card.memory(512).address)
    refused(number, card, f"DRM_IOCTL_MODE_{name}", **{"crtc": ModeObject.CRTC, "size": 256, **rooms, **fields})


def test_only_the_master_sets_a_ramp(gpu: Gpu, card: Program) -> None:
    refused(errno.EACCES, gpu.program("card0"), "DRM_IOCTL_MODE_SETGAMMA", crtc=ModeObject.CRTC, size=256)
