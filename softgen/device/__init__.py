"""Device: one GPU put together from its parts.

In:  a GPU's name, and work: a ring or batch in an address space, for one of its engines.
Out: the work done; counters, registers and memory say what happened.

gpu.py        Gpu: engines, what each hardware context keeps, the table of commands
registers.py  the register file: masked registers, registers that move
"""
