"""A draw: its stages in order, over one chunk of vertices after another.

In:  a DrawCall and the state it sees. Out: memory changed; statistics registers.
"""

from __future__ import annotations

from softgen.command import CommandStreamer
from softgen.three_d import clears, fill, stages
from softgen.three_d.front import chunks
from softgen.three_d.geometry import Geometry
from softgen.three_d.pixel_shader import PixelShader
from softgen.three_d.state import DrawCall, DrawState


def run(cs: CommandStreamer, state: DrawState, call: DrawCall) -> None:
    """Execute a draw to its end."""
    stages.refuse_missing(state)
    if clears.is_resolve(state):
        return
    geometry = Geometry(state)
    if clears.is_fast_clear(state):
        plan = clears.fast_clear(state)
        for chunk in chunks(cs, state, call):
            for piece in geometry.pieces(chunk):
                fill.fill(state.space, plan, piece.records.records, piece.records.count)
        return
    shader = PixelShader(state)
    for chunk in chunks(cs, state, call):
        for piece in geometry.pieces(chunk):
            shader.draw(cs, piece.records, piece.bins)
