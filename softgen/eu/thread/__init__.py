"""Thread state, and how instructions access it.

state.py        ThreadState: all architectural state of one EU thread
block.py        the same state as a block of memory, which compiled code works on; the dispatch context around it
message.py      SentMessage: a message on its way to a shared function
lane_state.py   LaneState: the interface of register access in lanes, implemented by the interpreter and by both compilers
regions.py      operand regions: byte offsets of channels; reading sources, writing destinations
predicate.py    predication: flag bits to truth per channel
exceptions.py   exceptions, breakpoints and the system routine
"""
