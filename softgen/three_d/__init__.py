"""The 3D pipeline: draws, from vertex fetch to pixel shader threads.

In:  3DPRIMITIVE, with the state that was latched before it.
Out: thread dispatches; the pixel backend (shared_functions.pixel_backend) writes render targets and depth buffers.

three_d.h, structures.py  the arrays between stages
chunk.py                  Chunk: vertices and objects of a part of a draw
state.py                  the state of a draw
unit_state.py             the state of a shader stage: a command, or a block in memory
constants.py              push constants; resource_streamer.py what gathers them, constant_registers.py what it keeps;
                          constant_rules.py when they must come again
front.py                  the front of the pipeline: chunks of a draw, from the next three
vertex_fetch.py           vertex data, from buffers to payload registers or URB entries (vertex_fetch.c)
vertex_shader.py          vertex shader threads (vertex_shader.c)
assembly.py               objects of every topology, and the vertices they share (assembly.c)
geometry.py, geometry.h   from objects to setup records in bins: clip.py, setup.py, attributes.py, bins.py
plan_cache.py             plans kept from draw to draw, and what of state and memory they were made from
prepared.py               the plans of all stages for one state; latched_state.py what of commands is compared, what copied into plans
prepared_front.py         its stages up to the vertex shader; prepared_threads.py its CLIP and SF threads on Gen4.5 (draw_threads.c);
                          state_pointers.py what pointers lead to there (draw_pointers.c); state_blocks.py the same of later
                          generations; shared_stages.py its stages on several host threads (draw_loops.c)
prepared_draws.py         the prepared draws of a context, which draw.c finds and runs; draw_state.c compares; their structures are in
                          draw.h, draw_structures.py
stage_threads.py, .c, .h  what the stages have in common whose work threads do on Gen4.5: geometry_threads.py, clip_threads.py,
                          setup_threads.py; thread_output.py: the objects of what threads of the first two put out
urb_fences.py             whether the URB entries of Gen4.5's stages fit between their fences; software_rules.py other rules of its state
urb_regions.py            rules about the URB regions of later generations; state_rules.py other rules of theirs
fields.py                 the state of a fixed function, from several commands or blocks
rasterizer.py, .c         RASTER: the pixels that an object covers
pixel_state.py            the state of the pixel shader: kernel, payload, when depth and stencil are tested
pixel_payload.py, payload.c  payloads of pixel shader threads
pixel_shader.py, .c, pixels.h  PS: tiles become threads
color_calculator.py       blending, depth and stencil, for the pixel backend; depth_buffer.py where their buffers are
draw_plans.py             the plans of a draw, kept from draw to draw
draw.py                   a draw that is not prepared, stage by stage; commands.py its command; stages.py the table of stages
render_target.py          render targets of a draw as images; draw_names.py names of a draw and its pixels
clears.py, fill.py        fast clears, HiZ operations
"""

from softgen.three_d.commands import COMMANDS, finish, new_state

__all__ = ["COMMANDS", "finish", "new_state"]
