"""Atomic commits: what they show and when, what they are refused for, their events and fences, and property blobs."""

from __future__ import annotations

import errno
import os
import select
import struct
import threading
import time
from types import SimpleNamespace

import pytest

from softgen.driver.kms.crtc import Crtc, ModeObject
from softgen.driver.kms.monitor import mode
from softgen.driver.objects.fence import Fence
from softgen.driver.run import protocol
from softgen.driver.uapi.uapi import PROPERTY_ENUM, VBLANK_EVENT
from tests.driver.ioctl.test_gem import refused, submit
from tests.driver.kms.test_crtc import readable
from tests.driver.kms.test_resources import frame, show
from tests.driver.program import Gpu, Held, Program, served

TEST, NONBLOCK, MODESET, EVENT, ASYNC = 1 << 8, 1 << 9, 1 << 10, 1, 2
M = ModeObject
Setting = tuple[int, int, int]


@pytest.fixture
def client(gpu: Gpu) -> Program:
    program = gpu.program("card0")
    program.ioctl("DRM_IOCTL_SET_CLIENT_CAP", capability=3, value=1)
    return program


@pytest.fixture
def seen(gpu: Gpu) -> list[Crtc]:
    """What was presented."""
    shown = list[Crtc]()
    gpu.shared.display.presented = lambda crtc, number: shown.append(crtc)
    return shown


def request(program: Program, settings: list[Setting]) -> dict[str, int]:
    """Arguments of a commit; consecutive settings of an object are one entry."""
    objects, counts = list[int](), list[int]()
    for number, _, _ in settings:
        if objects[-1:] == [number]:
            counts[-1] += 1
        else:
            objects.append(number)
            counts.append(1)
    return {"object_count": len(objects), "objects": program.numbers("I", *objects), "counts": program.numbers("I", *counts),
            "properties": program.numbers("I", *(prop for _, prop, _ in settings)),
            "values": program.numbers("Q", *(value & (1 << 64) - 1 for _, _, value in settings))}  # fmt: skip


def commit(program: Program, settings: list[Setting], flags: int = MODESET, user_data: int = 7) -> None:
    program.ioctl("DRM_IOCTL_MODE_ATOMIC", flags=flags, user_data=user_data, **request(program, settings))


def not_committed(number: int, program: Program, settings: list[Setting], flags: int = MODESET) -> None:
    with pytest.raises(OSError) as found:
        commit(program, settings, flags)
    assert found.value.errno == number, found.value


def blob(program: Program, data: bytes) -> int:
    return int(program.ioctl("DRM_IOCTL_MODE_CREATEPROPBLOB", data=program.memory(data).address, size=len(data)).blob)


def plane(number: int, fb: int, size: tuple[int, int] = (640, 480), source: tuple[int, int] = (0, 0),
          at: tuple[int, int] = (0, 0)) -> list[Setting]:  # fmt: skip
    values = {M.FB_ID: fb, M.CRTC_ID: M.CRTC, M.SRC_X: source[0] << 16, M.SRC_Y: source[1] << 16, M.SRC_W: size[0] << 16,
              M.SRC_H: size[1] << 16, M.CRTC_X: at[0], M.CRTC_Y: at[1], M.CRTC_W: size[0], M.CRTC_H: size[1]}  # fmt: skip
    return [(number, name, value) for name, value in values.items()]


def whole(program: Program, fb: int, size: tuple[int, int] = (640, 480)) -> list[Setting]:
    """A mode and a framebuffer, as compositors begin."""
    return [(M.CRTC, M.ACTIVE, 1), (M.CRTC, M.MODE_ID, blob(program, mode(*size))), (M.CONNECTOR, M.CRTC_ID, M.CRTC),
            *plane(M.PLANE, fb, size)]  # fmt: skip


