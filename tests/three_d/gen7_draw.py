"""Draws of Gen7 and Gen7.5 of our own, like those of own_draw.py: what later generations moved stands where these have it.

    drawn = Gen7Draw("hsw", rectangle(0, 0, 8, 8)).run()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.three_d.own_draw import BLOCKS, DEFAULTS, RECTANGLES, VERTICES, Fields, OwnDraw

DEPTH_STENCIL = 0xC00  # in dynamic state
MOVED: dict[str, Fields] = {
    "3DSTATE_SF": {"cull_mode": 1},
    "3DSTATE_SBE": {"vertex_urb_entry_read_length": 1, "vertex_urb_entry_read_offset": 1},
    "3DSTATE_WM": {"thread_dispatch_enable": 1},
    "3DSTATE_PS": {"attribute_enable": 1, "maximum_number_of_threads": 47, "sample_mask": 1},
    "3DSTATE_DEPTH_STENCIL_STATE_POINTERS": {"depth_stencil_state_pointer": DEPTH_STENCIL, "depth_stencil_state_pointer_valid": 1},
}


@dataclass
class Gen7Draw(OwnDraw):
    """A draw, or several: fields as OwnDraw has them. `topology`: of all draws."""

    defaults: ClassVar[Mapping[str, Fields]] = {**DEFAULTS, **{name: {**DEFAULTS.get(name, {}), **more} for name, more in MOVED.items()}}
    blocks: ClassVar[Mapping[str, int]] = {**BLOCKS, "DEPTH_STENCIL_STATE": DEPTH_STENCIL}
    topology: int = RECTANGLES

    def pack(self, name: str, **fields: Any) -> list[int]:
        if name == "3DPRIMITIVE":
            fields = {"primitive_topology_type": self.topology, **fields}
        if name == "3DSTATE_VERTEX_BUFFERS":
            fields = {"vertex_buffer": [_to_its_end(buffer) for buffer in fields["vertex_buffer"]]}
        if name == "RENDER_SURFACE_STATE" and self.gen == 7:
            fields = {key: value for key, value in fields.items() if not key.startswith("shader_channel_select")}
        return super().pack(name, **fields)


def _to_its_end(buffer: Fields) -> Fields:
    """A vertex buffer with its last address in place of its size."""
    size = buffer.get("buffer_size", 0)
    rest = {key: value for key, value in buffer.items() if key != "buffer_size"}
    return {**rest, "end_address": buffer.get("buffer_starting_address", VERTICES) + size - 1}
