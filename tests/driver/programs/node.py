"""Runs under `softgen run`: a few ioctls on the node, through libc and the shim, from Python. Imported by the other scripts here."""

import ctypes
import fcntl
import mmap
import os
import struct

STORE, END = 0x10000002, 0x05000000


def request(number, size):
    return 3 << 30 | size << 16 | ord("d") << 8 | number


def ioctl(node, number, data):
    argument = bytearray(data)
    fcntl.ioctl(node, request(number, len(argument)), argument, True)
    return bytes(argument)


def create(node, size=4096):
    return struct.unpack("<QII", ioctl(node, 0x5B, struct.pack("<QII", size, 0, 0)))[1]


def view(node, handle, size=4096):
    offset = struct.unpack("<IIQQQ", ioctl(node, 0x64, struct.pack("<IIQQQ", handle, 0, 0, 2, 0)))[2]
    return mmap.mmap(node, size, offset=offset)


def rows(*pairs):
    packed = [struct.pack("<IIQQQQQQ", handle, 0, 0, 0, address, 1 << 4, 0, 0) for handle, address in pairs]
    return ctypes.create_string_buffer(b"".join(packed))


def submit(node, *pairs, flags=0):
    """Buffers at addresses; the last is the batch."""
    buffers = rows(*pairs)
    data = struct.pack("<QIIIIIIQQQQ", ctypes.addressof(buffers), len(pairs), 0, 0, 0, 0, 0, 0, flags, 0, 0)
    return ioctl(node, 0x69, data)


def wait(node, handle, nanoseconds=20 * 10**9):
    ioctl(node, 0x6C, struct.pack("<IIq", handle, 0, nanoseconds))


def store(address, value):
    return struct.pack("<4I", STORE, address & 0xFFFFFFFF, address >> 32, value)


def batch(node, *stores):
    handle = create(node)
    with view(node, handle) as memory:
        code = b"".join(store(*arguments) for arguments in stores) + struct.pack("<2I", END, 0)
        memory[: len(code)] = code
    return handle


def works(node, value=0x1234):
    """Does a submission on this node do what it should?"""
    target = create(node)
    code = batch(node, (0x20010, value))
    submit(node, (target, 0x20000), (code, 0x10000))
    wait(node, target)
    with view(node, target) as memory:
        return struct.unpack_from("<I", memory, 16)[0] == value


def open_node(name="renderD128"):
    return os.open(f"/dev/dri/{name}", os.O_RDWR | os.O_CLOEXEC)
