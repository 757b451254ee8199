"""Streamer: how work arrives and how commands are read.

In    an address space and a place to start: a ring or a batch on one engine.
Out   commands in the order the hardware meets them, through chained and second-level batches; what their pointers lead to.

window.py     dwords at an address, read ahead in pieces
parser.py     dwords -> commands: rings, batches, chaining, ends
context.py    what earlier commands said that later ones need: base addresses, shader state
indirect.py   a command's pointers followed to state, kernels and data
"""
