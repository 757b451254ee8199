"""Binding table entries for compiled messages: buffers by host address, images by the functions compiled for them."""

from __future__ import annotations

import ctypes

SURFACES = 256  # binding table indices
KNOWN, TOLD = 1, 3  # values of Surface.known: resolved; resolved, and an access outside it has been reported


class Surface(ctypes.Structure):
    """A buffer. Without a host address its messages are side exits to the interpreter; so is the first message with a lane outside
    (`known`)."""

    _fields_ = [("host", ctypes.c_uint64), ("size", ctypes.c_uint64), ("address", ctypes.c_uint64), ("known", ctypes.c_uint64)]


SAMPLERS = 16  # sampler indices
# Operations on the texels of a surface, by name and lanes: the index of the function that does it; samples have one for each sampler.
TEXTURED = {("read", 8): 0, ("write", 8): 1, ("load", 8): 2, ("load", 16): 3, ("sample", 8): 4, ("sample", 16): 4 + SAMPLERS}
NUMBERS = ("base", "width", "height", "depth", "pitch", "rows", "first", "across")  # of an image, that a function reads at run time


class Picture(ctypes.Structure):
    """An image. A function is `void f(context, picture, arguments, mask)`: arguments are vectors of 32-bit lanes one after another, and
    results replace them. Where there is no function, messages are side exits to the interpreter."""

    _fields_ = [("functions", ctypes.c_uint64 * (4 + 2 * SAMPLERS)), *((name, ctypes.c_uint64) for name in NUMBERS)]


class Bindings(ctypes.Structure):
    """What the context field `surfaces` points at."""

    _fields_ = [("surfaces", Surface * SURFACES), ("pictures", Picture * SURFACES), ("samplers", ctypes.c_uint64)]  # sampler table offset
