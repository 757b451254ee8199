"""What whole programs need of mode setting beside pictures: DPMS, cursors, and the bus id of a node."""

from __future__ import annotations

import errno
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softgen.driver.kms.crtc import ModeObject
from softgen.driver.uapi.uapi import PROPERTY_ENUM
from tests.driver.ioctl.test_gem import refused
from tests.driver.kms.test_resources import card, frame, show
from tests.driver.presenting import presented
from tests.driver.program import Gpu, Program
from tests.driver.running import needs_driver, needs_shim, softgen_run
from tests.pictures.compare import Picture

__all__ = ["card"]  # a fixture
BO, MOVE = 1, 2
CURSORS = ("DRM_IOCTL_MODE_CURSOR", "DRM_IOCTL_MODE_CURSOR2")


# -- DPMS


def dpms(program: Program) -> int:
    """The property's value, as the connector has it."""
    ids, values = program.memory(16), program.memory(32)
    program.ioctl("DRM_IOCTL_MODE_GETCONNECTOR", connector=ModeObject.CONNECTOR, properties=ids.address, values=values.address,
                  property_count=4)  # fmt: skip
    return dict(zip(struct.unpack("<4I", bytes(ids)), struct.unpack("<4Q", bytes(values)), strict=True))[ModeObject.DPMS]


@pytest.mark.parametrize("name", ["SETPROPERTY", "OBJ_SETPROPERTY"])
def test_the_connector_is_turned_off_and_on(gpu: Gpu, card: Program, name: str) -> None:
    """Frames are shown all the same, and that is said."""
    who = {"connector": ModeObject.CONNECTOR} if name == "SETPROPERTY" else {"object": ModeObject.CONNECTOR, "kind": 0xC0C0C0C0}
    assert dpms(card) == 0
    for value in (3, 1, 2, 0, 3):
        card.ioctl(f"DRM_IOCTL_MODE_{name}", property=ModeObject.DPMS, value=value, **who)
        assert dpms(card) == value
    assert gpu.log == ["a program has turned the display off (DPMS): what it draws is shown nevertheless"]
    show(card, frame(card)[0])
    assert dpms(card) == 0, "a mode turns it on"
    card.ioctl("DRM_IOCTL_MODE_SETCRTC", crtc=ModeObject.CRTC)
    assert dpms(card) == 3


def test_the_values_of_dpms_have_names(card: Program) -> None:
    room = card.memory(4 * PROPERTY_ENUM.size)
    found = card.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=ModeObject.DPMS, enums=room.address, enum_count=4)
    names = [(row.value, row.name.rstrip(b"\0")) for row in PROPERTY_ENUM.unpack_all(bytes(room))]
    assert (found.name.rstrip(b"\0"), found.flags, found.enum_count) == (b"DPMS", 1 << 3, 4), "an enumeration that may be changed"
    assert names == [(0, b"On"), (1, b"Standby"), (2, b"Suspend"), (3, b"Off")]


@pytest.mark.parametrize(("fields", "number"), [
    ({"value": 4}, errno.EINVAL), ({"property": 0}, errno.EINVAL), ({"property": ModeObject.PLANE_TYPE}, errno.EINVAL),
    ({"connector": 9999}, errno.ENOENT), ({"connector": ModeObject.CRTC}, errno.ENOENT)])  # fmt: skip
def test_properties_that_cannot_be_set(card: Program, fields: dict[str, int], number: int) -> None:
    refused(number, card, "DRM_IOCTL_MODE_SETPROPERTY", **{"connector": ModeObject.CONNECTOR, "property": ModeObject.DPMS, **fields})
    assert dpms(card) == 0


@pytest.mark.parametrize(("number", "kind", "prop", "error"), [
    (ModeObject.PLANE, 0xEEEEEEEE, ModeObject.PLANE_TYPE, errno.EINVAL), (ModeObject.CRTC, 0xCCCCCCCC, ModeObject.DPMS, errno.EINVAL),
    (ModeObject.ENCODER, 0, ModeObject.DPMS, errno.EINVAL), (ModeObject.CONNECTOR, 0xCCCCCCCC, ModeObject.DPMS, errno.ENOENT)])  # fmt: skip