def held_properties(program: Program, number: int) -> dict[int, int]:
    count = program.ioctl("DRM_IOCTL_MODE_OBJ_GETPROPERTIES", object=number).property_count
    ids, values = program.memory(4 * count), program.memory(8 * count)
    program.ioctl("DRM_IOCTL_MODE_OBJ_GETPROPERTIES", object=number, property_count=count, properties=ids.address, values=values.address)
    return dict(zip(struct.unpack(f"<{count}I", bytes(ids)), struct.unpack(f"<{count}Q", bytes(values)), strict=True))


def event(program: Program) -> SimpleNamespace:
    assert readable(program, 5)
    return VBLANK_EVENT.unpack(program.node.recv(1024))


# -- what is shown


def test_a_commit_sets_mode_and_planes_at_once(client: Program, seen: list[Crtc]) -> None:
    (fb, _), (over, _), (arrow, _) = frame(client, 1024, 768), frame(client, 100, 50), cursor_frame(client)
    commit(client, [*whole(client, fb, (1024, 768)), *plane(M.OVERLAY, over, (90, 40), (10, 5), (-30, 700)),
                    *plane(M.CURSOR, arrow, (64, 64), at=(1000, -7))])  # fmt: skip
    [shown] = seen
    assert shown.size == (1024, 768) and shown.framebuffer is not None and shown.framebuffer.number == fb
    assert shown.overlay.shown and (shown.overlay.pixels, shown.overlay.target) == ((10, 5, 90, 40), (-30, 700, 90, 40))
    assert shown.cursor.shown and shown.cursor.target == (1000, -7, 64, 64)
    found = client.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=M.CRTC)
    assert (found.fb, found.mode_valid, found.mode) == (fb, 1, mode(1024, 768))


def cursor_frame(program: Program, size: int = 64) -> tuple[int, int]:
    made = program.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=size, height=size, bits=32)
    fb = program.ioctl("DRM_IOCTL_MODE_ADDFB", width=size, height=size, pitch=made.pitch, bits=32, depth=32, handle=made.handle).fb
    return fb, made.handle


def test_properties_read_as_they_were_set(client: Program) -> None:
    fb, mode_blob = frame(client)[0], blob(client, mode(640, 480))
    over = frame(client, 100, 50)[0]
    commit(client, [(M.CRTC, M.ACTIVE, 1), (M.CRTC, M.MODE_ID, mode_blob), (M.CONNECTOR, M.CRTC_ID, M.CRTC), *plane(M.PLANE, fb),
                    *plane(M.OVERLAY, over, (90, 40), (10, 5), (-30, 7))])  # fmt: skip
    found = held_properties(client, M.OVERLAY)
    assert found[M.CRTC_X] == (1 << 64) - 30 and found[M.CRTC_Y] == 7 and (found[M.SRC_X], found[M.SRC_W]) == (10 << 16, 90 << 16)
    assert (found[M.FB_ID], found[M.CRTC_ID], found[M.IN_FENCE_FD], found[M.FB_DAMAGE_CLIPS]) == (over, M.CRTC, (1 << 64) - 1, 0)
    crtc = {M.ACTIVE: 1, M.MODE_ID: mode_blob, M.OUT_FENCE_PTR: 0, M.GAMMA_LUT: 0, M.GAMMA_LUT_SIZE: 1024}
    assert held_properties(client, M.CRTC) == crtc
    connector = held_properties(client, M.CONNECTOR)
    assert connector[M.CRTC_ID] == M.CRTC and (connector[M.LINK_STATUS], connector[M.NON_DESKTOP]) == (0, 0)
    assert [held_properties(client, number)[M.ZPOS] for number in (M.PLANE, M.OVERLAY, M.CURSOR)] == [0, 1, 2]
    assert [held_properties(client, number)[M.PLANE_TYPE] for number in (M.PLANE, M.OVERLAY, M.CURSOR)] == [1, 0, 2]


def test_the_modes_of_legacy_programs_are_blobs_too(client: Program) -> None:
    show(client, frame(client)[0])
    number = held_properties(client, M.CRTC)[M.MODE_ID]
    room = client.memory(68)
    assert client.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=number, size=68, data=room.address).size == 68 and bytes(room) == mode(640, 480)


