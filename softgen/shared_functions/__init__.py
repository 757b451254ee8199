"""Shared functions: the units that a send instruction reaches.

In:  the number of a shared function, the 32-bit descriptor of a message, and its payload.
Out: which message that is, its fields, its lengths, the descriptor of a message given by name; the message executed, on any engine.

unit.py            Unit: a shared function declared once; start reading here
units.py           the registry of units
message_table.py   which message a descriptor names (spec/message/messages.table)
descriptors.py     descriptors: identify, describe, problems, encode; extended descriptors
message.py         Message: what lane programs that execute messages are written against, on any lane machine
context.py         the context of compiled code: a fixed head (context.h), and the fields of units
compiled.py        MessageCode: a send being compiled into a kernel
bindings.py        binding table entries for compiled code; bound_surfaces.py resolves them, surface_binding.py shares them among units
ahead.py           functions of copies of images, compiled before kernels call them
access_fault.py    faults of compiled messages, explained
texture_tables.py  palettes and chroma keys, which commands load
texture/           operations on texels, for sampler and data port
sampler/           texels by coordinates, filtered
dataport/          loads and stores: bound buffers, stateless memory, 64-bit addresses, shared local memory, atomics
urb/               entries of the unified return buffer, written, read and allocated by handle
pixel_backend/     depth and stencil tests, blending, render targets; pixel_dispatch.h: the pixels of a thread
avs/               the video scaler: polyphase filters of media surfaces
block_access.py    bytes of blocks of surfaces, moved in C
extended_math/     functions of floats and integer division; the shared function of Gen4.5
pixel_interpolator.py  barycentrics at offsets from pixels
gateway.py         barriers of a thread group
spawner.py         threads that end
"""
