"""Mode setting: what the display is made of, and who is its master; and programs that use it."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softgen.bits.generation import devices
from softgen.driver.kms import monitor, properties
from softgen.driver.kms.crtc import ModeObject
from softgen.driver.uapi import drm, kernel_tables
from softgen.driver.uapi.uapi import FORMAT_MODIFIER, FORMATS_HEAD, MODE, PROPERTY_ENUM
from tests.conftest import in_ci
from tests.driver.ioctl.test_gem import refused
from tests.driver.presenting import LLVMPIPE, presented
from tests.driver.program import Gpu, Program, served
from tests.driver.running import PROGRAMS, Softgen, needs_driver, needs_shim, softgen_run
from tests.pictures.compare import Picture, compare

XR24, RG16 = (int.from_bytes(name, "little") for name in (b"XR24", b"RG16"))
UNIVERSAL_PLANES, ATOMIC, WRITEBACK = 2, 3, 5


@pytest.fixture
def card(gpu: Gpu) -> Program:
    return gpu.program("card0")


def frame(program: Program, width: int = 640, height: int = 480, bits: int = 32, depth: int = 24) -> tuple[int, int]:
    """A framebuffer in a dumb buffer: its identifier and handle."""
    made = program.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=width, height=height, bits=bits)
    fb = program.ioctl("DRM_IOCTL_MODE_ADDFB", width=width, height=height, pitch=made.pitch, bits=bits, depth=depth, handle=made.handle).fb
    return fb, made.handle


def show(program: Program, fb: int, **fields: object) -> None:
    mode = {"connectors": program.numbers("I", ModeObject.CONNECTOR), "connector_count": 1, "mode_valid": 1, "mode": monitor.mode(640, 480)}
    program.ioctl("DRM_IOCTL_MODE_SETCRTC", **{"crtc": ModeObject.CRTC, "fb": fb, **mode, **fields})


# -- the interface


def test_resources_are_counted_first_and_named_then(card: Program) -> None:
    counts = card.ioctl("DRM_IOCTL_MODE_GETRESOURCES", min_width=9, min_height=9)
    assert (counts.fb_count, counts.crtc_count, counts.connector_count, counts.encoder_count) == (0, 1, 1, 1)
    assert (counts.min_width, counts.min_height, counts.max_width, counts.max_height) == (0, 0, 16384, 16384)
    fb, _ = frame(card)
    rooms = {name: card.memory(4) for name in ("fbs", "crtcs", "connectors", "encoders")}
    card.ioctl("DRM_IOCTL_MODE_GETRESOURCES", fb_count=1, crtc_count=1, connector_count=1, encoder_count=0,
               **{name: room.address for name, room in rooms.items()})  # fmt: skip
    found = [int.from_bytes(bytes(room), "little") for room in rooms.values()]
    assert found == [fb, ModeObject.CRTC, ModeObject.CONNECTOR, 0]


def test_the_connector_has_a_preferred_mode_and_others(gpu: Gpu, card: Program) -> None:
    gpu.shared.display.mode = monitor.mode(800, 600)
    room = card.memory(7 * MODE.size)
    assert card.ioctl("DRM_IOCTL_MODE_GETCONNECTOR", connector=ModeObject.CONNECTOR).mode_count == 7
    assert card.ioctl("DRM_IOCTL_MODE_GETCONNECTOR", connector=ModeObject.CONNECTOR, mode_count=6, modes=room.address).mode_count == 7
    assert not any(bytes(room)), "all of them or none"
    found = card.ioctl("DRM_IOCTL_MODE_GETCONNECTOR", connector=ModeObject.CONNECTOR, mode_count=7, modes=room.address)
    first, *others = MODE.unpack_all(bytes(room))
    assert (first.hdisplay, first.vdisplay, first.vrefresh, first.name.rstrip(b"\0")) == (800, 600, 60, b"800x600") and first.kind == 0x48
    sizes = [(1920, 1080), (1680, 1050), (1280, 1024), (1280, 720), (1024, 768), (640, 480)]
    assert [(mode.hdisplay, mode.vdisplay) for mode in others] == sizes and {mode.kind for mode in others} == {0x40}
    assert (found.status, found.encoder, found.encoder_count, found.property_count, found.subpixel) == (1, ModeObject.ENCODER, 1, 4, 0)
    assert (found.kind, found.number, found.width_mm, found.height_mm) == (11, 1, 300, 200)  # HDMI-A
    encoder = card.ioctl("DRM_IOCTL_MODE_GETENCODER", encoder=found.encoder)
    assert (encoder.crtc, encoder.kind, encoder.possible_crtcs, encoder.possible_clones) == (ModeObject.CRTC, 2, 1, 0)  # TMDS
    assert card.ioctl("DRM_IOCTL_I915_GET_PIPE_FROM_CRTC_ID", crtc=encoder.crtc, pipe=9).pipe == 0


@pytest.mark.parametrize("size, clock, sync, total", [
    ((1920, 1080), 138500, 5, 1111), ((1920, 1200), 154000, 6, 1235), ((1680, 1050), 119000, 6, 1080), ((1280, 800), 71000, 6, 823),
    ((1600, 1200), 130250, 4, 1235), ((1400, 1050), 101000, 4, 1080), ((1024, 768), 56000, 4, 790), ((1280, 768), 68250, 7, 790),
    ((1280, 1024), 91000, 7, 1054), ((1366, 768), 72250, 10, 790), ((16, 16), 250, 10, 35),
    ((1024, 704), 51250, 10, 724), ((1024, 2431), 177500, 10, 2501),
])  # fmt: skip
def test_timings_of_a_mode(size: tuple[int, int], clock: int, sync: int, total: int) -> None:
    """VESA's CVT-RB: the clock in kHz, and by aspect ratio the lines of the sync pulse; the first eight are in VESA's list of modes."""
    mode, (width, height) = MODE.unpack(monitor.mode(*size)), size
    assert (mode.clock, mode.vrefresh, mode.flags) == (clock, 60, 1 << 0 | 1 << 3)  # positive hsync, negative vsync
    assert (mode.hdisplay, mode.hsync_start, mode.hsync_end, mode.htotal) == (width, width + 48, width + 80, width + 160)
    assert (mode.vdisplay, mode.vsync_start, mode.vsync_end, mode.vtotal) == (height, height + 3, height + 3 + sync, total)
    assert mode.hskew == mode.vscan == 0


@pytest.mark.parametrize("name, field", [
    ("DRM_IOCTL_MODE_GETCONNECTOR", "connector"), ("DRM_IOCTL_MODE_GETENCODER", "encoder"),
    ("DRM_IOCTL_MODE_GETCRTC", "crtc"), ("DRM_IOCTL_MODE_SETCRTC", "crtc"),
    ("DRM_IOCTL_MODE_GETPLANE", "plane"), ("DRM_IOCTL_MODE_GETPROPERTY", "property"),
    ("DRM_IOCTL_MODE_GETPROPBLOB", "blob"), ("DRM_IOCTL_MODE_OBJ_GETPROPERTIES", "object"),
    ("DRM_IOCTL_MODE_PAGE_FLIP", "crtc"), ("DRM_IOCTL_MODE_RMFB", "fb"), ("DRM_IOCTL_MODE_GETFB", "fb"),
    ("DRM_IOCTL_MODE_DIRTYFB", "fb"), ("DRM_IOCTL_I915_GET_PIPE_FROM_CRTC_ID", "crtc"),
])  # fmt: skip
def test_a_bad_identifier(card: Program, name: str, field: str) -> None:
    refused(errno.ENOENT, card, name, **{field: 9999})
    if field != "fb":
        refused(errno.ENOENT, card, name, **{field: frame(card)[0]})  # the identifier of something else


@pytest.mark.parametrize("number", range(0xA0, 0xBF))
def test_a_render_node_has_no_display(gpu: Gpu, number: int) -> None:
    with pytest.raises(OSError) as found:
        gpu.program().raw(number, bytes(104))
    assert found.value.errno == errno.EACCES


def test_planes_are_for_clients_that_know_primary_ones(card: Program) -> None:
    room = card.memory(12)
    assert card.ioctl("DRM_IOCTL_MODE_GETPLANERESOURCES", planes=room.address, plane_count=1).plane_count == 1
    assert struct.unpack("<3I", bytes(room)) == (ModeObject.OVERLAY, 0, 0)
    card.ioctl("DRM_IOCTL_SET_CLIENT_CAP", capability=UNIVERSAL_PLANES, value=1)
    assert card.ioctl("DRM_IOCTL_MODE_GETPLANERESOURCES", planes=room.address, plane_count=3).plane_count == 3
    plane, *others = struct.unpack("<3I", bytes(room))
    assert others == [ModeObject.OVERLAY, ModeObject.CURSOR]
    assert card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=ModeObject.CURSOR, formats=room.address, format_count=1).format_count == 1
    assert bytes(room)[:4] == b"AR24"
    formats = card.memory(4 * card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=plane).format_count)
    found = card.ioctl("DRM_IOCTL_MODE_GETPLANE", plane=plane, formats=formats.address, format_count=len(bytes(formats)) // 4, gamma_size=9)
    assert (found.possible_crtcs, found.gamma_size) == (1, 0) and XR24 in struct.unpack(f"<{found.format_count}I", bytes(formats))


@pytest.mark.parametrize("name, modifiers", [("bdw", {0, 1 << 56 | 1}), ("kbl", {0, 1 << 56 | 1, 1 << 56 | 2})])
def test_properties_of_the_plane(name: str, modifiers: set[int]) -> None:
    with served(name) as gpu:
        card = gpu.program("card0")
        ids, values = card.memory(16), card.memory(32)
        found = card.ioctl("DRM_IOCTL_MODE_OBJ_GETPROPERTIES", object=ModeObject.PLANE, properties=ids.address, values=values.address,
                           property_count=4)  # fmt: skip
        held = dict(zip(struct.unpack("<4I", bytes(ids)), struct.unpack("<4Q", bytes(values)), strict=True))
        names = {card.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=number).name.rstrip(b"\0"): value for number, value in held.items()}
        assert found.property_count == 4 and (names[b"type"], names[b"rotation"], names[b"zpos"]) == (1, 1, 0)
        size = card.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=names[b"IN_FORMATS"]).size
        blob = card.memory(size)
        card.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=names[b"IN_FORMATS"], size=size, data=blob.address)
        head = FORMATS_HEAD.unpack(bytes(blob))
        assert (head.version, head.flags) == (1, 0)  # FORMAT_BLOB_CURRENT of drm_mode.h
        assert head.formats == 24 and head.modifiers % 8 == 0 and size == head.modifiers + 24 * head.modifier_count
        assert XR24 in struct.unpack_from(f"<{head.format_count}I", bytes(blob), head.formats)
        rows = FORMAT_MODIFIER.unpack_all(bytes(blob)[head.modifiers :])
        assert {row.modifier for row in rows} == modifiers and {row.formats for row in rows} == {(1 << head.format_count) - 1}
        assert {(row.first, row.pad) for row in rows} == {(0, 0)}, "masks begin with the first format, and padding is zero"


@pytest.mark.parametrize("count, modifiers_at", [(1, 32), (2, 32), (3, 40), (4, 40), (5, 48)])
def test_the_modifiers_of_a_blob_begin_at_a_multiple_of_eight(count: int, modifiers_at: int) -> None:
    """drm_format_modifier has 64-bit fields."""
    formats = {10 + number: kernel_tables.ScanoutFormat(f"F{number}", "", 32, 24) for number in range(count)}
    tilings = {value: kernel_tables.ScanoutModifier("", value, "", 64, 1) for value in (0, 1 << 56 | 1)}
    blob = properties.in_formats(formats, tilings)
    assert FORMATS_HEAD.struct.unpack_from(blob) == (1, 0, count, 24, 2, modifiers_at)
    assert blob[24:modifiers_at] == struct.pack(f"<{count}I", *formats).ljust(modifiers_at - 24, b"\0")
    assert blob[modifiers_at:] == b"".join(struct.pack("<QIIQ", (1 << count) - 1, 0, 0, value) for value in tilings)


@pytest.mark.parametrize("room, written", [(0, 0), (1, 1), (2, 2)])
def test_no_more_properties_are_written_than_there_is_room_for(card: Program, room: int, written: int) -> None:
    ids, values = card.memory(b"\xff" * 12), card.memory(b"\xff" * 24)
    found = card.ioctl("DRM_IOCTL_MODE_OBJ_GETPROPERTIES", object=ModeObject.PLANE, properties=ids.address, values=values.address,
                       property_count=room)  # fmt: skip
    expected = {ModeObject.PLANE_TYPE: 1, ModeObject.IN_FORMATS: ModeObject.IN_FORMATS_BLOB}
    assert found.property_count == 4
    assert struct.unpack("<3I", bytes(ids)) == (*[*expected][:written], *[0xFFFFFFFF] * (3 - written))
    assert struct.unpack("<3Q", bytes(values)) == (*[*expected.values()][:written], *[(1 << 64) - 1] * (3 - written))


@pytest.mark.parametrize("room, whole", [(0, False), (2, False), (3, True), (4, True)])
def test_values_and_their_names_are_written_all_or_not_at_all(card: Program, room: int, whole: bool) -> None:
    values, enums = card.memory(b"\xff" * 32), card.memory(b"\xff" * (4 * PROPERTY_ENUM.size))
    found = card.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=ModeObject.PLANE_TYPE, values=values.address, value_count=room,
                       enums=enums.address, enum_count=room)  # fmt: skip
    assert (found.value_count, found.enum_count) == (3, 3)
    assert bytes(values) == (struct.pack("<3Q", 0, 1, 2) if whole else b"").ljust(32, b"\xff")
    assert (bytes(enums)[8:15] == b"Overlay") is whole and bytes(enums).endswith(b"\xff" * PROPERTY_ENUM.size)


@pytest.mark.parametrize("more, whole", [(-1, False), (0, True), (1, False)])
def test_a_blob_is_written_where_its_size_is_known(card: Program, more: int, whole: bool) -> None:
    size = card.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=ModeObject.IN_FORMATS_BLOB).size
    room = card.memory(size + 1)
    found = card.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=ModeObject.IN_FORMATS_BLOB, size=size + more, data=room.address)
    assert found.size == size and any(bytes(room)) is whole


def test_the_values_of_a_plane_type_have_names(card: Program) -> None:
    room = card.memory(3 * PROPERTY_ENUM.size)
    found = card.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=ModeObject.PLANE_TYPE, enums=room.address, enum_count=3)
    rows = PROPERTY_ENUM.unpack_all(bytes(room))
    names = [(row.value, row.name.rstrip(b"\0")) for row in rows]
    assert found.value_count == found.enum_count == 3 and names == [(0, b"Overlay"), (1, b"Primary"), (2, b"Cursor")]
    assert found.flags == 1 << 3 | 1 << 2  # an enumeration that cannot be changed,
    blob = card.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=ModeObject.IN_FORMATS, value_count=3, enum_count=3)
    assert (blob.flags, blob.value_count, blob.enum_count) == (1 << 4 | 1 << 2, 0, 0)  # and a blob, which has no such values
    refused(errno.EINVAL, card, "DRM_IOCTL_MODE_OBJ_GETPROPERTIES", object=ModeObject.ENCODER)
    refused(errno.ENOENT, card, "DRM_IOCTL_MODE_OBJ_GETPROPERTIES", object=ModeObject.PLANE, kind=0xCCCCCCCC)


@pytest.mark.parametrize("kind", [0xCCCCCCCC, 0xC0C0C0C0, 0xE0E0E0E0, 0xEEEEEEEE, 0xFBFBFBFB, 0xDEADBEEF, 0])
def test_objects_are_found_by_their_type(card: Program, kind: int) -> None:
    """DRM_MODE_OBJECT_… of drm_mode.h: a CRTC, a connector, an encoder, a plane, a framebuffer, a mode; 0 is any. Encoders have no
    properties."""
    owned = {ModeObject.PLANE: 4, ModeObject.CONNECTOR: 4, ModeObject.CRTC: 2}
    kinds = {ModeObject.CRTC: 0xCCCCCCCC, ModeObject.CONNECTOR: 0xC0C0C0C0, ModeObject.ENCODER: 0xE0E0E0E0, ModeObject.PLANE: 0xEEEEEEEE}
    for number, own in kinds.items():
        fields = {"object": number, "kind": kind}
        if kind not in (own, 0):
            refused(errno.ENOENT, card, "DRM_IOCTL_MODE_OBJ_GETPROPERTIES", **fields)
        elif number == ModeObject.ENCODER:
            refused(errno.EINVAL, card, "DRM_IOCTL_MODE_OBJ_GETPROPERTIES", **fields)
        else:
            assert card.ioctl("DRM_IOCTL_MODE_OBJ_GETPROPERTIES", **fields).property_count == owned.get(number, 0)


def test_capabilities_of_clients(card: Program) -> None:
    refused(errno.EINVAL, card, "DRM_IOCTL_SET_CLIENT_CAP", capability=WRITEBACK, value=1)
    refused(errno.EINVAL, card, "DRM_IOCTL_SET_CLIENT_CAP", capability=ATOMIC, value=3)
    card.ioctl("DRM_IOCTL_SET_CLIENT_CAP", capability=ATOMIC, value=1)
    card.ioctl("DRM_IOCTL_SET_CLIENT_CAP", capability=WRITEBACK, value=1)
    assert card.ioctl("DRM_IOCTL_MODE_GETPLANERESOURCES").plane_count == 3, "it brings universal planes"
    refused(errno.EINVAL, card, "DRM_IOCTL_SET_CLIENT_CAP", capability=UNIVERSAL_PLANES, value=2)
    refused(errno.EINVAL, card, "DRM_IOCTL_SET_CLIENT_CAP", capability=99, value=1)
    capabilities = drm.DRM_CAP_DUMB_BUFFER, drm.DRM_CAP_ADDFB2_MODIFIERS, drm.DRM_CAP_ASYNC_PAGE_FLIP
    assert [card.ioctl("DRM_IOCTL_GET_CAP", capability=number).value for number in capabilities] == [1, 1, 0]


# -- the master


def test_the_first_program_is_the_master_until_it_drops_that(gpu: Gpu) -> None:
    first, second = gpu.program("card0"), gpu.program("card0")
    fb, _ = frame(second)
    with pytest.raises(OSError) as found:
        show(second, fb)
    assert found.value.errno == errno.EACCES
    refused(errno.EBUSY if os.getuid() == 0 else errno.EACCES, second, "DRM_IOCTL_SET_MASTER")
    refused(errno.EINVAL, second, "DRM_IOCTL_DROP_MASTER")
    first.ioctl("DRM_IOCTL_SET_MASTER")
    first.ioctl("DRM_IOCTL_DROP_MASTER")
    refused(errno.EACCES, first, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=ModeObject.CRTC, fb=fb)
    first.ioctl("DRM_IOCTL_SET_MASTER")  # it was one before
    first.node.close()
    third = gpu.program("card0")
    show(third, frame(third)[0])


# -- programs


@needs_shim
def test_the_event_of_a_flip_through_the_shim(tmp_path: Path) -> None:
    run = Softgen("--images", str(tmp_path / "out"), "--display", "320x200", "--", sys.executable, str(PROGRAMS / "kms.py"))
    assert run.process.stdout is not None
    code = run.process.wait(60)  # standard input stays open: the program selects on it too
    run.finish()
    assert code == 0 and run.out.splitlines() == [
        "connector 1 8 True", "mode 320x200 320 200 60", "before [False, False, False]", "after [True, True, True]",
        "reads [0, 0] 32", "event 2 32 0x123456789abcdef0 True True True", *["drained [False, False, False]"] * 3,
        "refused True True", "restored True True",
    ], run.out + run.err  # fmt: skip
    assert sorted(os.listdir(tmp_path / "out")) == ["frame-0001.png", "frame-0002.png"]
    for name, colour in (("frame-0001.png", (255, 0, 0)), ("frame-0002.png", (0, 255, 0))):
        pixels = np.asarray(Image.open(tmp_path / "out" / name))
        assert pixels.shape == (200, 320, 3) and (pixels == colour).all()


@pytest.mark.parametrize("text", ["640", "8x8", "640x480x2", "9000x9000", "-1x5"])
def test_a_mode_that_is_none(text: str) -> None:
    run = softgen_run(f"--display={text}", "--", "true")
    assert run.process.returncode == 2 and "WIDTHxHEIGHT" in run.err


def kmscube(folder: Path, *options: str, mode: str, **environment: str) -> list[Picture]:
    """The frames of kmscube: a cleared one, then two of the cube, which turns."""
    frames, said = presented(folder, *options, "--", "kmscube", "--mode", mode, "--count", "2", **environment)
    assert len(frames) == 3 and "Rendered" in said, said
    return frames


@pytest.fixture(scope="module")
def cubes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Picture]]:
    """The frames of kmscube in a mode as llvmpipe draws them, on the same display with dumb buffers."""
    found = {}

    def cube(mode: str) -> list[Picture]:
        if mode not in found:
            folder = tmp_path_factory.mktemp("llvmpipe") / mode
            found[mode] = kmscube(folder, mode=mode, **LLVMPIPE)
            assert not list(folder.glob("submission-*")), "the GPU has drawn"
        return found[mode]

    return cube


@needs_shim
@pytest.mark.parametrize("gpu_name, mode", in_ci([
    ("gm965", "smooth"), ("g45", "smooth"), ("g45", "rgba"), ("g45", "nv12-2img"),
    ("ivb", "smooth"), ("bdw", "smooth"), ("kbl", "smooth"), ("icl", "smooth"),
    ("kbl", "rgba"),
], ("gm965", "smooth"), ("g45", "nv12-2img"), ("kbl", "rgba")))  # fmt: skip
def test_kmscube_draws_what_llvmpipe_draws(gpu_name: str, mode: str, cubes: Callable[[str], list[Picture]], tmp_path: Path) -> None:
    if shutil.which("kmscube") is None:
        pytest.skip("kmscube is not installed: apt-get install kmscube")
    needs_driver(gpu_name, "OpenGL")
    expected, found = cubes(mode), kmscube(tmp_path / "out", "--gpu", gpu_name, mode=mode)
    for reference, picture in zip(expected, found, strict=True):
        assert compare(picture, reference).agrees, str(compare(picture, reference))
    assert (expected[1] != 128).any(-1).mean() > 0.1 and (expected[1] != expected[2]).any(), "no cube, or it does not turn"


def test_every_gpu_has_a_display() -> None:
    for each in devices():
        assert XR24 in kernel_tables.display(each).formats and 0 in kernel_tables.display(each).modifiers
