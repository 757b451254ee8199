"""The i915 and DRM interface of Linux as data: the number, name and argument of each ioctl, and the structures behind pointers.

The names of ioctls are the kernel's; constants are in drm.py and i915_drm.py.
A field is NAME:TYPE with struct's letters (I 32 bits, Q 64 bits, i and q signed, H 16 bits, 16s 16 bytes).
Numbers are the kernel's (public headers).
"""

from __future__ import annotations

import struct
from collections import namedtuple
from functools import cached_property
from types import SimpleNamespace
from typing import Any


class Structure:
    """Layout of a C structure; unpack() returns an object with its fields, pack() the bytes."""

    def __init__(self, text: str) -> None:
        self._text = text

    # Made when a program first uses the ioctl: there are many, and few are used.

    @cached_property
    def _pairs(self) -> list[list[str]]:
        return [field.split(":") for field in self._text.split()]

    @cached_property
    def names(self) -> list[str]:
        return [name for name, _ in self._pairs]

    @cached_property
    def struct(self) -> struct.Struct:
        return struct.Struct("<" + "".join(kind for _, kind in self._pairs))

    @cached_property
    def size(self) -> int:
        return self.struct.size

    @cached_property
    def row(self) -> Any:
        return namedtuple("Row", self.names)

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {name: struct.calcsize(f"<{kind}") for name, kind in self._pairs}

    @cached_property
    def offsets(self) -> dict[str, int]:
        return {name: struct.calcsize("<" + "".join(kind for _, kind in self._pairs[:at])) for at, name in enumerate(self.names)}

    def unpack(self, data: bytes) -> SimpleNamespace:
        """Decode one structure. Short data is extended with zeros: an older program knows fewer fields."""
        values = self.struct.unpack(data[: self.size].ljust(self.size, b"\0"))
        return SimpleNamespace(**dict(zip(self.names, values, strict=True)))

    def unpack_row(self, data: bytes) -> Any:
        """Decode one structure as a named tuple, faster than `unpack`."""
        if len(data) != self.size:
            data = data[: self.size].ljust(self.size, b"\0")
        return tuple.__new__(self.row, self.struct.unpack(data))  # there are as many values as the row has names

    def pack(self, values: SimpleNamespace) -> bytes:
        return self.struct.pack(*(getattr(values, name) for name in self.names))

    def unpack_all(self, data: bytes) -> list[SimpleNamespace]:
        return [self.unpack(data[at : at + self.size]) for at in range(0, len(data), self.size)]

    def rows(self, data: bytes) -> list[Any]:
        """Decode an array of structures as named tuples, faster than unpack_all()."""
        return list(map(self.row._make, self.struct.iter_unpack(data)))