def test_a_commit_changes_what_it_names_and_leaves_the_rest(client: Program, seen: list[Crtc]) -> None:
    first, second = (frame(client)[0] for _ in range(2))
    commit(client, whole(client, first))
    commit(client, [(M.PLANE, M.FB_ID, second)], flags=0)
    assert seen[-1].framebuffer is not None and seen[-1].framebuffer.number == second and seen[-1].primary.target == (0, 0, 640, 480)
    commit(client, [(M.CRTC, M.ACTIVE, 0)])
    assert len(seen) == 2 and held_properties(client, M.CONNECTOR)[M.DPMS] == 3, "it is off, and nothing is shown"
    commit(client, [(M.CRTC, M.ACTIVE, 1)])
    assert len(seen) == 3 and held_properties(client, M.CONNECTOR)[M.DPMS] == 0


def test_everything_is_turned_off(gpu: Gpu, client: Program, seen: list[Crtc]) -> None:
    commit(client, whole(client, frame(client)[0]))
    off = ((M.CRTC, M.ACTIVE), (M.CRTC, M.MODE_ID), (M.CONNECTOR, M.CRTC_ID), (M.PLANE, M.FB_ID), (M.PLANE, M.CRTC_ID))
    commit(client, [(*name, 0) for name in off])
    assert len(seen) == 1 and not gpu.shared.display.crtc.primary.attached
    assert client.ioctl("DRM_IOCTL_MODE_GETCRTC", crtc=M.CRTC).mode_valid == 0


def test_a_test_changes_nothing(gpu: Gpu, client: Program, seen: list[Crtc]) -> None:
    commit(client, whole(client, frame(client)[0]), flags=TEST | MODESET)
    not_committed(errno.EINVAL, client, [(M.CRTC, M.ACTIVE, 0)], flags=TEST)
    shown = gpu.shared.display.crtc.framebuffer
    assert not seen and shown is not None and shown.owner is None, "the console"


def test_gamma_and_damage_are_blobs(gpu: Gpu, client: Program, seen: list[Crtc]) -> None:
    table = struct.pack("<1024Q", *range(1024))
    damage = blob(client, struct.pack("<8i", 0, 0, 10, 10, 5, 5, 100000, 7))
    commit(client, [*whole(client, frame(client)[0]), (M.PLANE, M.FB_DAMAGE_CLIPS, damage), (M.CRTC, M.GAMMA_LUT, blob(client, table))])
    assert seen[0].gamma_blob is not None and seen[0].gamma_blob.data == table
    commit(client, [(M.CRTC, M.GAMMA_LUT, blob(client, bytes(8 * 256)))], flags=0)
    not_committed(errno.EINVAL, client, [(M.CRTC, M.GAMMA_LUT, blob(client, bytes(8 * 255)))])
    not_committed(errno.EINVAL, client, [(M.PLANE, M.FB_DAMAGE_CLIPS, blob(client, bytes(17)))])
    commit(client, [(M.CRTC, M.GAMMA_LUT, 0)], flags=0)
    assert seen[-1].gamma_blob is None
    client.ioctl("DRM_IOCTL_MODE_OBJ_SETPROPERTY", object=M.CRTC, property=M.GAMMA_LUT, value=blob(client, table))
    assert gpu.shared.display.crtc.gamma_blob is not None


def test_other_properties_are_set_alone(client: Program) -> None:
    for number, name, value in ((M.PLANE, M.ROTATION, 1), (M.CONNECTOR, M.LINK_STATUS, 0)):
        client.ioctl("DRM_IOCTL_MODE_OBJ_SETPROPERTY", object=number, property=name, value=value)
        refused(errno.EINVAL, client, "DRM_IOCTL_MODE_OBJ_SETPROPERTY", object=number, property=name, value=2)


# -- when


