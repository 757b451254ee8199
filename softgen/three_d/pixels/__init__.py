"""Pixels: from setup records in bins to pixel shader threads, and what they write to.

rasterizer.py, .c   the pixels that an object covers; tile_edges.h what coverage of samples shares
pixel_state.py      the state of the pixel shader: kernel, payload, when depth and stencil are tested
pixel_payload.py, payload.c  payloads of pixel shader threads
pixel_shader.py, .c, pixels.h  tiles become threads; thread_blocks.h blocks do; pixel_threads.c, pixel_threads.h batches of them
pixel_targets.py     what pixels are tested against and written to
color_calculator.py blending, depth and stencil, for the pixel backend; depth_buffer.py where their buffers are
render_target.py    render targets of a draw as images
one_color.py, .c, .h  rectangles of one colour, filled from one thread
clears.py, fill.py, fill.c, fill.h  fast clears, HiZ operations
"""
