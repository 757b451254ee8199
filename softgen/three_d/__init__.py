"""The 3D pipeline: draws, from vertex fetch to pixel shader threads.

In:  3DPRIMITIVE, with the state that was latched before it.
Out: thread dispatches; the pixel backend (shared_functions.pixel_backend) writes render targets and depth buffers.

three_d.h, structures.py  the arrays between stages
state.py                  the state of a draw
"""