def test_a_commit_waits_for_the_rendering_into_all_its_planes(client: Program, held: Held, seen: list[Crtc]) -> None:
    (fb, handle), (over, drawn) = frame(client), frame(client, 100, 50)
    submit(client, handle)
    submit(client, drawn)
    threading.Timer(0.1, held.finish).start()
    threading.Timer(0.2, held.finish).start()
    commit(client, [*whole(client, fb), *plane(M.OVERLAY, over, (90, 40))])
    assert len(seen) == 1 and not held.submissions


def test_one_that_does_not_block_sends_an_event_and_keeps_others_out(client: Program, held: Held, seen: list[Crtc]) -> None:
    (first, _), (second, handle) = frame(client), frame(client)
    commit(client, whole(client, first))
    submit(client, handle)
    commit(client, [(M.PLANE, M.FB_ID, second)], flags=NONBLOCK | EVENT, user_data=1 << 63 | 5)
    assert not readable(client, 0.05) and len(seen) == 1
    not_committed(errno.EBUSY, client, [(M.PLANE, M.FB_ID, first)], flags=NONBLOCK)
    commit(client, [(M.PLANE, M.FB_ID, first)], flags=TEST)
    refused(errno.EBUSY, client, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=M.CRTC, fb=first)
    held.finish()
    found = event(client)
    assert (found.kind, found.user_data, found.crtc) == (2, 1 << 63 | 5, M.CRTC) and len(seen) == 2
    commit(client, [(M.PLANE, M.FB_ID, first)], flags=NONBLOCK | EVENT)
    assert event(client).user_data == 7


def test_a_blocking_commit_waits_for_the_one_before(client: Program, held: Held, seen: list[Crtc]) -> None:
    (first, _), (second, handle) = frame(client), frame(client)
    commit(client, whole(client, first))
    submit(client, handle)
    commit(client, [(M.PLANE, M.FB_ID, second)], flags=NONBLOCK)
    threading.Timer(0.2, held.finish).start()
    commit(client, [(M.PLANE, M.FB_ID, first)], flags=0)
    assert [shown.framebuffer.number for shown in seen if shown.framebuffer] == [first, second, first]


def sync_file(gpu: Gpu, fence: Fence) -> int:
    return gpu.shared.sync_files.make(fence)


def test_an_in_fence_is_waited_for_instead_of_the_rendering(gpu: Gpu, client: Program, held: Held, seen: list[Crtc]) -> None:
    (first, _), (second, handle) = frame(client), frame(client)
    commit(client, whole(client, first))
    submit(client, handle)
    fence = Fence(gpu.shared.signals)
    descriptor = sync_file(gpu, fence)
    commit(client, [(M.PLANE, M.FB_ID, second), (M.PLANE, M.IN_FENCE_FD, descriptor)], flags=NONBLOCK | EVENT)
    os.close(descriptor)
    assert not readable(client, 0.05)
    fence.signal()
    assert event(client).user_data == 7 and len(seen) == 2 and held.submissions, "the rendering goes on"
    commit(client, [(M.PLANE, M.IN_FENCE_FD, -1)], flags=NONBLOCK)
    held.finish()


@pytest.mark.parametrize("kind", ["closed", "file", "twice"])
def test_fences_that_are_none(gpu: Gpu, client: Program, kind: str) -> None:
    commit(client, whole(client, frame(client)[0]))
    descriptor = os.open(os.devnull, os.O_RDONLY) if kind == "file" else sync_file(gpu, Fence(gpu.shared.signals))
    if kind == "closed":
        os.close(descriptor)
    settings = [(M.PLANE, M.IN_FENCE_FD, descriptor)] * (2 if kind == "twice" else 1)
    not_committed(errno.EINVAL, client, settings, flags=0)
    not_committed(errno.EINVAL, client, [(M.PLANE, M.IN_FENCE_FD, -2)], flags=0)
    if kind != "closed":
        os.close(descriptor)


