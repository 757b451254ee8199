"""GPGPU: thread groups over a grid.

In:  a walker command with what was loaded before it: interface descriptors, constants, front end state, base addresses.
Out: thread groups, run one after another with shared local memory and barriers; how many threads and instructions that were.

walker.py    commands -> a Plan, and the registers each thread starts with
group.py     one thread group: its threads, its local memory, its barrier
"""
