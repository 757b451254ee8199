"""Device: one GPU put together from its parts.

In:  a GPU's name, and work: a ring or batch in an address space, for one of its engines; or register writes, with memory behind page
     tables, as a driver makes them.
Out: the work done; counters, registers and memory say what happened, interrupts are events.

gpu.py        GpuDevice: engines, hardware contexts, the table of commands
execution.py  work on an engine that can be run, parked and resumed
engines.py    an engine driven through registers: execlists and rings, contexts that wait, are switched and resumed
position_only.py  the position-only engine (POCS) that the render engine loads and preempts
image.py      context images: registers saved and restored
image_state.py  state commands in the images of render contexts
status.py     reports of an engine about its contexts: status pages, status registers
submission.py which register writes start work, and what they start
interrupts.py interrupts as events, and the registers that collect them
watchdog.py   an engine's watchdog
registers.py  the register file: masked registers, registers that move, registers that belong to contexts
clock.py      the GPU's clock
memory.py     physical memory, the global table, contexts' tables
"""