def test_an_out_fence_is_done_when_the_frame_is_shown(client: Program, held: Held) -> None:
    (first, _), (second, handle) = frame(client), frame(client)
    commit(client, whole(client, first))
    submit(client, handle)
    room = client.memory(b"\xff" * 4)
    commit(client, [(M.PLANE, M.FB_ID, second), (M.CRTC, M.OUT_FENCE_PTR, room.address)], flags=NONBLOCK)
    [descriptor] = struct.unpack("<i", bytes(room))
    assert descriptor >= 0 and not select.select([descriptor], [], [], 0.05)[0]
    held.finish()
    assert select.select([descriptor], [], [], 5)[0]


def test_a_commit_that_fails_hands_out_no_fence(client: Program) -> None:
    room = client.memory(b"\xff" * 4)
    commit(client, whole(client, frame(client)[0]))
    before = len(client.received)
    not_committed(errno.EINVAL, client, [(M.CRTC, M.OUT_FENCE_PTR, room.address), (M.CRTC, M.MODE_ID, 0)])
    not_committed(errno.EFAULT, client, [(M.CRTC, M.OUT_FENCE_PTR, 8)])
    commit(client, [(M.CRTC, M.OUT_FENCE_PTR, room.address)], flags=TEST)
    assert bytes(room) == b"\xff" * 4 and len(client.received) == before


# -- what is refused


@pytest.mark.parametrize("change, number", [
    ((M.CRTC, M.MODE_ID, 0), errno.EINVAL), ((M.CONNECTOR, M.CRTC_ID, 0), errno.EINVAL), ((M.PLANE, M.CRTC_ID, 0), errno.EINVAL),
    ((M.PLANE, M.FB_ID, 0), errno.EINVAL), ((M.PLANE, M.FB_ID, 9999), errno.EINVAL), ((M.PLANE, M.CRTC_ID, 9), errno.EINVAL),
    ((M.PLANE, M.SRC_X, 1 << 16), errno.ENOSPC), ((M.PLANE, M.SRC_W, 1 << 32), errno.EINVAL), ((M.PLANE, M.CRTC_W, 1 << 31), errno.EINVAL),
    ((M.PLANE, M.CRTC_X, 1 << 31), errno.EINVAL), ((M.PLANE, M.CRTC_X, -(1 << 31) - 1), errno.EINVAL),
    ((M.PLANE, M.CRTC_W, 639), errno.ERANGE),
    ((M.PLANE, M.SRC_H, 479 << 16), errno.ERANGE), ((M.CRTC, M.ACTIVE, 2), errno.EINVAL), ((M.CRTC, M.MODE_ID, 9999), errno.EINVAL),
    ((M.PLANE, M.PLANE_TYPE, 1), errno.EINVAL), ((M.PLANE, M.ZPOS, 0), errno.EINVAL), ((M.PLANE, M.ROTATION, 2), errno.EINVAL),
    ((M.PLANE, M.ROTATION, 0), errno.EINVAL), ((M.CONNECTOR, M.DPMS, 3), errno.EINVAL), ((M.CONNECTOR, M.EDID, 0), errno.EINVAL),
    ((M.CONNECTOR, M.LINK_STATUS, 2), errno.EINVAL), ((M.CRTC, M.GAMMA_LUT_SIZE, 1024), errno.EINVAL),
    ((M.PLANE, M.ACTIVE, 1), errno.ENOENT), ((M.PLANE, 9999, 1), errno.ENOENT), ((9999, M.ACTIVE, 1), errno.ENOENT),
    ((M.CRTC, M.FB_ID, 0), errno.ENOENT),
])  # fmt: skip
def test_states_that_cannot_be(gpu: Gpu, client: Program, seen: list[Crtc], change: Setting, number: int) -> None:
    settings = [entry for entry in whole(client, frame(client)[0]) if entry[:2] != change[:2]]
    not_committed(number, client, [*settings, change])
    not_committed(number, client, [*settings, change], TEST | MODESET)
    assert not seen and gpu.shared.display.pending is None


def test_modes_that_are_none(client: Program) -> None:
    fb = frame(client)[0]
    for data in (bytes(68), mode(640, 480) + b"\0", mode(640, 480)[:67], b"x"):
        not_committed(errno.EINVAL, client, [*whole(client, fb), (M.CRTC, M.MODE_ID, blob(client, data))])


