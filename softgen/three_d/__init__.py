"""The 3D pipeline: draws, from vertex fetch to pixel shader threads.

In:  3DPRIMITIVE, with the state that was latched before it.
Out: thread dispatches; the pixel backend (shared_functions.pixel_backend) writes render targets and depth buffers.

three_d.h, structures.py  the arrays between stages
chunk.py                  Chunk: vertices and objects of a part of a draw
stages.py                 the table of stages; stage.py what each of them is
draw.py                   Pipeline3D: the draws of a context; commands.py their command
draw_record.py            DrawRecord: what state means to all stages of a draw, as an array that draw.c walks; draw_walk.py the draw
                          under way (draw_loops.c: stages on several host threads); draw.h, draw_structures.py their structures
draw_cache.py             records kept from draw to draw, which draw.c finds; record_keeper.py what one depends on (draw_state.c
                          compares it): latched_state.py of commands, stage_tables.py of binding tables, state_blocks.py and
                          state_pointers.py of blocks behind pointers (draw_pointers.c); stage_loops.py loops that records share
draw_plans.py             the plans of a draw; plan_cache.py plans kept from draw to draw, and what of state and memory they were made from
state.py                  the state of a draw
unit_state.py             the state of a shader stage: a command, or a block in memory
constants.py              push constants; resource_streamer.py what gathers them, constant_registers.py what it keeps;
                          constant_rules.py when they must come again
front.py                  plans and chunks of the stages up to the vertex shader
assembly.py               objects of every topology, and the vertices they share (assembly.c)
vertex_fetch.py           vertex data, from buffers to payload registers or URB entries (vertex_fetch.c)
vertex_shader.py          vertex shader threads (vertex_shader.c)
stage_threads.py, .c, .h  what the stages have in common whose work threads do on Gen4.5: geometry_threads.py, clip_threads.py,
                          setup_threads.py; thread_output.py: the objects of what threads of the first two put out
geometry.py, geometry.h   from objects to setup records in bins: clip.py, setup.py, attributes.py, bins.py
urb_fences.py             whether the URB entries of Gen4.5's stages fit between their fences; software_rules.py other rules of its state
urb_regions.py            rules about the URB regions of later generations; state_rules.py other rules of theirs
fields.py                 the state of a fixed function, from several commands or blocks
rasterizer.py, .c         RASTER: the pixels that an object covers
pixel_state.py            the state of the pixel shader: kernel, payload, when depth and stencil are tested
pixel_payload.py, payload.c  payloads of pixel shader threads
pixel_shader.py, .c, pixels.h  PS: tiles become threads; pixel_threads.c the same, specialised for usual draws
color_calculator.py       blending, depth and stencil, for the pixel backend; depth_buffer.py where their buffers are
render_target.py          render targets of a draw as images; draw_names.py names of a draw and its pixels
clears.py, fill.py        fast clears, HiZ operations
"""

from softgen.three_d.commands import COMMANDS, finish, new_state

__all__ = ["COMMANDS", "finish", "new_state"]
