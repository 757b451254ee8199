"""Looks at the input devices of a run, as libinput does."""

import fcntl
import json
import os
import struct


def ioctl(fd: int, number: int, size: int, direction: int = 2) -> bytes:
    return bytes(fcntl.ioctl(fd, direction << 30 | size << 16 | ord("E") << 8 | number, bytes(size)))


def bits(data: bytes) -> list[int]:
    return [at for at in range(8 * len(data)) if data[at // 8] >> at % 8 & 1]


found = {}
for name in sorted(os.listdir("/dev/input")):
    fd = os.open(f"/dev/input/{name}", os.O_RDWR | os.O_NONBLOCK)
    keys, axes = bits(ioctl(fd, 0x21, 96)), bits(ioctl(fd, 0x23, 8))
    refused = []
    for number, direction in ((0xA0, 1), (0x70, 2), (0x33, 3)):  # a clock that is none, an axis that is none, an unknown ioctl
        try:
            ioctl(fd, number, 4, direction) if number != 0xA0 else fcntl.ioctl(fd, 0x400445A0, struct.pack("i", 77))
        except OSError as error:
            refused.append(error.errno)
    fcntl.ioctl(fd, 0x400445A0, struct.pack("i", 1))  # CLOCK_MONOTONIC
    try:
        os.read(fd, 240)
    except BlockingIOError:
        refused.append(0)
    found[name] = {"name": ioctl(fd, 0x06, 64).rstrip(b"\0").decode(), "types": bits(ioctl(fd, 0x20, 4)),
                   "keys": [len(keys), min(keys), max(keys)], "axes": axes,
                   "range": struct.unpack("6i", ioctl(fd, 0x40, 24))[2] if axes else 0, "refused": refused,
                   "number": [os.major(os.fstat(fd).st_rdev), os.minor(os.stat(f"/dev/input/{name}").st_rdev)],
                   "link": os.readlink(f"/proc/self/fd/{fd}")}  # fmt: skip
print(json.dumps(found))