@pytest.mark.parametrize("name, windowed", [("hsw", False), ("kbl", True)])
def test_the_primary_plane_covers_the_crtc_before_gen9(name: str, windowed: bool) -> None:
    with served(name) as gpu:
        program = gpu.program("card0")
        program.ioctl("DRM_IOCTL_SET_CLIENT_CAP", capability=3, value=1)
        fb = frame(program)[0]
        settings = [*whole(program, fb)[:3], *plane(M.PLANE, fb, (100, 100), at=(20, 30))]
        if windowed:
            commit(program, settings)
        else:
            not_committed(errno.EINVAL, program, settings)


@pytest.mark.parametrize("size, format, number", [(64, 32, 0), (256, 32, 0), (100, 32, errno.EINVAL), (64, 24, errno.EINVAL)])
def test_the_cursor_plane_takes_some_sizes_and_one_format(client: Program, size: int, format: int, number: int) -> None:
    made = client.ioctl("DRM_IOCTL_MODE_CREATE_DUMB", width=size, height=size, bits=32)
    fb = client.ioctl("DRM_IOCTL_MODE_ADDFB", width=size, height=size, pitch=made.pitch, bits=32, depth=format, handle=made.handle).fb
    commit(client, whole(client, frame(client)[0]))
    if number:
        not_committed(number, client, plane(M.CURSOR, fb, (size, size)))
    else:
        commit(client, plane(M.CURSOR, fb, (size, size)), flags=0)


def test_a_new_mode_needs_leave(client: Program, seen: list[Crtc]) -> None:
    fb = frame(client, 1024, 768)[0]
    not_committed(errno.EINVAL, client, whole(client, fb, (800, 600)), flags=0)
    commit(client, whole(client, fb, (800, 600)))
    commit(client, whole(client, fb, (800, 600)), flags=0)  # the same mode
    not_committed(errno.EINVAL, client, [(M.CRTC, M.ACTIVE, 0)], flags=0)
    assert len(seen) == 2


@pytest.mark.parametrize("flags", [ASYNC, 4, 1 << 11, TEST | EVENT, 1 << 31])
def test_flags_that_are_none(client: Program, flags: int) -> None:
    not_committed(errno.EINVAL, client, whole(client, frame(client)[0]), flags | MODESET)


def test_an_event_needs_something_that_is_shown(client: Program) -> None:
    commit(client, whole(client, frame(client)[0]))
    commit(client, [(M.CRTC, M.ACTIVE, 0)], flags=MODESET | EVENT)
    assert event(client).kind == 2, "it was on"
    not_committed(errno.EINVAL, client, [(M.CRTC, M.ACTIVE, 0)], flags=EVENT)
    not_committed(errno.EINVAL, client, [], flags=EVENT)
    not_committed(errno.EINVAL, client, [(M.CURSOR, M.CRTC_X, 4)], flags=EVENT)
    not_committed(errno.EINVAL, client, [(M.CRTC, M.OUT_FENCE_PTR, client.memory(4).address)], flags=0)


def test_requests_that_cannot_be_read(client: Program) -> None:
    settings = whole(client, frame(client)[0])
    for fields, number in (({"objects": 8}, errno.EFAULT), ({"counts": 8}, errno.EFAULT), ({"properties": 8}, errno.EFAULT),
                           ({"values": 8}, errno.EFAULT), ({"reserved": 1}, errno.EINVAL), ({"object_count": 1 << 31}, errno.EINVAL),
                           ({"counts": client.numbers("I", *[1 << 30] * 3)}, errno.EINVAL)):  # fmt: skip
        refused(number, client, "DRM_IOCTL_MODE_ATOMIC", **{"flags": MODESET, **request(client, settings), **fields})


