"""The 3D pipeline: draws, from vertex fetch to pixel shader threads.

In:  3DPRIMITIVE, with the state that was latched before it.
Out: thread dispatches; the pixel backend (shared_functions.pixel_backend) writes render targets and depth buffers.

commands.py         the commands of the pipeline; stages.py the table of its stages
shader_stage.py     what the dispatches of shader stages have in common
three_d.h           the arrays between stages; structures.py the C library
state/              what state commands and the blocks behind them say
rules/              what software must not do
vertices/           the front: vertex fetch, vertex shader, primitive assembly
stage_threads/      Gen4.5's GS, CLIP and SF threads
tessellation/       points and triangles of patches
geometry_shader/    geometry shaders since Gen7
stream_out/         vertices written to buffers
clip_setup/         from objects to setup records in bins
samples/            pixels with several samples
pixels/             raster, pixel shader threads, colour, depth
visibility/         Ice Lake's position-only pipe, and draws that leave out what it culled
draw/               a draw: its stages in order, and what is kept from draw to draw
"""

from softgen.three_d.commands import ACTORS, COMMANDS, finish, new_state

__all__ = ["ACTORS", "COMMANDS", "finish", "new_state"]
