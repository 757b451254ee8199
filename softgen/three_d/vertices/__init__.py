"""The front of the pipeline: chunks of shaded vertices, and the objects that they make.

front.py            chunks of a draw, from the next three; chunk.py has their arrays
assembly.py, .c     objects of every topology, and the vertices they share
vertex_fetch.py, .c vertex data, from buffers to payload registers or URB entries (vertex_fetch.h)
vertex_shader.py, .c  vertex shader threads
media_preload.py    draws in media mode, which preload indirect data
"""
