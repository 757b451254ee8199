"""State of draws, made up: records from field values, and memory with bytes in it.

    state = made_state(9, {0x10000: b"…"}, {"3DSTATE_VF": {"cut_index": 7}}, vertex_buffers={0: {"buffer_pitch": 12, …}})
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from softgen.bits import catalogue
from softgen.bits.generation import generation
from softgen.bits.record import Record
from softgen.memory.address_space import AddressSpace
from softgen.memory.store import MemfdBuffer
from softgen.three_d.state.state import DrawCall, DrawState

PAGE = 4096
BUFFERS, INSTANCING = "3DSTATE_VERTEX_BUFFERS", "3DSTATE_VF_INSTANCING"
Fields = dict[str, Any]


def no_registers(name: str) -> int:
    """Engine registers, none of which was written."""
    return 0


class MadeCommands(dict[str, Record]):
    """Latched commands; those that merge by an index apart."""

    def __init__(self) -> None:
        self.indexed: dict[str, dict[int, Record]] = {}

    def by_index(self, name: str) -> dict[int, Record]:
        return self.indexed.get(name, {})


def record(name: str, gen: float, fields: Fields) -> Record:
    layout = catalogue.layout(name, gen)
    return layout.raw(layout.pack(**fields))


def memory(gen: float, held: Mapping[int, bytes]) -> AddressSpace:
    """An address space with bytes at page addresses; what is left of a page is zero."""
    space = AddressSpace("made", generation(gen).address_bits)
    for address, data in held.items():
        buffer = MemfdBuffer(-(-max(len(data), 1) // PAGE) * PAGE)
        buffer.view[: len(data)] = data
        space.map(address, buffer)
    return space


def made_state(gen: float, held: Mapping[int, bytes], commands: Mapping[str, Fields] = {}, vertex_buffers: Mapping[int, Fields] = {},
               elements: list[Fields] | None = None, instancing: Mapping[int, Fields] = {}, blocks: Mapping[int, tuple[str, Fields]] = {},
               warn: Callable[[str], None] = lambda text: None) -> DrawState:  # fmt: skip
    """`elements` are valid unless they say otherwise; `blocks` are structures at addresses that `held` maps."""
    latched, space = MadeCommands(), memory(gen, held)
    for name, fields in commands.items():
        latched[name] = record(name, gen, fields)
    latched.indexed[BUFFERS] = {n: record("VERTEX_BUFFER_STATE", gen, {"vertex_buffer_index": n, **f}) for n, f in vertex_buffers.items()}
    latched.indexed[INSTANCING] = {n: record(INSTANCING, gen, {"vertex_element_index": n, **f}) for n, f in instancing.items()}
    if elements is not None:
        made = [{"valid": 1, **element} for element in elements]
        latched["3DSTATE_VERTEX_ELEMENTS"] = record("3DSTATE_VERTEX_ELEMENTS", gen, {"vertex_element": made})
    for address, (name, fields) in blocks.items():
        dwords = catalogue.layout(name, gen).pack(**fields)
        space.write(address, struct.pack(f"<{len(dwords)}I", *dwords))
    return DrawState(generation(gen), space, latched, {}, no_registers, warn)


def call(vertices: int = 1, topology: int = 4, indexed: bool = False, start_vertex: int = 0, instances: int = 1, start_instance: int = 0,
         base_vertex: int = 0) -> DrawCall:  # fmt: skip
    return DrawCall(topology, indexed, vertices, start_vertex, instances, start_instance, base_vertex)


def controls(*codes: int) -> Fields:
    """Component controls of a vertex element."""
    return {f"component_{n}_control": code for n, code in enumerate(codes)}
