"""PixelDispatch: what fixed functions tell the pixel backend about a pixel shader thread, besides its payload.

A render-target write without a header does not say which pixels it means; the hardware keeps that with the thread. Here it stands in the
thread's block, where the kernel cannot reach it. three_d/three_d.h has the same structure.
"""

from __future__ import annotations

import ctypes

SUBSPANS = 8
PIXELS = 4 * SUBSPANS


class PixelDispatch(ctypes.Structure):
    """The pixels of a thread, channel = 4 x subspan + pixel of it."""

    _fields_ = [
        ("place", ctypes.c_uint32 * SUBSPANS),  # of a subspan's upper left pixel: X in the low half, Y in the high one
        ("lit", ctypes.c_uint32),  # pixels that are covered and passed early tests
        ("back_facing", ctypes.c_uint32),
        ("layer", ctypes.c_uint32),  # render target array index
        ("viewport", ctypes.c_uint32),
        ("passed", ctypes.c_uint32),  # set by the pixel backend: pixels that passed late depth and stencil tests
        ("reserved", ctypes.c_uint32 * 3),
        ("depth", ctypes.c_float * PIXELS),  # interpolated Z, where tests come late and the thread does not compute it
        # For the pixel interpolator: planes of 1/w, of b1 and b2, and of both divided by w. Each is its value at pixel (0, 0), and its
        # steps along x and y.
        ("planes", ctypes.c_float * 16),
        ("antialias", ctypes.c_float * PIXELS),  # coverage by smooth lines and points, in draws that may have them
    ]
