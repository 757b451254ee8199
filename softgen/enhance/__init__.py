"""The video enhancement engine (VEBOX, vecs0): denoise, deinterlace, colours, and the scaler behind it (SFC).

In:  VEBOX_STATE and its tables, VEBOX_SURFACE_STATE, SFC_*, then VEB_DI_IECP. Out: frames in surfaces, motion history.

commands.py     handlers, and the order of stages
surface.py      surfaces and frames in host memory (frame_store.c)
state.py        tables to parameters
scaler.py       SFC: polyphase scaling, conversion, placement
structures.py   what C code shares with Python; library.py: its entries, called under the guard
denoise.c deinterlace.c colour.c scale.c    one stage each
"""

from softgen.enhance.commands import COMMANDS, finish, new_state

__all__ = ["COMMANDS", "finish", "new_state"]
