"""Runs under `softgen run`: mode setting by the kernel's structures, and the event of a page flip by select, poll, epoll and read.

Prints a line for each thing that was seen.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import select
import struct
import sys
import time
from ctypes import c_char, c_uint16, c_uint32, c_uint64

TYPES = {"H": c_uint16, "I": c_uint32, "Q": c_uint64, "4I": c_uint32 * 4, "4Q": c_uint64 * 4, "32s": c_char * 32}


def structure(text, **types):
    """A structure of fields NAME:TYPE."""
    fields = [(name, types.get(kind) or TYPES[kind]) for name, kind in (each.split(":") for each in text.split())]
    return type("Structure", (ctypes.Structure,), {"_fields_": fields})


# include/uapi/drm/drm_mode.h
Modeinfo = structure("""clock:I hdisplay:H hsync_start:H hsync_end:H htotal:H hskew:H vdisplay:H vsync_start:H vsync_end:H vtotal:H vscan:H
                        vrefresh:I flags:I type:I name:32s""")
CardRes = structure("""fb_id_ptr:Q crtc_id_ptr:Q connector_id_ptr:Q encoder_id_ptr:Q count_fbs:I count_crtcs:I count_connectors:I
                       count_encoders:I min_width:I max_width:I min_height:I max_height:I""")
Connector = structure("""encoders_ptr:Q modes_ptr:Q props_ptr:Q prop_values_ptr:Q count_modes:I count_props:I count_encoders:I encoder_id:I
                         connector_id:I connector_type:I connector_type_id:I connection:I mm_width:I mm_height:I subpixel:I pad:I""")
Crtc = structure("""set_connectors_ptr:Q count_connectors:I crtc_id:I fb_id:I x:I y:I gamma_size:I mode_valid:I mode:modeinfo""",
                 modeinfo=Modeinfo)  # fmt: skip
Dumb = structure("height:I width:I bpp:I flags:I handle:I pitch:I size:Q")
MapDumb = structure("handle:I pad:I offset:Q")
FbCmd2 = structure("fb_id:I width:I height:I pixel_format:I flags:I handles:4I pitches:4I offsets:4I modifier:4Q")
PageFlip = structure("crtc_id:I fb_id:I flags:I reserved:I user_data:Q")

node = os.open("/dev/dri/card0", os.O_RDWR | os.O_CLOEXEC)


def call(number, argument):
    fcntl.ioctl(node, 3 << 30 | ctypes.sizeof(argument) << 16 | ord("d") << 8 | number, argument, True)
    return argument


def expect(number, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno == number
    return False


def draw(colour, width, height):
    """A framebuffer of one colour, drawn by the CPU; its identifier."""
    dumb = call(0xB2, Dumb(width=width, height=height, bpp=32))
    offset = call(0xB3, MapDumb(handle=dumb.handle)).offset
    with mmap.mmap(node, dumb.size, offset=offset) as view:
        view[:] = struct.pack("<I", colour) * (dumb.size // 4)
    made = FbCmd2(width=width, height=height, pixel_format=0x34325258, flags=2)
    made.handles[0], made.pitches[0] = dumb.handle, dumb.pitch
    return call(0xB8, made).fb_id


def readable(timeout=0):
    poll, epoll = select.poll(), select.epoll()
    poll.register(node, select.POLLIN)
    epoll.register(node, select.EPOLLIN)
    found = [select.select([node, 0], [], [], timeout)[0] == [node], poll.poll(0) == [(node, 1)], epoll.poll(0) == [(node, 1)]]
    epoll.close()
    return found


ids = [(c_uint32 * 1)() for _ in range(3)]
res = call(0xA0, CardRes(crtc_id_ptr=ctypes.addressof(ids[0]), connector_id_ptr=ctypes.addressof(ids[1]),
                         encoder_id_ptr=ctypes.addressof(ids[2]), count_crtcs=1, count_connectors=1, count_encoders=1))  # fmt: skip
crtc, connector, encoder = (each[0] for each in ids)
modes = (Modeinfo * 8)()
found = call(0xA7, Connector(connector_id=connector, modes_ptr=ctypes.addressof(modes), count_modes=8))
mode = modes[0]
print("connector", found.connection, found.count_modes, found.encoder_id == encoder)
print("mode", mode.name.decode(), mode.hdisplay, mode.vdisplay, mode.vrefresh)
before = call(0xA1, Crtc(crtc_id=crtc))
red, green = (draw(colour, mode.hdisplay, mode.vdisplay) for colour in (0xFF0000, 0x00FF00))
shown = Crtc(set_connectors_ptr=ctypes.addressof(ids[1]), count_connectors=1, crtc_id=crtc, fb_id=red, mode_valid=1, mode=mode)
call(0xA2, shown)
print("before", readable())
began = time.monotonic()
call(0xB0, PageFlip(crtc_id=crtc, fb_id=green, flags=1, user_data=0x123456789ABCDEF0))
print("after", readable(5))
parts = [os.read(node, room) for room in (31, 1)]  # no room for an event: it stays
whole = os.read(node, 45)
print("reads", [len(part) for part in parts], len(whole))
kind, size, data, seconds, microseconds, sequence, event_crtc = struct.unpack("<IIQIIII", whole)
when = seconds + microseconds / 1e6
print("event", kind, size, hex(data), began - 0.001 <= when <= time.monotonic(), sequence >= 2, event_crtc == crtc)
os.set_blocking(node, False)
for room in 32, 1024, 7:
    try:
        print("more", os.read(node, room))
    except BlockingIOError:
        print("drained", readable())
print("refused", expect(errno.ENOENT, 0xB0, PageFlip(crtc_id=crtc, fb_id=9999)), expect(errno.ENOENT, 0xA1, Crtc(crtc_id=9999)))
shown.fb_id, shown.mode = before.fb_id, before.mode
call(0xA2, shown)
print("restored", bool(before.mode_valid), call(0xA1, Crtc(crtc_id=crtc)).fb_id == before.fb_id)
sys.stdout.flush()