def test_properties_of_other_objects_cannot_be_set(card: Program, number: int, kind: int, prop: int, error: int) -> None:
    refused(error, card, "DRM_IOCTL_MODE_OBJ_SETPROPERTY", object=number, kind=kind, property=prop)


@pytest.mark.parametrize("name", ["DRM_IOCTL_MODE_SETPROPERTY", "DRM_IOCTL_MODE_OBJ_SETPROPERTY", *CURSORS])
def test_only_the_master_sets_them(gpu: Gpu, card: Program, name: str) -> None:
    refused(errno.EACCES, gpu.program("card0"), name)


# -- cursors


@pytest.mark.parametrize("name", CURSORS)
@pytest.mark.parametrize("size", [64, 128, 256])
def test_a_cursor_is_taken(gpu: Gpu, card: Program, name: str, size: int) -> None:
    handle = card.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=size, height=size, bits=32).handle
    display = gpu.shared.display
    card.ioctl(name, flags=BO, crtc=ModeObject.CRTC, width=size, height=size, handle=handle)
    assert (display.crtc.cursor.target, display.crtc.cursor.pixels) == ((0, 0, size, size), (0, 0, size, size))
    card.ioctl(name, flags=MOVE, crtc=ModeObject.CRTC, x=-5, y=7)
    assert display.crtc.cursor.shown and display.crtc.cursor.target == (-5, 7, size, size)
    card.ioctl(name, flags=BO | MOVE, crtc=ModeObject.CRTC, x=3, y=4)  # none any more
    assert not display.crtc.cursor.shown
    card.ioctl(name, flags=BO, crtc=ModeObject.CRTC, width=size, height=size, handle=handle)
    assert display.crtc.cursor.target == (3, 4, size, size), "it has moved all the same"


@pytest.mark.parametrize("name", CURSORS)
@pytest.mark.parametrize(("fields", "number"), [
    ({"flags": 0}, errno.EINVAL), ({"flags": BO | 4}, errno.EINVAL), ({"crtc": 9}, errno.ENOENT), ({"handle": 99}, errno.ENOENT),
    ({"width": 63, "height": 63}, errno.EINVAL), ({"width": 128}, errno.EINVAL),
    ({"width": 128, "height": 128}, errno.EINVAL)])  # fmt: skip
def test_cursors_that_cannot_be(card: Program, name: str, fields: dict[str, int], number: int) -> None:
    handle = card.ioctl("DRM_IOCTL_I915_GEM_CREATE", size=4 * 64 * 64).handle
    refused(number, card, name, **{"flags": BO, "crtc": ModeObject.CRTC, "width": 64, "height": 64, "handle": handle, **fields})


# -- the bus id


def bus_id(program: Program) -> bytes:
    room = program.memory(64)
    found = program.ioctl("DRM_IOCTL_GET_UNIQUE", unique=room.address, size=64)
    return bytes(room)[: found.size]


def set_version(program: Program, minor: int = 4, major: int = 1, driver: tuple[int, int] = (-1, -1)) -> None:
    program.ioctl("DRM_IOCTL_SET_VERSION", interface_major=major, interface_minor=minor, driver_major=driver[0], driver_minor=driver[1])


@pytest.mark.parametrize("minor", [1, 4])
def test_a_node_has_its_bus_id_once_a_version_was_set(gpu: Gpu, minor: int) -> None:
    """And all that were opened under the same master have it."""
    first, second = gpu.program("card0"), gpu.program("card0")
    assert bus_id(first) == bus_id(second) == b""
    set_version(first, minor)
    assert bus_id(first) == bus_id(second) == bus_id(gpu.program("card0")) == b"pci:0000:00:02.0"
    first.ioctl("DRM_IOCTL_DROP_MASTER")
    assert bus_id(gpu.program("card0")) == b"", "another master"


