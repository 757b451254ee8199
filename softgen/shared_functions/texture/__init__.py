"""Texels: what the sampler and typed messages of the data port share.

operations.py  operations on texels by name, and the messages that ask for them
functions.py   the same compiled for a surface, for kernels to call
compiled.py    the call from a kernel
"""

from softgen.shared_functions.texture.operations import TexelRequest, textured

__all__ = ["TexelRequest", "textured"]