TABLE = """
00 DRM_IOCTL_VERSION                    major:i minor:i patch:i pad:I name_size:Q name:Q date_size:Q date:Q description_size:Q description:Q
01 DRM_IOCTL_GET_UNIQUE                 size:Q unique:Q
02 DRM_IOCTL_GET_MAGIC                  magic:I
05 DRM_IOCTL_GET_CLIENT                 index:i auth:i pid:Q uid:Q magic:Q uses:Q
07 DRM_IOCTL_SET_VERSION                interface_major:i interface_minor:i driver_major:i driver_minor:i
09 DRM_IOCTL_GEM_CLOSE                  handle:I pad:I
0a DRM_IOCTL_GEM_FLINK                  handle:I name:I
0b DRM_IOCTL_GEM_OPEN                   name:I handle:I size:Q
0c DRM_IOCTL_GET_CAP                    capability:Q value:Q
0d DRM_IOCTL_SET_CLIENT_CAP             capability:Q value:Q
11 DRM_IOCTL_AUTH_MAGIC                 magic:I
1e DRM_IOCTL_SET_MASTER
1f DRM_IOCTL_DROP_MASTER
2d DRM_IOCTL_PRIME_HANDLE_TO_FD         handle:I flags:I fd:i
2e DRM_IOCTL_PRIME_FD_TO_HANDLE         handle:I flags:I fd:i
3a DRM_IOCTL_WAIT_VBLANK                kind:I sequence:I seconds:q microseconds:q
3b DRM_IOCTL_CRTC_GET_SEQUENCE          crtc:I active:I sequence:Q when:q
3c DRM_IOCTL_CRTC_QUEUE_SEQUENCE        crtc:I flags:I sequence:Q user_data:Q
46 DRM_IOCTL_I915_GETPARAM              param:i pad:I value:Q
57 DRM_IOCTL_I915_GEM_BUSY              handle:I busy:I
58 DRM_IOCTL_I915_GEM_THROTTLE
5b DRM_IOCTL_I915_GEM_CREATE            size:Q handle:I pad:I
5c DRM_IOCTL_I915_GEM_PREAD             handle:I pad:I offset:Q size:Q data:Q
5d DRM_IOCTL_I915_GEM_PWRITE            handle:I pad:I offset:Q size:Q data:Q
5e DRM_IOCTL_I915_GEM_MMAP              handle:I pad:I offset:Q size:Q address:Q flags:Q
5f DRM_IOCTL_I915_GEM_SET_DOMAIN        handle:I read_domains:I write_domain:I
60 DRM_IOCTL_I915_GEM_SW_FINISH         handle:I
61 DRM_IOCTL_I915_GEM_SET_TILING        handle:I mode:I stride:I swizzle:I
62 DRM_IOCTL_I915_GEM_GET_TILING        handle:I mode:I swizzle:I physical:I
63 DRM_IOCTL_I915_GEM_GET_APERTURE      size:Q available:Q
64 DRM_IOCTL_I915_GEM_MMAP_OFFSET       handle:I pad:I offset:Q flags:Q extensions:Q
65 DRM_IOCTL_I915_GET_PIPE_FROM_CRTC_ID crtc:I pipe:I
66 DRM_IOCTL_I915_GEM_MADVISE           handle:I advice:I retained:I
69 DRM_IOCTL_I915_GEM_EXECBUFFER2       buffers:Q count:I start:I size:I dr1:I dr4:I fences:I fences_at:Q flags:Q context:Q fence:Q
6c DRM_IOCTL_I915_GEM_WAIT              handle:I flags:I timeout:q
6d DRM_IOCTL_I915_GEM_CONTEXT_CREATE    context:I flags:I extensions:Q
6e DRM_IOCTL_I915_GEM_CONTEXT_DESTROY   context:I pad:I
6f DRM_IOCTL_I915_GEM_SET_CACHING       handle:I caching:I
70 DRM_IOCTL_I915_GEM_GET_CACHING       handle:I caching:I
71 DRM_IOCTL_I915_REG_READ              offset:Q value:Q
72 DRM_IOCTL_I915_GET_RESET_STATS       context:I flags:I resets:I active:I pending:I pad:I
73 DRM_IOCTL_I915_GEM_USERPTR           address:Q size:Q flags:I handle:I
74 DRM_IOCTL_I915_GEM_CONTEXT_GETPARAM  context:I size:I param:Q value:Q
75 DRM_IOCTL_I915_GEM_CONTEXT_SETPARAM  context:I size:I param:Q value:Q
76 DRM_IOCTL_I915_PERF_OPEN             flags:I count:I properties:Q
77 DRM_IOCTL_I915_PERF_ADD_CONFIG
78 DRM_IOCTL_I915_PERF_REMOVE_CONFIG
79 DRM_IOCTL_I915_QUERY                 count:I flags:I items:Q
7a DRM_IOCTL_I915_GEM_VM_CREATE         extensions:Q flags:I vm:I
7b DRM_IOCTL_I915_GEM_VM_DESTROY        extensions:Q flags:I vm:I
7c DRM_IOCTL_I915_GEM_CREATE_EXT        size:Q handle:I flags:I extensions:Q
a0 DRM_IOCTL_MODE_GETRESOURCES          fbs:Q crtcs:Q connectors:Q encoders:Q fb_count:I crtc_count:I connector_count:I encoder_count:I \
                                        min_width:I max_width:I min_height:I max_height:I
a1 DRM_IOCTL_MODE_GETCRTC               connectors:Q connector_count:I crtc:I fb:I x:I y:I gamma_size:I mode_valid:I mode:68s
a2 DRM_IOCTL_MODE_SETCRTC               connectors:Q connector_count:I crtc:I fb:I x:I y:I gamma_size:I mode_valid:I mode:68s
a3 DRM_IOCTL_MODE_CURSOR               flags:I crtc:I x:i y:i width:I height:I handle:I
a4 DRM_IOCTL_MODE_GETGAMMA              crtc:I size:I red:Q green:Q blue:Q
a5 DRM_IOCTL_MODE_SETGAMMA              crtc:I size:I red:Q green:Q blue:Q
a6 DRM_IOCTL_MODE_GETENCODER            encoder:I kind:I crtc:I possible_crtcs:I possible_clones:I
a7 DRM_IOCTL_MODE_GETCONNECTOR          encoders:Q modes:Q properties:Q values:Q mode_count:I property_count:I encoder_count:I \
                                        encoder:I connector:I kind:I number:I status:I width_mm:I height_mm:I subpixel:I pad:I
aa DRM_IOCTL_MODE_GETPROPERTY           values:Q enums:Q property:I flags:I name:32s value_count:I enum_count:I
ab DRM_IOCTL_MODE_SETPROPERTY          value:Q property:I connector:I
ac DRM_IOCTL_MODE_GETPROPBLOB           blob:I size:I data:Q
ad DRM_IOCTL_MODE_GETFB                 fb:I width:I height:I pitch:I bits:I depth:I handle:I
ae DRM_IOCTL_MODE_ADDFB                 fb:I width:I height:I pitch:I bits:I depth:I handle:I
af DRM_IOCTL_MODE_RMFB                  fb:I
b0 DRM_IOCTL_MODE_PAGE_FLIP             crtc:I fb:I flags:I sequence:I user_data:Q
b1 DRM_IOCTL_MODE_DIRTYFB               fb:I flags:I color:I count:I clips:Q
b2 DRM_IOCTL_MODE_CREATE_DUMB           height:I width:I bits:I flags:I handle:I pitch:I size:Q
b3 DRM_IOCTL_MODE_MAP_DUMB              handle:I pad:I offset:Q
b4 DRM_IOCTL_MODE_DESTROY_DUMB          handle:I
b5 DRM_IOCTL_MODE_GETPLANERESOURCES     planes:Q plane_count:I pad:I
b6 DRM_IOCTL_MODE_GETPLANE              plane:I crtc:I fb:I possible_crtcs:I gamma_size:I format_count:I formats:Q
b7 DRM_IOCTL_MODE_SETPLANE              plane:I crtc:I fb:I flags:I crtc_x:i crtc_y:i crtc_width:I crtc_height:I x:I y:I height:I width:I
b8 DRM_IOCTL_MODE_ADDFB2                fb:I width:I height:I format:I flags:I handles:16s pitches:16s offsets:16s pad:I modifiers:32s
b9 DRM_IOCTL_MODE_OBJ_GETPROPERTIES     properties:Q values:Q property_count:I object:I kind:I pad:I
ba DRM_IOCTL_MODE_OBJ_SETPROPERTY      value:Q property:I object:I kind:I pad:I
bb DRM_IOCTL_MODE_CURSOR2              flags:I crtc:I x:i y:i width:I height:I handle:I hot_x:i hot_y:i
bc DRM_IOCTL_MODE_ATOMIC               flags:I object_count:I objects:Q counts:Q properties:Q values:Q reserved:Q user_data:Q
bd DRM_IOCTL_MODE_CREATEPROPBLOB       data:Q size:I blob:I
be DRM_IOCTL_MODE_DESTROYPROPBLOB      blob:I
bf DRM_IOCTL_SYNCOBJ_CREATE             handle:I flags:I
c0 DRM_IOCTL_SYNCOBJ_DESTROY            handle:I pad:I
c1 DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD       handle:I flags:I fd:i pad:I
c2 DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE       handle:I flags:I fd:i pad:I
c3 DRM_IOCTL_SYNCOBJ_WAIT               handles:Q timeout:q count:I flags:I first:I pad:I
c4 DRM_IOCTL_SYNCOBJ_RESET              handles:Q count:I pad:I
c5 DRM_IOCTL_SYNCOBJ_SIGNAL             handles:Q count:I pad:I
ca DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT      handles:Q points:Q timeout:q count:I flags:I first:I pad:I
cb DRM_IOCTL_SYNCOBJ_QUERY              handles:Q points:Q count:I flags:I
cc DRM_IOCTL_SYNCOBJ_TRANSFER           source:I target:I source_point:Q target_point:Q flags:I pad:I
cd DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL    handles:Q points:Q count:I flags:I
ce DRM_IOCTL_MODE_GETFB2                fb:I width:I height:I format:I flags:I handles:16s pitches:16s offsets:16s pad:I modifiers:32s
d0 DRM_IOCTL_MODE_CLOSEFB               fb:I pad:I
"""
# Named so that a log says what a program wanted; answered with EOPNOTSUPP, as by a kernel without them.
DISPLAY = """
08 DRM_IOCTL_MODESET_CTL                a8 DRM_IOCTL_MODE_ATTACHMODE            a9 DRM_IOCTL_MODE_DETACHMODE
c6 DRM_IOCTL_MODE_CREATE_LEASE          c7 DRM_IOCTL_MODE_LIST_LESSEES          c8 DRM_IOCTL_MODE_GET_LEASE
c9 DRM_IOCTL_MODE_REVOKE_LEASE
"""
# Without DRM_RENDER_ALLOW in the kernel's table: EACCES on a render node.
PRIMARY_ONLY = frozenset({
    "DRM_IOCTL_GET_UNIQUE", "DRM_IOCTL_GET_MAGIC", "DRM_IOCTL_GET_CLIENT", "DRM_IOCTL_SET_VERSION", "DRM_IOCTL_SET_CLIENT_CAP",
    "DRM_IOCTL_AUTH_MAGIC", "DRM_IOCTL_SET_MASTER", "DRM_IOCTL_DROP_MASTER", "DRM_IOCTL_GEM_FLINK", "DRM_IOCTL_GEM_OPEN",
    "DRM_IOCTL_I915_GET_PIPE_FROM_CRTC_ID", "DRM_IOCTL_WAIT_VBLANK", "DRM_IOCTL_CRTC_GET_SEQUENCE", "DRM_IOCTL_CRTC_QUEUE_SEQUENCE",
    *DISPLAY.split()[1::2],
    *(row.split()[1] for row in TABLE.strip().splitlines() if " DRM_IOCTL_MODE_" in row),
})  # fmt: skip
ROWS = [line.split(maxsplit=2) for line in TABLE.strip().splitlines()]
NAMES = {int(row[0], 16): row[1] for row in ROWS}
ARGUMENTS = {row[1]: Structure(row[2] if len(row) > 2 else "") for row in ROWS}
DISPLAY_NAMES = {int(number, 16): name for number, name in zip(DISPLAY.split()[::2], DISPLAY.split()[1::2], strict=True)}

