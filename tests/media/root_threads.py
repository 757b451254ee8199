"""Batches with root threads of the media pipeline, and what their threads say of themselves."""


from __future__ import annotations

from typing import Any

from softgen.bits.catalogue import layout
from tests.gpgpu.job import END, Job, Ran

GPUS = ["bdw", "skl", "icl"]
# Each thread takes a ticket, then writes four dwords of its payload there. Surface 0 is the counter, 1 the list.
TICKETS = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0) r120.0<1>:ud 0x0:ud
(W)  mov (8|M0) r121.0<1>:ud 0x1:ud
(W)  send (1|M0) r112 r120 0xC 0x0410B700
(W)  shl (1|M0) r120.0<1>:ud r112.0<0;1,0>:ud 4:w
(W)  mov (1|M0) r121.0<1>:ud r0.1<0;1,0>:ud
(W)  mov (1|M0) r122.0<1>:ud r0.2<0;1,0>:ud
(W)  mov (1|M0) r123.0<1>:ud r1.0<0;1,0>:ud
(W)  mov (1|M0) r124.0<1>:ud r2.0<0;1,0>:ud
(W)  send (1|M0) null r120 0xC 0x0A026001
{END}
"""
# The thread at (0, 0) goes round for long, then says what a later one reads: dword 0 of surface 0. That one copies it into dword 1.
HANDS_ON = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0) r10.0<1>:ud 0x0:ud
(W)  mov (8|M0) r11.0<1>:ud 0x7:ud
(W)  mov (1|M0) r50.0<1>:d 0:d
(W)  and (1|M0) (ne)f0.0 null<1>:ud r0.1<0;1,0>:ud 0xFF:ud
(W&f0.0) jmpi later
again:
(W)  add (1|M0) r50.0<1>:d r50.0<0;1,0>:d 1:d
(W)  cmp (1|M0) (lt)f0.0 null<1>:d r50.0<0;1,0>:d 600:d
(W&f0.0) jmpi again
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
later:
(W)  send (1|M0) r11 r10 0xC 0x02106E00
(W)  mov (8|M0) r10.0<1>:ud 0x4:ud
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""
# Each thread adds its number (r1.0) to dword 0 of local memory, waits for the others, and shows the sum: surface 1, dword r1.0.
SUM = f"""
(W)  mov (8|M0) r127.0<1>:ud r0.0<8;8,1>:ud
(W)  mov (8|M0) r10.0<1>:ud 0x0:ud
(W)  mov (8|M0) r11.0<1>:ud r1.0<0;1,0>:ud
(W)  send (1|M0) r12 r10 0xC 0x0410B7FE
(W)  send (1|M0) null r127 0x3 0x02000004
(W)  wait n0.0<0;1,0>:ud
(W)  send (1|M0) r11 r10 0xC 0x02106EFE
(W)  shl (8|M0) r10.0<1>:ud r1.0<0;1,0>:ud 2:w
(W)  send (1|M0) null r10 0xC 0x04026E00
{END}
"""


def data(*values: int) -> list[dict[str, int]]:
    return [{"inline_data": value} for value in values]


def job(gpu: str, kernel: str, buffers: list[bytes], *commands: tuple[str, dict[str, Any]], **more: Any) -> Job:
    made = Job(kernel, buffers, gpu, **{"fetched": False, **more})
    made.starts_threads = [made.pack(name, **values) for name, values in commands]
    return made


def listed(ran: Ran) -> list[tuple[int, ...]]:
    found = ran.buffer(1)
    return [found[4 * n : 4 * n + 4] for n in range(ran.buffer(0)[0])]


def header(ran: Ran, first: int, second: int) -> tuple[int, int, int, int]:
    """Position, colour and descriptor number of dwords 1 and 2 of r0."""
    held = layout("MEDIA_THREAD_HEADER", ran.job.gen).raw([0, first, second, *[0] * 5])
    return held.x_position, held.y_position, held.color, held.interface_descriptor_offset


def walk(width: int, height: int, **more: Any) -> dict[str, Any]:
    """Row by row over one block by default."""
    return {
        "block_resolution_x": width, "block_resolution_y": height, "global_resolution_x": width, "global_resolution_y": height,
        "local_loop_exec_count": 0x3FF, "global_loop_exec_count": 0x3FF, "global_outer_loop_stride_x": width,
        "global_inner_loop_unit_y": height, "local_outer_loop_stride_y": 1, "local_inner_loop_unit_x": 1, **more,
    }  # fmt: skip