@pytest.mark.parametrize("given", [{"minor": 0}, {"major": -1}])
def test_older_versions_name_no_bus(gpu: Gpu, given: dict[str, int]) -> None:
    program = gpu.program("card0")
    set_version(program, **given)
    assert bus_id(program) == b""


@pytest.mark.parametrize("given", [
    {"minor": 5}, {"minor": -1}, {"major": 2}, {"major": -1, "driver": (2, 0)}, {"major": -1, "driver": (1, 7)}])  # fmt: skip
def test_versions_that_are_not_there(gpu: Gpu, given: dict[str, int]) -> None:
    program = gpu.program("card0")
    with pytest.raises(OSError) as found:
        set_version(program, **given)
    assert found.value.errno == errno.EINVAL
    with pytest.raises(OSError) as found:
        set_version(gpu.program("card0"))
    assert found.value.errno == errno.EACCES, "only the master may"


# -- programs


def test_modetest_finds_the_device_by_its_drivers_name() -> None:
    """libdrm's drmOpen takes the first node of that driver without a bus id."""
    if shutil.which("modetest") is None:
        pytest.skip("modetest is not installed: apt-get install libdrm-tests")
    run = softgen_run("--gpu", "kbl", "--", "modetest", "-M", "i915", "-c", "-w", f"{ModeObject.CONNECTOR:d}:DPMS:3")
    assert run.process.returncode == 0 and "HDMI-A-1" in run.out and "DPMS:" in run.out, run.out + run.err


def patterns(folder: Path, *arguments: str) -> Picture:
    """The last frame of modetest, which draws test patterns with the CPU."""
    if shutil.which("modetest") is None:
        pytest.skip("modetest is not installed: apt-get install libdrm-tests")
    run = softgen_run("--gpu", "kbl", "--images", str(folder), "--", "modetest", "-M", "i915", *arguments)
    assert run.process.returncode == 0, run.out + run.err
    return np.asarray(Image.open(sorted(folder.glob("frame-*.png"))[-1]))


@needs_shim
def test_modetest_shows_the_same_by_legacy_ioctls_and_by_an_atomic_commit(tmp_path: Path) -> None:
    """Stripes on the primary plane, and an overlay of 200x100 pixels at 50, 60; a mode that is not the preferred one."""
    overlay = f"{ModeObject.OVERLAY:d}@{ModeObject.CRTC:d}:200x100+50+60@XR24"
    output = "-s", f"{ModeObject.CONNECTOR:d}@{ModeObject.CRTC:d}:800x600"
    legacy = patterns(tmp_path / "legacy", *output, "-P", overlay)
    atomic = patterns(tmp_path / "atomic", "-a", *output, "-P", f"{ModeObject.PLANE:d}@{ModeObject.CRTC:d}:800x600", "-P", overlay)
    assert legacy.shape == (600, 800, 3) and (legacy == atomic).all()
    assert tuple(legacy[10, 10]) == (192, 192, 192) and tuple(legacy[10, 750]) == (0, 0, 192)
    inside, around = legacy[60:160, 50:250], legacy[60:160, 250:300]
    assert (inside.max(-1) < 128).all() and (around.max(-1) == 192).all(), "the tiles of the overlay are dark"


@needs_shim
def test_kmscube_draws_the_same_by_atomic_commits_with_fences(tmp_path: Path) -> None:
    if shutil.which("kmscube") is None:
        pytest.skip("kmscube is not installed: apt-get install kmscube")
    needs_driver("kbl", "OpenGL")
    legacy, _ = presented(tmp_path / "legacy", "--gpu", "kbl", "--", "kmscube", "--count", "2")
    atomic, said = presented(tmp_path / "atomic", "--gpu", "kbl", "--", "kmscube", "--atomic", "--count", "2")
    cubes = [picture for picture in atomic if (picture != 128).any()]
    assert "Rendered" in said and len(cubes) == 2
    assert all(any((picture == other).all() for other in legacy) for picture in cubes)