EXTENSION = Structure("next:Q name:I flags:I r0:I r1:I r2:I r3:I")
EXEC_OBJECT = Structure("handle:I relocations:I relocations_at:Q alignment:Q offset:Q flags:Q r1:Q r2:Q")
RELOCATION = Structure("target:I delta:I offset:Q presumed:Q read_domains:I write_domain:I")
EXEC_FENCE = Structure("handle:I flags:I")
TIMELINE_FENCES = Structure("count:Q handles:Q values:Q")  # after its EXTENSION
CONTEXT_PARAM = Structure("context:I size:I param:Q value:Q")  # the same
ENGINE = Structure("kind:H instance:H")
LOAD_BALANCE = Structure("index:H siblings:H flags:I zero:Q")  # after its EXTENSION; ENGINEs follow
SSEU = Structure("kind:H instance:H flags:I slices:Q subslices:Q eus_min:H eus_max:H pad:I")
QUERY_ITEM = Structure("kind:Q size:i flags:I data:Q")
TOPOLOGY = Structure("flags:H slices:H subslices:H eus:H subslice_offset:H subslice_stride:H eu_offset:H eu_stride:H")
ENGINE_INFO = Structure("kind:H instance:H r0:I flags:Q capabilities:Q logical:H r1:H r2:I r3:Q r4:Q r5:Q")
ENGINES_HEAD = Structure("count:I r0:I r1:I r2:I")
REGION = Structure("kind:H instance:H r0:I probed:Q unallocated:Q visible:Q unallocated_visible:Q r2:Q r3:Q r4:Q r5:Q r6:Q r7:Q")
SYNC_MERGE = Structure("name:32s other:i fence:i flags:I pad:I")
SYNC_INFO = Structure("name:32s status:i flags:I count:I pad:I fences:Q")
SYNC_FENCE = Structure("object:32s driver:32s status:i flags:I timestamp:Q")
DMABUF_SYNC_FILE = Structure("flags:I fd:i")

MODE = Structure("clock:I hdisplay:H hsync_start:H hsync_end:H htotal:H hskew:H vdisplay:H vsync_start:H vsync_end:H vtotal:H vscan:H "
                 "vrefresh:I flags:I kind:I name:32s")  # fmt: skip
PROPERTY_ENUM = Structure("value:Q name:32s")
FORMATS_HEAD = Structure("version:I flags:I format_count:I formats:I modifier_count:I modifiers:I")
FORMAT_MODIFIER = Structure("formats:Q first:I pad:I modifier:Q")
COLOR_LUT = Structure("red:H green:H blue:H pad:H")
SEQUENCE_EVENT = Structure("kind:I size:I user_data:Q when:q sequence:Q")
VBLANK_EVENT = Structure("kind:I size:I user_data:Q seconds:I microseconds:I sequence:I crtc:I")

ENGINE_CLASSES = ("rcs", "bcs", "vcs", "vecs")


def name_of(number: int) -> str:
    return NAMES.get(number) or DISPLAY_NAMES.get(number) or f"ioctl {number:#04x}"
