"""The GPGPU pipeline: thread groups over a grid.

In:  GPGPU_WALKER, with what the front end loaded before it (softgen.media).
Out: a ThreadDispatch.

commands.py  the walker's handler
walker.py    the walker command as a ThreadDispatch
plans.py     what dispatches of a kernel have in common, kept between them
"""

from softgen.gpgpu.commands import COMMANDS, PREPARED, finish, new_state

__all__ = ["COMMANDS", "PREPARED", "finish", "new_state"]
