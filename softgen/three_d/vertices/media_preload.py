"""Draws in media mode on Gen4: points whose vertices are indirect data of the media objects that follow, preloaded into a cache.

Reads   3DPRIMITIVE 3DSTATE_VERTEX_BUFFERS 3DSTATE_VERTEX_ELEMENTS
Writes  remarks

Data is not held: objects read it where it is, from memory, in which nothing changes between the draw and its objects. Nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator

from softgen.bits.record import Record
from softgen.command import CommandStreamer
from softgen.errors import DecodeError, GpuFault

VERTEX = 32  # bytes: two elements of four dwords (G45 8612-8634)
# What the manual allows of each command; anything else is undefined (G45 8611-8660).
DRAW = {"primitive_topology_type": 1, "vertex_access_type": 0, "start_vertex_location": 0, "instance_count": 1,
        "start_instance_location": 0, "base_vertex_location": 0}  # fmt: skip
BUFFER = {"buffer_access_type": 0, "buffer_pitch": VERTEX, "max_index": 0}
ELEMENT = {"vertex_buffer_index": 0, "valid": 1, "source_element_format": 2, **{f"component_{n}_control": 1 for n in range(4)}}
ELEMENTS = tuple({**ELEMENT, "source_element_offset": 16 * n, "destination_element_offset": 16 * n} for n in range(2))


def preload(cs: CommandStreamer, cmd: Record) -> None:
    """Read the indirect data of media objects, by a draw with as many vertices as it has 32 bytes (G45 8645-8660)."""
    buffers, elements = cs.latched.by_index("3DSTATE_VERTEX_BUFFERS"), cs.latched.get("3DSTATE_VERTEX_ELEMENTS")
    if 0 not in buffers or elements is None:
        raise DecodeError("3DPRIMITIVE in media mode, and there is no vertex buffer 0, or no vertex elements, to preload indirect data by")
    for text in _undefined(cmd, buffers, tuple(elements.vertex_element)):
        cs.warn(f"in media mode, {text} (G45 8608-8660)")
    start = buffers[0].buffer_starting_address
    try:
        cs.space.read(start, VERTEX * cmd.vertex_count_per_instance)
    except GpuFault as fault:
        raise GpuFault(fault.address, "preload of indirect data", cs.space.name) from fault


def _undefined(cmd: Record, buffers: dict[int, Record], elements: tuple[Record, ...]) -> Iterator[str]:
    """Programming whose result is undefined."""
    yield from _differences("3DPRIMITIVE", cmd, DRAW)
    yield from _differences("vertex buffer 0", buffers[0], BUFFER)
    if len(buffers) > 1:
        yield f"{len(buffers)} vertex buffers; there must be one"
    if len(elements) != len(ELEMENTS):
        yield f"{len(elements)} vertex elements; there must be two"
    for number, (element, allowed) in enumerate(zip(elements, ELEMENTS, strict=False)):
        yield from _differences(f"vertex element {number}", element, allowed)


def _differences(what: str, record: Record, allowed: dict[str, int]) -> Iterator[str]:
    for name, value in allowed.items():
        if getattr(record, name) != value:
            yield f"{what} has {name} {int(getattr(record, name))}; it must be {value}"
