"""Streamer: how work arrives, how commands are read and what they do.

In    an address space and a place to start: a ring or a batch on one engine.
Out   commands in the order the hardware meets them, through chained and second-level batches; what their pointers lead to. Or the same
      commands executed: state kept, memory and registers changed, threads started in the rooms below.

window.py     dwords at an address, read ahead in pieces
parser.py     dwords -> commands: rings, batches, chaining, ends
context.py    what earlier commands said that later ones need: base addresses, shader state
indirect.py   a command's pointers followed to state, kernels and data
execute.py    the same road, each command carried out before the next is read
state.py      commands that only say something
mi.py         MI commands: memory and registers
sync.py       flushes with what they write afterwards, semaphores
dispatch.py   commands of the compute front end
"""
