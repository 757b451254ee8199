"""Streamer: how work arrives, how commands are read and what they do.

In    an address space and a place to start: a ring or a batch on one engine.
Out   commands in the order the hardware meets them, through chained and second-level batches; what their pointers lead to. Or the same
      commands executed: state kept, memory and registers changed, threads started in the rooms below.

window.py     dwords at an address, read ahead in pieces
parser.py     dwords -> commands: rings, batches, chaining, ends
context.py    what earlier commands said that later ones need: base addresses, shader state
indirect.py   a command's pointers followed to state, kernels and data
interface.py  what a streamer uses of its device and of the submitter; handlers' types
execute.py    Streamer: commands executed one after another
engine_status.py  registers that show where an engine is, and the errors its parser finds
privilege.py  what only the kernel driver's batches may do
rules.py      what software must keep, told when it does not
state.py      commands that only say something
mi.py         MI commands: memory and registers
arithmetic.py MI commands: the ALU, predicates, atomics
sync.py       flushes with what they write afterwards, semaphores, interrupts, reports
switch.py     contexts that a ring's own commands switch
dispatch.py   commands of the compute front end
"""
