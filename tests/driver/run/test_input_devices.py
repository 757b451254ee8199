"""Input devices of a run: what programs find, and that all who listen get what people type."""

from __future__ import annotations

import errno
import json
import socket
import sys
import time

import pytest

from softgen.driver.run.input_devices import MOST_LISTENERS, InputDevices
from softgen.driver.uapi.input import INPUT_EVENT, KEYS
from softgen.inspect.frames.typed import events
from tests.driver.running import PROGRAMS, needs_shim, softgen_run


@needs_shim
def test_programs_find_a_keyboard_and_a_pointer_where_people_watch() -> None:
    run = softgen_run("--gpu", "kbl", "--show", "--", sys.executable, str(PROGRAMS / "input.py"))
    assert run.process.returncode == 0, run.err
    keyboard, pointer = json.loads(run.out).values()
    refused = [errno.EINVAL, errno.EINVAL, errno.EINVAL, 0]
    assert keyboard == {"name": "softgen keyboard", "types": [0, 1, 20], "keys": [248, 1, 248], "axes": [], "range": 0, "refused": refused,
                        "number": [13, 64], "link": "/dev/input/event0"}  # fmt: skip
    assert pointer == {"name": "softgen pointer", "types": [0, 1, 2, 3], "keys": [3, 0x110, 0x112], "axes": [0, 1], "range": 65535,
                       "refused": refused, "number": [13, 65], "link": "/dev/input/event1"}  # fmt: skip


def test_all_who_listen_get_events_and_a_report_after_them() -> None:
    devices, before = InputDevices(), time.monotonic()
    pairs = [socket.socketpair() for _ in range(3)]
    assert all(devices.opened("event0", ours) for ours, _ in pairs) and devices.opened("event1", socket.socketpair()[0])
    pairs[1][1].close()
    for _ in range(2):
        devices.send("event0", [(1, 30, 1)])
    assert len(devices.listeners["event0"]) == 2
    for at in (0, 2):
        found = list(INPUT_EVENT.iter_unpack(pairs[at][1].recv(4096)))
        assert [row[2:] for row in found] == [(1, 30, 1), (0, 0, 0)] * 2 and before - 1 <= found[0][0] <= time.monotonic()


def test_a_program_that_does_not_read_loses_events_whole() -> None:
    devices, (ours, theirs) = InputDevices(), socket.socketpair()
    devices.opened("event0", ours)
    for _ in range(20_000):
        devices.send("event0", [(1, 30, 1)])
    data = bytearray()
    theirs.setblocking(False)
    try:
        while more := theirs.recv(1 << 20):
            data += more
    except BlockingIOError:
        pass
    assert 0 < len(data) < 20_000 * 2 * INPUT_EVENT.size and len(data) % (2 * INPUT_EVENT.size) == 0


def test_a_device_has_so_many_listeners() -> None:
    devices = InputDevices()
    pairs = [socket.socketpair() for _ in range(MOST_LISTENERS + 1)]
    assert [devices.opened("event1", ours) for ours, _ in pairs] == [True] * MOST_LISTENERS + [False]
    pairs[0][1].close()
    assert devices.opened("event1", pairs[-1][0])


@pytest.mark.parametrize("said, expected", [
    ([{"kind": "key", "code": "KeyZ", "down": True}, {"kind": "key", "code": "KeyZ"}],
     [("event0", [(1, 44, 1)]), ("event0", [(1, 44, 0)])]),
    ([{"kind": "move", "x": 0, "y": 1}], [("event1", [(3, 0, 0), (3, 1, 65535)])]),
    ([{"kind": "button", "button": 2, "down": 1, "x": 0.5, "y": 0}], [("event1", [(3, 0, 32768), (3, 1, 0), (1, 0x111, 1)])]),
    ([{"kind": "wheel", "y": 1}], [("event1", [(2, 8, -1)])]),
    ("nothing", []), ({"kind": "key"}, []), ([1, {"kind": "key", "code": "None"}, {"kind": "move", "x": "a", "y": 2}], []),
    ([{"kind": "button", "button": 9}, {"kind": "button", "button": []}, {"kind": "wheel", "y": 5},
      {"kind": "move", "x": 1e400, "y": float("nan")}], [])])  # fmt: skip
def test_what_people_do_becomes_events(said: object, expected: object) -> None:
    assert list(events(said)) == expected


def test_codes_of_keys() -> None:
    expected = {"Escape": 1, "Enter": 28, "KeyA": 30, "ShiftRight": 54, "F10": 68, "F12": 88, "NumpadDecimal": 83, "AltRight": 100,
                "Delete": 111, "MetaLeft": 125, "ArrowUp": 103}  # fmt: skip
    assert {name: KEYS[name] for name in expected} == expected
