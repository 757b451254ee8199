"""Traces for people.

decoding.py      a trace's submissions as commands, each followed by the state it points to
indirect_state.py  a command's pointers, followed to state, kernels and data
video_slices.py  objects of video batches as slices of pictures
kernels.py       the EU kernels that a trace's commands point to
error_report.py  an error state: when, which GPU, what the kernel said; stopped.py  where its engines stopped
"""
