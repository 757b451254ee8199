"""CLIP, SETUP and BIN: from objects to setup records in bins.

geometry.py, geometry.h  the three of them over a chunk
clip.py, clip.c     which objects pass, and what clipping makes of others (clip_object.c)
setup.py, setup.c   setup records: shapes.c triangles and rectangles, lines.c, fill_modes.c, planes.c
attributes.py, .c   attributes of setup records (SBE)
bins.py, bins.c     records by tile
"""
