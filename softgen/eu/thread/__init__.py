"""A thread's state: registers, masks, stacks, and how operands address them.

state.py        all architectural state of one EU thread
block.py        the same state as the memory block that compiled code works on, and the context around it
lane_state.py   registers as lanes of a machine, for semantics
regions.py      bytes that the channels of an operand occupy; reads and writes
predicate.py    predication: flag bits and the channels they enable
exceptions.py   entry into the system routine and return
"""
