"""The blitter: fills and copies of rectangles with raster operations.

In:  XY_COLOR_BLT, XY_SRC_COPY_BLT, XY_FAST_COPY_BLT and their kin, with what setup commands left before them.
Out: memory changed.

commands.py  handlers: what a command asks for, as surfaces, a rectangle and a raster operation
raster.py    raster operations as masks
blit.py      the plan of a blit, carried out by blit.c (blit.h)
operands.py  blits with 8x8 patterns, monochrome sources, text and transparent colours, as arrays; rectangle.py reads and writes those
"""

from softgen.blitter.commands import COMMANDS, finish, new_state

__all__ = ["COMMANDS", "finish", "new_state"]
