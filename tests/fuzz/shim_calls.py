"""Runs under `softgen run`: paths of any kind and ioctls of any number, through libc and the shim.

    softgen run -- python tests/fuzz/shim_calls.py SECONDS SEED

`make fuzz` builds the shim with sanitizers for it. Prints how many calls were answered.
It knows nothing of softgen, and needs nothing but Python.
"""

import ctypes
import os
import random
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
for name in ("opendir", "fopen", "realpath"):
    getattr(libc, name).restype = ctypes.c_void_p
libc.closedir.argtypes = libc.fclose.argtypes = (ctypes.c_void_p,)
libc.readlink.restype = libc.readlinkat.restype = ctypes.c_ssize_t

ROOTS = ("/dev/dri", "/dev", "/sys/class/drm", "/sys/dev/char/226:128", "/sys/dev/char/226:0", "/sys/bus/pci/devices", "/sys/devices",
         "/proc/self/fd", "/proc/dri", "/etc", "/tmp", "", ".", "..", "/")  # fmt: skip
PARTS = ("dri", "card0", "renderD128", "card1", "by-path", "device", "drm", "vendor", "uevent", "config", "subsystem", "0000:00:02.0",
         "226:128", "..", ".", "", "\xff\xfe", "x" * 255, "x" * 4000)  # fmt: skip
NODES = ("/dev/dri/card0", "/dev/dri/renderD128")
CURRENT = -100  # AT_FDCWD


def path(chance):
    """A path near what the shim redirects; now and then longer than PATH_MAX."""
    made = chance.choice(ROOTS)
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
        made += "/" * chance.choice((1, 1, 1, 2)) + chance.choice(PARTS)
    if not chance.randrange(8) and made:
        at = chance.randrange(len(made))
        made = made[:at] + chance.choice(("", "/", "..", "%s", "\x01")) + made[at + 1 :]
    return os.fsencode(made)


def call(chance, folders):
    """One call of a function that takes a path."""
    what, folder, room = path(chance), chance.choice(folders), chance.choice((0, 1, 2, 16, 255, 4096))
    buffer = ctypes.create_string_buffer(8192)
    match chance.randrange(13):
        case 0:
            close(libc.open(what, chance.choice((0, 1, 2, os.O_DIRECTORY, os.O_PATH, os.O_NOFOLLOW)) | os.O_NONBLOCK))
        case 1:
            close(libc.openat(folder, what, os.O_NONBLOCK))
        case 2:
            libc.stat(what, buffer)
        case 3:
            libc.lstat(what, buffer)
        case 4:
            libc.fstatat(folder, what, buffer, chance.choice((0, 0x100, 0x1000)))
        case 5:
            libc.statx(folder, what, 0, 0xFFF, buffer)
        case 6:
            libc.access(what, chance.randrange(8))
        case 7:
            libc.readlink(what, ctypes.create_string_buffer(room) if room else buffer, room)
        case 8:
            libc.readlinkat(folder, what, ctypes.create_string_buffer(room) if room else buffer, room)
        case 9:
            if found := libc.opendir(what):
                libc.closedir(found)
        case 10:
            libc.statfs(what, buffer)
        case 11:
            libc.realpath(what, buffer)
        case _:
            if found := libc.fopen(what, b"re"):
                libc.fclose(found)


def close(descriptor):
    if descriptor >= 0:
        os.close(descriptor)


def ioctl(chance, node):
    """Any ioctl of DRM, with an argument of any size that is ours."""
    size = chance.choice((0, 4, 8, 16, 24, 32, 64, 256, 4096))
    content = bytes(chance.choice((0, 0, 0, 1, chance.randrange(256))) for _ in range(size))
    buffer = ctypes.create_string_buffer(content or b"\0", max(size, 1))
    number = chance.choice((*range(0x12), *range(0x40, 0x80), *range(0xA0, 0xD0)))
    if number in (0x6C, 0xC3, 0xCA, 0xCC, 0x73):
        return  # they may wait for ever, or take pages of this program
    libc.ioctl(node, ctypes.c_ulong(3 << 30 | size << 16 | ord(chance.choice("ddddb>")) << 8 | number), buffer)


def main():
    end, chance, calls = time.monotonic() + float(sys.argv[1]), random.Random(int(sys.argv[2])), 0
    nodes = [os.open(node, os.O_RDWR) for node in NODES]
    folders = [CURRENT, os.open("/dev", os.O_RDONLY), os.open("/sys", os.O_RDONLY), os.open("/dev/dri", os.O_RDONLY), -1, 9999]
    while time.monotonic() < end:
        for _ in range(50):
            ioctl(chance, chance.choice(nodes)) if not chance.randrange(4) else call(chance, folders)
            calls += 1
    print(f"{calls} calls", flush=True)


if __name__ == "__main__":
    main()
