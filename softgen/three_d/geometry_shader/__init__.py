"""Geometry shaders since Gen7: threads for the objects of a chunk, and the vertices and objects that they put out.

geometry_shader.py, .c  the stage, chunk by chunk; geometry_shader.h has its structures
geometry_form.py        what state means: how threads get objects, and where their entries have vertices
geometry_payload.c      payloads of threads
geometry_output.c       vertices and objects out of the entries that threads wrote
"""