def test_who_may_commit(gpu: Gpu, client: Program) -> None:
    other = gpu.program("card0")
    refused(errno.EACCES, other, "DRM_IOCTL_MODE_ATOMIC")
    assert M.ACTIVE not in held_properties(other, M.CRTC), "atomic properties are for atomic clients"
    client.ioctl("DRM_IOCTL_DROP_MASTER")
    other.ioctl("DRM_IOCTL_SET_MASTER") if os.getuid() == 0 else pytest.skip("for root")
    refused(errno.EINVAL, other, "DRM_IOCTL_MODE_ATOMIC")
    refused(errno.EINVAL, other, "DRM_IOCTL_MODE_OBJ_SETPROPERTY", object=M.CRTC, property=M.ACTIVE, value=1)


def test_a_gpu_whose_driver_has_none() -> None:
    """Before G4X (i915_driver_create)."""
    with served("gm965") as gpu:
        program = gpu.program("card0")
        refused(errno.EOPNOTSUPP, program, "DRM_IOCTL_SET_CLIENT_CAP", capability=3, value=1)
        refused(errno.EOPNOTSUPP, program, "DRM_IOCTL_MODE_ATOMIC")


def test_an_x_server_gets_no_atomic_mode_setting(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "program_name", lambda pid: "Xorg")
    program = gpu.program("card0")
    refused(errno.EOPNOTSUPP, program, "DRM_IOCTL_SET_CLIENT_CAP", capability=3, value=1)
    program.ioctl("DRM_IOCTL_SET_CLIENT_CAP", capability=3, value=2)


@pytest.mark.parametrize("name", ["CREATE_LEASE", "LIST_LESSEES", "GET_LEASE", "REVOKE_LEASE"])
def test_there_are_no_leases(client: Program, name: str) -> None:
    number = {"CREATE_LEASE": 0xC6, "LIST_LESSEES": 0xC7, "GET_LEASE": 0xC8, "REVOKE_LEASE": 0xC9}[name]
    with pytest.raises(OSError) as found:
        client.raw(number, bytes(32))
    assert found.value.errno == errno.EOPNOTSUPP


# -- properties and blobs


@pytest.mark.parametrize("number, name, flags, values", [
    (M.FB_ID, b"FB_ID", 1 << 31 | 1 << 6, (0xFBFBFBFB,)), (M.CRTC_X, b"CRTC_X", 1 << 31 | 2 << 6, ((1 << 64) - (1 << 31), (1 << 31) - 1)),
    (M.SRC_W, b"SRC_W", 1 << 31 | 2, (0, (1 << 32) - 1)), (M.OUT_FENCE_PTR, b"OUT_FENCE_PTR", 1 << 31 | 2, (0, (1 << 64) - 1)),
    (M.MODE_ID, b"MODE_ID", 1 << 31 | 16, ()), (M.ACTIVE, b"ACTIVE", 1 << 31 | 2, (0, 1)), (M.ZPOS, b"zpos", 6, (0, 2)),
])  # fmt: skip
def test_what_properties_are(client: Program, number: int, name: bytes, flags: int, values: tuple[int, ...]) -> None:
    room = client.memory(8 * len(values) + 1)
    found = client.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=number, values=room.address, value_count=len(values))
    assert (found.name.rstrip(b"\0"), found.flags, found.value_count, found.enum_count) == (name, flags, len(values), 0)
    assert struct.unpack(f"<{len(values)}Q", bytes(room)[: 8 * len(values)]) == values


def test_rotation_has_one_value(client: Program) -> None:
    room = client.memory(PROPERTY_ENUM.size)
    found = client.ioctl("DRM_IOCTL_MODE_GETPROPERTY", property=M.ROTATION, enums=room.address, enum_count=1)
    row = PROPERTY_ENUM.unpack(bytes(room))
    assert (found.flags, found.enum_count, row.value, row.name.rstrip(b"\0")) == (1 << 5, 1, 0, b"rotate-0")


