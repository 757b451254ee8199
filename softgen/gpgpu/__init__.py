"""GPGPU: thread groups over a grid.

In:  a walker command with what was loaded before it: interface descriptors, constants, front end state, base addresses.
Out: thread groups, each with shared local memory and a barrier; how many threads and instructions that were.

walker.py    commands -> a Plan, and the registers each thread starts with
media.py     the same for root threads of the media pipeline; media_walk.py is the order in which their walker goes
checks.py    rules that software must keep in these commands
engines.py   which engine runs a dispatch, and what kernels came to
group.py     the reference: one thread group, its threads, its local memory, its barrier
compiled.py  compiled engines: groups handed out in chunks to host threads; job.py is what these share, worker.py one of them,
             templates.py how its threads start; rows.py what lies evenly in their registers
compare.py   two engines on the same dispatch, and where they first differ
"""
