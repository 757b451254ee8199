"""Surfaces: what bytes mean as an image.

In:  a surface state, and coordinates or texels as lanes of any machine.
Out: where in memory a texel is, its channels, and channels put together to a texel.

tiling.py      linear, X, Y and W: from a byte of a row to a byte of memory
tile_table.py  the same within a tile as tables for compiled code
detile.py      rectangles of tiled surfaces as rows, by compiled code (detile.h)
image.py       SurfaceImage: a decoded surface state; slices, bounds; resized.py the same of states that differ in numbers only
levels.py      where mip levels are; slices.py  rows from one slice of an array or volume to the next
texel.py       channels in and out of texels, by the table of formats
blocks.py      compressed blocks of 4x4 texels; coded.py those that C decodes (coded.c, bptc.c, etc.c, astc.c, astc.h)
fetch.py       texels out of memory; sample_fetch.py samples of them
samples.py     where the samples of a texel are, and control surfaces
texels.py      places of all texels of a level, and the texel at an address
"""
