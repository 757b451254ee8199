"""Streamer: rings and batches, the commands in them, and their execution.

In    an address space and where to start: a ring or a batch on one engine.
Out   commands in the order the hardware meets them, through chained and second-level batches; or the same commands executed: state
      latched, memory and registers changed, work started in the pipelines below.

window.py         dwords at an address, read ahead in pieces
parser.py         dwords -> commands: rings, batches, chaining, ends
latch.py          state commands kept as raw dwords, merged as their pages say
latch_rules.py    rules for that, made from pages, which latch.c applies (latch_rules.h)
walk.py           BatchWalk: state latched and commands with actors executed in compiled code, walk.c, where they are in memory
write_actors.py   actors of flushes and of stores of immediate data in walks, write_actors.c (write_actors.h)
context.py        SavedContext: what a hardware context keeps on an engine
interface.py      what a streamer uses of its device and of the submitter; types of handlers
execute.py        Streamer: commands executed one after another; handler_services.py: what their handlers use of it
position_only.py  PositionOnlyStreamer: what the position-only streamer does with rings and batches
command_kinds.py  kinds of commands: those that only set state, those that a handler alone executes
prepared.py       batches that come again and again, decoded once
engine_registers.py  an engine's registers by name
engine_status.py  registers that show where an engine is, and the errors its parser finds
privilege.py      what only the kernel driver's batches may do
rules.py          rules that software must keep, and warnings when it does not
mi.py             MI commands: memory and registers
arithmetic.py     MI commands: the ALU, predicates, atomics
sync.py           flushes with their post-sync writes, semaphores, interrupts, reports, PIPELINE_SELECT
flush_effects.py  which caches a flush invalidates and flushes, and what it sends down the pipe
switch.py         MI_SET_CONTEXT: contexts that a ring's own commands switch
"""
