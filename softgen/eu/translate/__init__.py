"""T1: a whole kernel as one native function.

graph.py    blocks, and where channels may wait        registers.py which bytes of registers belong together
state.py    what instructions compute on               life.py      what must be kept where a thread is left
flow.py     branches                                   send.py      messages
kernel.py   puts them together
"""
