"""The video front end (VFE) and thread spawner (TS) of Gen4.5, whose state is in memory (G45 8497-12000).

In:  MEDIA_STATE_POINTERS, MEDIA_OBJECT commands, VFE_STATE and what it points to.
Out: root threads and the threads that they spawn.

state.py    state in memory, and what the front end keeps from one object to the next
objects.py  object commands as root threads, by mode
payload.py  the registers that root threads start with
spawner.py  the thread spawner: queues and dispatch
blocks/     macroblocks of the modes that get coefficients: IS, AVC-IT, AVC-MC, VC1-IT
vld/        VLD mode: slices of MPEG-2 as macroblock threads
trees.py    what threads that others spawn start with
checks.py   rules of the manual that these commands may break
"""