def test_blobs_live_as_long_as_a_program_or_a_state_has_them(gpu: Gpu, client: Program) -> None:
    number, other = blob(client, mode(640, 480)), gpu.program("card0")
    refused(errno.EPERM, other, "DRM_IOCTL_MODE_DESTROYPROPBLOB", blob=number)
    settings = [entry for entry in whole(client, frame(client)[0]) if entry[1] != M.MODE_ID]
    commit(client, [*settings, (M.CRTC, M.MODE_ID, number)])
    client.ioctl("DRM_IOCTL_MODE_DESTROYPROPBLOB", blob=number)
    refused(errno.EPERM, client, "DRM_IOCTL_MODE_DESTROYPROPBLOB", blob=number)
    assert other.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=number).size == 68
    commit(client, [(M.CRTC, M.MODE_ID, blob(client, mode(640, 480)))])
    refused(errno.ENOENT, other, "DRM_IOCTL_MODE_GETPROPBLOB", blob=number)
    refused(errno.ENOENT, client, "DRM_IOCTL_MODE_DESTROYPROPBLOB", blob=number)
    refused(errno.EPERM, client, "DRM_IOCTL_MODE_DESTROYPROPBLOB", blob=M.EDID_BLOB)


def test_blobs_are_counted_and_go_with_the_node(gpu: Gpu, client: Program) -> None:
    refused(errno.EINVAL, client, "DRM_IOCTL_MODE_CREATEPROPBLOB")
    refused(errno.ENOMEM, client, "DRM_IOCTL_MODE_CREATEPROPBLOB", size=(16 << 20) + 1)
    refused(errno.EFAULT, client, "DRM_IOCTL_MODE_CREATEPROPBLOB", data=8, size=100)
    other = gpu.program("card0")
    numbers = [blob(other, bytes(1000)) for _ in range(100)]
    other.close()
    until = time.monotonic() + 10
    while any(number in gpu.shared.display.blobs for number in numbers):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_programs_that_flood_blobs_run_out_of_memory() -> None:
    with served("kbl", memory_limit=64 << 20) as gpu:
        program, room = gpu.program("card0"), None
        room = program.memory(1 << 20)
        with pytest.raises(OSError) as found:
            for _ in range(200):
                program.ioctl("DRM_IOCTL_MODE_CREATEPROPBLOB", data=room.address, size=1 << 20)
        assert found.value.errno == errno.ENOMEM


def test_a_node_that_is_closed_with_a_commit_pending(gpu: Gpu, client: Program, held: Held, seen: list[Crtc]) -> None:
    (first, _), (second, handle) = frame(client), frame(client)
    commit(client, whole(client, first))
    submit(client, handle)
    commit(client, [(M.PLANE, M.FB_ID, second)], flags=NONBLOCK | EVENT)
    client.close()
    until = time.monotonic() + 10
    while gpu.shared.display.connections:
        assert time.monotonic() < until
        time.sleep(0.01)
    held.finish()
    other = gpu.program("card0")
    other.ioctl("DRM_IOCTL_SET_CLIENT_CAP", capability=3, value=1)
    commit(other, whole(other, frame(other)[0]))
    assert len(seen) == 3




def test_a_client_that_asks_first_finds_the_console(client: Program) -> None:
    assert held_properties(client, M.CONNECTOR)[M.CRTC_ID] == M.CRTC
    found = held_properties(client, M.CRTC)
    assert found[M.ACTIVE] == 1 and client.ioctl("DRM_IOCTL_MODE_GETPROPBLOB", blob=found[M.MODE_ID]).size == 68


def test_an_inactive_crtc_takes_no_legacy_flip(client: Program) -> None:
    fb = frame(client)[0]
    commit(client, whole(client, fb))
    commit(client, [(M.CRTC, M.ACTIVE, 0)])
    refused(errno.EINVAL, client, "DRM_IOCTL_MODE_PAGE_FLIP", crtc=M.CRTC, fb=fb)
    commit(client, [(M.CRTC, M.ACTIVE, 1)])
    client.ioctl("DRM_IOCTL_MODE_PAGE_FLIP", crtc=M.CRTC, fb=fb)
