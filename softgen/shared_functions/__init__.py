"""Shared functions: the units that a send instruction reaches.

In:  the number of a shared function, the 32-bit descriptor of a message, and its payload.
Out: which message that is, its fields, its lengths, the descriptor of a message given by name; loads, stores and barriers carried out.

message.py    descriptors: identify, describe, problems, encode; extended descriptors
exchange.py   a message on its way, on any lane machine: what the programs that answer messages are written against
texture.py    what messages do with texels: operations that know a surface's kind and format
sampler/      texels by coordinates, filtered
dataport/     loads and stores: bound buffers, stateless memory, 64-bit addresses, shared local memory, atomics
gateway.py    barriers of a thread group
spawner.py    threads that end
"""
