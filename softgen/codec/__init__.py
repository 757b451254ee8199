"""The video engine: pictures decoded from the bitstreams and picture state of MFX and HCP commands.

In:  MFX_* or HCP_* state, then MFD_*_BSD_OBJECT or HCP_BSD_OBJECT commands with data. Out: frames in surfaces, error and count registers.

commands.py     handlers: state that a picture keeps, objects, flushes
picture.py      the open picture: surfaces and references of the latched state, host planes, completion (surface_walk.c, surface_deep.c)
image.py        surfaces of pictures as images, for what shows them
engine.py       what commands leave for objects, the data of objects
library.py      the C code, called under the guard; structures.py: what it shares with Python
huc.py          the stream copy of the microcontroller
bits/           bits and codes of streams      transform/  blocks of coefficients to samples
mfx/, hcp/      one folder per standard: state.py reads the latched records, the C files decode
pak/            encoders: one folder per standard, and the stream they write
vdenc/          the search that decides the macroblocks of H.264 slices
"""

from softgen.codec.commands import ACTORS, COMMANDS, finish, new_state

__all__ = ["ACTORS", "COMMANDS", "finish", "new_state"]
