"""Two programs share a buffer and a timeline; one of them is killed in the middle. Prints what the other one still has."""

import ctypes
import os
import signal
import struct
import time

from node import batch, create, ioctl, open_node, submit, view, wait, works

PLACE, POINT = 0x200000, 5
PRIME_TO_FD, PRIME_TO_HANDLE, SYNCOBJ_CREATE, SYNCOBJ_TO_FD, SYNCOBJ_TO_HANDLE, TIMELINE_WAIT, TIMELINE_SIGNAL = (
    0x2D, 0x2E, 0xBF, 0xC1, 0xC2, 0xCA, 0xCD)  # fmt: skip
WAIT_FOR_SUBMIT = 2


def numbers(node, number, layout, *values):
    return struct.unpack(layout, ioctl(node, number, struct.pack(layout, *values)))


def timeline(node, number, handle, point, layout, *rest):
    handles, points = ctypes.c_uint32(handle), ctypes.c_uint64(point)
    return ioctl(node, number, struct.pack(layout, ctypes.addressof(handles), ctypes.addressof(points), *rest))


def other(shared, line):
    """The other program: draws into the buffer, signals the timeline and waits to be killed, with work of its own that goes on."""
    node = open_node()
    buffer = numbers(node, PRIME_TO_HANDLE, "<IIi", 0, 0, shared)[0]
    point = numbers(node, SYNCOBJ_TO_HANDLE, "<IIiI", 0, 0, line, 0)[0]
    code = batch(node, (PLACE, 0xCAFE), (PLACE + 4, 0xF00D))
    submit(node, (buffer, PLACE), (code, PLACE + 0x10000))
    wait(node, buffer)
    timeline(node, TIMELINE_SIGNAL, point, POINT, "<QQII", 1, 0)
    while True:
        submit(node, (buffer, PLACE), (batch(node, (PLACE + 8, os.getpid())), PLACE + 0x10000))


node = open_node()
buffer = create(node)
shared = numbers(node, PRIME_TO_FD, "<IIi", buffer, os.O_CLOEXEC | os.O_RDWR, 0)[2]
line = numbers(node, SYNCOBJ_CREATE, "<II", 0, 0)[0]
descriptor = numbers(node, SYNCOBJ_TO_FD, "<IIiI", line, 0, 0, 0)[2]
child = os.fork()
if not child:
    other(shared, descriptor)
until = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 30 * 10**9
timeline(node, TIMELINE_WAIT, line, POINT, "<QQqIIII", until, 1, WAIT_FOR_SUBMIT, 0, 0)
time.sleep(0.05)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
wait(node, buffer)
with view(node, buffer) as memory:
    first, second, third = struct.unpack_from("<3I", memory)
again = numbers(node, PRIME_TO_HANDLE, "<IIi", 0, 0, shared)[0]
print(hex(first), hex(second), third in (0, child), again == buffer, works(node))
