"""The pixel backend: depth and stencil tests, blending, and writes to render targets.

In:  render target write and read messages, the pixels of their threads (PixelDispatch), and the state of a draw (BackendState).
Out: pixels in render targets, depth and stencil buffers; `passed` of PixelDispatch. early_depth() gives the tests that run before the
     pixel shader.

unit.py         UNIT: the declaration
state.py        BackendState: what a draw says about targets, blending, depth and stencil
messages.py     render target write messages: their payload
write.py        the lane program of a write: tests, blending, conversion, store
sample_write.py the same for pixels with several samples; sample_control.py which slices have them
read.py         render target read messages, and their lane program
blend.py        blending, clamps, logic operations
depth.py        depth and stencil tests
surface.py      addresses of pixels; blocks of 4x4 pixels
records.py      numbers that code reads at run time
functions.py    compiled functions; blocks.h what tests take
interpreter.py  the environment of messages on the interpreter; compiled.py the one in compiled code
targets.py      binding table entries with their blend state; binding.py those that compiled code has used
"""

from softgen.shared_functions.pixel_backend.state import (
    BackendState,
    BlendEquation,
    DepthState,
    DepthTarget,
    StencilFace,
    StencilNumbers,
    SurfacePlacement,
    TargetState,
)

NAME = "pixel backend"  # of the unit, and of its state among ThreadDispatch.unit_states

__all__ = [
    "NAME",
    "BackendState",
    "BlendEquation",
    "DepthState",
    "DepthTarget",
    "StencilFace",
    "StencilNumbers",
    "SurfacePlacement",
    "TargetState",
]  # fmt: skip
