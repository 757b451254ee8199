"""Two programs share a tiled buffer and a sync file. `share_lies.py lies`: the importer lies about modifiers and sizes, and names what is
no sync file; `share_lies.py endless`: it waits for the exporter's work without end, and the exporter is killed. Prints what it gets."""

import array
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import subprocess
import sys

from node import batch, create, ioctl, open_node, rows, view, works

SET_TILING, GET_TILING, PRIME_TO_FD, PRIME_TO_HANDLE, ADDFB2, EXECBUFFER2 = 0x61, 0x62, 0x2D, 0x2E, 0xB8, 0x69
TILING_X, PITCH, WIDTH, HEIGHT = 1, 2560, 640, 64
LINEAR, X_TILED, Y_TILED, UNKNOWN = 0, 1 << 56 | 1, 1 << 56 | 2, 9 << 56 | 1
MODIFIERS, XR24 = 2, int.from_bytes(b"XR24", "little")
FENCE_IN, FENCE_OUT = 1 << 16, 1 << 17
BATCH_START, LOOP, TARGET = 0x18800101, 0x40000000, 0x200000


def numbers(node, number, layout, *values):
    return struct.unpack(layout, ioctl(node, number, struct.pack(layout, *values)))


def execute(node, flags, fence, *pairs):
    """A submission with a sync file on its way in or out; gives the one that comes out."""
    buffers = rows(*pairs)
    data = struct.pack("<QIIIIIIQQQiI", ctypes.addressof(buffers), len(pairs), 0, 0, 0, 0, 0, 0, flags, 0, fence, 0)
    return struct.unpack("<i", ioctl(node, EXECBUFFER2, data)[60:])[0]


def exporter(channel):
    """Gives a tiled buffer and the fence of work: without end, where it is asked to."""
    node = open_node("card0")
    buffer = create(node, PITCH * HEIGHT)
    ioctl(node, SET_TILING, struct.pack("<IIII", buffer, TILING_X, PITCH, 0))
    shared = numbers(node, PRIME_TO_FD, "<IIi", buffer, os.O_CLOEXEC | os.O_RDWR, 0)[2]
    code = batch(node)
    if sys.argv[1] == "endless":
        with view(node, code) as memory:
            memory[:16] = struct.pack("<4I", BATCH_START, LOOP, 0, 0)
    fence = execute(node, FENCE_OUT, 0, (code, LOOP))
    channel.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [shared, fence]))])
    signal.pause()


def answer(call, *arguments):
    """The name of the error, or none."""
    try:
        call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "fine"


def framebuffer(node, handle, modifier, pitch=PITCH, height=HEIGHT):
    fields = (0, WIDTH, height, XR24, MODIFIERS, handle, 0, 0, 0, pitch, 0, 0, 0, 0, 0, 0, 0, modifier, 0, 0, 0)
    ioctl(node, ADDFB2, struct.pack("<5I4I4I4I4x4Q", *fields))


def lies(node, buffer, shared, fence):
    print("tiling", numbers(node, GET_TILING, "<4I", buffer, 0, 0, 0)[1])
    for case in ((X_TILED,), (LINEAR,), (Y_TILED,), (UNKNOWN,), (X_TILED, PITCH * 2), (X_TILED, PITCH, HEIGHT * 2), (X_TILED, 1024)):
        print(answer(framebuffer, node, buffer, *case))
    closed, code = os.dup(fence), batch(node)
    os.close(closed)
    for descriptor in (fence, closed, shared):
        print(answer(execute, node, FENCE_IN, descriptor, (code, 0x10000)))


def endless(node, buffer, shared, fence):
    code = batch(node, (TARGET, 0xCAFE))
    done = execute(node, FENCE_IN | FENCE_OUT, fence, (create(node), TARGET), (code, 0x10000))
    print("waits", not select.select([done], [], [], 0.05)[0])
    other.kill()
    other.wait()
    print("goes on", bool(select.select([done], [], [], 20)[0]), works(node))


if len(sys.argv) > 2:
    exporter(socket.socket(fileno=int(sys.argv[2])))
ours, theirs = socket.socketpair()
other = subprocess.Popen([sys.executable, *sys.argv, str(theirs.fileno())], pass_fds=[theirs.fileno()])
_, [(_, _, data)], _, _ = ours.recvmsg(1, 64)
shared, fence = array.array("i", data)
node = open_node("card0")
buffer = numbers(node, PRIME_TO_HANDLE, "<IIi", 0, 0, shared)[0]
{"lies": lies, "endless": endless}[sys.argv[1]](node, buffer, shared, fence)
other.kill()
