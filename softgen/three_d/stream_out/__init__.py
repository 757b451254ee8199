"""Stream output: vertices of objects on their way to CLIP, written to buffers.

stream_output.py, .c  SOL: the plan of declarations, buffers and counters, and the loop over a chunk's objects (stream_output.h)
"""
